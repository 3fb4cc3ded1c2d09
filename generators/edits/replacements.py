"""REPLACE edits: a noun, attribute or relation of the caption becomes one that excludes it.

A type says which slots it fills and which words of the lexicon exclude the one there. Proposals of the cloze model
(`proposals`) are drawn (`sampling`), and pass the constraints one by one until one makes a text. A screen (`constraints.screens`) has found out beforehand which constraints need asking.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any, Final

import numpy as np

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.screens import AttributeScreen, NounScreen, RelationScreen, Screen
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import TARGETS, BoolArray, FloatArray, Proposals, Proposer, proposed_edit
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
    """

    proposer: Proposer
    balance: FloatArray
    _decided: dict[Hashable, int] = field(default_factory=dict)

    def outcomes(self, caption: Caption, proposals: Proposals, seed: int) -> Iterator[Outcome]:
        """Yield edits of a caption, drawn by weight, and the reason wherever a constraint rejects one."""
        if not len(proposals):
            if proposals.slots:
                yield "no_candidate"
            return
        constraints, certain = self.proposer.screen.constraints, proposals.screened.violated
        if len(certain) <= MAX_TRIES and certain.max() < len(constraints):
            yield from {constraints[at].reason: None for at in certain.tolist()}
            return
        for at in islice(order_by_weight(log_weights(proposals, self.balance), seed), MAX_TRIES):
            violated = self._violated(caption, proposals, at)
            if violated < len(constraints):
                yield constraints[violated].reason
            else:
                slot, new = proposals.at(at)
                yield (write_slot(caption, slot, new),)

    def allowed(self, caption: Caption, proposals: Proposals) -> Iterator[tuple[int, int, float]]:
        """Yield the likeliest proposals that no constraint rejects: indices of the old and new word, and log-ratio."""
        most = len(self.proposer.screen.constraints)
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES].tolist():
            if self._violated(caption, proposals, at) == most:
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])

    @cached_property
    def _by_words(self) -> int:
        """Bits of the constraints that the words of an edit decide."""
        return sum(1 << at for at, each in enumerate(self.proposer.screen.constraints) if each.by_words)

    def _violated(self, caption: Caption, proposals: Proposals, at: int) -> int:
        """Return a constraint that a proposal violates, one that the screen found or the first; the number of constraints without any."""
        asked, violated = int(proposals.screened.asked[at]), int(proposals.screened.violated[at])
        if violated < len(self.proposer.screen.constraints):
            return violated  # whether it violates one before it is not worth the time
        by_words = asked & self._by_words
        if by_words:
            slot = proposals.slots[proposals.slot[at]]
            key = (slot.key, int(proposals.new[at]), slot.before, slot.after)
            first = self._decided.get(key)
            if first is None:
                if len(self._decided) >= _MOST_REMEMBERED:
                    self._decided.clear()
                first = self._decided[key] = self._ask(by_words, proposed_edit(caption, *proposals.at(at)))
            violated = first
        rest = asked & ~self._by_words & ((1 << violated) - 1)
        return min(violated, self._ask(rest, proposed_edit(caption, *proposals.at(at)))) if rest else violated

    def _ask(self, asked: int, edit: ProposedEdit) -> int:
        constraints, known = self.proposer.screen.constraints, self.proposer.screen.known
        while asked:
            at = (asked & -asked).bit_length() - 1
            if constraints[at].violated(edit, known):
                return at
            asked &= asked - 1
        return len(constraints)


@dataclass(frozen=True)
class ReplacementType:
    """A type of REPLACE edit.

    Attributes:
        kind: of its slots.
        substitutes: the columns of the cloze model that may stand in a slot instead.
        group: what of a slot the substitutes depend on.
        screen: of the constraints on them.
    """

    kind: str
    substitutes: Callable[[EditMaterials, Slot], Any]
    group: Callable[[Slot], Hashable]
    screen: type[Screen]


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
def _having_form(targets: tuple[str, ...], tag: str) -> BoolArray:
    """Return which relations can stand where a verb with this tag stood, or none did.

    A clause would lose its verb with a preposition alone: "a man | sits on | a bench".
    """
    needs_verb = tag in FINITE or tag == "VB"
    fits = (relation_form(key, tag) and (begins_with_verb(key) or not needs_verb) for key in targets)
    return np.array([bool(each) for each in fits], bool)


REPLACEMENT_TYPES: Final = {
    "replace-object": ReplacementType(NOUN, _nouns, lambda slot: slot.key, NounScreen),
    "replace-attribute": ReplacementType(ADJECTIVE, _adjectives, lambda slot: (slot.key, slot.after), AttributeScreen),
    "replace-relation": ReplacementType(
        RELATION,
        _relations,
        lambda slot: (slot.key, slot.tag, load_relations().classes_of(slot.before or UNKNOWN, slot.after)),
        RelationScreen,
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
    constraints = applicable_constraints("hard_negative", "replace", TARGETS[chosen.kind], skip)
    keys = _lexicon_keys(targets) if chosen.kind == RELATION else targets
    screen = chosen.screen(constraints, keys, materials.knowledge)
    substitutes = partial(chosen.substitutes, materials)
    proposer = Proposer(chosen.kind, model.cloze, substitutes, chosen.group, floor, screen)
    return Replacements(proposer, balance_of_targets(targets, model.balance.get(name, {})))
