"""Function words, and nouns that count or measure, by feature (``data/function_words.tsv``)."""

from functools import lru_cache

from pairwright.generators.lexicon.tables import read_rows, united


@lru_cache(maxsize=1)
def _features() -> dict[str, frozenset[str]]:
    return united(
        (feature, (row["word"],)) for row in read_rows("function_words") for feature in row["features"].split()
    )


def words_with(feature: str) -> frozenset[str]:
    """Return the words that have a feature."""
    return _features()[feature]
