"""Word statistics of captions, which the checks of edits that commands judge read."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from pairwright.generators.edits.general_english import GeneralEnglish, pool_or_general_english
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tokens import Tagger, tag_all
from pairwright.generators.language.wordnet import WordNet

CHECKED_CAPTIONS: Final = 5_000  # with four times as many, 0.5% of the decisions differ


def count_checked_pool(captions: Iterable[str], tagger: Tagger, wordnet: WordNet) -> PoolStatistics | GeneralEnglish:
    """Return the statistics of the first `CHECKED_CAPTIONS` captions, or of general English if these are too few."""
    statistics = count_captions(tag_all(tagger, list(islice(captions, CHECKED_CAPTIONS)))).frozen()
    return pool_or_general_english(statistics, wordnet)


def note_general_english(pool: PoolStatistics | GeneralEnglish, note: Callable[[str], None]) -> None:
    """Pass a message on if there were too few captions for statistics of their own."""
    if not isinstance(pool, PoolStatistics):
        note(
            "Too few captions for word statistics: using those of general English. Set --pool FILE for better results."
        )
