"""Prompts of local models: a chat rendered by the tokenizer's chat template, with the spans of its documents.

Without a chat template the model reads a plain form, and stops at the beginning of a user turn:

    (system text)

    User: Describe the picture.

    Assistant:

A template without a system role gets the system text before the first user message.

Documents are enclosed in two characters that do not occur in the chat, the template is applied, and the characters are
removed. The spans are therefore right whatever a template adds, and a template that changes a document is detected.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pairwright.generators.llm.client.messages import Message, MessageSpan, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.documents import DocumentSpans

USER, ASSISTANT = "User:", "Assistant:"
PLAIN_STOP = f"\n{USER}"

_PRIVATE = range(0xE000, 0xF900)  # Unicode's private use area


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Prompt of a local model.

    Attributes:
        tokens: ids.
        spans: of the documents, possibly empty.
        text: before tokenisation.
        letters: of each document ``[start, end)`` in the text.
        marks: whether the tokenizer adds special tokens at beginning and end; a chat template writes its own.
        stops: texts at which the plain form ends an answer.
    """

    tokens: tuple[int, ...]
    spans: DocumentSpans
    text: str
    letters: tuple[tuple[int, int], ...] = ()
    marks: bool = False
    stops: tuple[str, ...] = ()


def render_prompt(request: Request, tokenizer: Any) -> RenderedPrompt:
    """Return the prompt of a request.

    Args:
        request: with spans of its documents.
        tokenizer: of transformers.

    Raises:
        RequestError: ``unsupported``: images; ``bad_request``: the template rejects the chat or changes a document, or the
            tokenizer has no offsets for documents.
    """
    if any(message.images for message in request.messages):
        raise RequestError("unsupported", "local models accept text only, and the request has an image")
    has_template = getattr(tokenizer, "chat_template", None) is not None
    text, letters = _rendered(request, tokenizer, has_template=has_template)
    is_fast = bool(getattr(tokenizer, "is_fast", False))
    if letters and not is_fast:
        raise RequestError("bad_request", "its tokenizer has no offsets, which documents require")
    # A template writes special tokens itself.
    read = tokenizer(text, add_special_tokens=not has_template, return_offsets_mapping=is_fast)
    offsets = [(int(start), int(end)) for start, end in read["offset_mapping"]] if letters else []
    spans = DocumentSpans.of(letters, offsets) if letters else DocumentSpans((), len(read["input_ids"]))
    stops = () if has_template else (PLAIN_STOP,)
    return RenderedPrompt(tuple(read["input_ids"]), spans, text, tuple(letters), not has_template, stops)


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


def _by_template(messages: Sequence[Message], tokenizer: Any) -> str:
    from jinja2.exceptions import TemplateError

    try:
        return _apply_template(messages, tokenizer)
    except TemplateError as error:
        if messages[0].role != "system" or len(messages) == 1:
            raise RequestError("bad_request", f"the chat template rejects the chat: {error}") from None
    first, second, *rest = messages
    try:
        return _apply_template([replace(second, text=f"{first.text}\n\n{second.text}"), *rest], tokenizer)
    except TemplateError as error:
        raise RequestError("bad_request", f"the chat template rejects the chat: {error}") from None


def _apply_template(messages: Sequence[Message], tokenizer: Any) -> str:
    chat = [{"role": message.role, "content": message.text} for message in messages]
    return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


def _plain(messages: Sequence[Message]) -> str:
    turns = {"system": "", "user": f"{USER} ", "assistant": f"{ASSISTANT} "}
    return "\n\n".join([*(turns[each.role] + each.text for each in messages), ASSISTANT])
