"""Algorithm 1 (`grid_balancing.py`) for rows in parts: which rows of each cell are kept, decided by counts of cells.

1. `count_rows`: the rows of a part in each stratum and fold; their sums give the size of each grid (`choose_grids`).
2. `list_cells`: the rows of each cell of a part, by their place in the random order of the rows (`draw_order`).
3. `limit_rows`: over all parts, the last row of each cell that is kept. Of the cells that keep some of their rows only,
   it holds the places of all rows, 8 bytes each, in an array on disk; of others their number.
4. `BalancedParts`: the decision on the rows of a part, and the sum of what it counted.

The result is that of `refine.refine_scored_rows`, as long as no two rows of a cell have ids with equal hashes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.attacks.accuracy import AttackChange, AttackSummary, count_lead, fold_accuracy
from pairwright.filters.refinement.part_arrays import (
    Array,
    map_array,
    map_arrays,
    map_columns,
    read_strings,
    save_mapped,
    scratch_array,
)
from pairwright.filters.refinement.reference.grid_balancing import (
    CELL_BITS,
    STEPS,
    choose_grid_size,
    draw_order,
    limit_cells,
    place_in_cells,
)
from pairwright.filters.refinement.reference.language_models import GRAMMAR, PLAUSIBILITY, folds_path, texts_path
from pairwright.filters.refinement.reference.refine import REASONS, RefineOptions
from pairwright.filters.refinement.result import BalancingStep, RefinementSummary
from pairwright.filters.refinement.rows import Hashes
from pairwright.filters.refinement.steps import StepResult
from pairwright.filters.scorers.shared_texts import sum_counts
from pairwright.generators.language.vocabulary import IntArray

SCORERS: Final = (GRAMMAR, PLAUSIBILITY)
Grids = Mapping[str, int]
"""Cells per axis of the grid of each stratum."""
RowCounts = Mapping[str, Sequence[int]]
"""Rows with different texts in each fold, by type."""
VerdictCounts = Mapping[str, Any]
"""Rows by type, reason and rule; JSON."""


def count_rows(folder: Path, part: str) -> RowCounts:
    """Return the rows of a part whose texts differ."""
    rows = map_arrays(texts_path(folder, part), ("positive", "negative", "row_type"))
    folds = map_arrays(folds_path(folder, part), ["row_fold"])["row_fold"]
    differ = rows["positive"] != rows["negative"]
    return {
        name: np.bincount(folds[differ & (rows["row_type"] == number)]).tolist()
        for number, name in enumerate(map_columns(texts_path(folder, part))["types"].to_pylist())
    }


def choose_grids(counted: Iterable[RowCounts], fitted: Sequence[int], options: RefineOptions) -> Grids:
    """Return the grids for the rows of all parts, of which those in the folds ``fitted`` get scores."""
    scored: dict[str, int] = {} if options.by_type else {"": 0}
    for counts in counted:
        for kind, by_fold in counts.items():
            stratum = kind if options.by_type else ""
            scored[stratum] = scored.get(stratum, 0) + sum(by_fold[fold] for fold in fitted if fold < len(by_fold))
    return {name: options.cells or choose_grid_size(scored[name]) for name in sorted(scored)}


@dataclass(frozen=True, eq=False)
class _PlacedPart:
    # Rows of a part: the number and name of their type and stratum, rule, cell in its stratum, place in the random order.
    types: Sequence[str]
    kinds: npt.NDArray[np.int32]
    strata: Sequence[str]
    same: npt.NDArray[np.bool_]
    rules: IntArray
    cells: IntArray
    drawn: Hashes

    @property
    def balanced(self) -> npt.NDArray[np.bool_]:
        """The rows with scores and different texts, bool (n,)."""
        return np.asarray(~self.same & (self.rules > 0))


def _place_part(folder: Path, part: str, grids: Grids, options: RefineOptions) -> _PlacedPart:
    rows = map_arrays(texts_path(folder, part), ("positive", "negative", "row_type", "id_hashes"))
    types = map_columns(texts_path(folder, part))["types"].to_pylist()
    gaps, kinds = map_array(folder, f"gaps-{part}"), rows["row_type"]
    rules, cells = np.zeros(len(kinds), np.int64), np.zeros(len(kinds), np.int64)
    numbers = {name: number for number, name in enumerate(grids)}
    strata = types if options.by_type else [""] * len(types)
    for kind, stratum in enumerate(strata):
        own = np.flatnonzero(kinds == kind)
        placed = place_in_cells((gaps[own, 0], gaps[own, 1]), grids[stratum])
        rules[own], cells[own] = placed.rule, placed.cells | numbers[stratum] << CELL_BITS
    same = rows["positive"] == rows["negative"]
    return _PlacedPart(types, kinds, strata, same, rules, cells, draw_order(rows["id_hashes"], options.seed))


def list_cells(folder: Path, part: str, grids: Grids, options: RefineOptions) -> Path:
    """Store the rows of a part by cell, those of a cell in random order; return the file."""
    placed = _place_part(folder, part, grids, options)
    cells, drawn = placed.cells[placed.balanced], placed.drawn[placed.balanced]
    order = np.lexsort((drawn, cells))
    distinct, sizes = np.unique(cells, return_counts=True)
    return save_mapped(_cells_path(folder, part), {"cells": distinct, "sizes": sizes, "drawn": drawn[order]})


def limit_rows(folder: Path, parts: Sequence[str]) -> StepResult:
    """Store the cells that keep some of their rows only: how many, and the place of the last."""
    listed = (map_arrays(_cells_path(folder, part)) for part in parts)
    cells, sizes = sum_counts((each["cells"], each["sizes"]) for each in listed)
    kept = limit_cells(cells, sizes)
    cut = np.flatnonzero((kept > 0) & (kept < sizes))
    last = np.zeros(len(cells), np.uint64)
    ends = np.cumsum(sizes[cut])
    with scratch_array(folder, np.uint64, int(sizes[cut].sum())) as drawn:
        _collect_drawn(folder, parts, cells[cut], ends - sizes[cut], drawn)
        for cell, end in zip(cut.tolist(), ends.tolist(), strict=True):
            rows = drawn[end - sizes[cell] : end]
            rows.partition(kept[cell] - 1)
            last[cell] = rows[kept[cell] - 1]
    limited = kept < sizes
    limits = {"cells": cells[limited], "kept": kept[limited], "last": last[limited]}
    return [save_mapped(_limits_path(folder), limits)], {}


def _collect_drawn(folder: Path, parts: Sequence[str], cells: IntArray, starts: IntArray, into: Array) -> None:
    """Write the places of the rows of some cells, ascending, into an array, each cell's from its start on."""
    free = starts.copy()
    for part in parts if len(cells) else ():
        own = map_arrays(_cells_path(folder, part))
        place = np.minimum(np.searchsorted(cells, own["cells"]), len(cells) - 1)
        wanted = cells[place] == own["cells"]
        place, sizes = place[wanted], own["sizes"][wanted]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        into[np.repeat(free[place], sizes) + within] = own["drawn"][np.repeat(wanted, own["sizes"])]
        free[place] += sizes


def _count_verdicts(placed: _PlacedPart, gaps: Mapping[str, Array], codes: IntArray) -> dict[str, Any]:
    kept = codes == 0
    rejected = {reason: int(np.count_nonzero(codes == code)) for code, reason in enumerate(REASONS) if code}
    types: dict[str, Any] = {}
    ledger: dict[str, Any] = {}
    for number, (name, stratum) in enumerate(zip(placed.types, placed.strata, strict=True)):
        own = placed.kinds == number
        leads = {
            scorer: {"before": count_lead(gap[own]), "after": count_lead(gap[own & kept])}
            for scorer, gap in gaps.items()
        }
        types[name] = {"rows": int(own.sum()), "kept": int((own & kept).sum()), "leads": leads}
        steps = {
            step: {
                "rows": int((own & ~placed.same & (placed.rules == rule)).sum()),
                "kept": int((own & kept & (placed.rules == rule)).sum()),
            }
            for rule, step in enumerate(STEPS)
        }
        ledger[stratum] = _add(ledger.get(stratum), steps)
    return {"types": types, "rejected": rejected, "ledger": ledger}


@dataclass(frozen=True)
class BalancedParts:
    """The result of a plan (`result.RefinedParts`).

    Attributes:
        grids: of the rows of all parts.
        options: of the refinement.
    """

    grids: Grids
    options: RefineOptions

    def read_verdicts(self, folder: Path, part: str) -> tuple[pl.DataFrame, VerdictCounts]:
        """Return the verdicts on the rows of a part."""
        placed, limits = _place_part(folder, part, self.grids, self.options), map_arrays(_limits_path(folder))
        keep = placed.balanced
        if len(limits["cells"]):
            place = np.minimum(np.searchsorted(limits["cells"], placed.cells), len(limits["cells"]) - 1)
            limited = limits["cells"][place] == placed.cells
            keep &= ~limited | ((limits["kept"][place] > 0) & (placed.drawn <= limits["last"][place]))
        unbalanced = np.where(placed.rules > 0, REASONS.index("unbalanced_cell"), REASONS.index("unscored"))
        codes = np.where(placed.same, REASONS.index("identical"), np.where(keep, 0, unbalanced))
        gaps = map_array(folder, f"gaps-{part}")
        columns = {name: gaps[:, column] for column, name in enumerate(SCORERS)}
        reasons = pl.Series(REASONS, dtype=pl.String).gather(codes)
        frame = pl.DataFrame(
            {"id": read_strings(map_columns(texts_path(folder, part))["ids"]), **columns, "reason": reasons}
        )
        return frame, _count_verdicts(placed, columns, codes)

    def summarize(self, counted: Sequence[VerdictCounts]) -> dict[str, object]:
        """Return `result.Refinement.as_json` of the verdicts on all parts."""
        counts: dict[str, Any] = {"types": {}, "rejected": {}, "ledger": {}}
        for each in counted:
            counts = _add(counts, each)
        total: dict[str, Any] = {"rows": 0, "kept": 0, "leads": {name: {"before": 0, "after": 0} for name in SCORERS}}
        for each in counts["types"].values():
            total = _add(total, each)
        ledger = tuple(
            BalancingStep(step, stratum, **counts["ledger"][stratum][step])
            for stratum in sorted(counts["ledger"])
            for step in STEPS
            if counts["ledger"][stratum][step]["rows"]
        )
        by_type = {name: _summarize(counts["types"][name]) for name in sorted(counts["types"])}
        rejected = {reason: number for reason, number in counts["rejected"].items() if number}
        return RefinementSummary(total=_summarize(total), by_type=by_type, ledger=ledger).describe(rejected)


def _summarize(counts: Mapping[str, Any]) -> AttackSummary:
    rows, kept = counts["rows"], counts["kept"]
    attacks = {
        name: AttackChange(fold_accuracy(lead["before"], rows), fold_accuracy(lead["after"], kept))
        for name, lead in counts["leads"].items()
    }
    return AttackSummary(rows, kept, attacks)


def _add(one: Any, other: Any) -> Any:
    """Return the sum of nested counts, of which one may be None."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Mapping):
        return {name: _add(one.get(name), other.get(name)) for name in [*one, *(set(other) - set(one))]}
    return one + other


def _cells_path(folder: Path, part: str) -> Path:
    return folder / f"cells-{part}.arrow"


def _limits_path(folder: Path) -> Path:
    return folder / "limits.arrow"
