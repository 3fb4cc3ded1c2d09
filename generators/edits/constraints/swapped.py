"""Whether a caption with two stretches exchanged says the same, or may.

"A sink and a stove with a window" names three things that are there together: a list joined by "and", commas and one
"with". In which order they stand says nothing, and to which of them "with" belongs is unclear, so an exchange of two
of its items is no negative. A second "with" gives each owner its own thing, and so does an owner that is alive ("a man
with a hat and a woman"): there an exchange is another statement. Words of one class that describe one thing ("white
black blue and red stripes") are such a list as well.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import converses
from pairwright.generators.edits.constraints.meaning import same_count
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import share_class
from pairwright.generators.lexicon.function_words import words_with

_BETWEEN_ITEMS: Final = words_with("joins_items")
_AND: Final = frozenset({"and", "or"})
_LISTS: Final = _AND | {"&", ","}
_HAS: Final = "with"
_IN_PHRASE: Final = frozenset(
    {"DT", "PDT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "HYPH", "POS"}
)  # tags
_WITHIN: Final = frozenset({"JJ", "RB", "CC", "CD", "HYPH"})  # tags between words that describe one thing
_RELATES: Final = frozenset({"VERB", "ADP"})
_STATES: Final = frozenset(
    {"of", "with", "has", "have", "having", "containing", "featuring", "show", "shows", "showing"}
)
_QUALIFIES: Final = frozenset({"JJ", "CD"})


def is_symmetric(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two things may change places and the caption is as true: around "and", "near".

    Beside "near" what is said of the first thing alone would be said of the other one: "feeds a dog near a cat".
    """
    between = _between(edit)
    words = [token.text.lower() for token in between]
    if not between or _keeps_quality(edit, edit.start):
        return False
    if all(word in _BETWEEN_ITEMS for word in words):
        return True
    wording = " ".join(word for word in words if word not in _BETWEEN_ITEMS - _AND)
    return _is_mutual(wording, known) and not _is_related(edit, known)


def is_in_one_list(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two things are items of one list, in whatever order: "a sink and a stove with a window"."""
    if _keeps_quality(edit, edit.start) or _keeps_quality(edit, edit.second[0]):
        return False
    tokens, owned = edit.caption.tokens, False
    for start, end in _connectives(tokens, edit.end, edit.second[0]):
        words = edit.caption.lower[start:end]
        if any(word not in _LISTS and word != _HAS for word in words):
            return False
        if _HAS in words:
            if owned or known.nouns.is_alive(tokens[start - 1].lemma):
                return False
            owned = True
    return edit.end < edit.second[0]


def counts_the_same(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two exchanged words may count the same: "some people", "three pictures"."""
    return same_count(edit.old, edit.new)


def describes_one_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two exchanged words describe the same thing."""
    tokens, between = edit.caption.tokens, _between(edit)
    if between and _is_one_description(edit.caption.lower[edit.end - 1], between):
        return True
    longer = max((edit.start, edit.end), edit.second, key=lambda span: span[1] - span[0])
    passed = between or tokens[slice(*longer)]
    return all(token.tag in _WITHIN or token.pos == "PUNCT" for token in passed)


def is_no_list(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a positive exchanges what is not joined by "and", or what belongs to the other: "a man and his dog"."""
    words = [token.text.lower() for token in _between(edit)]
    owned = any(token.tag == "PRP$" for token in edit.caption.tokens[slice(*edit.second)])
    return owned or _AND.isdisjoint(words) or not all(word in _BETWEEN_ITEMS for word in words)


def _is_mutual(wording: str, known: Knowledge) -> bool:
    """Whether a relation holds in both directions: "near"."""
    return any(known.relations.paraphrase(wording, other) for other in converses(wording))


def _is_related(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether the words before the first thing say more of it than that it is there, or near to something."""
    caption = edit.caption
    phrase = next((each for each in caption.phrases if each.start <= edit.start < each.end), None)
    end = phrase.start if phrase is not None else edit.start
    if not end or caption.tokens[end - 1].pos not in _RELATES or caption.lower[end - 1] in _STATES:
        return False
    return not any(_is_mutual(" ".join(caption.lower[start:end]), known) for start in range(max(end - 3, 0), end))


def _between(edit: ProposedEdit) -> Sequence[Token]:
    return edit.caption.tokens[edit.end : edit.second[0]]


def _is_one_description(word: str, following: Sequence[Token]) -> bool:
    """Whether tokens go on to describe what a word describes: they are of its class, "and" or commas."""
    return all(
        (lower := token.text.lower()) in _LISTS or token.tag == "HYPH" or share_class(word, lower)
        for token in following
    )


def _connectives(tokens: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches between two positions that are no part of a noun phrase."""
    at = start
    while at < end:
        begin = at
        while at < end and tokens[at].tag not in _IN_PHRASE:
            at += 1
        if at > begin:
            yield begin, at
        at += 1


def _keeps_quality(edit: ProposedEdit, start: int) -> bool:
    """Whether an adjective or number before an exchanged noun stays and describes the other one then."""
    return start > 0 and edit.caption.tags[start - 1] in _QUALIFIES
