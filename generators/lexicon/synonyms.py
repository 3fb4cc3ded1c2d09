"""Synonym lexicon: rewordings, which keep a caption true, and words for the same thing.

A rewording (``rewordings.tsv``) keeps the meaning for the nouns of its condition. It is directed: an infant is a baby,
but a baby may be an elephant's. Whether a rewording is natural is left to the cloze model.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.generators.lexicon.attributes import NounCondition
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.lexicon.tables import cell_words, grouped, read_rows

_LOOSE: Final = ("noun", "adjective")  # parts of speech of words for the same thing


@dataclass(frozen=True, slots=True)
class Rewording:
    """Synonyms of a word, and the nouns (lemmas) for which they hold."""

    others: tuple[str, ...]
    condition: NounCondition


@lru_cache(maxsize=4)
def rewording_rows(name: str = "rewordings") -> dict[tuple[str, str], tuple[Rewording, ...]]:
    """Return the rewordings of each part of speech ("noun", "adjective", "relation") and word, from a table."""
    return grouped(
        ((row["pos"], row["word"]), Rewording(cell_words(row["others"]), NounCondition.of(row["only"], row["never"])))
        for row in read_rows(name)
    )


def rewordings(word: str, pos: str, noun: str = "", table: str = "rewordings") -> tuple[str, ...]:
    """Return the rewordings of a word for a noun, best first.

    Args:
        word: lower case; a noun as its lemma, compounds and phrases with spaces.
        pos: "noun", "adjective" or "relation".
        noun: lemma of the noun that an adjective describes, or of the object of a relation.
        table: name of the table; ``entailed_rewordings`` has entailed, less specific words.
    """
    names = frozenset({noun, noun.rpartition(" ")[2]})
    rows = rewording_rows(table).get((pos, word), ())
    return tuple(dict.fromkeys(other for row in rows if row.condition.holds(names) for other in row.others))


@lru_cache(maxsize=1)
def other_senses() -> dict[str, frozenset[str]]:
    """Return the words of a caption with which an ambiguous noun may have its other sense."""
    return {row["noun"]: frozenset(cell_words(row["words"])) for row in read_rows("other_senses")}


def reword_each_other(one: str, other: str) -> bool:
    """Return whether two lemmas may name the same thing, so that neither is a negative of the other."""
    if one == other or other in loosely_same(one):
        return True
    rows = [row for word in (one, other) for pos in _LOOSE for row in rewording_rows().get((pos, word), ())]
    return any(one in row.others or other in row.others for row in rows)
