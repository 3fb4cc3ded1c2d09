"""Whether reference captions find an edit strange: what stands together, and what is where."""

from collections.abc import Iterator
from functools import lru_cache

from pairwright.generators.captions.box_truth import number_of
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import SEEN, SLACK, STRANGE, Knowledge
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.prepositional_links import PrepositionalLink, find_links
from pairwright.generators.lexicon.function_words import words_with

_UNSEEN = words_with("unseen")


def is_everywhere(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether nearly every image has such a thing, mentioned or not: a floor, a hand."""
    del known
    return edit.new in _UNSEEN


def may_be_unsaid(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions have the added thing so often beside a word of this caption that it may be there unsaid."""
    return any(known.may_be_unsaid(edit.new, word) for word in edit.caption.company)


def is_strange_beside(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions hardly ever have the new noun beside a word of this caption."""
    old = edit.old.rpartition(" ")[2]
    return any(known.plausibility(edit.new, word) <= STRANGE for word in edit.caption.company if word != old)


def is_implausible(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether the new word goes with this caption's words less than by chance."""
    verb, preposition = split_relation(edit.new) if edit.target == "relation" else (edit.new, "")
    word = (verb or preposition).rpartition(" ")[2]
    rest = [lemma for lemma in edit.caption.contents if lemma not in edit.old.split()]
    return known.pool.plausibility(word, rest) < known.least - SLACK


def is_misplaced_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never put the new thing where it stands, or at it what stands there."""
    new, old = edit.new.rpartition(" ")[2], edit.old.rpartition(" ")[2]
    return any(
        known.is_misplaced(new if left == old else left, preposition, new if noun == old else noun)
        for left, preposition, noun in _links(edit.caption)
        if old in {left, noun}
    )


def is_misplaced_relation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never say the new relation of such a subject or object."""
    verb, preposition = split_relation(edit.new)
    if not edit.after:
        return False
    if not preposition:
        return known.pool.adjacency(verb, edit.after) < SEEN
    return any(left and known.is_misplaced(left, preposition, edit.after) for left in (verb, edit.before))


def is_no_quality(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never describe such a thing by the new attribute."""
    return any(
        max(known.pool.adjacency(word, noun), known.pool.cooccurrence(word, noun) // 2) < SEEN
        for word, noun in _described(edit)
        if not number_of(word)
    )


def _described(edit: ProposedEdit) -> Iterator[tuple[str, str]]:
    pairs = ((edit.new, edit.before), (edit.old, edit.after)) if edit.form == "swap" else ((edit.new, edit.after),)
    return ((words, noun) for words, noun in pairs if words and noun)


@lru_cache(maxsize=8)
def _links(caption: Caption) -> tuple[PrepositionalLink, ...]:
    return tuple(find_links(caption.tokens))
