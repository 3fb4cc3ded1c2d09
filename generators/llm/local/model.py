"""A causal language model of transformers behind the same seam as servers: a `Client` that a session opens.

    folder = find_local("local:models/small")
    with Session(local_settings(folder), cache=Path("llm-cache.sqlite"), opened=in_local(folder)) as session:
        ...

Requests that wait are answered in batches: the one that has waited longest, and with it those of the most similar
length, as many as `MAX_BATCH_TOKENS` allow and at most ``max_concurrency``. A batch that the device's memory cannot hold, or
that one of its rows makes impossible, is cut in two. One thread writes; the event loop stays free.

Parameters that a request may have are those of `SUPPORTED_PARAMETERS`. Where it says nothing: temperature 1, as servers do, and
at most `DEFAULT_MAX_TOKENS` tokens. Without a seed the seed is 0: an answer depends on seed, prompt and sample number alone.
Nothing holds the model to a schema; it is told in words, and the answer is read as any other.

The device is a CUDA GPU where torch finds one, in the precision that the weights are stored in; else the CPU, in
float32. Not covered: several GPUs, quantised weights, images.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from threading import Event
from typing import Any

import orjson

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import suggest_alternatives
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.chat_completions import parse_reply
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.response_formats import apply_response_format
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.local.chat_template import render_prompt
from pairwright.generators.llm.local.folder import LocalFolder
from pairwright.generators.llm.local.generation import (
    GeneratedText,
    GenerationContext,
    GenerationRequest,
    TextGenerator,
)
from pairwright.indexes.encoders.checkpoints import quiet_transformers, translate_load_errors

SUPPORTED_PARAMETERS = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed")
DEFAULT_MAX_TOKENS = 1024  # tokens of an answer, where a request does not say
MAX_BATCH_TOKENS = 32_768  # of a batch, prompts and longest answers with their padding
BATCH_DELAY_S = 0.005  # for which requests are gathered before a batch
UNLIMITED_CONTEXT = 1_000_000  # tokens, where the model's configuration does not say


def local_settings(folder: LocalFolder, *, max_concurrency: int = 64, cache_label: str = "") -> LLMSettings:
    """Return the settings of a session with a local model.

    Args:
        folder: the model.
        max_concurrency: rows of a batch, at most.
        cache_label: what else shapes its answers (a calibration); it becomes a part of the cache keys.
    """
    endpoint = f"local:{folder.fingerprint}{f'+{cache_label}' if cache_label else ''}"
    return LLMSettings(model=folder.name, endpoint=endpoint, max_concurrency=max_concurrency)


def local_client(
    folder: LocalFolder, *, around: GenerationContext | None = None
) -> Callable[[LLMSettings, Cache], AbstractAsyncContextManager["LocalModel"]]:
    """Return what opens the model for a session; ``around`` holds while a batch is written (`local_writing`)."""

    @asynccontextmanager
    async def opened(settings: LLMSettings, cache: Cache) -> AsyncIterator[LocalModel]:  # noqa: ARG001 - as sessions call it
        model = LocalModel.open(folder, around=around, most_rows=settings.max_concurrency)
        try:
            yield model
        finally:
            await model.close()

    return opened


@dataclass(slots=True)
class _PendingRequest:
    """A request that waits for its answer."""

    wanted: GenerationRequest
    answer: "asyncio.Future[GeneratedText]"

    @property
    def tokens(self) -> int:
        return len(self.wanted.prompt.tokens)


class LocalModel:
    """A model on this machine. Use it from one event loop.

    Args:
        model: a causal language model of transformers, on its device.
        tokenizer: of the model.
        name: stands in replies.
        around: holds while a batch is written.
        most_rows: of a batch.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str, around: GenerationContext | None = None, most_rows: int = 64
    ) -> None:
        self._halt = Event()
        self._writer = TextGenerator(model, tokenizer, around=around, halt=self._halt)
        self._tokenizer, self._name, self._most_rows = tokenizer, name, most_rows
        text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        self._context = int(getattr(text, "max_position_embeddings", None) or UNLIMITED_CONTEXT)
        self._waiting: list[_PendingRequest] = []
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "local-model")
        self._stopped: RequestError | None = None

    @classmethod
    def open(cls, folder: LocalFolder, *, around: GenerationContext | None = None, most_rows: int = 64) -> "LocalModel":
        """Load the model of a folder.

        Raises:
            InputError: it cannot be loaded, or is no causal language model.
        """
        model, tokenizer = load_local_model(folder)
        return cls(model, tokenizer, name=folder.name, around=around, most_rows=most_rows)

    async def ask(self, request: Request) -> Reply:
        """Answer.

        Raises:
            Failure: ``context_too_long``, ``unsupported``, ``bad_request``; what stopped the run.
            UsageError: a parameter that a local model does not know, or with a value that cannot be.
        """
        if self._stopped is not None:
            raise self._stopped
        waiting = _PendingRequest(
            self._wanted(apply_response_format(request, "json")), asyncio.get_running_loop().create_future()
        )
        self._waiting.append(waiting)
        if self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._answer_all())
        return self._reply(waiting, await waiting.answer)

    def stop(self, failure: RequestError) -> None:
        """Begin no further batch: requests that wait end in ``failure``, those under way may be answered."""
        self._stopped = failure
        for waiting in self._waiting:
            if not waiting.answer.done():
                waiting.answer.set_exception(failure)
        self._waiting.clear()

    async def close(self) -> None:
        """End what is under way at its next token, and let the model go."""
        self._halt.set()
        self.stop(self._stopped or RequestError("interrupted"))
        if self._work is not None:
            await asyncio.wait([self._work])
        self._thread.shutdown()

    def _wanted(self, request: Request) -> GenerationRequest:
        prompt = render_prompt(request, self._tokenizer)
        given = parse_sampling_parameters(request.parameters)
        room = self._context - len(prompt.tokens)
        if room < 1:
            raise RequestError(
                "context_too_long", f"{len(prompt.tokens):,} tokens, and the model reads {self._context:,}"
            )
        shown = blake2b(orjson.dumps(prompt.tokens), digest_size=16).hexdigest()
        return GenerationRequest(
            prompt,
            min(given["most"], room),
            given["temperature"],
            given["top_p"],
            given["top_k"],
            (*given["stops"], *prompt.stops),
            (given["seed"], shown, request.sample),
        )

    def _reply(self, waiting: _PendingRequest, written: GeneratedText) -> Reply:
        body = {
            "object": "chat.completion",
            "model": self._name,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": written.text},
                    "finish_reason": written.finish_reason,
                }
            ],
            "usage": {"prompt_tokens": waiting.tokens, "completion_tokens": written.tokens},
        }
        return parse_reply(orjson.dumps(body))

    async def _answer_all(self) -> None:
        try:
            await asyncio.sleep(BATCH_DELAY_S)
            while batch := self._batch():
                await self._answer(batch)
                await asyncio.sleep(BATCH_DELAY_S)  # whoever got an answer may have the next question by now
        finally:
            self._work = None

    def _batch(self) -> list[_PendingRequest]:
        self._waiting = [each for each in self._waiting if not each.answer.done()]
        if not self._waiting:
            return []
        first = self._waiting[0]
        batch: list[_PendingRequest] = []
        longest = most = 0
        # Prompts with documents stand apart from others: a calibration concerns them alone.
        alike = [
            each for each in self._waiting if bool(each.wanted.prompt.letters) == bool(first.wanted.prompt.letters)
        ]
        for each in sorted(alike, key=lambda other: abs(other.tokens - first.tokens)):
            longest, most = max(longest, each.tokens), max(most, each.wanted.most)
            if batch and ((len(batch) + 1) * (longest + most) > MAX_BATCH_TOKENS or len(batch) == self._most_rows):
                break
            batch.append(each)
        taken = set(map(id, batch))
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        return batch

    async def _answer(self, batch: Sequence[_PendingRequest]) -> None:
        loop = asyncio.get_running_loop()
        try:
            written = await loop.run_in_executor(self._thread, self._write, [each.wanted for each in batch])
        except Exception as error:  # noqa: BLE001 - whoever asked is told; a task has nobody to raise to
            for each in batch:
                if not each.answer.done():
                    each.answer.set_exception(_failure(error))
            return
        for each, answer in zip(batch, written, strict=True):
            if not each.answer.done():
                if self._halt.is_set():
                    each.answer.set_exception(self._stopped or RequestError("interrupted"))
                elif isinstance(answer, RequestError):
                    each.answer.set_exception(answer)
                else:
                    each.answer.set_result(answer)

    def _write(self, batch: Sequence[GenerationRequest]) -> list[GeneratedText | RequestError]:
        import torch

        try:
            return list(self._writer.write(batch))
        except (torch.OutOfMemoryError, RequestError) as error:
            if len(batch) == 1:  # the row's own fault, in which the others are not to end
                return [_row_request_error(error)]
        torch.cuda.empty_cache()
        half = len(batch) // 2
        return self._write(batch[:half]) + self._write(batch[half:])


def load_local_model(folder: LocalFolder) -> tuple[Any, Any]:
    """Return model and tokenizer of a folder, the model on its device and ready to be asked.

    Raises:
        InputError: they cannot be loaded, or it is no causal language model.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    on_gpu = torch.cuda.is_available()
    with translate_load_errors(f"model {folder.given}"), quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder.path)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder.path, dtype="auto" if on_gpu else torch.float32, use_safetensors=True
        )
    return model.to("cuda" if on_gpu else "cpu").eval(), tokenizer


def parse_sampling_parameters(parameters: Any) -> dict[str, Any]:
    """Return a request's parameters, filled up: most, temperature, top_p, top_k, stops, seed.

    Raises:
        UsageError: for a name or a value that cannot be.
    """
    if unknown := sorted(set(parameters) - set(SUPPORTED_PARAMETERS)):
        raise UsageError(
            f"a local model has no parameter {', '.join(unknown)}. {suggest_alternatives(unknown, SUPPORTED_PARAMETERS)}. "
            f"--parameter {unknown[0]}= leaves one out."
        )
    stop = parameters.get("stop") or ()
    return {
        "most": _number(parameters, ("max_completion_tokens", "max_tokens"), DEFAULT_MAX_TOKENS, 1, 2**31, whole=True),
        "temperature": _number(parameters, ("temperature",), 1.0, 0.0, 100.0),
        "top_p": _number(parameters, ("top_p",), 1.0, 1e-9, 1.0),
        "top_k": _number(parameters, ("top_k",), 0, 0, 2**31, whole=True),
        "stops": _stops(stop),
        "seed": _number(parameters, ("seed",), 0, -(2**63), 2**64, whole=True),
    }


def _number(  # noqa: PLR0913 - what is read, and what it may be
    parameters: Any, names: Sequence[str], usual: float, low: float, high: float, *, whole: bool = False
) -> Any:
    for name in names:
        value = parameters.get(name)
        if value is None:
            continue
        fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        if not fits or (whole and value != int(value)):
            raise UsageError(f"{name} {value!r}: give a {'whole ' if whole else ''}number from {low:g} to {high:g}.")
        return int(value) if whole else float(value)
    return usual


def _stops(stop: Any) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, list | tuple) else None
    if stops is None or not all(isinstance(each, str) and each for each in stops):
        raise UsageError(f"stop {stop!r}: give a text, or a list of them.")
    return stops


def _row_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    return RequestError("request_too_large", "the device's memory does not hold this request alone")


def _failure(error: Exception) -> RequestError | UsageError:
    if isinstance(error, RequestError | UsageError):  # one of use ends the run: it would meet every row
        return error
    return RequestError("server_error", f"the local model broke: {type(error).__name__}: {error}")
