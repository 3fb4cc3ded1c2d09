"""The types of REPLACE edits: which slots each fills, and which words exclude the one in the slot."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import Proposer
from pairwright.generators.edits.replacements import Replacements
from pairwright.generators.edits.sampling import balance_of_targets
from pairwright.generators.edits.slots import ADJECTIVE, FINITE, NOUN, RELATION, Slot, begins_with_verb, lexicon_key
from pairwright.generators.lexicon.relations import UNKNOWN, load_relations


@dataclass(frozen=True)
class ReplacementType:
    """A type of REPLACE edit.

    Attributes:
        kind: of its slots.
        substitutes: the words of a vocabulary that exclude the one in a slot.
        group: what of a slot the substitutes depend on.
    """

    kind: str
    substitutes: Callable[[EditMaterials, Slot, tuple[str, ...]], Sequence[str]]
    group: Callable[[Slot], Hashable]


def _nouns(materials: EditMaterials, slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
    return materials.nouns.substitutes(slot.key, targets)


def _adjectives(materials: EditMaterials, slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
    return materials.attributes.substitutes(slot.key, slot.after, targets)


def _relations(materials: EditMaterials, slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
    del materials
    subject = slot.before or UNKNOWN
    row = _excluded(targets, load_relations().classes_of(subject, slot.after), subject, slot.after)
    words = [targets[at] for at in np.flatnonzero(row[targets.index(slot.key)])]
    return [word for word in words if begins_with_verb(word)] if _needs_verb(slot) else words


_by_classes: dict[tuple[tuple[str, ...], tuple[str, ...]], npt.NDArray[np.bool_]] = {}


def _excluded(targets: tuple[str, ...], classes: tuple[str, ...], subject: str, thing: str) -> npt.NDArray[np.bool_]:
    """Return which relations exclude which, which depends on the noun classes of subject and object alone."""
    found = _by_classes.get((targets, classes))
    if found is None:
        keys = [lexicon_key(word) for word in targets]
        found = _by_classes[targets, classes] = load_relations().exclusion_matrix(keys, subject, thing)
    return found


def _needs_verb(slot: Slot) -> bool:
    """Return whether a clause would lose its verb with a preposition alone: "a man | sits on | a bench"."""
    return slot.tag in FINITE or slot.tag == "VB"


REPLACEMENT_TYPES: Final = {
    "replace-object": ReplacementType(NOUN, _nouns, lambda slot: slot.key),
    "replace-attribute": ReplacementType(ADJECTIVE, _adjectives, lambda slot: (slot.key, slot.after)),
    "replace-relation": ReplacementType(
        RELATION,
        _relations,
        lambda slot: (slot.key, slot.tag, load_relations().classes_of(slot.before or UNKNOWN, slot.after)),
    ),
}


def build_replacements(
    name: str, materials: EditMaterials, floor: float = DEFAULT_FLOOR, skip: frozenset[str] = frozenset()
) -> Replacements:
    """Return the maker of a type of replacement.

    Args:
        name: of `REPLACEMENT_TYPES`.
        materials: of the pool.
        floor: least likelihood of the new word relative to the old one, above 0.
        skip: ids of constraints that are not applied.
    """
    chosen, model = REPLACEMENT_TYPES[name], materials.model

    def substitutes(slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
        return chosen.substitutes(materials, slot, targets)

    proposer = Proposer(chosen.kind, model.cloze, substitutes, chosen.group, floor)
    balance = balance_of_targets(model.cloze.targets(chosen.kind), model.balance.get(name, {}))
    return Replacements(proposer, balance, materials.knowledge, skip)
