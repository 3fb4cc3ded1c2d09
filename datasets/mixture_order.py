"""Rows put into an order that is known beforehand, on disk: memory is one drawer, whatever the number of rows.

Rows come as bytes with their rank. Each goes into the drawer (a file) of its stretch of ranks; at the end one drawer
after another is read, sorted and given out. Drawers hold about `DRAWER` bytes; there are at most `DRAWERS` of them, so
beyond 8 GiB of rows they grow.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

DRAWER = 32 * 2**20
DRAWERS = 256
_DIGITS = 12


@dataclass(frozen=True)
class Drawers:
    """Takes rows in any order and gives them back in that of their ranks."""

    files: Sequence[BinaryIO]
    ranks_each: int

    def put(self, rank: int, row: bytes) -> None:
        """Put a row, which holds no line end, at its rank (from 0)."""
        self.files[rank // self.ranks_each].write(b"%0*d%b\n" % (_DIGITS, rank, row))

    def rows(self) -> Iterator[bytes]:
        """Yield all rows by rank."""
        for file in self.files:
            file.seek(0)
            for line in sorted(file):
                yield line[_DIGITS:-1]


@contextmanager
def drawers(beside: Path, rows: int, size: int) -> Iterator[Drawers]:
    """Give drawers for ``rows`` rows of ``size`` bytes in all (an estimate), in a hidden folder beside a file.

    The folder is removed at the end.
    """
    number = max(1, min(DRAWERS, -(-size // DRAWER), rows))
    beside.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{beside.name}.rows-", dir=beside.parent) as folder, ExitStack() as stack:
        files = [stack.enter_context((Path(folder) / f"{each}").open("w+b")) for each in range(number)]
        yield Drawers(files, max(1, -(-rows // number)))
