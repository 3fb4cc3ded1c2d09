"""What the other captions and boxes prove to be there: the true side of an addition.

Words alone tell a thing from a mention of it ("a chili dog", "a bus stop", "looking at the camera", "in a circle", "a
sign with a horse on it"), so a statement counts only in the plainest shape:

- a *thing* is stated by a box of its name, or by another caption as a whole noun phrase: determiner, at most two plain
  adjectives, a noun of `nouns.ADDABLE` (whole, countable, to be seen; no part, group, direction or person), and then the
  end of a clause or a word that opens the next phrase. Nothing in that caption may deny, compare or picture things
  (`_UNREAL`), and the noun may not hang on "of", "for", "like", "as". It must be *another* thing than those that the
  caption itself names: of another kind by WordNet, or beside them in the caption that states it or
  in many captions of the pool.
- an *attribute* is stated by a caption, as the one adjective between a determiner and the same noun or compound, while
  no caption or box speaks of several such things, or of another one.

`adding_objects.py` further asks that the pool has the thing beside what it is added to: a slip of a captioner seldom passes.
Two pairs of 75 were found wrong by eye on COCO's captions, at 0.3% (things) and 7% (attributes) of all captions.

What is proven is that the image holds such a thing, and, of an attribute, that a caption gives it to a thing of that
name. What is not: that a caption is right, that two captions mean the same of two things of one name, and where
exactly a thing is; so `adding_objects.py` adds true things only at the end of a caption, where they belong to the scene. For a
claim that names no place, `things_in_view` takes more: several things, and what keeps its name behind any other noun.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.context import ImageWords, plural_of
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.words.attributes import OPPOSITE, PLACES, UNTOUCHED
from pairwright.generators.words.nouns import (
    ADDABLE,
    FIGURES,
    FRAMES,
    IN_VIEW,
    OF_PEOPLE,
    PEOPLE,
    PLURAL_ONLY,
    SURROUNDINGS,
    WORN,
)
from pairwright.generators.words.wordlists import word_set

_STEM = 4  # letters
_MARK = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[.,;:!?()\"]")
_DETERMINERS = frozenset({"a", "an", "one", "the", "his", "her"})
_MOST_ADJECTIVES = 2
_CLOSES = word_set(
    ". , ; : ! ? ) in on at with near next beside by under over and while is that which from inside outside above below "
    "behind between against along across through around to sitting standing walking laying lying parked flying being "
    "hanging resting running riding driving swimming grazing traveling moving leaning waiting sits stands lies lays "
    "rests has hangs flies"
)
_HANGS_ON = word_set("of like as for no not without or than to named called saying says reads into about")
_SIDES = word_set("front top side back middle left right bottom center outside inside edge")
_UNREAL = word_set(
    "no not without isn't aren't never toy toys stuffed fake plastic statue statues sculpture painting paintings painted "
    "drawing drawn drawings poster advertisement ad billboard graffiti mural cartoon costume dressed shaped shape like "
    "looks appears seems maybe probably possibly could or screen logo printed decorated decorations figurine figurines "
    "camera model puppet mirror reflection reflected if imaginary trying waiting ready wants pretending "
    "race racing themed carved knitted crocheted inflatable lego sign signs game video wii shirt missing absent designed design"
)
# What one captioner could not name is what another could.
_UNTOLD = word_set(
    "something someone thing things object objects item items device contraption stuff structure toy toys"
)
_OTHER_ONES = word_set("another other others both each two three four five six seven eight nine ten several many")
_WHOLES = {  # words that may hold the thing
    "food": word_set(
        "food foods meal meals lunch dinner breakfast dish dishes dessert desserts pastry pastries snack snacks vegetables "
        "veggies fruit fruits produce toppings buffet ingredients treats eating cooking groceries appetizers"
    ),
    "living": word_set("animal animals livestock wildlife pet pets wild zoo herd"),
    "made": word_set("vehicle vehicles traffic furniture toys luggage bags instruments"),
}
_IMPLYING = {
    "camera": word_set("taking takes take photographing photographer selfie filming picture pictures photo photos"),
    "frisbee": word_set("disc disk throwing catching"),
    "umbrella": word_set("rain raining rainy parasol"),
    "clown": word_set("costume costumes"),
    "bride": word_set("wedding groom gown"),
    "kite": word_set("string strings"),
    "forest": word_set("tree trees wood woods wooded woodland"),
    "pool": word_set("skate skateboard skateboards skateboarder skateboarding swimming"),
    "library": word_set("books shelves"),
}
_ELSEWHERE = SURROUNDINGS | PEOPLE
# Things to be claimed of a whole picture, as written, with their lemmas.
_SEEN = {noun: noun for noun in (*ADDABLE, *IN_VIEW) if noun not in FIGURES | OF_PEOPLE | PLURAL_ONLY | {"camera"}}
_SEEN_SEVERAL = {plural_of(noun): noun for noun in _SEEN if plural_of(noun) != noun}
_NAMES = frozenset((*_SEEN, *_SEEN_SEVERAL))
_OF_ANY = _DETERMINERS | frozenset({"their", "its", "this", "another"})
_BEFORE_SEVERAL = word_set(
    "the some several many two three four five six various other these with and by near on in beside behind between "
    "watching among past over under around at large small little big white black red blue green brown wooden"
)
# Whatever stands before them, they are what they are: a city street, a barbed wire fence.
_STURDY = word_set(
    "street road field fence park house bridge desk bed sink toilet couch bench forest garden beach ocean river lake kitchen "
    "bathroom bedroom office restaurant stadium airport table counter shelf runway highway sidewalk ramp barn tower oven stove "
    "refrigerator computer laptop keyboard bathtub umbrella backpack plate bowl tray basket mirror lamp pool market"
)
_FURTHEST = 4  # words before such a noun up to its article
_NO_PART = _OF_ANY | _NAMES | _CLOSES | _HANGS_ON | word_set("with has have who being are at down up off into onto")
# Only what follows these is pictured, or hoped for.
_PICTURING = word_set("sign signs shirt camera trying waiting ready wants video missing")
_SCENES = word_set("game race racing mirror")  # may be there with what is before or after them
_AMOUNT_OF = word_set("group groups herd flock bunch lot lots couple pair row rows number crowd line fleet variety")
_BACKGROUND = word_set(
    "tree building sign chair window car person man woman boy girl light flower plant cup bowl plate"
)


@lru_cache(maxsize=1_000)  # the captions of an image are each other's
def _marks(text: str) -> tuple[str, ...]:
    return tuple(_MARK.findall(text.lower()))


def things_there(caption: Caption, candidates: Candidates) -> list[str]:
    """Return the things that are stated of the image and that the caption does not mean by any of its words."""
    words = caption.words
    if not _UNTOLD.isdisjoint(words.own) or _lacks_a_noun(caption):
        return []
    stated = [(frozenset(_stated(text)), frozenset(_marks(text))) for text in caption.pair.captions]
    boxed = [label for label, number in words.labels.items() if number == 1 and label in ADDABLE]
    named = [*boxed, *(noun for nouns, _ in stated for noun in sorted(nouns))]
    figures = not FIGURES.isdisjoint(words.own)
    return [
        noun
        for noun in dict.fromkeys(named)
        if noun not in OF_PEOPLE
        and (figures or noun not in FIGURES)
        and candidates.usage.is_written(noun.rsplit(maxsplit=1)[-1])
        and not words.several(noun)
        and not _is_named(caption, candidates, noun)
        and _is_another(caption, candidates, noun, [marks for nouns, marks in stated if noun in nouns])
    ]


def things_in_view(caption: Caption, candidates: Candidates) -> list[str]:
    """Return what other captions or boxes state of the picture, as it may be written, and the caption does not name.

    Where a thing is does not matter here, nor how many there are of it: a plural is stated by a plural, one thing by
    one, and where captions differ in number neither is returned.
    """
    words = caption.words
    if not _UNTOLD.isdisjoint(words.own) or _lacks_a_noun(caption):
        return []
    boxed = [label for label, number in words.labels.items() if number == 1 and label in _SEEN]
    named = [*boxed, *(form for text in caption.pair.captions for form in sorted(_shown(text)))]
    return [
        form
        for form in dict.fromkeys(named)
        if _is_of_one_number(words, form)
        and candidates.usage.is_written(form.rsplit(maxsplit=1)[-1])
        and not _is_named(caption, candidates, thing_of(form))
        and not _is_kin_of_any(caption, candidates, thing_of(form))
    ]


def thing_of(form: str) -> str:
    """Return the lemma of a thing as `things_in_view` writes it."""
    return _SEEN.get(form) or _SEEN_SEVERAL[form]


def forms_in_view(*, several: bool) -> Mapping[str, str]:
    """Return the things that may be claimed of a picture, one or several of each, as written, with their lemmas."""
    return _SEEN_SEVERAL if several else _SEEN


def _is_of_one_number(words: ImageWords, form: str) -> bool:
    return not words.several(form) if form in _SEEN else not words.has(_SEEN_SEVERAL[form])


def _is_kin_of_any(caption: Caption, candidates: Candidates, noun: str) -> bool:
    """Whether a noun of the caption may be another word for the thing: a kind of it, one like it, or a rare word."""
    nouns = (token.lemma for token in caption.tokens if token.pos == "NOUN" and token.lemma not in _ELSEWHERE)
    return any(
        candidates.things.is_kin(noun, other) or not candidates.usage.is_frequent(other, "NOUN") for other in nouns
    )


def _shown(text: str) -> frozenset[str]:
    """Return the things, as written, that a caption states of its picture, at whatever place."""
    marks = _marks(text)
    if not (_UNREAL - _PICTURING - _SCENES).isdisjoint(marks):
        return frozenset()
    found, at = set(), 0
    while at < len(marks) and marks[at] not in _PICTURING:
        compound = marks[at : at + 2]
        size = len(compound) if " ".join(compound) in _NAMES else 1
        form = " ".join(marks[at : at + size])
        if form in _NAMES and _is_shown(marks, at, at + size, several=form in _SEEN_SEVERAL):
            found.add(form)
        at += size
    return frozenset(found)


def _is_shown(marks: tuple[str, ...], start: int, end: int, *, several: bool) -> bool:
    """Whether a noun is a whole noun phrase with what stands before it."""
    if end < len(marks) and (marks[end] not in _CLOSES or marks[end] == "from"):
        return False
    at = start - 1
    sturdy = _SEEN.get(marks[end - 1], "") in _STURDY
    while at >= 0 and (
        (start - at <= _MOST_ADJECTIVES and _is_plain(marks[at]))
        or (sturdy and start - at < _FURTHEST and marks[at] not in _NO_PART)
    ):
        at -= 1
    before = marks[at] if at >= 0 else ""
    if several and before == "of":
        return marks[max(at - 1, 0)] in _AMOUNT_OF
    if several and (not before or before in _BEFORE_SEVERAL - _DETERMINERS):
        return True
    hangs = before not in _OF_ANY or (marks[at - 1] in _HANGS_ON - {"of", "to"} if at else False)
    return (
        not hangs
        and "or" not in marks[end : end + 1]
        and not (at and marks[at - 1] == "of" and _is_of_some(marks, at - 1))
    )


def _is_of_some(marks: tuple[str, ...], of: int) -> bool:
    """Whether "of" joins a thing to a picture or a part, and not to a side of it."""
    return marks[max(of - 1, 0)] not in _SIDES


def _is_named(caption: Caption, candidates: Candidates, noun: str) -> bool:
    """Whether the caption names the thing, or what cannot do without it: a skateboarder has a skateboard."""
    own = caption.words.own
    if not candidates.names.of(noun).isdisjoint(own) or not set(noun.split()).isdisjoint(own):
        return True
    return any(
        (len(word) >= _STEM and any(name.startswith(word[:_STEM]) for name in loosely_same(noun)))
        or word.startswith(noun)
        or _is_slip(word, noun)
        for word in own
    )


class Implied:
    """What the captions of an image may mean without a name for it; made once a caption."""

    def __init__(self, caption: Caption, candidates: Candidates) -> None:
        self._said, self._text, self._candidates = caption.words.all, caption.words.text, candidates
        self._kinds = [kind for kind, words in _WHOLES.items() if not words.isdisjoint(self._said)]

    def may_be_there(self, noun: str) -> bool:
        """Whether a thing that nobody names may be meant: by a word for many such things, by its use or its sport."""
        if len(noun) >= _STEM and f" {noun[:_STEM]}" in self._text:
            return True
        if any(self._candidates.things.is_of(noun, kind) for kind in self._kinds):
            return True
        parts = " " in noun and not self._said.isdisjoint(noun.split())
        return parts or (noun in _IMPLYING and not self._said.isdisjoint(_IMPLYING[noun]))


def _is_another(caption: Caption, candidates: Candidates, noun: str, lines: Sequence[frozenset[str]]) -> bool:
    """Whether no noun of the caption may be somebody's other word for the thing (a pastry, a quiche, a pot for a vase).

    Nouns of another kind are not, nor are surroundings, nor what stands beside the thing in a caption that states it or
    in many of the pool.
    """
    for token in caption.tokens:
        if token.pos not in {"NOUN", "PROPN"} or token.lemma in _ELSEWHERE:
            continue
        beside = any(token.lemma in line or token.text.lower() in line for line in lines)
        if candidates.things.is_kin(noun, token.lemma) or not (
            beside or candidates.company.is_another(noun, token.lemma)
        ):
            return False
    return True


def _lacks_a_noun(caption: Caption) -> bool:
    """Whether an article stands before a preposition: a slip for some noun ("a at on a bed")."""
    return any(caption.word(at) in {"a", "an"} and caption.tag(at + 1) == "IN" for at in range(len(caption.tokens)))


def _is_slip(word: str, noun: str) -> bool:
    """Whether a word may be a noun with one letter wrong ("can" for "cat")."""
    return len(word) == len(noun) and sum(a != b for a, b in zip(word, noun, strict=True)) == 1


def _stated(text: str) -> Iterator[str]:
    """Yield the things that a caption states in the plainest shape."""
    marks = _marks(text)
    for at, mark in enumerate(marks):
        if mark not in _DETERMINERS:
            continue
        noun, end = _noun_after(marks, at + 1)
        if noun and (end >= len(marks) or marks[end] in _CLOSES) and _is_real(marks, at, end):
            yield noun


def _noun_after(marks: tuple[str, ...], start: int) -> tuple[str, int]:
    """Return the noun of `nouns.ADDABLE` that follows, past plain adjectives, and where it ends."""
    for at in range(start, min(start + _MOST_ADJECTIVES + 1, len(marks))):
        compound = " ".join(marks[at : at + 2])
        if compound in ADDABLE:
            return compound, at + 2
        if marks[at] in ADDABLE:
            return marks[at], at + 1
        if not _is_plain(marks[at]):
            break
    return "", start


def _is_plain(word: str) -> bool:
    """Whether an adjective leaves a thing what it is; a wooden horse is none, and a miniature train may be none."""
    places = PLACES.get(word, ())
    made_of = any(place.group == "material" for place in places)
    return (bool(places) or word in OPPOSITE) and not made_of and word not in {"mini", "miniature"}


def _is_real(marks: tuple[str, ...], start: int, end: int) -> bool:
    before = marks[start - 1] if start else ""
    hangs = before in _HANGS_ON and not (
        before in {"of", "to"} and marks[max(start - 2, 0)] in _SIDES | {"next", "close"}
    )
    return not hangs and _UNREAL.isdisjoint(marks) and "or" not in marks[end : end + 1]


def attributes_there(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> list[str]:
    """Return the adjectives that other captions state of the phrase's noun, and of no other such thing."""
    words, head = caption.words, caption.head(phrase)
    if caption.plural(phrase) or words.several(head) or head in FRAMES | WORN | _BACKGROUND:
        return []
    nouns = tuple(caption.lower[at] for at in phrase.nouns)
    lines = [_marks(text) for text in caption.pair.captions]
    speaking = [line for line in lines if head in line]
    if any(line.count(head) > 1 or _speaks_of_others(line, head) for line in (*speaking, caption.words.own)):
        return []
    found = [word for line in speaking for word in _attribute_in(line, nouns)]
    return [
        word
        for word in dict.fromkeys(found)
        if "-" not in word and word not in UNTOUCHED and candidates.usage.is_adjective(word, head)
    ]


def _attribute_in(line: tuple[str, ...], nouns: tuple[str, ...]) -> Iterator[str]:
    size = len(nouns)
    for at in range(2, len(line) - size + 1):
        end = at + size
        whole = end == len(line) or line[end] in _CLOSES
        if line[at:end] == nouns and whole and line[at - 2] in _DETERMINERS and _is_real(line, at - 2, end):
            yield line[at - 1]


def _speaks_of_others(line: tuple[str, ...], head: str) -> bool:
    at = line.index(head) if head in line else 0
    return not _OTHER_ONES.isdisjoint(line[max(0, at - 3) : at])
