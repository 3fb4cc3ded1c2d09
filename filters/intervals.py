"""How sure a counted share is: the Wilson interval."""

import math

Z95 = 1.959963984540054  # two-sided 95% of a normal distribution


def wilson(hits: float, of: int, z: float = Z95) -> tuple[float, float]:
    """Return the interval in which the true share lies, given ``hits`` of ``of`` independent draws.

    It stays within 0-1 and holds for small counts, where the normal interval does not (Wilson, JASA 1927).

    Args:
        hits: 0 to ``of``; a tie may count half.
        of: draws; with none the interval is (0, 1).
        z: half-width in standard deviations; 95% when left out.
    """
    if of <= 0:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    # At the ends the interval touches 0 and 1; rounding must not leave the share outside.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
