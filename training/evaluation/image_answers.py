"""Answers of an image-text-to-text model to questions about images, for a judge (`filters.metrics.answer_judging`).

Prompts are the model's own: its processor and chat template, the image before the question.
"""

from collections.abc import Sequence

import torch

from pairwright.datasets.images.loading import decode_image
from pairwright.datasets.progress import track
from pairwright.filters.evaluation.crops import open_cropped
from pairwright.filters.metrics.answer_judging import ImageQuestion
from pairwright.training.evaluation.evaluated_models import EvaluatedModel
from pairwright.training.models.generative import ImageTextModel


def generate_answers(
    subject: EvaluatedModel, questions: Sequence[ImageQuestion], *, batch: int = 8, longest: int = 512
) -> list[str]:
    """Return one answer of at most ``longest`` tokens per question, in order."""
    model = subject.model
    assert isinstance(model, ImageTextModel)  # checked by tasks.py
    device = next(model.parameters()).device
    answers: list[str] = []
    for start in track(range(0, len(questions), batch), "answering", unit="batches"):
        conversations = []
        for question in questions[start : start + batch]:
            image = decode_image(open_cropped(question.image), question.image).convert("RGB")
            content = [{"type": "image", "image": image}, {"type": "text", "text": question.text}]
            conversations.append([{"role": "user", "content": content}])
        inputs = model.processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True, "padding_side": "left"},
        ).to(device)
        with torch.inference_mode():
            found = model.answer(dict(inputs), most=longest)
        new = found[:, inputs["input_ids"].shape[1] :]
        answers += [text.strip() for text in model.processor.tokenizer.batch_decode(new, skip_special_tokens=True)]
    return answers
