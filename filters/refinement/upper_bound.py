"""How many rows any refinement could keep: an upper bound from the fixed scorers alone.

A fixed scorer prefers the same text of a row whatever else is kept. So rows fall into classes by what all scorers
prefer (positive, negative, neither), and the most rows of which no scorer finds more than ``target``, nor fewer than
1 - ``target``, is a linear programme over the classes. Its value bounds every subset; the classifiers, which are
trained on what is kept, can only lower what is possible. A scorer whose rows nearly all lean one way shows here.
"""

from collections.abc import Mapping

import numpy as np

from pairwright.generators.language.vocabulary import FloatArray


def max_balanced_rows(gaps: Mapping[str, FloatArray], target: float) -> int:
    """Return the upper bound on rows kept.

    Args:
        gaps: of each fixed scorer, float64 (n,), NaN for no score; all of one length.
        target: folded accuracy that none may exceed, 0.5-1.
    """
    if not gaps:
        raise ValueError("a bound needs at least one scorer")
    signs = np.stack([np.sign(np.nan_to_num(gap)) for gap in gaps.values()], axis=1)
    if not len(signs):
        return 0
    from scipy.optimize import linprog

    classes, size = np.unique(signs, axis=0, return_counts=True)
    slack = 2.0 * target - 1.0
    limits = np.concatenate([classes.T - slack, -classes.T - slack])
    solved = linprog(-np.ones(len(size)), limits, np.zeros(len(limits)), bounds=[(0, most) for most in size.tolist()])
    return int(np.floor(-solved.fun + 1e-6))
