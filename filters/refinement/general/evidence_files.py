"""Files of row numbers and evidence, which the rounds of the general method map into memory.

`RowNumbers` are those of each row; the evidence of an attack (`attacks/evidence.py`) has a file of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.attacks.evidence import Evidence
from pairwright.filters.attacks.text_features import FactoredDifferences
from pairwright.filters.refinement.part_arrays import map_arrays, map_columns, save_mapped
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

_ROWS = "rows.arrow"


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """Numbers of the rows under attack, each int64 (n,).

    Attributes:
        stratum: place of the stratum, in which the row is balanced, among ``strata``.
        kind: place of the edit type among ``kinds``.
        group: equal for rows of one group; ordered like the names of the groups.
        slot: equal for rows of which at most one may be kept; empty: each row by itself.
        strata: names of the strata.
        kinds: names of the types.
    """

    stratum: IntArray
    kind: IntArray
    group: IntArray
    slot: IntArray
    strata: Sequence[str]
    kinds: Sequence[str]

    @classmethod
    def of(
        cls,
        strata: pl.Series,
        kinds: pl.Series,
        groups: IntArray,
        slots: pl.Series | None = None,
    ) -> Self:
        """Return the numbers of rows with these names of strata, types and slots, and these numbers of groups."""
        stratum, kind = _rank(strata), _rank(kinds)
        slot = np.zeros(0, np.int64) if slots is None else _rank(slots)
        return cls(stratum, kind, groups, slot, _distinct(strata), _distinct(kinds))

    def save(self, folder: Path) -> Path:
        """Write the numbers."""
        names = {name: pl.Series(getattr(self, name), dtype=pl.String) for name in ("strata", "kinds")}
        arrays = {name: getattr(self, name) for name in ("stratum", "kind", "group", "slot")}
        return save_mapped(folder / _ROWS, arrays | names)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return what `save` wrote; the arrays stay on disk."""
        column = map_columns(folder / _ROWS)
        stratum, kind, group, slot = (column[name].to_numpy() for name in ("stratum", "kind", "group", "slot"))
        return cls(stratum, kind, group, slot, column["strata"].to_pylist(), column["kinds"].to_pylist())


def _distinct(names: pl.Series) -> list[str]:
    return names.unique().sort().to_list()


def _rank(names: pl.Series) -> IntArray:
    return names.rank("dense").to_numpy().astype(np.int64) - 1


def save_evidence(folder: Path, evidence: Evidence) -> Path:
    """Write the evidence of one attack."""
    gaps = np.zeros(0) if evidence.gaps is None else evidence.gaps
    flags = np.array([evidence.gaps is not None, evidence.balance_only, evidence.within_goals], np.int8)
    factors: dict[str, npt.NDArray[Any]] = {} if evidence.factors is None else _store_factors(evidence.factors)
    extra: dict[str, npt.NDArray[Any]] = {"gaps": gaps, "flags": flags, "cost": np.array([evidence.cost])}
    return save_mapped(_path(folder, evidence.name), store_matrix(evidence.features) | factors | extra)


def load_evidence(folder: Path, name: str) -> Evidence:
    """Return what `save_evidence` wrote; the arrays stay on disk."""
    array = map_arrays(_path(folder, name))
    has_gaps, balance_only, within_goals = array["flags"].astype(bool).tolist()
    return Evidence(
        name,
        restore_matrix(array),
        array["gaps"] if has_gaps else None,
        float(array["cost"][0]),
        balance_only=balance_only,
        within_goals=within_goals,
        factors=_restore_factors(array) if "left-data" in array else None,
    )


def _store_factors(factors: FactoredDifferences) -> dict[str, npt.NDArray[Any]]:
    return {
        f"{side}-{name}": array
        for side in ("left", "right")
        for name, array in store_matrix(getattr(factors, side)).items()
    }


def _restore_factors(arrays: dict[str, npt.NDArray[Any]]) -> FactoredDifferences:
    left, right = (
        restore_matrix({name: arrays[f"{side}-{name}"] for name in ("data", "indices", "indptr", "shape")})
        for side in ("left", "right")
    )
    return FactoredDifferences(left, right)


def load_gaps(folder: Path, name: str) -> FloatArray:
    """Return the gaps of a fixed scorer, float64 (n,), NaN without a score; they stay on disk."""
    gaps = load_evidence(folder, name).gaps
    if gaps is None:
        raise ValueError(f"{name} is no fixed scorer")
    return gaps


def store_matrix(matrix: "Differences") -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a sparse matrix by name."""
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape, np.int64),
    }


def restore_matrix(arrays: dict[str, npt.NDArray[Any]]) -> "Differences":
    """Return the matrix of `store_matrix`, without a copy."""
    from scipy.sparse import csr_matrix

    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    return csr_matrix(parts, shape=tuple(arrays["shape"].tolist()), copy=False)


def _path(folder: Path, name: str) -> Path:
    return folder / f"evidence-{name}.arrow"
