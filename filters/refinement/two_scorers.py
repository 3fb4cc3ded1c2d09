"""Adversarial refinement against two text-only scorers.

A *row* is a positive text and its hard negative, with their group (image) and the edit type. Two text-only scorers give
each row two gaps (`text_scorers.py`), and the largest subset is kept that is balanced under Algorithm 1
(`grid_balancing.py`), within each type unless requested otherwise. The result has a reason for every dropped row, the
ledger of the rules, and the attack accuracies before and after.

It is a pure function of the set of rows, the corpus and the options: the order of the rows changes nothing. It does not
protect against a third scorer, and it cannot balance rows that all favour one side (they are dropped).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.progress import track
from pairwright.filters.attacks.accuracy import AttackSummary, RoundResult, summarize_attacks, summarize_attacks_by_type
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.attacks.registry import build_paper_scorers
from pairwright.filters.refinement.grid_balancing import REASONS as BALANCE_REASONS
from pairwright.filters.refinement.grid_balancing import (
    BalancingStep,
    balance_strata,
    hash_ids,
    refuse_repeated,
)
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, encode_names, normalize_text

REASONS = (*BALANCE_REASONS, "identical")
ROW_COLUMNS = ("id", "positive", "negative", "group", "type")


@dataclass(frozen=True, slots=True)
class RefineOptions:
    """Options of Algorithm 1.

    Attributes:
        cells: K, cells along each axis of the grid; None: `grid_balancing.grid_size`; the paper has 100.
        by_type: balance each edit type by itself; False is the paper's rule.
        seed: of the folds and of the sample.
        folds: of the cross-fitting, at most 31.
    """

    cells: int | None = None
    by_type: bool = True
    seed: int = 0
    folds: int = 5


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


def refine_rows(
    rows: pl.DataFrame,
    corpus: CaptionCorpus | None = None,
    options: RefineOptions | None = None,
    scorers: Sequence[GapScorer] | None = None,
) -> Refinement:
    """Refine rows against two text-only scorers.

    Args:
        rows: string columns ``id`` (unique), ``group``, ``positive``, ``negative``, ``type``.
        corpus: captions to train the scorers on, with their groups; without, the positives of the rows.
        options: see `RefineOptions`.
        scorers: two scorers; by default grammar and plausibility trained on ``corpus``.

    Raises:
        UsageError: a column is missing, ids repeat, there are not two scorers, or they score outside 0-1.
        InputError: every caption of a corpus from elsewhere is under test.
    """
    options = options or RefineOptions()
    scorers = build_paper_scorers(corpus, options.folds) if scorers is None else scorers
    _check_scorers(rows, scorers)
    positives, negatives, groups, types = (rows[name].to_list() for name in ROW_COLUMNS[1:])
    gaps = {
        scorer.name: scorer.gaps(positives, negatives, groups, options.seed)
        for scorer in track(scorers, "scoring", unit="scorers")
    }
    same = find_equal_texts(RowTexts(positives, negatives, groups, types))
    return refine_scored_rows(rows["id"], types, gaps, same, options)


def refine_scored_rows(
    ids: pl.Series,
    types: Sequence[str],
    gaps: Mapping[str, FloatArray],
    same: npt.NDArray[np.bool_],
    options: RefineOptions,
) -> Refinement:
    """Refine rows with known gaps.

    Args:
        ids: unique id of each row.
        types: type of each row.
        gaps: of two scorers, by their names, each float64 (n,).
        same: bool (n,), whether both texts of a row are equal except for case and spacing.
        options: see `RefineOptions`.

    Raises:
        UsageError: ids repeat, or a gap is outside -1..1.
    """
    hashes = hash_ids(ids)
    refuse_repeated(hashes, ids.__getitem__)
    names, kind = encode_names(types)
    stratum = np.where(same, -1, kind if options.by_type else 0).astype(np.int32)
    first, second = gaps.values()
    balanced = balance_strata(
        (first, second), hashes, names if options.by_type else [""], stratum, cells=options.cells, seed=options.seed
    )
    codes = np.where(same, np.uint8(REASONS.index("identical")), balanced.codes)
    kept = codes == 0
    return Refinement(
        kept=kept,
        reasons=tuple(REASONS[code] for code in codes.tolist()),
        gaps=pl.DataFrame({"id": ids, **gaps}),
        total=summarize_attacks(gaps, kept),
        by_type=summarize_attacks_by_type(names, kind, gaps, kept),
        ledger=balanced.ledger,
    )


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


def find_equal_texts(rows: RowTexts) -> npt.NDArray[np.bool_]:
    """Return whether both texts of a row are equal except for case and spacing, bool (n,)."""
    pairs = zip(rows.positives, rows.negatives, strict=True)
    same = (normalize_text(positive) == normalize_text(negative) for positive, negative in pairs)
    return np.fromiter(same, np.bool_, len(rows.positives))


def check_rows(rows: pl.DataFrame) -> None:
    """Check that rows can be refined.

    Raises:
        UsageError: a column is missing or not of strings, or ids repeat.
    """
    check_columns(rows)
    if rows["id"].n_unique() < len(rows):
        twice = rows["id"].filter(rows["id"].is_duplicated())[0]
        raise UsageError(f"row id {twice!r} occurs twice; ids must be unique")


def check_columns(rows: pl.DataFrame) -> None:
    """Check the columns of rows.

    Raises:
        UsageError: a column is missing or not of strings.
    """
    bad = [name for name in ROW_COLUMNS if rows.schema.get(name) != pl.String or rows[name].has_nulls()]
    if bad:
        raise UsageError(f"refinement needs columns of strings without nulls; wrong or missing: {', '.join(bad)}")


def _check_scorers(rows: pl.DataFrame, scorers: Sequence[GapScorer]) -> None:
    check_rows(rows)
    if len({scorer.name for scorer in scorers}) != 2 or len(scorers) != 2:
        named = ", ".join(scorer.name for scorer in scorers) or "none"
        raise UsageError(f"refinement balances two scorers of different names; got: {named}")
