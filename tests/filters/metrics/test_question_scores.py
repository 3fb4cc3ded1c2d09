"""Measures of questions against their definitions on the matrix of scores."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.filters.metrics.question_scores import class_accuracies, question_measures
from tests.example_counts import examples

matrix = st.lists(st.integers(0, 3), min_size=4, max_size=4)  # few values: many ties


def values(rows: list[dict[str, Any]]) -> dict[str, tuple[float, int, float]]:
    """Return the value, number and chance level of each measure."""
    found = question_measures(pl.DataFrame(rows, infer_schema_length=None))
    return {
        one.name: (float(one.right[one.counted].mean()), int(one.counted.sum()), float(one.chance[one.counted].mean()))
        for one in found
    }


@settings(max_examples=examples(50))
@given(st.lists(matrix, min_size=1, max_size=6))
def test_text_image_and_group_score_are_those_of_winoground(groups: list[list[int]]) -> None:
    rows, text, image = [], [], []
    for number, (c0_i0, c1_i0, c0_i1, c1_i1) in enumerate(groups):
        rows.append({"s_caption": float(c0_i0), "s_negative": float(c1_i0), "group": str(number)})
        rows.append({"s_caption": float(c1_i1), "s_negative": float(c0_i1), "group": str(number)})
        text.append(c0_i0 > c1_i0 and c1_i1 > c0_i1)
        image.append(c0_i0 > c0_i1 and c1_i1 > c1_i0)
    found = values(rows)
    both = [one and two for one, two in zip(text, image, strict=True)]
    for name, hits, chance in (("text", text, 1 / 4), ("image", image, 1 / 4), ("group", both, 1 / 6)):
        assert found[name] == pytest.approx((sum(hits) / len(hits), len(groups), chance))


def test_a_group_that_lost_a_row_is_not_counted() -> None:
    assert values([{"s_caption": 1.0, "s_negative": 0.0, "group": "1"}]) == {}


def test_a_choice_is_right_if_the_caption_beats_all_negatives() -> None:
    rows = [
        {"s_caption": 2.0, "s_negative": negative, "choice": choice}
        for choice, negatives in {"a": (1.0, 0.0, 1.5), "b": (1.0, 2.0, 0.0)}.items()
        for negative in negatives
    ]
    assert values(rows)["choice"] == (0.5, 2, 1 / 4)


def test_pairs_and_sets_count_only_if_complete() -> None:
    rows = [
        {"s_caption": 1.0, "s_negative": float(wrong), "choice": str(number), "pair": pair, "set": set_}
        for number, (pair, set_, wrong) in enumerate(
            [("p", "s", 0), ("p", "s", 0), ("q", "s", 0), ("q", "s", 2), ("r", "t", 0)]
        )
    ]
    found = values(rows)
    assert found["choice"][:2] == (4 / 5, 5)
    assert found["pair"] == (1 / 2, 2, 1 / 4)
    assert found["set"] == (0.0, 1, 1 / 16)


def test_the_class_mean_gives_each_class_the_same_weight() -> None:
    rows = [{"s_caption": 1.0, "s_negative": 0.0, "class": "on"}] * 3 + [
        {"s_caption": 0.0, "s_negative": 1.0, "class": "under"}
    ]
    assert class_accuracies(pl.DataFrame(rows)).tolist() == [1.0, 0.0]
    assert class_accuracies(pl.DataFrame(rows).drop("class")).size == 0
