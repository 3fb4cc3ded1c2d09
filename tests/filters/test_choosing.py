"""Of several negatives of a caption, the one that gives itself away least."""

import polars as pl

from pairwright.filters.candidates import candidate_frame
from pairwright.filters.choosing import NOT_CHOSEN, chosen
from pairwright.filters.scorers import Corpus

CAPTION = "a dog in the park"
SEEN = ("a cat in the house", "a dog in the house", "a cat on a bench", "a dog on a bench")
KNOWN = Corpus(SEEN, ["1", "2", "3", "4"])


def rows(*negatives: str, **columns: str) -> pl.DataFrame:
    given = [
        {"caption": CAPTION, "negative": text, "image": "9.jpg", "form": "replace", **columns} for text in negatives
    ]
    return candidate_frame((str(number), row) for number, row in enumerate(given))


def kept(frame: pl.DataFrame) -> list[str]:
    return frame.filter(status="kept")["negative"].to_list()


def test_the_negative_nearest_in_length_and_likelihood_is_chosen_and_the_others_say_so() -> None:
    given = rows("a rhinoceros in the park", "a cat in the park", "a qat in the park")
    result = chosen(given, KNOWN)
    assert kept(result) == ["a cat in the park"]
    assert result["reason"].to_list() == [NOT_CHOSEN, "", NOT_CHOSEN]
    assert result.drop("status", "reason").equals(given.drop("status", "reason"))


def test_each_type_of_edit_is_chosen_for_by_itself() -> None:
    both = pl.concat([rows("a cat in the park"), rows("a big dog in the park", form="add")])
    assert len(kept(chosen(both, KNOWN))) == 2


def test_the_order_of_the_rows_changes_nothing_and_rejected_rows_stay_as_they_are() -> None:
    given = pl.concat(
        [
            rows("a bus in the park", "a kite in the park", "a boat in the park"),
            rows("a cat in the park", status="rejected", reason="odd"),
        ]
    )
    one, other = chosen(given, KNOWN), chosen(given.reverse(), KNOWN).reverse()
    assert one.equals(other)
    assert one["reason"].to_list().count("odd") == 1
    assert len(kept(one)) == 1


def test_of_no_rows_none_is_chosen() -> None:
    assert chosen(rows("a cat in the park").head(0)).is_empty()
