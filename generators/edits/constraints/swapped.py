"""Swap constraints: exchanges that do not change the meaning of a caption, or may not.

"A sink and a stove with a window" coordinates three things by "and", commas and one "with". Their order does not
matter, and the attachment of "with" is ambiguous, so an exchange of two items is no negative. A second "with", or an
animate owner ("a man with a hat and a woman"), makes attachment clear: there an exchange changes the meaning. Of a cat
that lies on a bed next to a dog, the dog may lie there, too.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pairwright.generators.captions.phrases import NOUNS, PROPER, NounPhrase
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.meaning import same_count
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import share_class
from pairwright.generators.lexicon.function_words import words_with

_BETWEEN_ITEMS: Final = words_with("joins_items")
_CONJUNCTIONS: Final = words_with("conjunction")
_LISTS: Final = words_with("lists")
_ATTACHES: Final = words_with("attaches")
_IN_PHRASE: Final = NOUNS | PROPER | {"DT", "PDT", "PRP$", "CD", "JJ", "JJR", "JJS", "HYPH", "POS"}
_WITHIN: Final = frozenset({"JJ", "RB", "CC", "CD", "HYPH"})  # tags between words that describe one thing
_RELATES: Final = frozenset({"VERB", "ADP"})
_PREDICATES: Final = frozenset({"VERB", "AUX"})
_STATES: Final = words_with("presents")
_QUALIFIES: Final = frozenset({"JJ", "CD"})
_LONGEST: Final = 3  # tokens of a relation before a noun phrase: "in front of"


def is_symmetric(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two exchanged nouns are joined by a symmetric relation: "and", "near".

    With "near", a verb that governs the first noun would govern the other one: "feeds a dog near a cat".
    """
    between = _between(edit)
    words = [token.text.lower() for token in between]
    if not between or _has_fixed_modifier(edit, edit.start):
        return False
    if all(word in _BETWEEN_ITEMS for word in words):
        return True
    wording = " ".join(word for word in words if word not in _BETWEEN_ITEMS - _CONJUNCTIONS)
    return known.relations.is_mutual(wording) and not _is_governed(edit, known)


def has_shared_predicate(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether what a caption says of the first exchanged thing may hold of the second: "a cat lying next to a dog".

    A mutual relation before the second thing relates both equally, unless something is said of the second alone.
    """
    caption, at = edit.caption, edit.second[0]
    phrase = next((each for each in caption.phrases if each.start <= at < each.end), None)
    if phrase is None:
        return False
    if _BETWEEN_ITEMS.issuperset(caption.lower[edit.end : phrase.start]):
        return True  # "an elderly man and woman"
    if _has_own_predicate(edit, phrase, known):
        return False
    before = range(max(phrase.start - _LONGEST, edit.end), phrase.start)
    words = [caption.lemmas[at] if caption.tokens[at].pos in _PREDICATES else caption.lower[at] for at in before]
    return not _LISTS.isdisjoint(words[-1:]) or any(
        known.relations.is_mutual(" ".join(words[start:])) for start in range(len(words))
    )


def is_in_one_list(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two nouns are items of one coordination: "a sink and a stove with a window"."""
    if _has_fixed_modifier(edit, edit.start) or _has_fixed_modifier(edit, edit.second[0]):
        return False
    caption, owners = edit.caption, list[str]()
    for in_phrase, inside in groupby(range(edit.end, edit.second[0]), lambda at: caption.tokens[at].tag in _IN_PHRASE):
        places = [*inside]
        words = set[str]() if in_phrase else {caption.lower[at] for at in places}
        if not words <= _LISTS | _ATTACHES:
            return False
        owners += [] if _ATTACHES.isdisjoint(words) else [caption.lemmas[places[0] - 1]]
    return edit.end < edit.second[0] and len(owners) <= 1 and not any(map(known.nouns.is_alive, owners))


def has_same_count(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two exchanged words may denote the same number: "some people", "three pictures"."""
    return same_count(edit.old, edit.new)


def modifies_same_noun(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two exchanged words modify the same noun."""
    tokens, between = edit.caption.tokens, _between(edit)
    longer = max((edit.start, edit.end), edit.second, key=lambda span: span[1] - span[0])
    passed, word = between or tokens[slice(*longer)], edit.caption.lower[edit.end - 1]
    return all(
        token.tag in _WITHIN or token.pos == "PUNCT" or share_class(word, token.text.lower()) for token in passed
    )


def is_not_coordination(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a positive exchanges spans that are not coordinated, or not independent: "a man and his dog"."""
    words = [token.text.lower() for token in _between(edit)]
    owned = any(token.tag == "PRP$" for token in edit.caption.tokens[slice(*edit.second)])
    return owned or _CONJUNCTIONS.isdisjoint(words) or not all(word in _BETWEEN_ITEMS for word in words)


def _is_governed(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the first noun is governed by a verb or preposition that is neither existential nor symmetric."""
    caption = edit.caption
    phrase = next((each for each in caption.phrases if each.start <= edit.start < each.end), None)
    end = phrase.start if phrase is not None else edit.start
    if not end or caption.tokens[end - 1].pos not in _RELATES or caption.lower[end - 1] in _STATES:
        return False
    return not any(
        known.relations.is_mutual(" ".join(caption.lower[start:end])) for start in range(max(end - _LONGEST, 0), end)
    )


def _has_own_predicate(edit: ProposedEdit, phrase: NounPhrase, known: Knowledge) -> bool:
    """Return whether a verb or clothes after a phrase describe its noun: "a woman wearing glasses", "a man in a suit"."""
    caption = edit.caption
    if phrase.end >= len(caption.tokens):
        return False
    worn = caption.starting_at(phrase.end + 1)
    return (
        caption.tokens[phrase.end].pos in _PREDICATES
        or caption.tag(phrase.end) in {"WP", "WDT"}
        or (worn is not None and "clothing" in known.nouns.classes(caption.head(worn)))
    )


def _between(edit: ProposedEdit) -> Sequence[Token]:
    return edit.caption.tokens[edit.end : edit.second[0]]


def _has_fixed_modifier(edit: ProposedEdit, start: int) -> bool:
    """Return whether an adjective or number before an exchanged noun stays in place."""
    return start > 0 and edit.caption.tags[start - 1] in _QUALIFIES
