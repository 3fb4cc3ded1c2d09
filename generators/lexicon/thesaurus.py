"""Another name of WordNet."""

from pairwright.generators.language.wordnet import WordNet as Thesaurus

__all__ = ["Thesaurus"]
