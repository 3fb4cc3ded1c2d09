"""Texts that a model is given to read, where they stand in its prompt, and where in its tokens.

    prompt = with_documents(messages, [Document("k1", "A cat on a mat."), Document("k2", "A dog.")])

The question stands before the documents and again behind them, as in "Found in the middle" (section 3.2 and appendix
B.2): a decoder that reads the question first can look for its answer while it reads. The question is the text of the
last message of the user. A document is written as one JSON string, so its text cannot end itself and is never an
instruction.

Places are known, not sought: whoever puts a document into a text notes where, and a tokenizer tells for each of its
tokens which letters it stands for (`DocumentSpans.of`).

Source: seeds/000, chapter 3 (Found in the middle).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message, MessageSpan
from pairwright.generators.prompts.templates import json_for_prompt

DOCUMENTS_HEADING = (
    "Other captions from the same collection, the nearest first. They tell of other images and may not fit this one."
)


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be read.

    Attributes:
        key: names it, such as a pair's key.
        text: what is read.
        score: how near it is to what was looked for, as the index has it; higher is nearer.
    """

    key: str
    text: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptWithDocuments:
    """A chat with documents in it.

    Attributes:
        messages: the chat.
        documents: in the order in which they stand.
        places: where the text of each stands (its quotes left out), as many as documents.
    """

    messages: tuple[Message, ...]
    documents: tuple[Document, ...]
    places: tuple[MessageSpan, ...]


@dataclass(frozen=True, slots=True)
class DocumentSpans:
    """Which tokens of a prompt belong to which document.

    Attributes:
        spans: of each document, first token and the one behind its last, ``[first, end)``, from 0; in order, disjoint.
        length: tokens of the whole prompt.
    """

    spans: tuple[tuple[int, int], ...]
    length: int

    @classmethod
    def of(cls, letters: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]) -> Self:
        """Return the tokens that stand for some letters.

        A token that holds a letter of a document and one outside of it belongs to the document; one that holds letters
        of two belongs to the first.

        Args:
            letters: of each document ``[start, end)`` in the prompt's text; in order, disjoint.
            offsets: of each token ``[start, end)`` in the same text, as a tokenizer's offset mapping has it; an empty
                one is a token that stands for no letter.

        Raises:
            UsageError: a document has no token: it is empty, or the tokenizer gives no offsets for it.
        """
        spans: list[tuple[int, int]] = []
        behind = 0
        for start, end in letters:
            own = [at for at, (first, last) in enumerate(offsets) if first < end and last > start and first < last]
            own = [at for at in own if at >= behind]
            if not own:
                raise UsageError(f"document {len(spans) + 1} of {len(letters)} has no token. Leave empty texts out.")
            behind = own[-1] + 1
            spans.append((own[0], behind))
        return cls(tuple(spans), len(offsets))

    def moved(self, by: int) -> "DocumentSpans":
        """Return the spans with ``by`` tokens of padding before the prompt."""
        return replace(self, spans=tuple((a + by, b + by) for a, b in self.spans), length=self.length + by)


def with_documents(
    messages: Sequence[Message], documents: Sequence[Document], at: int | None = None
) -> PromptWithDocuments:
    """Return the chat with documents behind the text of the question, and that text once more behind them.

    Args:
        messages: the chat.
        documents: in the order in which they are to stand.
        at: the number of the question's message; None: the last.

    Raises:
        UsageError: the message is not the user's, or a document's text is empty.
    """
    place = len(messages) - 1 if at is None else at
    if not 0 <= place < len(messages) or messages[place].role != "user":
        raise UsageError("documents are put into the user's message, which has to be the last.")
    if not documents:
        return PromptWithDocuments(tuple(messages), (), ())
    last = messages[place]
    question = last.text.strip()
    text = f"{question}\n\n{DOCUMENTS_HEADING}"
    places: list[MessageSpan] = []
    for number, document in enumerate(documents, 1):
        if not document.text.strip():
            raise UsageError(f"document {document.key} is empty. Leave it out.")
        quoted = json_for_prompt(document.text)
        text += f"\nDocument [{number}] {quoted}"
        places.append(MessageSpan(place, len(text) - len(quoted) + 1, len(text) - 1))
    text += f"\n\n{question}"
    asked = (*messages[:place], replace(last, text=text), *messages[place + 1 :])
    return PromptWithDocuments(asked, tuple(documents), tuple(places))
