"""Sets of words: see `language.word_set`."""

from pairwright.generators.language.word_set import word_set

__all__ = ["word_set"]
