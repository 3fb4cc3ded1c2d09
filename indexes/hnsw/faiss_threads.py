"""How many threads FAISS uses: to build, as many as leave the bytes of a graph alone; to measure, one.

From FAISS 1.15.1 on an HNSW graph is the same for any number of threads (measured: 1, 2 and 4 threads, equal
files); up to 1.15.0 only one thread gives the same graph twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_DETERMINISTIC_SINCE = (1, 15, 1)


def choose_build_threads(wanted: int) -> int:
    """Return how many threads to build with: ``wanted``, or for 0 the most that give the same bytes every time."""
    import faiss

    if wanted:
        return wanted
    version = tuple(int(part) for part in faiss.__version__.split(".")[:3] if part.isdigit())
    return int(faiss.omp_get_max_threads()) if version >= _DETERMINISTIC_SINCE else 1


@contextmanager
def limit_faiss_threads(count: int) -> Iterator[None]:
    """Let FAISS use ``count`` threads within the block."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
