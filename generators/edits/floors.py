"""Default floor of replacements: how likely a new word must be in its context."""

from typing import Final

DEFAULT_FLOOR: Final = 0.01  # benchmarks/RESULTS.md has the trade-off between yield and naturalness
