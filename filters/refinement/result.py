"""Result of a refinement: which rows are kept, why others are not, and what the attacks reach before and after."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.attacks.accuracy import AttackSummary, RoundResult


@dataclass(frozen=True, slots=True)
class BalancingStep:
    """Numbers of rows under one rule in one stratum, and of those kept."""

    rule: str
    stratum: str
    rows: int
    kept: int


@dataclass(frozen=True, eq=False, kw_only=True)
class RefinementSummary:
    """Numbers of a refinement.

    Attributes:
        total: numbers of rows and accuracy of the attacks.
        by_type: the same for each type.
        ledger: rows and kept rows of each rule of the balancing, in each type.
        rounds: number of rounds of scoring and balancing; Algorithm 1 has one.
        bound: upper bound on the rows of any refinement against these scorers; None if not computed.
        holds: whether the requirements are met; Algorithm 1 has none.
        history: result of each round.
        advice: what the user can do if it does not hold, else empty.
    """

    total: AttackSummary
    by_type: Mapping[str, AttackSummary]
    ledger: tuple[BalancingStep, ...]
    rounds: int = 1
    bound: int | None = None
    holds: bool = True
    history: tuple[RoundResult, ...] = ()
    advice: str = ""

    def describe(self, rejected: Mapping[str, int]) -> dict[str, object]:
        """Return ``in``, ``kept``, ``attacks``, ``by_type``, ``rejected`` (by reason), ``ledger`` and ``rounds``.

        With a bound also ``bound``, ``holds``, ``history`` and ``advice``.
        """
        found = {
            **self.total.as_json(),
            "by_type": {name: each.as_json() for name, each in self.by_type.items()},
            "rejected": dict(sorted(rejected.items())),
            "ledger": [
                {"rule": step.rule, "type": step.stratum, "rows": step.rows, "kept": step.kept} for step in self.ledger
            ],
            "rounds": self.rounds,
        }
        if self.bound is None:
            return found
        history = [asdict(each) for each in self.history]
        return {**found, "bound": self.bound, "holds": self.holds, "history": history, "advice": self.advice}


@dataclass(frozen=True, eq=False, kw_only=True)
class Refinement(RefinementSummary):
    """Result of a refinement, in the order of the rows.

    Attributes:
        kept: bool (n,).
        reasons: of dropped rows, such as ``identical``, ``unscored``, ``unbalanced_cell``; empty for kept rows.
        gaps: frame of ``id`` and one float64 column per scorer, NaN without a score.
    """

    kept: npt.NDArray[np.bool_]
    reasons: tuple[str, ...]
    gaps: pl.DataFrame

    def as_json(self) -> dict[str, object]:
        """Return `describe` of the rejected rows."""
        return self.describe(Counter(filter(None, self.reasons)))


class RefinedParts(Protocol):
    """Result of the plan (`steps.py`) of a method for rows in parts; the verdicts are in its folder."""

    def read_verdicts(self, folder: Path, part: str) -> tuple[pl.DataFrame, Mapping[str, Any]]:
        """Return the verdicts on the rows of a part, and counts of them as JSON.

        The frame has ``id``, ``reason`` (empty for kept rows), and the gap of each scorer.
        """
        ...

    def summarize(self, counted: Sequence[Mapping[str, Any]]) -> dict[str, object]:
        """Return `Refinement.as_json`, given the counts of all parts."""
        ...


def build_reason_ledger(counts: Mapping[tuple[str, str], int]) -> tuple[BalancingStep, ...]:
    """Return one step per type and reason, given the number of rows of each; the rule of kept rows is ``kept``."""
    return tuple(
        BalancingStep(reason or "kept", kind, number, 0 if reason else number)
        for (kind, reason), number in sorted(counts.items())
    )
