"""Verbs of captions: posture and motion, what they do, and where their subject is while they do it.

The table is ``data/verbs.tsv``; its head says what the columns mean.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from pairwright.generators.lexicon.states import DIMENSIONS, States, StateSpace

Frame: TypeAlias = Literal["i", "t", "p"]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in one of its uses.

    Attributes:
        lemma: with the preposition that it chooses, where `frame` is "p" ("look at").
        frame: "i" takes a preposition or nothing, "t" an object, "p" an object behind its preposition.
        states: what it allows.
        subject: "animate", "thing", or empty for both.
        synonym: name that verbs with one meaning share.
        particles: adverbs that may follow without a change of meaning ("hold up").
    """

    lemma: str
    frame: Frame
    states: States
    subject: str
    synonym: str
    particles: frozenset[str]


def read_verbs(rows: Iterable[dict[str, str]], space: StateSpace) -> dict[tuple[str, Frame], Verb]:
    """Return the verbs of a table by lemma and frame.

    A row without states takes those of the first row with the same meaning that has some, of its own frame if possible.
    """
    rows = list(rows)
    stated = {(row["same"], row["frame"]): row for row in reversed(rows) if _is_stated(row)}
    verbs = {}
    for row in rows:
        frame = cast("Frame", row["frame"])
        named = (stated.get((row["same"], each)) for each in (frame, "t", "p", "i"))
        states = space.parse(row if _is_stated(row) else next(filter(None, named), row))
        particles = frozenset(row["particles"].split())
        verbs[row["verb"], frame] = Verb(row["verb"], frame, states, row["subject"], row["same"], particles)
    return verbs


def _is_stated(row: dict[str, str]) -> bool:
    return any(row.get(dimension) for dimension in DIMENSIONS)
