"""States of relations: the situations that a phrase allows, as boolean arrays.

A situation is described in six dimensions: position of the subject relative to the object, path, part and side of the
object, posture or motion, and action. A phrase allows some states of each dimension, all of them if its table has an
empty cell. Two phrases exclude each other if they share no state in some dimension. The arrays have one entry for each
state of all dimensions in the last axis; those of several phrases are rows.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

DIMENSIONS: Final = ("place", "path", "part", "side", "body", "act")
ACTION_DIMENSIONS: Final = slice(4, 6)

States: TypeAlias = npt.NDArray[np.bool_]


class StateGroup(NamedTuple):
    """Some states of one dimension: where the dimension is, and which of its states."""

    dimension: slice
    mask: States


class StateSpace:
    """The names of all states of each dimension.

    Args:
        rows: rows of tables with columns named like the dimensions.
    """

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        names: dict[str, dict[str, None]] = {dimension: {} for dimension in DIMENSIONS}
        for row in rows:
            for dimension, known in names.items():
                cell = row.get(dimension, "")
                known.update(dict.fromkeys(() if cell.startswith("!") else cell.split()))
        self._names = {dimension: [*known] for dimension, known in names.items()}
        self._sizes = [len(known) for known in self._names.values()]
        self._starts = np.cumsum([0, *self._sizes[:-1]])
        self.every: States = np.ones(sum(self._sizes), bool)

    def parse(self, row: dict[str, str]) -> States:
        """Return the states of a row; an empty cell allows all, a leading "!" all but those named."""
        return np.concatenate([self._cell(dimension, row.get(dimension, "")) for dimension in DIMENSIONS])

    def _cell(self, dimension: str, cell: str) -> States:
        mask = self._mask(dimension, cell.lstrip("!").split())
        return ~mask if cell.startswith("!") or not cell else mask

    def _mask(self, dimension: str, names: Sequence[str]) -> States:
        """Return which states of a dimension are among some names; "*" is all of them."""
        known = self._names[dimension]
        if unknown := {*names} - {*known, "*"}:
            raise KeyError(*unknown)
        return np.array(["*" in names or name in names for name in known], bool)

    def groups(self, cell: str) -> tuple[StateGroup, ...]:
        """Return the groups of a cell like "place top inside | body roll park"."""
        groups = [group.split() for group in cell.split("|") if group.strip()]
        return tuple(StateGroup(self._dimension(name), self._mask(name, states)) for name, *states in groups)

    def _dimension(self, name: str) -> slice:
        start = int(self._starts[DIMENSIONS.index(name)])
        return slice(start, start + len(self._names[name]))

    def shared(self, one: States, other: States) -> npt.NDArray[np.bool_]:
        """Return for each dimension whether phrases share a state, shape (..., dimensions)."""
        return np.logical_or.reduceat(one & other, self._starts, axis=-1)

    def restricted(self, states: States, verb: States) -> States:
        """Return the states that a preposition and its verb both allow; where they contradict each other those of the preposition."""
        agreed = np.repeat(self.shared(states, verb), self._sizes)
        return np.where(agreed, states & verb, states)
