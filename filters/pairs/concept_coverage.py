"""Concept coverage: so few pairs that every concept of the pool is still there, and none fills it.

The way LLaVA's 595K alignment set was drawn from CC3M (LLaVA, appendix on pre-training data): the noun phrases of all
captions are counted. Those rarer than a floor are left aside; from the rarest of the others on, the captions that hold a
phrase are taken, at most a cap of them by chance. A caption is kept when any of its phrases takes it, so a common phrase
may come more often than its cap: other phrases bring captions that hold it.

Chance is that of (seed, phrase, key): a pool that grows keeps most of its choice.
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


def concept_phrases(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the noun phrases of a caption: adjectives and nouns in lower case, the head as its lemma."""
    found = set()
    for phrase in noun_phrases(tokens):
        words = [tokens[at].text.lower() for at in sorted((*phrase.adjectives, *phrase.nouns[:-1]))]
        found.add(" ".join([*words, tokens[phrase.nouns[-1]].lemma.lower()]))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class CoverageSelection:
    """What was chosen.

    Attributes:
        kept: (n,) whether each caption is.
        rare: (n,) whether a caption holds no phrase as frequent as the floor.
        phrases: different ones in the pool.
        counted: of them, at least as frequent as the floor; every one of these is in a kept caption.
        capped: of them, more frequent than the cap.
    """

    kept: npt.NDArray[np.bool_]
    rare: npt.NDArray[np.bool_]
    phrases: int
    counted: int
    capped: int


class ConceptCoverage:
    """The noun phrases of a pool, gathered caption by caption.

    Args:
        floor: captions that a phrase has to be in, at least, to count.
        cap: captions taken for a phrase, at most.
        seed: of the choice.

    Raises:
        UsageError: floor or cap below 1.
    """

    def __init__(self, floor: int = MIN_PAIRS, cap: int = MAX_PAIRS, seed: int = 0) -> None:
        if floor < 1 or cap < 1:
            raise UsageError(f"concepts: floor {floor} and cap {cap} are at least 1.")
        self._floor, self._cap, self._seed = floor, cap, seed
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        self._keys: list[str] = []

    def add(self, key: str, tokens: Sequence[Token]) -> None:
        """Take a caption."""
        for phrase in concept_phrases(tokens):
            self._holders[phrase].append(len(self._keys))
        self._keys.append(key)

    def covered(self) -> CoverageSelection:
        """Choose among all captions that were taken."""
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
