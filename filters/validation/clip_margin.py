"""Validation by a CLIP-like model: a negative that fits the image clearly better than its caption may be true of it.

Such models are weak at exactly what hard negatives test, so the margin is one-sided and generous: a pair that a model
merely confuses is hard, not false. A row is rejected only when s(negative) - s(positive) exceeds the margin. Both
scores are written, so that another margin can be tried without the model.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import UnusableImageError, decode_image, open_image
from pairwright.filters.validation.verdicts import ValidationRow, ValidationVerdict

if TYPE_CHECKING:
    from PIL import Image

    from pairwright.indexes.encoders.protocols import Vectors

S_POSITIVE, S_NEGATIVE = "clip_positive", "clip_negative"
_BATCH = 64  # images per batch


class ImageTextEncoder(Protocol):
    """Encoder of images and texts into one space (`indexes/encoders/clip.py`)."""

    def encode_texts(self, texts: Sequence[str]) -> "Vectors":
        """Return one unit row per text."""
        ...

    def encode_images(self, images: "Sequence[Image.Image]") -> "Vectors":
        """Return one unit row per image."""
        ...


def check_by_clip_margin(
    questions: Iterable[ValidationRow], encoder: ImageTextEncoder, margin: float
) -> Iterator[ValidationVerdict]:
    """Yield the verdict of each row, in order.

    Args:
        questions: rows; adjacent rows of one image decode it once.
        encoder: of texts and images.
        margin: cosine, 0-2.
    """
    waiting: list[tuple[list[ValidationRow], Image.Image | None]] = []
    for locator, rows in groupby(questions, key=lambda question: question.image):
        waiting.append((list(rows), _load_image(locator)))
        if len(waiting) == _BATCH:
            yield from _judge_batch(waiting, encoder, margin)
            waiting = []
    yield from _judge_batch(waiting, encoder, margin)


def _load_image(locator: str) -> "Image.Image | None":
    try:
        return decode_image(open_image(locator), locator) if locator else None
    except (UnusableImageError, InputError):
        return None


def _judge_batch(
    waiting: "Sequence[tuple[list[ValidationRow], Image.Image | None]]", encoder: ImageTextEncoder, margin: float
) -> Iterator[ValidationVerdict]:
    decoded = [(rows, image) for rows, image in waiting if image is not None]
    image_vectors = iter(encoder.encode_images([image for _, image in decoded])) if decoded else iter(())
    texts = [text for rows, _ in decoded for row in rows for text in (row.positive, row.negative)]
    text_vectors = iter(encoder.encode_texts(texts)) if texts else iter(())
    for rows, image in waiting:
        if image is None:
            yield from (ValidationVerdict("no_image") for _ in rows)
            continue
        vector = next(image_vectors)
        for _ in rows:
            positive, negative = (float(np.dot(next(text_vectors), vector)) for _ in range(2))
            reason = "true_of_image" if negative - positive > margin else ""
            yield ValidationVerdict(reason, ((S_NEGATIVE, negative), (S_POSITIVE, positive)))
