"""REPLACE edits: a noun, attribute or relation of the caption becomes one that excludes it.

A type says which slots it fills and which words of the lexicon exclude the one there. Proposals of the cloze model
(`proposals`) are drawn (`sampling`), and pass the constraints one by one until one makes a text.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, applicable_constraints, first_violated
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import TARGETS, FloatArray, Proposals, Proposer, proposed_edit
from pairwright.generators.edits.sampling import balance_of_targets, log_weights, order_by_weight
from pairwright.generators.edits.slots import (
    ADJECTIVE,
    FINITE,
    NOUN,
    RELATION,
    Slot,
    begins_with_verb,
    lexicon_key,
    relation_form,
    write_slot,
)
from pairwright.generators.lexicon.relations import UNKNOWN, load_relations

MAX_TRIES: Final = 128  # proposals of a caption that are checked at most
_MOST_REMEMBERED: Final = 200_000


@dataclass
class Replacements:
    """Makes the REPLACE edits of one kind.

    Attributes:
        proposer: proposes words.
        balance: of each word of the vocabulary; see `word_balance`.
        known: what the constraints read.
        by_words: constraints that the words of an edit decide.
        others: constraints on an edit as a whole.
    """

    proposer: Proposer
    balance: FloatArray
    known: Knowledge
    by_words: Sequence[Constraint]
    others: Sequence[Constraint]
    _decided: dict[Hashable, Constraint | None] = field(default_factory=dict)

    def outcomes(self, caption: Caption, proposals: Proposals, seed: int) -> Iterator[Outcome]:
        """Yield edits of a caption, drawn by weight, and the reason wherever a constraint rejects one."""
        yield from proposals.refused
        if proposals.slots and not len(proposals):
            yield "no_candidate"
        for at in islice(order_by_weight(log_weights(proposals, self.balance), seed), MAX_TRIES):
            slot, new = proposals.at(at)
            violated = self._violation(proposed_edit(caption, slot, new))
            yield (write_slot(caption, slot, new),) if violated is None else violated.reason

    def allowed(self, caption: Caption, proposals: Proposals) -> Iterator[tuple[int, int, float]]:
        """Yield the likeliest proposals that no constraint rejects: indices of the old and new word, and log-ratio."""
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES].tolist():
            if self._violation(proposed_edit(caption, *proposals.at(at))) is None:
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])

    def _violation(self, edit: ProposedEdit) -> Constraint | None:
        key = edit.old, edit.new, edit.before, edit.after
        if key not in self._decided:
            if len(self._decided) >= _MOST_REMEMBERED:
                self._decided.clear()
            self._decided[key] = first_violated(self.by_words, edit, self.known)
        return self._decided[key] or first_violated(self.others, edit, self.known)


@dataclass(frozen=True)
class ReplacementType:
    """A type of REPLACE edit.

    Attributes:
        kind: of its slots.
        substitutes: the columns of the cloze model that may stand in a slot instead.
        group: what of a slot the substitutes depend on.
    """

    kind: str
    substitutes: Callable[[EditMaterials, Slot], Any]
    group: Callable[[Slot], Hashable]


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
    return np.flatnonzero(excluded & _having_form(targets, slot.tag))


@lru_cache(maxsize=4)
def _lexicon_keys(targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(lexicon_key, targets))


@lru_cache(maxsize=32)
def _having_form(targets: tuple[str, ...], tag: str) -> npt.NDArray[np.bool_]:
    """Return which relations can stand where a verb with this tag stood, or none did.

    A clause would lose its verb with a preposition alone: "a man | sits on | a bench".
    """
    needs_verb = tag in FINITE or tag == "VB"
    fits = (relation_form(key, tag) and (begins_with_verb(key) or not needs_verb) for key in targets)
    return np.array([bool(each) for each in fits], bool)


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
        floor: least probability of the new word in its context, above 0.
        skip: ids of constraints that are not applied.
    """
    chosen, model = REPLACEMENT_TYPES[name], materials.model
    targets = model.cloze.targets(chosen.kind)
    substitutes = partial(chosen.substitutes, materials)
    constraints = applicable_constraints("hard_negative", "replace", TARGETS[chosen.kind], skip)
    by_place = [each for each in constraints if each.by_place]
    by_words = [each for each in constraints if each.by_words]
    others = [each for each in constraints if not (each.by_place or each.by_words)]
    proposer = Proposer(chosen.kind, model.cloze, substitutes, chosen.group, floor, by_place, materials.knowledge)
    balance = balance_of_targets(targets, model.balance.get(name, {}))
    return Replacements(proposer, balance, materials.knowledge, by_words, others)
