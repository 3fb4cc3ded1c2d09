"""Attribute moves: an attribute goes to another noun that has none.

"A black cat on a couch" gives "a cat on a black couch". Only another caption can refute it, one that calls the couch
white; without it, the couch may well be black.
"""

from collections.abc import Sequence
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase, span
from pairwright.generators.captions.realisation import lowercase_span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.table import Constraint
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.swaps.attributes import (
    Modifier,
    Swap,
    count_attributes,
    modifiers_of,
    near_pairs,
    reject_exchange,
    weigh_exchange,
)
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.function_words import words_with

# Tags before a bare noun that belong to it: "a button | down | shirt".
_ATTRIBUTIVE: Final = frozenset({"RP", "JJ", "VBN"})


def move_attribute(caption: Caption, materials: EditMaterials, one: Modifier, other: Modifier) -> Swap:
    """Return the swap of a pair of `moved_pairs`."""
    moved, place = (one, other) if one.words else (other, one)
    source, tokens = caption.pair.caption, caption.tokens
    words, noun = (
        lowercase_span(source, *span(tokens, *each))
        for each in ((moved.start, moved.end), (place.start, place.start + 1))
    )
    following = tokens[moved.end].text  # rewritten as well, to adapt its article
    changes = (
        caption.change(moved.start, moved.end + 1, following),
        caption.change(place.start, place.start + 1, f"{words} {noun}"),
    )
    return Swap("move", changes, weigh_exchange(caption, materials.knowledge, one, other))


def moved_pairs(
    caption: Caption, known: Knowledge, constraints: Sequence[Constraint]
) -> list[tuple[Modifier, Modifier, str]]:
    """Return pairs of an attribute and a place for it in another phrase, and why it may not move; see `swapped_pairs`.

    A place is a modifier without words.
    """
    modifiers = [
        Modifier(each, each.nouns[0], each.nouns[0], ()) for each in caption.things if _is_place(caption, each)
    ]
    modifiers += (
        each
        for phrase in caption.things
        for each in modifiers_of(caption, known, phrase)
        if _is_movable(caption, known, each)
    )
    return [
        (one, other, reject_exchange(caption, known, constraints, one, other))
        for one, other in near_pairs(sorted(modifiers, key=_start))
        if bool(one.words) is not bool(other.words) and not _describes_both(caption, other.phrase)
    ]


def _is_place(caption: Caption, phrase: NounPhrase) -> bool:
    """Return whether a phrase has no attribute before its noun, nor words that may be one."""
    attached = phrase.is_bare and caption.tag(phrase.start - 1) in _ATTRIBUTIVE
    predicated = any(  # "the hydrant (that) | is yellow"
        caption.word(at) in words_with("copula") and caption.word(at + 1) in concepts()
        for at in (phrase.end, phrase.end + 1)
    )
    return not (attached or predicated or count_attributes(caption, phrase))


def _is_movable(caption: Caption, known: Knowledge, modifier: Modifier) -> bool:
    """Return whether a phrase makes sense without its attribute: not "a kitchen with | walls", "a cat with | eyes"."""
    head = caption.head(modifier.phrase)
    coordinated = {caption.word(modifier.start - 1), caption.word(modifier.end)} & words_with("lists")
    given = head in words_with("ubiquitous") or "body part" in known.nouns.classes(head)
    return concepts().keys() >= {*modifier.words} and not coordinated and not given


def _describes_both(caption: Caption, second: NounPhrase) -> bool:
    """Return whether the attribute of a coordinated noun may describe the next one, too: "a white shirt and shorts"."""
    return second.is_bare and caption.word(second.start - 1) in words_with("lists")


def _start(modifier: Modifier) -> int:
    return modifier.start
