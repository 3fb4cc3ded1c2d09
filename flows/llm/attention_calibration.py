"""Calibration of a local model's attention to the context in its prompt (Found in the middle).

The relevance of each document is measured first, with K + 1 forward passes per prompt; then the answer is generated with
attention to each document in proportion to its relevance. Prompts are measured one by one, so that the result for a prompt
does not depend on its batch. Batches without documents are generated without calibration.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.local.chat_template import RenderedPrompt
from pairwright.generators.llm.local.model import MAX_BATCH_TOKENS
from pairwright.training.attention.calibration import TEMPERATURE, Calibration, FloatArray

if TYPE_CHECKING:
    from pairwright.training.attention.decoder import DocumentDecoder
    from pairwright.training.attention.hooks import RecordedAttention
    from pairwright.training.attention.prompts import DocumentPrompt

_BATCH = 8  # maximum forward passes of a prompt per batch


@dataclass(frozen=True, slots=True)
class AttentionCalibration:
    """Settings of the calibration: linear, in the last half of the layers.

    Attributes:
        temperature: t of eq. 3.5, above 0; a lower one gives the most relevant document more attention.

    Raises:
        UsageError: the temperature is not above 0.
    """

    temperature: float = TEMPERATURE

    def __post_init__(self) -> None:
        Calibration(temperature=self.temperature)

    @property
    def cache_label(self) -> str:
        """Name of the calibration in cache keys."""
        return f"calibrated-linear-t{self.temperature!r}-last-half"

    @contextmanager
    def around(
        self, model: Any, tokenizer: Any, prompts: Sequence[RenderedPrompt]
    ) -> "Iterator[RecordedAttention | None]":
        """Calibrate the model while a batch is generated (`local.generation`).

        Yields:
            Attention of the queries of the latest forward pass; None for prompts without documents.

        Raises:
            RequestError: ``context_too_long``: the prompt has no room for the document that measures bias.
            UsageError: the attention of the model cannot be calibrated.
        """
        if not any(prompt.letters for prompt in prompts):
            yield None
            return
        from pairwright.training.attention.hooks import calibrate_attention, document_shares
        from pairwright.training.attention.prompts import DocumentPrompt, tokenize_prompt

        if not getattr(tokenizer, "is_fast", False):
            raise RequestError("bad_request", "its tokenizer has no offsets, which calibration requires")
        settings = Calibration(temperature=self.temperature)
        asked = [DocumentPrompt(prompt.text, prompt.letters, prompt.marks) for prompt in prompts]
        layouts = [tokenize_prompt(prompt, tokenizer).layout for prompt in asked]
        found = [
            _document_relevance(model, tokenizer, prompt, layout.length, settings)
            for prompt, layout in zip(asked, layouts, strict=True)
        ]
        with calibrate_attention(model, layouts, document_shares(found, layouts, settings.t)) as seen:
            yield seen


def _document_relevance(
    model: Any, tokenizer: Any, prompt: "DocumentPrompt", tokens: int, settings: Calibration
) -> FloatArray:
    from pairwright.training.attention.decoder import DocumentDecoder

    reader = DocumentDecoder(model, tokenizer, batch=max(1, min(_BATCH, MAX_BATCH_TOKENS // tokens)))
    _check_room(reader, prompt)
    return reader.relevances([prompt], settings)[0]


def _check_room(reader: "DocumentDecoder", prompt: "DocumentPrompt") -> None:
    """Reject a prompt that is too long with the dummy document in place of a shorter one."""
    from pairwright.training.attention.prompts import dummy_document, tokenize_prompt

    room = getattr(reader.model.config.get_text_config(), "max_position_embeddings", None)
    dummy = dummy_document(prompt.documents)
    for place in range(len(prompt.spans)):
        tokens = len(tokenize_prompt(prompt.with_dummy(place, dummy), reader.tokenizer).ids)
        if room is not None and tokens > room:
            raise RequestError(
                "context_too_long", f"{tokens:,} tokens for calibration, but the context of the model is {room:,}"
            )
