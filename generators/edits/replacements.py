"""REPLACE edits: a noun, attribute or relation of the caption becomes one that excludes it.

Proposals come from the lexicon and the cloze model (`proposals`), are drawn (`sampling`), and pass the constraints one
by one until one makes a text. A screen (`constraints.screens`) has found out beforehand which constraints need asking.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.proposals import Proposals, Proposer, proposed_edit
from pairwright.generators.edits.sampling import log_weights, order_by_weight
from pairwright.generators.edits.scored_captions import FloatArray
from pairwright.generators.edits.slots import write_slot

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
