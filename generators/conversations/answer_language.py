"""Is an answer in the language of its question? Two cheap rules, no model of languages.

- *Script*: more than `MAX_OTHER_SCRIPT_SHARE` of an answer's letters are of a script that neither the question nor the captions use.
- *Words*: English texts are made of words that are known: WordNet's, in any inflection, some that only join others, and
  those of the captions. Where of the question's words at least `OWN` are known and of the answer's less than `OTHER`, or
  the other way round, one of them is English and the other is not. Names and what stands in quotation marks (a sign's
  words) are not counted; of fewer than `MIN_WORDS` words nothing is said.

So two languages of one script that are both not English are not told apart, and a short answer ("Un perro.") is
kept.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from pairwright.generators.language.vocabulary import tokenize
from pairwright.generators.words.wordlists import word_set

MAX_OTHER_SCRIPT_SHARE = 0.3
OWN, OTHER = 0.7, 0.6
MIN_WORDS = 4

_JOINING = word_set(
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
    """What is asked of WordNet."""

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether the lemma is one of that part of speech."""
        ...


class LanguageDetector:
    """Tells answers in another language than their question's.

    Args:
        known: WordNet.
    """

    def __init__(self, known: LemmaDictionary) -> None:
        self._known = known
        self._is_known = lru_cache(maxsize=50_000)(self._look_up)

    def differ(self, question: str, answer: str, captions: Iterable[str] = ()) -> bool:
        """Return whether question and answer are in two languages, as far as that can be told."""
        question, answer = _QUOTED.sub(" ", question), _QUOTED.sub(" ", answer)
        known = " ".join(captions)
        if _share_outside(answer, _scripts(f"{question} {known}")) > MAX_OTHER_SCRIPT_SHARE:
            return True
        said = frozenset(tokenize(known))
        asked, told = self._share(question, said), self._share(answer, said)
        if asked is None or told is None:
            return False
        return (asked >= OWN and told < OTHER) or (told >= OWN and asked < OTHER)

    def _share(self, text: str, said: frozenset[str]) -> float | None:
        """Return the share of known words; None where there are too few."""
        found = [
            word.casefold()
            for sentence in re.split(r"[.!?:;\n]+", text)
            for number, word in enumerate(re.findall(r"[^\W\d_]+", sentence))
            if number == 0 or not word[0].isupper()
        ]
        found = [word for word in found if len(word) > 1]
        if len(found) < MIN_WORDS:
            return None
        return sum(word in said or self._is_known(word) for word in found) / len(found)

    def _look_up(self, word: str) -> bool:
        stems = {word, *(word.removesuffix(end) + put for end, put in _SUFFIXES if word.endswith(end))}
        stems |= {stem[:-1] for stem in stems if len(stem) > 3 and stem[-1] == stem[-2]}
        return word in _JOINING or any(self._known.has(stem, pos) for stem in stems for pos in _POS)


def _scripts(text: str) -> frozenset[str]:
    return frozenset(_script(letter) for letter in text if letter.isalpha())


def _share_outside(text: str, scripts: frozenset[str]) -> float:
    """Return the share of letters in other scripts than these; 0 where these are none."""
    counts = Counter(_script(letter) for letter in text if letter.isalpha())
    if not counts or not scripts:
        return 0.0
    return sum(count for script, count in counts.items() if script not in scripts) / counts.total()


@lru_cache(maxsize=5_000)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if name in {"HIRAGANA", "KATAKANA"} else name
