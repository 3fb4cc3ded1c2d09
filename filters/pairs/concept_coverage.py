"""Concept coverage: a small subset of pairs that covers every concept of the pool without a dominating one.

The method by which LLaVA's 595K alignment set was drawn from CC3M (LLaVA, appendix on pre-training data): the noun
phrases of all captions are counted. Phrases rarer than a floor are ignored; for each other phrase, at most a cap of the
captions that contain it is drawn. A caption is kept when any of its phrases draws it, so a common phrase may occur more
often than its cap: other phrases bring captions that contain it.

The draw depends on (seed, phrase, key): a pool that grows keeps most of its selection.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import hash_to_int
from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.language.tokens import Token

MIN_PAIRS, MAX_PAIRS = 3, 100


def extract_concept_phrases(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the noun phrases of a caption: adjectives and nouns in lower case, the head as its lemma."""
    found = set()
    for phrase in noun_phrases(tokens):
        words = [tokens[at].text.lower() for at in sorted((*phrase.adjectives, *phrase.nouns[:-1]))]
        found.add(" ".join([*words, tokens[phrase.nouns[-1]].lemma.lower()]))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class CoverageSelection:
    """Result of the selection.

    Attributes:
        kept: (n,) whether each caption is kept.
        rare: (n,) whether a caption has no phrase as frequent as the floor.
        phrases: number of distinct phrases of the pool.
        counted: of them, at least as frequent as the floor; each of these is in a kept caption.
        capped: of them, more frequent than the cap.
    """

    kept: npt.NDArray[np.bool_]
    rare: npt.NDArray[np.bool_]
    phrases: int
    counted: int
    capped: int


class ConceptCoverage:
    """Noun phrases of a pool, added caption by caption.

    Args:
        floor: minimum number of captions of a phrase that counts.
        cap: maximum number of captions drawn for a phrase.
        seed: of the draw.

    Raises:
        UsageError: floor or cap below 1.
    """

    def __init__(self, floor: int = MIN_PAIRS, cap: int = MAX_PAIRS, seed: int = 0) -> None:
        if floor < 1 or cap < 1:
            raise UsageError(f"concepts: floor {floor} and cap {cap} must be at least 1.")
        self._floor, self._cap, self._seed = floor, cap, seed
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        self._keys: list[str] = []

    def add(self, key: str, tokens: Sequence[Token]) -> None:
        """Add a caption."""
        for phrase in extract_concept_phrases(tokens):
            self._holders[phrase].append(len(self._keys))
        self._keys.append(key)

    def covered(self) -> CoverageSelection:
        """Select among all captions that were added."""
        kept = np.zeros(len(self._keys), np.bool_)
        rare = np.ones(len(self._keys), np.bool_)
        counted = {phrase: held for phrase, held in self._holders.items() if len(held) >= self._floor}
        capped = 0
        for phrase, held in counted.items():
            rare[held] = False
            if len(held) > self._cap:
                capped += 1
                drawn = {self._drawn(phrase, at): at for at in held}
                kept[[drawn[number_] for number_ in nsmallest(self._cap, drawn)]] = True
            else:
                kept[held] = True
        return CoverageSelection(kept, rare, len(self._holders), len(counted), capped)

    def _drawn(self, phrase: str, at: int) -> int:
        return hash_to_int(self._seed, 0, "concepts", 1, phrase, self._keys[at])
