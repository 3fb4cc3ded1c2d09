"""External sort of rows with known ranks, by buckets on disk; memory is one bucket.

Rows are bytes with their rank. Each goes into the bucket (a file) of its range of ranks; at the end the buckets are read,
sorted and yielded one after another. Buckets have about `BUCKET_BYTES` bytes; there are at most `MAX_BUCKETS`, so they grow
beyond 8 GiB of rows.
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
    """Takes rows in any order and yields them by rank."""

    files: Sequence[BinaryIO]
    ranks_per_bucket: int

    def put(self, rank: int, row: bytes) -> None:
        """Store a row without a newline at its rank (from 0)."""
        self.files[rank // self.ranks_per_bucket].write(b"%0*d%b\n" % (_RANK_DIGITS, rank, row))

    def rows(self) -> Iterator[bytes]:
        """Yield all rows by rank."""
        for file in self.files:
            file.seek(0)
            for line in sorted(file):
                yield line[_RANK_DIGITS:-1]


@contextmanager
def open_buckets(target: Path, rows: int, size: int) -> Iterator[RankBuckets]:
    """Provide buckets for ``rows`` rows of ``size`` bytes in total (an estimate), in a hidden folder next to a file.

    The folder is removed at the end.
    """
    number = max(1, min(MAX_BUCKETS, -(-size // BUCKET_BYTES), rows))
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}.rows-", dir=target.parent) as folder, ExitStack() as stack:
        files = [stack.enter_context((Path(folder) / f"{each}").open("w+b")) for each in range(number)]
        yield RankBuckets(files, max(1, -(-rows // number)))
