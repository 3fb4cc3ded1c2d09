"""Words in the captions and box labels of an image.

A negative must not be made true by any other caption or box. `ImageWords` holds the lower-case words of the caption,
the other captions and the box labels, and answers such questions by words alone: the other captions are not tagged, for
speed. It errs on the side of "mentioned".

A *crowd* is a region of many things of one label, which a source such as COCO annotates instead of boxes; it is stored
in a pair's `meta` under "crowd", and counts like the label's plural in a caption.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache

from pairwright.datasets.records import Pair
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.attributes import counts, number_ranges, same_concept, words_of_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_COPULA = words_with("copula")
_WINDOW = 4  # words before a noun that are searched for its adjectives
_OF_SEVERAL = words_with("of_several")
_MORE_THAN_TWO = words_with("over_two")


@lru_cache(maxsize=20_000)
def plural_of(label: str) -> str:
    """Return a singular noun or compound in the plural ("sports ball" gives "sports balls")."""
    before, gap, last = label.rpartition(" ")
    return before + gap + inflect(last, "NNS")


def in_both_numbers(nouns: Iterable[str]) -> frozenset[str]:
    """Return nouns with their plurals."""
    return frozenset(form for noun in nouns for form in (noun, plural_of(noun)))


class ImageWords:
    """Words of the captions and labels of an image.

    Attributes:
        own: words of the caption.
        own_set: the same words.
        own_text: the same as one string, between spaces.
        others: words of each other caption, in order.
        labels: box labels, lower-case, with how often each occurs.
        crowds: labels of which there is a crowd, lower-case; their plurals are among the words.
        all: all words of captions and labels.
        text: the same as one string, for phrases.
        elsewhere: words of the other captions, labels and crowds.
        text_elsewhere: the same as one string, for phrases.
        hyphenated: parts of the other captions' hyphenated words ("red", "hatted").
    """

    def __init__(self, pair: Pair) -> None:
        self.own = words_of(pair.caption)
        self.own_set, self.own_text = frozenset(self.own), f" {' '.join(self.own)} "
        self.others = tuple(words_of(caption) for caption in pair.captions)
        self.boxes, self.crowds = pair.boxes, crowds_of(pair)
        self.labels = dict(Counter(box.label.strip().lower() for box in pair.boxes))
        lines = [*self.others, *map(words_of, self.labels)]
        lines += [words_of(form) for label in sorted(self.crowds) for form in (label, plural_of(label))]
        self.elsewhere, self.text_elsewhere = frozenset().union(*lines), f" {' | '.join(map(' '.join, lines))} "
        self.all, self.text = self.elsewhere | self.own_set, f"{self.own_text}|{self.text_elsewhere}"
        self.hyphenated = tuple(tuple(word.split("-")) for word in self.elsewhere if "-" in word)

    def has(self, phrase: str) -> bool:
        """Return whether a word or phrase occurs as written."""
        return phrase in self.all or (" " in phrase and f" {phrase} " in self.text)

    def has_any(self, words: Iterable[str]) -> bool:
        """Return whether one of the words or phrases occurs."""
        words = [*words]
        return not self.all.isdisjoint(words) or any(" " in word and f" {word} " in self.text for word in words)

    def mentions_noun(self, noun: str) -> bool:
        """Return whether a noun, its plural or a loose synonym occurs; of a compound, also its head."""
        said_as = loosely_same(noun) | loosely_same(noun.rsplit(maxsplit=1)[-1])
        return any(self.has(word) or self.has(plural_of(word)) for word in said_as)

    def several(self, noun: str) -> bool:
        """Return whether there may be several instances of a noun, by two boxes or its plural in a caption."""
        return self.labels.get(noun, 0) > 1 or self.has(plural_of(noun))

    def states_attribute(self, noun: str, adjective: str) -> bool:
        """Return whether a caption states an attribute of a noun: a word of its concept before it, or as a predicate."""
        return self.has_description(same_concept(adjective), in_both_numbers((noun,)), own=True)

    def describes(self, adjectives: frozenset[str], nouns: frozenset[str], *, own: bool) -> bool:
        """Return whether a caption has one of the adjectives shortly before one of the nouns, or as its predicate.

        Nouns are given in both numbers; the caption itself counts if ``own``.
        """
        return self.has_description(adjectives, nouns, own=own) or any(
            not adjectives.isdisjoint(parts) and any(part[:-2].startswith(noun) for part in parts for noun in nouns)
            for parts in self.hyphenated
        )

    def has_description(self, adjectives: AbstractSet[str], nouns: AbstractSet[str], *, own: bool) -> bool:
        """Return `describes` without parts of hyphenated words."""
        if adjectives.isdisjoint(self.all if own else self.elsewhere):
            return False
        lines = (self.own, *self.others) if own else self.others
        return any(
            _stands_before(words, adjectives, nouns) or _is_predicated(words, adjectives, nouns) for words in lines
        )

    def may_be_exact_count(self, noun: str, number: int) -> bool:
        """Return whether ``number`` may be the exact count of a noun: no crowd, no evidence of another count.

        Evidence against one: the plural of any word for the same thing, and words such as "several" and "herd" anywhere.
        Against more: another number shortly before the plural ("three dogs"); against two, also "several" there.
        """
        if noun in self.crowds:
            return False
        plurals = _plurals(noun)
        lines = (self.own, *self.others)
        if number == 1:
            return all((plurals | _OF_SEVERAL).isdisjoint(words) for words in lines)
        return not any(_stands_before(words, _doubts(number), plurals) for words in lines)

    def has_other_colour(self, noun: str, colour: str) -> bool:
        """Return whether a caption states a colour of the noun other than ``colour``."""
        rest = words_of_class("colour") - {colour}
        return any(_stands_before(words, rest, in_both_numbers((noun,))) for words in (self.own, *self.others))


def crowds_of(pair: Pair) -> frozenset[str]:
    """Return the labels, lower-case, that the source of a pair marks as a crowd; none when `meta` has no such list."""
    if '"crowd"' not in pair.meta:
        return frozenset()
    try:
        meta = json.loads(pair.meta)
    except (ValueError, RecursionError):  # untrusted input: invalid metadata has no crowds
        return frozenset()
    regions = meta.get("crowd") if isinstance(meta, dict) else None
    labels = (
        [region.get("label") for region in regions if isinstance(region, dict)] if isinstance(regions, list) else []
    )
    return frozenset(label.strip().lower() for label in labels if isinstance(label, str) and label.strip())


@lru_cache(maxsize=1_000)  # captions of an image are read once for each of its pairs
def words_of(text: str) -> tuple[str, ...]:
    """Return the lower-case words of a text."""
    return tuple(_WORD.findall(text.lower()))


@lru_cache(maxsize=16)
def _doubts(number: int) -> frozenset[str]:
    """Return the words before a plural that contradict a count of two or more; "one" is "one of the"."""
    others = enumerate(NUMBER_WORDS[1:], 2)
    conflicting = {form for other, word in others if other != number for form in (word, str(other))}
    larger = {word for word, (least, _) in number_ranges().items() if least > number and word not in counts()}
    return frozenset(conflicting | (_MORE_THAN_TWO if number == 2 else larger))


@lru_cache(maxsize=20_000)
def _plurals(noun: str) -> frozenset[str]:
    """Return the plurals (last words) of all words for the same thing; of a compound, also those for its head."""
    head = noun.rpartition(" ")[2]
    return frozenset(plural_of(word.rpartition(" ")[2]) for word in loosely_same(noun) | loosely_same(head))


def _is_predicated(words: tuple[str, ...], adjectives: AbstractSet[str], nouns: AbstractSet[str]) -> bool:
    """Return whether one of the adjectives is a predicate of one of the nouns: "the dog is | black"."""
    if adjectives.isdisjoint(words):
        return False
    predicates = (at for at in range(1, len(words)) if words[at - 1] in nouns)
    return any(
        words[at] in adjectives or (words[at] in _COPULA and not adjectives.isdisjoint(words[at + 1 : at + _WINDOW]))
        for at in predicates
    )


def _stands_before(words: tuple[str, ...], adjectives: AbstractSet[str], nouns: AbstractSet[str]) -> bool:
    if adjectives.isdisjoint(words):
        return False
    return any(
        word in nouns and not adjectives.isdisjoint(words[max(0, at - _WINDOW) : at]) for at, word in enumerate(words)
    )
