"""Facts about an image that questions can be asked about, and the removal of facts that contradict each other.

Captions of an image sometimes disagree: one has a man and another a woman, one a cat sitting and another a cat
standing, one a red clock and another a green one. Both answers would be in some caption, and the conversation would
contradict itself. Therefore

- if captions give a single person or animal names that exclude each other ("man" and "woman", "dog" and "cat"), only
  the name of most captions is used, and neither if there are equally many;
- two facts about actions or colours that exclude each other are both dropped.

Captions are compared by words only.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pairwright.generators.captions.image_words import ImageWords, plural_of
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.caption_lexicon import AGENT_NOUNS
from pairwright.generators.language.inflection import article
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.lexicon.nouns import flagged, gendered_words, loosely_same
from pairwright.generators.lexicon.relations import load_relations

_INITIALS = re.compile(r"\btv(?=s?\b)")


@dataclass(frozen=True, slots=True)
class Fact:
    """A question with its answer, as templates.

    Attributes:
        wordings: alternative templates of the question.
        answer: template of the full-sentence answer.
        fields: values of the template fields.
        says: ``yes`` or ``no`` for yes-no questions, else empty.
        short: template of the answer in a word or phrase, or empty.
        wrong: templates of wrong short answers, for multiple choice.
        about: labels or nouns that the fact is about.
        presence: whether the question is about the presence of something.
    """

    wordings: tuple[str, ...]
    answer: str
    fields: Mapping[str, str]
    says: str = ""
    short: str = ""
    wrong: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    presence: bool = False

    def question(self, rng: random.Random) -> str:
        """Return the question in one of its wordings."""
        return self.filled(rng.choice(self.wordings))

    def full(self) -> str:
        """Return the answer as a sentence."""
        return self.filled(self.answer)

    def brief(self) -> str:
        """Return the short answer, capitalised, or an empty string."""
        answer = {"yes": "Yes", "no": "No"}.get(self.says) or self.filled(self.short)
        return answer[:1].upper() + answer[1:]

    def options(self) -> list[str]:
        """Return the wrong options, capitalised."""
        return [option[:1].upper() + option[1:] for option in map(self.filled, self.wrong)]

    def filled(self, text: str) -> str:
        """Return a template with its fields filled in; "tv", as labels spell it, becomes "TV"."""
        return _INITIALS.sub("TV", text.format_map(self.fields))


def label_fields(label: str, count: int = 1) -> dict[str, str]:
    """Return the template fields of a label: noun, nouns, a_noun, count (in words), number (in digits)."""
    return {
        "noun": label,
        "nouns": plural_of(label),
        "a_noun": f"{article(label)} {label}",
        "count": NUMBER_WORDS[count - 1] if count else "no",
        "number": str(count),
    }


Line = Sequence[str]
_SEXES = (gendered_words("male"), gendered_words("female"))


def contradictory_person_nouns(words: ImageWords, found: Iterable[str]) -> frozenset[str]:
    """Return the nouns for people and animals on which the captions disagree, so that no question should use them.

    Args:
        words: words of all captions of the image.
        found: nouns for people and animals in the captions.
    """
    nouns = sorted(set(found))
    lines = [line for line in (words.own, *words.others) if line]
    contradictory_nouns = _less_frequent_names(lines, *_SEXES) if not _mentions_several_people(lines) else frozenset()
    for one, other in combinations([noun for noun in nouns if noun not in flagged("individual")], 2):
        if other not in loosely_same(one):
            contradictory_nouns |= _less_frequent_names(lines, _forms(one), _forms(other))
    return contradictory_nouns.intersection(nouns)


def _mentions_several_people(lines: Iterable[Line]) -> bool:
    """Return whether a caption mentions a group of people, so that two nouns may mean different persons."""
    return any(not flagged("gathering").isdisjoint(line) for line in lines)


def _less_frequent_names(lines: Sequence[Line], one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the names that fewer captions use; both if equally many do, none if a caption uses both."""
    with_one = [not one.isdisjoint(line) for line in lines]
    with_other = [not other.isdisjoint(line) for line in lines]
    both = any(a and b for a, b in zip(with_one, with_other, strict=True))
    if both or not any(with_one) or not any(with_other):
        return frozenset()
    first, second = sum(with_one), sum(with_other)
    return (one if first <= second else frozenset()) | (other if second <= first else frozenset())


def _forms(noun: str) -> frozenset[str]:
    return frozenset((noun, plural_of(noun)))


def drop_contradictions(kinds: Sequence[Sequence[Fact]]) -> list[list[Fact]]:
    """Return the lists of facts without those that contradict another fact."""
    facts = [fact for facts in kinds for fact in facts]
    dropped = {id(fact) for two in _contradictions(facts) for fact in two}
    return [[fact for fact in facts if id(fact) not in dropped] for facts in kinds]


def _contradictions(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    for two in combinations([fact for fact in facts if fact.wordings is question_templates.WHAT_COLOUR], 2):
        if _same_thing(*two) and two[0].fields["colour"] != two[1].fields["colour"]:
            yield two
    for two in combinations([fact for fact in facts if fact.wordings is question_templates.DOING], 2):
        if _same_agent(*two) and are_exclusive_actions(*(fact.fields["action"] for fact in two)):
            yield two


def are_exclusive_actions(action: str, other: str) -> bool:
    """Return whether two actions exclude each other ("sitting" and "standing")."""
    return load_relations().exclusive(lemmatize(action, "VBG"), lemmatize(other, "VBG"))


def _same_thing(one: Fact, other: Fact) -> bool:
    """Return whether two facts are about nouns with the same head ("metal clock", "clock") or synonyms."""
    first, second = one.about[0], other.about[0]
    heads = first.rpartition(" ")[2], second.rpartition(" ")[2]
    return heads[0] == heads[1] or second in loosely_same(first)


def _same_agent(one: Fact, other: Fact) -> bool:
    """Return whether two facts may be about the same person or animal, whatever noun they use."""
    first, second = one.about[0], other.about[0]
    if one.fields["verb"] != other.fields["verb"]:
        return False
    if first in flagged("individual") and second in flagged("individual"):
        return not any(first in sex and second in other_sex for sex, other_sex in (_SEXES, _SEXES[::-1]))
    return first in AGENT_NOUNS and second in AGENT_NOUNS and (first == second or second in loosely_same(first))
