"""Batched text generation with a causal language model, with one random generator per row.

Prompts are left-padded; padding is masked. A row's next token is drawn with a number that depends on the row and the step
alone, so the same seed gives the same answer in any batch. Logits, however, are rounded differently in another batch
(about 1e-6 in float32, 1e-2 in bfloat16): a greedy answer may differ where two tokens are that close. The cache keeps the
first one.

Settings of ``generation_config.json`` other than its end tokens (repetition penalties, temperature) are ignored: requests
carry their own.

An attention calibration is passed as a `GenerationContext`: it gets the model and the prompts of the batch, with the
places of their documents, and is active while the batch is generated.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.local.chat_template import RenderedPrompt
from pairwright.generators.llm.local.token_probabilities import (
    TokenProbabilities,
    TokenProbabilityReader,
    TokenProbabilityRequest,
)

# Arguments: model, tokenizer, and the prompts of the batch in order.
GenerationContext = Callable[[Any, Any, Sequence[RenderedPrompt]], AbstractContextManager[object]]

_TAIL = 16  # last tokens searched for a stop text, plus one per character of it


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Prompt and sampling settings.

    Attributes:
        prompt: rendered chat.
        most: maximum tokens of the answer.
        temperature: 0: greedy.
        top_p: draw among the most likely tokens with this total probability, in (0, 1].
        top_k: draw among this many of the most likely tokens; 0: all.
        stops: texts at which the answer ends; not part of it.
        rng_key: seeds the row's random generator: seed, prompt hash and sample index.
        probabilities: log-probabilities to return; None: none.
    """

    prompt: RenderedPrompt
    most: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stops: tuple[str, ...] = ()
    rng_key: tuple[str | int, ...] = ()
    probabilities: TokenProbabilityRequest | None = None


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """Answer: text, ``stop`` or ``length``, number of tokens including an end token, and log-probabilities if requested."""

    text: str
    finish_reason: str
    tokens: int
    probabilities: tuple[TokenProbabilities, ...] | None = None


@dataclass
class _GeneratingRow:
    """Row in generation: its request, random generator, and tokens so far.

    Attributes:
        likely: log-probabilities (vocabulary,) of the next token, where they are requested.
        probabilities: of the tokens so far.
    """

    wanted: GenerationRequest
    tokens: list[int] = field(default_factory=list)
    ended: str = ""
    likely: Any = None
    probabilities: list[TokenProbabilities] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = make_rng("local-model", *self.wanted.rng_key)


class TextGenerator:
    """Generates answers with a model and its tokenizer.

    Args:
        model: causal language model of transformers, on its device.
        tokenizer: of the model.
        processor: of images and texts; None: prompts have no images.
        around: context of each batch.
        halt: once set, ends the current batch at its next token.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        processor: Any = None,
        around: GenerationContext | None = None,
        halt: Event | None = None,
    ) -> None:
        from transformers import GenerationConfig

        settings: Any = GenerationConfig

        self._model, self._tokenizer, self._around = model, tokenizer, around
        self._processor, self._halt = processor, halt or Event()
        self._probabilities = TokenProbabilityReader(tokenizer)
        self._ends = frozenset(_end_tokens(model, tokenizer))
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(self._ends, default=0)
        ends = sorted(self._ends) or None
        model.generation_config = settings(eos_token_id=ends, pad_token_id=self._pad, do_sample=False)

    def write(self, batch: Sequence[GenerationRequest]) -> list[GeneratedText]:
        """Answer all prompts of a batch, in order; either all of them have images or none has."""
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        rows = [_GeneratingRow(wanted) for wanted in batch]
        prompts = [each.prompt for each in batch]
        inputs = self._inputs_with_images(prompts) if prompts[0].images else self._inputs(prompts)
        held = self._around(self._model, self._tokenizer, prompts) if self._around is not None else nullcontext()
        with torch.inference_mode(), held:
            self._model.generate(
                **{name: value.to(self._model.device) for name, value in inputs.items()},
                max_new_tokens=max(each.most for each in batch),
                logits_processor=LogitsProcessorList([_TokenSampler(rows)]),
                stopping_criteria=StoppingCriteriaList([self._stopping(rows)]),
            )
        return [self._written(row) for row in rows]

    def _inputs(self, prompts: Sequence[RenderedPrompt]) -> dict[str, Any]:
        import torch

        longest = max(len(prompt.tokens) for prompt in prompts)
        pads = [longest - len(prompt.tokens) for prompt in prompts]
        ids = [[self._pad] * pad + list(prompt.tokens) for pad, prompt in zip(pads, prompts, strict=True)]
        mask = [[0] * pad + [1] * (longest - pad) for pad in pads]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    def _inputs_with_images(self, prompts: Sequence[RenderedPrompt]) -> dict[str, Any]:
        """Return the inputs as the processor makes them: models differ in how they batch the pixels of images."""
        import torch

        inputs = self._processor(
            text=[prompt.text for prompt in prompts],
            images=[list(prompt.images) for prompt in prompts],
            add_special_tokens=prompts[0].marks,
            return_tensors="pt",
            padding=True,
            padding_side="left",
        )
        # The processor computes in float32; the model may be in bfloat16.
        return {
            name: value.to(self._model.dtype) if torch.is_floating_point(value) else value
            for name, value in inputs.items()
        }

    def _stopping(self, rows: Sequence[_GeneratingRow]) -> Callable[..., Any]:
        import torch

        def stopped(input_ids: Any, scores: Any, **_: Any) -> Any:  # noqa: ARG001 - as generate calls it
            for row, token in zip(rows, input_ids[:, -1].tolist(), strict=True):
                if not row.ended:
                    row.tokens.append(token)
                    if row.wanted.probabilities is not None:
                        row.probabilities.append(self._probabilities.read(row.likely, token, row.wanted.probabilities))
                    row.ended = self._end_of(row)
            halted = self._halt.is_set()
            return torch.tensor([bool(row.ended) or halted for row in rows], device=input_ids.device)

        return stopped

    def _end_of(self, row: _GeneratingRow) -> str:
        if row.tokens[-1] in self._ends:
            return "stop"
        if row.wanted.stops:
            tail = self._text(row.tokens[-_TAIL - max(map(len, row.wanted.stops)) :])
            if any(stop in tail for stop in row.wanted.stops):
                return "stop"
        return "length" if len(row.tokens) >= row.wanted.most else ""

    def _written(self, row: _GeneratingRow) -> GeneratedText:
        tokens = row.tokens[:-1] if row.tokens and row.tokens[-1] in self._ends else row.tokens
        text = self._text(tokens)
        places = [at for stop in row.wanted.stops if (at := text.find(stop)) >= 0]
        given = tuple(row.probabilities) if row.wanted.probabilities is not None else None
        return GeneratedText(text[: min(places, default=len(text))], row.ended or "length", len(row.tokens), given)

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))


class _TokenSampler:
    """Logits processor that draws each row's next token and masks all others; keeps log-probabilities if requested."""

    def __init__(self, rows: Sequence[_GeneratingRow]) -> None:
        self._rows = rows

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002 - as generate calls it
        import torch

        for at, row in enumerate(self._rows):
            if row.wanted.probabilities is not None and not row.ended:
                row.likely = torch.log_softmax(scores[at].to(torch.float64), dim=-1)
            if row.wanted.temperature > 0 and not row.ended:
                token = sample_token(scores[at], row.wanted, row.rng.random())
                scores[at] = float("-inf")
                scores[at, token] = 0.0
        return scores


def sample_token(logits: Any, wanted: GenerationRequest, number: float) -> int:
    """Return the token that a number in [0, 1) draws from logits (vocabulary,), most likely first."""
    import torch

    likely = torch.softmax(logits.to(torch.float64) / wanted.temperature, dim=-1)
    shares, order = torch.sort(likely, descending=True, stable=True)
    if wanted.top_k:
        shares = shares[: wanted.top_k]
    sums = torch.cumsum(shares, 0)
    kept = min(int(torch.searchsorted(sums, sums[-1] * wanted.top_p)) + 1, len(sums))
    place = int(torch.searchsorted(sums[:kept], sums[kept - 1] * number, right=True))
    return int(order[min(place, kept - 1)])


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Return the end tokens of the model's configuration and the tokenizer."""
    found: set[int] = set()
    text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else None
    for source in (getattr(model, "generation_config", None), model.config, text, tokenizer):
        ids = getattr(source, "eos_token_id", None)
        found |= set(ids) if isinstance(ids, list | tuple) else {ids} if ids is not None else set()
    return found
