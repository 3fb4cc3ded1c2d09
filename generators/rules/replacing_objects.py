"""REPLACE an object: exchange a noun or compound for one of its kind; what may stand for it: see `knowledge/noun_candidates.py`."""

from collections.abc import Iterator, Sequence

from pairwright.generators.captions.caption import GENDERED, Caption, Outcome
from pairwright.generators.captions.noun_slots import noun_slot
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import VERBS
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.inflection import inflect
from pairwright.generators.rules.generality import GENERAL, meant_by, other_sex
from pairwright.generators.words.attributes import OPPOSITE, UNTOUCHED, is_colour
from pairwright.generators.words.attributes import place as class_of
from pairwright.generators.words.nouns import FRAMES, GATHERINGS, KINDS, OF_PEOPLE, SEXED
from pairwright.generators.words.wordlists import word_set

_GROWN = frozenset({"man", "woman", "guy", "lady", "gentleman", "person"})
# Further people, in whose place an animal may well be.
_MORE_PEOPLE = word_set(
    "skater diner musician guest shopper cop passenger customer visitor parent sailor photographer performer dancer hiker "
    "jogger"
)
_CHILDREN = frozenset({"baby", "infant", "toddler", "newborn", "child", "kid", "boy", "girl", "son", "daughter"})
_BARE_PLURALS = frozenset({"giraffe", "zebra", "elephant", "buffalo", "bison", "antelope", "gazelle", "moose"})
_HERDS = frozenset({"herd", "group", "couple", "pair", "bunch", "flock", "pack", "lot", "number", "family", "crowd"})
_NAMING = frozenset({"stuffed", "hot", "live", "teddy", "half", "double"})
_OTHER = frozenset({"another", "other"})
_NAMING_VERBS = frozenset({"named", "called"})  # "a cat named | Dog"
_SPORTS = word_set("tennis baseball soccer basketball football volleyball hockey golf rugby cricket softball")
_OF_SPORTS = _SPORTS | word_set(
    "racket racquet rackets racquets serve serving umpire batter catcher pitcher bat bats mitt plate base goalie goal hoop"
)
_BARE = word_set("bed home school church town class hand foot shore work college sea jail") | {
    "home plate",
    "home base",
}
_OF_BODIES = frozenset({"legged", "handed", "headed", "haired", "eyed", "eared", "faced", "tailed"})  # "cross legged"


def replace_object(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Exchange a noun or compound for one of its kind; the adjectives that describe it stay.

    Places for which our own tables have something come first. Of a compound that no dictionary has ("city street") the
    last word goes, or all of it where the others cannot stay. Then come general nouns whose meaning other captions tell
    ("a room" that they call a kitchen), and nouns for which only the place vouches. People give way to animals when
    nothing else goes.
    """
    phrases = [
        phrase
        for phrase in rng.shuffled(caption.phrases)
        if caption.tag(phrase.head) in {"NN", "NNS"}
        and caption.is_whole(phrase)
        and not (caption.plural(phrase) and caption.word(phrase.determiner) in {"a", "an"})  # "a women"
        and not _is_longer(caption, candidates, phrase)
        and not _is_in_colours(caption, phrase)
        and caption.word(phrase.end) not in _OF_BODIES
        and not _is_told_apart(caption, phrase)
        and not _goes_on_describing(caption, phrase)
        and caption.word(phrase.start - 1) not in _NAMING_VERBS
        and not _is_said_bare(caption, phrase)
        and not _is_moved(caption, phrase)
    ]
    named = [(phrase, *_dictionary_noun(caption, phrase, candidates)) for phrase in phrases]
    # A room is any room, a living room is none of the others.
    nouns = [each for each in named if each[2] not in FRAMES and (caption.is_thing(each[0]) or each[2] in KINDS)]
    alone = [each for each in nouns if not (_is_another(caption, each[0]) or _is_of_the_game(caption, each[0]))]
    yield from _others(caption, candidates, alone, rng, anywhere=False)
    yield from _others(caption, candidates, alone, rng, anywhere=True)
    yield from _for_want_of_others(caption, candidates, phrases, alone, rng)
    if len(alone) < len(nouns):
        rest = [each for each in nouns if each not in alone]
        yield from _others(caption, candidates, rest, rng, anywhere=True)
        yield from _by_places(caption, candidates, rest, rng)


def _goes_on_describing(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a comma before a compound parts it from what describes it: "an iced, | chocolate cake"."""
    before = phrase.start - 1
    return phrase.start < phrase.head and caption.word(before) == "," and caption.tag(before - 1)[:2] in {"JJ", "VB"}


def _is_said_bare(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a noun goes without its article where no other would: "lying in | bed", "at | home plate"."""
    bare = phrase.start == phrase.nouns[0] and not caption.plural(phrase) and caption.tag(phrase.start - 1) == "IN"
    return bare and caption.noun(phrase) in _BARE


def _is_moved(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a hand is told of by what it does: "with her | hands on her hips", and not "a phone in her | hand"."""
    return caption.head(phrase) == "hand" and caption.word(phrase.start - 1) != "in"


def _is_told_apart(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether others of its name are told of: of "a duck with other ducks" none is a dog."""
    return any(
        each is not phrase and not _OTHER.isdisjoint(caption.lower[each.start : each.head])
        for each in caption.by_head[caption.head(phrase)]
    )


def _is_another(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether another of its kind is told of, which would lose its like: "a dog and another dog", "a cow and its baby cow"."""
    if not _OTHER.isdisjoint(caption.lower[phrase.start : phrase.head]) and len(caption.things) > 1:
        return True
    return len(caption.by_head[caption.head(phrase)]) > 1


def _is_of_the_game(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether what stays tells of the same sport: "a tennis player | on a tennis court"."""
    rest = (*caption.lower[: phrase.start], *caption.lower[phrase.end :])
    return not (_SPORTS.isdisjoint(caption.lower[phrase.start : phrase.end]) or _OF_SPORTS.isdisjoint(rest))


def _others(
    caption: Caption,
    candidates: Candidates,
    nouns: Sequence[tuple[NounPhrase, int, str]],
    rng: RandomStream,
    *,
    anywhere: bool,
) -> Iterator[Outcome]:
    """Exchange nouns for others that captions put at such places, or ``anywhere``."""
    for ours in (True, False):
        for phrase, start, noun in nouns:
            if candidates.nouns.has_kinds(noun) is ours:
                yield _other_noun(caption, candidates, (phrase, start, noun), rng, anywhere=anywhere)
    for phrase, start, noun in nouns:
        alone = not (phrase.adjectives or phrase.joined or caption.counts_a_part(phrase))
        if start == phrase.head and len(phrase.nouns) > 1 and alone:
            yield _other_noun(caption, candidates, (phrase, phrase.nouns[0], noun), rng, anywhere=anywhere)


def _is_in_colours(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a noun is a colour beside another: "an | orange | and red sign"."""
    if not is_colour(caption.head(phrase)):
        return False
    beyond = phrase.end + 1 + (caption.word(phrase.end + 1) in {"a", "an", "the"})
    after = caption.word(phrase.end) in {"and", ","} and is_colour(caption.word(beyond))
    return after or (caption.word(phrase.start - 1) in {"and", ","} and is_colour(caption.word(phrase.start - 2)))


def _for_want_of_others(
    caption: Caption,
    candidates: Candidates,
    phrases: Sequence[NounPhrase],
    nouns: Sequence[tuple[NounPhrase, int, str]],
    rng: RandomStream,
) -> Iterator[Outcome]:
    """Exchange what captions tell less about: general nouns, nouns by their place only, and people by animals."""
    for phrase in phrases:
        yield from _other_than_meant(caption, candidates, phrase, rng)
    yield from _by_places(caption, candidates, nouns, rng)
    for phrase in phrases:
        if caption.head(phrase) in OF_PEOPLE | _MORE_PEOPLE:
            yield _other_being(caption, candidates, phrase, rng)


def _by_places(
    caption: Caption, candidates: Candidates, nouns: Sequence[tuple[NounPhrase, int, str]], rng: RandomStream
) -> Iterator[Outcome]:
    for place in nouns:
        if candidates.nouns.has_kinds(place[2]):
            yield _other_by_place(caption, candidates, place, rng)


def _other_than_meant(
    caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: RandomStream
) -> Iterator[Outcome]:
    """Exchange a general noun for one that excludes what other captions call the same thing."""
    head, tag = caption.head(phrase), caption.tag(phrase.head)
    if len(phrase.nouns) > 1:
        return
    if head in GENERAL:
        slot = noun_slot(caption, phrase, phrase.head, head)
        for meant in rng.shuffled(meant_by(head, caption.words)):
            new, reason = candidates.nouns.for_noun(slot._replace(noun=meant), caption.words, rng)
            yield (caption.change(phrase.head, phrase.end, inflect(new, tag)),) if new else reason
    elif head in OF_PEOPLE:
        new = other_sex(caption, phrase)
        if new and candidates.usage.is_written(new):
            yield (caption.change(phrase.head, phrase.end, inflect(new, tag)),)


def _other_by_place(
    caption: Caption, candidates: Candidates, place: tuple[NounPhrase, int, str], rng: RandomStream
) -> Outcome:
    phrase, start, noun = place
    new, reason = candidates.nouns.by_place(noun_slot(caption, phrase, start, noun), caption.words, rng)
    return (caption.change(start, phrase.end, inflect(new, _form_after(caption, phrase))),) if new else reason


def _is_longer(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> bool:
    """Whether the noun begins before the phrase, where the tagger took its first word for a verb ("Parking meter")."""
    before = phrase.start - 1
    if phrase.start != phrase.head or caption.tag(before) not in VERBS:
        return False
    compound = f"{caption.word(before)} {caption.head(phrase)}"
    return candidates.nouns.has_kinds(compound) or candidates.things.is_word(compound)


def _other_noun(
    caption: Caption, candidates: Candidates, place: tuple[NounPhrase, int, str], rng: RandomStream, *, anywhere: bool
) -> Outcome:
    phrase, start, noun = place
    if noun in SEXED and not GENDERED.isdisjoint(caption.lower):
        return "not_grammatical"
    slot = noun_slot(caption, phrase, start, noun)
    if anywhere:
        slot = slot._replace(placed=(), place=("", ""))
    new, reason = candidates.nouns.for_noun(slot, caption.words, rng)
    return (caption.change(start, phrase.end, inflect(new, _form_after(caption, phrase))),) if new else reason


def _form_after(caption: Caption, phrase: NounPhrase) -> str:
    """Return the tag of the noun that comes: "two giraffe" and "a couple of zebra" are several, as "dogs" are."""
    if caption.head(phrase) in _BARE_PLURALS and phrase.determiner < 0:
        herd = caption.word(phrase.start - 1) == "of" and caption.word(phrase.start - 2) in _HERDS
        if herd or (phrase.count >= 0 and caption.word(phrase.count) not in {"one", "1"}):
            return "NNS"
    return caption.tag(phrase.head)


def _other_being(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: RandomStream) -> Outcome:
    """Exchange somebody for an animal; a grown person for a baby, where none will do or "his" or "her" speaks of one."""
    if not GENDERED.isdisjoint(caption.lower):
        return _as_baby(caption, candidates, phrase)
    slot = noun_slot(caption, phrase, phrase.head, caption.head(phrase))
    new, reason = candidates.nouns.for_person(slot, caption.words, rng)
    if new:
        return (caption.change(phrase.head, phrase.end, inflect(new, caption.tag(phrase.head))),)
    baby = _as_baby(caption, candidates, phrase)
    return reason if isinstance(baby, str) else baby


def _as_baby(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> Outcome:
    """Make a man or a woman a baby: what is "his" stays his; no sheep brushes her teeth."""
    if caption.head(phrase) not in _GROWN or caption.plural(phrase) or phrase.adjectives or len(phrase.nouns) > 1:
        return "no_candidate"
    act = noun_slot(caption, phrase, phrase.head, caption.head(phrase)).act
    if act and not candidates.usage.does("baby", act):
        return "no_candidate"  # no baby puts a turkey into the oven
    if not candidates.usage.is_written("baby") or candidates.company.is_strange_beside_any("baby", caption.contents):
        return "no_candidate"
    if caption.words.has_any(_CHILDREN | GATHERINGS):
        return "true_of_image"
    return (caption.change(phrase.head, phrase.end, "baby"),)


def _dictionary_noun(caption: Caption, phrase: NounPhrase, candidates: Candidates) -> tuple[int, str]:
    """Return where the noun starts and what a dictionary calls it; of a compound that none has, its last word."""
    before = phrase.head - 1
    if before < phrase.start or before not in {*phrase.nouns, *phrase.adjectives}:
        return phrase.head, caption.head(phrase)
    compound = f"{caption.word(before)} {caption.head(phrase)}"
    described = caption.head(phrase) in OF_PEOPLE or (before in phrase.adjectives and _says_how(caption.word(before)))
    if compound in KINDS or (candidates.things.is_word(compound) and not described):
        return before, compound
    if caption.tag(before) == "NNS":
        return before, caption.head(phrase)  # "farmers" go with the market
    return phrase.head, caption.head(phrase)


def _says_how(word: str) -> bool:
    """Whether an adjective describes on its own, and so stays: "right" of a hand, but not "polar" of a bear."""
    return class_of(word) is not None or word in OPPOSITE or word in UNTOUCHED - _NAMING
