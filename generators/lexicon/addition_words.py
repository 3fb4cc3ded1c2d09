"""Words that open, end or deny statements of what an image shows, by role (``addition_words.tsv``)."""

from functools import lru_cache

from pairwright.generators.lexicon.tables import read_rows


@lru_cache(maxsize=16)
def words_with_role(role: str) -> frozenset[str]:
    """Return the words of ``addition_words.tsv`` with a role."""
    return frozenset(
        word for row in read_rows("addition_words") if row["role"] == role for word in row["words"].split()
    )
