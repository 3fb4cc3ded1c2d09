"""Which attributes a thing of an image does not have, as far as its captions and the pool tell.

An attribute is false of a thing if another caption says one of it that excludes it ("a red bus" forbids "blue"), or, if
no caption describes the thing, if captioners would hardly have passed it over: the *risk*

    rate / again * (1 - again)^k

is small, where rate is the share of such things in the pool that captions give the attribute, again is how often a
second caption repeats it (``noticed_attributes.tsv``), and k captions name the thing. What is usual goes unsaid (white
snow, a brown elephant), so the attribute must be rare among those of its class that captions give such things, and
the thing must not be a person or an animal.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.edits.additions.absence import MAX_RISK
from pairwright.generators.lexicon.attributes import AttributeLexicon, same_concept, words_of_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import NounLexicon
from pairwright.generators.lexicon.protocols import Pool
from pairwright.generators.lexicon.tables import read_rows

SEEN: Final = 2  # captions of the pool that give a noun an attribute, for it to be more than a slip
_PRIOR: Final = 2.0  # captions added to those that give a noun an attribute
_MIN_DESCRIBED: Final = (
    20  # captions of the pool that give a noun an attribute of a class, for its usual ones to be known
)
_RARE: Final = 0.06  # share of an attribute among them, up to which it is remarkable


class FalseAttributes:
    """Tells which attributes are false of a thing.

    Args:
        lexicon: tells which attributes exclude each other.
        nouns: tells who and what is alive.
        pool: statistics of the user's captions.
    """

    def __init__(self, lexicon: AttributeLexicon, nouns: NounLexicon, pool: Pool) -> None:
        self._lexicon, self._nouns, self._pool = lexicon, nouns, pool
        self._described_count = lru_cache(maxsize=20_000)(self._find_told)
        self._again = {
            row["attribute"]: int(row["again"]) / int(row["mentions"]) for row in read_rows("noticed_attributes")
        }

    def said_of(self, caption: Caption, phrase: NounPhrase) -> list[str]:
        """Return the attributes that other captions put right before the noun of a phrase."""
        nouns = tuple(caption.lower[at] for at in phrase.nouns)
        found = (word for line in caption.words.others for word in _words_before(line, nouns))
        return [word for word in dict.fromkeys(found) if self._is_attribute(word, caption.head(phrase))]

    def stated_of(self, caption: Caption, phrase: NounPhrase) -> list[str]:
        """Return the attributes that are true of the only thing of its name, as other captions say them."""
        head, lines = caption.head(phrase), (caption.words.own, *caption.words.others)
        if caption.plural(phrase) or caption.words.several(head) or any(line.count(head) > 1 for line in lines):
            return []
        return [word for word in self.said_of(caption, phrase) if not _is_denied(caption, word)]

    def false_of(self, caption: Caption, phrase: NounPhrase, attributes: Iterable[str]) -> list[str]:
        """Return which of some attributes that are seen with a noun are false of the thing that a phrase without any names."""
        head, seen = caption.head(phrase), list(attributes)
        if not seen or (not caption.plural(phrase) and caption.words.several(head)):
            return []
        said = self.said_of(caption, phrase)
        return [attribute for attribute in seen if self._is_false(caption, head, attribute, said)]

    def _is_false(self, caption: Caption, head: str, attribute: str, said: list[str]) -> bool:
        if said:  # a size is a matter of opinion
            false = self._lexicon.class_of(attribute) != "size" and any(
                self._lexicon.exclusive(attribute, other, head) for other in said
            )
        else:
            false = self._is_unusual(head, attribute) and self._risk(caption, head, attribute) <= MAX_RISK
        return false and not caption.words.has_any(same_concept(attribute))

    def _is_unusual(self, head: str, attribute: str) -> bool:
        described = self._described_count(head, self._lexicon.class_of(attribute))
        often = self._pool.adjacency(attribute, head)
        return described >= _MIN_DESCRIBED and often <= _RARE * described and not self._nouns.is_alive(head)

    def _find_told(self, head: str, group: str) -> int:
        """Return how often captions give a noun an attribute of a class."""
        return sum(self._pool.adjacency(word, head) for word in words_of_class(group))

    def _risk(self, caption: Caption, head: str, attribute: str) -> float:
        again, things = self._again.get(attribute, 0.0), self._pool.frequency(head, "NOUN")
        if not again or not things:
            return 1.0
        named = 1 + sum(head in line for line in caption.words.others)
        rate = (self._pool.adjacency(attribute, head) + _PRIOR) / (things + _PRIOR)
        return float(rate / again * (1.0 - again) ** named)

    def _is_attribute(self, word: str, noun: str) -> bool:
        return (
            self._lexicon.is_described(word)
            and "-" not in word
            and self._pool.frequency(word, "ADJ") >= SEEN
            and self._pool.adjacency(word, noun) >= SEEN
        )


def _words_before(line: tuple[str, ...], nouns: tuple[str, ...]) -> Iterator[str]:
    size = len(nouns) if nouns[0] in line else len(line)
    for at in range(1, len(line) - size + 1):
        if line[at : at + size] == nouns:
            yield line[at - 1]


def _is_denied(caption: Caption, attribute: str) -> bool:
    """Whether one of the captions that have an attribute may not mean it."""
    return any(attribute in line and not words_with("unreal").isdisjoint(line) for line in caption.words.others)
