"""What boxes and a caption prove about an image, as facts that a question can be asked about.

A *fact* has the wordings of its question, the form of its answer and the fields that fill both (`questions.py`). A
*thing* is a label that has exactly one box, no crowd, and that no caption speaks of in the plural, so "the dog" is
clear. What there is a crowd of (`context.py`) is neither absent nor counted.

Stated margins, in parts of the picture: of two things one is left of (above) the other when their boxes do not overlap
on that axis, the centres are at least 0.18 apart on it, and that is at least twice their distance on the other axis.
One is larger when its box has at least twice the area. Labels with ten boxes or more are not counted, since sources
stop marking crowds one by one.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from pairwright.datasets.records import Box, Pair
from pairwright.generators import questions
from pairwright.generators.attributes import COLOUR
from pairwright.generators.context import ImageWords, plural_of
from pairwright.generators.language.inflection import article
from pairwright.generators.language.tokens import Token
from pairwright.generators.nouns import MASS, PLURAL_ONLY
from pairwright.generators.phrases import NUMBER_WORDS, NounPhrase, is_plural, noun_phrases

CLEARLY_APART = 0.18
CLEARLY_LARGER = 2.0
MOST_COUNTED = 9
MOST_PAIRS = 30

_COLOURS = {word: concept for concept, words in COLOUR.items() for word in words if concept != "blond"}
_CONVERSE = {"to the left of": "to the right of", "above": "below"}
_CONVERSE |= {after: before for before, after in _CONVERSE.items()}


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that can be asked; ``says`` is yes or no for presence questions, else empty."""

    wordings: tuple[str, ...]
    answer: str
    fields: dict[str, str]
    says: str = ""


@dataclass(frozen=True, slots=True)
class Grounding:
    """The context of one image: boxes by label, phrases of the caption, words of all captions."""

    boxes: dict[str, tuple[Box, ...]]
    tokens: Sequence[Token]
    phrases: tuple[NounPhrase, ...]
    words: ImageWords
    vocabulary: tuple[str, ...]

    @classmethod
    def of(cls, pair: Pair, tokens: Sequence[Token], vocabulary: Sequence[str]) -> "Grounding":
        """Read the context of ``pair``; ``tokens`` are those of its caption."""
        boxes: dict[str, list[Box]] = {}
        for box in pair.boxes:
            boxes.setdefault(box.label.strip().lower(), []).append(box)
        found = {label: tuple(group) for label, group in boxes.items() if label}
        return cls(found, tokens, noun_phrases(tokens), ImageWords.of(pair), tuple(vocabulary))

    def facts(self, rng: random.Random) -> list[list[Fact]]:
        """Return what can be asked, one list a kind; the chance only draws absent labels and wordings of place."""
        present = list(self._present())
        return [
            present,
            self._absent(rng, len(present)),
            list(self._counts()),
            list(self._colours()),
            list(self._places(rng)),
            list(self._sizes(rng)),
        ]

    def _things(self) -> list[str]:
        return [
            label
            for label, group in self.boxes.items()
            if len(group) == 1 and label not in PLURAL_ONLY | MASS and not self.words.has(plural_of(label))
        ]

    def _present(self) -> Iterator[Fact]:
        for label in dict.fromkeys([*self.boxes, *sorted(self.words.crowds)]):
            number = len(self.boxes.get(label, ()))
            if label not in self.vocabulary:
                continue
            if label in PLURAL_ONLY:
                yield Fact(questions.ARE_THERE_ANY, questions.YES_ANY, {"nouns": label}, "yes")
            elif label in MASS:
                yield Fact(questions.ARE_THERE_ANY[:2], questions.YES_MASS, {"nouns": label}, "yes")
            elif self._is_counted(label, number):
                one = number == 1
                wordings = questions.IS_THERE_ONE if one else questions.ARE_THERE_ANY
                yield Fact(wordings, questions.YES_ONE if one else questions.YES_MANY, _names(label, number), "yes")
            elif number > 1 or label in self.words.crowds:
                yield Fact(questions.ARE_THERE_ANY, questions.YES_ANY, _names(label), "yes")

    def _absent(self, rng: random.Random, most: int) -> list[Fact]:
        absent = [label for label in self.vocabulary if label not in self.boxes and not self.words.speaks_of(label)]
        facts = []
        for label in rng.sample(absent, min(most, len(absent))):
            if label in PLURAL_ONLY | MASS:
                continue
            one = rng.random() < 0.5
            wordings = questions.IS_THERE_ONE if one else questions.ARE_THERE_ANY
            answer = questions.NO_ONE if one else questions.NO_MANY
            facts.append(Fact(wordings, answer, _names(label), "no"))
        return facts

    def _counts(self) -> Iterator[Fact]:
        for label, group in self.boxes.items():
            if label in self.vocabulary and label not in PLURAL_ONLY | MASS and self._is_counted(label, len(group)):
                answer = questions.COUNT_ONE if len(group) == 1 else questions.COUNT_MANY
                yield Fact(questions.HOW_MANY, answer, _names(label, len(group)))

    def _is_counted(self, label: str, number: int) -> bool:
        """Whether the boxes are all there are, as far as crowds and captions tell."""
        return 1 <= number <= MOST_COUNTED and self.words.is_number(label, number)

    def _colours(self) -> Iterator[Fact]:
        heads = Counter(self.tokens[phrase.head].lemma for phrase in self.phrases)
        for phrase in self.phrases:
            colour = self._colour(phrase)
            noun = " ".join(self.tokens[at].text.lower() for at in phrase.nouns)
            if not colour or heads[self.tokens[phrase.head].lemma] > 1 or not self._is_one(noun):
                continue
            if not self.words.other_colour(noun, colour):
                yield Fact(questions.WHAT_COLOUR, questions.COLOUR, {"noun": noun, "colour": colour})

    def _colour(self, phrase: NounPhrase) -> str:
        """Return the one colour of a single thing, or an empty string."""
        determiner = self.tokens[phrase.determiner].text.lower() if phrase.determiner >= 0 else ""
        if determiner not in {"a", "an", "the"} or phrase.joined or phrase.count >= 0:
            return ""
        if is_plural(self.tokens[phrase.head]):
            return ""
        inside = [token.text.lower() for token in self.tokens[phrase.start : phrase.end]]
        colours = [word for word in inside if word in _COLOURS]
        shaded = {"light", "dark", "bright", "pale", "and", "or"}.intersection(inside)
        return colours[0] if len(colours) == 1 and inside[-1] != colours[0] and not shaded else ""

    def _is_one(self, noun: str) -> bool:
        boxes = self.boxes.get(noun)
        return (boxes is None or len(boxes) == 1) and not self.words.has(plural_of(noun))

    def _places(self, rng: random.Random) -> Iterator[Fact]:
        for thing, other in _some_pairs(list(permutations(self._things(), 2)), rng):
            relation = place_of(self.boxes[thing][0], self.boxes[other][0])
            if not relation:
                continue
            fields = {"thing": thing, "other": other, "answer_relation": relation}
            draw = rng.random()
            if draw < 0.5:
                yield Fact(questions.WHERE, questions.PLACE, fields)
            else:
                asked = relation if draw < 0.75 else _CONVERSE[relation]
                answer = questions.YES_PLACE if asked == relation else questions.NO_PLACE
                yield Fact(questions.IS_IT_THERE, answer, fields | {"asked_relation": asked})

    def _sizes(self, rng: random.Random) -> Iterator[Fact]:
        for thing, other in _some_pairs(list(combinations(self._things(), 2)), rng):
            first, second = (_area(self.boxes[label][0]) for label in (thing, other))
            if min(first, second) <= 0 or max(first, second) < CLEARLY_LARGER * min(first, second):
                continue
            larger, smaller = (thing, other) if first > second else (other, thing)
            fields = {"thing": thing, "other": other, "larger": larger, "smaller": smaller}
            if rng.random() < 0.5:
                yield Fact(questions.WHICH_LARGER, questions.LARGER, fields)
            else:
                yield Fact(questions.WHICH_SMALLER, questions.SMALLER, fields)


def place_of(one: Box, other: Box) -> str:
    """Return where ``one`` clearly is as seen from ``other``: "to the left of", ..., or an empty string."""
    across = (one.x1 + one.x2 - other.x1 - other.x2) / 2
    down = (one.y1 + one.y2 - other.y1 - other.y2) / 2
    if abs(across) >= CLEARLY_APART and abs(across) >= 2 * abs(down) and (one.x2 <= other.x1 or other.x2 <= one.x1):
        return "to the left of" if across < 0 else "to the right of"
    if abs(down) >= CLEARLY_APART and abs(down) >= 2 * abs(across) and (one.y2 <= other.y1 or other.y2 <= one.y1):
        return "above" if down < 0 else "below"
    return ""


def _area(box: Box) -> float:
    return (box.x2 - box.x1) * (box.y2 - box.y1)


def _names(label: str, count: int = 1) -> dict[str, str]:
    said = NUMBER_WORDS[count - 1]
    return {"noun": label, "nouns": plural_of(label), "a_noun": f"{article(label)} {label}", "count": said}


def _some_pairs(pairs: list[tuple[str, str]], rng: random.Random) -> list[tuple[str, str]]:
    """Return every unordered pair once, in random order and direction; at most `MOST_PAIRS`."""
    rng.shuffle(pairs)
    seen: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        seen.setdefault(frozenset(pair), pair)
    return list(seen.values())[:MOST_PAIRS]
