"""Textual context of an image for text-only models (LLaVA, section 3): captions and boxes.

A box is written ``label: [x1, y1, x2, y2]``, corners in 0-1 from the top left, to three decimals. There may be no box.
A context that is too long for a prompt is truncated, and the omitted parts are counted:

- captions keep their order and are deduplicated (ignoring case, spacing and the final period); the last ones are
  dropped beyond `ContextLimits.captions` captions or `ContextLimits.letters` characters in total. A first caption that
  is too long by itself is cut at a space;
- boxes are selected in rounds, each taking the largest remaining box of every label, labels by first occurrence, up to
  `ContextLimits.boxes`; the selected boxes keep their order. No label is dropped while another has two boxes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Box, Pair
from pairwright.generators.language.vocabulary import normalize_text

DECIMALS = 3


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """Maximum number of captions, characters of captions in total, and boxes; each 1 or more.

    Raises:
        UsageError: a limit is below 1.
    """

    captions: int = 10
    letters: int = 4_000
    boxes: int = 60

    def __post_init__(self) -> None:
        for name in ("captions", "letters", "boxes"):
            if getattr(self, name) < 1:
                raise UsageError(f"context limits: {name} must be 1 or more, not {getattr(self, name)}.")


@dataclass(frozen=True, slots=True)
class ImageContext:
    """Captions and boxes of an image, within `ContextLimits`.

    Attributes:
        captions: at least one.
        boxes: may be empty.
        more: label and number of the omitted boxes, by first occurrence.
        captions_omitted: number of omitted captions, without duplicates.
    """

    captions: tuple[str, ...]
    boxes: tuple[Box, ...]
    more: tuple[tuple[str, int], ...] = ()
    captions_omitted: int = 0

    @classmethod
    def of(cls, pair: Pair, limits: ContextLimits | None = None) -> "ImageContext":
        """Return the context of a pair's image."""
        limits = limits or ContextLimits()
        captions = {
            normalize_text(caption).rstrip(" ."): caption.strip()
            for caption in reversed((pair.caption, *pair.captions))
        }
        every = [caption for caption in reversed(captions.values()) if caption]
        kept = _truncate_captions(every, limits)
        boxes = _largest_boxes(pair.boxes, limits.boxes)
        left = Counter(box.label for box in pair.boxes)
        left.subtract(box.label for box in boxes)
        more = tuple((label, number) for label, number in left.items() if number)
        return cls(kept, boxes, more, len(every) - len(kept))

    def values(self) -> dict[str, Any]:
        """Return the values of a prompt: ``captions``, ``boxes`` (``[label, [x1, y1, x2, y2]]``), ``more``."""
        return {
            "captions": list(self.captions),
            "boxes": [[box.label, list(box_corners(box))] for box in self.boxes],
            "more": [list(each) for each in self.more],
        }


def box_corners(box: Box) -> tuple[float, float, float, float]:
    """Return x1, y1, x2, y2 to three decimals."""
    return (
        round(float(box.x1), DECIMALS),
        round(float(box.y1), DECIMALS),
        round(float(box.x2), DECIMALS),
        round(float(box.y2), DECIMALS),
    )


def _truncate_captions(captions: Sequence[str], limits: ContextLimits) -> tuple[str, ...]:
    kept: list[str] = []
    room = limits.letters
    for caption in captions[: limits.captions]:
        if len(caption) > room:
            break
        kept.append(caption)
        room -= len(caption)
    if kept or not captions:
        return tuple(kept)
    start = captions[0][: limits.letters]
    return (start[: start.rfind(" ")] if " " in start else start,)


def _largest_boxes(boxes: Sequence[Box], most: int) -> tuple[Box, ...]:
    if len(boxes) <= most:
        return tuple(boxes)
    first = {label: at for at, label in reversed(list(enumerate(box.label for box in boxes)))}

    def by_label(at: int) -> tuple[int, float, int]:
        box = boxes[at]
        return first[box.label], -(box.x2 - box.x1) * (box.y2 - box.y1), at

    rounds: list[tuple[int, int, int]] = []
    for _, group in groupby(sorted(range(len(boxes)), key=by_label), key=lambda at: boxes[at].label):
        rounds += [(turn, first[boxes[at].label], at) for turn, at in zip(count(), group, strict=False)]
    taken = sorted(at for _, _, at in sorted(rounds)[:most])
    return tuple(boxes[at] for at in taken)
