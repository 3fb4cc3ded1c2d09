"""A text scorer that prefers texts with few words."""

from collections.abc import Sequence


def score(texts: Sequence[str]) -> list[float]:
    """Return one number in 0-1 for each text, higher for the likelier caption."""
    return [1 / (1 + len(text.split())) for text in texts]
