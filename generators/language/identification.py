"""The language that a text is written in: English by its words, others by py3langid.

Words are looked up in WordNet, in any inflection, and among the function words; a text of which `ENGLISH_SHARE` of the
words are known is English. Names and misspelt words are not known, so a function word counts `FUNCTION_WORD` times. Others are identified by py3langid (Lui and Baldwin 2012: naive Bayes over sequences of
bytes). A caption is short, often holds names, and the wanted language is likely; so it counts as another one only if
that is `MIN_RATIO` times as likely.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pairwright.datasets.errors import MissingResourceError
from pairwright.generators.language.word_set import word_set
from pairwright.generators.language.wordnet import WordNet, load_wordnet

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

ENGLISH_SHARE: Final = 0.65
FUNCTION_WORD: Final = 1.5  # 1 instead of 10 of 101,385 captions of COCO is left to py3langid, which is slow to load
MIN_RATIO: Final = 20.0
_NO_LANGUAGE: Final = "zxx"  # of ISO 639-3
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]")
_POS: Final = ("NOUN", "VERB", "ADJ", "ADV")
_FUNCTION_WORDS = word_set(
    "a an the this that these those it its they them their there here he him his she her hers we us our you your i me my "
    "and or but nor so yet if then than as while when where which who whom whose what why how because since although "
    "though of in on at to from by with without for about into onto over under between behind above below near beside "
    "across along around through during after before against among toward towards off out up down upon within per via "
    "is are was were be been being am do does did done have has had having will would can could may might must shall "
    "should not no yes any some each every both all either neither such own same other another others more most many "
    "much few several one two three four five six seven eight nine ten ok okay let lets cannot something someone anyone "
    "everyone everything nothing anything itself himself herself themselves also too very just only even still"
)
_SUFFIXES = (("ies", "y"), ("es", ""), ("es", "e"), ("s", ""), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"),
             ("er", ""), ("est", ""), ("ly", ""))  # fmt: skip


def known_languages() -> frozenset[str]:
    """Return the languages that can be identified, as codes of ISO 639 ("en")."""
    return frozenset(_identifier().nb_classes) - {_NO_LANGUAGE}


def other_language(text: str, wanted: str = "en") -> str:
    """Return the language of a text if it is clearly not the wanted one, else an empty text.

    Args:
        text: such as a caption; one of digits or marks alone is of no language.
        wanted: one of `known_languages`.
    """
    known, words = _count_words(text)
    if not words or (wanted == "en" and _is_english(known, words)):
        return ""
    ranked = _identifier().rank(text)
    best, probability = ranked[0]
    is_other = best != _NO_LANGUAGE and probability > MIN_RATIO * dict(ranked)[wanted]
    return str(best) if is_other else ""


def answers_in_other_language(answer: str, question: str, captions: Iterable[str] = ()) -> bool:
    """Return whether an answer is clearly in another language than its question and the captions of the image.

    Quoted words, such as the text of a sign, are ignored; so are, in a text that seems not to be English, words of the
    question and the captions, such as names and misspelt words.
    """
    texts = [_without_quoted(text) for text in (question, *captions)]
    known, words = map(sum, zip(*map(_counted, texts), strict=True))
    wanted = "en" if _is_english(known, words) else _identifier().rank(" ".join(texts))[0][0]
    text = _without_quoted(answer)
    if wanted == "en":
        if _is_english(*_count_words(text)):
            return False
        repeated = {word for each in texts for word in _WORD.findall(each.lower())}
        text = _WORD.sub(lambda word: "" if word[0].lower() in repeated else word[0], text)
    return bool(other_language(text, wanted))


# Answers about an image are all compared with the same captions, and often have the same questions.
_cached = lru_cache(maxsize=1_024)


@_cached
def _without_quoted(text: str) -> str:
    return _QUOTED.sub(" ", text)


def _is_english(known: float, words: int) -> bool:
    """Return whether enough of the words are known ones; takes 5 microseconds a caption, the identifier 70 and half a second once."""
    return known >= ENGLISH_SHARE * words > 0


def _count_words(text: str) -> tuple[float, int]:
    """Return the weighted number of English words of a text, and the number of all words."""
    words = _WORD.findall(text.lower())
    return sum(map(_weight, words)), len(words)


_counted = _cached(_count_words)


@lru_cache(maxsize=50_000)
def _weight(word: str) -> float:
    """Return `FUNCTION_WORD` for a function word in lower case, 1 for another one with a stem in WordNet, else 0."""
    if word in _FUNCTION_WORDS:
        return FUNCTION_WORD
    wordnet = _wordnet()
    if wordnet is None:  # texts are left to the identifier
        return 0.0
    return float(any(wordnet.has(stem, pos) for stem in _stems(word) for pos in _POS))


def _stems(word: str) -> Iterator[str]:
    """Yield a word, which most often is known itself, and what it may be an inflection of."""
    yield word
    stems = {word, *(word.removesuffix(end) + put for end, put in _SUFFIXES if word.endswith(end))}
    yield from stems
    yield from (stem[:-1] for stem in stems if len(stem) > 3 and stem[-1] == stem[-2])


@lru_cache(maxsize=1)
def _wordnet() -> WordNet | None:
    try:
        return load_wordnet()  # looks for its file each time
    except MissingResourceError:
        return None


@lru_cache(maxsize=1)
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # unpacks its model for half a second

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
