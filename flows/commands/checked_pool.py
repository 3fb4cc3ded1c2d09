"""Word statistics of captions, which the checks of edits that commands judge read."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from pairwright.generators.edits.edit_model import pool_or_bundled
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tokens import Tagger, tag_all

CHECKED_CAPTIONS: Final = 5_000  # with four times as many, 0.5% of the decisions differ


def count_checked_pool(
    captions: Iterable[str], tagger: Tagger, note: Callable[[str], None] | None = None
) -> PoolStatistics:
    """Return the statistics of the first `CHECKED_CAPTIONS` captions; of fewer than 200 the bundled ones, after a ``note``."""
    counted = count_captions(tag_all(tagger, list(islice(captions, CHECKED_CAPTIONS)))).frozen()
    return pool_or_bundled(counted) if note is None else pool_or_note(counted, note)


def pool_or_note(statistics: PoolStatistics, note: Callable[[str], None]) -> PoolStatistics:
    """Return the statistics of a pool; if its captions are too few, the bundled ones after a message."""
    pool = pool_or_bundled(statistics)
    if pool is not statistics:
        note(
            "Too few captions for word statistics: using those of bundled captions. Set --pool FILE for better results."
        )
    return pool
