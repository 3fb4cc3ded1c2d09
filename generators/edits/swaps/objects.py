"""Swaps of objects: two nouns or noun phrases of a caption change places.

- *described*: the nouns of two phrases whose attributes or numbers stay: "a blue car behind a red truck" gives "a blue
  truck behind a red car", "two men and a woman" gives "two women and a man";
- *converse*: the two things that a one-way relation joins ("a dog chasing a cat" gives "a cat chasing a dog");
- *place*: a place and what is near it ("a boy on a rug near a bed" gives "a boy on a bed near a rug");
- *trade*: what two owners have, or the subjects of two acts ("a man in a suit and a woman in a dress"; "a man sits and a
  woman stands"), so that two claims would have to hold at once.

Captions of the pool must make the new claims, no caption of the image may make them, and none may tell of several
things of the name of which a claim is made. ``swap_relations.tsv`` says which relations are of which kind.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from pairwright.generators.captions.caption import ANAPHORS, GENDERED, Caption
from pairwright.generators.captions.phrases import NounPhrase, span
from pairwright.generators.captions.realisation import lowercase_span
from pairwright.generators.edits.constraints.image import is_said_relation, may_be_place
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.slots import FINITE
from pairwright.generators.edits.swaps.attributes import (
    are_same_names,
    counted_pairs,
    described_pairs,
    doubt_about_numbers,
    is_countable,
)
from pairwright.generators.edits.swaps.claims import Claim, Link, claims_of, link_count, links_of
from pairwright.generators.edits.swaps.proposal import (
    MIN_COUNT,
    Span,
    SwapMaterials,
    SwapProposal,
    exchange_spans,
)
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.relations import load_relations, swap_ways

_CONTINUES: Final = frozenset({"of", "'s", "’s", "'", "-"})  # behind a noun that is a part of a larger phrase
_LISTS: Final = frozenset({"and", "or", ","})

Exchange = tuple[NounPhrase, NounPhrase, tuple[Claim, ...]]


def swap_objects(caption: Caption, materials: SwapMaterials) -> Iterator[SwapProposal | str]:
    """Yield exchanges of two nouns or noun phrases, or reasons why two of them are not exchanged."""
    for one, other, doubt in described_pairs(caption, materials):
        places = (one.phrase, one.end), (other.phrase, other.end)
        yield doubt or _exchange_nouns(caption, materials, *places)
    for counted, second in counted_pairs(caption):
        doubt = doubt_about_numbers(caption, materials, counted, second)
        yield doubt or _exchange_nouns(caption, materials, (counted.phrase, 0), (second.phrase, 0))
    claims = claims_of(caption)
    for one_phrase, other_phrase, changed in _exchanges(caption, materials, claims):
        first, second_phrase = sorted((one_phrase, other_phrase), key=lambda phrase: phrase.start)
        fault = _fault(caption, materials, first, second_phrase, claims)
        new = [_exchanged(claim, first, second_phrase) for claim in changed]
        fault = fault or _truth(caption, materials, first, second_phrase, new)
        yield fault or _exchange_phrases(caption, materials, (first, second_phrase), claims, changed)


def _exchange_nouns(
    caption: Caption, materials: SwapMaterials, one: tuple[NounPhrase, int], other: tuple[NounPhrase, int]
) -> SwapProposal | str:
    """Return the exchange of the nouns of two phrases, each from a token on, in the number of their new places."""
    (phrase, _), (second, _) = one, other
    whole = all(caption.is_whole(each) and caption.word(each.end) not in _CONTINUES for each in (phrase, second))
    if not whole or _are_pronouns_of(caption, materials, phrase, second):
        return "not_grammatical"
    same_number = caption.plural(phrase) is caption.plural(second)
    if not (same_number or (is_countable(caption, phrase) and is_countable(caption, second))):
        return "not_grammatical"
    joined = second.start == phrase.end + 1 and swap_ways().get(caption.word(phrase.end), frozenset()) & {
        "has",
        "place",
    }
    if (joined and not materials.knowledge.nouns.is_alive(caption.head(phrase))) or not _share_class(
        caption, materials, phrase, second
    ):
        return "no_candidate"  # a bed with two pillows is no pillow with two beds
    nouns, second_nouns = ((max(each.nouns[0], least), each.end) for each, least in (one, other))
    if any(caption.word(at) in concepts() for start, end in (nouns, second_nouns) for at in range(start, end - 1)):
        return "not_grammatical"  # an attribute that is tagged as a noun: "a large purple | orange cross"
    changes = (
        caption.change(*nouns, _in_number_of(caption, second_nouns, phrase)),
        caption.change(*second_nouns, _in_number_of(caption, nouns, second)),
    )
    return SwapProposal(changes, (nouns, second_nouns))


def _are_pronouns_of(caption: Caption, materials: SwapMaterials, *phrases: NounPhrase) -> bool:
    """Whether a word such as "his" may speak of one of the phrases."""
    people = any(materials.knowledge.nouns.is_person(caption.head(phrase)) for phrase in phrases)
    return people and not GENDERED.isdisjoint(caption.lower)


def _share_class(caption: Caption, materials: SwapMaterials, one: NounPhrase, other: NounPhrase) -> bool:
    """Whether two nouns are of one class: both are furniture."""
    first, second = (materials.knowledge.nouns.profile(caption.head(phrase)) for phrase in (one, other))
    return not first.classes.isdisjoint(second.classes)


def _in_number_of(caption: Caption, nouns: Span, place: NounPhrase) -> str:
    """Return nouns as they are written in the place of another phrase."""
    written = lowercase_span(caption.pair.caption, *span(caption.tokens, *nouns))
    head, tag = caption.tokens[nouns[1] - 1], caption.tag(place.head)
    return written if tag == head.tag else written[: len(written) - len(head.text)] + inflect(head.lemma, tag)


def _ways_of(claim: Claim) -> frozenset[str]:
    """Return the kinds of the relation of a claim: of verb and preposition together, else of either of them."""
    ways = swap_ways()
    return ways.get(claim.relation, ways.get(claim.preposition or claim.verb, frozenset()))


def _exchanges(caption: Caption, materials: SwapMaterials, claims: Sequence[Claim]) -> Iterator[Exchange]:
    """Yield two phrases with the claims that their exchange changes."""
    for claim in claims:
        if claim.subject is None or claim.thing is None or "strict" not in _ways_of(claim):
            continue
        if _share_class(caption, materials, claim.subject, claim.thing):
            yield claim.subject, claim.thing, (claim,)
    for one, other in combinations(claims, 2):
        yield from _places(one, other)
        yield from _trades(caption, materials, one, other)


def _places(one: Claim, other: Claim) -> Iterator[Exchange]:
    """Yield what something is at, and what is near it or is met with another act, where no thing has both."""
    if one.thing is None or other.thing is None:
        return
    near = other.subject is one.thing and _ways_of(one) & {"place", "act"} and _ways_of(other) & {"near", "order"}
    done = not one.preposition and not other.preposition and other.subject in {one.subject, one.thing, None}
    if near or (done and load_relations().exclusive(one.verb, other.verb)):
        yield one.thing, other.thing, (one,)


def _trades(caption: Caption, materials: SwapMaterials, one: Claim, other: Claim) -> Iterator[Exchange]:
    """Yield what two owners have, or the two subjects of acts that exclude each other."""
    if one.subject is None or other.subject is None:
        return
    named = [caption.head(each) for each in (one.subject, other.subject, one.thing, other.thing) if each is not None]
    if len(set(named)) < len(named) or not _share_class(caption, materials, one.subject, other.subject):
        return
    if one.verb and other.verb and load_relations().exclusive(one.verb, other.verb):
        yield one.subject, other.subject, (one, other)
    elif (
        one.thing is not None and other.thing is not None and all(_is_own(caption, materials, c) for c in (one, other))
    ):
        if one.relation == other.relation:
            yield one.thing, other.thing, (one, other)
        else:
            yield one.subject, other.subject, (one, other)


def _is_own(caption: Caption, materials: SwapMaterials, claim: Claim) -> bool:
    """Whether a claim tells what one thing has and another hardly has as well."""
    scene = claim.thing is not None and materials.knowledge.nouns.has_flag(caption.head(claim.thing), "surroundings")
    return bool(_ways_of(claim) & {"has", "place"}) and not scene


def _fault(
    caption: Caption, materials: SwapMaterials, one: NounPhrase, other: NounPhrase, claims: Sequence[Claim]
) -> str:
    """Return why two phrases, in order of position, cannot stand in each other's place; empty if they can."""
    if not (caption.is_thing(one) and caption.is_thing(other)):
        return "no_edit"
    if are_same_names(caption.noun(one), caption.noun(other)) or caption.head(one) == caption.head(other):
        return "identical"
    subjects = {claim.subject.start for claim in claims if claim.subject is not None}
    inside = {*caption.lower[one.start : one.end], *caption.lower[other.start : other.end]}
    numbers_differ = caption.plural(one) != caption.plural(other) and not FINITE.isdisjoint(caption.tags)
    whole = all(_stands_alone(caption, phrase, subjects) for phrase in (one, other))
    bare = one.is_bare is not other.is_bare
    if not whole or numbers_differ or bare or not ANAPHORS.isdisjoint(inside):
        return "not_grammatical"
    return "not_grammatical" if _are_pronouns_of(caption, materials, one, other) else ""


def _stands_alone(caption: Caption, phrase: NounPhrase, subjects: set[int]) -> bool:
    """Whether a phrase is no part of a larger one: of a compound, a possessive, a list or an amount."""
    after, before = caption.word(phrase.end), caption.word(phrase.start - 1)
    goes_on = after in _LISTS and caption.starting_at(phrase.end + 1) is not None and phrase.end + 1 not in subjects
    follows = before in _LISTS and phrase.start not in subjects
    return caption.is_whole(phrase) and after not in _CONTINUES and not goes_on and not follows


def _exchanged(claim: Claim, one: NounPhrase, other: NounPhrase) -> Claim:
    """Return a claim after two phrases have changed places."""
    turned = {one.start: other, other.start: one}

    def swapped(phrase: NounPhrase | None) -> NounPhrase | None:
        return phrase if phrase is None else turned.get(phrase.start, phrase)

    return claim._replace(subject=swapped(claim.subject), thing=swapped(claim.thing))


def _truth(caption: Caption, materials: SwapMaterials, one: NounPhrase, other: NounPhrase, new: Sequence[Claim]) -> str:
    """Return `true_of_image` if new claims may be true, else an empty string."""
    subjects = {caption.head(claim.subject) for claim in new if claim.subject is not None}
    moved = {caption.head(one), caption.head(other)}
    if any(map(caption.words.several, subjects | (moved if moved & subjects else set()))):
        return "true_of_image"
    edits = [
        ProposedEdit(
            caption, "replace", "relation", "", claim.relation, caption.head(claim.subject), caption.head(claim.thing)
        )
        for claim in new
        if claim.subject is not None and claim.thing is not None
    ]
    known = materials.knowledge
    said = any(is_said_relation(edit, known) or may_be_place(edit, known) for edit in edits)
    return "true_of_image" if said else ""


def _exchange_phrases(
    caption: Caption,
    materials: SwapMaterials,
    phrases: tuple[NounPhrase, NounPhrase],
    claims: Sequence[Claim],
    changed: Sequence[Claim],
) -> SwapProposal | str:
    """Return the exchange of two phrases, if captions make the new claims."""
    links = _new_links(caption, materials, phrases, claims, changed)
    if any(link_count(materials.pool, *link) < MIN_COUNT for link in links):
        return "no_candidate"
    return exchange_spans(caption, *((phrase.start, phrase.end) for phrase in phrases))


def _new_links(
    caption: Caption,
    materials: SwapMaterials,
    phrases: tuple[NounPhrase, NounPhrase],
    claims: Sequence[Claim],
    changed: Sequence[Claim],
) -> Iterator[Link]:
    """Yield the links that an exchange makes; of claims that stay true only those of their verbs."""
    for claim in claims:
        if claim not in changed and not _belongs(caption, materials, claim, changed[0]):
            continue
        for old, new in zip(links_of(claim, caption), links_of(_exchanged(claim, *phrases), caption), strict=True):
            if old != new and (claim in changed or not old[1]):
                yield new


def _belongs(caption: Caption, materials: SwapMaterials, claim: Claim, before: Claim) -> bool:
    """Whether a verb is rather said of the noun right before it than of the subject of the claim that this noun ends."""
    if before.subject is None or claim.subject is None or claim.subject is not before.thing or not claim.verb:
        return True
    own, other = (
        link_count(materials.pool, caption.head(each), "", claim.verb)
        / (materials.pool.frequency(caption.head(each), "NOUN") + 1)
        for each in (claim.subject, before.subject)
    )
    return own >= other
