"""From outcomes to a text: take the first that works, and say why when none does.

Shared by the makers of negatives and positives. `taken` holds the texts that may not be made again; what is made is
added to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pairwright.datasets.records import Edit
from pairwright.generators.captions import REASONS, Caption, Outcome
from pairwright.generators.edits import rewrite


@dataclass(frozen=True, slots=True)
class Edited:
    """A new text with its edits, or the reason why there is none."""

    text: str = ""
    edits: tuple[Edit, ...] = ()
    reason: str = ""


def first_good(caption: Caption, outcomes: Iterator[Outcome], taken: set[str]) -> Edited:
    """Return the first outcome that makes a new text; `outcomes` goes on where it stopped at the next call."""
    source = caption.pair.caption
    reason = REASONS[0]
    for outcome in outcomes:
        if isinstance(outcome, str):
            reason = max(reason, outcome, key=REASONS.index)
            continue
        text, edits = rewrite(source, outcome)
        if text == source:
            reason = max(reason, "identical", key=REASONS.index)
        elif text in taken:
            reason = max(reason, "duplicate", key=REASONS.index)
        else:
            taken.add(text)
            return Edited(text, edits)
    return Edited(reason=reason)
