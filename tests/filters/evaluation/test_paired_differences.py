"""Paired differences of models with intervals."""

import numpy as np
import pytest

from pairwright.filters.evaluation.paired_differences import paired_differences
from pairwright.filters.evaluation.results import Metric, ModelResult, TaskResult


def models(*metrics: Metric) -> list[ModelResult]:
    return [ModelResult(f"m{n}", "clip", TaskResult((metric,))) for n, metric in enumerate(metrics)]


def rates(seed: int, rows: int = 400) -> tuple[Metric, Metric, Metric]:
    """Return a model, one that is right a little more often on the same rows, and one of other rows' luck."""
    rng = np.random.default_rng(seed)
    hard = rng.random(rows)
    plain, better = hard < 0.5, hard < 0.54
    return (
        Metric.rate("all", "accuracy", plain),
        Metric.rate("all", "accuracy", better),
        Metric.rate("all", "accuracy", rng.random(rows) < 0.54),
    )


def test_on_the_same_rows_a_small_lead_shows_where_both_intervals_overlap() -> None:
    plain, better, apart = rates(0)
    one, two = paired_differences(models(plain, better, apart))
    assert one.value == pytest.approx(better.value - plain.value)
    assert plain.high > better.low
    assert 0 < one.low < one.value < one.high
    assert two.high - two.low > 2 * (one.high - one.low)  # rows whose luck has nothing in common


def test_its_interval_is_that_of_the_mean_of_the_rows_differences() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.3, 0.1, 500), rng.normal(0.35, 0.1, 500)
    (found,) = paired_differences(models(Metric.mean("c", "mAP", first), Metric.mean("c", "mAP", second)))
    apart = second - first
    half = 1.96 * apart.std(ddof=1) / np.sqrt(500)
    assert found.value == pytest.approx(apart.mean())
    assert found.low == pytest.approx(apart.mean() - half, abs=half / 5)
    assert found.high == pytest.approx(apart.mean() + half, abs=half / 5)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    held = 0
    for seed in range(100):
        plain, better, _ = rates(seed, 300)
        (found,) = paired_differences(models(plain, better))
        held += found.low <= 0.04 <= found.high
    assert 85 <= held <= 100


def test_rows_that_do_not_count_for_one_count_for_neither() -> None:
    right = np.array([True, False, True, True])
    some = np.array([True, True, False, True])
    (found,) = paired_differences(models(Metric.rate("a", "x", right), Metric.rate("a", "x", right, counted=some)))
    assert (found.value, found.low, found.high, found.n) == (0, 0, 0, 3)


def test_ratios_of_sums_are_drawn_as_such() -> None:
    weights = np.array([0.5, 0.25, 0.25])
    metrics = [
        Metric("all", "mean of classes", value, 0, 1, 3, units=np.stack([np.array(right) * weights, weights]))
        for value, right in ((0.5, [1, 0, 0]), (0.25, [0, 1, 0]))
    ]
    (found,) = paired_differences(models(*metrics))
    assert found.value == pytest.approx(-0.25)
    assert found.low == -1
    assert found.high == 1


def test_it_is_the_same_in_every_run_and_absent_where_rows_are_not_told() -> None:
    plain, better, _ = rates(2)
    assert paired_differences(models(plain, better)) == paired_differences(models(plain, better))
    assert paired_differences(models(Metric.share("all", "accuracy", 1, 2), better)) == []
    assert paired_differences(models(plain)) == []
    assert paired_differences(models(plain, Metric.rate("all", "accuracy", np.ones(3, dtype=bool)))) == []
