"""What an evaluation finds: figures of a model, each with its interval and the number of things it was counted on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pairwright.filters.metrics.confidence_intervals import mean_interval
from pairwright.filters.metrics.hard_negative_accuracy import ShareWithInterval

MAX_COLUMNS = 3  # models that a table has room for

Units = npt.NDArray[np.float64]
"""Float64 (2, n), one column for each row of the data: what it adds above and below the line of a figure that is a ratio
of sums (of a mean: its value, and 1); NaN where it does not count."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number.

    Attributes:
        part: of the set that it was measured on, such as ``swap-attribute``; ``all`` where there is but one.
        measure: such as ``accuracy``.
        value: a share in 0-1, or a correlation in -1 to 1.
        low: lower end of the 95% interval.
        high: upper end.
        n: rows, queries or images that it was counted on.
        chance: what guessing gives; None where that is not known.
        better: whether more or less is better.
        percent: whether it is told in percent; a correlation is not.
        units: what it is made of, row by row, the same rows for all models; None where that is not kept.
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
    def rate(  # noqa: PLR0913 - what a figure is made of
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
    def share(  # noqa: PLR0913 - what a figure is made of
        cls, part: str, measure: str, hits: int, n: int, chance: float | None = None, *, better: str = "more"
    ) -> "Metric":
        """Return ``hits`` of ``n`` (at least 1) with the Wilson interval."""
        found = ShareWithInterval.of(hits, n)
        return cls(part, measure, found.value, found.low, found.high, n, chance, better)

    @classmethod
    def mean(  # noqa: PLR0913 - what a figure is made of
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
        """The value as tables show it."""
        return f"{self.value:6.1%}" if self.percent else f"{self.value:6.3f}"

    @property
    def written_interval(self) -> str:
        """The interval as tables show it, in the value's unit without its sign."""
        if self.percent:
            return f"{100 * self.low:.1f} to {100 * self.high:.1f}"
        return f"{self.low:.3f} to {self.high:.3f}"

    @property
    def written_chance(self) -> str:
        """What guessing gives, as tables show it; empty where it is not known."""
        if self.chance is None:
            return ""
        return f"{self.chance:6.1%}" if self.percent else f"{self.chance:6.3f}"

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON."""
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
    """What one task found of one model.

    Attributes:
        figures: in the order in which they are shown.
        counts: what else was counted, by a sentence that tells it: texts cut, images enlarged, rows left out.
        detail: JSON beyond the figures.
    """

    figures: tuple[Metric, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelResult:
    """A model, and what was found of it.

    Attributes:
        model: as the user named it.
        kind: such as ``clip`` or ``focallens-clip``.
        share: of the trained weights, when it lies between two models (WiSE-FT); None otherwise.
        found: by the task.
    """

    model: str
    kind: str
    share: float | None
    found: TaskResult

    @property
    def label(self) -> str:
        """The model's name as tables show it."""
        return self.model if self.share is None else f"{self.model} at {self.share:g}"

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON."""
        return {
            "model": self.model,
            "kind": self.kind,
            "wise_ft": self.share,
            "figures": [figure.as_json() for figure in self.found.figures],
            "counts": dict(self.found.counts),
            **self.found.detail,
        }


def metric_rows(models: Sequence[ModelResult]) -> list[tuple[str, str]]:
    """Return what the models were measured by, (part, measure), each once, in order."""
    return list(dict.fromkeys((figure.part, figure.measure) for model in models for figure in model.found.figures))


def find_metric(model: ModelResult, row: tuple[str, str]) -> Metric | None:
    """Return a model's figure in one of `metric_rows`; None when it has none."""
    return next((one for one in model.found.figures if (one.part, one.measure) == row), None)


def describe_counts(models: Sequence[ModelResult]) -> list[str]:
    """Return what was counted beside the figures, in sentences; once where it is the same for all models."""
    found: dict[str, dict[str, int]] = {}
    for model in models:
        for told, number in model.found.counts.items():
            found.setdefault(told, {})[model.label] = number
    lines: list[str] = []
    for told, numbers in found.items():
        if len(numbers) == len(models) and len(set(numbers.values())) == 1:
            lines.append(f"{next(iter(numbers.values())):,} {told}.")
        else:
            lines += [f"{label}: {number:,} {told}." for label, number in numbers.items()]
    return lines
