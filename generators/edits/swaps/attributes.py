"""Attribute swaps: adjectives, materials and numbers of two noun phrases are exchanged.

"A red car and a blue bus" gives "a blue car and a red bus"; "a man with two dogs" gives "two men with a dog". A swap is
false if one of the two nouns cannot have its new attribute: because its own one excludes it, or one that another caption
states (`is_refuted`). One captioner who uses both words distinguishes them, even if viewers often confuse them (gray and
silver are one colour, blue and green two). Else both nouns may have both: "a small bathroom with a green toilet".
Phrases far apart are not paired, of which a long caption has the square of their number. Of two numbers, the larger one
must be false of the noun with the smaller one.

The weight of a swap is how often the pool has each attribute or number with the other noun, relative to its own, so that
the frequencies of all words cancel out.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final, NamedTuple

from pairwright.generators.captions.box_checks import count_in_doubt
from pairwright.generators.captions.caption import ANAPHORS, Caption
from pairwright.generators.captions.phrases import ARTICLES, NUMBER_WORDS, NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.image import is_one_of_several
from pairwright.generators.edits.constraints.knowledge import MIN_COUNT, Knowledge
from pairwright.generators.edits.constraints.lexical import are_opposed, same_forms
from pairwright.generators.edits.constraints.plausibility import MIN_PLURAL_SHARE
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, first_violated
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.slots import FINITE
from pairwright.generators.language.inflection import article, inflect
from pairwright.generators.lexicon.attributes import concepts, words_of_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged, loosely_same

FURTHEST: Final = 64  # tokens between two phrases; a long caption has more pairs than can be judged
SMOOTHING: Final = 0.5  # added to counts before their ratio is taken
_NEAREST: Final = 2  # words before a noun among which another caption describes it


class Modifier(NamedTuple):
    """An attribute or number of a noun phrase that may be exchanged, or the place for one before a noun without any.

    Attributes:
        words: its words; "black and white" has two, a place for one none.
        number: the exact number that it states; 0 of an attribute.
    """

    phrase: NounPhrase
    start: int
    end: int
    words: tuple[str, ...]
    number: int = 0


class Swap(NamedTuple):
    """A swap that makes a caption false.

    Attributes:
        kind: of `floors.SWAP_FLOORS`.
        weight: probability of the new caption relative to the old one, for sampling.
    """

    kind: str
    changes: tuple[Change, ...]
    weight: float


def swap_attributes(caption: Caption, materials: EditMaterials, one: Modifier, other: Modifier) -> Swap | str:
    """Return the swap of two attributes or numbers of `swapped_pairs`, or the reason code of a rejection."""
    if one.number:
        if 1 in {one.number, other.number} and not _can_change_number(caption, one.phrase, other.phrase):
            return "not_grammatical"
        kind = "number"
        changes = (*_changes(caption, one, other.number), *_changes(caption, other, one.number))
    else:
        kind, changes = "attribute", caption.exchange((one.start, one.end), (other.start, other.end))
    return Swap(kind, changes, weigh_exchange(caption, materials.knowledge, one, other))


def swapped_pairs(
    caption: Caption, known: Knowledge, constraints: Sequence[Constraint]
) -> list[tuple[Modifier, Modifier, str]]:
    """Return pairs of attributes, then of numbers, of different phrases, in order of position.

    Each comes with the reason code why neither they nor their nouns may be exchanged, or an empty string.
    """
    attributes = [each for phrase in caption.phrases for each in modifiers_of(caption, known, phrase)]
    counted = ((each, max(each.count, each.start), _number(caption, each)) for each in caption.phrases)
    numbers = [Modifier(each, at, at + 1, (NUMBER_WORDS[exact - 1],), exact) for each, at, exact in counted if exact]
    pairs = [
        *((one, other) for one, other in near_pairs(attributes) if set(one.words).isdisjoint(other.words)),
        *((one, other) for one, other in near_pairs(numbers) if one.number != other.number),
    ]
    return [(one, other, reject_exchange(caption, known, constraints, one, other)) for one, other in pairs]


def near_pairs(modifiers: Sequence[Modifier]) -> Iterator[tuple[Modifier, Modifier]]:
    """Yield the pairs of modifiers of different phrases that are at most `FURTHEST` tokens apart, in order of position."""
    for at, one in enumerate(modifiers, 1):
        for other in modifiers[at : at + FURTHEST + 1]:
            if other.phrase is not one.phrase and other.start - one.end <= FURTHEST:
                yield one, other


def reject_exchange(
    caption: Caption, known: Knowledge, constraints: Sequence[Constraint], one: Modifier, other: Modifier
) -> str:
    """Return why a swap of two attributes or numbers, or of their nouns, is rejected; else an empty string."""
    phrases = one.phrase, other.phrase
    first, second = map(caption.head, phrases)
    if first == second:
        return "identical"

    def violated(before: str, after: str) -> str:
        """Return why the words of the other may hold of the nouns, or an empty string."""
        words = " ".join(one.words), " ".join(other.words)
        edit = ProposedEdit(
            caption, "swap", "attribute", *words, before, after, one.start, one.end, (other.start, other.end)
        )
        found = first_violated(constraints, edit, known)
        return found.reason if found is not None else ""

    if one.number:
        if _count_may_hold(caption, one, other.number) or _count_may_hold(caption, other, one.number):
            return "true_of_image"
        return violated(first, "") if one.number < other.number else violated("", second)
    opposed = all(are_opposed(*words, distinguished=True) for words in product(one.words, other.words))
    exclusive = opposed and bool(one.words and other.words)
    if one.words and other.words and not exclusive and max(map(partial(count_attributes, caption), phrases)) > 1:
        return "not_grammatical"  # "a large orange | triangle" would become green orange
    claims = ((other.words, first, (first, "")), (one.words, second, ("", second)))
    refuted = [nouns for words, noun, nouns in claims if exclusive or is_refuted(caption, known, words, noun)]
    reasons = [violated(*nouns) for nouns in refuted]  # one of the two is false, which is enough
    return "" if "" in reasons else next(iter(reasons), "no_candidate")


def is_refuted(caption: Caption, known: Knowledge, words: Sequence[str], noun: str) -> bool:
    """Return whether another caption states of a noun an attribute that excludes all of ``words``."""
    if not words or len(caption.by_head[noun]) > 1 or is_one_of_several(caption, noun):
        return False
    return any(
        all(known.attributes.exclusive(word, stated, noun) for word in words) for stated in _stated_of(caption, noun)
    )


def _stated_of(caption: Caption, noun: str) -> Iterator[str]:
    """Yield the words shortly before a noun in the other captions of an image."""
    forms = same_forms(noun)
    for line in caption.words.others:
        for at, word in enumerate(line):
            if word in forms:
                yield from line[max(at - _NEAREST, 0) : at]


def modifiers_of(caption: Caption, known: Knowledge, phrase: NounPhrase) -> Iterator[Modifier]:
    """Yield the attributes of a phrase that may be exchanged."""
    if not (phrase.adjectives or len(phrase.nouns) > 1) or not caption.is_thing(phrase):
        return
    colours, coloured = words_of_class("colour"), not known.nouns.is_person(caption.head(phrase))
    if phrase.joined:
        if phrase.adjectives and coloured:
            first, end = phrase.adjectives[0], phrase.adjectives[-1] + 1
            words = tuple(caption.word(at) for at in range(first, end) if caption.word(at) not in words_with("lists"))
            if colours.issuperset(words):
                yield Modifier(phrase, first, end, words)
        return
    adjectives = ((at, caption.tag(at) == "JJ") for at in phrase.adjectives)
    for at, described in (*adjectives, *((at, caption.word(at) in concepts()) for at in phrase.nouns[:-1])):
        word = caption.word(at)
        whole = at not in caption.parts and caption.tag(at + 1) != "HYPH"
        if described and whole and word not in words_with("counts") and (coloured or word not in colours):
            yield Modifier(phrase, at, at + 1, (word,))


def count_attributes(caption: Caption, phrase: NounPhrase) -> int:
    """Return the number of attributes before the noun of a phrase."""
    return len(phrase.adjectives) + sum(caption.word(at) in concepts() for at in phrase.nouns[:-1])


def _number(caption: Caption, phrase: NounPhrase) -> int:
    """Return the exact number that a phrase states ("two dogs", "a dog"), 0 if there is none."""
    if not caption.is_thing(phrase) or not caption.is_whole(phrase) or not is_countable(caption, phrase):
        return 0
    if phrase.count >= 0:
        word = caption.word(phrase.count)
        whole = caption.tag(phrase.count + 1) != "HYPH" and word in NUMBER_WORDS and phrase.determiner < 0
        number = NUMBER_WORDS.index(word) + 1 if whole else 0
        return number if (number > 1) is caption.plural(phrase) else 0
    opens = phrase.determiner == phrase.start and caption.word(phrase.start) in ARTICLES
    return int(opens and not caption.plural(phrase))


def is_countable(caption: Caption, phrase: NounPhrase) -> bool:
    """Return whether the noun of a phrase is countable."""
    head = caption.head(phrase)
    return head not in flagged("mass") and head not in flagged("plural_only")


def _count_may_hold(caption: Caption, counted: Modifier, new: int) -> bool:
    """Return whether a phrase may also hold with the number ``new``; only larger numbers are refuted."""
    head, number = caption.head(counted.phrase), counted.number
    if new < number:
        return False
    exact = caption.words.may_be_exact_count(head, number) if number > 1 else _is_single(caption, head)
    return not exact or count_in_doubt(caption.words, head, number, new)


def _is_single(caption: Caption, noun: str) -> bool:
    """Return whether no caption and no box shows several instances of a noun, under any name."""
    others = caption.by_head.keys() - {
        noun
    }  # one caption uses different words for two things: "a truck with two trailers"
    return not any(map(caption.words.several, loosely_same(noun) - others)) and noun not in caption.words.crowds


def _can_change_number(caption: Caption, *phrases: NounPhrase) -> bool:
    """Return whether only the phrases and the verbs right after them depend on their number."""
    verbs = {phrase.end for phrase in phrases}
    listed = any(caption.word(at) in words_with("lists") for phrase in phrases for at in (phrase.start - 1, phrase.end))
    finite = {at for at, tag in enumerate(caption.tags) if tag in FINITE}
    if not finite <= verbs or (listed and finite):
        return False
    if not (ANAPHORS | words_with("together")).isdisjoint(caption.lower):
        return False
    return all(caption.word(phrase.start - 1) not in words_with("at_one_place") for phrase in phrases)


def _changes(caption: Caption, counted: Modifier, number: int) -> Iterator[Change]:
    """Yield the changes of number word, noun and following verb that give a phrase another number."""
    phrase, several = counted.phrase, number > 1
    single = caption.word(phrase.count + 1) if phrase.count + 1 < phrase.head else caption.head(phrase)
    yield caption.change(counted.start, counted.end, NUMBER_WORDS[number - 1] if several else article(single))
    if caption.plural(phrase) is not several:
        yield caption.change(phrase.head, phrase.end, inflect(caption.head(phrase), "NNS" if several else "NN"))
        if caption.tag(phrase.end) in FINITE:
            verb = inflect(caption.lemmas[phrase.end], "VBP" if several else "VBZ")
            yield caption.change(phrase.end, phrase.end + 1, verb)


def weigh_exchange(caption: Caption, known: Knowledge, one: Modifier, other: Modifier) -> float:
    """Return the weight of a swap of two attributes or numbers; 0 if a noun hardly has such an attribute or number."""
    weight = 1.0
    for phrase, moved in ((one.phrase, other), (other.phrase, one)):
        if moved.words:
            old, seen = (_count_attested(caption, known, moved, each) for each in (moved.phrase, phrase))
            noun = caption.head(phrase)
            if moved.number:
                fits = moved.number == 1 or _has_plural(known, noun)
            else:
                fits = seen >= MIN_COUNT or all(known.attributes.is_usual(word, noun) for word in moved.words)
            weight *= (seen + SMOOTHING) / (old + SMOOTHING) if fits else 0.0
    return weight


def _has_plural(known: Knowledge, noun: str) -> bool:
    """Return whether the pool counts a noun: not "two oceans"."""
    frequency = known.pool.form_frequency
    return bool(frequency(inflect(noun, "NNS")) >= MIN_PLURAL_SHARE * frequency(noun))


def _count_attested(caption: Caption, known: Knowledge, modifier: Modifier, phrase: NounPhrase) -> int:
    """Return the number of captions of the pool with an attribute or number right before the noun of a phrase."""
    head, number = caption.head(phrase), modifier.number
    if not number:
        return min(known.pool.adjacency(word, head) for word in modifier.words)
    noun = inflect(head, "NNS" if number > 1 else "NN")
    return known.pool.bigram(NUMBER_WORDS[number - 1] if number > 1 else article(noun), noun)
