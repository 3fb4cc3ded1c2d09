"""Prompts with documents, the question before and after them, and the documents' positions (000, section 3.2).

A prompt is a text with the character range of each document, so that documents can be replaced without other changes,
and their tokens found by the tokenizer's offsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.hooks import DocumentLayout

INSTRUCTION = (
    "Write a high-quality answer for the given question using only the provided search results "
    "(some of which might be irrelevant)."
)
_FILLER = (
    "This is a passage that stands here for its length alone and says nothing about any person, any place or any event "
    "that a question could be about"
)


@dataclass(frozen=True, slots=True)
class DocumentPrompt:
    """A text with documents."""

    text: str  # full prompt
    spans: tuple[tuple[int, int], ...]  # character range ``[start, end)`` of each document; in order, disjoint
    marks: bool = True  # whether the tokenizer adds start and end token; a chat template has its own

    @property
    def documents(self) -> list[str]:
        """Texts of the documents."""
        return [self.text[start:end] for start, end in self.spans]

    def with_dummy(self, position: int, dummy: str) -> "DocumentPrompt":
        """Return the prompt with ``dummy`` in place of the document at ``position``, from 0."""
        first, last = self.spans[position]
        longer = len(dummy) - (last - first)
        spans = [(start + longer * (start > first), end + longer * (start >= first)) for start, end in self.spans]
        return replace(self, text=self.text[:first] + dummy + self.text[last:], spans=tuple(spans))


def question_prompt(question: str, documents: Sequence[str]) -> DocumentPrompt:
    """Return the prompt of section 3.2: instruction, question, numbered documents, question again."""
    text = f"{INSTRUCTION}\n\nQuestion: {question}\n\nSearch results:\n"
    spans = []
    for number, document in enumerate(documents, 1):
        text += f"Document [{number}] "
        spans.append((len(text), len(text) + len(document)))
        text += f"{document}\n"
    return DocumentPrompt(f"{text}\nQuestion: {question}\nAnswer:", tuple(spans))


def as_chat(prompt: DocumentPrompt, tokenizer: Any) -> DocumentPrompt:
    """Return the prompt as a user's turn of a chat; unchanged if the tokenizer has no chat template."""
    if not getattr(tokenizer, "chat_template", None):
        return prompt
    turn = [{"role": "user", "content": prompt.text}]
    text: str = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    at = text.find(prompt.text)
    if at < 0:
        raise UsageError("the chat template changes the text of a turn: documents cannot be located in it.")
    return DocumentPrompt(text, tuple((at + start, at + end) for start, end in prompt.spans), marks=False)


def dummy_document(documents: Sequence[str]) -> str:
    """Return a document without information, as long as the median of ``documents``: attention falls with length."""
    words = max(1, median_low(len(document.split()) for document in documents))
    filler = _FILLER.split()
    return " ".join(filler[place % len(filler)] for place in range(words)).capitalize() + "."


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A tokenized prompt."""

    ids: tuple[int, ...]  # token ids
    layout: DocumentLayout  # token ranges of the documents


def tokenize_prompt(prompt: DocumentPrompt, tokenizer: Any) -> PromptTokens:
    """Return the prompt's tokens, by a fast tokenizer, and the token ranges of its documents.

    A token with a character of a document belongs to it; one with characters of two documents to the first.
    """
    read = tokenizer(prompt.text, add_special_tokens=prompt.marks, return_offsets_mapping=True, verbose=False)
    offsets = [(place, start, end) for place, (start, end) in enumerate(read["offset_mapping"]) if end > start]
    spans: list[tuple[int, int]] = []
    for first, behind in prompt.spans:
        taken = spans[-1][1] if spans else 0
        inside = [place for place, start, end in offsets if place >= taken and start < behind and end > first]
        if not inside:
            raise UsageError(f"document {len(spans) + 1} has no token: {prompt.text[first:behind][:40]!r}")
        spans.append((inside[0], inside[-1] + 1))
    return PromptTokens(tuple(read["input_ids"]), DocumentLayout(tuple(spans), len(read["input_ids"])))
