"""What the captions of an image prove, read off their words.

All captions are read, without a tagger (tagging them would cost far more than all the rest): by lists of nouns, small
words and a few patterns, each of which has to fit word by word. So much is missed, and what is found is plain:

- *doing*: "a man riding a horse", of one person or animal, or of several of a kind;
- *where*: "a laptop on a wooden desk", of a thing that there is one of;
- *setting*: "in a kitchen", where the captions name one such place;
- *material*: "a wooden table", likewise;
- *colour*: "a red car", of a thing that there is one of and that no caption gives another colour;
- *number*: "two zebras", where nothing says otherwise;
- *there*: nouns with an article before them.

Captions that speak of what is not there, or of likenesses ("no", "without", "looks like", "statue"), are left aside.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pairwright.datasets.records import Pair
from pairwright.generators.captions.context import ImageWords, loosely_same
from pairwright.generators.facts import questions
from pairwright.generators.facts.caption_words import (
    ACTING,
    ARTICLES,
    AT_SETTING,
    CLAUSE,
    COLOURS,
    CONCEPTS,
    DETERMINED,
    DOERS,
    LYING,
    MATERIALS,
    NAMED,
    NUMBERS,
    PLACES,
    SETTINGS,
    THINGS,
    UNSURE,
    WORD,
    action_of,
    article_before,
    before_participle,
    begins,
    ends,
    is_place,
    nouns_in,
    rest_of,
)
from pairwright.generators.facts.consistency import disputed_names
from pairwright.generators.facts.fact import Fact, names
from pairwright.generators.facts.plain_caption import plain
from pairwright.generators.words.attributes import NEIGHBOURS
from pairwright.generators.words.nouns import OF_PEOPLE, OPEN_PLACES
from pairwright.generators.words.relations import GROUNDS, INDOORS, OUTDOORS, ROOMS

MOST_THERE = 4
_AND = re.compile(r"(?<=\s)&(?=\s)")
MOST_WORDS = 14  # of what somebody does


@dataclass(frozen=True)
class CaptionFacts:
    """What can be asked about the captions of a pair; ``words`` are those of the pair."""

    pair: Pair
    words: ImageWords

    @cached_property
    def _clauses(self) -> tuple[tuple[str, ...], ...]:
        """The clauses of all sure captions, words as written."""
        said = (plain(caption) for caption in (self.pair.caption, *self.pair.captions))
        captions = dict.fromkeys(_AND.sub("and", caption) for caption in said)
        found = []
        for caption in captions:
            if UNSURE.isdisjoint(WORD.findall(caption.lower())):
                found += [tuple(WORD.findall(part)) for part in CLAUSE.split(caption)]
        return tuple(clause for clause in found if len(clause) > 1)

    @cached_property
    def _lower(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(word.lower() for word in clause) for clause in self._clauses)

    def is_one(self, noun: str) -> bool:
        """Whether there is one of it, as far as boxes and captions tell."""
        if noun in OF_PEOPLE and self.words.labels.get("person", 0) > 1:
            return False
        names_of_it = loosely_same(noun) if noun not in OF_PEOPLE else {noun}
        return not any(self.words.several(name) or name in self.words.crowds for name in names_of_it)

    @cached_property
    def _nouns(self) -> tuple[tuple[tuple[str, int, int], ...], ...]:
        """The known nouns of each clause, as `nouns_in` gives them."""
        return tuple(tuple(nouns_in(lower)) for lower in self._lower)

    def _found(self, known: frozenset[str]) -> Iterator[tuple[int, str, int, int]]:
        """Yield (number of the clause, noun, start, end) of each noun that is among ``known``."""
        for at, nouns in enumerate(self._nouns):
            yield from ((at, noun, start, end) for noun, start, end in nouns if noun in known)

    def _speaks_of_one(self, noun: str) -> bool:
        return any(
            " ".join(self._lower[at][start:end]) == noun and article_before(self._lower[at], start)
            for at, _, start, end in self._found(frozenset((noun,)))
        )

    def _boxes(self, noun: str) -> int:
        return self.words.labels.get("person" if noun in OF_PEOPLE else noun, 0)

    @cached_property
    def disputed(self) -> frozenset[str]:
        """The names for somebody on which the captions disagree."""
        return disputed_names(self.words, (noun for _, noun, *_ in self._found(DOERS)))

    def doing(self) -> list[Fact]:
        """Return what persons and animals do, each question once."""
        facts: dict[tuple[str, str], Fact] = {}
        for number, noun, start, end in self._found(DOERS - self.disputed):
            clause, lower = self._clauses[number], self._lower[number]
            fact = self._deed(noun, lower, clause, start, end)
            if fact is not None:
                action = fact.fields["action"] if fact.wordings is questions.ACTING else ""
                _add(facts, fact, action)
        return list(facts.values())

    def _deed(self, noun: str, lower: Sequence[str], clause: Sequence[str], start: int, end: int) -> Fact | None:
        several = lower[start:end] != tuple(noun.split())
        at = end + (lower[end : end + 1] in {("is",), ("are",)})
        action = action_of(lower[at] if at < len(lower) else "", several=several and at == end, alone=at == end)
        if not action:
            return None
        if several and (self._speaks_of_one(noun) or self._boxes(noun) == 1):
            return None
        if not several and not (article_before(lower, start) and self.is_one(noun)):
            return None
        rest = rest_of(clause[at + 1 :], DOERS)
        if rest is not None and action not in LYING:
            rest = before_participle(rest)
        if rest is None or len(rest) > MOST_WORDS or (not several and {"each", "together", "other"} & set(rest)):
            return None
        fields = {"noun": " ".join(lower[start:end]), "verb": "are" if several else "is", "action": action}
        fields["rest"] = "".join(f" {word}" for word in rest)
        acting = action in ACTING and bool(rest) and rest[0].lower() in DETERMINED
        return Fact(questions.ACTING if acting else questions.DOING, questions.DOES, fields, about=(noun,))

    def where(self) -> list[Fact]:
        """Return where single things are."""
        facts: dict[str, Fact] = {}
        for number, noun, start, end in self._found(THINGS - self.disputed):
            clause, lower = self._clauses[number], self._lower[number]
            if noun in facts or " ".join(lower[start:end]) != noun or not begins(lower, start):
                continue
            at = end + (lower[end : end + 1] == ("is",))
            at += at < len(lower) and lower[at] in LYING and noun not in DOERS
            place = next((p for p in PLACES if lower[at : at + len(p.split())] == tuple(p.split())), "")
            beyond = at + len(place.split())
            if not place or lower[beyond : beyond + 1] == () or lower[beyond] not in DETERMINED - {"its", "their"}:
                continue
            rest = before_participle(rest_of(clause[beyond:], frozenset(), ands=False) or ())
            if 1 < len(rest) <= MOST_WORDS and is_place(rest) and self.is_one(noun):
                fields = {"noun": noun, "place": f"{place} {' '.join(rest)}"}
                facts[noun] = Fact(questions.WHERE_IS, questions.IS_WHERE, fields, about=(noun,))
        return list(facts.values())

    def setting(self) -> list[Fact]:
        """Return the place of the scene, when the captions name one."""
        found: dict[str, str] = {}
        for at, place, start, end in self._found(SETTINGS):
            lower = self._lower[at]
            before = lower[start - 2 : start] if start > 1 else ()
            if len(before) == 2 and before[0] in AT_SETTING and before[1] in {"a", "an", "the"}:
                found.setdefault(place, " ".join((*before, *lower[start:end])))
        if len(found) != 1:
            return []
        [(place, said)] = found.items()
        others = (name for name in SETTINGS if name != place and self.words.has(name))
        if any(name not in place and place not in name for name in others) or self._is_doubted(place):
            return []
        return [Fact(questions.SETTING, questions.TAKES_PLACE, {"place": said}, about=(place,))]

    def _is_doubted(self, place: str) -> bool:
        """Whether a caption has a room outdoors, or the open air in a room."""
        if place.rpartition(" ")[2] in ROOMS:
            return not (OUTDOORS | GROUNDS).isdisjoint(self.words.all)
        return place in OPEN_PLACES | GROUNDS and not (ROOMS | INDOORS).isdisjoint(self.words.all)

    def colours(self) -> list[Fact]:
        """Return the colours of single things."""
        facts: dict[tuple[str, str], Fact] = {}
        for at, noun, start, end in self._found(THINGS):
            lower = self._lower[at]
            colour = lower[start - 1] if start > 1 else ""
            if colour not in COLOURS or lower[start - 2] not in ARTICLES or " ".join(lower[start:end]) != noun:
                continue
            if start > 2 and lower[start - 3] in COLOURS:  # "a red an orange meter"
                continue
            if self.is_one(noun) and not self.words.other_colour(noun, colour):
                _add(facts, colour_fact(noun, colour))
        return list(facts.values())

    def materials(self) -> list[Fact]:
        """Return what single things are made of."""
        facts: dict[tuple[str, str], Fact] = {}
        for at, noun, start, end in self._found(THINGS - DOERS):
            lower = self._lower[at]
            material = MATERIALS.get(lower[start - 1], "") if start > 1 else ""
            if not material or lower[start - 2] not in ARTICLES or " ".join(lower[start:end]) != noun:
                continue
            others = (word for word, other in MATERIALS.items() if other != material)
            if self.is_one(noun) and not any(self.words.said_with(noun, word) for word in others):
                fields = {"noun": noun, "material": material}
                _add(facts, Fact(questions.MADE_OF, questions.IS_MADE_OF, fields, short="{material}", about=(noun,)))
        return list(facts.values())

    def numbers(self, boxes: Mapping[str, int]) -> list[Fact]:
        """Return how many there are of things that are without boxes, or have as many; at least two.

        Args:
            boxes: label -> number of boxes; -1 where there is a crowd.
        """
        facts: dict[str, Fact] = {}
        for at, noun, start, end in self._found(THINGS):
            lower = self._lower[at]
            number = NUMBERS.get(lower[start - 1], 0) if start else 0
            if not number or " ".join(lower[start:end]) == noun or boxes.get(noun, number) != number:
                continue
            if noun in OF_PEOPLE and 0 < self._boxes(noun) < number:
                continue
            if self.words.is_number(noun, number) and not self._speaks_of_one(noun):
                facts.setdefault(noun, count_fact(noun, number))
        return list(facts.values())

    def there(self) -> list[Fact]:
        """Return a few single things that captions name and no box has."""
        facts: dict[str, Fact] = {}
        marked = {word for label in self.words.labels for word in label.split()}
        for at, noun, start, end in self._found(NAMED):
            lower = self._lower[at]
            same = loosely_same(noun) | set(noun.split())
            if same.intersection(self.words.labels) or noun in marked or not same.isdisjoint(facts):
                continue
            if " ".join(lower[start:end]) == noun and article_before(lower, start) and ends(lower, end):
                fields = names(noun)
                facts[noun] = Fact(
                    questions.IS_THERE_ONE, questions.YES_ONE, fields, "yes", about=(noun,), presence=True
                )
        return list(facts.values())[:MOST_THERE]


def colour_fact(noun: str, colour: str) -> Fact:
    """Return the question of a colour; its wrong options are no neighbours of the right one."""
    concept = COLOURS[colour]
    wrong = tuple(each for each in CONCEPTS if each != concept and frozenset((each, concept)) not in NEIGHBOURS)
    fields = {"noun": noun, "colour": colour}
    return Fact(questions.WHAT_COLOUR, questions.COLOUR, fields, short="{colour}", wrong=wrong, about=(noun,))


def count_fact(label: str, number: int) -> Fact:
    """Return the question of a number, 0 to 9; its wrong options are other numbers near it."""
    answer = (questions.COUNT_NONE, questions.COUNT_ONE, questions.COUNT_MANY)[min(number, 2)]
    # Of small numbers the options are the same whichever is right; of others, the right one may stand anywhere.
    near = range(4) if number < 4 else range(number - 2, number + 3)
    wrong = tuple(str(other) for other in near if other != number)
    return Fact(questions.HOW_MANY, answer, names(label, number), short="{number}", wrong=wrong, about=(label,))


def _add(facts: dict[tuple[str, str], Fact], fact: Fact, matter: str = "") -> None:
    """Add a fact, unless the same is known of what is called the same ("couch", "sofa")."""
    [noun] = fact.about
    same = loosely_same(noun)
    if not any(other in same and asked == matter for other, asked in facts):
        facts[noun, matter] = fact
