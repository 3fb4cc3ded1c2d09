"""Answers of a LLaVA to questions about images, for a judge (LLaVA-Bench; `filters.metrics.answer_judging`).

Prompts as in training: ``USER: <image> question ASSISTANT: ``, the image before the question.
"""

from collections.abc import Sequence

import torch

from pairwright.filters.metrics.answer_judging import ImageQuestion
from pairwright.training.evaluation.evaluated_models import OpenedModel
from pairwright.training.evaluation.images import image_batches
from pairwright.training.loading.conversations import ConversationTemplate
from pairwright.training.loading.tokenization import TextOptions, load_tokenizer, pad_rows, padding_id
from pairwright.training.models.llava import IMAGE_TOKEN, Llava, tokenizer_path


def generate_answers(
    subject: OpenedModel,
    questions: Sequence[ImageQuestion],
    *,
    batch: int = 8,
    longest: int = 512,
    style: ConversationTemplate | None = None,
) -> list[str]:
    """Return one answer per question, in order.

    Args:
        subject: a LLaVA.
        questions: with their images.
        batch: questions per batch.
        longest: maximum tokens per answer.
        style: template of the turns.
    """
    model = subject.model
    assert isinstance(model, Llava)  # checked by tasks.py
    options = TextOptions(tokenizer_path(subject.named.folder), 2**16)
    tokenizer = load_tokenizer(options.tokenizer)
    device = next(model.parameters()).device
    pictures = [question.image for question in questions]
    shown = image_batches(pictures, model.pixels, batch, device, tiles=model.connection.tiles)
    answers: list[str] = []
    for place, images in enumerate(shown):
        now = questions[place * batch : (place + 1) * batch]
        texts, mask = pad_rows(
            [_question_tokens(tokenizer, question.text, style or ConversationTemplate()) for question in now],
            padding_id(options),
        )
        with torch.inference_mode():
            found = model.answer(texts.to(device), mask.to(device), images.pixels, most=longest, grids=images.grids)
        answers += [text.strip() for text in tokenizer.batch_decode(found, skip_special_tokens=True)]
    return answers


def _question_tokens(tokenizer: object, question: str, style: ConversationTemplate) -> list[int]:
    def tokens(text: str) -> list[int]:
        found: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]  # type: ignore[operator]
        return found

    begin = getattr(tokenizer, "bos_token_id", None)
    head = ([] if begin is None else [begin]) + tokens(style.system) + tokens(style.human)
    return [*head, IMAGE_TOKEN, *tokens(question), *tokens(style.assistant)]
