"""Quotas, caps and the account of a set of negatives."""

from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.records import Annotation, Edit, Origin
from pairwright.generators.balance import Account, Limits, Line, balanced, line_of, replacement_word, surplus

RULES = Origin("rules-negatives", 2)


def row(number: int, word: str, *, positive: str = "", kind: str = "hard_negative") -> Annotation:
    """Return a kept replacement of "dog" by a word."""
    edit = Edit("dog", word, (2, 5), (2, 2 + len(word)))
    return Annotation(
        f"id{number}", f"key{number % 10}", kind, RULES, "replace", "object", f"a {word}", "a dog", (edit,), positive
    )


lines = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["cat", "cow", "pig", ""])), max_size=60)


@given(lines, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(entries: list[tuple[str, str]], chance: object) -> None:
    rows = [Line(f"k{at * 7919 % 101}", f"i{at}", kind, word) for at, (kind, word) in enumerate(entries)]
    limits = Limits({"a": 7}, share=0.4)
    shuffled = rows[:]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert surplus(rows, limits) == surplus(shuffled, limits)


@given(st.lists(st.sampled_from(["cat", "cow", "pig", "hen", "owl"]), min_size=60, max_size=200))
def test_no_word_has_more_than_its_share_of_what_is_left(words: list[str]) -> None:
    rows = [Line(f"k{at}", f"i{at}", "replace-object", word) for at, word in enumerate(words)]
    gone = surplus(rows, Limits(share=0.5))
    left = [line.word for line in rows if line.id not in gone]
    assert all(left.count(word) <= max(0.5 * len(left), 5) for word in set(left))


def test_a_quota_leaves_as_many_as_were_asked_for() -> None:
    rows = [row(number, "cat") for number in range(30)]
    gone = surplus(map(line_of, rows), Limits({"replace-object": 12}))
    assert len(gone) == 18
    assert set(gone.values()) == {"over_quota"}


def test_rejected_rows_take_their_positives_along() -> None:
    positives = [row(100 + number, "puppy", kind="hard_positive") for number in range(2)]
    rows = [row(0, "cat", positive="id100"), row(1, "cow", positive="id101"), *positives]
    found = {each.id: (each.status, each.reason) for each in balanced(rows, {"id0": "over_quota"})}
    assert found["id0"] == ("rejected", "over_quota")
    assert found["id100"] == ("rejected", "without_negative")
    assert found["id1"] == found["id101"] == ("kept", "")


def test_the_word_of_an_edit_leaves_article_and_joint_out() -> None:
    assert replacement_word(row(0, "an orange cat")) == "orange cat"
    assert replacement_word(row(0, " with a dog")) == "dog"


def test_an_account_tells_what_was_made_with_which_words_and_where() -> None:
    account = Account()
    account.add([row(0, "cat"), row(1, "cat"), row(2, "cow"), row(3, "puppy", kind="hard_positive")])
    figures = account.as_json()["replace-object"]
    assert (figures["asked"], figures["kept"], figures["rejected"]) == (3, 3, {})
    assert figures["most_used"] == [["cat", 2], ["cow", 1]]
    assert figures["positions"] == [0, 0, 0, 0, 3, 0, 0, 0, 0, 0]
