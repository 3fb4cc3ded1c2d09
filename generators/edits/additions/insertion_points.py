"""Places of a caption where words may be added, each with the context that a cloze model reads there.

An object is added behind a phrase ("a dog | with a ball"), in a list ("a cup, | a fork and a plate"), at the end of the
caption ("... | near a tree", "... | with a boat in the background") or before it ("a lamp and | a bed in a room"). An
attribute is added before a noun that is not described ("a | red | bus").

The words around the added one (the *frame*) are those of captions; whether captions would use them there is for the
cloze model to say: `Place.relation` is the key of the frame's relation.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import ANAPHORS, Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.cloze.context import MAX_BAG, REACH, ClozeContext
from pairwright.generators.language.inflection import article
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged, nouns_of_class
from pairwright.generators.lexicon.tables import read_rows

OBJECT, ATTRIBUTE = "object", "attribute"
_BAG: Final = frozenset({"NOUN", "PROPN", "VERB", "ADJ"})
_ENDS: Final = ("",) * REACH
_ANY_NOUN: Final = "<noun>"  # no word of a caption: the model reads it as an unknown one
_BE: Final = frozenset({"is", "are"})
_COMMA: Final = re.compile(r"(?<=[^\W\d])\s*,\s*(?=[^\W\d])")  # between words, with the spaces around it
_FINITE_TAGS: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
_VERB_TAGS: Final = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN", "VB"})


class Frame(NamedTuple):
    """Words around an added object, of ``addition_frames.tsv``; one word for each "{}".

    Attributes:
        before: the words before its article, with a space before and behind: " with ".
        behind: the words behind it: " in the background".
        relation: key of its relation.
        unless: words of the caption beside which it is not used.
        shown: what it says is true of anything in the picture, wherever it is.
    """

    before: str
    behind: str
    relation: str
    unless: frozenset[str]
    shown: bool


class Place(NamedTuple):
    """Where a word may be added.

    Attributes:
        target: `OBJECT` or `ATTRIBUTE`.
        at: code point of the insertion.
        end: one past the last code point that is replaced; equal to ``at`` but before a caption.
        before: text inserted before the word, and its article.
        behind: text inserted behind the word.
        token: the token before which it is inserted.
        head: lemma of the noun that it is added to; empty if it is said of the whole picture.
        left: inserted words that a cloze model reads before the word.
        right: inserted words that it reads behind the word.
        relation: key of the relation that the added words begin with; empty if there is none.
        shown: whether any object in the picture may be named here, wherever it is.
        claim: whether the words around say no more than that; they are rare in captions.
        phrase: that an attribute describes.
    """

    target: str
    at: int
    end: int
    before: str
    behind: str
    token: int
    head: str
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    relation: str = ""
    shown: bool = False
    claim: bool = False
    phrase: NounPhrase | None = None

    @property
    def asks_relation(self) -> bool:
        """Whether its relation has to fit the noun: drawn figures may stand in any."""
        return bool(self.relation) and self.head not in drawn_figures()

    def context(self, caption: Caption) -> ClozeContext:
        """Return what is around the added word."""
        heads = ("", self.head if self.target == ATTRIBUTE else "")
        return context_of_insertion(caption, self.token, self.left, self.right, heads)

    def relation_context(self, caption: Caption, noun: str = _ANY_NOUN) -> ClozeContext:
        """Return what is around the relation by which a noun is added."""
        return context_of_insertion(caption, self.token, (), ("a", *noun.split(), *self.right), (self.head, noun))

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the addition as constraints see it."""
        heads = ("", self.head) if self.target == ATTRIBUTE else (self.head, "")
        return ProposedEdit(caption, "add", self.target, "", new, *heads, start=self.token, end=self.token)

    def change(self, caption: Caption, word: str) -> Change:  # noqa: ARG002 - of a slot it depends on the caption
        """Return the change that adds a word here: an adjective, or a singular noun."""
        text = f"{article(word)} {word}" if self.target == OBJECT else word
        return Change(self.at, self.end, self.before + text + self.behind)


@lru_cache(maxsize=1)
def closing_frames() -> tuple[Frame, ...]:
    """Return the frames that stand at the end of a caption."""
    return tuple(
        Frame(*_around(row["frame"]), row["relation"], frozenset(row["unless"].split()), row["shown"] == "yes")
        for row in read_rows("addition_frames")
    )


def drawn_figures() -> frozenset[str]:
    """Return the nouns of figures: "circle", "star"."""
    return nouns_of_class("shape")


def object_places(caption: Caption) -> list[Place]:
    """Return the places for a singular object, from left to right."""
    places = [place for phrase in caption.things for place in _behind_phrase(caption, phrase)]
    return [*_first(caption), *places, *_last(caption)]


def attribute_places(caption: Caption) -> list[Place]:
    """Return the places for an adjective: before nouns that are not described."""
    return [
        Place(ATTRIBUTE, start, start, "", " ", phrase.nouns[0], caption.head(phrase), phrase=phrase)
        for phrase in caption.things
        if _is_bare(caption, phrase)
        for start in (caption.tokens[phrase.nouns[0]].start,)
    ]


def _is_bare(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a noun has no adjective, could have one, and is the only one of its name in the caption."""
    noun, head = phrase.nouns[0], caption.head(phrase)
    determined = phrase.determiner >= 0 or phrase.count >= 0 or caption.plural(phrase) or head in flagged("mass")
    follows = noun == (max(phrase.determiner, phrase.count) + 1 or phrase.start)
    predicated = caption.tag(phrase.end) in _FINITE_TAGS and caption.tag(phrase.end + 1)[:2] in {"JJ", "RB"}
    return (
        determined
        and follows
        and noun > 0
        and not (phrase.adjectives or phrase.joined or predicated or caption.counts_a_part(phrase))
        and len(caption.by_head[head]) == 1
        and noun - 1 not in caption.parts
        and caption.tag(noun - 1)[:2] in {"DT", "CD", "PR", "IN", "CC", "VB"}
    )


def _behind_phrase(caption: Caption, phrase: NounPhrase) -> Iterator[Place]:
    """Yield how an object joins a phrase inside a caption: in a list, by "and" behind "with", or by "with"."""
    before, after = caption.word(phrase.start - 1), caption.word(phrase.end)
    if not _is_indefinite(caption, phrase) or "between" in caption.lower[: phrase.start]:
        return
    if after in {",", "and"}:
        following = caption.starting_at(phrase.end + 1 + (caption.word(phrase.end + 1) == "and"))
        listed = after == "and" or (following is not None and caption.word(following.end) in {",", "and"})
        if following is not None and listed and _is_indefinite(caption, following):
            comma = list_comma(caption.pair.caption, caption.tokens[phrase.end - 1].end)
            yield _behind(caption, phrase, Frame(comma, "", "", frozenset(), shown=False))
    elif (not after or after in words_with("closing")) and before in words_with("having") - {"and"}:
        yield _behind(caption, phrase, Frame(" and ", "", "", frozenset(), shown=False))
    elif _leads_to_scene(caption, phrase) and not words_with("having") & set(caption.lower):
        yield _behind(caption, phrase, Frame(" with ", "", "with", frozenset(), shown=False))


def _leads_to_scene(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase that nothing is done to is followed by where it is: "a man | in a field"."""
    following = caption.starting_at(phrase.end + 1)
    return (
        caption.tag(phrase.end) == "IN"
        and following is not None
        and caption.head(following) in flagged("surroundings") | drawn_figures()
        and caption.tag(phrase.start - 1) not in _VERB_TAGS
    )


def _behind(caption: Caption, phrase: NounPhrase, frame: Frame) -> Place:
    return _place(caption.tokens[phrase.end - 1].end, phrase.end, caption.head(phrase), frame)


def end_of_caption(caption: Caption) -> tuple[int, int] | None:
    """Return the code point and the token at which words may be added to a statement that ends with a noun phrase."""
    text = caption.pair.caption.rstrip().removesuffix(".").rstrip()
    last = next((at for at, token in enumerate(caption.tokens) if token.start >= len(text)), len(caption.tokens))
    ends = caption.ending_at(last) is not None and text[-1:].isalnum()
    return (len(text), last) if ends and "?" not in text and "between" not in caption.lower else None


def _last(caption: Caption) -> Iterator[Place]:
    """Yield the frames that may close a caption."""
    found = end_of_caption(caption)
    phrase = caption.ending_at(found[1]) if found is not None else None
    if found is None or phrase is None:
        return
    at, last = found
    drawn = all(caption.head(each) in drawn_figures() for each in caption.things)
    of_scene = drawn or (caption.head(phrase) in flagged("surroundings") and caption.tag(phrase.start - 1) == "IN")
    # "blocking a road | with a truck", "a cup and a plate | with a fork", "a circle is above a square | with a star"
    predicated = drawn and not _BE.isdisjoint(caption.lower) and caption.lower[0] != "there"
    joined = (
        predicated
        or caption.tag(phrase.start - 1) in _VERB_TAGS
        or caption.word(phrase.start - 1) in {"and", "or", ","}
    )
    for frame in closing_frames():
        bare = frame.relation == "with" and not frame.behind
        if frame.unless.isdisjoint(caption.lower) and not (joined and bare) and not (drawn and frame.behind):
            shown = frame.shown or (of_scene and bare)
            yield _place(at, last, caption.head(phrase), frame._replace(shown=shown))


def _first(caption: Caption) -> Iterator[Place]:
    """Yield the place before a caption that names what is there without a finite verb: "a bench and | a lamp"."""
    phrase = caption.starting_at(0)
    if phrase is None or caption.lower[0] not in words_with("opening") or not caption.is_whole(phrase):
        return
    named = caption.is_thing(phrase) or caption.head(phrase) in flagged("gathering")
    verbless = caption.tag(phrase.end) in {"IN", "VBG", "VBN"} and _FINITE_TAGS.isdisjoint(caption.tags)
    if not (named and verbless) or caption.head(phrase) in flagged("surroundings") | drawn_figures():
        return
    if ANAPHORS.isdisjoint(caption.lower):
        first, head = caption.tokens[0], caption.head(phrase)
        behind = f" and {caption.lower[0]}"
        yield Place(OBJECT, first.start, first.end, "", behind, 0, head, ("a",), ("and",), shown=True)


def _place(at: int, token: int, head: str, frame: Frame) -> Place:
    before, behind = frame.before.split() or [","], tuple(frame.behind.replace(",", " , ").split())
    claim = not frame.relation and frame.shown
    left, relation, shown = (*before, "a"), frame.relation, frame.shown
    return Place(OBJECT, at, at, frame.before, frame.behind, token, head, left, behind, relation, shown, claim)


def context_of_insertion(
    caption: Caption,
    token: int,
    before: tuple[str, ...] = (),
    behind: tuple[str, ...] = (),
    heads: tuple[str, str] = ("", ""),
) -> ClozeContext:
    """Return the context of a word that is inserted before a token, between other inserted words."""
    words = caption.context_words
    left = (*words[token : token + REACH], *before)[::-1][:REACH]
    right = (*behind, *words[token + REACH : token + 2 * REACH])[:REACH]
    return ClozeContext(left, right, heads, _content(caption))


@lru_cache(maxsize=8)  # a caption has many places
def _content(caption: Caption) -> tuple[str, ...]:
    return tuple([each.lemma for each in caption.tokens if each.pos in _BAG][:MAX_BAG])


def _around(frame: str) -> tuple[str, str]:
    before, _, behind = frame.partition("{}")
    return before if before.startswith(",") else f" {before}", behind


def _is_indefinite(caption: Caption, phrase: NounPhrase) -> bool:
    inside = caption.lower[phrase.start : phrase.end]
    return inside[0] in words_with("indefinite") and ANAPHORS.isdisjoint(inside)


def list_comma(text: str, at: int = 0) -> str:
    """Return a comma with the spaces that a caption writes around its own: at a place, or else around its first one."""
    found = (_COMMA.match(text, at) or _COMMA.search(text)) if "," in text else None
    return found[0] if found is not None else ", "
