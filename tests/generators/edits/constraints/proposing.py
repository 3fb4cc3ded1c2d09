"""Proposed edits of sentences with marks in them, as the examples of constraints are written."""

import re

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import EditExample
from tests.generators.rule_fixtures import pair_of, tokens_of

NOUNS = frozenset({"NN", "NNS"})
SMALL = frozenset({"a", "an", "the", "his"})


def proposed(example: EditExample, kind: str = "hard_negative", crowds: tuple[str, ...] = ()) -> ProposedEdit:
    """Return the edit of an example: spans in brackets are replaced, or exchanged; words are added at "|"."""
    form, _, target = example.type.partition("-")
    caption, spans = _marked(example, crowds)
    (start, end), second = spans[0], spans[1] if len(spans) > 1 else (0, 0)
    old, new = _key(caption, target, start, end), example.new
    before, after = _noun_before(caption, start), _noun_behind(caption, end)
    if form == "swap":
        new = _key(caption, target, *second)
        before, after = (after, _noun_behind(caption, second[1])) if target == "attribute" else ("", "")
    return ProposedEdit(caption, form, target, old, new, before, after, start, end, second, kind)


def _marked(example: EditExample, crowds: tuple[str, ...]) -> tuple[Caption, list[tuple[int, int]]]:
    plain, marks = "", list[int]()
    for part in re.split(r"([\[\]]|\| ?)", example.caption):
        if part in {"[", "]"} or part.startswith("|"):
            marks += [len(plain)] * (2 if part.startswith("|") else 1)
        else:
            plain += part
    pair = pair_of(plain, *example.others, boxes=example.boxes, crowds=crowds)
    caption = Caption(pair, tokens_of(plain))
    at = [
        next((n for n, token in enumerate(caption.tokens) if token.end > mark), len(caption.tokens)) for mark in marks
    ]
    return caption, list(zip(at[::2], at[1::2], strict=True))


def _key(caption: Caption, target: str, start: int, end: int) -> str:
    words = [at for at in range(start, end) if caption.lower[at] not in SMALL]
    if target == "attribute":
        return " ".join(caption.lower[at] for at in words)
    lemmas = caption.lemmas if target == "relation" else caption.lower
    return " ".join([*(lemmas[at] for at in words[:-1]), *(caption.lemmas[at] for at in words[-1:])])


def _noun_before(caption: Caption, start: int) -> str:
    return next((caption.lemmas[at] for at in reversed(range(start)) if caption.tags[at] in NOUNS), "")


def _noun_behind(caption: Caption, end: int) -> str:
    head = ""
    for at in range(end, len(caption.tokens)):
        if caption.tags[at] in NOUNS:
            head = caption.lemmas[at]
        elif head:
            break
    return head
