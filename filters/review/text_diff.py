"""Differences between a caption and a candidate, as spans for both sides."""

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

MarkedText = tuple[str, bool]
"""A span of text, and whether it differs."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def mark_differences(
    caption: str, candidate: str, edits: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[MarkedText], list[MarkedText]]:
    """Return caption and candidate, each split into spans that add up to the text.

    Args:
        caption: any text.
        candidate: any text.
        edits: from, to, from_span, to_span, as in annotations. If they do not fit both texts, or there are none, the
            texts
            are compared word by word.
    """
    spans = _find_edit_spans(caption, candidate, edits) or _find_diff_spans(caption, candidate)
    return _split_at_spans(caption, [one for one, _ in spans]), _split_at_spans(
        candidate, [other for _, other in spans]
    )


_Spans = list[tuple[tuple[int, int], tuple[int, int]]]


def _find_edit_spans(caption: str, candidate: str, edits: Sequence[Mapping[str, Any]]) -> _Spans:
    spans: _Spans = []
    for edit in edits:
        one, other = list(edit["from_span"]), list(edit["to_span"])
        if not (_fits(one, edit["from"], caption) and _fits(other, edit["to"], candidate)):
            return []
        spans.append(((one[0], one[1]), (other[0], other[1])))
    return spans


def _fits(span: Sequence[int], words: str, text: str) -> bool:
    return len(span) == 2 and 0 <= span[0] <= span[1] <= len(text) and text[span[0] : span[1]] == words


def _find_diff_spans(caption: str, candidate: str) -> _Spans:
    words, new_words = _WORDS.findall(caption), _WORDS.findall(candidate)
    starts, new_starts = _compute_starts(words), _compute_starts(new_words)

    matcher = SequenceMatcher(a=words, b=new_words, autojunk=False)
    return [
        ((starts[a], starts[b]), (new_starts[c], new_starts[d]))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def _compute_starts(words: Sequence[str]) -> list[int]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts


def _split_at_spans(text: str, spans: Sequence[tuple[int, int]]) -> list[MarkedText]:
    found: list[MarkedText] = []
    done = 0
    for start, end in sorted(spans):
        words = text[max(start, done) : end].strip()  # whitespace around the differing words is not marked
        at = text.index(words, max(start, done))
        if words:
            found += [(text[done:at], False), (words, True)]
            done = at + len(words)
    found.append((text[done:], False))
    return [span for span in found if span[0]]
