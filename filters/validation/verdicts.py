"""Rows under validation, and the verdicts of the three validators."""

from dataclasses import dataclass
from typing import Final

REASONS: Final = {
    "true_of_image": "the negative is true of the image: a false negative",
    "same_meaning": "the negative paraphrases its caption",
    "duplicate": "the negative is another caption of the image",
    "identical": "the negative equals the caption, except for capitals, spacing and the final mark",
    "caption_doubted": "the judge finds neither text true, so the caption cannot be the right answer",
    "judge_undecided": "the two answers of the judge disagree",
    "judge_unreadable": "an answer of the judge is empty, a refusal, or names no choice (reasoning requires --parameter max_tokens=N)",
    "no_image": "the image is missing or invalid, or the row names none",
    "image_url": "the image is a web address, and --image-urls does not send these",
    "image_outside_root": "the image is outside the folder --image-root",
}


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """A row whose negative may be true of the image.

    Attributes:
        id: of the row.
        image: locator; empty when the row names none.
        positive: the text that the negative is compared with.
        negative: the text under validation.
    """

    id: str
    image: str
    positive: str
    negative: str


@dataclass(frozen=True, slots=True)
class ValidationVerdict:
    """Verdict on a row.

    Attributes:
        reason: of `REASONS`, or the code of a request error; empty when the negative is valid.
        scores: to be added to the scores of the row.
    """

    reason: str = ""
    scores: tuple[tuple[str, float], ...] = ()
