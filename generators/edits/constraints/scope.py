"""Scope constraints: negation, disjunction, coordination and prepositional attachment.

In these scopes no edit is known to be false. "No dogs" is true of most images with another animal in place of the dogs,
and "a cat or a dog" is true if there is a cat. "No", "without" and the like negate what follows; "not" and "isn't" the
whole clause, up to the next punctuation mark. The negation word itself may be edited. The scope of "or" requires a
parser, and one of 600 captions has it, so these captions are not edited at all. Coordinated or accompanying nouns are
not exhaustive: beside "a sink and a mirror" there may be a towel. Readers found three quarters of replaced coordinated
nouns possibly true, and a ninth of all others.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.function_words import words_with

_NEGATES, _NEGATES_FOLLOWING = words_with("negates"), words_with("negates_following")
NEGATION_WORDS: Final = _NEGATES | _NEGATES_FOLLOWING
_OR: Final = frozenset({"or", "and/or"})
_COORDINATORS: Final = words_with("coordinator")
_LISTS: Final = words_with("joins_items") & _COORDINATORS  # on either side of a noun
_MARKS: Final = frozenset('.,;:!?()"')


class Scope(NamedTuple):
    """Tokens ``start`` up to ``end`` in the scope of the negation word at index ``word``."""

    start: int
    end: int
    word: int = -1


def is_in_negation_scope(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether an edit is in the scope of a negation."""
    return not NEGATION_WORDS.isdisjoint(edit.caption.distinct_words) and _touches(edit, _negations(edit.caption))


def is_in_disjunction(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a caption contains a disjunction."""
    return not _OR.isdisjoint(edit.caption.distinct_words)


def is_in_coordination(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether an edit replaces a coordinated or accompanying noun of an image without boxes."""
    caption = edit.caption
    if caption.words.labels or _COORDINATORS.isdisjoint(caption.distinct_words):  # `_LISTS` is a subset
        return False
    phrase = next((each for each in caption.phrases if each.start <= edit.start < each.end), None)
    if phrase is None:
        return False
    return caption.word(phrase.start - 1) in _COORDINATORS or caption.word(phrase.end) in _LISTS


def has_ambiguous_attachment(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a preposition may attach to an earlier verb or noun than the one before it.

    "Riding bikes down a sidewalk near a train" locates neither the sidewalk nor the bikes. Attachment requires a parser;
    only the first preposition of a caption, with no verb before it, certainly attaches to its noun.
    """
    if split_relation(edit.old)[0]:
        return False
    before = zip(edit.caption.tokens[: edit.start], edit.caption.lower, strict=False)
    return any(token.pos == "VERB" or (token.pos == "ADP" and word != "of") for token, word in before)


def changes_negation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether an edit adds or removes a negation word."""
    return bool(NEGATION_WORDS & (set(edit.old.split()) ^ set(edit.new.split())))


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
        if word in NEGATION_WORDS:
            before = max((mark + 1 for mark in marks if mark < at), default=0)
            end = min((mark for mark in marks if mark > at), default=len(caption.lower))
            found.append(Scope(at + 1 if word in _NEGATES_FOLLOWING else before, end, at))
    return tuple(found)
