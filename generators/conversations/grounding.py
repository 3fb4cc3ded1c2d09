"""All facts about an image: those of boxes, those of captions, and those that need both.

`box_facts` covers positions and sizes, `caption_facts` the words of captions; here are presence and absence, numbers,
and colours from the tagged caption.

Presence, absence and numbers are asked only for labels in `vocabulary`, which the source annotates wherever they occur.
Labels with a crowd (`captions/image_words.py`) are neither absent nor counted. Labels with ten boxes or more are not
counted, since sources stop annotating crowds one by one. Labels that cannot be part of an English sentence (other
scripts, line breaks, tokens such as <image>, more than 60 characters) are not used. Every second absent label shares a
group (`label_sets`) with a present one, which makes it more plausible.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from pairwright.datasets.records import Box, Pair
from pairwright.generators.captions.image_words import ImageWords, plural_of
from pairwright.generators.captions.phrases import PLURAL, NounPhrase, noun_phrases
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.box_facts import MAX_PAIRS, box_facts, measurement_facts
from pairwright.generators.conversations.caption_facts import CaptionFacts, colour_fact, count_fact
from pairwright.generators.conversations.caption_lexicon import COLOURS
from pairwright.generators.conversations.facts import Fact, drop_contradictions, label_fields
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.label_sets import GROUP_OF
from pairwright.generators.lexicon.nouns import flagged, loosely_same

MAX_COUNT = 9
MAX_ABSENT = 2  # counting questions whose answer is zero
ABSENT_OPTIONS = 3
MAX_EITHER_OR = 2

_NAMEABLE = re.compile(r"(?=.*[a-z\u00df-\u024f])[ -;=?-~\u00a1-\u024f’]{1,60}")
MASS, PLURAL_ONLY = flagged("mass"), flagged("plural_only")


@dataclass(frozen=True, slots=True)
class Grounding:
    """Boxes by label, noun phrases of the caption and words of all captions of one image."""

    pair: Pair
    boxes: dict[str, tuple[Box, ...]]
    tokens: Sequence[Token]
    phrases: tuple[NounPhrase, ...]
    words: ImageWords
    vocabulary: tuple[str, ...]

    @classmethod
    def of(cls, pair: Pair, tokens: Sequence[Token], vocabulary: Sequence[str]) -> "Grounding":
        """Return the grounding of ``pair``; ``tokens`` are the tokens of its caption."""
        boxes: dict[str, list[Box]] = {}
        for box in pair.boxes:
            boxes.setdefault(box.label.strip().lower(), []).append(box)
        found = {label: tuple(group) for label, group in boxes.items() if _NAMEABLE.fullmatch(label)}
        known = tuple(label for label in vocabulary if _NAMEABLE.fullmatch(label))
        return cls(pair, found, tokens, noun_phrases(tokens), ImageWords(pair), known)

    def facts(self, rng: random.Random) -> list[list[Fact]]:
        """Return the facts, one list for each kind of question, more informative kinds first; ``rng`` draws absent labels."""
        captions = CaptionFacts(self.pair, self.words)
        present = list(self._present())
        absent = self._absent(rng)
        if absent:  # otherwise no "no" could balance them
            # An exhaustively annotated label without a box contradicts the caption ("a dog bed").
            present += (fact for fact in captions.objects() if fact.about[0] not in self.vocabulary)
        counts = list(self._counts())
        counted = {fact.about for fact in counts}
        return drop_contradictions(
            [
                present,
                [_absence_fact(label, rng) for label in absent[: len(present)]],
                list(self._either(absent[len(present) + MAX_ABSENT :], rng)),
                captions.actions(),
                self._colours(captions),
                [*counts, *(fact for fact in captions.numbers(self._numbers()) if fact.about not in counted)],
                captions.places(),
                *box_facts(self._things(), self._groups(), self._marked(), self.boxes, rng),
                *measurement_facts(self._things(), self._groups(), self.boxes, rng),
                captions.materials(),
                captions.setting(),
                list(self._more(rng)),
                [
                    count_fact(label, 0)
                    for label in absent[len(present) :][:MAX_ABSENT]
                    if label not in PLURAL_ONLY | MASS
                ],
            ]
        )

    def _either(self, absent: Sequence[str], rng: random.Random) -> Iterator[Fact]:
        """Ask which of two labels is present, of which one is absent."""
        countable = [label for label in absent if label not in PLURAL_ONLY | MASS]
        labels = [label for label in self.boxes if label in self.vocabulary and label not in PLURAL_ONLY | MASS]
        for label, other in zip(rng.sample(labels, len(labels))[:MAX_EITHER_OR], countable, strict=False):
            field = "a_noun" if len(self.boxes[label]) == 1 and label not in self.words.crowds else "nouns"
            shown, absentee = label_fields(label)[field], label_fields(other)[field]
            one, two = rng.sample((shown, absentee), 2)
            fields = {"one": one, "two": two, "shown": shown}
            yield Fact(
                question_templates.ONE_OR_OTHER, question_templates.SHOWS, fields, short="{shown}", about=(label, other)
            )

    def which_present(self, rng: random.Random) -> list[Fact]:
        """Return multiple-choice questions about which label is present; the other options are absent."""
        absent = self._absent(rng)
        labels = [label for label in self.boxes if label in self.vocabulary]
        facts = []
        for label in rng.sample(labels, min(len(labels), len(absent) // ABSENT_OPTIONS)):
            wrong, absent = absent[:ABSENT_OPTIONS], absent[ABSENT_OPTIONS:]
            fields = dict(zip("abc", wrong, strict=True)) | {"shown": label}  # labels may contain braces
            options = ("{a}", "{b}", "{c}")
            facts.append(
                Fact(question_templates.WHICH_PRESENT, "", fields, short="{shown}", wrong=options, about=(label,))
            )
        return facts

    def _numbers(self) -> dict[str, int]:
        return {label: len(group) for label, group in self.boxes.items()} | dict.fromkeys(self.words.crowds, -1)

    def _things(self) -> list[str]:
        return [
            label
            for label, group in self.boxes.items()
            if len(group) == 1
            and _have_area(group)
            and label not in PLURAL_ONLY | MASS | self.words.crowds
            and not self.words.has(plural_of(label))
        ]

    def _groups(self) -> list[str]:
        return [
            label
            for label, group in self.boxes.items()
            if len(group) > 1
            and _have_area(group)
            and label in self.vocabulary
            and label not in PLURAL_ONLY | MASS
            and self._is_counted(label, len(group))
        ]

    def _marked(self) -> list[str]:
        """Return the countable labels with several boxes of nonzero area and no crowd."""
        known = (label for label in self.boxes if label in self.vocabulary and label not in PLURAL_ONLY | MASS)
        several = (label for label in known if len(self.boxes[label]) > 1 and label not in self.words.crowds)
        return [label for label in several if _have_area(self.boxes[label])]

    def _present(self) -> Iterator[Fact]:
        for label in dict.fromkeys([*self.boxes, *sorted(self.words.crowds)]):
            if label not in self.vocabulary:
                continue
            number = len(self.boxes.get(label, ()))
            wordings: tuple[str, ...]
            if label in MASS:
                wordings, answer = question_templates.IS_THERE_SOME, question_templates.YES_MASS
            elif label not in PLURAL_ONLY and number == 1 and self._is_counted(label, number):
                wordings, answer = question_templates.IS_THERE_ONE, question_templates.YES_ONE
            elif label in PLURAL_ONLY or number > 1 or label in self.words.crowds:
                wordings, answer = question_templates.ARE_THERE_ANY, question_templates.YES_ANY
            else:
                continue
            fields = label_fields(label) | ({"nouns": label} if label in PLURAL_ONLY else {})
            yield Fact(wordings, answer, fields, "yes", about=(label,), presence=True)

    def _absent(self, rng: random.Random) -> list[str]:
        """Return the absent labels in random order, every second one from a group with a present label.

        An image without any annotation may not have been annotated at all, so it has no absent labels.
        """
        if not self.boxes and not self.words.crowds:
            return []
        absent = [label for label in self.vocabulary if label not in self.boxes and not self.words.mentions_noun(label)]
        rng.shuffle(absent)
        groups = {GROUP_OF.get(label, "") for label in self.boxes} - {""}
        near = [label for label in absent if GROUP_OF.get(label) in groups]
        far = [label for label in absent if GROUP_OF.get(label) not in groups]
        mixed = [label for two in zip(near, far, strict=False) for label in two]
        least = min(len(near), len(far))
        return [*mixed, *near[least:], *far[least:]]

    def _counts(self) -> Iterator[Fact]:
        for label, group in self.boxes.items():
            if label in self.vocabulary and label not in PLURAL_ONLY | MASS and self._is_counted(label, len(group)):
                yield count_fact(label, len(group))

    def _more(self, rng: random.Random) -> Iterator[Fact]:
        counted = [fact.about[0] for fact in self._counts()]
        pairs = [two for two in combinations(counted, 2) if len(self.boxes[two[0]]) != len(self.boxes[two[1]])]
        for two in rng.sample(pairs, min(len(pairs), MAX_PAIRS)):
            first, second = rng.sample(two, 2)
            more = len(self.boxes[first]) > len(self.boxes[second])
            answer = question_templates.YES_MORE if more else question_templates.NO_FEWER
            fields = {"nouns": plural_of(first), "others": plural_of(second)}
            yield Fact(question_templates.MORE_THAN, answer, fields, "yes" if more else "no", about=two)

    def _is_counted(self, label: str, number: int) -> bool:
        """Return whether the number of boxes is confirmed: no crowd, and no caption contradicts it."""
        return 1 <= number <= MAX_COUNT and self.words.may_be_exact_count(label, number)

    def _colours(self, captions: CaptionFacts) -> list[Fact]:
        facts = {fact.about: fact for fact in self._parsed_colours()}
        named = {name for about in facts for name in loosely_same(about[0])}
        facts |= {fact.about: fact for fact in captions.colours() if fact.about[0] not in named}
        return list(facts.values())

    def _parsed_colours(self) -> Iterator[Fact]:
        heads = Counter(self.tokens[phrase.head].lemma for phrase in self.phrases)
        for phrase in self.phrases:
            colour = self._colour(phrase)
            noun = " ".join(self.tokens[at].text.lower() for at in phrase.nouns)
            if not colour or heads[self.tokens[phrase.head].lemma] > 1 or not self._is_one(noun):
                continue
            if not self.words.has_other_colour(noun, colour):
                yield colour_fact(noun, colour)

    def _colour(self, phrase: NounPhrase) -> str:
        """Return the colour of a singular noun phrase with exactly one, or an empty string."""
        determiner = self.tokens[phrase.determiner].text.lower() if phrase.determiner >= 0 else ""
        if determiner not in {"a", "an", "the"} or phrase.joined or phrase.count >= 0:
            return ""
        before = self.tokens[phrase.start - 1].text.lower() if phrase.start else ""
        if self.tokens[phrase.head].tag in PLURAL or before in COLOURS:  # "a red an orange meter"
            return ""
        inside = [token.text.lower() for token in self.tokens[phrase.start : phrase.end]]
        colours = [word for word in inside if word in COLOURS]
        shaded = {"light", "dark", "bright", "pale", "and", "or"}.intersection(inside)
        return colours[0] if len(colours) == 1 and inside[-1] != colours[0] and not shaded else ""

    def _is_one(self, noun: str) -> bool:
        boxes = self.boxes.get(noun)
        return (boxes is None or len(boxes) == 1) and not self.words.has(plural_of(noun))


def _have_area(boxes: Sequence[Box]) -> bool:
    """Return whether all boxes have a nonzero area; lines and points are annotation errors."""
    return all(box.x2 > box.x1 and box.y2 > box.y1 for box in boxes)


def _absence_fact(label: str, rng: random.Random) -> Fact:
    if label in MASS:
        return Fact(
            question_templates.IS_THERE_SOME,
            question_templates.NO_ONE,
            label_fields(label),
            "no",
            about=(label,),
            presence=True,
        )
    if label in PLURAL_ONLY:
        fields = label_fields(label) | {"nouns": label}
        return Fact(
            question_templates.ARE_THERE_ANY, question_templates.NO_MANY, fields, "no", about=(label,), presence=True
        )
    one = rng.random() < 0.5
    wordings = question_templates.IS_THERE_ONE if one else question_templates.ARE_THERE_ANY
    answer = question_templates.NO_ONE if one else question_templates.NO_MANY
    return Fact(wordings, answer, label_fields(label), "no", about=(label,), presence=True)
