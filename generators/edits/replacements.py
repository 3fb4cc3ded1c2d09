"""REPLACE edits: a word or phrase of a slot gives way to one that excludes it.

Proposals come from the lexicon and the cloze model (`proposals`), are drawn (`sampling`), and pass the constraints one
by one until one makes a text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import find_violation, is_allowed
from pairwright.generators.edits.proposals import Proposals, Proposer
from pairwright.generators.edits.sampling import sample_proposals
from pairwright.generators.edits.scored_captions import FloatArray
from pairwright.generators.edits.slots import ADJECTIVE, NOUN, RELATION, Slot, lexicon_key, write_slot

TARGETS: Final = {NOUN: "object", ADJECTIVE: "attribute", RELATION: "relation"}
MAX_TRIES: Final = 128  # proposals of a caption that are checked at most


@dataclass(frozen=True)
class Replacements:
    """Makes the REPLACE edits of one kind.

    Attributes:
        proposer: proposes words.
        balance: of each word of the vocabulary; see `word_balance`.
        knowledge: what the constraints read.
        skip: ids of constraints that are not applied.
    """

    proposer: Proposer
    balance: FloatArray
    knowledge: Knowledge
    skip: frozenset[str] = frozenset()

    def outcomes(self, caption: Caption, proposals: Proposals, seed: int) -> Iterator[Outcome]:
        """Yield edits of a caption, drawn by weight, and the reason wherever a constraint rejects one."""
        if proposals.slots and not len(proposals):
            yield "no_candidate"
        for at in islice(sample_proposals(proposals, self.balance, seed), MAX_TRIES):
            slot, new = proposals.at(at)
            violated = find_violation(proposed_edit(caption, slot, new), self.knowledge, skip=self.skip)
            yield violated.reason if violated is not None else (write_slot(caption, slot, new),)

    def allowed(self, caption: Caption, proposals: Proposals) -> Iterator[tuple[int, int, float]]:
        """Yield the likeliest proposals that no constraint rejects: indices of the old and new word, and log-ratio."""
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES].tolist():
            slot, new = proposals.at(at)
            if is_allowed(proposed_edit(caption, slot, new), self.knowledge, skip=self.skip):
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])


def proposed_edit(caption: Caption, slot: Slot, new: str) -> ProposedEdit:
    """Return a proposal as constraints see it."""
    old = slot.key
    if slot.kind == RELATION:
        old, new = lexicon_key(old), lexicon_key(new)
    return ProposedEdit(caption, "replace", TARGETS[slot.kind], old, new, slot.before, slot.after, slot.start, slot.end)
