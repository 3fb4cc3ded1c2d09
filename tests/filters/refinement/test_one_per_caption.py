"""Of several pairs that a caption offers, the one that gives itself away least."""

import polars as pl

from pairwright.datasets.rng import make_rng
from pairwright.filters.candidates.rows import candidate_frame
from pairwright.filters.refinement.candidates import refine_candidates
from pairwright.filters.refinement.general.refine import AllAttacksOptions
from pairwright.filters.refinement.one_per_caption import NOT_CHOSEN, add_original_captions

NOUNS = ("dog", "cat", "horse", "bus", "boat", "bird", "sheep", "truck", "bear", "kite")


def rows(number: int = 240, *, offers: int = 3) -> pl.DataFrame:
    """Captions with a noun of ten, each with negatives of which most put in a noun that no caption has."""
    given = []
    for index in range(number):
        rng = make_rng("offers", index)
        true = rng.randrange(len(NOUNS))
        false = [(true + 1 + rng.randrange(len(NOUNS) - 1)) % len(NOUNS), *range(10, 9 + offers)]
        for place, noun in enumerate(false):
            word = NOUNS[noun] if noun < len(NOUNS) else f"yak{noun}"
            given.append(
                {
                    "id": f"{index:03}-{place}",
                    "caption": f"a {NOUNS[true]} in the park",
                    "negative": f"a {word} in the park",
                    "image": f"{index}.jpg",
                    "form": "replace",
                    "target": "object",
                }
            )
    return candidate_frame((str(number), row) for number, row in enumerate(given))


def test_at_most_one_row_per_caption_and_type_is_kept_and_it_is_undetectable() -> None:
    given = rows()
    result, outcome = refine_candidates(given, None, AllAttacksOptions(target=0.6, rounds=6), choose=True)
    kept = result.filter(status="kept")
    assert kept["caption"].len() == kept.select("image", "caption").n_unique()
    assert outcome.total.rows == outcome.by_type["replace-object"].rows == 240
    assert outcome.total.kept == kept.height > 120
    assert not kept["negative"].str.contains("yak").mean() > 0.1  # type: ignore[operator]
    assert set(result["reason"]) <= {"", NOT_CHOSEN} | {
        f"detected_by_{name}" for name in (*outcome.total.attacks, "transfer")
    }
    assert result.filter(reason=NOT_CHOSEN).height == 2 * 240


def test_the_order_of_the_rows_changes_nothing() -> None:
    given = rows(80, offers=2)
    options = AllAttacksOptions(target=0.6, rounds=1)
    one, _ = refine_candidates(given, None, options, choose=True)
    other, _ = refine_candidates(given.reverse(), None, options, choose=True)
    assert other.reverse()["reason"].to_list() == one["reason"].to_list()


def test_a_negative_of_a_rewording_is_also_paired_with_the_caption() -> None:
    one = {"caption": "a dog", "negative": "a cat", "positive": "a hound", "form": "replace", "target": "object"}
    added = {**one, "negative": "a cat and a bus", "positive": "a dog and a tree", "form": "add"}
    rejected = {**one, "status": "rejected", "reason": "odd"}
    frame = candidate_frame((str(number), row) for number, row in enumerate([one, added, rejected]))
    result = add_original_captions(frame)
    assert result.head(3).equals(frame)
    assert result.tail(-3)["positive"].to_list() == [""]
    assert result["id"].n_unique() == 4


def test_no_rows_give_an_empty_selection() -> None:
    result, outcome = refine_candidates(rows(1).head(0), None, AllAttacksOptions(), choose=True)
    assert result.is_empty()
    assert not outcome.total.kept
