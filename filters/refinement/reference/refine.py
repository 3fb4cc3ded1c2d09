"""Reference method of refinement: SugarCrepe's Algorithm 1 over two text-only scorers.

A *row* is a positive text and its hard negative, with their group (image) and the edit type. Two text-only scorers give
each row two gaps (`text_scorers.py`), and the largest subset is kept that is balanced under Algorithm 1
(`grid_balancing.py`), within each type unless requested otherwise. The result has a reason for every dropped row, the
ledger of the rules, and the attack accuracies before and after.

It is a pure function of the set of rows, the corpus and the options: the order of the rows changes nothing. It does not
protect against a third scorer, and it cannot balance rows that all favour one side (they are dropped).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.progress import track
from pairwright.filters.attacks.accuracy import summarize_attacks, summarize_attacks_by_type
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.attacks.registry import build_paper_scorers
from pairwright.filters.refinement.reference.grid_balancing import REASONS as BALANCE_REASONS
from pairwright.filters.refinement.reference.grid_balancing import balance_strata
from pairwright.filters.refinement.result import Refinement
from pairwright.filters.refinement.rows import ROW_COLUMNS, check_columns, find_equal_texts, hash_ids, refuse_repeated
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, encode_names

REASONS = (*BALANCE_REASONS, "identical")


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


def _check_scorers(rows: pl.DataFrame, scorers: Sequence[GapScorer]) -> None:
    check_columns(rows)
    if len({scorer.name for scorer in scorers}) != 2 or len(scorers) != 2:
        named = ", ".join(scorer.name for scorer in scorers) or "none"
        raise UsageError(f"refinement balances two scorers of different names; got: {named}")
