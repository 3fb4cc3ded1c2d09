"""Synonym lexicon: rewordings, which keep a caption true, and words for the same thing.

A rewording (``rewordings.tsv``) keeps the meaning for the nouns of its condition. It is directed: an infant is a baby,
but a baby may be an elephant's. WordNet adds synonyms of words in no table if each is the first synonym of the other
and both name concrete things. Whether a rewording is natural is left to the cloze model.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.generators.lexicon.attributes import NounCondition
from pairwright.generators.lexicon.nouns import cell_words, flagged, loosely_same, nouns_of_class
from pairwright.generators.lexicon.protocols import Thesaurus
from pairwright.generators.lexicon.tables import read_rows

_TOUCHED: Final = ("artifact", "animal", "food", "plant")  # for other nouns senses in WordNet are unreliable
_WORDNET_POS: Final = {"noun": "NOUN", "adjective": "ADJ"}
_STEM: Final = 4  # common prefix of words of one stem ("walk", "walking"), which are no useful synonyms


@dataclass(frozen=True, slots=True)
class Rewording:
    """Synonyms of a word, and the nouns (lemmas) for which they hold."""

    others: tuple[str, ...]
    condition: NounCondition


@lru_cache(maxsize=4)
def rewording_rows(name: str = "rewordings") -> dict[tuple[str, str], tuple[Rewording, ...]]:
    """Return the rewordings of each part of speech ("noun", "adjective", "relation") and word, from a table."""
    table: dict[tuple[str, str], tuple[Rewording, ...]] = {}
    for row in read_rows(name):
        condition = NounCondition(frozenset(cell_words(row["only"])), frozenset(cell_words(row["never"])))
        key = row["pos"], row["word"]
        table[key] = (*table.get(key, ()), Rewording(cell_words(row["others"]), condition))
    return table


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


def dictionary_rewordings(word: str, pos: str, thesaurus: Thesaurus) -> tuple[str, ...]:
    """Return safe synonyms in WordNet of a noun or adjective without rows in the table."""
    if (pos, word) in rewording_rows() or not _may_be_exchanged(word):
        return ()
    found = thesaurus.synonyms(word, _WORDNET_POS[pos])
    return tuple(other for other in found if _is_safe(word, other, _WORDNET_POS[pos], thesaurus))


@lru_cache(maxsize=1)
def _never_exchanged() -> frozenset[str]:
    return nouns_of_class("person").union(row["word"] for row in read_rows("never_synonyms"))


def _may_be_exchanged(word: str) -> bool:
    return word.isalpha() and word not in _never_exchanged()


def _is_safe(word: str, other: str, pos: str, thesaurus: Thesaurus) -> bool:
    return (
        _may_be_exchanged(other)
        and other[:_STEM] != word[:_STEM]
        and (pos != "NOUN" or any(thesaurus.is_a(word, kind, pos) for kind in _TOUCHED))
        and all((word in flagged(flag)) == (other in flagged(flag)) for flag in ("mass", "plural_only"))
        and list(thesaurus.synonyms(other, pos))[:1] == [word]
    )


@lru_cache(maxsize=1)
def other_senses() -> dict[str, frozenset[str]]:
    """Return the words of a caption with which an ambiguous noun may have its other sense."""
    return {row["noun"]: frozenset(cell_words(row["words"])) for row in read_rows("other_senses")}


def reword_each_other(one: str, other: str) -> bool:
    """Return whether two lemmas may name the same thing, so that neither is a negative of the other."""
    if one == other or other in loosely_same(one):
        return True
    rows = [row for word in (one, other) for pos in _WORDNET_POS for row in rewording_rows().get((pos, word), ())]
    return any(one in row.others or other in row.others for row in rows)
