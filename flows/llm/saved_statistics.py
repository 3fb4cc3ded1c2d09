"""Word statistics of reference captions, saved next to the response cache for later runs over the same captions.

The name of a file contains a hash of the captions, the tagger, and the code and packages that count.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pairwright.datasets.errors import StorageError
from pairwright.flows.state.code_versions import code_hash, package_versions
from pairwright.generators.language import pool_statistics
from pairwright.generators.language import tagger as taggers
from pairwright.generators.language.pool_statistics import PoolStatistics

MIN_CAPTIONS: Final = 2_000  # fewer are counted in less time than their statistics take to load


def load_or_count(
    captions: Sequence[str], tagger: str, cache: Path, count: Callable[[], PoolStatistics]
) -> PoolStatistics:
    """Return the statistics of captions, saved by an earlier run or counted now.

    Args:
        captions: the captions, in the order in which they are counted.
        tagger: name and version of the tagger.
        cache: file of the response cache, next to which statistics are saved.
        count: counts the captions.
    """
    if len(captions) < MIN_CAPTIONS:
        return count()
    path = cache.with_name(f"{cache.stem}.words-{_fingerprint(captions, tagger)}.parquet")
    try:
        return PoolStatistics.load(path)
    except StorageError:  # missing, or damaged
        found = count()
        found.save(path)
        return found


def _fingerprint(captions: Sequence[str], tagger: str) -> str:
    hasher = hashlib.blake2b(digest_size=8)
    code = [code_hash(module.__name__) for module in (pool_statistics, taggers)]
    for text in (tagger, *code, *package_versions(), *captions):
        hasher.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return hasher.hexdigest()
