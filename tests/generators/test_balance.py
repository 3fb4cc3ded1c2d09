"""Quotas, caps and the account of a set of negatives."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.records import Annotation, Edit, Origin
from pairwright.generators.balance import (
    BalanceLimits,
    BalanceReport,
    BalanceRow,
    balance_row,
    balanced_kind,
    find_excess_rows,
    reject_excess_rows,
)
from pairwright.generators.edits.inserted_words import inserted_words, inserted_words_of_edits

RULES = Origin("rules-negatives", 2)


def row(number: int, word: str, *, positive: str = "", kind: str = "hard_negative") -> Annotation:
    """Return a kept replacement of "dog" by a word."""
    edit = Edit("dog", word, (2, 5), (2, 2 + len(word)))
    return Annotation(
        f"id{number}", f"key{number % 10}", kind, RULES, "replace", "object", f"a {word}", "a dog", (edit,), positive
    )


WORDS = ["cat", "cow", "pig", "hen", "owl", ""]
entries = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(WORDS)), max_size=60)
entries_of_two = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([*WORDS, "cat cow", "cow pig", "pig cat", "owl cat"])),
    max_size=60,
)
limits = st.builds(
    BalanceLimits,
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 70)),
    st.one_of(st.just(1.0), st.sampled_from([0.0, 0.01, 0.1, 0.29, 0.5, 0.58]), st.floats(0, 1)),
)


def lines_of(made: list[tuple[str, str]]) -> list[BalanceRow]:
    """Return a line for each type and word, with keys in an order of their own."""
    return [
        BalanceRow(f"k{at * 7919 % 101}", f"i{at}", kind, tuple(word.split())) for at, (kind, word) in enumerate(made)
    ]


def most_allowed(share: float, rows: int) -> int:
    """Return how many of so many rows a word may be in."""
    return max(1, int(Fraction(str(share)) * rows)) if share < 1 else rows


@given(entries_of_two, limits, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_their_parts_change_anything(
    made: list[tuple[str, str]], limits: BalanceLimits, chance: Random
) -> None:
    rows = lines_of(made)
    shuffled = rows[:]
    chance.shuffle(shuffled)
    cut = chance.randint(0, len(rows))
    assert (
        find_excess_rows(rows, limits)
        == find_excess_rows(shuffled, limits)
        == find_excess_rows(chain(shuffled[cut:], shuffled[:cut]), limits)
    )


@given(entries_of_two, limits)
def test_what_is_left_is_within_quota_and_cap_and_the_verdict_says_so(
    made: list[tuple[str, str]], limits: BalanceLimits
) -> None:
    rows = lines_of(made)
    verdict = find_excess_rows(rows, limits)
    for kind in {row.type for row in rows}:
        came = [row for row in rows if row.type == kind]
        left = [row.words for row in came if row.id not in verdict.gone]
        used = max(Counter(chain.from_iterable(left)).values(), default=0)
        assert len(left) <= limits.quota.get(kind, len(came))
        assert used <= most_allowed(limits.share, len(left))
        told = verdict.types[kind]
        assert (told.asked, told.available, told.given) == (limits.quota.get(kind), len(came), len(left))
        assert told.used == used
        assert told.most is None or used <= told.most


@given(entries, limits)
def test_no_larger_set_is_within_quota_and_cap(made: list[tuple[str, str]], limits: BalanceLimits) -> None:
    verdict = find_excess_rows(lines_of(made), limits)
    for kind, given_ in verdict.types.items():
        counts = Counter(word for type_, word in made if type_ == kind)
        others = counts.pop("", 0)
        for size in range(given_.given + 1, min(given_.available, limits.quota.get(kind, given_.available)) + 1):
            most = most_allowed(limits.share, size)
            assert others + sum(min(count, most) for count in counts.values()) < size


@given(entries, limits)
def test_a_row_goes_as_over_quota_only_when_the_quota_is_full(
    made: list[tuple[str, str]], limits: BalanceLimits
) -> None:
    verdict = find_excess_rows(lines_of(made), limits)
    kinds = {row.id: row.type for row in lines_of(made)}
    for each, reason in verdict.gone.items():
        told = verdict.types[kinds[each]]
        if reason == "over_quota":
            assert told.given == told.asked
        else:
            assert told.used == told.most


@given(entries_of_two, limits)
def test_what_is_within_the_limits_stays_when_it_is_judged_again(
    made: list[tuple[str, str]], limits: BalanceLimits
) -> None:
    rows = lines_of(made)
    gone = find_excess_rows(rows, limits).gone
    assert not find_excess_rows([row for row in rows if row.id not in gone], limits).gone


def test_the_cap_holds_of_what_a_quota_leaves() -> None:
    made = [("a", word) for word in ["cat"] * 50 + ["cow"] * 30 + ["pig"] * 20]
    left = find_excess_rows(lines_of(made), BalanceLimits({"a": 20}, share=0.4)).types["a"]
    assert (left.given, left.most, left.used) == (20, 8, 8)


def test_a_quota_that_the_cap_does_not_allow_is_told() -> None:
    made = [("a", "cat")] * 90 + [("a", "cow")] * 10
    told = find_excess_rows(lines_of(made), BalanceLimits({"a": 50}, share=0.5)).types["a"]
    assert told.as_json() == {"asked": 50, "available": 100, "given": 20, "most": 10, "used": 10}


def test_a_quota_of_a_type_that_was_not_made_is_told() -> None:
    told = find_excess_rows([], BalanceLimits({"a": 50})).types["a"]
    assert (told.asked, told.available, told.given) == (50, 0, 0)


def test_in_a_set_too_small_for_its_share_each_word_stands_once() -> None:
    made = [("a", word) for word in ["cat", "cat", "cow"]]
    told = find_excess_rows(lines_of(made), BalanceLimits(share=0.05)).types["a"]
    assert (told.given, told.most, told.used) == (2, 1, 1)


def test_a_share_counts_as_it_is_written() -> None:
    made = [("a", word) for word in ["cat"] * 29 + [f"word{at}" for at in range(71)]]
    assert not find_excess_rows(lines_of(made), BalanceLimits(share=0.29)).gone


def test_a_quota_leaves_as_many_as_were_asked_for() -> None:
    rows = [row(number, "cat") for number in range(30)]
    gone = find_excess_rows(map(balance_row, rows), BalanceLimits({"replace-object": 12})).gone
    assert len(gone) == 18
    assert set(gone.values()) == {"over_quota"}


def test_rejected_rows_take_their_positives_along() -> None:
    positives = [row(100 + number, "puppy", kind="hard_positive") for number in range(2)]
    rows = [row(0, "cat", positive="id100"), row(1, "cow", positive="id101"), *positives]
    found = {each.id: (each.status, each.reason) for each in reject_excess_rows(rows, {"id0": "over_quota"})}
    assert found["id0"] == ("rejected", "over_quota")
    assert found["id100"] == ("rejected", "without_negative")
    assert found["id1"] == found["id101"] == ("kept", "")


def test_the_word_of_an_edit_leaves_article_and_joint_out() -> None:
    assert inserted_words(row(0, "an orange cat")) == ("orange cat",)
    assert inserted_words(row(0, " with a dog")) == ("dog",)


def test_a_relation_inserts_a_verb_and_a_preposition_without_the_parts_of_the_old_one() -> None:
    def put_in(before: str, after: str) -> tuple[str, ...]:
        return inserted_words_of_edits("replace", "relation", [(before, after)])

    assert put_in("on", "next to") == ("next to",)
    assert put_in("standing in", "Laying next to") == ("laying", "next to")
    assert put_in("sitting next to", "laying next to") == ("laying",)
    assert put_in("with two", "without any") == ("without",)
    assert put_in("has a", "has no") == ("no",)
    assert put_in("at the", "across from the") == ("across from",)


def test_a_cap_holds_of_a_place_whatever_is_done_there() -> None:
    places = ["next to"] * 10 + ["laying next to"] * 10 + ["running next to"] * 10 + [f"word{at}" for at in range(70)]
    made = [
        replace(row(number, words), target="relation", key=f"key{number * 37 % 100}")
        for number, words in enumerate(places)
    ]
    gone = find_excess_rows(map(balance_row, made), BalanceLimits(share=0.1)).gone
    left = [each.edits[0].after for each in made if each.id not in gone]
    assert sum("next to" in words for words in left) <= 0.1 * len(left)


def test_an_account_tells_what_was_made_with_which_words_and_where() -> None:
    account = BalanceReport()
    account.add([row(0, "cat"), row(1, "cat"), row(2, "cow"), row(3, "puppy", kind="hard_positive")])
    figures = account.as_json()["replace-object"]
    assert (figures["asked"], figures["kept"], figures["rejected"]) == (3, 3, {})
    assert figures["most_used"] == [["cat", 2], ["cow", 1]]
    assert figures["positions"] == [0, 0, 0, 0, 3, 0, 0, 0, 0, 0]


def test_an_account_of_positives_counts_positives_alone() -> None:
    account = BalanceReport(balanced_kind("llm-positives"))
    puppy, lost = (replace(row(at, "puppy", kind="hard_positive"), origin=Origin("llm-positives", 1)) for at in (1, 2))
    account.add([row(0, "cat"), puppy, replace(lost, text="", edits=(), status="rejected", reason="no_edit")])
    figures = account.as_json()["replace-object"]
    assert (figures["asked"], figures["made"], figures["kept"], figures["rejected"]) == (2, 1, 1, {"no_edit": 1})
    assert figures["most_used"] == [["puppy", 1]]


def test_nothing_but_negatives_and_positives_is_balanced() -> None:
    assert balanced_kind("rules-negatives") == "hard_negative"
    assert balanced_kind("template-conversations") == balanced_kind("my-own") == ""


def test_the_word_of_an_edit_is_not_the_article_that_was_mended_for_it() -> None:
    given_ = row(0, "owl")
    mended = Edit("a", "an", (0, 1), (0, 2))
    assert inserted_words(replace(given_, edits=(mended, *given_.edits))) == ("owl",)


def test_the_word_of_a_claim_is_what_is_claimed() -> None:
    for text in (
        ", with a cat in view",
        " WITH A CAT IN THE BACKGROUND",
        " with a cat nearby",
        ", and a cat can be seen",
        "A cat and a",
        " with a cat",
        " near a cat",
        "a cat",
    ):
        edits = (Edit("", text, (5, 5), (5, 5 + len(text))),)
        assert inserted_words(replace(row(0, "x"), form="add", edits=edits)) == ("cat",)
