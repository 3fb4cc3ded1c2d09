"""States of relations: the situations that a phrase allows, as bit masks.

A situation is described in six dimensions: position of the subject relative to the object, path, part and side of the
object, posture or motion, and action. A phrase allows some states of each dimension, all of them if its table has an
empty cell. Two phrases exclude each other if they share no state in some dimension.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

DIMENSIONS: Final = ("place", "path", "part", "side", "body", "act")

ACTION_DIMENSIONS: Final = ("body", "act")  # the last dimensions, which do not depend on the object

_WORD: Final = (1 << 64) - 1

States: TypeAlias = tuple[int, ...]  # one bit mask for each of `DIMENSIONS`


class StateSpace:
    """The names of all states of each dimension.

    Args:
        rows: rows of tables with columns named like the dimensions.
    """

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        names: list[dict[str, int]] = [{} for _ in DIMENSIONS]
        for row in rows:
            for dimension, known in zip(DIMENSIONS, names, strict=True):
                cell = row.get(dimension, "")
                for name in () if cell.startswith("!") else cell.split():
                    known.setdefault(name, len(known))
        self._bits = {
            dimension: {name: 1 << bit for name, bit in known.items()}
            for dimension, known in zip(DIMENSIONS, names, strict=True)
        }
        self.every: States = tuple((1 << len(known)) - 1 for known in names)

    def parse(self, row: dict[str, str]) -> States:
        """Return the states of a row; an empty cell allows all, a leading "!" all but those named."""
        return tuple(
            self._cell(dimension, row.get(dimension, ""), every)
            for dimension, every in zip(DIMENSIONS, self.every, strict=True)
        )

    def _cell(self, dimension: str, cell: str, every: int) -> int:
        mask = self.mask(dimension, cell.lstrip("!").split())
        return every & ~mask if cell.startswith("!") else mask or every

    def mask(self, dimension: str, names: Sequence[str]) -> int:
        """Return the bits of some states of a dimension; "*" is all of them."""
        bits = self._bits[dimension]
        return sum(bits.values()) if "*" in names else sum({bits[name] for name in names})

    def groups(self, cell: str) -> tuple[tuple[int, int], ...]:
        """Return dimension and mask of each group of a cell like "place top inside | body roll park"."""
        groups = [group.split() for group in cell.split("|") if group.strip()]
        return tuple((DIMENSIONS.index(name), self.mask(name, states)) for name, *states in groups)


def exclude(one: States, other: States) -> bool:
    """Return whether two phrases share no situation."""
    return not all(a & b for a, b in zip(one, other, strict=True))


def as_words(states: Sequence[States]) -> npt.NDArray[np.uint64]:
    """Return states as machine words, shape (n, dimensions, 2), to compare many at once."""
    words = [[as_word(mask) for mask in each] for each in states]
    return np.array(words, np.uint64).reshape(len(states), len(DIMENSIONS), 2)


def as_word(mask: int) -> npt.NDArray[np.uint64]:
    """Return the bits of one dimension as two machine words, the low ones first."""
    return np.array([mask & _WORD, mask >> 64], np.uint64)
