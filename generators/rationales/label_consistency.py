"""Does a rationale end in the label that is given with it? By what its last sentences say; no model is asked.

- ``number``: the label's value stands in the rationale, as a number or as a calculation, and every calculation is right
  ("10 * 45 = 460" is not). Where it stands nowhere, a result that the last calculation comes to contradicts it.
- ``set``: a value named in the last sentence has to be the label. Most rationales name none: they are *silent*.
- ``choice``: the label's text stands in the rationale, or at least no other choice is what the last sentence names.
- ``text``: the label stands in the rationale, or the rationale is silent.

Only what contradicts the label for certain counts against a row.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from pairwright.generators.rationales.arithmetic import (
    NUMBER_NAMES,
    find_calculations,
    find_equations,
    find_numbers,
    is_close,
)
from pairwright.generators.rationales.labels import Labels, find_mentioned

Agreement = Literal["agrees", "contradicts", "silent"]

_SENTENCE = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=\S)")
_DENIED = re.compile(r"\b(?:not|no|never|neither|nor|cannot|without)\b|n['’]t\b", re.IGNORECASE)
_SPELLED = re.compile(rf"\b(?:{'|'.join(NUMBER_NAMES)})\b", re.IGNORECASE)


def check_agreement(rationale: str, label: str, labels: Labels, choices: Sequence[str] = ()) -> Agreement:
    """Return whether a rationale agrees with a label, contradicts it, or does not tell.

    Args:
        rationale: without marker and label.
        label: as `Labels.read` or `Labels.gold` gives it.
        labels: of the task.
        choices: of the row, for labels of the kind ``choice``.
    """
    if labels.kind == "number":
        return _check_number(rationale, labels.value(label))
    if labels.kind == "set":
        return _check_member(rationale, label, labels)
    if labels.kind == "choice":
        return _check_choice(rationale, label, choices)
    return "agrees" if _names(rationale, label) else "silent"


def _check_number(rationale: str, value: Fraction | None) -> Agreement:
    if value is None:
        return "silent"
    results = find_equations(rationale)
    if not all(equation.holds for equation in results):
        return "contradicts"
    said = [
        *find_numbers(rationale),
        *(Fraction(NUMBER_NAMES.index(word.lower())) for word in _SPELLED.findall(rationale)),
    ]
    if any(is_close(each, value) or is_close(-each, value) for each in (*said, *find_calculations(rationale))):
        return "agrees"
    return "contradicts" if results else "silent"


def _check_member(rationale: str, label: str, labels: Labels) -> Agreement:
    last = _sentences(rationale)[-1:]
    named = find_mentioned(labels, last[0]) if last else []
    if not named or _DENIED.search(last[0]):
        return "silent"
    return "agrees" if named[-1] == label else "contradicts"


def _check_choice(rationale: str, label: str, choices: Sequence[str]) -> Agreement:
    if _names(rationale, label):
        return "agrees"
    last = _sentences(rationale)[-1:]
    named = [choice for choice in choices if last and _names(last[0], choice)]
    return "contradicts" if len(named) == 1 and not _DENIED.search(last[0]) else "silent"


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]


def _names(text: str, label: str) -> bool:
    return bool(label) and re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, re.IGNORECASE) is not None
