"""Default floors of edits: how likely a new word must be in its context."""

from typing import Final

DEFAULT_FLOOR: Final = 0.02  # relative to the word that it replaces; benchmarks/RESULTS.md has the trade-off
LEAST_PROBABILITY: Final = 0.001  # beside it, where what stands in the caption is unlikely, too
