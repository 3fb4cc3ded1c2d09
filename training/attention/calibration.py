"""Calibrated attention: attention to documents minus its positional bias, and attention shares (000, chapter 3).

Attn(x, k) = rel(x) + bias(k) (eq. 3.2). An irrelevant dummy document at position k measures bias(k) (eq. 3.3); the
difference is the *calibrated attention* of the document at k, its relevance up to a constant (eq. 3.4). The log-linear
form (eq. B.1) does the same with logarithms.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import UsageError

Form = Literal["linear", "log-linear"]
FloatArray = npt.NDArray[np.float64]

TEMPERATURE = 5e-5
_EPSILON = 1e-30  # lower bound, so that underflowed attention has a logarithm


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration settings."""

    form: Form = "linear"  # model of attention, linear (eq. 3.2) or log-linear (eq. B.1).
    # T of eq. 3.5, above 0; None: 5e-5 (appendix B.2), or 1 for the log-linear form, whose relevance is a logarithm and
    # for which the source has no t: shares are then proportional to attention over bias.
    temperature: float | None = None
    dummy: str = ""  # document for measuring bias; empty: a neutral one of the length of the prompt's documents

    def __post_init__(self) -> None:
        if self.temperature is not None and not self.temperature > 0:
            raise UsageError(f"temperature {self.temperature}: must be above 0, such as {TEMPERATURE}.")

    @property
    def t(self) -> float:
        """The effective temperature."""
        if self.temperature is not None:
            return self.temperature
        return TEMPERATURE if self.form == "linear" else 1.0


def calibrated_relevance(attention: FloatArray, baseline: FloatArray, form: Form = "linear") -> FloatArray:
    """Return Attn(x_k, k) without Attn(dummy, k), up to a constant; all are float64 (documents,), attention 0-1."""
    if form == "linear":
        return attention - baseline
    return np.asarray(np.log(np.maximum(attention, _EPSILON)) - np.log(np.maximum(baseline, _EPSILON)))


def descending_order(relevances: FloatArray) -> list[int]:
    """Return the places of documents by descending relevance; ties in the given order."""
    return [int(place) for place in np.argsort(-relevances, kind="stable")]


def attention_shares(relevances: FloatArray, tokens: tuple[int, ...], temperature: float) -> FloatArray:
    """Return log shares of each document in the attention on all documents (eq. 3.5, 3.6), float64 (documents,).

    The softmax is over mean attention per token, so a share grows with the document's length: ``tokens``, 1 or more
    each. Relevances are float64 (documents,), the temperature is above 0.
    """
    raw = relevances / temperature + np.log(np.asarray(tokens, dtype=np.float64))
    raw = raw - raw.max()
    return np.asarray(raw - np.log(np.exp(raw).sum()))
