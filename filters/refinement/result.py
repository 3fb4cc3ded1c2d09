"""Result of a refinement: which rows are kept, why others are not, and what the attacks reach before and after."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

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


@dataclass(frozen=True, eq=False)
class Refinement:
    """Result of a refinement, in the order of the rows.

    Attributes:
        kept: bool (n,).
        reasons: of dropped rows, such as ``identical``, ``unscored``, ``unbalanced_cell``; empty for kept rows.
        gaps: frame of ``id`` and one float64 column per scorer, NaN without a score.
        total: numbers of rows and accuracy of the attacks.
        by_type: the same for each type.
        ledger: rows and kept rows of each rule of the balancing, in each type.
        rounds: number of rounds of scoring and balancing; Algorithm 1 has one.
        bound: upper bound on the rows of any refinement against these scorers; None if not computed.
        holds: whether the requirements are met; Algorithm 1 has none.
        history: result of each round.
        advice: what the user can do if it does not hold, else empty.
    """

    kept: npt.NDArray[np.bool_]
    reasons: tuple[str, ...]
    gaps: pl.DataFrame
    total: AttackSummary
    by_type: Mapping[str, AttackSummary]
    ledger: tuple[BalancingStep, ...]
    rounds: int = 1
    bound: int | None = None
    holds: bool = True
    history: tuple[RoundResult, ...] = ()
    advice: str = ""

    def as_json(self) -> dict[str, object]:
        """Return ``in``, ``kept``, ``attacks``, ``by_type``, ``rejected`` (by reason), ``ledger`` and ``rounds``."""
        rejected = Counter(filter(None, self.reasons))
        found = describe_refinement(self.total, self.by_type, rejected, self.ledger, self.rounds)
        if self.bound is not None:
            found |= describe_search(self.bound, self.holds, self.history, self.advice)
        return found


def describe_refinement(
    total: AttackSummary,
    by_type: Mapping[str, AttackSummary],
    rejected: Mapping[str, int],
    ledger: Sequence[BalancingStep],
    rounds: int,
) -> dict[str, object]:
    """Return `Refinement.as_json` of its parts."""
    return {
        **total.as_json(),
        "by_type": {name: each.as_json() for name, each in by_type.items()},
        "rejected": dict(sorted(rejected.items())),
        "ledger": [{"rule": step.rule, "type": step.stratum, "rows": step.rows, "kept": step.kept} for step in ledger],
        "rounds": rounds,
    }


def describe_search(bound: int, holds: bool, history: Sequence[RoundResult], advice: str) -> dict[str, object]:  # noqa: FBT001 - as in `Refinement`
    """Return what `Refinement.as_json` adds if there is a bound."""
    return {"bound": bound, "holds": holds, "history": [asdict(each) for each in history], "advice": advice}


def build_reason_ledger(counts: Mapping[tuple[str, str], int]) -> tuple[BalancingStep, ...]:
    """Return one step per type and reason, given the number of rows of each; the rule of kept rows is ``kept``."""
    return tuple(
        BalancingStep(reason or "kept", kind, number, 0 if reason else number)
        for (kind, reason), number in sorted(counts.items())
    )
