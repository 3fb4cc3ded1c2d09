"""Limits of edits that several makers and checks share."""

from typing import Final

DEFAULT_FLOOR: Final = 0.01  # least probability of a replacement; benchmarks/RESULTS.md has yield against naturalness
MOST_LETTERS: Final = 3  # by which the true and the false word of a pair differ
