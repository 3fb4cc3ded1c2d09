"""Inflection of lemmas, choice of "a" or "an", and letter case of replaced words.

Forms come from lemminflect, by Penn Treebank tag, with exceptions in the lexicon (``word_forms.tsv``). "a" or "an"
depends on the sound: spelling rules, with exceptions for silent h, "yoo" and "w" sounds, and initialisms ("an SUV", "a
UFO").
"""

import re
from functools import lru_cache
from typing import Final

from pairwright.generators.language.spacy_import import import_lemminflect
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.tables import read_rows

_FORMS: Final = {(row["lemma"], row["tag"]): row["form"] for row in read_rows("word_forms") if row["only"] != "lemma"}
_INFLECTED: Final = frozenset(("NNS", "NNPS", "VBD", "VBG", "VBN", "VBP", "VBZ", "JJR", "JJS", "RBR", "RBS"))
_PERIPHRASTIC: Final = {"JJR": "more", "JJS": "most", "RBR": "more", "RBS": "most"}

# Vowel letters that sound as "yoo" or "w" ("a unicorn", "a one-way street"), silent h, and read-out letters.
_CONSONANT_SOUND: Final = re.compile(
    r"uni(?!n|m|d|l)|unil|use|usu|uti|ute|uto|ura|uri|ure(?!t)|uro|uku|ufo|uga|eu|ewe|ouija|one(?!i)|once|u(?=[-\d.]|$)|ubi|usb",
    re.IGNORECASE,
)
_VOWEL_SOUND: Final = re.compile(
    r"hour|honest|honou?r|heir|herb(?!iv|al)|8|11(?!\d)|18(?!\d)|x-?ray|f-?\d|[fhlmnrsx](?=[-\d]|$)", re.IGNORECASE
)
_LETTERS_WITH_VOWEL: Final = frozenset("AEFHILMNORSX")
_INITIALISM: Final = re.compile(r"[A-Z]{2,5}s?(?![A-Za-z])")
_WITHOUT_VOWEL: Final = re.compile(r"[B-DF-HJ-NP-TV-Z]+")
_READ_BY_LETTER: Final = words_with("spelled_out")


@lru_cache(maxsize=65536)
def inflect(lemma: str, tag: str) -> str:
    """Return the form of a lemma for a Penn Treebank tag: ``inflect("man", "NNS") == "men"``.

    The last word of a multi-word noun is inflected, and the first of a multi-word verb. Base-form tags and tags without
    inflected forms (IN, DT, ...) return the lemma.

    Source: lemminflect, with the exceptions of the lexicon.
    """
    if tag not in _INFLECTED or not lemma:
        return lemma
    head, gap, tail = lemma.partition(" ") if tag.startswith("V") else lemma.rpartition(" ")
    if tag.startswith("V"):
        return _form(head, tag) + gap + tail
    return head + gap + _form(tail, tag) if tag.startswith("N") else _compared(lemma, tag)


def _form(word: str, tag: str) -> str:
    known = _FORMS.get((word.lower(), "NNS" if tag == "NNPS" else tag))
    if known is not None:
        return known
    forms = import_lemminflect().getInflection(word, tag)
    return str(forms[0]) if forms and forms[0] else word


def _compared(word: str, tag: str) -> str:
    # lemminflect's rules for unknown words give "beautifuler".
    forms = import_lemminflect().getInflection(word, tag, inflect_oov=False)
    return str(forms[0]) if forms and forms[0] else f"{_PERIPHRASTIC[tag]} {word}"


def article(word: str) -> str:
    """Return "a" or "an" for ``word``, by the sound of its first word."""
    first = word.strip().split(" ", 1)[0].lstrip("\"'“‘([")
    if not first:
        return "a"
    if _is_initialism(first):
        return "an" if first[0] in _LETTERS_WITH_VOWEL else "a"
    if _VOWEL_SOUND.match(first):
        return "an"
    if _CONSONANT_SOUND.match(first):
        return "a"
    return "an" if first[0].lower() in "aeiouáéíóúâêîôûäëïöü" else "a"


def _is_initialism(word: str) -> bool:
    # "STOP" and "BUS" are words in capitals, "HDTV" has no vowel, "SUV" is listed.
    match = _INITIALISM.match(word)
    letters = match[0].rstrip("s") if match else ""
    return bool(letters) and (letters in _READ_BY_LETTER or bool(_WITHOUT_VOWEL.fullmatch(letters)))
