"""Detection of answers in another language than their question, by two rules without a language model.

- *Script*: more than `MAX_OTHER_SCRIPT_SHARE` of an answer's letters belong to a script that neither the question nor
  the captions use.
- *Words*: known words are those of WordNet in any inflection, function words, and the words of the captions. If at
  least `MIN_ENGLISH_SHARE` of the question's words are known and less than `MAX_FOREIGN_SHARE` of the answer's, or the
  other way round, one of them is English and the other is not. Names and quoted words (such as the text of a sign) are
  ignored; texts of fewer than `MIN_WORDS` words are not judged.

Two languages of one script that are both not English are not distinguished, and a short answer ("Un perro.") is kept.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from pairwright.generators.language.vocabulary import tokenize
from pairwright.generators.language.word_set import word_set

MAX_OTHER_SCRIPT_SHARE = 0.3
MIN_ENGLISH_SHARE, MAX_FOREIGN_SHARE = 0.7, 0.6
MIN_WORDS = 4

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
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]")
_SUFFIXES = (("ies", "y"), ("es", ""), ("es", "e"), ("s", ""), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"),
             ("er", ""), ("est", ""), ("ly", ""))  # fmt: skip
_POS = ("NOUN", "VERB", "ADJ", "ADV")


class LemmaDictionary(Protocol):
    """Lemma lookup, as provided by `WordNet`."""

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether the lemma exists with that part of speech."""
        ...


class LanguageDetector:
    """Detects answers in another language than their question.

    Args:
        lemmas: WordNet.
    """

    def __init__(self, lemmas: LemmaDictionary) -> None:
        self._lemmas = lemmas
        self._is_known = lru_cache(maxsize=50_000)(self._look_up)

    def differ(self, question: str, answer: str, captions: Iterable[str] = ()) -> bool:
        """Return whether question and answer are detectably in different languages."""
        question, answer = _QUOTED.sub(" ", question), _QUOTED.sub(" ", answer)
        context = " ".join(captions)
        if _share_outside(answer, _scripts(f"{question} {context}")) > MAX_OTHER_SCRIPT_SHARE:
            return True
        context_words = frozenset(tokenize(context))
        shares = self._known_share(question, context_words), self._known_share(answer, context_words)
        if None in shares:
            return False
        low, high = sorted(share for share in shares if share is not None)
        return high >= MIN_ENGLISH_SHARE and low < MAX_FOREIGN_SHARE

    def _known_share(self, text: str, context_words: frozenset[str]) -> float | None:
        """Return the share of known words; None if there are too few words."""
        words = [
            word.casefold()
            for sentence in re.split(r"[.!?:;\n]+", text)
            for number, word in enumerate(re.findall(r"[^\W\d_]+", sentence))
            if number == 0 or not word[0].isupper()
        ]
        words = [word for word in words if len(word) > 1]
        if len(words) < MIN_WORDS:
            return None
        return sum(word in context_words or self._is_known(word) for word in words) / len(words)

    def _look_up(self, word: str) -> bool:
        stems = {word, *(word.removesuffix(end) + put for end, put in _SUFFIXES if word.endswith(end))}
        stems |= {stem[:-1] for stem in stems if len(stem) > 3 and stem[-1] == stem[-2]}
        return word in _FUNCTION_WORDS or any(self._lemmas.has(stem, pos) for stem in stems for pos in _POS)


def _scripts(text: str) -> frozenset[str]:
    return frozenset(_script(letter) for letter in text if letter.isalpha())


def _share_outside(text: str, scripts: frozenset[str]) -> float:
    """Return the share of letters in scripts other than ``scripts``; 0 if ``scripts`` is empty."""
    counts = Counter(_script(letter) for letter in text if letter.isalpha())
    if not counts or not scripts:
        return 0.0
    return sum(count for script, count in counts.items() if script not in scripts) / counts.total()


@lru_cache(maxsize=5_000)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if name in {"HIRAGANA", "KATAKANA"} else name
