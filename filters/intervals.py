"""How sure a counted share is: the Wilson interval."""

import math
from statistics import NormalDist
from typing import Final

Z95: Final = NormalDist().inv_cdf(0.975)  # half-width of a two-sided 95% interval, in standard deviations


def wilson(hits: float, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval in which the true share lies, given ``hits`` of ``of`` independent draws.

    It stays within 0-1 and holds where nothing or everything was found, which the normal interval does not: 0 of 100 is
    at most 3.7%, not 0% (Wilson, JASA 1927).

    Args:
        hits: 0 to ``of``; a tie may count half.
        of: draws; with none the interval is (0, 1).
        confidence: two-sided, 0-1.
    """
    if of <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    # At the ends the interval touches 0 and 1; rounding must not leave the share outside.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
