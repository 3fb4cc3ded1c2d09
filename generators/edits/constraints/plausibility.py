"""Whether reference captions find an edit strange: what stands together, and what is where."""

from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from pairwright.generators.captions.box_checks import number_of
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import (
    ALWAYS_MASS,
    FEW_PLURALS,
    FEWEST_PLURALS,
    KNOWN,
    LINKED,
    MASS,
    SEEN,
    SLACK,
    TOGETHER,
    Knowledge,
)
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.prepositional_links import PrepositionalLink, find_links
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.lexicon.relations import load_relations

_UNSEEN = words_with("unseen")


def is_everywhere(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether nearly every image has such a thing, mentioned or not: a floor, a hand."""
    return edit.new in _UNSEEN


def may_be_beside(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether the new thing is often where the old one is: beside a toilet is a sink, mentioned or not."""
    return known.often_beside(edit.old.rpartition(" ")[2], edit.new.rpartition(" ")[2])


def is_strange_beside(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never have the new noun with a noun or verb of this caption, though they would by chance."""
    new, old = edit.new.split(), edit.old.split()
    company = [word for word in edit.caption.company if word not in old]
    return any(
        not known.pool.cooccurrence(part, word) and known.expects(part, word, TOGETHER)
        for part in new
        for word in company
    )


def is_implausible(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether the new word goes with this caption's words less than by chance."""
    verb, preposition = split_relation(edit.new) if edit.target == "relation" else (edit.new, "")
    word = (verb or preposition).rpartition(" ")[2]
    rest = [lemma for lemma in edit.caption.contents if lemma not in edit.old.split()]
    return known.pool.plausibility(word, rest) < -SLACK


def is_unseen_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never have the new noun behind its modifier, verb or preposition, or before its verb or preposition.

    RequestedEdit if captions say so of the old noun, or would say so of the new one by chance.
    """
    new, old = edit.new.rpartition(" ")[2], edit.old.rpartition(" ")[2]
    adjacency, linked, expects = known.pool.adjacency, known.pool.linked, known.expects
    before, behind, links = _noun_context(edit.caption, edit.start, edit.end, old, known)
    return (
        any(not adjacency(word, new) and (seen or expects(word, new, LINKED)) for word, seen in before)
        or any(not adjacency(new, word) and (seen or expects(new, word, LINKED)) for word, seen in behind)
        or (
            bool(links)
            and linked("", "", new) >= KNOWN
            and any(not linked(left, preposition, new) for left, preposition in links)
        )
        or _is_unseen_compound(edit, known)
    )


class _NounContext(NamedTuple):
    """The words around a noun, and whether captions of the pool have the noun there.

    Attributes:
        before: lemmas of its modifiers and of the verb or preposition before it, each with whether captions have the noun
            behind it.
        behind: lemma of the verb or preposition behind it, with whether captions have the noun before it.
        links: left word and preposition of each prepositional link to the noun that captions have.
    """

    before: list[tuple[str, bool]]
    behind: list[tuple[str, bool]]
    links: list[tuple[str, str]]


@lru_cache(maxsize=16)  # several nouns are proposed in one place
def _noun_context(caption: Caption, start: int, end: int, noun: str, known: Knowledge) -> _NounContext:
    before, behind = governors_of(caption, start, end)
    linked, adjacency = known.pool.linked, known.pool.adjacency
    return _NounContext(
        [(word, bool(adjacency(word, noun))) for word in before],
        [(word, bool(adjacency(noun, word))) for word in behind],
        [(left, by) for left, by, thing in links_of(caption) if thing == noun and linked(left, by, noun)],
    )


def _is_unseen_compound(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never have the new noun right behind a noun that modifies it: "eye scissors"."""
    caption, before = edit.caption, edit.start - 1
    if not is_behind_noun(caption, edit.start, edit.end):
        return False
    run, modifier, first = known.pool.run, caption.lower[before], edit.new.split()[0]
    if first == edit.new:
        first = inflect(first, caption.tags[edit.end - 1])
    asked = run(modifier, caption.lower[edit.start]) or known.expects(modifier, first, LINKED)
    return bool(asked) and not run(modifier, first)


def is_behind_noun(caption: Caption, start: int, end: int) -> bool:
    """Whether a noun ends a phrase in which another noun modifies it."""
    phrase = caption.ending_at(end)
    return phrase is not None and start - 1 in phrase.nouns


def is_unused_form(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions do not use the new noun in this number, or with this article: "rices", "a cattle", "eating sandwich"."""
    usage = noun_form_of(edit.caption, edit.old, edit.end, known)
    return usage is not None and lacks_noun_form(edit.new, usage, known)


class NounForm(Enum):
    """How a caption uses a noun: behind an article, bare as mass nouns are, or in the plural."""

    ONE = auto()
    MASS = auto()
    PLURAL = auto()


def noun_form_of(caption: Caption, old: str, end: int, known: Knowledge) -> NounForm | None:
    """Return how a caption uses the noun ``old``, which ends before a token; None for a bare noun that is no mass noun."""
    tag, phrase = caption.tags[end - 1], caption.ending_at(end)
    if tag == "NNS":
        return NounForm.PLURAL
    if tag != "NN" or phrase is None:
        return None
    if caption.lower[phrase.start] in words_with("one"):
        return NounForm.ONE
    return NounForm.MASS if phrase.is_bare and known.share_without_article(old.rpartition(" ")[2]) >= MASS else None


def lacks_noun_form(noun: str, usage: NounForm, known: Knowledge) -> bool:
    """Whether captions do not use a noun so."""
    head = noun.rpartition(" ")[2]
    share = known.share_without_article(head)
    if usage is NounForm.ONE:
        return share > ALWAYS_MASS
    if usage is NounForm.MASS:
        return share < MASS
    count, form = known.pool.form_frequency, inflect(head, "NNS")
    return form != head and count(form) < count(head) * (FEWEST_PLURALS if share < MASS else FEW_PLURALS)


def governors_of(caption: Caption, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the lemmas before a noun that modify or govern it, and the verb or preposition behind it."""
    before: list[str] = []
    at = start - 1
    while at >= 0 and caption.tokens[at].pos in {"ADJ", "NOUN", "DET", "NUM", "VERB", "ADP"}:
        token = caption.tokens[at]
        if token.pos in {"ADJ", "VERB", "ADP"}:
            before.append(token.lemma)
        if token.pos in {"VERB", "ADP"}:
            break
        at -= 1
    while end < len(caption.tokens) and caption.tokens[end].pos in {"AUX", "ADV"}:
        end += 1
    follows = end < len(caption.tokens) and caption.tokens[end].pos in {"VERB", "ADP"}
    return before, [caption.lemmas[end]] if follows else []


def is_unseen_relation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions never say the new relation of such an object, or its verb or preposition of such a subject.

    A verb alone has to be said of both. Others are not asked of nouns of which captions say little.
    """
    verb, preposition = split_relation(edit.new)
    linked, adjacency, subject, thing = known.pool.linked, known.pool.adjacency, edit.before, edit.after
    if not preposition:
        return adjacency(verb, thing) < SEEN or (bool(subject) and adjacency(subject, verb) < SEEN)
    if linked("", "", thing) >= KNOWN and not any(linked(verb, preposition, noun) for noun in loosely_same(thing)):
        return True
    if not subject or known.nouns.is_person(subject) or linked(subject, "", "") < KNOWN:
        return False
    return not (adjacency(subject, verb) if verb else linked(subject, preposition, ""))


def has_wrong_subject(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a thing would do what only people and animals do, or the other way round."""
    new, old = (load_relations().analyse(key) for key in (edit.new, edit.old))
    if new is None or not new.subject or (old is not None and old.subject == new.subject):
        return False
    return not edit.before or known.nouns.is_alive(edit.before) is not (new.subject == "animate")


def is_no_quality(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether captions hardly ever describe such a thing by the new attribute, though both are common enough."""
    return any(
        max(known.pool.adjacency(word, noun), known.pool.cooccurrence(word, noun) // 2) < SEEN
        and known.expects(word, noun, TOGETHER)
        for word, noun in _described(edit)
        if not number_of(word)
    )


def _described(edit: ProposedEdit) -> Iterator[tuple[str, str]]:
    """Yield what an edit newly says of things: an attribute and the head noun."""
    pairs = ((edit.new, edit.before), (edit.old, edit.after)) if edit.form == "swap" else ((edit.new, edit.after),)
    return ((words, noun.rpartition(" ")[2]) for words, noun in pairs if words and noun)


@lru_cache(maxsize=8)
def links_of(caption: Caption) -> tuple[PrepositionalLink, ...]:
    """Return the prepositional links of a caption."""
    return tuple(find_links(caption.tokens))
