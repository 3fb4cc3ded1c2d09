"""The types of REPLACE edits: which slots each fills, and which words exclude the one in the slot."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from pairwright.generators.edits.constraints.table import Knowledge
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.proposals import Proposer
from pairwright.generators.edits.replacements import Replacements
from pairwright.generators.edits.sampling import balance_of_targets
from pairwright.generators.edits.slots import ADJECTIVE, FINITE, NOUN, RELATION, Slot, begins_with_verb, lexicon_key

DEFAULT_FLOOR: Final = 0.1  # see benchmarks/RESULTS.md for the trade-off


@dataclass(frozen=True)
class ReplacementType:
    """A type of REPLACE edit.

    Attributes:
        kind: of its slots.
        substitutes: the words of a vocabulary that exclude the one in a slot.
        group: what of a slot the substitutes depend on.
    """

    kind: str
    substitutes: Callable[[Knowledge, Slot, tuple[str, ...]], Sequence[str]]
    group: Callable[[Slot], Hashable]


def _nouns(knowledge: Knowledge, slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
    return knowledge.nouns.substitutes(slot.key, targets)


def _adjectives(knowledge: Knowledge, slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
    return knowledge.attributes.substitutes(slot.key, slot.after, targets)


def _relations(knowledge: Knowledge, slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
    old = lexicon_key(slot.key)
    words = targets if not _needs_verb(slot) else [word for word in targets if begins_with_verb(word)]
    return [word for word in words if knowledge.relations.exclusive(old, lexicon_key(word))]


def _needs_verb(slot: Slot) -> bool:
    """Return whether a clause would lose its verb with a preposition alone: "a man | sits on | a bench"."""
    return slot.tag in FINITE or slot.tag == "VB"


REPLACEMENT_TYPES: Final = {
    "replace-object": ReplacementType(NOUN, _nouns, lambda slot: slot.key),
    "replace-attribute": ReplacementType(ADJECTIVE, _adjectives, lambda slot: (slot.key, slot.after)),
    "replace-relation": ReplacementType(RELATION, _relations, lambda slot: (slot.key, slot.tag)),
}


def build_replacements(
    name: str,
    model: EditModel,
    knowledge: Knowledge,
    floor: float = DEFAULT_FLOOR,
    skip: frozenset[str] = frozenset(),
) -> Replacements:
    """Return the maker of a type of replacement.

    Args:
        name: of `REPLACEMENT_TYPES`.
        model: of the pool.
        knowledge: what constraints and lexicons read.
        floor: least likelihood of the new word relative to the old one, above 0.
        skip: ids of constraints that are not applied.
    """
    chosen = REPLACEMENT_TYPES[name]

    def substitutes(slot: Slot, targets: tuple[str, ...]) -> Sequence[str]:
        return chosen.substitutes(knowledge, slot, targets)

    proposer = Proposer(chosen.kind, model.cloze, substitutes, chosen.group, floor)
    balance = balance_of_targets(model.cloze.targets(chosen.kind), model.balance.get(name, {}))
    return Replacements(proposer, balance, knowledge, skip)
