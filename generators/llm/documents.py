"""Documents in a prompt: texts for the model to read, with their positions in the prompt.

    prompt = with_documents(messages, [Document("k1", "A cat on a mat."), Document("k2", "A dog.")])

The question comes before the documents and again after them, as in "Found in the middle" (section 3.2 and appendix B.2): a
decoder that reads the question first can look for the answer while it reads. The question is the text of the last user
message. A document is one JSON string, so that its text cannot end itself or be read as an instruction.

Positions are recorded when a document is inserted.

Source: Hsieh, *Effective Model Deployment and Data Curation for Foundation Model Development*, chapter 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message, MessageSpan, Request
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome, relay
from pairwright.generators.prompts.templates import json_for_prompt

T = TypeVar("T")

DOCUMENTS_HEADING = (
    "Other captions from the same collection, the nearest first. They tell of other images and may not fit this one."
)


@dataclass(frozen=True, slots=True)
class Document:
    """A text for the model to read.

    Attributes:
        key: its name, such as the key of a pair.
        text: the text.
        score: similarity to the query; higher is closer.
    """

    key: str
    text: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptWithDocuments:
    """A chat that contains documents.

    Attributes:
        messages: the chat.
        places: span of the text of each document, in order, without its quotes.
    """

    messages: tuple[Message, ...]
    places: tuple[MessageSpan, ...]


def with_documents(
    messages: Sequence[Message], documents: Sequence[Document], at: int | None = None
) -> PromptWithDocuments:
    """Return the chat with documents after the text of the question, and that text again after them.

    Args:
        messages: the chat.
        documents: in the order of the prompt.
        at: index of the message with the question; None: the last.

    Raises:
        UsageError: the message is not the user's, or the text of a document is empty.
    """
    place = len(messages) - 1 if at is None else at
    if not 0 <= place < len(messages) or messages[place].role != "user":
        raise UsageError("documents require a user message as the last message.")
    if not documents:
        return PromptWithDocuments(tuple(messages), ())
    last = messages[place]
    question = last.text.strip()
    text = f"{question}\n\n{DOCUMENTS_HEADING}"
    places: list[MessageSpan] = []
    for number, document in enumerate(documents, 1):
        if not document.text.strip():
            raise UsageError(f"document {document.key} is empty. Remove it.")
        quoted = json_for_prompt(document.text)
        text += f"\nDocument [{number}] {quoted}"
        places.append(MessageSpan(place, len(text) - len(quoted) + 1, len(text) - 1))
    text += f"\n\n{question}"
    asked = (*messages[:place], replace(last, text=text), *messages[place + 1 :])
    return PromptWithDocuments(asked, tuple(places))


def with_documents_in_step(step: LLMStep[T], documents: Sequence[Document]) -> LLMStep[T]:
    """Run a step with the documents in each of its requests, at the question; without documents as it is.

    The question is the last message of a first request; in a repair request the documents stay at their place.
    """
    asked: list[tuple[Message, ...]] = []

    def send(requests: Sequence[Request]) -> LLMStep[Sequence[RequestOutcome]]:
        sent = [_insert_documents(request, documents, asked) for request in requests]
        asked.extend(request.messages for request in requests)
        return (yield sent)

    return relay(step, send) if documents else step


def _insert_documents(request: Request, documents: Sequence[Document], asked: Sequence[tuple[Message, ...]]) -> Request:
    """Return the request with documents at its question: the last message of the first request."""
    messages = request.messages
    first = min(
        (len(before) for before in asked if len(before) < len(messages) and messages[: len(before)] == before),
        default=len(messages),
    )
    prompt = with_documents(messages, documents, first - 1)
    return replace(request, messages=prompt.messages, documents=prompt.places)
