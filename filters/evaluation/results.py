"""Evaluation results: metrics of a model with intervals and counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pairwright.filters.metrics.confidence_intervals import mean_interval
from pairwright.filters.metrics.hard_negative_accuracy import ShareWithInterval

MAX_COLUMNS = 3  # models per table row

Units = npt.NDArray[np.float64]
"""Float64 (2, n), one column per row of the data: its terms in the numerator and denominator of a ratio of sums (of a
mean: its value, and 1); NaN if it does not count."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        part: subset of the data, such as ``swap-attribute``; ``all`` for all of it.
        measure: such as ``accuracy``.
        value: a share in 0-1, or a correlation in -1 to 1.
        low: lower end of the 95% interval.
        high: upper end.
        n: number of rows, queries or images.
        chance: chance level; None if unknown.
        better: whether more or less is better.
        percent: whether it is shown in percent; correlations are not.
        units: values per row, the same rows for all models; None if not kept.
    """

    part: str
    measure: str
    value: float
    low: float
    high: float
    n: int
    chance: float | None = None
    better: str = "more"
    percent: bool = True
    units: Units | None = field(default=None, compare=False, repr=False)

    @classmethod
    def rate(  # noqa: PLR0913 - fields of a metric
        cls,
        part: str,
        measure: str,
        right: npt.NDArray[np.bool_],
        chance: float | None = None,
        *,
        counted: npt.NDArray[np.bool_] | None = None,
        better: str = "more",
    ) -> "Metric":
        """Return the share of ``right``, bool (n,), among the rows that are ``counted`` (all; at least 1)."""
        counted = np.ones(len(right), dtype=bool) if counted is None else counted
        found = cls.share(part, measure, int(right[counted].sum()), int(counted.sum()), chance, better=better)
        return replace(found, units=mean_units(right, counted))

    @classmethod
    def share(  # noqa: PLR0913 - fields of a metric
        cls, part: str, measure: str, hits: int, n: int, chance: float | None = None, *, better: str = "more"
    ) -> "Metric":
        """Return ``hits`` of ``n`` (at least 1) with the Wilson interval."""
        found = ShareWithInterval.of(hits, n)
        return cls(part, measure, found.value, found.low, found.high, n, chance, better)

    @classmethod
    def mean(  # noqa: PLR0913 - fields of a metric
        cls,
        part: str,
        measure: str,
        values: npt.NDArray[np.float64],
        chance: float | None = None,
        *,
        percent: bool = True,
        counted: npt.NDArray[np.bool_] | None = None,
    ) -> "Metric":
        """Return the mean of ``values``, float64 (n,), over the rows that are ``counted`` (all; at least 1).

        Shares lie in 0-1, correlations in -1 to 1, and so does the interval.
        """
        units = mean_units(values, np.ones(len(values), dtype=bool) if counted is None else counted)
        values = values if counted is None else values[counted]
        low, high = mean_interval(values)
        low, high = max(0.0 if percent else -1.0, low), min(1.0, high)
        return cls(part, measure, float(values.mean()), low, high, len(values), chance, percent=percent, units=units)

    @property
    def written(self) -> str:
        """Value as shown in tables."""
        return f"{self.value:6.1%}" if self.percent else f"{self.value:6.3f}"

    @property
    def written_interval(self) -> str:
        """Interval as shown in tables, without the percent sign."""
        if self.percent:
            return f"{100 * self.low:.1f} to {100 * self.high:.1f}"
        return f"{self.low:.3f} to {self.high:.3f}"

    @property
    def written_chance(self) -> str:
        """Chance level as shown in tables; empty if unknown."""
        if self.chance is None:
            return ""
        return f"{self.chance:6.1%}" if self.percent else f"{self.chance:6.3f}"

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "part": self.part,
            "measure": self.measure,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "chance": self.chance,
            "better": self.better,
        }


def mean_units(values: npt.NDArray[Any], counted: npt.NDArray[np.bool_]) -> Units:
    """Return the units of a mean over the rows of ``values``, (n,), that are counted, bool (n,)."""
    return np.where(counted, np.stack([values.astype(np.float64), np.ones(len(values))]), np.nan)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result of a task for one model.

    Attributes:
        metrics: metrics in display order.
        counts: other counts by a sentence: truncated texts, enlarged images, skipped rows.
        detail: further JSON.
    """

    metrics: tuple[Metric, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelResult:
    """A model and its result.

    Attributes:
        model: as the user named it.
        kind: such as ``clip`` or ``focallens-clip``.
        found: result of the task.
    """

    model: str
    kind: str
    found: TaskResult

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "model": self.model,
            "kind": self.kind,
            "figures": [metric.as_json() for metric in self.found.metrics],
            "counts": dict(self.found.counts),
            **self.found.detail,
        }


def metric_rows(models: Sequence[ModelResult]) -> list[tuple[str, str]]:
    """Return the distinct (part, measure) of all models, in order."""
    return list(dict.fromkeys((metric.part, metric.measure) for model in models for metric in model.found.metrics))


def find_metric(model: ModelResult, row: tuple[str, str]) -> Metric | None:
    """Return a model's metric for one of `metric_rows`; None without one."""
    return next((one for one in model.found.metrics if (one.part, one.measure) == row), None)


def describe_counts(models: Sequence[ModelResult]) -> list[str]:
    """Return the counts as lines, ``Texts were cut: 2.``; once if equal for all models."""
    found: dict[str, dict[str, int]] = {}
    for model in models:
        for sentence, number in model.found.counts.items():
            found.setdefault(sentence, {})[model.model] = number
    lines: list[str] = []
    for sentence, numbers in found.items():
        if len(numbers) == len(models) and len(set(numbers.values())) == 1:
            lines.append(f"{sentence[0].upper()}{sentence[1:]}: {next(iter(numbers.values())):,}.")
        else:
            lines += [f"{label}: {sentence}: {number:,}." for label, number in numbers.items()]
    return lines
