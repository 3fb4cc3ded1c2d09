"""Chat templates: conversations as text, and where their answers are.

A template with ``{% generation %}`` markers says itself what the model writes. For others an answer is what a conversation
up to it has more than the conversation before it with the generation prompt, without the prompt's own words. Character
spans are mapped to tokens by the tokenizer's offsets and the processor's record of expanded image tokens, as
``return_assistant_tokens_mask`` of transformers does. An end-of-turn token that follows an answer is part of it, so that
the model learns to stop, even where the markers exclude it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers.utils.chat_template_utils import render_jinja_template

from pairwright.datasets.errors import UsageError
from pairwright.datasets.image_marks import count_marks, split_at_marks
from pairwright.datasets.records import IMAGE_TOKEN
from pairwright.datasets.rejects import RejectError

Message = dict[str, Any]
Span = tuple[int, int]
_MARKERS = re.compile(r"\{%-?\s*generation\s*-?%\}")

# LLaVA-1.5's conversation (Vicuna). Written for models joined from parts; the markers include the end token.
LLAVA_TEMPLATE = (
    "{{ bos_token or '' }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ ' ASSISTANT:' }}"
    "{% generation %}{{ ' ' }}{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}{{ eos_token }}{% endgeneration %}"
    "{% elif message['role'] == 'system' %}{% if message['content'] is string %}{{ message['content'] + ' ' }}{% else %}"
    "{{ message['content'][0]['text'] + ' ' }}{% endif %}{% else %}{{ 'USER: ' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ '<image>' }}{% else %}{{ part['text'] }}{% endif %}"
    "{% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}{% endif %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}"
)


def to_messages(
    turns: Sequence[Mapping[str, str]], images: Sequence[Any] = (), *, image_first: bool = True
) -> list[Message]:
    """Return a conversation as messages for ``apply_chat_template``.

    Args:
        turns: with ``role`` (``human`` or ``assistant``) and ``text``, empty for a question that is the image alone; with
            several images, the questions have a mark for each.
        images: of the conversation; a single one belongs to the first question.
        image_first: whether a single image precedes the first question.

    Raises:
        RejectError: image_count_mismatch.
    """
    several, left = len(images) > 1, iter(images)
    marks = count_marks(turn["text"] for turn in turns)
    if several and marks != len(images):
        raise RejectError("image_count_mismatch", f"{IMAGE_TOKEN} occurs {marks} times, for {len(images)} images")
    messages: list[Message] = []
    for turn in turns:
        parts = split_at_marks(turn["text"]) if several else filter(None, [turn["text"]])
        content = [
            {"type": "image", "image": next(left)}
            if several and part == IMAGE_TOKEN
            else {"type": "text", "text": part}
            for part in parts
        ]
        messages.append({"role": "user" if turn["role"] == "human" else turn["role"], "content": content})
    if len(images) == 1:
        first = next(message for message in messages if message["role"] == "user")
        first["content"].insert(0 if image_first else 1, {"type": "image", "image": images[0]})
    return messages


def render(processor: Any, conversation: Sequence[Message]) -> tuple[str, list[Span]]:
    """Return the text of a conversation under the processor's chat template, and the spans of its answers."""
    template = processor.chat_template
    if not template:
        raise UsageError("the model has no chat template: pass --set method.chat_template=FILE.")
    marked = isinstance(template, str) and _MARKERS.search(template) is not None

    def write(messages: Sequence[Message], *, prompt: bool = False) -> tuple[str, list[Span]]:
        texts, spans = cast("Any", render_jinja_template)(
            conversations=[list(messages)],
            chat_template=template,
            add_generation_prompt=prompt,
            return_assistant_tokens_mask=marked,
            **processor.tokenizer.special_tokens_map,
        )
        return texts[0], [tuple(span) for span in spans[0]] if marked else []

    if marked:
        return write(conversation)
    return write(conversation)[0], find_answers(lambda *given, **named: write(*given, **named)[0], conversation)


def find_answers(write: Callable[..., str], conversation: Sequence[Message]) -> list[Span]:
    """Return the character spans of the answers in ``write(conversation)``, with what ends a turn.

    ``write`` returns the text of messages; ``prompt=True`` adds the generation prompt.
    """
    text, spans = write(conversation), []
    for number, message in enumerate(conversation):
        if message["role"] != "assistant":
            continue
        before, after = write(conversation[:number], prompt=True), write(conversation[: number + 1]).rstrip()
        answer = message["content"][0]["text"].strip()
        start = text.find(answer, len(before.rstrip()), len(after))
        if not text.startswith(after) or start < 0:
            raise UsageError(
                "the answers cannot be located in the text that the model's chat template writes. Mark them in the "
                "template with {% generation %} and {% endgeneration %}, and pass --set method.chat_template=FILE."
            )
        spans.append((start, len(after)))
    return spans


def answer_mask(
    offsets: Sequence[Sequence[int]], spans: Sequence[Span], replaced: Sequence[Mapping[str, Any]]
) -> Tensor:
    """Return which tokens overlap the spans, bool (t,).

    ``offsets`` are start and end of each token in the text with expanded image tokens, ``spans`` in the text before,
    and ``replaced`` the processor's record of the expansions: ``span`` before and ``new_span`` after, in order.
    """
    ends = [each["span"][1] for each in replaced]
    gained = [0, *(each["new_span"][1] - each["span"][1] for each in replaced)]
    mask = torch.zeros(len(offsets), dtype=torch.bool)
    places = torch.as_tensor(offsets)
    for span in spans:
        start, end = (place + gained[bisect_right(ends, place)] for place in span)
        mask |= (places[:, 0] < end) & (places[:, 1] > start)
    return mask


def add_stop_tokens(mask: Tensor, ids: Tensor, stops: Collection[int]) -> Tensor:
    """Return the mask (b, t) with the stop tokens that directly follow a span."""
    is_stop = torch.isin(ids, torch.tensor(sorted(stops), dtype=ids.dtype))
    follows = torch.zeros_like(mask)
    follows[:, 1:] = mask[:, :-1]
    return mask | (follows & is_stop)
