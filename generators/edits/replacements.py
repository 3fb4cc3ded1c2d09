"""REPLACE edits: a noun, attribute or relation of the caption is replaced by one that excludes it.

A type defines the kind of its slots and which words of the lexicon exclude the one there.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.constraints.table import Constraint
from pairwright.generators.edits.floors import DEFAULT_FLOOR, RELATION_FLOOR_FACTOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import Proposer
from pairwright.generators.edits.slots import (
    ADJECTIVE,
    NOUN,
    RELATION,
    RelationShape,
    Slot,
    lexicon_key,
    relation_form,
    relation_shape,
)
from pairwright.generators.lexicon.relations import UNKNOWN, load_relations


@dataclass(frozen=True)
class ReplacementType:
    """A type of REPLACE edit.

    Attributes:
        kind: of its slots.
        substitutes: returns the columns of the cloze model that may replace the word of a slot.
        group: returns the cache key of a slot for `substitutes`.
        floor_factor: factor of the floor.
    """

    kind: str
    substitutes: Callable[[EditMaterials, Slot], Any]
    group: Callable[[Slot], Hashable]
    floor_factor: float = 1.0


def _nouns(materials: EditMaterials, slot: Slot) -> Sequence[int]:
    index, targets = materials.model.cloze.index(NOUN), materials.model.cloze.targets(NOUN)
    return sorted(index[word] for word in materials.knowledge.nouns.substitutes(slot.key, targets))


def _adjectives(materials: EditMaterials, slot: Slot) -> Sequence[int]:
    index, targets = materials.model.cloze.index(ADJECTIVE), materials.model.cloze.targets(ADJECTIVE)
    return sorted(index[word] for word in materials.knowledge.attributes.substitutes(slot.key, slot.after, targets))


def _relations(materials: EditMaterials, slot: Slot) -> Any:
    targets = materials.model.cloze.targets(RELATION)
    subject, keys = slot.before or UNKNOWN, _lexicon_keys(targets)
    excluded = load_relations().refuted_row(lexicon_key(slot.key), keys, subject, slot.after)
    return np.flatnonzero(excluded & _having_form(targets, relation_shape(slot.key), slot.tag))


@lru_cache(maxsize=4)
def _lexicon_keys(targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(lexicon_key, targets))


@lru_cache(maxsize=64)
def _having_form(targets: tuple[str, ...], shape: RelationShape, tag: str) -> npt.NDArray[np.bool_]:
    """Return which relations have a shape and can be inflected for a tag (empty: no verb).

    Most relations of other shapes read oddly or may be true ("standing over", "next to"); benchmarks/RESULTS.md has the figures.
    """
    return np.array([relation_shape(key) == shape and bool(relation_form(key, tag)) for key in targets], bool)


REPLACEMENT_TYPES: Final = {
    "replace-object": ReplacementType(NOUN, _nouns, lambda slot: slot.key),
    "replace-attribute": ReplacementType(ADJECTIVE, _adjectives, lambda slot: (slot.key, slot.after)),
    "replace-relation": ReplacementType(
        RELATION,
        _relations,
        lambda slot: (slot.key, slot.tag, load_relations().classes_of(slot.before or UNKNOWN, slot.after)),
        RELATION_FLOOR_FACTOR,
    ),
}


def build_proposer(
    name: str, materials: EditMaterials, floor: float = DEFAULT_FLOOR, constraints: Sequence[Constraint] = ()
) -> Proposer:
    """Return the proposer of a type of replacement.

    Args:
        name: of `REPLACEMENT_TYPES`.
        materials: of the pool.
        floor: minimum probability of the new word in its context, above 0.
        constraints: constraints on the replaced words.
    """
    chosen = REPLACEMENT_TYPES[name]
    substitutes = partial(chosen.substitutes, materials)
    return Proposer(
        chosen.kind,
        materials.model.cloze,
        substitutes,
        chosen.group,
        floor * chosen.floor_factor,
        constraints,
        materials.knowledge,
    )
