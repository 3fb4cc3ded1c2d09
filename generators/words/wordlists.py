"""Word lists are written as text, words between spaces, since that is how they are read and mended."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())
