"""Rows put into an order that is known beforehand, on disk: memory is one drawer, whatever the number of rows.

Rows come as bytes with their rank. Each goes into the drawer (a file) of its stretch of ranks; at the end one drawer
after another is read, sorted and given out. Drawers hold about `BUCKET_BYTES` bytes; there are at most `MAX_BUCKETS` of them, so
beyond 8 GiB of rows they grow.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

BUCKET_BYTES = 32 * 2**20
MAX_BUCKETS = 256
_RANK_DIGITS = 12


@dataclass(frozen=True)
class RankBuckets:
    """Takes rows in any order and gives them back in that of their ranks."""

    files: Sequence[BinaryIO]
    ranks_per_bucket: int

    def put(self, rank: int, row: bytes) -> None:
        """Put a row, which holds no line end, at its rank (from 0)."""
        self.files[rank // self.ranks_per_bucket].write(b"%0*d%b\n" % (_RANK_DIGITS, rank, row))

    def rows(self) -> Iterator[bytes]:
        """Yield all rows by rank."""
        for file in self.files:
            file.seek(0)
            for line in sorted(file):
                yield line[_RANK_DIGITS:-1]


@contextmanager
def open_buckets(beside: Path, rows: int, size: int) -> Iterator[RankBuckets]:
    """Give drawers for ``rows`` rows of ``size`` bytes in all (an estimate), in a hidden folder beside a file.

    The folder is removed at the end.
    """
    number = max(1, min(MAX_BUCKETS, -(-size // BUCKET_BYTES), rows))
    beside.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{beside.name}.rows-", dir=beside.parent) as folder, ExitStack() as stack:
        files = [stack.enter_context((Path(folder) / f"{each}").open("w+b")) for each in range(number)]
        yield RankBuckets(files, max(1, -(-rows // number)))
