"""Scopes of negation, disjunction and company: stretches of a caption in which no edit is known to be false.

"No dogs" is true of most pictures with another animal in the place of the dogs, and "a cat or a dog" is true where
there is a cat. "No", "without" and the like negate what follows; "not" and "isn't" the whole clause, up to the next
punctuation mark. An edit of the negating word itself is as good as any. What "or" joins takes a parser to tell, and one of
600 captions has it, so these are not edited at all. Things in a row, or that accompany another, are not
all that there is: beside "a sink and a mirror" there may be a towel. Readers found three quarters of the replaced ones
possibly true, and a ninth of all others.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with

_DENIES, _DENIES_BEHIND = words_with("denies"), words_with("denies_behind")
ANY_DENIAL: Final = _DENIES | _DENIES_BEHIND
_OR: Final = frozenset({"or", "and/or"})
_ONE_MORE: Final = words_with("one_more")
_LISTS: Final = words_with("joins_items") & _ONE_MORE  # on either side of a thing
_MARKS: Final = frozenset('.,;:!?()"')


class Scope(NamedTuple):
    """Tokens ``start`` up to ``end``, which the word at ``word`` negates; -1 if no word does."""

    start: int
    end: int
    word: int = -1


def is_in_negation_scope(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit stands in what its caption negates."""
    return not ANY_DENIAL.isdisjoint(edit.caption.lower) and _touches(edit, _negations(edit.caption))


def is_in_disjunction(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a caption leaves something open by "or"."""
    return not _OR.isdisjoint(edit.caption.lower)


def is_in_company(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit replaces one of several things in a row, or what accompanies another, where no boxes say what is there."""
    caption = edit.caption
    if caption.words.labels or _ONE_MORE.isdisjoint(caption.lower):  # those behind a thing are among those before one
        return False
    phrase = next((each for each in caption.phrases if each.start <= edit.start < each.end), None)
    if phrase is None:
        return False
    return caption.word(phrase.start - 1) in _ONE_MORE or caption.word(phrase.end) in _LISTS


def attaches_elsewhere(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a preposition may belong to an earlier verb or thing than the noun before it.

    "Riding bikes down a sidewalk near a train" places neither the sidewalk nor the bikes. That takes a parser to tell; a
    caption's first preposition, with no verb before it, belongs to its noun.
    """
    if split_relation(edit.old)[0]:
        return False
    return any(token.pos == "VERB" or _places(token) for token in edit.caption.tokens[: edit.start])


def _places(token: Token) -> bool:
    return token.pos == "ADP" and token.text.lower() != "of"


def is_denial(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit adds or removes a negating word."""
    return bool(ANY_DENIAL & (set(edit.old.split()) ^ set(edit.new.split())))


def _touches(edit: ProposedEdit, scopes: tuple[Scope, ...]) -> bool:
    spans = ((edit.start, edit.end), edit.second)
    return any(
        scope.start <= start < scope.end + (start == end) and not start <= scope.word < end
        for scope in scopes
        for start, end in spans[: 1 + (edit.form == "swap")]
    )


@lru_cache(maxsize=8)
def _negations(caption: Caption) -> tuple[Scope, ...]:
    marks = [at for at, word in enumerate(caption.lower) if word in _MARKS]
    found = []
    for at, word in enumerate(caption.lower):
        if word in ANY_DENIAL:
            before = max((mark + 1 for mark in marks if mark < at), default=0)
            end = min((mark for mark in marks if mark > at), default=len(caption.lower))
            found.append(Scope(at + 1 if word in _DENIES_BEHIND else before, end, at))
    return tuple(found)
