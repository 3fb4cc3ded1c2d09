"""What scorers that no one here has seen may prefer, foreseen from those that are at hand.

Rows that are balanced for one trigram model are not for another: where the one prefers the negative by chance, the other
still prefers the positive, as it does in most rows. How often is learned from the halves of the captions: from the gaps of
all scorers that were trained on one half, whether the scorer of the other half prefers the positive (a logistic regression
for each kind of scorer, both ways). The mean over the kinds is the row's *foresight*: the chance that an unseen scorer
prefers its positive. A set in which these chances add up to a goal is balanced for scorers to come.

That holds for scorers of the kinds at hand, which have read other captions. A kind that none of these is like follows them
less: where they expect one positive in six to be preferred, it still prefers two in five. So what tells most is seen by
more than one of the guards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.generators.language.vocabulary import FloatArray, encode_names

MAX_ROWS = 20_000
_STEPS = 8
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class SplitCorpusGaps:
    """Gaps of one kind of scorer, each float64 (n,), NaN where there is none.

    Attributes:
        whole: trained on all captions.
        first: on one half of them.
        second: on the other half.
    """

    whole: FloatArray
    first: FloatArray
    second: FloatArray


def estimate_transfer(gaps: Mapping[str, SplitCorpusGaps], types: Sequence[str]) -> FloatArray:
    """Return the chance that an unseen scorer prefers the positive of each row, float64 (n,) in 0-1.

    Args:
        gaps: of at least one kind of scorer, by its name.
        types: of the edits, one a row.
    """
    if not types:
        return np.zeros(0)
    whole, first, second = (
        _regression_inputs([getattr(each, part) for each in gaps.values()], types)
        for part in ("whole", "first", "second")
    )
    # Some rows tell as much as all; they are taken evenly from the whole length.
    step = -(-len(whole) // MAX_ROWS)
    chances = []
    with limit_blas_to_one_thread():
        for each in gaps.values():
            for read, other in ((first, each.second), (second, each.first)):
                prefers = 0.5 + 0.5 * np.sign(np.nan_to_num(other))
                chances.append(_sigmoid(whole @ _fit_logistic(read[::step], prefers[::step])))
    result: FloatArray = np.asarray(np.round(np.mean(np.stack(chances), axis=0), _DECIMALS), np.float64)
    return result


def _regression_inputs(gaps: Sequence[FloatArray], types: Sequence[str]) -> FloatArray:
    # What is read in a row: each gap as it is and sharpened, how large it is whatever its sign, and the type.
    names, kind = encode_names(types)
    given = np.nan_to_num(np.stack(gaps, axis=1))
    scaled = given / np.maximum(given.std(axis=0), 1e-9)
    small = np.tanh(scaled)
    columns = (small, np.tanh(3.0 * scaled), np.abs(small), np.eye(len(names))[kind], np.ones((len(given), 1)))
    read: FloatArray = np.hstack(columns)
    return read


def _fit_logistic(read: FloatArray, prefers: FloatArray) -> FloatArray:
    # Newton's method; the penalty of 1/2 |w|^2 makes it stand on rows of one kind.
    weights = np.zeros(read.shape[1])
    for _ in range(_STEPS):
        likely = _sigmoid(read @ weights)
        bend = (read * (likely * (1.0 - likely))[:, np.newaxis]).T @ read + np.eye(len(weights))
        weights = weights - np.linalg.solve(bend, read.T @ (likely - prefers) + weights)
    return weights


def _sigmoid(values: FloatArray) -> FloatArray:
    found: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(values, -30.0, 30.0)))
    return found
