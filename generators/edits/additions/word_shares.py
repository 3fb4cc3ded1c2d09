"""Sampling of additions, such that no word is added much more often than others.

A proposal is drawn with a weight of p(new | context) / p(reference | context) * exp(balance(new) - balance(reference)).
Where a true word is the reference, the balance is that of REPLACE edits (`word_balance`). Without one, `limit_shares`
learns on the pool a balance, 0 or less, that brings the share of each word down towards a limit.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pairwright.generators.edits.additions.places import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import AdditionProposals, FloatArray
from pairwright.generators.edits.sampling import uniform

# Of all additions of a target; captions with a single proposal keep some words above it. There are only eleven colours.
MAX_SHARES: Final = {OBJECT: 0.03, ATTRIBUTE: 0.12}
_ROUNDS: Final = 30
_STEP: Final = 0.5
_LIMIT: Final = -5.0  # of a balance


def sample_additions(proposals: AdditionProposals, balance: FloatArray, seed: int) -> Iterator[int]:
    """Yield the numbers of proposals without replacement, drawn by weight.

    Args:
        proposals: of one caption.
        balance: of each word of the vocabulary, natural logarithms.
        seed: 64 random bits.
    """
    weights = proposals.log_ratio + balance[proposals.new]
    weights -= np.where(proposals.old < 0, 0.0, balance[proposals.old])
    # Exponential waiting times: the shortest is proposal i with probability weight_i / sum of weights.
    waiting = np.log(-np.log(uniform(seed, len(weights)))) - weights
    yield from map(int, np.argsort(waiting, kind="stable"))


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
    return {targets[at]: round(float(balance[at]), 4) for at in np.flatnonzero(balance < -0.0001)}
