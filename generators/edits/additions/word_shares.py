"""Balance of additions without true words, such that no word is added much more often than others.

A proposal is drawn with a weight of p(new | context) / p(typical word | context) * exp(balance(new)). Nothing is replaced,
so `word_balance` does not apply; `limit_shares` learns on the pool a balance, 0 or less, that brings the share of each
word down towards a limit.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from pairwright.generators.edits.additions.places import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import AdditionProposals

# Of all additions of a target; captions with a single proposal keep some words above it. There are only eleven colours.
MAX_SHARES: Final = {OBJECT: 0.03, ATTRIBUTE: 0.12}
_ROUNDS: Final = 30
_STEP: Final = 0.5
_LIMIT: Final = -5.0  # of a balance


def limit_shares(proposals: Sequence[AdditionProposals], most: float) -> dict[str, float]:
    """Return the balance of the words that would be added too often.

    Args:
        proposals: of captions of the pool, without true words.
        most: the share of all additions that a word shall have (`MAX_SHARES`).
    """
    made = [each for each in proposals if len(each)]
    if not made:
        return {}
    targets = made[0].targets
    new = np.concatenate([each.new for each in made])
    ratios = np.concatenate([each.log_ratio for each in made])
    caption = np.repeat(np.arange(len(made)), [len(each) for each in made])
    balance = np.zeros(len(targets))
    for _ in range(_ROUNDS):
        weights = np.exp(ratios + balance[new])
        shares = weights / np.bincount(caption, weights)[caption]
        expected = np.bincount(new, shares, len(targets)) / len(made)
        balance -= _STEP * np.log(np.maximum(expected, 1e-9) / most)
        balance = balance.clip(_LIMIT, 0.0)
    return {target: round(float(each), 4) for target, each in zip(targets, balance, strict=True) if each < -0.0001}
