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

`adding.py` further asks that the pool has the thing beside what it is added to: a slip of a captioner seldom passes.
Two pairs of 75 were found wrong by eye on COCO's captions, at 0.3% (things) and 7% (attributes) of all captions.

What is proven is that the image holds such a thing, and, of an attribute, that a caption gives it to a thing of that
name. What is not: that a caption is right, that two captions mean the same of two things of one name, and where
exactly a thing is; so `adding.py` adds true things only at the end of a caption, where they belong to the scene.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pairwright.generators.attributes import OPPOSITE, PLACES, UNTOUCHED
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import Caption
from pairwright.generators.nouns import ADDABLE, FIGURES, FRAMES, GATHERINGS, OF_PEOPLE, SURROUNDINGS, WORN
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.wordlists import word_set

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
}
_ELSEWHERE = SURROUNDINGS | OF_PEOPLE | GATHERINGS
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
        and candidates.is_written(noun.rsplit(maxsplit=1)[-1])
        and not words.several(noun)
        and not _is_named(caption, candidates, noun)
        and _is_another(caption, candidates, noun, [marks for nouns, marks in stated if noun in nouns])
    ]


def _is_named(caption: Caption, candidates: Candidates, noun: str) -> bool:
    """Whether the caption names the thing, or what cannot do without it: a skateboarder has a skateboard."""
    own = caption.words.own
    if not candidates.names_of(noun).isdisjoint(own) or not set(noun.split()).isdisjoint(own):
        return True
    return any(
        (len(word) >= _STEM and noun.startswith(word[:_STEM])) or word.startswith(noun) or _is_slip(word, noun)
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
        if any(self._candidates.is_of(noun, kind) for kind in self._kinds):
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
        if candidates.is_kin(noun, token.lemma) or not (beside or candidates.is_another(noun, token.lemma)):
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
        if "-" not in word and word not in UNTOUCHED and candidates.is_adjective(word, head)
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
