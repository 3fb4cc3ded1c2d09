"""Audits: what gives rows away is found and counted, what does not is left in peace."""

import random
import warnings
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pairwright.filters.attacks.accuracy import MeasuredAttack
from pairwright.filters.audit.charts import CELLS, count_cells, draw_accuracy_bar, draw_gap_heatmap
from pairwright.filters.audit.report import (
    AuditGaps,
    describe_exceeded_limits,
    format_summary,
    render_html,
    render_markdown,
)
from pairwright.filters.audit.text_leaks import POSITION_BINS, find_text_leaks
from pairwright.filters.audit.verdict import Audit, run_audit

WORDS = ["dog", "cat", "bus", "boat", "man", "woman", "tree", "house", "red", "blue", "green", "large", "small", "old"]


def rows_of(pairs: Sequence[tuple[str, str]], kinds: Sequence[str] = ("swap",)) -> pl.DataFrame:
    return pl.DataFrame(
        [(positive, negative, str(at), kinds[at % len(kinds)]) for at, (positive, negative) in enumerate(pairs)],
        schema=["positive", "negative", "group", "type"],
        orient="row",
    )


def exchangeable(rows: int, seed: int = 0) -> list[tuple[str, str]]:
    """Rows whose two texts are drawn alike: nothing can leak them apart."""
    rng = random.Random(seed)

    def text() -> str:
        return "a " + " ".join(rng.choices(WORDS, k=6))

    return [(text(), text()) for _ in range(rows)]


def test_a_set_of_exchangeable_texts_is_sound() -> None:
    found = run_audit(rows_of(exchangeable(1500), ("swap", "add")), limit=0.56)
    assert found.verdict in {"sound", "unclear"}
    assert not found.exceeded
    for one in found.attacks.values():
        assert one.low <= 0.5 <= one.high


@pytest.mark.parametrize("seed", range(5))
def test_many_small_types_without_any_difference_are_not_hackable(seed: int) -> None:
    found = run_audit(rows_of(exchangeable(8 * 54, seed), [f"type {at}" for at in range(8)]), seed=seed)
    assert any(each.accuracy > 0.6 for one in found.attacks.values() for each in one.by_type.values())  # by chance
    assert not found.exceeded


def test_rows_whose_texts_change_places_in_another_row_are_at_chance_level() -> None:
    leaking = [(f"{text} and a very long tail of it", other) for text, other in exchangeable(150)]
    groups_of_two = [row for positive, negative in leaking for row in ((positive, negative), (negative, positive))]
    found = run_audit(rows_of(groups_of_two))  # Winoground: each caption is true of one of two images
    assert found.verdict == "sound"
    at_chance = {name for name, one in found.attacks.items() if one.accuracy == 0.5}
    assert at_chance >= {"length", "format", "words", "letters"}


@pytest.mark.parametrize(
    ("attack", "spoil"),
    [
        ("length", lambda text: f"{text} and a very long tail of it"),
        ("format", lambda text: f"{text.capitalize()}."),
        ("words", lambda text: text.replace("a ", "a zebra ", 1)),
        ("letters", lambda text: text.replace("o", "oo")),
    ],
)
def test_each_attack_detects_its_kind_of_leak(attack: str, spoil: object) -> None:
    assert callable(spoil)
    found = run_audit(rows_of([(one, spoil(other)) for one, other in exchangeable(300)]))
    assert found.verdict == "hackable"
    assert found.attacks[attack].accuracy > 0.85
    assert any(each.attack == attack for each in found.exceeded)


def test_a_hackable_type_makes_a_balanced_set_hackable() -> None:
    pairs = [(one, f"{other} zebra" if at % 10 == 0 else other) for at, (one, other) in enumerate(exchangeable(1500))]
    found = run_audit(rows_of(pairs, ["add", *["swap"] * 9]))
    assert {each.of for each in found.exceeded if each.measured.accuracy > 0.9} == {"add"}
    assert describe_exceeded_limits(found)[0].startswith("add: ")


def test_too_few_rows_are_inconclusive() -> None:
    measured = MeasuredAttack(20, 0.6, 0.39, 0.78, {})
    found = Audit(20, 20, 0.55, {"length": measured}, find_text_leaks(exchangeable(20)), 20)
    assert found.verdict == "unclear"


def test_rows_of_one_image_are_inconclusive() -> None:
    rows = rows_of(exchangeable(60)).with_columns(group=pl.lit("one"))
    found = run_audit(rows, limit=0.9)
    assert found.verdict == "unclear"
    assert "one image" in found.doubt
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all gaps of the trained scorers are NaN
        nothing = np.full(60, np.nan)
        page = render_html(
            found, "rows", AuditGaps({"grammar": nothing, "plausibility": nothing}, np.ones(60, np.bool_))
        )
    assert "one image" in page
    assert 'class="square"' not in page


def test_images_whose_texts_are_one_anothers_exchanged_are_inconclusive() -> None:
    rows = rows_of([("yes, a dog", "no, no dog"), ("no, no dog", "yes, a dog")] * 30)
    found = run_audit(rows)
    assert (found.images, found.groups, found.verdict) == (60, 1, "unclear")
    assert "exchanged" in found.doubt


def test_rows_with_equal_texts_are_inconclusive() -> None:
    found = run_audit(rows_of([(one, f"{one.capitalize()}.") for one, _ in exchangeable(8)]), limit=1.0)
    assert (found.verdict, found.text_leaks.identical) == ("unclear", 8)
    assert "equal" in found.doubt


@pytest.mark.parametrize(("times", "said"), [(1, "1 row that repeats an"), (2, "2 rows that repeat an")])
def test_counts_are_stated_in_singular_or_plural(times: int, said: str) -> None:
    pairs = exchangeable(20)
    found = run_audit(rows_of([*pairs, *pairs[:times]]))
    assert any(line.startswith(said) for line in format_summary(found))


def test_repetitions_identities_and_leaks_are_counted() -> None:
    found = find_text_leaks(
        [
            ("a dog", "A dog."),
            ("a cat runs", "a dog runs"),
            ("A cat runs", "a dog runs"),
            ("a dog runs", "a cow runs ."),
        ]
    )
    assert (found.identical, found.repeated, found.shared) == (1, 1, 2)
    assert (found.longer, found.shorter) == (1, 0)
    assert (found.formats["final mark"].rows, found.formats["final mark"].negative) == (2, 2)
    assert (found.formats["first letter is a capital"].rows, found.formats["first letter is a capital"].negative) == (
        2,
        1,
    )
    assert found.formats["space before a mark"].rows == 1
    assert found.format_rows == 3


def test_leaking_words_are_listed_once_with_their_side() -> None:
    pairs = [(f"a single {word}", f"an {word}") for word in WORDS] + [("a dog", "the zebra")] * 9
    found = {leak.words: leak for leak in find_text_leaks(pairs).words}
    assert found["zebra"].weight > 0
    assert found["zebra"].negative == 9
    assert sum("single" in words for words in found) == 1


@example([*[("", "b b")] * 3, *[("b", "")] * 2, ("b", "b b"), ("b b", "")])  # "b" leans to neither side
@given(st.lists(st.tuples(st.text("ab ", max_size=12), st.text("ab ", max_size=12)), max_size=12))
def test_exchanging_both_texts_mirrors_the_counts(pairs: list[tuple[str, str]]) -> None:
    there, back = find_text_leaks(pairs), find_text_leaks([(negative, positive) for positive, negative in pairs])
    assert (there.longer, there.shorter, there.identical) == (back.shorter, back.longer, back.identical)
    assert there.format_rows == back.format_rows
    assert {(leak.words, leak.positive) for leak in there.words} == {(leak.words, leak.negative) for leak in back.words}
    assert len(there.positions) == POSITION_BINS


def test_the_heatmap_counts_each_row_once_and_mirrors() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=500), rng.normal(size=500)
    counts = count_cells(first, second, (1.0, 1.0))
    assert counts.sum() == 500
    assert counts.shape == (CELLS, CELLS)
    first[0] = np.nan
    assert count_cells(first, second, (1.0, 1.0)).sum() == 499
    assert "500 rows" in draw_gap_heatmap("x", first, second, (1.0, 1.0))


def test_the_reports_list_the_attacks_and_escape_the_words() -> None:
    found = run_audit(rows_of([(one, f"{other} <b>zebra|") for one, other in exchangeable(60)], ("swap", "add<")))
    rows = np.ones(60, np.bool_)
    rows[:5] = False
    gaps = AuditGaps({name: np.linspace(-1, 1, 60) for name in ("grammar", "plausibility")}, rows)
    page = render_html(found, "mine<.jsonl", gaps)
    assert "<b>zebra" not in page
    assert "add&lt;" in page
    assert "mine&lt;.jsonl" in page
    assert page.count('class="square"') == 2
    assert 'class="scale over"' in page
    text = render_markdown(found, "mine.jsonl")
    assert "**hackable**" in text
    assert "| length | number of characters |" in text
    assert any("more words" in line for line in format_summary(found))


def test_the_accuracy_bar_is_clipped_at_its_ends() -> None:
    assert 'x="0.00"' in draw_accuracy_bar(MeasuredAttack(10, 0.5, 0.2, 0.8, {}), 0.55, exceeds=False)
