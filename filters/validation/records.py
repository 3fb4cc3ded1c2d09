"""The rows under validation, and what the three ways of validating say of them."""

from dataclasses import dataclass
from typing import Final

REASONS: Final = {
    "true_of_image": "the negative says what is true of the image: a false negative",
    "same_meaning": "the negative says the same as its caption in other words",
    "duplicate": "the negative is another caption of the image",
    "identical": "the negative is the caption, but for capitals, spacing and the final mark",
    "caption_doubted": "the judge finds neither text true, so the caption cannot be the right answer",
    "judge_undecided": "the judge's two answers do not agree, or one of them cannot be read",
    "no_image": "the image is missing, broken or not named",
    "image_outside_root": "the image is outside the folder that --image-root names",
}


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """A row whose negative may be true of the image after all.

    Attributes:
        id: of the row.
        image: locator; empty when the row names none.
        positive: the text that the negative competes with.
        negative: the text in doubt.
    """

    id: str
    image: str
    positive: str
    negative: str


@dataclass(frozen=True, slots=True)
class ValidationVerdict:
    """What became of a row.

    Attributes:
        reason: of `REASONS`, or the word of a failure; empty when the negative stands.
        scores: to be written beside the row's own.
    """

    reason: str = ""
    scores: tuple[tuple[str, float], ...] = ()
