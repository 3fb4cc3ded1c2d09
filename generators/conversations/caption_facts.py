"""Facts that follow from the words of an image's captions.

All captions are read, without a tagger (tagging them would cost far more than everything else), by lists of nouns and
function words and a few patterns that must match word by word. Recall is low, precision high:

- *actions*: "a man riding a horse", of one person or animal, or of several of a kind;
- *places*: "a laptop on a wooden desk", of a thing that occurs once;
- *setting*: "in a kitchen", if the captions name exactly one such place;
- *materials*: "a wooden table", of a thing that occurs once;
- *colours*: "a red car", of a thing that occurs once and has no other colour in any caption;
- *numbers*: "two zebras", if neither captions nor boxes contradict it;
- *objects*: nouns with an article before them.

Captions about absent things or likenesses ("no", "without", "looks like", "statue") are skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pairwright.datasets.captions.cleaning import clean_caption
from pairwright.datasets.records import Pair
from pairwright.generators.captions.image_words import ImageWords
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.caption_lexicon import (
    AGENT_NOUNS,
    ARTICLES,
    CLAUSE,
    COLOURS,
    CONCEPTS,
    CONCRETE_NOUNS,
    DETERMINED,
    MATERIALS,
    NUMBERS,
    OBJECT_NOUNS,
    PLACE_PREPOSITIONS,
    POSTURE_VERBS,
    SETTING_PREPOSITIONS,
    SETTINGS,
    TRANSITIVE_PARTICIPLES,
    UNCERTAIN_WORDS,
    WORD,
    action_of,
    article_before,
    cut_at_participle,
    ends_noun_phrase,
    is_place,
    iter_nouns,
    starts_clause,
    verb_complement,
)
from pairwright.generators.conversations.facts import Fact, contradictory_person_nouns, label_fields
from pairwright.generators.lexicon.attributes import neighbours
from pairwright.generators.lexicon.nouns import flagged, loosely_same

MAX_PRESENT = 4
_AND = re.compile(r"(?<=\s)&(?=\s)")
MAX_WORDS = 14  # of an action or a place

_INDOORS, _OUTDOORS = frozenset({"indoor", "indoors"}), frozenset({"outdoor", "outdoors", "outside"})


def _in_small_letters(caption: str) -> str:
    """Return a caption in small letters if it is all in capitals: an answer quotes a part of it."""
    return caption.lower() if caption.isupper() else caption


@dataclass(frozen=True)
class CaptionFacts:
    """Facts of the captions of a pair; ``words`` are the words of its captions and boxes."""

    pair: Pair
    words: ImageWords

    @cached_property
    def _clauses(self) -> tuple[tuple[str, ...], ...]:
        """Clauses of all captions without uncertain words; words as written, of a caption in capitals in small letters."""
        cleaned = (_in_small_letters(clean_caption(caption)) for caption in (self.pair.caption, *self.pair.captions))
        captions = dict.fromkeys(_AND.sub("and", caption) for caption in cleaned)
        found = []
        for caption in captions:
            if UNCERTAIN_WORDS.isdisjoint(WORD.findall(caption.lower())):
                found += [tuple(WORD.findall(part)) for part in CLAUSE.split(caption)]
        return tuple(clause for clause in found if len(clause) > 1)

    @cached_property
    def _lower(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(word.lower() for word in clause) for clause in self._clauses)

    def is_one(self, noun: str) -> bool:
        """Return whether neither boxes nor captions show more than one of it."""
        if noun in flagged("individual") and self.words.labels.get("person", 0) > 1:
            return False
        synonyms = loosely_same(noun) if noun not in flagged("individual") else {noun}
        return not any(self.words.several(name) or name in self.words.crowds for name in synonyms)

    @cached_property
    def _nouns(self) -> tuple[tuple[tuple[str, int, int], ...], ...]:
        """Known nouns of each clause, as from `iter_nouns`."""
        return tuple(tuple(iter_nouns(lower)) for lower in self._lower)

    def _found(self, known: frozenset[str]) -> Iterator[tuple[int, str, int, int]]:
        """Yield (index of the clause, noun, start, end) of each noun in ``known``."""
        for at, nouns in enumerate(self._nouns):
            yield from ((at, noun, start, end) for noun, start, end in nouns if noun in known)

    def _speaks_of_one(self, noun: str) -> bool:
        return any(
            " ".join(self._lower[at][start:end]) == noun and article_before(self._lower[at], start)
            for at, _, start, end in self._found(frozenset((noun,)))
        )

    def _boxes(self, noun: str) -> int:
        return self.words.labels.get("person" if noun in flagged("individual") else noun, 0)

    @cached_property
    def contradictory_nouns(self) -> frozenset[str]:
        """Nouns for people and animals on which the captions disagree."""
        return contradictory_person_nouns(self.words, (noun for _, noun, *_ in self._found(AGENT_NOUNS)))

    def actions(self) -> list[Fact]:
        """Return what people and animals do, each question once."""
        facts: dict[tuple[str, str], Fact] = {}
        for number, noun, start, end in self._found(AGENT_NOUNS - self.contradictory_nouns):
            clause, lower = self._clauses[number], self._lower[number]
            fact = self._action_fact(noun, lower, clause, start, end)
            if fact is not None:
                action = fact.fields["action"] if fact.wordings is question_templates.ACTING else ""
                _add_once(facts, fact, action)
        return list(facts.values())

    def _action_fact(self, noun: str, lower: Sequence[str], clause: Sequence[str], start: int, end: int) -> Fact | None:
        several = lower[start:end] != tuple(noun.split())
        at = end + (lower[end : end + 1] in {("is",), ("are",)})
        action = action_of(lower[at] if at < len(lower) else "", several=several and at == end, alone=at == end)
        if not action:
            return None
        if several and (self._speaks_of_one(noun) or self._boxes(noun) == 1):
            return None
        if not several and not (article_before(lower, start) and self.is_one(noun)):
            return None
        rest = verb_complement(clause[at + 1 :], AGENT_NOUNS)
        if rest is not None and action not in POSTURE_VERBS:
            rest = cut_at_participle(rest)
        if rest is None or len(rest) > MAX_WORDS or (not several and {"each", "together", "other"} & set(rest)):
            return None
        fields = {"noun": " ".join(lower[start:end]), "verb": "are" if several else "is", "action": action}
        fields["rest"] = "".join(f" {word}" for word in rest)
        acting = action in TRANSITIVE_PARTICIPLES and bool(rest) and rest[0].lower() in DETERMINED
        return Fact(
            question_templates.ACTING if acting else question_templates.DOING,
            question_templates.DOES,
            fields,
            about=(noun,),
        )

    def places(self) -> list[Fact]:
        """Return the places of things that occur once."""
        facts: dict[str, Fact] = {}
        for number, noun, start, end in self._found(CONCRETE_NOUNS - self.contradictory_nouns):
            clause, lower = self._clauses[number], self._lower[number]
            if noun in facts or " ".join(lower[start:end]) != noun or not starts_clause(lower, start):
                continue
            at = end + (lower[end : end + 1] == ("is",))
            at += at < len(lower) and lower[at] in POSTURE_VERBS and noun not in AGENT_NOUNS
            place = next((p for p in PLACE_PREPOSITIONS if lower[at : at + len(p.split())] == tuple(p.split())), "")
            beyond = at + len(place.split())
            if not place or lower[beyond : beyond + 1] == () or lower[beyond] not in DETERMINED - {"its", "their"}:
                continue
            rest = cut_at_participle(verb_complement(clause[beyond:], frozenset(), ands=False) or ())
            if 1 < len(rest) <= MAX_WORDS and is_place(rest) and self.is_one(noun):
                fields = {"noun": noun, "place": f"{place} {' '.join(rest)}"}
                facts[noun] = Fact(question_templates.WHERE_IS, question_templates.IS_WHERE, fields, about=(noun,))
        return list(facts.values())

    def setting(self) -> list[Fact]:
        """Return the place of the scene, if the captions name exactly one."""
        found: dict[str, str] = {}
        for at, place, start, end in self._found(SETTINGS):
            lower = self._lower[at]
            before = lower[start - 2 : start] if start > 1 else ()
            if len(before) == 2 and before[0] in SETTING_PREPOSITIONS and before[1] in {"a", "an", "the"}:
                found.setdefault(place, " ".join((*before, *lower[start:end])))
        if len(found) != 1:
            return []
        [(place, phrase)] = found.items()
        others = (name for name in SETTINGS if name != place and self.words.has(name))
        if any(name not in place and place not in name for name in others) or self._is_contradicted(place):
            return []
        return [Fact(question_templates.SETTING, question_templates.TAKES_PLACE, {"place": phrase}, about=(place,))]

    def _is_contradicted(self, place: str) -> bool:
        """Return whether a caption contradicts a place: an outdoor word for a room, or an indoor word for a field."""
        rooms, grounds = flagged("room"), flagged("ground")
        if place.rpartition(" ")[2] in rooms:
            return not (_OUTDOORS | grounds).isdisjoint(self.words.all)
        return place in flagged("open") | grounds and not (_INDOORS | rooms).isdisjoint(self.words.all)

    def colours(self) -> list[Fact]:
        """Return the colours of things that occur once."""
        facts: dict[tuple[str, str], Fact] = {}
        for at, noun, start, end in self._found(CONCRETE_NOUNS):
            lower = self._lower[at]
            colour = lower[start - 1] if start > 1 else ""
            if colour not in COLOURS or lower[start - 2] not in ARTICLES or " ".join(lower[start:end]) != noun:
                continue
            if start > 2 and lower[start - 3] in COLOURS:  # "a red an orange meter"
                continue
            if self.is_one(noun) and not self.words.has_other_colour(noun, colour):
                _add_once(facts, colour_fact(noun, colour))
        return list(facts.values())

    def materials(self) -> list[Fact]:
        """Return the materials of things that occur once."""
        facts: dict[tuple[str, str], Fact] = {}
        for at, noun, start, end in self._found(CONCRETE_NOUNS - AGENT_NOUNS):
            lower = self._lower[at]
            material = MATERIALS.get(lower[start - 1], "") if start > 1 else ""
            if not material or lower[start - 2] not in ARTICLES or " ".join(lower[start:end]) != noun:
                continue
            others = (word for word, other in MATERIALS.items() if other != material)
            if self.is_one(noun) and not any(self.words.states_attribute(noun, word) for word in others):
                fields = {"noun": noun, "material": material}
                _add_once(
                    facts,
                    Fact(
                        question_templates.MADE_OF,
                        question_templates.IS_MADE_OF,
                        fields,
                        short="{material}",
                        about=(noun,),
                    ),
                )
        return list(facts.values())

    def numbers(self, boxes: Mapping[str, int]) -> list[Fact]:
        """Return the numbers of things that have no boxes or an equal number of boxes; at least two.

        Args:
            boxes: label -> number of boxes; -1 for a crowd.
        """
        facts: dict[str, Fact] = {}
        for at, noun, start, end in self._found(CONCRETE_NOUNS):
            lower = self._lower[at]
            number = NUMBERS.get(lower[start - 1], 0) if start else 0
            if not number or " ".join(lower[start:end]) == noun or boxes.get(noun, number) != number:
                continue
            if noun in flagged("individual") and 0 < self._boxes(noun) < number:
                continue
            if self.words.may_be_exact_count(noun, number) and not self._speaks_of_one(noun):
                facts.setdefault(noun, count_fact(noun, number))
        return list(facts.values())

    def objects(self) -> list[Fact]:
        """Return at most `MAX_PRESENT` things that captions name in the singular and no box has."""
        facts: dict[str, Fact] = {}
        marked = {word for label in self.words.labels for word in label.split()}
        for at, noun, start, end in self._found(OBJECT_NOUNS):
            lower = self._lower[at]
            same = loosely_same(noun) | set(noun.split())
            if same.intersection(self.words.labels) or noun in marked or not same.isdisjoint(facts):
                continue
            if " ".join(lower[start:end]) == noun and article_before(lower, start) and ends_noun_phrase(lower, end):
                fields = label_fields(noun)
                facts[noun] = Fact(
                    question_templates.IS_THERE_ONE,
                    question_templates.YES_ONE,
                    fields,
                    "yes",
                    about=(noun,),
                    presence=True,
                )
        return list(facts.values())[:MAX_PRESENT]


def colour_fact(noun: str, colour: str) -> Fact:
    """Return the question for a colour; wrong options exclude colours close to the right one."""
    concept = COLOURS[colour]
    wrong = tuple(each for each in CONCEPTS if each != concept and frozenset((each, concept)) not in neighbours())
    fields = {"noun": noun, "colour": colour}
    return Fact(
        question_templates.WHAT_COLOUR, question_templates.COLOUR, fields, short="{colour}", wrong=wrong, about=(noun,)
    )


def count_fact(label: str, number: int) -> Fact:
    """Return the question for a number, 0 to 9; wrong options are numbers near it."""
    answer = (question_templates.COUNT_NONE, question_templates.COUNT_ONE, question_templates.COUNT_MANY)[
        min(number, 2)
    ]
    # Small numbers share one set of options, so that the options give no hint.
    near = range(4) if number < 4 else range(number - 2, number + 3)
    wrong = tuple(str(other) for other in near if other != number)
    return Fact(
        question_templates.HOW_MANY, answer, label_fields(label, number), short="{number}", wrong=wrong, about=(label,)
    )


def _add_once(facts: dict[tuple[str, str], Fact], fact: Fact, matter: str = "") -> None:
    """Add a fact, unless there is one for a synonym of its noun ("couch", "sofa") on the same matter."""
    [noun] = fact.about
    same = loosely_same(noun)
    if not any(other in same and other_matter == matter for other, other_matter in facts):
        facts[noun, matter] = fact
