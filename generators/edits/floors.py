"""Default floors of edits: how likely a new word must be in its context, relative to the word that it replaces."""

from typing import Final

DEFAULT_FLOOR: Final = 0.02  # benchmarks/RESULTS.md has the trade-off between yield and naturalness
