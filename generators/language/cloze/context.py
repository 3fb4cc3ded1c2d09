"""The context of a slot: what a cloze model reads to predict the word or phrase in it."""

from typing import Final, NamedTuple

SLOT_KINDS: Final = ("noun", "adjective", "relation")
REACH: Final = 4  # words read on each side, by position
HEADS: Final = 2  # words read for their role
MAX_BAG: Final = 16  # words of the caption read without their position


class ClozeContext(NamedTuple):
    """The words around a slot, in lower case as written, without the slot's own.

    Attributes:
        left: the words before the slot, nearest first; "" is the start of the caption. At most `REACH`.
        right: the words behind the slot, nearest first; "" is the end of the caption. At most `REACH`.
        heads: of a relation, the lemmas of the nouns that it joins, subject and object; of an adjective, "" and the
            lemma of the noun that it describes; of a noun, "" twice. As many as `HEADS`.
        bag: the first content words of the rest of the caption, in the order of the alphabet. At most `MAX_BAG`.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    heads: tuple[str, ...]
    bag: tuple[str, ...]


class ClozeExample(NamedTuple):
    """A filled slot of a caption: what stands there, and its context.

    Attributes:
        kind: of `SLOT_KINDS`.
        target: key of what stands there: the lemma of a noun ("fire hydrant"), an adjective or number word, or a
            relation phrase with its verb as a lemma ("sit on top of", "next to", "hold").
        context: the words around.
    """

    kind: str
    target: str
    context: ClozeContext
