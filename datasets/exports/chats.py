"""Chats and preferences of a sample, as trainers of generative models take them: the common part of several formats.

A *chat* is a conversation. One image is shown before its first question, several where its questions have marks. A *preference* is a chat whose
last answer is the chosen one, with another, rejected answer to the same question:

- the caption (or hard positive) against a hard negative, for pairs with an image;
- an answer of a conversation against its contradiction (`contradictions.py`).

Shuffled negatives give no preference: they are easily detected, or possibly true.

Trainers put an image where a text has ``<image>``, a video at ``<video>``, audio at ``<audio>``: such a mark inside a text
is written with spaces, ``< image >`` (unless it is the place of one of several images), and every row is checked to have as
many marks as images.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError
from pairwright.datasets.exports.contradictions import CaptionEdit, contradict_answer
from pairwright.datasets.exports.writing import (
    find_positive,
    iter_exchanges,
    list_conversations,
    list_negatives,
)
from pairwright.datasets.image_marks import mark_before
from pairwright.datasets.records import IMAGE_TOKEN, TRAINING_ONLY_FORMS
from pairwright.datasets.shards.samples import Sample

CAPTION_QUESTION = "Describe the image in one sentence."

_MEDIA_MARK = re.compile(r"<(image|video|audio)>")
_OTHER_MARK = re.compile(r"<(video|audio)>")


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat for training.

    Attributes:
        id: unique in the export.
        exchanges: questions with their answers; texts have no marks of media, except the places of several images.
        rejected: of a preference, the rejected answer to the last question; else empty.
    """

    id: str
    exchanges: tuple[tuple[str, str], ...]
    rejected: str = ""


def iter_chats(sample: Sample) -> Iterator[Chat]:
    """Yield a chat for each conversation of the sample."""
    for ordinal, annotation in enumerate(list_conversations(sample)):
        marks = _OTHER_MARK if sample.further_images else _MEDIA_MARK
        yield Chat(f"{sample.pair.key}-{ordinal}", _spaced(iter_exchanges(annotation.turns), marks))


def iter_preferences(sample: Sample) -> Iterator[Chat]:
    """Yield the preferences of the sample, without repetitions."""
    seen = set()
    for exchanges, rejected in (*_caption_preferences(sample), *_answer_preferences(sample)):
        said = (exchanges[-1], rejected)
        if said not in seen and rejected != exchanges[-1][1]:
            seen.add(said)
            yield Chat(f"{sample.pair.key}-p{len(seen) - 1}", _spaced(exchanges), _space_marks(rejected))


def list_usable_negatives(sample: Sample) -> list[tuple[str, str, str]]:
    """Return true text, hard negative and type (``replace-object``) for each negative that is no training-only form."""
    return [
        (find_positive(sample, each), each.text, f"{each.form}-{each.target}".strip("-"))
        for each in list_negatives(sample)
        if each.form not in TRAINING_ONLY_FORMS
    ]


def require_marks(row_id: str, marks: int, images: int) -> None:
    """Check that a row has as many image marks as images.

    Raises:
        InputError: if it has not.
    """
    if marks != images:
        raise InputError(
            f"{count_phrase(marks, 'image mark')} for {count_phrase(images, 'image')}",
            where=f"row {row_id}",
            fix="Remove the marks from its texts.",
        )


def mark_images(chat: Chat, images: int) -> list[dict[str, str]]:
    """Return the messages of ``chat`` with a mark for each image: of a single one before the first question.

    Raises:
        InputError: if the marks do not fit the images.
    """
    messages: list[dict[str, str]] = []
    for question, answer in chat.exchanges:
        shown = mark_before(question, images) if images == 1 and not messages else question
        messages += [{"role": "user", "content": shown}, {"role": "assistant", "content": answer}]
    marks = sum(each["content"].count(IMAGE_TOKEN) for each in messages) + chat.rejected.count(IMAGE_TOKEN)
    require_marks(chat.id, marks, images)
    return messages


def _caption_preferences(sample: Sample) -> Iterator[tuple[list[tuple[str, str]], str]]:
    if sample.pair.image:
        for positive, negative, _ in list_usable_negatives(sample):
            yield [(CAPTION_QUESTION, positive)], negative


def _answer_preferences(sample: Sample) -> Iterator[tuple[list[tuple[str, str]], str]]:
    edits = [
        CaptionEdit(each.edits[0], each.source_text, each.target)
        for each in list_negatives(sample)
        if each.form == "replace" and len(each.edits) == 1
    ]
    captions = {sample.pair.caption, *(find_positive(sample, each) for each in list_negatives(sample))}
    for annotation in list_conversations(sample):
        exchanges = list(iter_exchanges(annotation.turns))
        for number, (question, answer) in enumerate(exchanges):
            if answer not in captions:  # whose contradictions are the hard negatives
                for contradiction in contradict_answer(question, answer, edits):
                    yield exchanges[: number + 1], contradiction


def _spaced(exchanges: Iterable[tuple[str, str]], marks: re.Pattern[str] = _MEDIA_MARK) -> tuple[tuple[str, str], ...]:
    return tuple((_space_marks(question, marks), _space_marks(answer, marks)) for question, answer in exchanges)


def _space_marks(text: str, marks: re.Pattern[str] = _MEDIA_MARK) -> str:
    return marks.sub(r"< \1 >", text)
