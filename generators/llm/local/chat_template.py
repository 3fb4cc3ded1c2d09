"""A chat as the one text that a local model reads, by its tokenizer's chat template, and where documents stand in it.

A model without a chat template reads a plain form, and stops where it begins a turn of the user's:

    (the system's text)

    User: Describe the picture.

    Assistant:

A template that takes no system's turn gets its text before the first message of the user.

Documents are marked with two letters that stand nowhere else in the chat, the template is applied, and the marks are
taken out again. So their places are right whatever a template does around messages, and one that changes the text of a
document is noticed.
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

_PRIVATE = range(0xE000, 0xF900)  # letters that Unicode gives no meaning


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """What a local model reads.

    Attributes:
        tokens: ids.
        spans: of the documents; without spans where there are none.
        text: that the tokens stand for.
        letters: of each document ``[start, end)`` in the text.
        marks: whether the tokenizer puts its marks of beginning and end around the text; a chat template has its own.
        stops: texts at which the form itself ends an answer.
    """

    tokens: tuple[int, ...]
    spans: DocumentSpans
    text: str
    letters: tuple[tuple[int, int], ...] = ()
    marks: bool = False
    stops: tuple[str, ...] = ()


def render_prompt(request: Request, tokenizer: Any) -> RenderedPrompt:
    """Return what the model reads for a request.

    Args:
        request: its messages and the places of its documents.
        tokenizer: of transformers.

    Raises:
        Failure: ``unsupported`` for images; ``bad_request`` when the template does not take the chat, or changes the
            text of documents, or the tokenizer tells no offsets for them.
    """
    if any(message.images for message in request.messages):
        raise RequestError("unsupported", "a local model reads texts only, and the request shows an image")
    has_template = getattr(tokenizer, "chat_template", None) is not None
    text, letters = _rendered(request, tokenizer, has_template=has_template)
    is_fast = bool(getattr(tokenizer, "is_fast", False))
    if letters and not is_fast:
        raise RequestError("bad_request", "its tokenizer tells no offsets, so documents have no place in its tokens")
    # A template writes the special tokens itself.
    read = tokenizer(text, add_special_tokens=not has_template, return_offsets_mapping=is_fast)
    offsets = [(int(start), int(end)) for start, end in read["offset_mapping"]] if letters else []
    spans = DocumentSpans.of(letters, offsets) if letters else DocumentSpans((), len(read["input_ids"]))
    stops = () if has_template else (PLAIN_STOP,)
    return RenderedPrompt(tuple(read["input_ids"]), spans, text, tuple(letters), not has_template, stops)


def _rendered(request: Request, tokenizer: Any, *, has_template: bool) -> tuple[str, list[tuple[int, int]]]:
    """Return the text, and of each document its letters ``[start, end)``."""

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
    there = {letter for message in messages for letter in message.text}
    free = (chr(code) for code in _PRIVATE if chr(code) not in there)
    try:
        return next(free), next(free)
    except StopIteration:
        raise RequestError("bad_request", "the messages use all private letters of Unicode") from None


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
            raise RequestError("bad_request", f"the chat template does not take the chat: {error}") from None
    first, second, *rest = messages
    try:
        return _apply_template([replace(second, text=f"{first.text}\n\n{second.text}"), *rest], tokenizer)
    except TemplateError as error:
        raise RequestError("bad_request", f"the chat template does not take the chat: {error}") from None


def _apply_template(messages: Sequence[Message], tokenizer: Any) -> str:
    chat = [{"role": message.role, "content": message.text} for message in messages]
    return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


def _plain(messages: Sequence[Message]) -> str:
    turns = {"system": "", "user": f"{USER} ", "assistant": f"{ASSISTANT} "}
    return "\n\n".join([*(turns[each.role] + each.text for each in messages), ASSISTANT])
