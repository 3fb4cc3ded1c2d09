"""What refinement of appended rows promises: what is added leans no further than the target, in all batches together."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.refinement.appended.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.appended.refine import refine_appended_against_all, refine_appended_with_two_scorers
from pairwright.filters.refinement.general.refine import AllAttacksOptions
from pairwright.filters.refinement.reference.refine import RefineOptions
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from tests.example_counts import examples

NOUNS = ("dog", "cat", "horse", "lamp", "cloud", "bus")
CAPTIONS = [
    f"a {colour} {what} by the {other}" for colour in ("red", "blue", "old") for what in NOUNS[:3] for other in NOUNS
]
CORPUS = CaptionCorpus(CAPTIONS, [str(number) for number in range(len(CAPTIONS))])
OPTIONS = AllAttacksOptions(target=0.55)


def rows_of(nouns: list[tuple[int, int, int]], start: int = 0) -> pl.DataFrame:
    texts = [(f"a red {NOUNS[one]} today", f"a red {NOUNS[other]} {'today' * longer}") for one, other, longer in nouns]
    return pl.DataFrame(
        {
            "id": [f"{number + start:04d}" for number in range(len(texts))],
            "group": [f"new {number + start}" for number in range(len(texts))],
            "positive": [positive for positive, _ in texts],
            "negative": [negative for _, negative in texts],
            "type": [f"type {number % 2}" for number in range(len(texts))],
        },
        schema=dict.fromkeys(("id", "group", "positive", "negative", "type"), pl.String),
    )


@pytest.fixture(scope="module")
def frozen() -> FrozenScorers:
    rows = rows_of([(number % 3, 3 + number % 3, number % 2) for number in range(60)])
    return FrozenScorers.of(
        CORPUS, RowTexts(*(rows[name].to_list() for name in ("positive", "negative", "group", "type")))
    )


edited = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 2)), max_size=40)


@settings(max_examples=examples(25))
@given(batches=st.lists(edited, min_size=1, max_size=3))
def test_all_batches_together_are_within_the_target_in_every_type(
    frozen: FrozenScorers, batches: list[list[tuple[int, int, int]]]
) -> None:
    carried = None
    gaps: dict[str, list[tuple[str, float]]] = {}
    kept = 0
    for number, batch in enumerate(batches):
        rows = rows_of(batch, 100 * number)
        found = refine_appended_against_all(rows, frozen, CORPUS, OPTIONS, carried)
        carried = found.carried
        texts = RowTexts(*(rows[name].to_list() for name in ("positive", "negative", "group", "type")))
        for name, each in frozen.gaps(texts, CORPUS).items():
            stay = found.refinement.kept
            gaps.setdefault(name, []).extend(zip(np.array(texts.types, object)[stay], each[stay], strict=True))
        kept += int(found.refinement.kept.sum())
        assert all(
            bool(reason) != stays for reason, stays in zip(found.refinement.reasons, found.refinement.kept, strict=True)
        )
    for name, values in gaps.items():
        for kind in ("type 0", "type 1"):
            signs = [np.sign(gap) for each, gap in values if each == kind]
            assert abs(sum(signs)) <= max(1.0, 0.1 * len(signs)) + 1e-9, (name, kind)


def test_the_order_of_the_rows_changes_nothing(frozen: FrozenScorers) -> None:
    rows = rows_of([(number % 4, (number + 2) % 6, number % 3) for number in range(50)])
    turned = rows.reverse()
    ways = (
        partial(refine_appended_against_all, frozen=frozen, corpus=CORPUS, options=OPTIONS),
        partial(refine_appended_with_two_scorers, frozen=frozen, corpus=CORPUS, options=RefineOptions(cells=4)),
    )
    for append in ways:
        one, other = (append(each).refinement for each in (rows, turned))
        assert one.reasons == other.reasons[::-1]
        assert 0 < one.kept.sum() < len(rows)


def test_algorithm_1_brings_both_frozen_scorers_to_one_half(frozen: FrozenScorers) -> None:
    rows = rows_of([(number % 6, (number * 5 + 1) % 6, number % 3) for number in range(80)])
    found = refine_appended_with_two_scorers(rows, frozen, CORPUS, RefineOptions(cells=4)).refinement
    assert found.kept.any()
    assert all(attack.after == 0.5 for attack in found.total.attacks.values())


def test_rows_with_equal_texts_are_rejected_as_identical() -> None:
    empty = FrozenScorers.of(CORPUS, None)
    found = refine_appended_against_all(rows_of([(1, 1, 1)]), empty, CORPUS, OPTIONS).refinement
    assert found.reasons == ("identical",)
    assert refine_appended_against_all(rows_of([]), empty, CORPUS, OPTIONS).refinement.reasons == ()
