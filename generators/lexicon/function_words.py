"""Function words, and nouns that count or measure, by feature (``data/function_words.tsv``)."""

from functools import lru_cache

from pairwright.generators.lexicon.tables import read_rows


@lru_cache(maxsize=1)
def _features() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for row in read_rows("function_words"):
        for feature in row["features"].split():
            found.setdefault(feature, set()).add(row["word"])
    return {feature: frozenset(words) for feature, words in found.items()}


def words_with(feature: str) -> frozenset[str]:
    """Return the words that have a feature."""
    return _features()[feature]
