"""Paired differences between models on the same rows.

Overlapping intervals of two models do not mean that they are equal: both were measured on the same rows, and rows that
are hard for one are mostly hard for the other. Rows are resampled with replacement, the same ones for both models, and
the interval is the middle 95% of the differences (paired bootstrap; Efron and Tibshirani 1993, chapter 13). The draws
are the same in every run.

Not covered: dependent rows, such as several negatives of one image; their intervals are slightly too narrow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.evaluation.results import Metric, ModelResult, Units, find_metric, metric_rows

BOOTSTRAP_DRAWS = 1000
_CHUNK_VALUES = 1 << 21  # values per chunk


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Difference of a model from the first one in one metric.

    Attributes:
        part: as in `Metric`.
        measure: likewise.
        model: label of the model.
        against: label of the first model.
        value: this model's metric minus the first one's, on the rows that count for both.
        low: lower end of the 95% interval.
        high: upper end.
        n: number of those rows.
        percent: whether it is shown in percentage points; correlations are not.
    """

    part: str
    measure: str
    model: str
    against: str
    value: float
    low: float
    high: float
    n: int
    percent: bool = True

    @property
    def written(self) -> str:
        """Signed value as shown in tables."""
        return f"{100 * self.value:+.1f}" if self.percent else f"{self.value:+.3f}"

    @property
    def written_interval(self) -> str:
        """Interval as shown in tables."""
        scale, digits = (100, 1) if self.percent else (1, 3)
        return f"{scale * self.low:+.{digits}f} to {scale * self.high:+.{digits}f}"

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object; shares are within -1 to 1."""
        return {
            "part": self.part,
            "measure": self.measure,
            "model": self.model,
            "against": self.against,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "n": self.n,
        }


def paired_differences(models: Sequence[ModelResult]) -> list[PairedDifference]:
    """Return the differences of all other models from the first, in the order of `metric_rows`.

    Metrics without row values, or missing for a model, are skipped.
    """
    found = [
        _difference(metric, models[0], other, own)
        for row in metric_rows(models)
        if (metric := find_metric(models[0], row)) is not None
        for other in models[1:]
        if (own := find_metric(other, row)) is not None
    ]
    return [one for one in found if one is not None]


def _difference(first: Metric, against: ModelResult, model: ModelResult, own: Metric) -> PairedDifference | None:
    if first.units is None or own.units is None or first.units.shape != own.units.shape:
        return None
    both = np.concatenate([own.units, first.units])
    both = both[:, ~np.isnan(both).any(axis=0)]
    if not both.shape[1]:
        return None
    drawn = np.concatenate([_ratios(both[:, places].sum(axis=2)) for places in _bootstrap_rows(both.shape[1])])
    low, high = np.percentile(drawn[~np.isnan(drawn)], (2.5, 97.5))
    value = float(_ratios(both.sum(axis=1)))
    return PairedDifference(
        own.part, own.measure, model.model, against.model, value, float(low), float(high), both.shape[1], own.percent
    )


def _ratios(sums: Units) -> npt.NDArray[np.float64]:
    """Return the difference of two ratios of sums, float64 (4, ...): numerator and denominator of this model and of the first."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a draw may miss all weighted rows
        found: npt.NDArray[np.float64] = np.asarray(sums[0] / sums[1] - sums[2] / sums[3])
    return found


def _bootstrap_rows(rows: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield drawn rows, int64 (some draws, rows); the same for the same number of rows."""
    rng = make_numpy_rng("differences", rows)
    block = max(1, _CHUNK_VALUES // rows)
    for start in range(0, BOOTSTRAP_DRAWS, block):
        yield rng.integers(0, rows, (min(block, BOOTSTRAP_DRAWS - start), rows))
