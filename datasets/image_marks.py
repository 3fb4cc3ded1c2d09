r"""Places of images in texts: the mark ``<image>``, where trainers put an image.

The questions of a conversation of several images have one mark per image, in the order of the images. A conversation of one
image has no mark in its texts: the image goes before or after its first question (`mixtures.conversations`).

A message is also written in *parts*, texts and images. Here a part is a text, and an image is the part ``<image>``. Newlines
beside a mark only separate it from the text, as in LLaVA's ``<image>\\nWhat is it?``: they are no part of the text.

A question may have images and no text, as in captioning and in-context rows; that of a single image is then empty.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pairwright.datasets.records import IMAGE_TOKEN

_AT_MARKS = re.compile(f"({re.escape(IMAGE_TOKEN)})")


def count_marks(texts: Iterable[str]) -> int:
    """Return the number of marks in texts."""
    return sum(text.count(IMAGE_TOKEN) for text in texts)


def mark_before(text: str, images: int) -> str:
    """Return ``text`` below the marks of ``images`` images; the marks alone for an empty text."""
    return "\n".join(filter(None, [*[IMAGE_TOKEN] * images, text]))


def mark_beside(text: str, *, before: bool) -> str:
    """Return ``text`` with the mark of one image before or after it; the mark alone for an empty text."""
    return mark_before(text, 1) if before or not text else f"{text}\n{IMAGE_TOKEN}"


def split_at_marks(text: str) -> list[str]:
    """Return the parts of a text, without blank ones; a mark is a part."""
    first, *inner = _AT_MARKS.split(text)
    if not inner:
        return [text] if text else []
    parts = [first.rstrip("\n"), *(piece.strip("\n") for piece in inner[:-1]), inner[-1].lstrip("\n")]
    return [part for part in parts if part.strip()]


def join_parts(parts: Sequence[str]) -> str:
    """Return the text of parts: a newline separates two parts if neither has white space there."""
    separators = ["" if one[-1:].isspace() or other[:1].isspace() else "\n" for one, other in pairwise(parts)]
    return "".join(part + separator for part, separator in zip(parts, [*separators, ""], strict=True))
