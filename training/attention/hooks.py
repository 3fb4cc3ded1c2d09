"""Recording and rescaling of a decoder's attention to documents (000, eq. 3.5 and 3.6).

`record_attention` and `calibrate_attention` register an attention function with transformers for the duration of a
block. It is transformers' ``sdpa`` for all queries but those that predict the answer: the last token of the prompt and
all later ones. Only their probabilities are materialized, so memory is linear in the length of the prompt.

Rescaling, for each of those queries and each head of the later layers: a document's mean attention per token becomes
proportional to its share, ``Attn(x_k) = alpha_k * C``, with C such that the total attention on documents is unchanged.
Proportions within a document and attention outside documents are unchanged too. Computation is on log probabilities, so
documents with attention below the range of a float are covered; documents outside a sliding window get nothing.

Limits: decoders whose layers use the registry with ``position_ids`` (such as Llama, Mistral, Qwen 2 and 3); growing
key-value caches, not static ones; no beams; one model at a time per thread.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.calibration import FloatArray, attention_shares

NAME = "pairwright_documents"
_MASKED = -1e4  # log attention below this means that a token was masked


@dataclass(frozen=True, slots=True)
class DocumentLayout:
    """Token positions of the documents of a prompt."""

    # Token range ``[first, end)`` of each document, from 0; in order, disjoint, not empty
    spans: tuple[tuple[int, int], ...]
    length: int  # tokens of the whole prompt without padding

    def __post_init__(self) -> None:
        ends = [0, *(place for span in self.spans for place in span), self.length]
        if not self.spans:
            raise UsageError("the prompt has no documents")
        if ends != sorted(ends) or any(first >= end for first, end in self.spans):
            raise UsageError(
                f"documents at tokens {list(self.spans)} of {self.length}: ranges must be in order, disjoint and not empty."
            )

    @property
    def tokens(self) -> tuple[int, ...]:
        """Number of tokens of each document."""
        return tuple(end - first for first, end in self.spans)


@dataclass
class RecordedAttention:
    """Attention of the queries that predict the next token, in the latest forward pass."""

    layouts: Sequence[DocumentLayout]  # one per row of the batch
    # By layer, float32 (batch, heads, documents): attention summed over a document's tokens; 0 after the last document
    # of a row
    masses: dict[int, Tensor] = field(default_factory=dict)

    def attention(self, first_layer: int = 0) -> Tensor:
        """Return Attn(x, k), float32 (batch, documents): the mean over tokens, heads and layers from ``first_layer`` (3.2.1)."""
        counted = [mass for layer, mass in self.masses.items() if layer >= first_layer]
        mass = torch.stack(counted).mean(dim=(0, 2))
        counts = [torch.tensor(layout.tokens, device=mass.device) for layout in self.layouts]
        return mass / pad_sequence(counts, batch_first=True, padding_value=1)


def document_shares(relevances: Sequence[FloatArray], layouts: Sequence[DocumentLayout], temperature: float) -> Tensor:
    """Return `attention_shares` of several prompts, float64 (batch, documents), minus infinity for missing ones."""
    shares = [
        torch.from_numpy(attention_shares(own, layout.tokens, temperature))
        for own, layout in zip(relevances, layouts, strict=True)
    ]
    return pad_sequence(shares, batch_first=True, padding_value=-math.inf)


def rescale_attention(log_attention: Tensor, document: Tensor, shares: Tensor) -> Tensor:
    """Return attention with its part on documents redistributed by shares, of the same shape and sum.

    Args:
        log_attention: float (batch, heads, queries, keys), log probabilities.
        document: int64 (batch, keys): index of the document that a key belongs to; the number of documents for none.
        shares: float (batch, documents), log shares of the attention on all documents; minus infinity for missing ones.
    """
    asked = shares[:, None, None]
    mass = _log_masses(log_attention, document, shares.shape[1])[..., :-1]
    total = mass.masked_fill(mass <= _MASKED, -math.inf).logsumexp(-1, keepdim=True)
    seen = (mass > _MASKED) & asked.isfinite()
    wanted = total + asked.masked_fill(~seen, -math.inf).log_softmax(-1)
    change = functional.pad(torch.where(seen, wanted - mass, 0.0), (0, 1))  # none outside documents
    return log_attention + change.gather(-1, document[:, None, None].expand_as(log_attention))


@contextmanager
def record_attention(model: PreTrainedModel, layouts: Sequence[DocumentLayout]) -> Iterator[RecordedAttention]:
    """Record the attention of the last query of each forward pass in this block; outputs are unchanged.

    ``layouts`` are those of the batch's rows; shorter prompts are padded on the left, with an attention mask.
    """
    with _install_hooks(model, _HookState(layouts)) as seen:
        yield seen


@contextmanager
def calibrate_attention(
    model: PreTrainedModel, layouts: Sequence[DocumentLayout], shares: Tensor
) -> Iterator[RecordedAttention]:
    """Rescale the attention of all queries from the prompt's last token on, in the last half of the layers (appendix B.2).

    ``layouts`` are those of the batch's rows, padded on the left; ``shares`` float (batch, documents), of `document_shares`.
    """
    if shares.shape != (len(layouts), max(len(layout.spans) for layout in layouts)):
        raise UsageError(f"shares of shape {tuple(shares.shape)} for {len(layouts)} prompts")
    first_layer = model.config.get_text_config().num_hidden_layers // 2
    state = _HookState(layouts, shares=shares.to(model.device, torch.float32), first_layer=first_layer)
    with _install_hooks(model, state) as seen:
        yield seen


@dataclass
class _HookState(RecordedAttention):
    shares: Tensor | None = None
    first_layer: int = 0
    positions: Tensor | None = None  # of the queries of the latest forward pass
    places: dict[int, Tensor] = field(default_factory=dict)  # result of `document` by number of keys
    queries: int = 0  # last queries of the latest forward pass that predict the answer

    def begin(self, positions: Tensor, mask: Tensor | None) -> None:
        """Count the queries that predict the answer; once per forward pass, as it waits for the device."""
        if positions is self.positions:
            return
        if mask is not None and mask.dtype == torch.bool and not bool(mask[..., -1, -1].all()):
            raise UsageError(
                "the last key is masked for the last query: calibration requires a growing key-value cache."
            )
        self.positions, self.places = positions, {}
        rows, columns = positions.shape
        if rows not in (1, len(self.layouts)):
            raise UsageError(f"{rows} rows for {len(self.layouts)} prompts: beams and repeated rows are not supported.")
        # Rows are padded on the left, so all prompts end in the same column.
        behind = int(positions[0, -1]) - self.layouts[0].length + 1
        self.queries = max(0, min(columns, behind + 1))

    def document(self, keys: int) -> Tensor:
        """Return the document of each key, int64 (batch, keys); the number of documents for none."""
        if keys not in self.places:
            assert self.positions is not None  # begin() comes first
            positions = self.positions[:, -1:] - torch.arange(keys - 1, -1, -1, device=self.positions.device)
            spans = [torch.tensor(layout.spans, device=positions.device) for layout in self.layouts]
            first, end = pad_sequence(spans, batch_first=True)[:, None].unbind(-1)  # missing documents are empty
            inside = (positions[..., None] >= first) & (positions[..., None] < end)
            self.places[keys] = torch.where(inside.any(-1), inside.int().argmax(-1), inside.shape[-1])
        return self.places[keys]


_HOOK_STATE: ContextVar[_HookState | None] = ContextVar("pairwright_watch", default=None)


@contextmanager
def _install_hooks(model: PreTrainedModel, state: _HookState) -> Iterator[RecordedAttention]:
    before = model.config._attn_implementation  # noqa: SLF001 - no public name
    if _HOOK_STATE.get() is not None:
        raise UsageError("attention is already recorded or calibrated: leave that block first")
    settable = getattr(model, "_can_set_attn_implementation", None)  # setting it anyway would only warn
    if settable is not None and not settable():
        raise UsageError(_unsupported_model(model))
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    token = _HOOK_STATE.set(state)
    try:
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:  # noqa: SLF001 - as above
            raise UsageError(_unsupported_model(model))
        yield state
        if not state.masses:
            raise UsageError(_unsupported_model(model))
    finally:
        _HOOK_STATE.reset(token)
        model.set_attn_implementation(before)


def _unsupported_model(model: PreTrainedModel) -> str:
    name = type(model).__name__
    return f"{name} does not use transformers' attention registry, or ran no layer. Use a Llama, Mistral or Qwen."


def _attend(  # noqa: PLR0913, PLR0917 - the signature that transformers calls
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute ``sdpa`` attention, with explicit probabilities for the recorded queries."""
    if any(kwargs.get(name) is not None for name in ("softcap", "s_aux")) or kwargs.get("position_ids") is None:
        raise UsageError(
            "attention with soft caps, sinks or without position_ids is not supported. Use a Llama, Mistral or Qwen."
        )
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **kwargs)
    state, layer = _HOOK_STATE.get(), getattr(module, "layer_idx", None)
    if state is None or layer is None:
        return output, None
    state.begin(kwargs["position_ids"], attention_mask)
    rescale = state.shares is not None and layer >= state.first_layer and state.queries > 0
    count = state.queries if rescale else 1
    log_attention = _log_attention(query[:, :, -count:], key, attention_mask, scaling)
    document = state.document(key.shape[2]).expand(query.shape[0], -1)
    if rescale:
        assert state.shares is not None  # as just seen
        log_attention = rescale_attention(log_attention, document, state.shares)
        attention = log_attention.exp().to(value.dtype)
        grouped = attention.view(len(attention), value.shape[1], -1, *attention.shape[2:])
        rescaled = torch.einsum("bgnqk,bgkd->bqgnd", grouped, value).flatten(2, 3)
        output = torch.cat([output[:, :-count], rescaled], dim=1)
    documents = max(len(layout.spans) for layout in state.layouts)
    state.masses[layer] = _log_masses(log_attention[:, :, -1:], document, documents)[:, :, 0, :-1].exp()
    return output, None


def _log_attention(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    """Return the log attention of the last queries, float32 (batch, heads, queries, keys)."""
    batch, heads, count, width = query.shape
    grouped = query.float().view(batch, key.shape[1], -1, count, width)
    logits = torch.einsum("bgnqd,bgkd->bgnqk", grouped, key.float()).reshape(batch, heads, count, key.shape[2])
    logits = logits * (width**-0.5 if scaling is None else scaling)
    least = torch.finfo(torch.float32).min
    if mask is None:
        back = torch.arange(count - 1, -1, -1, device=query.device)[:, None]
        ahead = torch.arange(key.shape[2], device=query.device) > key.shape[2] - 1 - back
        logits = logits.masked_fill(ahead, least)
    elif mask.dtype == torch.bool:
        logits = logits.masked_fill(~mask[:, :, -count:], least)
    else:
        logits = logits + mask[:, :, -count:].float()
    return logits.log_softmax(-1)


def _log_masses(log_attention: Tensor, document: Tensor, documents: int) -> Tensor:
    """Return log attention summed over each document's keys, and last over all other keys."""
    index = document[:, None, None].expand_as(log_attention)
    shape = (*log_attention.shape[:-1], documents + 1)
    most = log_attention.new_full(shape, torch.finfo(log_attention.dtype).min)
    most = most.scatter_reduce(-1, index, log_attention, "amax")
    found = torch.zeros_like(most).scatter_add(-1, index, (log_attention - most.gather(-1, index)).exp())
    return torch.where(found > 0, most + found.log(), torch.full_like(most, -math.inf))
