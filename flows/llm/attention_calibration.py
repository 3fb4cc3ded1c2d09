"""A local teacher whose attention to the captions it was given is calibrated (Found in the middle: 000, chapter 3).

For each prompt with documents the relevance of each is measured first, K + 1 readings of the prompt; then the answer is
written while attention to each document has the share that its relevance asks for. Prompts are measured one by one, so
what one is found to need does not depend on what stands in its batch.

Batches without documents are written as they are.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.local.chat_template import RenderedPrompt
from pairwright.generators.llm.local.model import MAX_BATCH_TOKENS
from pairwright.training.attention.calibration import TEMPERATURE, Calibration, FloatArray, attention_shares

if TYPE_CHECKING:
    from pairwright.training.attention.decoder import DocumentDecoder
    from pairwright.training.attention.hooks import RecordedAttention
    from pairwright.training.attention.prompts import DocumentPrompt

_READ = 8  # readings of a prompt at once, at most


@dataclass(frozen=True, slots=True)
class AttentionCalibration:
    """How a local model's attention is calibrated: linearly, in the last half of its layers.

    Attributes:
        temperature: t of eq. 3.5, above 0; the smaller, the more goes to the most relevant document.

    Raises:
        UsageError: for a temperature that is not above 0.
    """

    temperature: float = TEMPERATURE

    def __post_init__(self) -> None:
        Calibration(temperature=self.temperature)

    @property
    def cache_label(self) -> str:
        """What stands for it in cache keys."""
        return f"calibrated-linear-t{self.temperature!r}-last-half"

    @contextmanager
    def around(
        self, model: Any, tokenizer: Any, prompts: Sequence[RenderedPrompt]
    ) -> "Iterator[RecordedAttention | None]":
        """Hold the calibration while a batch is written, as `local_writing.Around` does.

        Yields:
            What the queries of the latest forward pass attended to; None for prompts without documents.

        Raises:
            Failure: ``context_too_long``: a prompt has no room for the document that bias is measured with.
            UsageError: the model's attention cannot be calibrated.
        """
        if not any(prompt.letters for prompt in prompts):
            yield None
            return
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from pairwright.training.attention.hooks import DocumentLayout, calibrate_attention

        how = Calibration(temperature=self.temperature)
        layouts = [DocumentLayout(prompt.spans.spans, prompt.spans.length) for prompt in prompts]
        found = [_document_relevance(model, tokenizer, prompt, how) for prompt in prompts]
        asked = [
            torch.from_numpy(attention_shares(rel, layout.tokens, how.t))
            for rel, layout in zip(found, layouts, strict=True)
        ]
        side_by_side = pad_sequence(asked, batch_first=True, padding_value=float("-inf"))
        with calibrate_attention(model, layouts, side_by_side, how.first_layer) as seen:
            yield seen


def _document_relevance(model: Any, tokenizer: Any, prompt: RenderedPrompt, how: Calibration) -> FloatArray:
    from pairwright.training.attention.decoder import DocumentDecoder
    from pairwright.training.attention.prompts import DocumentPrompt

    reader = DocumentDecoder(model, tokenizer, batch=max(1, min(_READ, MAX_BATCH_TOKENS // len(prompt.tokens))))
    asked = DocumentPrompt(prompt.text, prompt.letters, prompt.marks)
    _check_room(reader, asked)
    return reader.relevances([asked], how)[0]


def _check_room(reader: "DocumentDecoder", prompt: "DocumentPrompt") -> None:
    """Refuse a prompt that is too long with the dummy in the place of a shorter document."""
    from pairwright.training.attention.prompts import dummy_document, tokenize_prompt

    room = getattr(reader.model.config.get_text_config(), "max_position_embeddings", None)
    dummy = dummy_document(prompt.documents)
    for place in range(len(prompt.spans)):
        tokens = len(tokenize_prompt(prompt.with_dummy(place, dummy), reader.tokenizer).ids)
        if room is not None and tokens > room:
            raise RequestError("context_too_long", f"{tokens:,} tokens to calibrate it, and the model reads {room:,}")
