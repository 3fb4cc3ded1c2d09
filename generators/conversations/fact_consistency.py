"""Facts of one image that do not contradict each other.

Captions of an image disagree now and then: one has a man where another has a woman, one a cat sitting and another a cat
standing, one a red clock and another a green one. Each answer would be some caption's, and the conversation would
contradict itself. So

- who is named: where captions give somebody who is alone names that exclude each other ("man" and "woman", "dog" and
  "cat"), what most captions say counts, and of equally many none does;
- two facts that exclude each other are both dropped: what somebody does, and colours.

Captions are compared by words alone, as everywhere in `facts`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from pairwright.generators.captions.context import ImageWords, loosely_same, plural_of
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.caption_lexicon import AGENT_NOUNS
from pairwright.generators.conversations.facts import Fact
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.words.nouns import FEMALE, GATHERINGS, KINDS, MALE, OF_PEOPLE
from pairwright.generators.words.verbs import INSTEAD

Line = Sequence[str]
_SEXES = (MALE, FEMALE)


def contradictory_person_nouns(words: ImageWords, found: Iterable[str]) -> frozenset[str]:
    """Return those of the nouns for somebody that are not to be asked about, since captions disagree on who it is.

    Args:
        words: what all captions of the image say.
        found: nouns for people and animals that captions have.
    """
    nouns = sorted(set(found))
    lines = [line for line in (words.own, *words.others) if line]
    contradictory_nouns = _less_frequent_names(lines, *_SEXES) if not _mentions_several_people(lines) else frozenset()
    for one, other in combinations([noun for noun in nouns if noun not in OF_PEOPLE], 2):
        if other in KINDS.get(one, ()):
            contradictory_nouns |= _less_frequent_names(lines, _forms(one), _forms(other))
    return contradictory_nouns.intersection(nouns)


def _mentions_several_people(lines: Iterable[Line]) -> bool:
    """Whether somebody may be one of several people."""
    return any(not GATHERINGS.isdisjoint(line) for line in lines)


def _less_frequent_names(lines: Sequence[Line], one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the names that fewer captions have; both where as many do, none where a caption has both."""
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
    """Return the facts, in their lists, without those that contradict another one."""
    facts = [fact for facts in kinds for fact in facts]
    gone = {id(fact) for two in _contradictions(facts) for fact in two}
    return [[fact for fact in facts if id(fact) not in gone] for facts in kinds]


def _contradictions(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    for two in combinations([fact for fact in facts if fact.wordings is question_templates.WHAT_COLOUR], 2):
        if _same_thing(*two) and two[0].fields["colour"] != two[1].fields["colour"]:
            yield two
    for two in combinations([fact for fact in facts if fact.wordings is question_templates.DOING], 2):
        if _same_agent(*two) and are_exclusive_actions(*(fact.fields["action"] for fact in two)):
            yield two


def are_exclusive_actions(action: str, other: str) -> bool:
    """Return whether nobody does both at once: "sitting" and "standing"."""
    one, two = lemmatize(action, "VBG"), lemmatize(other, "VBG")
    return two in INSTEAD.get(one, ()) or one in INSTEAD.get(two, ())


def _same_thing(one: Fact, other: Fact) -> bool:
    """Whether two nouns have one head ("metal clock" and "clock") or are two words for the same."""
    first, second = one.about[0], other.about[0]
    heads = first.rpartition(" ")[2], second.rpartition(" ")[2]
    return heads[0] == heads[1] or second in loosely_same(first)


def _same_agent(one: Fact, other: Fact) -> bool:
    """Whether two facts may speak of one person or animal, by whatever name."""
    first, second = one.about[0], other.about[0]
    if one.fields["verb"] != other.fields["verb"]:
        return False
    if first in OF_PEOPLE and second in OF_PEOPLE:
        return not any(first in sex and second in other_sex for sex, other_sex in (_SEXES, _SEXES[::-1]))
    return first in AGENT_NOUNS and second in AGENT_NOUNS and (first == second or second in loosely_same(first))
