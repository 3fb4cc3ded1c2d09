"""Answers that are plain text: what is asked for, and how the text is found in what the model said."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["line", "sentence", "lines", "text"]


@dataclass(frozen=True, slots=True)
class TextShape:
    """The shape of a plain text.

    Attributes:
        kind: one *line*; one *sentence*; *lines*, one item each; or any *text*.
        until: the answer ends before this marker, where it is there; empty: no marker.
        labels: what the model may write before its answer, such as ``New caption``, beside the usual ones.
    """

    kind: Kind = "line"
    until: str = ""
    labels: tuple[str, ...] = ()
