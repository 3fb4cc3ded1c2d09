"""Options of an index build."""

from dataclasses import dataclass
from typing import Literal

from pairwright.datasets.errors import UsageError


@dataclass(frozen=True)
class IndexOptions:
    """Options of an index build.

    Attributes:
        m: links per vector at each upper level of the HNSW graph (twice as many at the lowest), 2 to 128.
        ef_construction: candidates kept while the links of a vector are selected; at least ``m``.
        flat_below: parts with fewer captions or images are searched exactly: a query takes up to 50 ms of a core, while a
            graph takes about a millisecond per vector to build.
        recall: recall@10 on sample queries, in (0, 1], to which the search effort of a part is tuned.
        storage: how a vector is stored: flat (float32), fp16, int8, ivfpq (codes in memory, rows on disk), or auto for
            the most accurate form that fits ``memory_gib``.
        memory_gib: memory budget of the whole index for auto, in GiB. The default does not depend on the machine, so
            that the same pairs give the same index everywhere.
        near: cosine from which a vector is a duplicate of a stored one, in (0, 1]; 1 for equal vectors only.
        threads: threads to build with. 0: all cores from FAISS 1.15.1 on, which builds the same graph with any number
            of threads; one thread with older versions, whose graphs differ from run to run with several.
    """

    m: int = 32
    ef_construction: int = 200
    flat_below: int = 200_000
    recall: float = 0.95
    storage: Literal["auto", "flat", "fp16", "int8", "ivfpq"] = "auto"
    memory_gib: float = 16.0
    near: float = 0.999
    threads: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.m <= 128:
            raise UsageError(f"m {self.m}: must be from 2 to 128.")
        if self.ef_construction < self.m:
            raise UsageError(f"ef_construction {self.ef_construction}: must be at least m ({self.m}).")
        if not 0 < self.recall <= 1:
            raise UsageError(f"recall {self.recall}: must be above 0 and at most 1.")
        if self.storage not in {"auto", "flat", "fp16", "int8", "ivfpq"}:
            raise UsageError(f"storage {self.storage!r}: must be auto, flat, fp16, int8 or ivfpq.")
        if not self.memory_gib > 0:
            raise UsageError(f"memory_gib {self.memory_gib}: must be above 0.")
        if not 0 < self.near <= 1:
            raise UsageError(f"near {self.near}: must be above 0 and at most 1.")
        if self.flat_below < 0 or self.threads < 0:
            raise UsageError("flat_below and threads must be 0 or more.")
