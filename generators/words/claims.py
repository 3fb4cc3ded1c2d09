"""What claims that a thing is in the picture: see `lexicon.claims`."""

from pairwright.generators.lexicon.claims import (
    BEHIND,
    DISTANT,
    IN_VIEW,
    NAMED_FIRST,
    NEAR,
    NEARBY,
    SAID_BY_CLAIMS,
    claimed,
    only_names,
)

__all__ = [
    "BEHIND",
    "DISTANT",
    "IN_VIEW",
    "NAMED_FIRST",
    "NEAR",
    "NEARBY",
    "SAID_BY_CLAIMS",
    "claimed",
    "only_names",
]
