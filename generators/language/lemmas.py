"""Lemmas and universal tags from words and their Penn Treebank tags.

Both are functions of words and tags alone, so they are the same for every tagging pipeline. Lemmas come from
lemminflect's dictionary (and its rules for unknown words), with exceptions in the lexicon (``word_forms.tsv``).
Universal tags come from a table; auxiliaries are distinguished from full verbs by the tags that follow.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from pairwright.datasets.captions.invisible_characters import remove_invisible
from pairwright.generators.language.spacy_import import import_lemminflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.tables import read_rows

_UNIVERSAL: Final = {
    **dict.fromkeys(("NN", "NNS"), "NOUN"),
    **dict.fromkeys(("NNP", "NNPS"), "PROPN"),
    **dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"), "VERB"),
    **dict.fromkeys(("JJ", "JJR", "JJS", "AFX"), "ADJ"),
    **dict.fromkeys(("RB", "RBR", "RBS", "WRB"), "ADV"),
    **dict.fromkeys(("DT", "PDT", "WDT", "PRP$", "WP$"), "DET"),
    **dict.fromkeys(("PRP", "WP", "EX"), "PRON"),
    **dict.fromkeys(("IN", "RP"), "ADP"),
    **dict.fromkeys((".", ",", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP", '""'), "PUNCT"),
    **dict.fromkeys(("TO", "POS"), "PART"),
    **dict.fromkeys(("$", "#", "SYM"), "SYM"),
    "CC": "CCONJ",
    "CD": "NUM",
    "MD": "AUX",
    "UH": "INTJ",
}
_SUBORDINATORS: Final = frozenset(
    ("while", "because", "if", "although", "though", "unless", "whether", "that", "since", "whereas")
)
_LEMMAS: Final = {(row["form"], row["tag"]): row["lemma"] for row in read_rows("word_forms") if row["only"] != "form"}
_LEMMINFLECT_POS: Final = {"NOUN": "NOUN", "PROPN": "NOUN", "VERB": "VERB", "ADJ": "ADJ", "ADV": "ADV"}
_BASE_FORMS: Final = frozenset(("NN", "NNP", "JJ", "RB", "VB", "WRB"))


@lru_cache(maxsize=65536)
def lemmatize(word: str, tag: str) -> str:
    """Return the lemma of a tagged word, in lower case and without invisible characters.

    Source: lemminflect's dictionary, with the exceptions of the lexicon.
    """
    lower = (remove_invisible(word) or word).lower()
    known = _LEMMAS.get((lower, "NNS" if tag == "NNPS" else tag))
    if known is not None:
        return known
    pos = _LEMMINFLECT_POS.get(_UNIVERSAL.get(tag, "X"), "")
    if not pos or tag in _BASE_FORMS or not lower.isascii() or not any(letter.isalpha() for letter in lower):
        return lower
    forms = dictionary_lemmas(lower).get(pos) or import_lemminflect().getLemma(lower, pos)
    return str(forms[0]).lower() if forms and forms[0] else lower


@lru_cache(maxsize=65536)
def dictionary_lemmas(word: str) -> Mapping[str, Sequence[str]]:
    """Return the lemmas of a lower-case word by universal tag, from lemminflect's dictionary; none of an unknown word."""
    found: dict[str, Sequence[str]] = import_lemminflect().getAllLemmas(word)
    return found


def is_common_noun(word: str) -> bool:
    """Return whether a lower-case word is a noun in lemminflect's dictionary, which has no proper nouns."""
    return "NOUN" in dictionary_lemmas(word)


def is_verb(word: str) -> bool:
    """Return whether a lower-case word is a form of a verb in lemminflect's dictionary."""
    return "VERB" in dictionary_lemmas(word)


@lru_cache(maxsize=65536)
def singular_of(word: str) -> str:
    """Return the singular of a lower-case word that may be a plural; any other word as it is."""
    return lemmatize(word, "NNS") if word.endswith("s") or is_common_noun(word) else word


def universal_tags(lemmas: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return the universal tag of each token, from lemmas and Penn Treebank tags of equal length."""
    result = [_UNIVERSAL.get(tag, "X") for tag in tags]
    for at, (word, tag) in enumerate(zip(lemmas, tags, strict=True)):
        if result[at] == "VERB" and _is_auxiliary(word, at, tags):
            result[at] = "AUX"
        elif tag == "IN" and word in _SUBORDINATORS:
            result[at] = "SCONJ"
        elif tag == "TO" and not (at + 1 < len(tags) and tags[at + 1] in {"VB", "RB"}):
            result[at] = "ADP"
        elif tag == "RB" and word in {"not", "n't"}:
            result[at] = "PART"
    return result


def build_tokens(words: Sequence[str], starts: Sequence[int], tags: Sequence[str]) -> list[Token]:
    """Return the tokens of a text.

    Args:
        words: the words as written.
        starts: offset of each word, in code points.
        tags: Penn Treebank tag of each word.
    """
    lemmas = list(map(lemmatize, words, tags))
    return [
        Token(text, start, start + len(text), tag, pos, base)
        for text, start, tag, pos, base in zip(words, starts, tags, universal_tags(lemmas, tags), lemmas, strict=True)
    ]


def _is_auxiliary(word: str, at: int, tags: Sequence[str]) -> bool:
    if word == "be":
        return True
    if word not in {"have", "do"}:
        return False
    following = next((tag for tag in tags[at + 1 :] if not tag.startswith(("RB", "PRP"))), "")
    return following == ("VBN" if word == "have" else "VB")
