"""Of what an edit is: an object, an attribute or a relation, as far as tags tell.

A stretch of words can be read in more ways than one ("a *baseball* bat" names a kind of bat and describes it), so the
answer is a set, and an edit is taken for what was asked when that is in the set. Numbers are attributes. Participles
before a noun are attributes and elsewhere relations ("a parked car", "a car parked on a street" ).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Final

from pairwright.generators.language.tokens import Token
from pairwright.generators.words.attributes import COLOUR, PLACES
from pairwright.generators.words.relations import RELATIONS
from pairwright.generators.words.synonyms import RELATIONS as REWORDED
from pairwright.generators.words.wordlists import word_set

OBJECT, ATTRIBUTE, RELATION = "object", "attribute", "relation"

WORDINGS: Final = frozenset(
    {wording for each in RELATIONS for wording in each.wordings}
    | {wording for old, others in REWORDED.items() for wording in (old, *others)}
)

_COLOURS: Final = frozenset(word for words in COLOUR.values() for word in words)
_NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
_NAMING: Final = _NOUNS | {"PRP"}
_VERBS: Final = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"})
_FINITE: Final = frozenset({"VBZ", "VBP", "VBD"})
_BEFORE_NOUNS: Final = frozenset({"IN", "DT", "PRP$", "CD", "POS"})
_DESCRIBING: Final = frozenset({"JJ", "JJR", "JJS", "CD", "VBN", "VBG", "RB", "RBR", "RBS"})
_ADJECTIVES: Final = frozenset({"JJ", "JJR", "JJS", "HYPH"})
_PLACING: Final = frozenset({"IN", "RP", "TO"})
_SMALL: Final = frozenset({"DT", "PRP$", "PDT", "HYPH", "POS", "CC", "WDT", ","})
# Nouns that are part of a relation ("on top of", "in front of").
_OF_PLACE: Final = word_set(
    "top front back side left right middle center edge end bottom inside outside line midst background foreground"
)
_COUNTS: Final = word_set(
    "no several many few multiple single lone solo double couple pair dozen group some numerous various number lot lots bunch"
)
_ARTICLES: Final = frozenset({"a", "an"})
_KINDS_OF: Final = word_set(
    "dining living parking swimming washing frying cutting sewing serving mixing baking building waiting wedding fishing "
    "racing shopping clothing lighting"
)
_BE: Final = word_set("is are was were be being looks look appears seems")
_BOUNDS: Final = frozenset({"CC", ",", "IN", "DT"})
_JOINED: Final = frozenset({"of"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What was to be written: ``hard_negative`` or ``hard_positive``, and form and target of the edit."""

    kind: str
    form: str
    target: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """Words of a text: tokens ``start`` to ``end``, of which ``at`` count (those that are gone or new)."""

    tokens: Sequence[Token]
    start: int
    end: int
    at: tuple[int, ...]

    def counting(self) -> list[Token]:
        """Return the words that count, without articles and such."""
        return [self.tokens[i] for i in self.at if self.tokens[i].tag not in _SMALL and self.tokens[i].pos != "PUNCT"]

    def following(self) -> Token | None:
        """Return the token behind the stretch."""
        return self.tokens[self.end] if self.end < len(self.tokens) else None

    def before(self) -> Token | None:
        """Return the token before the stretch."""
        return self.tokens[self.start - 1] if self.start else None


def kinds_of_replacement(old: Stretch, new: Stretch) -> frozenset[str]:
    """Return what the replacement of ``old`` by ``new`` may be of; empty where it is nothing of the kind."""
    return kinds_of_words(old) & kinds_of_words(new)


def kinds_of_words(stretch: Stretch) -> frozenset[str]:
    """Return what some words may stand for, seen where they are."""
    words = _as_placed(stretch)
    found: set[str] = set()
    if not words:
        return frozenset(found)
    if all(word.text.lower() in _OF_PLACE for word in words):
        found.add(RELATION)
    if is_noun_phrase(words):
        found.add(OBJECT)
    if all(map(_describes, words)) and _at_a_noun(stretch):
        found.add(ATTRIBUTE)
    if _counts(words) or all(word.text.lower() in _COLOURS for word in words):  # "a girl in blue"
        found.add(ATTRIBUTE)
    if _relates(words) or _is_wording(stretch):
        found.add(RELATION)
    return frozenset(found)


def _as_placed(stretch: Stretch) -> list[Token]:
    """Return the words that count, as nouns where a tagger takes one for a verb though a noun has to stand there.

    "on skis", "his skates": behind a preposition, an article, a possessive or a number comes no finite verb.
    """
    made = stretch.counting()
    for place, token in enumerate(made):
        at = stretch.tokens.index(token)
        before = stretch.tokens[at - 1].tag if at else ""
        if token.tag in _FINITE and before in _BEFORE_NOUNS:
            made[place] = replace(token, tag="NNS" if token.tag == "VBZ" else "NN", pos="NOUN")
    return made


def is_noun_phrase(words: Sequence[Token]) -> bool:
    """Whether the words name one thing: a noun with what describes it, and perhaps "of" and another."""
    parts: list[list[Token]] = [[]]
    for word in words:
        if word.text.lower() in _JOINED:
            parts.append([])
        else:
            parts[-1].append(word)
    return len(parts) <= 2 and all(
        part and part[-1].tag in _NAMING and all(w.tag in _NAMING or _describes(w) for w in part) for part in parts
    )


def _describes(word: Token) -> bool:
    return word.tag in _DESCRIBING or word.tag in {"NN", "NNP"} or word.text.lower() in _COUNTS


def _at_a_noun(stretch: Stretch) -> bool:
    """Whether the words stand before a noun, or behind "is" and the like."""
    last, following, before = stretch.tokens[stretch.end - 1], stretch.following(), stretch.before()
    joined = following is not None and following.text.lower() in {"and", ","}
    if joined and (last.tag not in _NOUNS or last.lemma in PLACES):  # "a man and ..." names somebody
        return True
    if _leads_to_noun(stretch):
        return True
    if last.tag in _NOUNS and (stretch.end - 1) not in stretch.at:
        return True  # the noun is the same, in another number
    if any(word.tag in _NOUNS for word in stretch.counting()):
        return False
    if before is None:
        return False
    acts = any(word.tag in _VERBS for word in stretch.counting())
    return before.text.lower() in _BE or before.tag in {"RB", "CC", ","} or (before.tag in _NOUNS and not acts)


def _leads_to_noun(stretch: Stretch) -> bool:
    """Whether the words behind go on to a noun by describing words only: "white | steamed rice"."""
    names = stretch.tokens[stretch.end - 1].tag in _NOUNS
    between = _ADJECTIVES if names else _DESCRIBING | {"HYPH"}
    behind = stretch.tokens[stretch.end :]
    kind = bool(behind) and behind[0].text.lower() in _KINDS_OF  # "a glass | dining table"
    if names and not kind and len(behind) > 1 and behind[0].text.endswith("ing") and behind[1].tag in _NOUNS:
        return False  # "a man | riding horses" is no kind of horses, whatever a tagger takes "riding" for
    for token in behind:
        if token.tag in _NOUNS:
            return True
        if token.tag not in between and not (kind and token is behind[0]):
            return False
    return False


def _counts(words: Sequence[Token]) -> bool:
    return all(word.tag == "CD" or word.text.lower() in _COUNTS or word.text.lower() == "of" for word in words)


def _relates(words: Sequence[Token]) -> bool:
    related = [w for w in words if w.tag in _PLACING or w.tag in _VERBS or w.text.lower() in {"next", "close"}]
    rest = [w for w in words if w not in related]
    return bool(related) and all(w.text.lower() in _OF_PLACE or w.tag in {"RB", "JJ", "JJR"} for w in rest)


def _is_wording(stretch: Stretch) -> bool:
    """Whether the tables know the words, or they and the one behind them, as a relation: "adjacent | to"."""
    words = [token.text.lower() for token in stretch.tokens[stretch.start : stretch.end + 1]]
    return " ".join(words) in WORDINGS or " ".join(words[: stretch.end - stretch.start]) in WORDINGS


def denies(old: Stretch, new: Stretch) -> bool:
    """Whether a relation is denied, with the number of what is missing: "without any" for "with two", "has | no"."""
    gone, said = [old.tokens[at] for at in old.at], [new.tokens[at].text.lower() for at in new.at]
    before = old.before()
    if said == ["no"]:
        return before is not None and before.lemma in {"have", "with"} and _counts_or_points(gone)
    counted = list(dropwhile(lambda word: word.tag in _PLACING | _VERBS, gone))
    return said == ["without", "any"] and len(counted) < len(gone) and _counts_or_points(counted)


def _counts_or_points(words: Sequence[Token]) -> bool:
    return all(word.tag == "DT" or _counts([word]) for word in words)


def kinds_of_addition(new: Stretch) -> frozenset[str]:
    """Return what an insertion may be of."""
    words = new.counting()
    named = [at for at in new.at if new.tokens[at].tag in _NOUNS]
    found: set[str] = set()
    if named:
        found.add(OBJECT)
    if words and all(map(_describes, words)) and (_at_a_noun(new) or not named):
        found.add(ATTRIBUTE)
        following = new.following()
        alone = all(token.tag not in _BOUNDS for token in new.tokens[new.start + 1 : new.end])
        alone = alone and new.tokens[new.start].tag not in _BOUNDS - {"DT"}
        if named and alone and following is not None and following.tag in _NOUNS:
            found.discard(OBJECT)  # "a baseball | cap"
    elif words and not named and all(_describes(w) or w.tag in _PLACING for w in words):
        found.add(ATTRIBUTE)
    return frozenset(found)


def kinds_of_swap(source: Sequence[Token], first: tuple[int, int], second: tuple[int, int]) -> frozenset[str]:
    """Return what two stretches that changed places may be: things, or what describes them."""
    stretches = [Stretch(source, *span, tuple(range(*span))) for span in (first, second) if span[0] < span[1]]
    if all(map(_says_how_many, stretches)):
        return frozenset({ATTRIBUTE})
    # An article stands where the other thing's number and qualities go: "a dog near three black cats".
    kinds = [frozenset({ATTRIBUTE}) if _is_article(each) else kinds_of_words(each) for each in stretches]
    found = set(frozenset.intersection(*kinds))
    if OBJECT in found and any(_described(source, stretch) for stretch in stretches):
        found.add(ATTRIBUTE)  # "a red car, a blue bus": exchanging the nouns exchanges what describes them
    return frozenset(found)


def _is_article(stretch: Stretch) -> bool:
    return all(stretch.tokens[at].text.lower() in _ARTICLES for at in stretch.at)


def _says_how_many(stretch: Stretch) -> bool:
    words = [stretch.tokens[at] for at in stretch.at]
    return all(word.text.lower() in _ARTICLES or _counts([word]) for word in words)


def counts_instead(gone: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether a number stands for an article, or the other way round: "two dogs" for "a dog"."""
    words = [word for word in new if word.pos != "PUNCT"]
    if not gone or not words:
        return False
    articles = [all(word.text.lower() in _ARTICLES for word in each) for each in (gone, words)]
    return (articles[0] and _counts(words)) or (articles[1] and _counts(gone))


def _described(source: Sequence[Token], stretch: Stretch) -> bool:
    before = stretch.before()
    return before is not None and _describes(before) and before.tag not in {"RB", "VBG"} and bool(source)


def noun_after(tokens: Sequence[Token], start: int) -> str:
    """Return the lemma of the head of the noun phrase at or behind ``start``."""
    head = ""
    for token in tokens[start:]:
        if token.tag in _NOUNS:
            head = token.lemma
        elif head:
            break
    return head
