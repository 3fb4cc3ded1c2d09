"""Whether new words read on from what stands around them, as far as marks and tags tell.

A model writes "frozen a cat", "... a ball. A dog." or "a black hat, cat" now and then: one stretch of new words of the
asked kind, and no sentence.
"""

from typing import Final

from pairwright.generators.edit_checks.kinds import ATTRIBUTE, OBJECT, Asked, Stretch
from pairwright.generators.words.nouns import MASS

_ENDING: Final = frozenset(".;:!?()[]—–")  # what ends a sentence, or puts words aside
_SPEAKING: Final = frozenset({"i", "you"})  # ", I changed it"
_BEFORE_ARTICLES: Final = frozenset({"all", "both", "half", "such", "quite", "many", "what"})
_ARTICLES: Final = frozenset({"a", "an", "the"})


def joins_badly(asked: Asked, old: Stretch, new: Stretch) -> bool:
    """Whether new words break their sentence in two, stand before an article, or name a thing that nothing joins."""
    fresh, gone = ({stretch.tokens[at].text.lower() for at in stretch.at} for stretch in (new, old))
    if not (_ENDING | _SPEAKING).isdisjoint(fresh - gone):
        return True
    if asked.form != "add":
        return False
    if asked.target == ATTRIBUTE:
        last, following = new.tokens[new.end - 1], new.following()
        before_article = following is not None and following.text.lower() in _ARTICLES and following.tag == "DT"
        return before_article and last.tag[:2] in {"JJ", "VB", "NN"} and last.text.lower() not in _BEFORE_ARTICLES
    return asked.target == OBJECT and _is_unjoined(new)


def _is_unjoined(new: Stretch) -> bool:
    """Whether an added thing lacks what would join it: "a black hat, | cat", "a hat | a cat", but not "a hat | and coat"."""
    fresh, following, last = [new.tokens[at] for at in new.at], new.following(), new.before()
    if fresh[0].text.lower() in _ARTICLES and last is not None and last.tag.startswith("NN"):
        return True
    goes_on = following is not None and (following.text.lower() in {",", "and", "or"} or following.tag.startswith("NN"))
    if goes_on or fresh[-1].text == ",":
        return False  # a list, or a name
    words = [token for token in fresh if token.text != ","]
    if len(words) != 1 or words[0].tag != "NN" or words[0].lemma in MASS:
        return False
    before = [token for token in new.tokens[: new.start] if token.text != ","]
    while before and before[-1].tag[:2] in {"NN", "JJ"}:
        before.pop()
    return bool(before) and before[-1].text.lower() in _ARTICLES
