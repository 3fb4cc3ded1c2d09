"""Limits on single pairs: words of the caption, size and aspect ratio of the image."""

from dataclasses import dataclass

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Pair


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Limits of a pair; 0 disables a limit.

    Attributes:
        min_words: of the caption, separated by spaces.
        max_words: likewise.
        min_side: pixels of the image's shorter side.
        max_aspect: longer side divided by shorter side, at least 1.

    Raises:
        UsageError: limits that no pair can meet.
    """

    min_words: int = 0
    max_words: int = 0
    min_side: int = 0
    max_aspect: float = 0.0

    def __post_init__(self) -> None:
        if self.max_words and self.max_words < self.min_words:
            raise UsageError(f"max_words {self.max_words} is below min_words {self.min_words}: no pair can meet both.")
        if self.max_aspect and self.max_aspect < 1:
            raise UsageError(f"max_aspect {self.max_aspect}: longer side / shorter side is at least 1.")

    @property
    def of_images(self) -> bool:
        """Whether widths and heights are needed."""
        return bool(self.min_side or self.max_aspect)

    def violated_limit(self, pair: Pair) -> str:
        """Return the reason for rejecting a pair, else an empty text; an image of unknown size passes."""
        words = len(pair.caption.split())
        if words < self.min_words:
            return "too_short"
        if self.max_words and words > self.max_words:
            return "too_long"
        if not self.of_images or has_unknown_size(pair):
            return ""
        short, long = sorted((pair.width, pair.height))
        if short < self.min_side:
            return "image_too_small"
        return "extreme_aspect_ratio" if self.max_aspect and long > self.max_aspect * short else ""


def has_unknown_size(pair: Pair) -> bool:
    """Return whether the size of the image is unknown."""
    return pair.width <= 0 or pair.height <= 0
