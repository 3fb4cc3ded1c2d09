"""Spearman's rank correlation."""

import numpy as np
import numpy.typing as npt


def rank_correlation(one: npt.NDArray[np.floating], other: npt.NDArray[np.floating]) -> float:
    """Return Spearman's correlation of two lists of numbers, (n,) each; ties share their mean rank, and only ties give 0."""
    from scipy.stats import rankdata  # takes a second

    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nan_to_num(np.corrcoef(rankdata([one, other], axis=1))[0, 1]))
