"""Swaps of attributes: adjectives, materials and numbers of two things change places.

"A red car and a blue bus" gives "a blue car and a red bus"; "a man with two dogs" gives "two men with a dog". A swap is
false if the two attributes exclude each other for both things. The captioner names both in one caption, so they differ
even where viewers often confuse them (gray and silver are one colour, blue and green two). Attributes of different
classes ("a small bathroom with a green toilet") are exchanged only if the pool says that both things rarely have the
other attribute. Of numbers the larger one must be false of what there is less of.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Final, NamedTuple

from pairwright.generators.captions.box_checks import count_in_doubt
from pairwright.generators.captions.caption import ANAPHORS, Caption
from pairwright.generators.captions.phrases import ARTICLES, NUMBER_WORDS, NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.slots import FINITE
from pairwright.generators.edits.swaps.proposal import (
    MIN_COUNT,
    SMOOTHING,
    SwapMaterials,
    SwapProposal,
    exchange_spans,
)
from pairwright.generators.language.inflection import article, inflect
from pairwright.generators.lexicon.attributes import (
    concept_words,
    concepts,
    opposites,
    same_concept,
    untouched_words,
    words_of_class,
)
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged, loosely_same
from pairwright.generators.lexicon.synonyms import rewordings

MAX_RISK: Final = 0.1  # estimated probability that both things have the other attribute as well
MIN_NUMBER_WEIGHT: Final = 0.05  # of an exchange of numbers, by the pool's counts
BOUND_SHARE: Final = 0.5  # of the captions with a word, in which the same one follows it
_UNKNOWN: Final = 0.35  # assumed share of things that have an attribute of no class, or a size, that no caption says
_COLOUR, _SIZE = "colour", "size"
_COLOURLESS: Final = frozenset({"black", "and", "white"})  # of a picture without colours


class Modifier(NamedTuple):
    """An attribute of a thing: tokens ``start`` up to ``end``, with its words ("black and white" has two)."""

    phrase: NounPhrase
    start: int
    end: int
    words: tuple[str, ...]


class Counted(NamedTuple):
    """A noun phrase that names an exact number of things."""

    phrase: NounPhrase
    number: int


def swap_attributes(caption: Caption, materials: SwapMaterials) -> Iterator[SwapProposal | str]:
    """Yield exchanges of the attributes of two things, or reasons why a pair of them is not exchanged."""
    for one, other, doubt in described_pairs(caption, materials):
        yield doubt or _exchange(caption, materials, one, other)
    for counted, second in counted_pairs(caption):
        yield doubt_about_numbers(caption, materials, counted, second) or _exchange_numbers(
            caption, materials, counted, second
        )


@lru_cache(maxsize=2)  # both types of swaps ask for them
def described_pairs(caption: Caption, materials: SwapMaterials) -> tuple[tuple[Modifier, Modifier, str], ...]:
    """Return the attributes of two different things, in order of position, and why they may not change places."""
    modifiers = [each for phrase in caption.phrases for each in _modifiers_of(caption, materials, phrase)]
    return tuple(
        [
            (one, other, _doubt_about(caption, materials, one, other))
            for one, other in combinations(modifiers, 2)
            if one.phrase is not other.phrase and set(one.words).isdisjoint(other.words)
        ]
    )


def counted_pairs(caption: Caption) -> Iterator[tuple[Counted, Counted]]:
    """Yield two phrases that name different numbers of things, in order of position."""
    for one, other in combinations(_numbers(caption), 2):
        if one.number != other.number:
            yield one, other


@lru_cache(maxsize=2)
def _numbers(caption: Caption) -> tuple[Counted, ...]:
    return tuple([Counted(phrase, number) for phrase in caption.phrases if (number := _number(caption, phrase))])


def _doubt_about(caption: Caption, materials: SwapMaterials, one: Modifier, other: Modifier) -> str:
    """Return why an exchange of two attributes, or of the nouns that they describe, may be true; else an empty string."""
    first, second = caption.head(one.phrase), caption.head(other.phrase)
    if are_same_names(first, second):
        return "identical"
    doubts = [
        _doubt_about_one(caption, materials, one, other, described=at) or _said(caption, noun, words)
        for at, noun, words in ((0, first, other.words), (1, second, one.words))
    ]
    if _exclude(one.words, other.words):
        return doubts[0] if all(doubts) else ""  # one of the two is false, which is enough
    risk = _risk(materials, first, other.words[0]) * _risk(materials, second, one.words[0])
    return doubts[0] or doubts[1] or ("true_of_image" if risk > MAX_RISK else "")


def _doubt_about_one(
    caption: Caption, materials: SwapMaterials, one: Modifier, other: Modifier, *, described: int
) -> str:
    """Return why the first (0) or the second (1) of two things may have the other's attribute; else an empty string."""
    first, second = caption.head(one.phrase), caption.head(other.phrase)
    edit = ProposedEdit(
        caption,
        "swap",
        "attribute",
        " ".join(one.words),
        " ".join(other.words),
        "" if described else first,
        second if described else "",
        one.start,
        one.end,
        (other.start, other.end),
    )
    return materials.violation(edit)


def doubt_about_numbers(caption: Caption, materials: SwapMaterials, one: Counted, other: Counted) -> str:
    """Return why an exchange of two numbers, or of the nouns that they count, may be true; else an empty string."""
    first, second = caption.head(one.phrase), caption.head(other.phrase)
    if are_same_names(first, second):
        return "identical"
    if _may_count(caption, one, other.number) or _may_count(caption, other, one.number):
        return "true_of_image"
    start, end = _counting(one)
    edit = ProposedEdit(
        caption,
        "swap",
        "attribute",
        NUMBER_WORDS[one.number - 1],
        NUMBER_WORDS[other.number - 1],
        first if one.number < other.number else "",
        second if other.number < one.number else "",
        start,
        end,
        _counting(other),
    )
    return materials.violation(edit)


def are_same_names(noun: str, other: str) -> bool:
    """Whether a caption may mean the same thing by two nouns: it calls a plate and a dish by two names for two things."""
    return noun == other or other in rewordings(noun, "noun") or noun in rewordings(other, "noun")


def _modifiers_of(caption: Caption, materials: SwapMaterials, phrase: NounPhrase) -> Iterator[Modifier]:
    if not (phrase.adjectives or len(phrase.nouns) > 1) or not caption.is_thing(phrase):
        return
    coloured = _may_be_coloured(caption, materials, phrase)
    if phrase.joined:
        if phrase.adjectives and coloured:
            first, end = phrase.adjectives[0], phrase.adjectives[-1] + 1
            words = tuple(caption.word(at) for at in range(first, end) if caption.word(at) not in {"and", ","})
            if words_of_class(_COLOUR).issuperset(words):
                yield Modifier(phrase, first, end, words)
        return
    for at in (*phrase.adjectives, *phrase.nouns[:-1]):
        word = caption.word(at)
        described = caption.tag(at) == "JJ" if at in phrase.adjectives else word in concepts()
        whole = at not in caption.parts and caption.tag(at + 1) != "HYPH" and not _is_bound(caption, materials, at)
        if described and whole and word not in untouched_words() and (coloured or word not in words_of_class(_COLOUR)):
            yield Modifier(phrase, at, at + 1, (word,))


def _is_bound(caption: Caption, materials: SwapMaterials, at: int) -> bool:
    """Whether captions hardly have a word without the one before or behind it: "stainless steel", "polar bear"."""
    pool, before, word, after = materials.pool, *(caption.word(each) for each in (at - 1, at, at + 1))
    own, ahead = (pool.form_frequency(each) for each in (word, before))
    return pool.run(word, after) > BOUND_SHARE * (own + 1) or pool.run(before, word) > BOUND_SHARE * (ahead + 1)


def _may_be_coloured(caption: Caption, materials: SwapMaterials, phrase: NounPhrase) -> bool:
    """Whether a thing may have any colour: no person, no stop sign, nothing in a picture without colours."""
    if materials.knowledge.nouns.is_person(caption.head(phrase)) or caption.noun(phrase) == "stop sign":
        return False
    frames = (caption.head(each) for each in caption.phrases if {*caption.lower[each.start : each.end]} >= _COLOURLESS)
    return not any(materials.knowledge.nouns.is_frame(frame) for frame in frames)


def _exchange(caption: Caption, materials: SwapMaterials, one: Modifier, other: Modifier) -> SwapProposal | str:
    first, second = caption.head(one.phrase), caption.head(other.phrase)
    said = _is_said_of(materials, first, other.words) and _is_said_of(materials, second, one.words)
    if not said and not _exclude(one.words, other.words):
        return "no_candidate"  # what is of another class must be said of such things: no "toy carpet"
    return exchange_spans(caption, (one.start, one.end), (other.start, other.end))


def _said(caption: Caption, noun: str, words: tuple[str, ...]) -> str:
    """Return `true_of_image` if the caption itself gives such a thing one of the attributes, else an empty string."""
    alike = frozenset().union(*map(same_concept, words))
    phrases = caption.by_head.get(noun, ())
    said = any(not alike.isdisjoint(caption.lower[phrase.start : phrase.head]) for phrase in phrases)
    return "true_of_image" if said else ""


def _exclude(words: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether all words exclude all others: opposites, or of one class and different concepts."""
    return all(
        frozenset((one, other)) in opposites() or _are_other_concepts(one, other)
        for one, other in product(words, others)
    )


def _are_other_concepts(one: str, other: str) -> bool:
    ours, theirs = concepts().get(one, ()), concepts().get(other, ())
    return set(ours).isdisjoint(theirs) and any(mine[0] == yours[0] for mine in ours for yours in theirs)


def _risk(materials: SwapMaterials, noun: str, word: str) -> float:
    """Return the share of such things that have an attribute, estimated from its share of the class in the pool."""
    group, name = concepts().get(word, ((_SIZE, ""),))[0]
    if group == _SIZE:
        return _UNKNOWN
    count = materials.pool.adjacency
    alike = sum(count(other, noun) for other in concept_words()[group, name])
    total = sum(
        count(other, noun) for concept, words in concept_words().items() if concept[0] == group for other in words
    )
    return (alike + SMOOTHING) / (total + 2 * SMOOTHING)


def _is_said_of(materials: SwapMaterials, noun: str, words: tuple[str, ...]) -> bool:
    """Whether captions describe a noun by each of some words."""
    return all(materials.pool.adjacency(word, noun) >= MIN_COUNT for word in words)


def _number(caption: Caption, phrase: NounPhrase) -> int:
    """Return how many things a phrase names exactly ("two dogs", "a dog"); 0 if it does not say."""
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
    """Whether the noun of a phrase has both numbers."""
    head = caption.head(phrase)
    return head not in flagged("mass") and head not in flagged("plural_only")


def _counting(counted: Counted) -> tuple[int, int]:
    """Return the span of the number or article of a phrase."""
    at = counted.phrase.count if counted.phrase.count >= 0 else counted.phrase.start
    return at, at + 1


def _may_count(caption: Caption, counted: Counted, new: int) -> bool:
    """Whether there may be ``new`` things of a phrase; only more than it names are refuted."""
    head, said = caption.head(counted.phrase), counted.number
    if new < said:
        return False
    exact = caption.words.may_be_exact_count(head, said) if said > 1 else _is_single(caption, head)
    return not exact or count_in_doubt(caption.words, head, said, new)


def _is_single(caption: Caption, noun: str) -> bool:
    """Whether no caption and no box tells of several things of a noun, by whatever name."""
    return not any(map(caption.words.several, loosely_same(noun))) and noun not in caption.words.crowds


def _exchange_numbers(caption: Caption, materials: SwapMaterials, one: Counted, other: Counted) -> SwapProposal | str:
    if 1 in {one.number, other.number} and not _agrees(caption, one.phrase, other.phrase):
        return "not_grammatical"
    weight = 1.0
    for counted, new in ((one, other.number), (other, one.number)):
        seen, old = (_times_counted(caption, materials, counted.phrase, each) for each in (new, counted.number))
        weight *= (seen + SMOOTHING) / (old + SMOOTHING) if seen >= MIN_COUNT else 0.0
    if weight < MIN_NUMBER_WEIGHT:
        return "no_candidate"
    changes = (*_changes(caption, one, other.number), *_changes(caption, other, one.number))
    return SwapProposal(changes, weight=weight)


def _agrees(caption: Caption, *phrases: NounPhrase) -> bool:
    """Whether nothing but the phrases and the verbs right behind them depends on their number."""
    verbs = {phrase.end for phrase in phrases}
    listed = any(caption.word(at) in {"and", ","} for phrase in phrases for at in (phrase.start - 1, phrase.end))
    finite = {at for at, tag in enumerate(caption.tags) if tag in FINITE}
    if not finite <= verbs or (listed and finite):
        return False
    if not (ANAPHORS | words_with("together")).isdisjoint(caption.lower):
        return False
    return all(caption.word(phrase.start - 1) not in words_with("at_one_place") for phrase in phrases)


def _changes(caption: Caption, counted: Counted, number: int) -> Iterator[Change]:
    """Yield the changes that give a phrase another number: of its number word, its noun, and the verb right behind it."""
    phrase, several = counted.phrase, number > 1
    single = caption.word(phrase.count + 1) if phrase.count + 1 < phrase.head else caption.head(phrase)
    yield caption.change(*_counting(counted), NUMBER_WORDS[number - 1] if several else article(single))
    if caption.plural(phrase) is not several:
        yield caption.change(phrase.head, phrase.end, inflect(caption.head(phrase), "NNS" if several else "NN"))
        if caption.tag(phrase.end) in FINITE:
            verb = inflect(caption.lemmas[phrase.end], "VBP" if several else "VBZ")
            yield caption.change(phrase.end, phrase.end + 1, verb)


def _times_counted(caption: Caption, materials: SwapMaterials, phrase: NounPhrase, number: int) -> int:
    """Return how many captions of the pool have the noun of a phrase right behind a number or article."""
    noun = inflect(caption.head(phrase), "NNS" if number > 1 else "NN")
    return materials.pool.run(NUMBER_WORDS[number - 1] if number > 1 else article(noun), noun)
