"""A talk whose requests bring documents along: whatever a maker asks about a row, the model reads the same ones with it.

Makers do not know of it. The question is the last message of a request; when it is asked once more with the answer and
what is wrong with it behind it, the documents stay where they were.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pairwright.generators.llm.client.messages import Message, Request
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.documents import Document, with_documents

T = TypeVar("T")


def with_documents_in_step(talk: LLMStep[T], documents: Sequence[Document]) -> LLMStep[T]:
    """Return the talk with the documents in each of its requests; without documents as it is."""
    if not documents:
        return (yield from talk)
    asked: list[tuple[Message, ...]] = []
    try:
        requests = next(talk)
        while True:
            sent = [_insert_documents(request, documents, asked) for request in requests]
            asked += [request.messages for request in requests]
            outcomes = yield sent
            requests = talk.send(outcomes)
    except StopIteration as end:
        result: T = end.value
        return result


def _insert_documents(request: Request, documents: Sequence[Document], asked: Sequence[tuple[Message, ...]]) -> Request:
    """Return the request with documents at its question: the last message of what was asked first."""
    messages = request.messages
    first = min(
        (len(before) for before in asked if len(before) < len(messages) and messages[: len(before)] == before),
        default=len(messages),
    )
    prompt = with_documents(messages, documents, first - 1)
    return replace(request, messages=prompt.messages, documents=prompt.places)
