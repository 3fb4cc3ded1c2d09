"""REPLACE: put another object, attribute or relation in the place of one.

Each maker goes through the places of a caption in random order and yields an outcome for each: the change, or why
there is none. What a maker may put in: see `candidates.py` and the tables. Kept out here are the cases where the new
text could still be true: a relation between things of which there are several, a thing that other captions describe
with the new word.
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.adjective_candidates import adjective_is_said
from pairwright.generators.attributes import OPPOSITE, UNTOUCHED, exclude_each_other, is_colour, opposed_beside
from pairwright.generators.attributes import place as class_of
from pairwright.generators.box_truth import count_in_doubt
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import GENDERED, Caption, Outcome
from pairwright.generators.draws import Draws
from pairwright.generators.edits import Change
from pairwright.generators.generality import GENERAL, meant_by, other_sex
from pairwright.generators.language.inflection import inflect
from pairwright.generators.noun_candidates import Slot
from pairwright.generators.nouns import FRAMES, GATHERINGS, KINDS, OF_PEOPLE, PEOPLE, SEXED
from pairwright.generators.phrases import NUMBER_WORDS, NounPhrase
from pairwright.generators.placing import before_it
from pairwright.generators.wordlists import word_set

_CLOSES = frozenset({"", ".", ",", "and", "on", "in", "while", "at"})
MANY = 20  # any number that is not two
_GOVERNS = frozenset({"IN", "TO", "VBG", "VBZ", "VBP", "VBD", "VB"})
_VERBS = frozenset({"VBG", "VB", "VBP", "VBZ", "VBD", "VBN"})
_ACTS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VB"})
_BEFORE_ACTS = frozenset({"is", "are", "was", "were", "that", "which", "who"})
_GROWN = frozenset({"man", "woman", "guy", "lady", "gentleman"})
_CHILDREN = frozenset({"baby", "infant", "toddler", "newborn", "child", "kid", "boy", "girl", "son", "daughter"})
_AIR = frozenset({"air", "sky", "midair", "flying", "flies", "fly", "flight", "flown", "airborne"})
_BARE_PLURALS = frozenset({"giraffe", "zebra", "elephant", "buffalo", "bison", "antelope", "gazelle", "moose"})
_HERDS = frozenset({"herd", "group", "couple", "pair", "bunch", "flock", "pack", "lot", "number", "family", "crowd"})
_NAMING = frozenset({"stuffed", "hot", "live", "teddy", "half", "double"})
_FINITE_BE = frozenset({"is", "are", "was", "were", "'s"})
_SHADES = frozenset({"light", "dark", "bright", "pale", "deep"})  # of colours
# "Several" may be any number from two or three on; only of many there are surely not two.
_AMOUNTS = {"many": ("two", "few"), "numerous": ("two", "few")}
_YOUNG = frozenset({"little", "small", "tiny"})  # of people
_OTHER = frozenset({"another", "other"})
_SPORTS = word_set("tennis baseball soccer basketball football volleyball hockey golf rugby cricket softball")
_OF_SPORTS = _SPORTS | word_set(
    "racket racquet rackets racquets serve serving umpire batter catcher pitcher bat bats mitt plate base goalie goal hoop"
)
_OF_BODIES = frozenset({"legged", "handed", "headed", "haired", "eyed", "eared", "faced", "tailed"})  # "cross legged"
_ONE_WORD = frozenset({("brand", "new"), ("new", "born"), ("stained", "glass"), ("stainless", "steel")})
_FILLING = word_set(
    "filled full people crowd cars car traffic person pedestrians buses bus vehicles shoppers persons men women packed busy"
)
_OF_THE_FRUIT = frozenset({"slice", "peel", "wedge", "half", "segment", "rind", "juice", "tree"})  # no colour of these


def replace_object(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
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
    ]
    named = [(phrase, *_dictionary_noun(caption, phrase, candidates)) for phrase in phrases]
    # A room is any room, a living room is none of the others.
    nouns = [each for each in named if each[2] not in FRAMES and (caption.is_thing(each[0]) or each[2] in KINDS)]
    alone = [each for each in nouns if not (_is_another(caption, each[0]) or _is_of_the_game(caption, each[0]))]
    yield from _others(caption, candidates, alone, rng, anywhere=False)
    yield from _others(caption, candidates, alone, rng, anywhere=True)
    yield from _for_want_of_others(caption, candidates, phrases, alone, rng)
    if len(alone) < len(nouns):
        yield from _others(caption, candidates, [each for each in nouns if each not in alone], rng, anywhere=True)


def _is_another(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a thing is told from another of its name, which would lose its like: "one dog and another dog"."""
    named = [caption.head(each) for each in caption.phrases].count(caption.head(phrase)) > 1
    return named and not _OTHER.isdisjoint(caption.lower)


def _is_of_the_game(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether what stays tells of the same sport: "a tennis player | on a tennis court"."""
    rest = (*caption.lower[: phrase.start], *caption.lower[phrase.end :])
    return not (_SPORTS.isdisjoint(caption.lower[phrase.start : phrase.end]) or _OF_SPORTS.isdisjoint(rest))


def _others(
    caption: Caption,
    candidates: Candidates,
    nouns: Sequence[tuple[NounPhrase, int, str]],
    rng: Draws,
    *,
    anywhere: bool,
) -> Iterator[Outcome]:
    """Exchange nouns for others that captions put at such places, or ``anywhere``."""
    for ours in (True, False):
        for phrase, start, noun in nouns:
            if candidates.nouns.has_kinds(noun) is ours:
                yield _other_noun(caption, candidates, (phrase, start, noun), rng, anywhere=anywhere)
    for phrase, start, noun in nouns:
        if start == phrase.head and len(phrase.nouns) > 1 and not phrase.adjectives and not phrase.joined:
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
    rng: Draws,
) -> Iterator[Outcome]:
    """Exchange what captions tell less about: general nouns, nouns by their place only, and people by animals."""
    for phrase in phrases:
        yield from _other_than_meant(caption, candidates, phrase, rng)
    for place in nouns:
        if candidates.nouns.has_kinds(place[2]):
            yield _other_by_place(caption, candidates, place, rng)
    for phrase in phrases:
        if caption.head(phrase) in OF_PEOPLE:
            yield _other_being(caption, candidates, phrase, rng)


def _other_than_meant(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: Draws) -> Iterator[Outcome]:
    """Exchange a general noun for one that excludes what other captions call the same thing."""
    head, tag = caption.head(phrase), caption.tag(phrase.head)
    if len(phrase.nouns) > 1:
        return
    if head in GENERAL:
        slot = _slot(caption, phrase, phrase.head, head)
        for meant in rng.shuffled(meant_by(head, caption.words)):
            new, reason = candidates.nouns.for_noun(slot._replace(noun=meant), caption.words, rng)
            yield (_change(caption, phrase.head, phrase.end, inflect(new, tag)),) if new else reason
    elif head in OF_PEOPLE:
        new = other_sex(caption, phrase)
        if new and candidates.usage.is_written(new):
            yield (_change(caption, phrase.head, phrase.end, inflect(new, tag)),)


def _other_by_place(
    caption: Caption, candidates: Candidates, place: tuple[NounPhrase, int, str], rng: Draws
) -> Outcome:
    phrase, start, noun = place
    new, reason = candidates.nouns.by_place(_slot(caption, phrase, start, noun), caption.words, rng)
    return (_change(caption, start, phrase.end, inflect(new, _form_after(caption, phrase))),) if new else reason


def _is_longer(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> bool:
    """Whether the noun begins before the phrase, where the tagger took its first word for a verb ("Parking meter")."""
    before = phrase.start - 1
    if phrase.start != phrase.head or caption.tag(before) not in _VERBS:
        return False
    compound = f"{caption.word(before)} {caption.head(phrase)}"
    return candidates.nouns.has_kinds(compound) or candidates.things.is_word(compound)


def _other_noun(
    caption: Caption, candidates: Candidates, place: tuple[NounPhrase, int, str], rng: Draws, *, anywhere: bool
) -> Outcome:
    phrase, start, noun = place
    if noun in SEXED and not GENDERED.isdisjoint(caption.lower):
        return "not_grammatical"
    slot = _slot(caption, phrase, start, noun)
    if anywhere:
        slot = slot._replace(placed=(), place=("", ""))
    new, reason = candidates.nouns.for_noun(slot, caption.words, rng)
    return (_change(caption, start, phrase.end, inflect(new, _form_after(caption, phrase))),) if new else reason


def _form_after(caption: Caption, phrase: NounPhrase) -> str:
    """Return the tag of the noun that comes: "two giraffe" and "a couple of zebra" are several, as "dogs" are."""
    if caption.head(phrase) in _BARE_PLURALS and phrase.determiner < 0:
        herd = caption.word(phrase.start - 1) == "of" and caption.word(phrase.start - 2) in _HERDS
        if herd or (phrase.count >= 0 and caption.word(phrase.count) not in {"one", "1"}):
            return "NNS"
    return caption.tag(phrase.head)


def _other_being(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: Draws) -> Outcome:
    """Exchange somebody for an animal, or where "his" or "her" speaks of a grown person, for a baby."""
    if not GENDERED.isdisjoint(caption.lower):
        return _as_baby(caption, candidates, phrase)
    slot = _slot(caption, phrase, phrase.head, caption.head(phrase))
    new, reason = candidates.nouns.for_person(slot, caption.words, rng)
    return (_change(caption, phrase.head, phrase.end, inflect(new, caption.tag(phrase.head))),) if new else reason


def _as_baby(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> Outcome:
    """Make a man or a woman a baby: what is "his" stays his; no sheep brushes her teeth."""
    if caption.head(phrase) not in _GROWN or caption.plural(phrase) or phrase.adjectives or len(phrase.nouns) > 1:
        return "no_candidate"
    if not candidates.usage.is_written("baby") or candidates.company.is_strange_beside_any("baby", caption.contents):
        return "no_candidate"
    if caption.words.has_any(_CHILDREN | GATHERINGS):
        return "true_of_image"
    return (_change(caption, phrase.head, phrase.end, "baby"),)


def _slot(caption: Caption, phrase: NounPhrase, start: int, noun: str) -> Slot:
    staying = (at for at in (*phrase.adjectives, *phrase.nouns) if at < start)
    return Slot(
        noun,
        _governor(caption, phrase),
        caption.contents,
        act=_act(caption, phrase),
        contents=_contents(caption, phrase),
        described=tuple(caption.word(at) for at in staying),
        airborne=not _AIR.isdisjoint(caption.lower),
        whole=caption.lemmas[phrase.start - 2] if phrase.start > 1 and caption.word(phrase.start - 1) == "of" else "",
        placed=_placed(caption, phrase),
        place=_place(caption, phrase),
    )


def _placed(caption: Caption, phrase: NounPhrase) -> tuple[tuple[str, str], ...]:
    """Return what is said to be at a phrase, things and deeds, each with the preposition."""
    found = next((found for found in caption.relations if found.end == phrase.start), None)
    if found is None:
        return ()
    thing, preposition = before_it(caption, found.start), " ".join(caption.lower[found.start : found.end])
    deeds = [caption.lemmas[found.start - 1]] if caption.tag(found.start - 1) in _VERBS else []
    return tuple((left, preposition) for left in (*deeds, *([caption.head(thing)] if thing is not None else [])))


def _place(caption: Caption, phrase: NounPhrase) -> tuple[str, str]:
    """Return by which preposition, and at what, a phrase is said to be, verbs between; empty when it is not."""
    at = phrase.end
    while caption.tag(at)[:2] in {"VB", "RB"} or caption.word(at) in {"that", "which", "who"}:
        at += 1
    found = next((found for found in caption.relations if found.start == at), None)
    after = caption.starting_at(found.end) if found is not None else None
    if found is None or after is None:
        return "", ""
    return " ".join(caption.lower[found.start : found.end]), caption.head(after)


def _act(caption: Caption, phrase: NounPhrase) -> str:
    """Return the lemma of the verb right after a phrase, or after "is" or "that" there; empty when there is none."""
    at = phrase.end
    while caption.word(at) in _BEFORE_ACTS:
        at += 1
    return caption.tokens[at].lemma if caption.tag(at) in _ACTS else ""


def _contents(caption: Caption, phrase: NounPhrase) -> str:
    """Return the head of what stands after "of" ("a plate of | noodles"); empty when there is none."""
    after = caption.starting_at(phrase.end + 1) if caption.word(phrase.end) == "of" else None
    return caption.head(after) if after is not None else ""


def _governor(caption: Caption, phrase: NounPhrase) -> str:
    """Return the lemma of the preposition or verb right before a phrase; empty when there is none."""
    before = phrase.start - 1
    return caption.tokens[before].lemma if caption.tag(before) in _GOVERNS else ""


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


def replace_attribute(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Exchange an adjective, a material or a number for one that excludes it."""
    places = [(phrase, at) for phrase in caption.phrases for at in _describing(caption, candidates, phrase)]
    places += _predicates(caption, candidates)
    places += [
        (phrase, at) for phrase in caption.phrases for at in phrase.adjectives if _is_amount(caption, phrase, at)
    ]
    for phrase, at in rng.by_weight(places, [candidates.odds.rarity(caption.word(at)) for _, at in places]):
        if caption.word(at) in _AMOUNTS:
            yield _other_amount(caption, candidates, phrase, at, rng)
        elif at == phrase.count:
            yield _other_number(caption, candidates, phrase, rng)
        else:
            yield _other_adjective(caption, candidates, phrase, at, rng)


def _describing(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> Iterator[int]:
    """Yield the tokens of a phrase that describe its head."""
    if phrase.count >= 0 and caption.plural(phrase) and caption.word(phrase.count) != "one":
        yield phrase.count
    if phrase.joined and caption.is_thing(phrase):
        yield from (at for at in phrase.adjectives if is_colour(caption.word(at)) and _is_list(caption, at))
    if not phrase.joined:
        yield from (at for at in phrase.adjectives if _is_description(caption, candidates, phrase, at))
        yield from (
            at
            for at in phrase.nouns[:-1]
            if class_of(caption.word(at)) and not caption.in_name(at) and not _is_half(caption, at)
        )


def _is_list(caption: Caption, at: int) -> bool:
    """Whether a colour stands in "black and white" or before a comma, and not in "black-haired" or "dark blue"."""
    around = {caption.word(at - 1), caption.word(at + 1)}
    return not around.isdisjoint({"and", ","}) and "-" not in around and caption.word(at - 1) not in _SHADES


def _is_description(caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int) -> bool:
    """Whether a token describes the head: "red" of a bus, but not of the Red Sox, of red wine or of a person."""
    word, noun = caption.word(at), caption.head(phrase)
    of_people = noun in PEOPLE
    if word in UNTOUCHED or caption.tag(phrase.head).startswith("NNP") or caption.in_name(at):
        return False
    if (word == "orange" and noun in _OF_THE_FRUIT) or _is_half(caption, at):
        return False
    if word in _SHADES and is_colour(caption.word(at + 1)):
        return False
    if of_people and (is_colour(word) or (word in _YOUNG and not opposed_beside(word, "teenage", noun))):
        return False
    if at + 1 == phrase.head and not of_people and candidates.things.is_word(f"{word} {noun}"):
        return False  # a dictionary has the two as one word
    return caption.tag(at) == "JJ" or class_of(word) is not None


def _is_half(caption: Caption, at: int) -> bool:
    """Whether a word makes one with the word beside it: "brand new", "stained glass"."""
    return not _ONE_WORD.isdisjoint(
        {(caption.word(at - 1), caption.word(at)), (caption.word(at), caption.word(at + 1))}
    )


def _predicates(caption: Caption, candidates: Candidates) -> list[tuple[NounPhrase, int]]:
    """Return the adjectives said of a thing after it: "the circle is red", "with its door open"."""
    found = []
    for phrase in caption.phrases:
        said = caption.word(phrase.end) in _FINITE_BE
        at = phrase.end + said
        alone = caption.tag(at + 1) not in {"CC", ",", "NN", "NNS", "JJ", "HYPH", "TO"}
        if (
            caption.tag(at) == "JJ"
            and alone
            and (said or (caption.word(at) in OPPOSITE and caption.word(at + 1) in _CLOSES))
            and _is_description(caption, candidates, phrase, at)
        ):
            found.append((phrase, at))
    return found


def _is_amount(caption: Caption, phrase: NounPhrase, at: int) -> bool:
    return caption.word(at) in _AMOUNTS and at == phrase.start and caption.plural(phrase)


def _other_amount(caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int, rng: Draws) -> Outcome:
    """Exchange "several" and the like, when no caption counts such things."""
    if not caption.words.is_number(caption.head(phrase), MANY):
        return "true_of_image"
    word = rng.choice(_AMOUNTS[caption.word(at)])
    doubted = word == "two" and count_in_doubt(caption.words, caption.head(phrase), MANY, 2)
    if doubted or caption.words.has(word) or not candidates.usage.is_written(word):
        return "true_of_image"
    return (_change(caption, at, at + 1, word),)


def _other_number(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: Draws) -> Outcome:
    at, word, noun = phrase.count, caption.word(phrase.count), caption.head(phrase)
    digits = word.isdigit()
    number = int(word) if digits and len(word) < 3 else NUMBER_WORDS.index(word) + 1 if word in NUMBER_WORDS else 0
    if not 2 <= number <= 10:
        return "no_candidate"
    near = [n for n in range(number - 2, number + 4) if 2 <= n <= 10 and n != number]
    reason = "no_candidate"
    weights = candidates.odds.of_words(NUMBER_WORDS[number - 1], tuple(NUMBER_WORDS[n - 1] for n in near), noun)
    for n in rng.by_weight(near, weights):
        if caption.words.has_any((NUMBER_WORDS[n - 1], str(n))) or count_in_doubt(caption.words, noun, number, n):
            reason = "true_of_image"
        elif digits or candidates.usage.is_written(NUMBER_WORDS[n - 1]):
            return (_change(caption, at, at + 1, str(n) if digits else NUMBER_WORDS[n - 1]),)
    return reason


def _other_adjective(caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int, rng: Draws) -> Outcome:
    reason = "no_candidate"
    joined = phrase.adjectives if phrase.joined else ()
    beside = [caption.word(each) for each in joined if each != at and is_colour(caption.word(each))]
    for other in candidates.adjectives.describing(caption.word(at), caption.head(phrase), rng, joined=bool(beside)):
        if not all(exclude_each_other(other, colour) for colour in beside):
            continue
        if other == "empty" and not _FILLING.isdisjoint(caption.lower[at + 1 :]):
            continue  # "an empty street filled with cars"
        if not adjective_is_said(other, caption.words):
            return (_change(caption, at, at + 1, other),)
        reason = "true_of_image"
    return reason


def _change(caption: Caption, start: int, end: int, after: str) -> Change:
    return Change(caption.tokens[start].start, caption.tokens[end - 1].end, after)
