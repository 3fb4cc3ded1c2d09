"""Verb lexicon: posture, motion and action of verbs, and the positions that they allow.

The table is ``data/verbs.tsv``; its header comment explains the columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from pairwright.generators.lexicon.states import DIMENSIONS, States, StateSpace

Frame: TypeAlias = Literal["i", "t", "p"]


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb in one of its uses.

    Attributes:
        lemma: lemma, with its fixed preposition if `frame` is "p" ("look at").
        frame: subcategorization frame: "i" intransitive (any preposition or none), "t" transitive, "p" fixed preposition.
        subject: "animate", "thing", or empty for both.
        synonym: shared name of synonymous verbs.
        particles: adverbs that may follow without a change of meaning ("hold up").
        mutual: whether the object may do the same to the subject in the picture ("talk to").
    """

    lemma: str
    frame: Frame
    states: States
    subject: str
    synonym: str
    particles: frozenset[str]
    mutual: bool


def read_verbs(rows: Iterable[dict[str, str]], space: StateSpace) -> dict[tuple[str, Frame], Verb]:
    """Return the verbs of a table by lemma and frame.

    A row without states inherits those of the first synonymous row that has some, of its own frame if possible.
    """
    rows = list(rows)
    stated = {(row["same"], row["frame"]): row for row in reversed(rows) if _is_stated(row)}
    verbs = {}
    for row in rows:
        frame = cast("Frame", row["frame"])
        named = (stated.get((row["same"], each)) for each in (frame, "t", "p", "i"))
        states = space.parse(row if _is_stated(row) else next(filter(None, named), row))
        particles = frozenset(row["particles"].split())
        mutual = bool(row["mutual"])
        verbs[row["verb"], frame] = Verb(row["verb"], frame, states, row["subject"], row["same"], particles, mutual)
    return verbs


def _is_stated(row: dict[str, str]) -> bool:
    return any(row.get(dimension) for dimension in DIMENSIONS)
