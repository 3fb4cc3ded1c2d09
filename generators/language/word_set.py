"""Sets of words, written as text with spaces between."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())
