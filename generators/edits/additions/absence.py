"""Estimation of which objects are absent from an image, from its captions, its boxes and pool statistics.

No caption proves that an object is absent: five captions without an elephant nearly do, five captions without a cup do
not. ``noun_mentions.tsv`` counts the images in which 1, 2, ... 5 of five captions name an object or something that may
be it. Objects that are often named by one caption only are often named by none: the share of images with the object in
which none of five captions names it is estimated as 3 n1 / n, where n1 of n images are those with one such caption, 0.9
at most. (Capture-recapture estimates are too low: some objects are never described.) From these counts follow q, the
share of captions of such images that name the object, and u(k), the share of such images in which none of k captions
does. The *risk* of an object is

    rate / q * u(k)

where rate is the share of captions with a given word of the image that name the object, maximized over these words. An
object is *absent* if its risk is small, no caption or box names it or something that may be it, and captions do not
avoid it together with a word of the caption.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import comb
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.image_words import ImageWords, in_both_numbers
from pairwright.generators.edits.additions.insertion_points import shape_nouns
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.lexicon.tables import cell_words, read_rows

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]

MAX_RISK: Final = 0.03  # maximum risk of one added object; the mean risk of added objects is far below
MAX_TRUE_RISK: Final = 0.5  # maximum risk, without other captions, of an object that is added as the true one
MAX_NPMI_AVOIDED: Final = -0.15  # normalised pointwise mutual information below which captions avoid two words together
MIN_NPMI_FITTING: Final = 0.05  # the same, from which words fit together
_UNSEEN: Final = -0.05  # upper limit for words that never co-occur
_UNNAMED_TO_ONCE: Final = 3.0  # ratio of images in which no caption names an object to those in which one does
_MAX_UNNAMED: Final = 0.9  # below 1: the ratio of unnamed to named images, share / (1 - share), is finite
_CAPTIONS: Final = 5  # captions per image in noun_mentions.tsv
_PRIOR: Final = 20.0  # captions with the rate of the whole pool, added to those with a word
_NAMED: Final = 5  # minimum captions of the pool with an object
_SEEN: Final = 2  # minimum captions of the pool in which two words co-occur
_STEM: Final = 4  # letters that a derived word shares: "skateboarder" may have a skateboard


class AbsentObjects:
    """Estimates which objects are absent from an image.

    Args:
        vocabulary: nouns that the cloze model knows.

    Sets of objects are bit masks, bit i for ``nouns[i]``, since some hundred are combined for each caption.

    Attributes:
        nouns: objects that may be added, singular.
    """

    def __init__(self, thesaurus: WordNet, pool: PoolStatistics, vocabulary: Iterable[str]) -> None:
        self._pool, known = pool, frozenset(vocabulary)
        counts = {
            noun: images
            for noun, images in _mention_counts().items()
            if noun in known and _caption_count(pool, noun) >= _NAMED
        }
        self.nouns = tuple(counts)
        self._unnamed_share = {
            k: np.array([unnamed_share(c, k) for c in counts.values()]) for k in range(_CAPTIONS + 1)
        }
        self._named_share = 1 - self._unnamed_share[1]
        self._base = np.array([_caption_count(pool, noun) for noun in self.nouns]) / max(1, pool.captions)
        words = [noun.split() for noun in self.nouns]
        self._parts = [*chain.from_iterable(words)]
        self._starts = np.cumsum([0, *map(len, words)])[:-1]
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._phrases: dict[str, list[tuple[str, int]]] = {}
        self._index_names(thesaurus)
        self._last: tuple[Any, int] = (None, 0)
        self._expected_with = lru_cache(maxsize=40_000)(self._find_expected)
        self._cooccurrence = lru_cache(maxsize=20_000)(self._find_cooccurrence)

    def absent(self, caption: Caption) -> int:
        """Return the absent objects that fit the words of the caption, as a bit mask."""
        plausible = self._plausible(caption)
        if not plausible:
            return 0
        mentioned = self._of_image(caption.words)
        return plausible & ~(mentioned | self._expected(caption.words, caption.contents, MAX_RISK))

    def possible(self, caption: Caption) -> int:
        """Return the objects that the caption itself neither names nor implies with high probability, as a bit mask."""
        words = caption.words
        return ~(self._named(words, words.own) | self._expected(words, caption.contents, MAX_TRUE_RISK))

    def cooccurring(self, noun: str) -> int:
        """Return the objects that co-occur with a noun, as a bit mask."""
        return self._cooccurrence(noun)[0]

    def mask_of(self, is_wanted: Callable[[str], bool]) -> int:
        """Return the objects that meet a condition, as a bit mask."""
        return _packed(np.array([is_wanted(noun) for noun in self.nouns], bool))

    def _of_image(self, words: ImageWords) -> int:
        """Return the objects that captions and labels of the image mention or may leave unnamed; cached for its next caption."""
        key = frozenset((words.own, *words.others)), frozenset(words.labels)
        if self._last[0] != key:
            self._last = key, self._named(words, words.all) | self._expected(words, words.all, MAX_RISK)
        return self._last[1]

    def _named(self, words: ImageWords, mentioned: Iterable[str]) -> int:
        """Return the objects that some words of an image mention or may refer to."""
        names, stems, found = self._words, self._stems, 0
        for word in mentioned:
            found |= names.get(word, 0) | stems.get(word[:_STEM], 0)
        for word in self._phrases.keys() & mentioned:
            for name, mask in self._phrases[word]:
                if words.has(name):
                    found |= mask
        return found

    def _expected(self, words: ImageWords, beside: Iterable[str], limit: float) -> int:
        """Return the objects whose risk exceeds a limit, given the words of an image."""
        silent, found = min(_CAPTIONS, 1 + len(words.others)), 0
        for word in beside:
            found |= self._expected_with(word, silent, limit)
        return found

    def _plausible(self, caption: Caption) -> int:
        """Return the objects that co-occur with a noun or verb of the caption and are avoided with none."""
        fitting = avoided = 0
        for word in caption.nouns_and_verbs:
            fits, avoids = self._cooccurrence(word)
            fitting, avoided = fitting | fits, avoided | avoids
        return fitting & ~avoided

    def unpacked(self, mask: int) -> BoolArray:
        """Return for each of `nouns` whether it is in a (non-negative) bit mask."""
        number = len(self.nouns)
        octets = np.frombuffer(mask.to_bytes((number + 7) // 8, "little"), np.uint8)
        return np.unpackbits(octets, count=number, bitorder="little").view(bool)

    def _find_expected(self, word: str, silent: int, limit: float) -> int:
        if word and not self._pool.cooccurrence(word, word):  # as function words and plurals
            return self._expected_with("", silent, limit)
        rates = self._base
        if word:  # the share of captions with the word that name each object, shrunk towards that of the pool
            seen = self._pool.cooccurrence(word, word)
            both = self._least_of_parts(self._pool.cooccurrences(word, self._parts))
            rates = (both + _PRIOR * self._base) / (seen + _PRIOR)
        return _packed(rates.astype(np.float32) / self._named_share * self._unnamed_share[silent] > limit)

    def _find_cooccurrence(self, word: str) -> tuple[int, int]:
        """Return the objects that co-occur with a word, and those that captions avoid with it."""
        fits = self._find_fits(word)
        return _packed(fits >= MIN_NPMI_FITTING), _packed(fits <= MAX_NPMI_AVOIDED)

    def _find_fits(self, word: str) -> FloatArray:
        """Return the normalised pointwise mutual information of a word with each object; of a compound, the minimum of its parts.

        Geometric shapes fit each other.
        """
        fits = self._pool.plausibilities(word, self._parts)
        seen = self._pool.cooccurrences(word, self._parts) >= _SEEN
        seen |= np.fromiter((part == word for part in self._parts), bool, len(self._parts))
        # Rare words are never far below chance.
        found = self._least_of_parts(np.where(seen, fits, np.minimum(fits, _UNSEEN)))
        if word in shape_nouns():
            found[[noun in shape_nouns() for noun in self.nouns]] = 1.0
        return found.astype(np.float32)

    def _least_of_parts(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.minimum.reduceat(values, self._starts) if len(values) else values

    def _index_names(self, thesaurus: WordNet) -> None:
        """Index the objects by the words, phrases (last words) and stems that may refer to them."""
        for at, noun in enumerate(self.nouns):
            for name in sorted(mention_forms(noun, thesaurus)):
                if " " in name:
                    self._phrases.setdefault(name.rpartition(" ")[2], []).append((name, 1 << at))
                else:
                    self._words[name] = self._words.get(name, 0) | 1 << at
            if len(noun) >= _STEM:
                self._stems[noun[:_STEM]] = self._stems.get(noun[:_STEM], 0) | 1 << at


def _packed(found: BoolArray) -> int:
    return int.from_bytes(np.packbits(found, bitorder="little").tobytes(), "little")


def unnamed_share(images: Sequence[int], captions: int) -> float:
    """Return the estimated share of images with an object in which none of ``captions`` captions names it.

    Args:
        images: number of images with 1, 2, ... 5 of five captions that name it.
        captions: 0 to 5.
    """
    named = sum(images)
    share = min(_MAX_UNNAMED, _UNNAMED_TO_ONCE * (images[0] + 1) / (named + 2))
    unnamed = named * share / (1 - share)
    silent = sum(
        number * comb(_CAPTIONS - naming, captions) / comb(_CAPTIONS, captions)
        for naming, number in enumerate(images, 1)
    )
    return (unnamed + silent) / (unnamed + named)


def _caption_count(pool: PoolStatistics, noun: str) -> int:
    """Return the number of captions with an object; for a compound, an upper bound."""
    return min(pool.cooccurrence(part, part) for part in noun.split())


@lru_cache(maxsize=1)
def _mention_counts() -> dict[str, tuple[int, ...]]:
    columns = [f"images_{number}" for number in range(1, _CAPTIONS + 1)]
    return {row["noun"]: tuple(int(row[column]) for column in columns) for row in read_rows("noun_mentions")}


@lru_cache(maxsize=1)
def _implied() -> tuple[tuple[tuple[str, ...], frozenset[str]], ...]:
    """Return hypernyms of objects, with the words that may refer to one of them."""
    return tuple((cell_words(row["kinds"]), frozenset(row["words"].split())) for row in read_rows("implied_things"))


def mention_forms(noun: str, thesaurus: WordNet) -> frozenset[str]:
    """Return the word forms that may refer to an object: synonyms, hyponyms, hypernyms and implying words."""
    head = noun.rpartition(" ")[2]
    same = {noun, head, *thesaurus.synonyms(noun, "NOUN"), *loosely_same(noun), *loosely_same(head)}
    names = {*same, *thesaurus.hyponyms(noun, "NOUN"), *thesaurus.hypernyms(noun, "NOUN")}
    kinds = {kind for kinds, _ in _implied() for kind in kinds if _is_kind(noun, kind, thesaurus)}
    words = {word for each, words in _implied() if not kinds.isdisjoint(each) for word in words}
    return in_both_numbers(names) | words


def _is_kind(noun: str, kind: str, thesaurus: WordNet) -> bool:
    return noun == kind or any(thesaurus.is_a(each, kind, "NOUN") for each in (noun, noun.rpartition(" ")[2]))
