"""Estimation of which attributes are false of an object, from the captions of its image and pool statistics.

An attribute is false if another caption states one that excludes it ("a red bus" excludes "blue"), or, if no caption
describes the object, if captioners would hardly have omitted it: the *risk*

    rate / repeated * (1 - repeated)^k

is small, where rate is the share of such objects in the pool with the attribute, repeated is how often a second caption
repeats it (``attribute_mentions.tsv``), and k captions name the object. Typical attributes are omitted (white snow, a
brown elephant), so the attribute must be rare among those of its class for such objects, and the object must not be a
person or an animal.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.edits.additions.absence import MAX_RISK
from pairwright.generators.edits.constraints.knowledge import MIN_COUNT, Knowledge
from pairwright.generators.lexicon.attributes import same_concept, untouched_words, words_of_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.tables import read_rows

_PRIOR: Final = 2.0  # captions added to those that give a noun an attribute
_MIN_DESCRIBED: Final = 20  # captions that give a noun an attribute of a class, for its usual ones to be known
_RARE: Final = 0.06  # share of an attribute among them, up to which it is remarkable


class FalseAttributes:
    """Estimates which attributes are false of an object."""

    def __init__(self, known: Knowledge) -> None:
        self._lexicon, self._nouns, self._pool = known.attributes, known.nouns, known.pool
        self._described_count = lru_cache(maxsize=20_000)(self._count_described)
        self._repeat_rate = {
            row["attribute"]: int(row["repeated"]) / int(row["mentions"]) for row in read_rows("attribute_mentions")
        }

    def attributes_stated_of(self, caption: Caption, phrase: NounPhrase) -> list[str]:
        """Return the attributes right before the noun of a phrase in other captions."""
        nouns = tuple(caption.lower[at] for at in phrase.nouns)
        found = (word for line in caption.words.others for word in _words_before(line, nouns))
        return [word for word in dict.fromkeys(found) if self._is_attribute(word, caption.head(phrase))]

    def true_attributes_of(self, caption: Caption, phrase: NounPhrase) -> list[str]:
        """Return the attributes that other captions state of an object that is the only one of its noun."""
        head, lines = caption.head(phrase), (caption.words.own, *caption.words.others)
        if caption.plural(phrase) or caption.words.several(head) or any(line.count(head) > 1 for line in lines):
            return []
        return [word for word in self.attributes_stated_of(caption, phrase) if not _is_unreal(caption, word)]

    def false_attributes_of(self, caption: Caption, phrase: NounPhrase, attributes: Iterable[str]) -> list[str]:
        """Return which of some attributes are false of the object that an undescribed phrase names."""
        head, seen = caption.head(phrase), list(attributes)
        if not seen or (not caption.plural(phrase) and caption.words.several(head)):
            return []
        stated = self.attributes_stated_of(caption, phrase)
        return [attribute for attribute in seen if self._is_false(caption, head, attribute, stated)]

    def _is_false(self, caption: Caption, head: str, attribute: str, stated: list[str]) -> bool:
        if stated:  # sizes are subjective
            false = self._lexicon.class_of(attribute) != "size" and any(
                self._lexicon.exclusive(attribute, other, head) for other in stated
            )
        else:
            false = self._is_unusual(head, attribute) and self._risk(caption, head, attribute) <= MAX_RISK
        return false and not caption.words.has_any(same_concept(attribute))

    def _is_unusual(self, head: str, attribute: str) -> bool:
        described = self._described_count(head, self._lexicon.class_of(attribute))
        often = self._pool.adjacency(attribute, head)
        return described >= _MIN_DESCRIBED and often <= _RARE * described and not self._nouns.is_alive(head)

    def _count_described(self, head: str, group: str) -> int:
        """Return the number of captions in which an attribute of a class modifies a noun."""
        return sum(self._pool.adjacency(word, head) for word in words_of_class(group))

    def _risk(self, caption: Caption, head: str, attribute: str) -> float:
        repeated, things = self._repeat_rate.get(attribute, 0.0), self._pool.frequency(head, "NOUN")
        if not repeated or not things:
            return 1.0
        named = 1 + sum(head in line for line in caption.words.others)
        rate = (self._pool.adjacency(attribute, head) + _PRIOR) / (things + _PRIOR)
        return float(rate / repeated * (1.0 - repeated) ** named)

    def _is_attribute(self, word: str, noun: str) -> bool:
        return (
            word not in untouched_words()
            and "-" not in word
            and self._pool.frequency(word, "ADJ") >= MIN_COUNT
            and self._pool.adjacency(word, noun) >= MIN_COUNT
        )


def _words_before(line: tuple[str, ...], nouns: tuple[str, ...]) -> Iterator[str]:
    size = len(nouns) if nouns[0] in line else len(line)
    for at in range(1, len(line) - size + 1):
        if line[at : at + size] == nouns:
            yield line[at - 1]


def _is_unreal(caption: Caption, attribute: str) -> bool:
    """Return whether one of the captions with an attribute is unreal: it compares or depicts things."""
    return any(attribute in line and not words_with("unreal").isdisjoint(line) for line in caption.words.others)
