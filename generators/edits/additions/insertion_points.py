"""Insertion points: positions of a caption at which words may be added, with their cloze contexts.

An object is added at the end of the caption ("... | near a tree", "... | with a boat in the background") or before it
("a lamp and | a bed in a room"). An attribute is added before a noun without modifiers ("a | red | bus").

The words around an added object are a *template*. Whether captions would use it there is predicted by the cloze model:
`AdditionTemplate.relation` is the key of the relation of the template.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import ANAPHORS, Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.slots import context_of
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.language.inflection import article
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged, nouns_of_class
from pairwright.generators.lexicon.tables import read_rows

OBJECT, ATTRIBUTE = "object", "attribute"
_FINITE_TAGS: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
_VERB_TAGS: Final = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN", "VB"})


class AdditionTemplate(NamedTuple):
    """Words around an added word.

    Attributes:
        before: text before the word and its article: " with ".
        behind: text behind it: " in the background".
        left: inserted words that a cloze model reads before the word.
        right: inserted words that it reads behind the word.
        relation: key of the relation that the added words begin with; empty without a relation.
        unless: words of a caption in which it is not used.
        is_existential: whether it states existence only, which is true of any object in the image.
    """

    before: str
    behind: str
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    relation: str = ""
    unless: frozenset[str] = frozenset()
    is_existential: bool = False

    @classmethod
    def of(cls, row: Mapping[str, str]) -> "AdditionTemplate":
        """Return the template of an object, a row of ``addition_templates.tsv``."""
        before, _, behind = row["template"].partition("{}")
        left, right = (*before.split(), "a"), tuple(behind.replace(",", " , ").split())
        before = before if before.startswith(",") else f" {before}"
        unless, is_existential = frozenset(row["unless"].split()), row["existential"] == "yes"
        return cls(before, behind, left, right, row["relation"], unless, is_existential)


class InsertionPoint(NamedTuple):
    """A position at which a word may be inserted.

    Attributes:
        template: the words around it.
        at: code point of the insertion.
        end: one past the last code point that is replaced; equal to ``at`` but before a caption.
        token: the token before which it is inserted.
        head: lemma of the noun that it attaches to; empty if none.
        is_existential: whether any object of the image may be inserted here, wherever it is.
        phrase: phrase that an attribute modifies; None for objects.
    """

    template: AdditionTemplate
    at: int
    end: int
    token: int
    head: str
    is_existential: bool = False
    phrase: NounPhrase | None = None

    @property
    def requires_relation(self) -> bool:
        """Whether its relation must fit the noun; geometric shapes fit any."""
        return bool(self.template.relation) and self.head not in shape_nouns()

    def context(self, caption: Caption) -> ClozeContext:
        """Return the context of the added word."""
        template, noun = self.template, self.head if self.phrase else ""
        return context_of(caption, self.token, self.token, "", noun, left=template.left, right=template.right)

    def relation_context(self, caption: Caption, noun: str) -> ClozeContext:
        """Return the context of the relation by which a noun is added."""
        behind = ("a", *noun.split(), *self.template.right)
        return context_of(caption, self.token, self.token, self.head, noun, right=behind)

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the proposed edit, for constraints."""
        target, heads = (ATTRIBUTE, ("", self.head)) if self.phrase else (OBJECT, (self.head, ""))
        return ProposedEdit(caption, "add", target, "", new, *heads, start=self.token, end=self.token)

    def change(self, caption: Caption, word: str) -> Change:  # noqa: ARG002 - of a slot it depends on the caption
        """Return the change that adds a word here: an adjective, or a singular noun."""
        text = word if self.phrase else f"{article(word)} {word}"
        return Change(self.at, self.end, self.template.before + text + self.template.behind)


_ATTRIBUTE: Final = AdditionTemplate("", " ")


@lru_cache(maxsize=1)
def closing_templates() -> tuple[AdditionTemplate, ...]:
    """Return the templates for the end of a caption."""
    return tuple(map(AdditionTemplate.of, read_rows("addition_templates")))


def shape_nouns() -> frozenset[str]:
    """Return the nouns of geometric shapes: "circle", "star"."""
    return nouns_of_class("shape")


def object_insertions(caption: Caption) -> list[InsertionPoint]:
    """Return the insertion points for a singular object: before the caption and at its end."""
    return [*_first(caption), *_last(caption)]


def attribute_insertions(caption: Caption) -> list[InsertionPoint]:
    """Return the insertion points for an adjective: before nouns without modifiers."""
    return [
        InsertionPoint(_ATTRIBUTE, start, start, phrase.nouns[0], caption.head(phrase), phrase=phrase)
        for phrase in caption.things
        if _is_bare(caption, phrase)
        for start in (caption.tokens[phrase.nouns[0]].start,)
    ]


def _is_bare(caption: Caption, phrase: NounPhrase) -> bool:
    """Return whether a noun may get an adjective: it has none, and occurs once in the caption."""
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


def end_of_caption(caption: Caption) -> tuple[int, int] | None:
    """Return the code point and the token at the end of a statement that ends with a noun phrase, or None."""
    text = caption.pair.caption.rstrip().removesuffix(".").rstrip()
    last = next((at for at, token in enumerate(caption.tokens) if token.start >= len(text)), len(caption.tokens))
    ends = caption.ending_at(last) is not None and text[-1:].isalnum()
    return (len(text), last) if ends and "?" not in text and "between" not in caption.lower else None


def _last(caption: Caption) -> Iterator[InsertionPoint]:
    found = end_of_caption(caption)
    phrase = caption.ending_at(found[1]) if found is not None else None
    if found is None or phrase is None:
        return
    at, last = found
    drawn = all(caption.head(each) in shape_nouns() for each in caption.things)
    of_scene = drawn or (caption.head(phrase) in flagged("surroundings") and caption.tag(phrase.start - 1) == "IN")
    # "blocking a road | with a truck", "a cup and a plate | with a fork", "a circle is above a square | with a star"
    predicated = drawn and not words_with("copula").isdisjoint(caption.lower) and caption.lower[0] != "there"
    before = phrase.start - 1
    joined = predicated or caption.tag(before) in _VERB_TAGS | {"CC", ","}
    for template in closing_templates():
        bare = template.relation == "with" and not template.behind
        if template.unless.isdisjoint(caption.lower) and not (joined and bare) and not (drawn and template.behind):
            yield InsertionPoint(
                template, at, at, last, caption.head(phrase), template.is_existential or (of_scene and bare)
            )


def _first(caption: Caption) -> Iterator[InsertionPoint]:
    """Yield the insertion point before a verbless caption: "a bench and | a lamp"."""
    phrase = caption.starting_at(0)
    if phrase is None or caption.lower[0] not in words_with("opening") or not caption.is_whole(phrase):
        return
    named = caption.is_thing(phrase) or caption.head(phrase) in flagged("gathering")
    verbless = caption.tag(phrase.end) in {"IN", "VBG", "VBN"} and _FINITE_TAGS.isdisjoint(caption.tags)
    if not (named and verbless) or caption.head(phrase) in flagged("surroundings") | shape_nouns():
        return
    if ANAPHORS.isdisjoint(caption.lower):
        first, head = caption.tokens[0], caption.head(phrase)
        template = AdditionTemplate("", f" and {caption.lower[0]}", ("a",), ("and",))
        yield InsertionPoint(template, first.start, first.end, 0, head, is_existential=True)
