"""Scopes of negation, disjunction and company: stretches of a caption in which no edit is known to be false.

"No dogs" is true of most pictures with another animal in the place of the dogs, and "a cat or a dog" is true where
there is a cat. "No", "without" and the like negate what follows; "not" and "isn't" the whole clause, up to the next
punctuation mark. An edit of the negating word itself is as good as any. The sides of an "or" are noun phrases,
adjectives, or a verb or preposition with the noun phrase behind it. Things in a row, or that accompany another, are not
all that there is: beside "a sink and a mirror" there may be a towel. Readers found three quarters of the replaced ones
possibly true, and a ninth of all others.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.function_words import words_with

_DENIES, _DENIES_BEHIND = words_with("denies"), words_with("denies_behind")
ANY_DENIAL: Final = _DENIES | _DENIES_BEHIND
_OR: Final = frozenset({"or", "and/or"})
_ONE_MORE: Final = words_with("one_more")
_LISTS: Final = words_with("joins_items") & _ONE_MORE  # on either side of a thing
_INEXACT: Final = frozenset({"more", "less", "so", "fewer"})  # "two | or more"
_MARKS: Final = frozenset('.,;:!?()"')
_BEGIN_LONGER: Final = ("VB", "IN", "TO")  # tags of what goes on to a noun


class Scope(NamedTuple):
    """Tokens ``start`` up to ``end``, which the word at ``word`` negates; -1 if no word does."""

    start: int
    end: int
    word: int = -1


def is_in_negation_scope(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit stands in what its caption negates."""
    return not ANY_DENIAL.isdisjoint(edit.caption.lower) and _touches(edit, _negations(edit.caption))


def is_in_disjunction(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit stands in what its caption leaves open by "or"."""
    return not _OR.isdisjoint(edit.caption.lower) and _touches(edit, _disjunctions(edit.caption))


def is_in_company(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit replaces one of several things in a row, or what accompanies another, where no boxes say what is there."""
    caption = edit.caption
    phrase = next((each for each in caption.phrases if each.start <= edit.start < each.end), None)
    if phrase is None or caption.words.labels:
        return False
    return caption.word(phrase.start - 1) in _ONE_MORE or caption.word(phrase.end) in _LISTS


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


@lru_cache(maxsize=8)
def _disjunctions(caption: Caption) -> tuple[Scope, ...]:
    last = len(caption.lower) - 1
    return tuple(_sides(caption, at) for at, word in enumerate(caption.lower) if word in _OR and 0 < at < last)


def _sides(caption: Caption, at: int) -> Scope:
    if caption.word(at + 1) in _INEXACT:
        return Scope(at - 1, at + 2)
    around = next((phrase for phrase in caption.phrases if phrase.start < at < phrase.end), None)
    if around is not None:  # "a | black or white | dog"
        return Scope(min((*around.adjectives, at - 1)), max((*around.adjectives, at + 1)) + 1)
    return Scope(_left(caption, at), _right(caption, at))


def _left(caption: Caption, at: int) -> int:
    before = at - (caption.word(at - 1) == ",")
    phrase = caption.ending_at(before)
    start = phrase.start if phrase is not None else max(before - 1, 0)
    while caption.word(start - 1) == "," and (listed := caption.ending_at(start - 1)) is not None:
        start = listed.start
    kind = caption.tag(at + 1)[:2]
    if kind in _BEGIN_LONGER:  # "| riding a horse or walking", "| on a bed or on a couch"
        for back in range(start, -1, -1):
            if caption.word(back) in _MARKS:
                break
            if caption.tag(back)[:2] == kind:
                return back
    return start


def _right(caption: Caption, at: int) -> int:
    whole: NounPhrase | None = caption.starting_at(at + 1)
    if whole is None and caption.tag(at + 1)[:2] in _BEGIN_LONGER:
        whole = next((phrase for phrase in caption.phrases if phrase.start > at), None)
        if whole is not None and not _MARKS.isdisjoint(caption.lower[at : whole.start]):
            whole = None
    return whole.end if whole is not None else at + 2
