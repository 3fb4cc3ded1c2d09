"""Estimated preferences of held-out scorers, from the scorers at hand.

Rows that are balanced for one trigram model are not balanced for another: where the first prefers the negative by
accident, the second still prefers the positive, as it does in most rows. How often is learned from halves of the
captions: a logistic regression per kind of scorer predicts, from the gaps of all scorers trained on one half, whether
the scorer of the other half prefers the positive (both ways). The mean over the kinds is the probability that a
held-out scorer prefers the positive of the row. A set in which these probabilities add up to a goal is balanced for
held-out scorers.

This covers scorers of the kinds at hand that were trained on other captions. A kind that resembles none of them
follows the estimate less: where it predicts that one positive in six is preferred, such a scorer prefers two in five.
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
    """Gaps of one kind of scorer, each float64 (n,), NaN without a score.

    Attributes:
        whole: of the scorer trained on all captions.
        first: of the scorer trained on one half of them.
        second: of the scorer trained on the other half.
    """

    whole: FloatArray
    first: FloatArray
    second: FloatArray


def estimate_transfer(gaps: Mapping[str, SplitCorpusGaps], types: Sequence[str]) -> FloatArray:
    """Return the probability that a held-out scorer prefers the positive of each row, float64 (n,) in 0-1.

    Args:
        gaps: of at least one kind of scorer, by its name.
        types: edit type of each row.
    """
    if not types:
        return np.zeros(0)
    # A sample of the rows, taken at even steps, is enough to fit.
    step = -(-len(types) // MAX_ROWS)
    first, second = (
        _build_regression_inputs([getattr(each, half) for each in gaps.values()], types)[::step].copy()
        for half in ("first", "second")
    )
    whole = _build_regression_inputs([each.whole for each in gaps.values()], types)
    probabilities = []
    with limit_blas_to_one_thread():
        for each in gaps.values():
            for inputs, other in ((first, each.second), (second, each.first)):
                prefers = 0.5 + 0.5 * np.sign(np.nan_to_num(other))
                probabilities.append(_sigmoid(whole @ _fit_logistic(inputs, prefers[::step])))
    result: FloatArray = np.asarray(np.round(np.mean(np.stack(probabilities), axis=0), _DECIMALS), np.float64)
    return result


def _build_regression_inputs(gaps: Sequence[FloatArray], types: Sequence[str]) -> FloatArray:
    # Inputs of a row: each gap, unscaled and sharpened, its absolute size, and the type.
    names, kind = encode_names(types)
    filled = np.nan_to_num(np.stack(gaps, axis=1))
    scaled = filled / np.maximum(filled.std(axis=0), 1e-9)
    squashed = np.tanh(scaled)
    columns = (squashed, np.tanh(3.0 * scaled), np.abs(squashed), np.eye(len(names))[kind], np.ones((len(filled), 1)))
    inputs: FloatArray = np.hstack(columns)
    return inputs


def _fit_logistic(inputs: FloatArray, prefers: FloatArray) -> FloatArray:
    # Newton's method; the penalty of 1/2 |w|^2 keeps it stable on rows of one class.
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        probability = _sigmoid(inputs @ weights)
        hessian = (inputs * (probability * (1.0 - probability))[:, np.newaxis]).T @ inputs + np.eye(len(weights))
        weights = weights - np.linalg.solve(hessian, inputs.T @ (probability - prefers) + weights)
    return weights


def _sigmoid(values: FloatArray) -> FloatArray:
    found: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(values, -30.0, 30.0)))
    return found
