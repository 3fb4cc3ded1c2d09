"""Corrects the grammatical number of what a model wrote: nouns behind number words, and verbs of subjects.

A *slip* is a word in a form that what stands before it does not allow ("two woman", "a dog and a cat is"), or a group
without its article ("with couple of dogs"). Only slips that the source does not have are corrected, and only where tags
leave no doubt: a subject that is joined to others behind a preposition, or is one of a group, says nothing of its verb.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.written.targets import NOUNS
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.protocols import Thesaurus

_ONE, _MANY, _AMOUNTS = words_with("one"), words_with("many"), words_with("amount")
_MEASURES, _COLLECTIVE, _INVARIANT = words_with("measure"), words_with("collective"), words_with("invariant")
_VAGUE = words_with("vague") & _MANY
_NUMBERS: Final = _ONE | _MANY
_COUNTED: Final = _MANY - _AMOUNTS
_GROUPS: Final = _COLLECTIVE & words_with("of_several")  # "couple", "bunch": one of them has an article
_ANY_NUMBER: Final = _COLLECTIVE | _INVARIANT
_OF_GROUP: Final = _COLLECTIVE - {"one"}
_MASS, _PLURAL_ONLY = flagged("mass"), flagged("plural_only")
_OPENS_CLAUSE = words_with("opens_clause")
_DESCRIBING: Final = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "RB"})
_BEFORE_NOUN: Final = _DESCRIBING | {"CD"}
_CLAUSE: Final = frozenset({"VBD", "VBZ", "VBP", "MD", "WDT", "WP", "WRB", ":", "VB", "EX", "SYM", "``", "''", "-LRB-"})
_SUBJECT: Final = NOUNS | {"DT", "PDT", "PRP$", "POS", "HYPH", "CD", "CC", ","} | _DESCRIBING
_TAIL: Final = frozenset({"IN", "TO", "RP", "VBG", "VBN"})
_BE: Final = {
    "is": "are", "was": "were", "has": "have", "does": "do", "are": "is", "were": "was", "have": "has", "do": "does",
}  # fmt: skip
_PLURAL_VERBS: Final = frozenset({"are", "were", "have", "do"})


@dataclass(frozen=True, slots=True)
class Slip:
    """A word in a wrong form: its place, what asks for another form, and the right one; empty if there is none."""

    at: int
    anchor: str
    word: str


def corrections(source: Sequence[Token], text: Sequence[Token], thesaurus: Thesaurus) -> dict[int, Token] | None:
    """Return the tokens that correct slips of the text, by position; None if a slip has no right form."""
    found = list(_slips(text, thesaurus))
    own = {slip.anchor for slip in _slips(source, thesaurus)} if found else set()
    made: dict[int, Token] = {}
    for slip in found:
        if slip.anchor in own:
            continue
        if not slip.word:
            return None
        token = text[slip.at]
        tag = {"NNS": "NN", "NN": "NNS", "VBZ": "VBP", "VBP": "VBZ"}.get(token.tag, token.tag)
        made[slip.at] = replace(token, text=slip.word, tag=tag)
    return made


def _slips(tokens: Sequence[Token], thesaurus: Thesaurus) -> Iterator[Slip]:
    numbers: dict[int, bool] = {}  # of heads that a number word sets right
    words = [token.text.lower() for token in tokens]
    last_plural = max((at for at, token in enumerate(tokens) if token.tag == "NNS"), default=-1)
    for at, (word, following) in enumerate(pairwise(words)):
        if word not in _NUMBERS or following == "of" or tokens[at].tag not in {"DT", "CD", "JJ", "PDT"}:
            continue
        if at < last_plural or word not in _ONE or following in _COUNTED:
            slip = _of_noun(tokens, at, thesaurus)
            if slip is not None:
                numbers[slip.at] = word in _MANY
                yield slip
    for at, word in enumerate(words[:-1]):
        if word in _GROUPS and words[at + 1] == "of" and _lacks_article(tokens, at):
            yield Slip(at, "of", "")
    for at, (token, word) in enumerate(zip(tokens, words, strict=True)):
        plural = _is_subject_plural(tokens, at, numbers) if word in _BE or token.tag in {"VBZ", "VBP"} else None
        if plural is not None and plural != (word in _PLURAL_VERBS if word in _BE else token.tag == "VBP"):
            right = _BE.get(word) or (token.lemma if plural else inflect(token.lemma, "VBZ"))
            if right != word:
                yield Slip(at, word, right)


def _lacks_article(tokens: Sequence[Token], at: int) -> bool:
    """Whether a noun and what describes it stand right behind a preposition or verb; captions may begin without article."""
    while at and tokens[at - 1].tag in {"JJ", "JJR", "JJS", "VBN"}:
        at -= 1
    return at > 0 and tokens[at - 1].tag in {"IN", "TO", "VB", "VBD", "VBG", "VBP", "VBZ"}


def _of_noun(tokens: Sequence[Token], at: int, thesaurus: Thesaurus) -> Slip | None:
    """Return the slip of a noun behind the number word at ``at``."""
    word, following, head = tokens[at].text.lower(), tokens[at + 1].text.lower(), _head(tokens, at + 1, thesaurus)
    noun = tokens[head]
    form, lemma = noun.text.lower(), noun.lemma
    if word in ARTICLES and following in _COUNTED:
        counted = following in _VAGUE or (head and noun.tag == "NNS" and lemma not in _MEASURES)  # "a two story house"
        return Slip(at, f"{word} {following}", "") if counted else None
    if not head or not form.isalpha() or lemma in _INVARIANT or lemma in _MASS or not thesaurus.has(lemma, "NOUN"):
        return None
    if word in _ONE and (noun.tag != "NNS" or form == lemma):
        return None
    plural = inflect(lemma, "NNS")
    if word in _ONE:
        paired = not _PLURAL_ONLY.isdisjoint((form, lemma))
        certain = paired or (plural == form and not thesaurus.has(form, "NOUN"))
        return Slip(head, f"{word} {form}", "" if paired else lemma) if certain else None
    determined = at > 0 and tokens[at - 1].tag in {"DT", "PRP$", "POS"}
    counts_part = head > at + 1 and following in _MEASURES  # "two story house"
    right = noun.tag != "NN" or determined or counts_part or plural == form
    return None if right else Slip(head, word, plural)


def _head(tokens: Sequence[Token], start: int, thesaurus: Thesaurus) -> int:
    """Return where the noun of the phrase from ``start`` stands; 0 where it is in doubt.

    Of several nouns in a row the last may be a verb to anybody but a tagger ("a balloon floats"), unless the dictionary
    has them together.
    """
    first = head = 0
    for at in range(start, len(tokens)):
        token, word = tokens[at], tokens[at].text.lower()
        if token.tag in {"HYPH", "POS"} or word in _AMOUNTS or (word.endswith("ing") and not head and at > start):
            return 0
        if token.tag in NOUNS:
            first, head = first or at, at
        elif head or token.tag not in _BEFORE_NOUN or (token.tag == "CD" and at > start):
            break
    behind = [token.tag for token in tokens[head + 1 : head + 3]]
    if len(behind) > 1 and behind[0] in _DESCRIBING and behind[1] in NOUNS:
        return 0  # "two graffiti covered walls"
    name = " ".join([*(token.text.lower() for token in tokens[first:head]), tokens[head].lemma])
    return head if first == head or thesaurus.has(name, "NOUN") else 0


def _is_subject_plural(tokens: Sequence[Token], verb: int, numbers: dict[int, bool]) -> bool | None:
    """Return whether the subject of a verb is plural; None where that is in doubt."""
    start, end = verb, verb
    while start and tokens[start - 1].tag not in _CLAUSE and tokens[start - 1].text.lower() not in _OPENS_CLAUSE:
        start -= 1
    while end > start and tokens[end - 1].tag in {"RB", "RBR"}:
        end -= 1
    if start == end or (start and tokens[start - 1].tag[:2] in {"VB", "MD"}):  # a relative clause, or an object
        return _is_shown_plural(tokens, verb) if verb and tokens[verb - 1].tag == "EX" else None
    tail = next((at for at in range(start + 1, end) if tokens[at].tag in _TAIL and tokens[at - 1].tag in NOUNS), end)
    subject, rest = tokens[start:tail], tokens[tail:end]
    unclear = any(token.tag not in _SUBJECT for token in subject) or any(token.tag in {"CC", ","} for token in rest)
    if unclear or subject[-1].tag not in {"NN", "NNS"} or subject[0].tag in {"CC", "VBG"}:
        return None
    joints = [at for at, token in enumerate(subject) if token.tag == "CC" or token.text == ","]
    if joints:
        names = subject[joints[0] - 1].tag in NOUNS and subject[joints[0] + 1].tag in {"DT", "PRP$", "CD"}
        return True if names and all(subject[at].text.lower() == "and" for at in joints) else None
    noun, opening = subject[-1], subject[0].text.lower()
    of_group = bool(rest) and rest[0].text.lower() == "of"  # a pack of wolves
    if of_group or opening in _OF_GROUP or _is_of_any_number(noun):
        return None
    return opening in _MANY or numbers.get(tail - 1, noun.tag == "NNS")


def _is_shown_plural(tokens: Sequence[Token], verb: int) -> bool | None:
    """Return whether what "there is" names is plural."""
    opening = tokens[verb + 1].text.lower() if verb + 1 < len(tokens) else ""
    named = next((token for token in tokens[verb + 1 :] if token.tag not in _DESCRIBING | {"DT", "CD"}), None)
    unclear = named is None or named.tag not in {"NN", "NNS"} or _is_of_any_number(named)
    if named is None or unclear or any(token.tag == "CC" for token in tokens[verb:]):
        return None
    return opening in _MANY or named.tag == "NNS"


def _is_of_any_number(noun: Token) -> bool:
    uninflected = noun.tag == "NNS" and noun.text.lower() == noun.lemma
    return uninflected or noun.lemma in _ANY_NUMBER
