"""REPLACE an attribute: what is said of a noun, or how many there are.

What may be said instead: see `knowledge/adjective_candidates.py`.
Places are gone through in random order, with an outcome for each: the change, or why there is none. A thing that other
captions describe with the new word is left as it is.
"""

from collections.abc import Iterator

from pairwright.generators.captions.box_truth import count_in_doubt
from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.phrases import NUMBER_WORDS, NounPhrase
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.adjective_candidates import adjective_is_said, keeps_its_colour
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.words.attributes import OPPOSITE, UNTOUCHED, exclude_each_other, is_colour, opposed_beside
from pairwright.generators.words.attributes import place as class_of
from pairwright.generators.words.nouns import PEOPLE
from pairwright.generators.words.wordlists import word_set

_CLOSES = frozenset({"", ".", ",", "and", "on", "in", "while", "at"})
MANY = 20  # any number that is not two
_FINITE_BE = frozenset({"is", "are", "was", "were", "'s"})
_SHADES = frozenset({"light", "dark", "bright", "pale", "deep"})  # of colours
_SHADES_OF_ONE = word_set(  # what says which green or blue it is: "lime | green"
    "lime navy olive army forest hunter royal mint hot baby sky powder emerald sea kelly pea apple cherry ruby rust brick "
    "fire candy turquoise steel slate charcoal burnt golden midnight cobalt electric lemon chocolate coffee blood jet"
)
_VIVID = frozenset({"bright", "neon", "fluorescent", "florescent", "vivid"})
_OF_NO_SHADE = frozenset({"black", "white"})  # nothing is light black
_DULL = _OF_NO_SHADE | {"brown", "gray", "grey", "tan", "beige"}
# "Several" may be any number from two or three on; only of many there are surely not two.
_AMOUNTS = {"many": ("two", "few"), "numerous": ("two", "few")}
_NAMED = {2: ("couple", "pair"), 3: ("trio",)}
_YOUNG = frozenset({"little", "small", "tiny"})  # of people
_ONE_WORD = frozenset({
    ("brand", "new"), ("new", "born"), ("stained", "glass"), ("stainless", "steel"), ("golden", "brown"),
    ("happy", "birthday"), ("happy", "new"), ("new", "year"), ("year", "old"), ("years", "old"),
})  # fmt: skip
_FILLING = word_set(
    "filled full people crowd cars car traffic person pedestrians buses bus vehicles shoppers persons men women packed busy"
)
_OF_THE_FRUIT = frozenset({"slice", "peel", "wedge", "half", "segment", "rind", "juice", "tree"})  # no colour of these


def replace_attribute(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Exchange an adjective, a material or a number for one that excludes it."""
    places = [(phrase, at) for phrase in caption.phrases for at in _describing(caption, candidates, phrase)]
    places += _predicates(caption, candidates)
    places += [
        (phrase, at) for phrase in caption.phrases for at in phrase.adjectives if _is_amount(caption, phrase, at)
    ]
    for phrase, at in rng.weighted_shuffle(places, [candidates.odds.rarity(caption.word(at)) for _, at in places]):
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
    stays = is_colour(word) and keeps_its_colour(caption, phrase)
    if stays or (word == "orange" and noun in _OF_THE_FRUIT) or _is_half(caption, at):
        return False
    told = is_colour(word) and caption.word(at - 1) in _SHADES_OF_ONE
    if told or (word in _SHADES and is_colour(caption.word(at + 1))):
        return False
    if of_people and (is_colour(word) or (word in _YOUNG and not opposed_beside(word, "teenage", noun))):
        return False
    if at + 1 == phrase.head and not of_people and candidates.things.is_word(f"{word} {noun}"):
        return False  # a dictionary has the two as one word
    return caption.tag(at) == "JJ" or class_of(word) is not None


def _without_shade(shade: str) -> frozenset[str]:
    """Return the colours that are not said in a shade: "light black", "bright brown"."""
    return _DULL if shade in _VIVID else _OF_NO_SHADE if shade in _SHADES else frozenset()


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


def _other_amount(caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int, rng: RandomStream) -> Outcome:
    """Exchange "several" and the like, when no caption counts such things."""
    if not caption.words.is_number(caption.head(phrase), MANY):
        return "true_of_image"
    word = rng.choice(_AMOUNTS[caption.word(at)])
    doubted = word == "two" and count_in_doubt(caption.words, caption.head(phrase), MANY, 2)
    if doubted or caption.words.has_any((word, *_NAMED[2])) or not candidates.usage.is_written(word):
        return "true_of_image"
    return (caption.change(at, at + 1, word),)


def _other_number(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: RandomStream) -> Outcome:
    at, word, noun = phrase.count, caption.word(phrase.count), caption.head(phrase)
    digits = word.isdigit()
    number = int(word) if digits and len(word) < 3 else NUMBER_WORDS.index(word) + 1 if word in NUMBER_WORDS else 0
    if not 2 <= number <= 10:
        return "no_candidate"
    near = [n for n in range(number - 2, number + 4) if 2 <= n <= 10 and n != number]
    reason = "no_candidate"
    weights = candidates.odds.of_words(NUMBER_WORDS[number - 1], tuple(NUMBER_WORDS[n - 1] for n in near), noun)
    for n in rng.weighted_shuffle(near, weights):
        if caption.words.has_any((NUMBER_WORDS[n - 1], str(n), *_NAMED.get(n, ()))) or count_in_doubt(
            caption.words, noun, number, n
        ):
            reason = "true_of_image"
        elif digits or candidates.usage.is_written(NUMBER_WORDS[n - 1]):
            return (caption.change(at, at + 1, str(n) if digits else NUMBER_WORDS[n - 1]),)
    return reason


def _other_adjective(
    caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int, rng: RandomStream
) -> Outcome:
    reason = "no_candidate"
    joined = phrase.adjectives if phrase.joined else ()
    beside = [caption.word(each) for each in joined if each != at and is_colour(caption.word(each))]
    for other in candidates.adjectives.describing(caption.word(at), caption.head(phrase), rng, joined=bool(beside)):
        if not all(exclude_each_other(other, colour) for colour in beside):
            continue
        if other in _without_shade(caption.word(at - 1)):
            continue
        if other == "empty" and not _FILLING.isdisjoint(caption.lower[at + 1 :]):
            continue  # "an empty street filled with cars"
        if not adjective_is_said(other, caption.words):
            return (caption.change(at, at + 1, other),)
        reason = "true_of_image"
    return reason
