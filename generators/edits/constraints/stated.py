"""Which objects other captions and boxes state to be in an image: the true side of an addition.

Words alone tell an object from a mention of it ("a chili dog", "a bus stop", "a sign with a horse on it"), so a
statement counts only in the plainest shape: a box of its name, or in another caption a determiner, at most two plain
adjectives, the noun, and then the end of a clause or a word that opens the next phrase. Nothing in that caption may
deny, compare or picture things, and the noun may not hang on "of", "for", "like" or "as".

It has to be another object than those that the caption names: one of another kind, or one that captions name beside it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.attributes import concepts, opposites
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import NounLexicon, flagged

_NO_THINGS = flagged("frame") | flagged("surroundings")
_MARK: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[.,;:!?()\"]")
_MAX_ADJECTIVES: Final = 2


class StatedObjects:
    """Finds objects that other captions or boxes state.

    Args:
        lexicon: tells which nouns may be said of one thing.
        nouns: objects that may be added.
    """

    def __init__(self, lexicon: NounLexicon, nouns: tuple[str, ...]) -> None:
        self._lexicon, self._nouns = lexicon, frozenset(nouns)

    def stated(self, caption: Caption) -> list[str]:
        """Return the objects that are stated and are others than those that the caption names."""
        boxed = [label for label, number in caption.words.labels.items() if number == 1 and label in self._nouns]
        lines = [frozenset(_marks(text)) for text in caption.pair.captions]
        found: dict[str, list[frozenset[str]]] = {noun: [] for noun in boxed}
        for text, line in zip(caption.pair.captions, lines, strict=True):
            if words_with("unreal").isdisjoint(line):
                for noun in self._stated_by(_marks(text)):
                    found.setdefault(noun, []).append(line)
        return [
            noun
            for noun, where in found.items()
            if not (caption.words.several(noun) or self._lexicon.is_person(noun))  # a man to one is a woman to another
            and self._is_another(caption, noun, where)
        ]

    def _stated_by(self, marks: tuple[str, ...]) -> Iterator[str]:
        for at, mark in enumerate(marks):
            if mark not in words_with("determiner") or _hangs(marks, at):
                continue
            noun, end = self._noun_after(marks, at + 1)
            if noun and (end >= len(marks) or marks[end] in words_with("behind_thing")):
                yield noun

    def _noun_after(self, marks: tuple[str, ...], start: int) -> tuple[str, int]:
        """Return the object that follows, past plain adjectives, and where it ends; an empty string for none."""
        for at in range(start, min(start + _MAX_ADJECTIVES + 1, len(marks))):
            for size in (2, 1):
                noun = " ".join(marks[at : at + size])
                if noun in self._nouns:
                    return noun, at + size
            if not _is_plain(marks[at]):
                break
        return "", start

    def _is_another(self, caption: Caption, noun: str, where: list[frozenset[str]]) -> bool:
        """Whether no noun of the caption may be another captioner's word for the object."""
        return all(
            self._lexicon.exclusive(noun, token.lemma)
            or any(token.lemma in line or token.text.lower() in line for line in where)
            for token in caption.tokens
            if token.pos in {"NOUN", "PROPN"} and token.lemma not in _NO_THINGS
        )


@lru_cache(maxsize=1_000)  # the captions of an image are each other's
def _marks(text: str) -> tuple[str, ...]:
    return tuple(_MARK.findall(text.lower()))


def _hangs(marks: tuple[str, ...], at: int) -> bool:
    before, beyond = marks[at - 1] if at else "", marks[at - 2] if at > 1 else ""
    return before in words_with("hanging") and not (before in {"of", "to"} and beyond in words_with("side"))


def _is_plain(word: str) -> bool:
    """Whether an adjective leaves a thing what it is: not a wooden horse, nor a miniature train."""
    found = concepts().get(word, ())
    described = bool(found) or any(word in pair for pair in opposites())
    return described and word not in {"mini", "miniature"} and all(name != "material" for name, _ in found)


def is_unstated(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a positive adds something that neither the captions nor the boxes of the image state."""
    words = edit.caption.words
    if edit.target == "attribute":
        return not all(words.said_with(edit.after, word) for word in edit.new.split())
    return not StatedObjects(known.nouns, (edit.new,)).stated(edit.caption)
