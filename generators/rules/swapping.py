"""SWAP: the words stay, two of them change places, and the text is no longer true.

Captions of the pool must say of each thing what is then said of it: a horse rides nobody, and no elephant is green.
Objects change places around a relation that holds one way only ("a cat on a table"): never around "and", "with" or
"next to", which hold both ways. Whole phrases move, with their determiners and adjectives, so that number and "a" or
"an" come along. Two owners trade what they have ("a man in a suit and a woman in a dress"). Attributes change places
between two things when both are of one class (two colours, two sizes, two numbers) and no caption says the outcome of
either thing.
"""

from collections.abc import Iterator
from itertools import combinations

from pairwright.generators.captions.box_truth import count_in_doubt, place_in_doubt
from pairwright.generators.captions.caption import ANAPHORS, Caption, Outcome
from pairwright.generators.captions.lists import is_one_description, is_one_list
from pairwright.generators.captions.phrases import NUMBER_WORDS, NounPhrase, span
from pairwright.generators.edits.realisation import Change, lowercase_span
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.adjective_candidates import keeps_its_colour
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.words.attributes import UNTOUCHED, exclude_each_other, is_colour
from pairwright.generators.words.nouns import FIGURES, OF_PEOPLE, SURROUNDINGS, WORN
from pairwright.generators.words.relations import STRICT_VERBS, Found, Relation
from pairwright.generators.words.synonyms import reword_each_other
from pairwright.generators.words.wordlists import word_set

VERB = Relation("verb", (), strict=True)
_CALLED_ON = frozenset({"phone", "cellphone", "telephone"})
_FOUR = 4
_OWNING = frozenset({"in", "on", "with", "under", "inside", "on top of", "wear", "hold", "ride", "carry", "eat"})
_FACING = frozenset({"in front of"})  # who stands so has the other in front of them too
_FINITE = frozenset({"VBZ", "VBP", "VBD"})
_TELLING = _FINITE | {"VBG"}
_BEING_THERE = frozenset({"sit", "stand", "lie", "lay", "rest", "hang", "be"})
_LIFELESS = frozenset({"hot", "teddy", "toy", "stuffed", "plush", "statue"})
_FRAME_HEADS = word_set("picture photo photograph image painting drawing view shot close closeup close-up")


def swap_object(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Exchange the two things that a one-way relation joins."""
    places = [found for found in caption.relations if found.relation.strict]
    places += _strict_verbs(caption)
    for found in rng.shuffled(places):
        joined = _joined(caption, found)
        if joined is not None:
            yield _exchange(caption, candidates, *joined, found)
    owned = _owned(caption)
    pairs = [(a, b) for a, b in combinations(owned, 2) if a[0] == b[0]]
    for (name, one, first), (_, other, second) in rng.shuffled(pairs):
        if len({one, first, other, second}) == _FOUR:
            yield _trade(caption, candidates, name, (one, first), (other, second))


def _owned(caption: Caption) -> list[tuple[str, NounPhrase, NounPhrase]]:
    """Return who has, wears or is on what: "a man in a suit", as ("in", man, suit)."""
    places = [(" ".join(caption.lower[f.start : f.end]), f.start, f.end) for f in caption.relations]
    places += [(caption.lemmas[at], at, at + 1) for at, tag in enumerate(caption.tags) if tag in _TELLING]
    found = []
    for name, start, end in places:
        if name not in _OWNING:
            continue
        owner, thing = caption.ending_at(start), caption.starting_at(end)
        if owner and thing and caption.is_thing(owner) and caption.is_thing(thing):
            found.append((name, owner, thing))
    return found


def _trade(
    caption: Caption,
    candidates: Candidates,
    name: str,
    one: tuple[NounPhrase, NounPhrase],
    other: tuple[NounPhrase, NounPhrase],
) -> Outcome:
    """Let two owners trade what they have: "a man in a suit and a woman in a dress"; ``name`` is how they have it.

    Both live or neither does, and neither has but a place: of "a man in a wetsuit on a board in the ocean" all is said
    of the man.
    """
    (owner, thing), (second_owner, second) = one, other
    heads = [caption.head(phrase) for phrase in (owner, thing, second_owner, second)]
    alike = _is_alive(caption, candidates, owner) is _is_alive(caption, candidates, second_owner)
    if not FIGURES.isdisjoint(heads) or not alike or not _may_be_traded(caption, thing, second):
        return "not_grammatical"
    if reword_each_other(heads[0], heads[2]) or reword_each_other(heads[1], heads[3]):
        return "identical"
    if not (candidates.company.goes_well(heads[3], heads[0]) and candidates.company.goes_well(heads[1], heads[2])):
        return "no_candidate"
    if not SURROUNDINGS.isdisjoint((heads[1], heads[3])) or any(map(caption.words.several, (heads[1], heads[3]))):
        return "true_of_image"
    return (
        "true_of_image"
        if _may_both_hold(caption, candidates, name, thing, second)
        else changing_places(caption, thing, second)
    )


def _may_both_hold(caption: Caption, candidates: Candidates, name: str, thing: NounPhrase, second: NounPhrase) -> bool:
    """Return whether each owner may have the other's thing as well.

    Both things are items of one list ("a room with a sink and a stove with a window"), or one is put where the other
    is: what is on a plate on a table is on the table, too.
    """
    if is_one_list(caption.tokens, (thing.start, thing.end), (second.start, second.end), candidates.things.is_alive):
        return True
    one, other = caption.head(thing), caption.head(second)
    if not WORN.isdisjoint((one, other)):
        return False
    return candidates.scenes.is_put(one, name, other) or candidates.scenes.is_put(other, name, one)


def _may_be_traded(caption: Caption, thing: NounPhrase, second: NounPhrase) -> bool:
    """Whether each of two phrases can stand where the other stands, and says nothing of what was named before."""
    inside = {word for phrase in (thing, second) for word in caption.lower[phrase.start : phrase.end]}
    whole = all(
        caption.is_whole(phrase) and caption.word(phrase.end) not in {"of", "'s", "-"} for phrase in (thing, second)
    )
    return whole and ANAPHORS.isdisjoint(inside) and _determined(thing) == _determined(second)


def _strict_verbs(caption: Caption) -> list[Found]:
    return [
        Found(VERB, at, at + 1)
        for at, tag in enumerate(caption.tags)
        if tag in _TELLING and caption.lemmas[at] in STRICT_VERBS
    ]


def _joined(caption: Caption, found: Found) -> tuple[NounPhrase, NounPhrase] | None:
    """Return the phrases on both sides of a relation: "A is sitting REL B", "A REL B"."""
    at = found.start
    while at > 0 and found.start - at < 2 and (caption.tag(at - 1) == "VBG" or caption.word(at - 1) in {"is", "are"}):
        at -= 1
    before, after = caption.ending_at(at), caption.starting_at(found.end)
    if before is None or after is None or not (caption.is_thing(before) and caption.is_thing(after)):
        return None
    return before, after


def _exchange(caption: Caption, candidates: Candidates, one: NounPhrase, other: NounPhrase, found: Found) -> Outcome:
    first, second = caption.noun(one), caption.noun(other)
    if not _movable(caption, one, other) or not _CALLED_ON.isdisjoint((caption.head(one), caption.head(other))):
        return "not_grammatical"  # "a cell phone on a girl in a car"
    if not _makes_sense(caption, candidates, one, other, found):
        return "no_candidate"
    if reword_each_other(first, second) or caption.head(one) == caption.head(other):
        return "identical"
    wording = " ".join(caption.lower[found.start : found.end])
    doubted = place_in_doubt(caption.words, caption.head(other), wording, caption.head(one))
    if wording in _FACING and any(_is_alive(caption, candidates, phrase) for phrase in (one, other)):
        return "true_of_image"
    if doubted or caption.words.several(caption.head(one)) or caption.words.several(caption.head(other)):
        return "true_of_image"
    return changing_places(caption, one, other)


def _movable(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Whether both phrases stand alone, and the verb fits both."""
    before, after = caption.word(one.start - 1), caption.word(other.end)
    inside = {*caption.lower[one.start : one.end], *caption.lower[other.start : other.end]}
    numbers_differ = caption.plural(one) != caption.plural(other)
    verbs = any(caption.tag(at) in _FINITE for at in range(len(caption.tokens)))
    own_frame = before == "of" and caption.word(one.start - 2) in _FRAME_HEADS
    return (
        caption.is_whole(other)
        and ANAPHORS.isdisjoint(inside)
        and not (numbers_differ and verbs)
        and after not in {"of", "and", "or", "'s", "-"}
        and (own_frame or _opens(caption, one.start - 1))
        and _determined(one) == _determined(other)
    )


def _opens(caption: Caption, before: int) -> bool:
    """Whether a phrase after token ``before`` is what the relation is said of, and no part of another phrase."""
    word = caption.word(before)
    return word in {"", ",", "is", "are", "shows", "showing"} or (word == "and" and caption.word(before - 1) == ",")


def _determined(phrase: NounPhrase) -> bool:
    return phrase.determiner >= 0 or phrase.count >= 0


def _makes_sense(caption: Caption, candidates: Candidates, one: NounPhrase, other: NounPhrase, found: Found) -> bool:
    """Whether captions of the pool say it of such things: each does what the other did, and stands where it stood."""
    first, second = caption.head(one), caption.head(other)
    acts = {caption.tokens[at].lemma for at in range(one.end, found.start) if caption.tag(at) == "VBG"}
    if found.relation is VERB:
        alive = all(_is_alive(caption, candidates, phrase) for phrase in (one, other))
        return alive and candidates.usage.may_trade_parts(first, caption.lemmas[found.start], second)
    if not acts <= _BEING_THERE and not all(candidates.usage.does(second, act) for act in acts):
        return False
    if caption.head(other) in SURROUNDINGS:
        return False
    wording = " ".join(caption.lower[found.start : found.end])
    # No building stands on a clock tower, however often captions have both.
    placed = candidates.scenes.is_usual(second, wording, first)
    return placed and candidates.usage.may_trade_places(first, wording, second)


def _is_alive(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> bool:
    inside = caption.lower[phrase.start : phrase.end]
    return candidates.things.is_alive(caption.head(phrase)) and _LIFELESS.isdisjoint(inside)


def changing_places(caption: Caption, one: NounPhrase, other: NounPhrase) -> tuple[Change, Change]:
    """Return the two changes by which two phrases, in order of position, exchange their words."""
    source = caption.pair.caption
    (start, end), (second_start, second_end) = (
        span(caption.tokens, one.start, one.end),
        span(caption.tokens, other.start, other.end),
    )
    moved = lowercase_span(source, start, end, proper=caption.tag(one.start).startswith("NNP"))
    return Change(start, end, source[second_start:second_end]), Change(second_start, second_end, moved)


def swap_attribute(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Exchange the adjectives of two different things."""
    described = [(phrase, at) for phrase in caption.phrases for at in _single_adjectives(caption, phrase)]
    pairs = [(a, b) for a, b in combinations(described, 2) if a[0] is not b[0]]
    for (one, first), (other, second) in rng.shuffled(pairs):
        if not exclude_each_other(caption.word(first), caption.word(second)):
            continue
        if not (
            candidates.adjectives.is_described(caption.head(one), caption.word(second))
            and candidates.adjectives.is_described(caption.head(other), caption.word(first))
        ):
            yield "no_candidate"
        else:
            yield _exchange_adjectives(caption, (one, first), (other, second))
    counted = [phrase for phrase in caption.phrases if phrase.count >= 0 and _number(caption, phrase)]
    for one, other in combinations(counted, 2):
        if _number(caption, one) != _number(caption, other) and caption.is_thing(one) and caption.is_thing(other):
            doubted = _counts_in_doubt(caption, one, other)
            yield "true_of_image" if doubted else _exchange_adjectives(caption, (one, one.count), (other, other.count))


def _counts_in_doubt(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Whether boxes leave open that there are as many of each as the caption says of the other."""
    first, second = (NUMBER_WORDS.index(_number(caption, phrase)) + 1 for phrase in (one, other))
    return count_in_doubt(caption.words, caption.head(one), first, second) or count_in_doubt(
        caption.words, caption.head(other), second, first
    )


def _number(caption: Caption, phrase: NounPhrase) -> str:
    """Return the number word of a plural phrase; empty for any other."""
    word = caption.word(phrase.count)
    whole = caption.tag(phrase.count + 1) != "HYPH"
    return word if whole and caption.plural(phrase) and word in NUMBER_WORDS[1:] else ""


def _single_adjectives(caption: Caption, phrase: NounPhrase) -> list[int]:
    if phrase.joined or not caption.is_thing(phrase) or caption.head(phrase) in OF_PEOPLE:
        return []
    found = [at for at in phrase.adjectives if caption.tag(at) == "JJ" and caption.word(at) not in UNTOUCHED]
    keeps = keeps_its_colour(caption, phrase)
    return [at for at in found if not (keeps and is_colour(caption.word(at)))]


def _exchange_adjectives(caption: Caption, one: tuple[NounPhrase, int], other: tuple[NounPhrase, int]) -> Outcome:
    (first_phrase, first), (second_phrase, second) = one, other
    heads = caption.head(first_phrase), caption.head(second_phrase)
    if reword_each_other(*heads):
        return "identical"
    if is_one_description(caption.tokens, first, second):
        return "true_of_image"  # "white black blue and red", whatever a tagger takes for a noun
    words, counts = caption.words, first == first_phrase.count
    if words.said_with(heads[0], caption.word(second), elsewhere=counts) or words.said_with(
        heads[1], caption.word(first), elsewhere=counts
    ):
        return "true_of_image"
    tokens, source = caption.tokens, caption.pair.caption
    moved = lowercase_span(source, tokens[first].start, tokens[first].end)
    return (
        Change(tokens[first].start, tokens[first].end, caption.word(second)),
        Change(tokens[second].start, tokens[second].end, moved),
    )
