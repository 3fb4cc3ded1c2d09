"""Objects that other captions or boxes state to be in an image: the true side of an addition.

Words alone do not distinguish an object from another mention ("a chili dog", "a bus stop", "a sign with a horse on
it"), so only the plainest pattern counts: a box with the label, or in another caption a determiner, at most two
intersective adjectives, the noun, and then the end of a clause or a word that opens the next phrase. That caption must
not negate, compare or depict things, and the noun must not be a complement of "of", "for", "like" or "as".

The object must differ from those that the caption names: it excludes their nouns, or other captions name both.
"""

import re
from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.attributes import concepts, opposites
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import NounLexicon, flagged

_NO_THINGS = flagged("non_object") | flagged("surroundings")
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[.,;:!?()\"]")
_MAX_ADJECTIVES: Final = 2  # before a stated object: only the plainest pattern counts


def stated_objects(caption: Caption, nouns: Container[str], lexicon: NounLexicon) -> list[str]:
    """Return which of some nouns are stated objects that differ from those that the caption names."""
    boxed = [label for label, number in caption.words.labels.items() if number == 1 and label in nouns]
    found: dict[str, list[frozenset[str]]] = {noun: [] for noun in boxed}
    for tokens in map(_tokens_of, caption.pair.captions):
        if words_with("unreal").isdisjoint(tokens):
            for noun in _stated_by(tokens, nouns):
                found.setdefault(noun, []).append(frozenset(tokens))
    return [
        noun
        for noun, where in found.items()
        if not (caption.words.several(noun) or lexicon.is_person(noun))  # captioners disagree about persons
        and _is_another(caption, noun, where, lexicon)
    ]


def _stated_by(tokens: tuple[str, ...], nouns: Container[str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if token not in words_with("determiner") or _is_complement(tokens, at):
            continue
        noun, end = _noun_after(tokens, at + 1, nouns)
        if noun and (end >= len(tokens) or tokens[end] in words_with("behind_thing")):
            yield noun


def _noun_after(tokens: tuple[str, ...], start: int, nouns: Container[str]) -> tuple[str, int]:
    """Return the object after intersective adjectives and the index of its end; an empty string if there is none."""
    for at in range(start, min(start + _MAX_ADJECTIVES + 1, len(tokens))):
        for size in (2, 1):
            noun = " ".join(tokens[at : at + size])
            if noun in nouns:
                return noun, at + size
        if not _is_intersective(tokens[at]):
            break
    return "", start


def _is_another(caption: Caption, noun: str, where: list[frozenset[str]], lexicon: NounLexicon) -> bool:
    """Return whether no noun of the caption may refer to the object."""
    return all(
        lexicon.exclusive(noun, token.lemma) or any(token.lemma in line or token.text.lower() in line for line in where)
        for token in caption.tokens
        if token.pos in {"NOUN", "PROPN"} and token.lemma not in _NO_THINGS
    )


@lru_cache(maxsize=1_000)  # the captions of an image are each other's
def _tokens_of(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text.lower()))


def _is_complement(tokens: tuple[str, ...], at: int) -> bool:
    before, beyond = tokens[at - 1] if at else "", tokens[at - 2] if at > 1 else ""
    return before in words_with("complement_marker") and beyond not in words_with("side")


def _is_intersective(word: str) -> bool:
    """Return whether an adjective is intersective: not a wooden horse."""
    found = concepts().get(word, ())
    described = bool(found) or any(word in pair for pair in opposites())
    return described and all(name != "material" for name, _ in found)


def is_unstated(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a positive adds something that no caption or box of the image states."""
    words = edit.caption.words
    if edit.target == "attribute":
        return not all(words.states_attribute(edit.after, word) for word in edit.new.split())
    return not stated_objects(edit.caption, (edit.new,), known.nouns)
