"""Answers of a causal language model to several prompts at once, each with chance of its own.

Prompts stand side by side with padding before the shorter ones, which no token attends to. A row's next token is drawn
by a number that belongs to the row and the step alone, so the same seed gives the same answer in whatever batch the
row stands. Logits, though, come out of matrix products that round differently for another batch (about 1e-6 in
float32, 1e-2 in bfloat16): where two tokens are as likely as that, a greedy answer may still differ. The cache keeps
the first.

What the folder's ``generation_config.json`` asks for beside its end tokens (repetition penalties, its own temperature)
is left out: a request says how it is to be answered.

A calibration of attention comes in as `Around`: it is given the model and the prompts of the batch, with the places of
their documents, and holds while the batch is written.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.local.chat_template import RenderedPrompt

# The transformers model, its tokenizer, and the prompts of the batch's rows, in their order.
GenerationContext = Callable[[Any, Any, Sequence[RenderedPrompt]], AbstractContextManager[object]]

_TAIL = 16  # tokens behind which a stop text is looked for, beside those that its letters may take


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """How a prompt is to be answered.

    Attributes:
        prompt: what is read.
        most: tokens of the answer, at most.
        temperature: 0: always the likeliest token.
        top_p: draw among the likeliest tokens that have so much of the probability together, in (0, 1].
        top_k: draw among so many of the likeliest; 0: all.
        stops: texts at which the answer ends; they are no part of it.
        chance: names the row's chance, such as its seed, prompt and sample.
    """

    prompt: RenderedPrompt
    most: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stops: tuple[str, ...] = ()
    chance: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """An answer: its text, ``stop`` or ``length``, and its tokens, an end token counted in."""

    text: str
    finish_reason: str
    tokens: int


@dataclass
class _GeneratingRow:
    """A row under way: what it wants, its chance, and its tokens so far."""

    wanted: GenerationRequest
    tokens: list[int] = field(default_factory=list)
    ended: str = ""

    def __post_init__(self) -> None:
        self.chance = make_rng("local-model", *self.wanted.chance)


class TextGenerator:
    """Writes answers by a model and its tokenizer.

    Args:
        model: a causal language model of transformers, on its device.
        tokenizer: of the model.
        around: holds while a batch is written.
        halt: once set, ends the batch under way at its next token.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, around: GenerationContext | None = None, halt: Event | None = None
    ) -> None:
        from transformers import GenerationConfig

        settings: Any = GenerationConfig

        self._model, self._tokenizer, self._around = model, tokenizer, around
        self._halt = halt or Event()
        self._ends = frozenset(_end_tokens(model, tokenizer))
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(self._ends, default=0)
        ends = sorted(self._ends) or None
        model.generation_config = settings(eos_token_id=ends, pad_token_id=self._pad, do_sample=False)

    def write(self, batch: Sequence[GenerationRequest]) -> list[GeneratedText]:
        """Answer all prompts of a batch; in their order."""
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        rows = [_GeneratingRow(wanted) for wanted in batch]
        prompts = [each.prompt for each in batch]
        longest = max(len(prompt.tokens) for prompt in prompts)
        pads = [longest - len(prompt.tokens) for prompt in prompts]
        ids = torch.tensor([[self._pad] * pad + list(prompt.tokens) for pad, prompt in zip(pads, prompts, strict=True)])
        mask = torch.tensor([[0] * pad + [1] * (longest - pad) for pad in pads])
        ids, mask = ids.to(self._model.device), mask.to(self._model.device)
        held = self._around(self._model, self._tokenizer, prompts) if self._around is not None else nullcontext()
        with torch.inference_mode(), held:
            self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=max(each.most for each in batch),
                logits_processor=LogitsProcessorList([_TokenSampler(rows)]),
                stopping_criteria=StoppingCriteriaList([self._stopping(rows)]),
            )
        return [self._written(row) for row in rows]

    def _stopping(self, rows: Sequence[_GeneratingRow]) -> Callable[..., Any]:
        import torch

        def stopped(input_ids: Any, scores: Any, **_: Any) -> Any:  # noqa: ARG001 - as generate calls it
            for row, token in zip(rows, input_ids[:, -1].tolist(), strict=True):
                if not row.ended:
                    row.tokens.append(token)
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
        return GeneratedText(text[: min(places, default=len(text))], row.ended or "length", len(row.tokens))

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))


class _TokenSampler:
    """Draws each row's next token; leaves it as the only one that `generate` can choose."""

    def __init__(self, rows: Sequence[_GeneratingRow]) -> None:
        self._rows = rows

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002 - as generate calls it
        for at, row in enumerate(self._rows):
            if row.wanted.temperature > 0 and not row.ended:
                token = sample_token(scores[at], row.wanted, row.chance.random())
                scores[at] = float("-inf")
                scores[at, token] = 0.0
        return scores


def sample_token(logits: Any, wanted: GenerationRequest, number: float) -> int:
    """Return the token that a number in [0, 1) draws from logits (vocabulary,), the likeliest first."""
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
    """Return the tokens that end an answer, by the model's own settings and the tokenizer's."""
    found: set[int] = set()
    for source in (getattr(model, "generation_config", None), model.config, tokenizer):
        given = getattr(source, "eos_token_id", None)
        found |= set(given) if isinstance(given, list | tuple) else {given} if given is not None else set()
    return found
