"""How likely captions have one word where another stands: the odds by which exchanges are chosen.

Whoever sees texts alone tells a negative from its caption by words that exchanges put in more often than they take them
out. They even out where the words a and b are exchanged as often one way as the other in the same surroundings. Captions
with a are there p(a) times, so a has to become b in a share of them that goes with p(b) / p(a) (detailed balance, as
Metropolis et al. 1953 choose their steps). Shares are those of the pool, smoothed by how often it has the word at all.
Of relations it also counts how the text runs on: a model of two or three words reads whether captions say "standing
next to a" more often than "standing behind a".

What is much more frequent than all that may stand for it ("on") is lost all the same, wherever nothing else can be
exchanged; words that are rare in their surroundings are therefore given up first.
"""

import math
from functools import lru_cache

from pairwright.generators.knowledge.sources import Pool
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.language.prepositional_links import COMPLEX_PREPOSITIONS

SMOOTHING = 3.0  # captions' worth of what is known of a word whatever stands beside it
LEAST, MOST = 1e-3, 30.0
RARE = 0.01  # share of the captions that have a word of rarity 1

# Words that most exchanges take out, or put in, whatever the odds, since only captions with them can be exchanged so:
# what gives back the first is preferred. Fitted over COCO's captions against a classifier of words; lemmas of verbs.
WANTED: dict[str, float] = {
    "through": 5, "swing": 5, "wear": 5, "look": 5, "around": 5, "surf": 5, "along": 5, "down": 5,
    "up": 5, "fly": 3.8, "graze": 3.7, "hit": 3.4, "at": 2.7, "side": 2.7, "skateboard": 2.7, "ski": 2.3,
    "move": 2.0, "with": 1.8, "travel": 1.7, "middle": 1.6, "pull": 1.5, "skate": 1.5, "play": 0.65, "throw": 0.64,
    "walk": 0.57, "beneath": 0.56, "hold": 0.55, "away": 0.54, "pose": 0.51, "hang": 0.43, "catch": 0.41, "kick": 0.34,
    "feed": 0.33, "underneath": 0.28, "race": 0.25, "buy": 0.23, "drive": 0.23, "make": 0.23, "lie": 0.21, "sleep": 0.21,
    "lay": 0.2, "by": 0.18, "edge": 0.18, "watch": 0.17, "kneel": 0.16, "carry": 0.16, "next": 0.16, "near": 0.16,
    "swim": 0.14, "under": 0.13, "wash": 0.12, "behind": 0.12, "beside": 0.12, "jump": 0.12, "turn": 0.12, "inside": 0.12,
    "for": 0.12, "top": 0.12, "run": 0.12, "park": 0.12, "off": 0.12, "front": 0.12, "outside": 0.12, "drop": 0.12,
    "sell": 0.12, "point": 0.16,
}  # fmt: skip


class Odds:
    """Asks the pool how often a word stands where another does, and remembers.

    Args:
        pool: statistics of the captions that the texts are to look like.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._whole = pool.form_frequency("a") + 1  # about as many as there are captions
        self.of_places = lru_cache(maxsize=50_000)(self._of_places)
        self.of_deeds = lru_cache(maxsize=50_000)(self._of_deeds)
        self.of_phrases = lru_cache(maxsize=50_000)(self._of_phrases)
        self.of_words = lru_cache(maxsize=50_000)(self._of_words)
        self.of_runs = lru_cache(maxsize=50_000)(self._of_runs)
        self._within = lru_cache(maxsize=20_000)(self._find_within)
        self.rarity = lru_cache(maxsize=20_000)(self._rarity)

    def _of_places(self, old: str, news: tuple[str, ...], noun: str) -> tuple[float, ...]:
        """Return how much more often captions have other relations before a noun than the ``old`` one."""
        known = self._before(old, noun)
        return tuple(_bounded(self._before(new, noun) / known) * _wanted(old, new) for new in news)

    def _of_deeds(self, old: str, news: tuple[str, ...], after: str, doer: str) -> tuple[float, ...]:
        """Return how much more often captions have other verbs than ``old`` between a doer and an object or preposition.

        All are lemmas; ``after`` and ``doer`` may be empty.
        """
        known = self._between(old, after, doer)
        return tuple(_bounded(self._between(new, after, doer) / known) * _wanted(old, new) for new in news)

    def _of_phrases(self, old: tuple[str, str], news: tuple[tuple[str, str], ...], noun: str) -> tuple[float, ...]:
        """Return how much more often captions have other verbs with prepositions than the ``old`` ones before a noun.

        Verbs are lemmas; a preposition may be empty, where the noun is the object.
        """
        known = self._with(*old, noun)
        said = " ".join(old)
        return tuple(_bounded(self._with(*new, noun) / known) * _wanted(said, " ".join(new)) for new in news)

    def _of_words(self, old: str, news: tuple[str, ...], noun: str) -> tuple[float, ...]:
        """Return how much more often captions describe a noun by other words than ``old``, adjectives or numbers."""
        known = self._describing(old, noun)
        return tuple(_bounded(self._describing(new, noun) / known) for new in news)

    def _of_runs(self, before: str, old: str, news: tuple[str, ...], after: str) -> tuple[float, ...]:
        """Return how much likelier captions run on, word by word, with other words than the ``old`` ones between two.

        All are forms in lower case; ``before`` and ``after`` are empty at the ends of a caption. Where captions have the
        old words on neither side so, or their runs were not counted, nothing is known and all are as likely.
        """
        run, end = self._pool.run, self._share(self._pool.form_frequency(after) if after else self._whole)
        if not run(before, self._within(old)[0]) and not run(self._within(old)[3], after):
            return (1.0,) * len(news)
        each = [
            (run(before, first) + often) * within * (run(last, after) + end)
            for first, often, within, last in map(self._within, (old, *news))
        ]
        known = each.pop(0)
        return tuple([found / known for found in each])

    def _find_within(self, words: str) -> tuple[str, float, float, str]:
        """Return the first word, its share, the likelihood of the others each after the one before, and the last word.

        The likelihood is per caption that has the last word, as that of what comes after it is asked for.
        """
        first, *others = words.split()
        found, last = 1.0, first
        for word in others:
            found *= (self._pool.run(last, word) + self._share(self._pool.form_frequency(word))) / self._often(last)
            last = word
        return first, self._share(self._pool.form_frequency(first)), found / self._often(last), last

    def _often(self, word: str) -> int:
        return self._pool.form_frequency(word) + 1

    def _rarity(self, word: str) -> float:
        """Return how rare a word is in captions, above 0."""
        return _bounded((RARE / self._share(self._pool.form_frequency(word))) ** 1.5)

    def _before(self, wording: str, noun: str) -> float:
        words = tuple(wording.split())
        known = len(words) == 1 or words in COMPLEX_PREPOSITIONS
        seen = self._pool.adjacency(wording, noun) if known else 0
        return seen + SMOOTHING * self._share(min(self._pool.form_frequency(word) for word in words))

    def _between(self, verb: str, after: str, doer: str) -> float:
        often = self._share(self._pool.frequency(verb, "VERB"))
        found = often
        for seen in (
            self._pool.adjacency(verb, after) if after else -1,
            self._pool.adjacency(doer, verb) if doer else -1,
        ):
            if seen >= 0:
                found *= (seen + SMOOTHING * often) / often
        return found

    def _with(self, verb: str, preposition: str, noun: str) -> float:
        often = self._share(self._pool.frequency(verb, "VERB"))
        if not preposition:
            return self._pool.adjacency(verb, noun) + SMOOTHING * often
        word = preposition.split(maxsplit=1)[0]
        after = self._pool.adjacency(verb, word) + SMOOTHING * often
        return after * self._before(preposition, noun) / (self._pool.form_frequency(word) + 1) + SMOOTHING * often / 10

    def _describing(self, word: str, noun: str) -> float:
        return self._pool.adjacency(word, noun) + SMOOTHING * self._share(self._pool.form_frequency(word))

    def _share(self, often: int) -> float:
        return (often + 1) / self._whole


@lru_cache(maxsize=20_000)
def _wanted(old: str, new: str) -> float:
    """Return by how much an exchange is to be preferred for the words that it gives back, or takes away."""
    return _worth(new) / _worth(old)


def _worth(words: str) -> float:
    return math.prod(
        WANTED.get(lemmatize(word, "VBG") if word.endswith("ing") else word, 1.0) for word in words.split()
    )


def _bounded(odds: float) -> float:
    return min(max(odds, LEAST), MOST)
