"""Prompts of local models: a chat rendered by the tokenizer's chat template, with the places of its documents.

Without a chat template the model reads a plain form, and stops at the beginning of a user turn:

    (system text)

    User: Describe the picture.

    Assistant:

A template without a system role gets the system text before the first user message.

Images come before the text of their message. Where the chat template reads lists of parts, they are parts; else the
processor's image token stands for each. The processor replaces it by as many tokens as the image takes.

Documents are enclosed in two characters that do not occur in the chat, the template is applied, and the characters are
removed. The spans are therefore right whatever a template adds, and a template that changes a document is detected.
"""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import decode_image
from pairwright.generators.llm.client.messages import Message, MessageSpan, Request
from pairwright.generators.llm.client.request_errors import RequestError

USER, ASSISTANT = "User:", "Assistant:"
PLAIN_STOP = f"\n{USER}"

_PRIVATE = range(0xE000, 0xF900)  # Unicode's private use area


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Prompt of a local model.

    Attributes:
        tokens: ids.
        text: before tokenisation.
        letters: of each document ``[start, end)`` in the text.
        marks: whether the tokenizer adds special tokens at beginning and end; a chat template writes its own.
        stops: texts at which the plain form ends an answer.
        images: pictures of Pillow, in the order of their tokens.
    """

    tokens: tuple[int, ...]
    text: str
    letters: tuple[tuple[int, int], ...] = ()
    marks: bool = False
    stops: tuple[str, ...] = ()
    images: tuple[Any, ...] = ()


def render_prompt(request: Request, tokenizer: Any, processor: Any = None) -> RenderedPrompt:
    """Return the prompt of a request.

    Args:
        request: with spans of its documents.
        tokenizer: of transformers.
        processor: of transformers, for images; None: the model reads text only.

    Raises:
        UsageError: there is an image, and no processor.
        RequestError: ``unsupported``: images together with documents; ``bad_request``: the template rejects the chat or
            changes a document; ``bad_image``: an image cannot be decoded.
    """
    if any(message.images for message in request.messages):
        return _render_with_images(request, processor)
    has_template = getattr(tokenizer, "chat_template", None) is not None
    text, letters = _rendered(request, tokenizer, has_template=has_template)
    # A template writes special tokens itself.
    tokens = tuple(tokenizer(text, add_special_tokens=not has_template)["input_ids"])
    stops = () if has_template else (PLAIN_STOP,)
    return RenderedPrompt(tokens, text, tuple(letters), not has_template, stops)


def _render_with_images(request: Request, processor: Any) -> RenderedPrompt:
    if processor is None:
        raise UsageError(
            "the local model reads text only: its folder has no vision tower, or no preprocessor_config.json. Use a "
            "vision-language checkpoint, such as Qwen2.5-VL or LLaVA, or send no images."
        )
    if request.documents:
        raise RequestError("unsupported", "local models read images or documents, not both in one request")
    template = getattr(processor, "chat_template", None) or getattr(processor.tokenizer, "chat_template", None)
    images = tuple(_picture(image.data_url()) for message in request.messages for image in message.images)
    if template is not None and "image" in str(template):
        text = _by_template(request.messages, processor, _parts)
    else:
        marked = [
            replace(each, text=f"{processor.image_token * len(each.images)}{each.text}") for each in request.messages
        ]
        text = _plain(marked) if template is None else _by_template(marked, processor.tokenizer)
    read = processor(text=[text], images=[list(images)], add_special_tokens=template is None)
    tokens = tuple(map(int, read["input_ids"][0]))
    stops = () if template is not None else (PLAIN_STOP,)
    return RenderedPrompt(tokens, text, (), template is None, stops, images)


def _picture(url: str) -> Any:
    """Return the picture in a ``data:`` URL.

    Raises:
        UsageError: it is a web address.
    """
    head, found, data = url.partition(";base64,")
    if not (found and head.startswith("data:")):
        raise UsageError("a local model opens no web addresses. Fetch the images first (pairwright fetch).")
    from pairwright.datasets.images.recoding import convert_to_rgb  # imports Pillow

    return convert_to_rgb(decode_image(base64.b64decode(data)))


def _parts(message: Message) -> Any:
    """Return the content of a message as a list of parts; images first, as vision-language models are trained."""
    return [*({"type": "image"} for _ in message.images), {"type": "text", "text": message.text}]


def _rendered(request: Request, tokenizer: Any, *, has_template: bool) -> tuple[str, list[tuple[int, int]]]:
    """Return the text, and the characters ``[start, end)`` of each document."""

    def render(messages: Sequence[Message]) -> str:
        return _by_template(messages, tokenizer) if has_template else _plain(messages)

    text = render(request.messages)
    if not request.documents:
        return text, []
    begin, end = _marks(request.messages)
    marked = render(_marked(request.messages, request.documents, begin, end))
    letters: list[tuple[int, int]] = []
    whole, start = "", 0
    for piece in re.split(f"([{begin}{end}])", marked):
        if piece == begin:
            start = len(whole)
        elif piece == end:
            letters.append((start, len(whole)))
        else:
            whole += piece
    if whole != text or len(letters) != len(request.documents):
        raise RequestError("bad_request", "the chat template changes the text of documents")
    return text, letters


def _marks(messages: Sequence[Message]) -> tuple[str, str]:
    used = {character for message in messages for character in message.text}
    free = (chr(code) for code in _PRIVATE if chr(code) not in used)
    try:
        return next(free), next(free)
    except StopIteration:
        raise RequestError("bad_request", "the messages use all private characters of Unicode") from None


def _marked(messages: Sequence[Message], places: Sequence[MessageSpan], begin: str, end: str) -> list[Message]:
    marked = list(messages)
    for place in sorted(places, key=lambda each: each.start, reverse=True):
        message = marked[place.message]
        text = message.text
        text = f"{text[: place.start]}{begin}{text[place.start : place.end]}{end}{text[place.end :]}"
        marked[place.message] = replace(message, text=text)
    return marked


def _by_template(
    messages: Sequence[Message], tokenizer: Any, content: Callable[[Message], Any] = attrgetter("text")
) -> str:
    from jinja2.exceptions import TemplateError

    try:
        return _apply_template(messages, tokenizer, content)
    except TemplateError as error:
        if messages[0].role != "system" or len(messages) == 1:
            raise RequestError("bad_request", f"the chat template rejects the chat: {error}") from None
    first, second, *rest = messages
    try:
        return _apply_template([replace(second, text=f"{first.text}\n\n{second.text}"), *rest], tokenizer, content)
    except TemplateError as error:
        raise RequestError("bad_request", f"the chat template rejects the chat: {error}") from None


def _apply_template(messages: Sequence[Message], tokenizer: Any, content: Callable[[Message], Any]) -> str:
    chat = [{"role": message.role, "content": content(message)} for message in messages]
    return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


def _plain(messages: Sequence[Message]) -> str:
    turns = {"system": "", "user": f"{USER} ", "assistant": f"{ASSISTANT} "}
    return "\n\n".join([*(turns[each.role] + each.text for each in messages), ASSISTANT])
