"""Whether a caption with two stretches exchanged says the same, or may."""

from collections.abc import Sequence
from typing import Final

from pairwright.generators.captions.lists import is_one_description, is_one_list
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import converses
from pairwright.generators.edits.constraints.meaning import same_count
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with

_JOINS = words_with("joins_items")
_AND: Final = frozenset({"and", "or"})
_WITHIN: Final = frozenset({"JJ", "RB", "CC", "CD", "HYPH"})  # tags between words that describe one thing
_QUALIFIES: Final = frozenset({"JJ", "CD"})


def is_symmetric(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two things may change places and the caption is as true: around "and", "near"."""
    between = _between(edit)
    words = [token.text.lower() for token in between]
    wording = " ".join(word for word in words if word not in _JOINS - _AND)
    symmetric = any(known.relations.paraphrase(wording, other) for other in converses(wording))
    symmetric = symmetric or all(word in _JOINS for word in words)
    return bool(between) and symmetric and not _keeps_quality(edit, edit.start)


def is_in_one_list(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two things are items of one list, in whatever order: "a sink and a stove with a window"."""
    whole = not _keeps_quality(edit, edit.start) and not _keeps_quality(edit, edit.second[0])
    return whole and is_one_list(edit.caption.tokens, (edit.start, edit.end), edit.second, known.nouns.is_alive)


def counts_the_same(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two exchanged words may count the same: "some people", "three pictures"."""
    del known
    return same_count(edit.old, edit.new)


def describes_one_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two exchanged words describe the same thing."""
    del known
    tokens, between = edit.caption.tokens, _between(edit)
    if between and is_one_description(tokens, edit.end - 1, edit.second[0]):
        return True
    longer = max((edit.start, edit.end), edit.second, key=lambda span: span[1] - span[0])
    passed = between or tokens[slice(*longer)]
    return all(token.tag in _WITHIN or token.pos == "PUNCT" for token in passed)


def is_no_list(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a positive exchanges what is not joined by "and", or what belongs to the other: "a man and his dog"."""
    del known
    words = [token.text.lower() for token in _between(edit)]
    owned = any(token.tag == "PRP$" for token in edit.caption.tokens[slice(*edit.second)])
    return owned or _AND.isdisjoint(words) or not all(word in _JOINS for word in words)


def _between(edit: ProposedEdit) -> Sequence[Token]:
    return edit.caption.tokens[edit.end : edit.second[0]]


def _keeps_quality(edit: ProposedEdit, start: int) -> bool:
    """Whether an adjective or number before an exchanged noun stays and describes the other one then."""
    return start > 0 and edit.caption.tags[start - 1] in _QUALIFIES
