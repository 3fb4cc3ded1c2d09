"""Local models: a causal language model of transformers as the client of a session.

    folder = find_local_model("local:models/small")
    with Session(local_settings(folder), cache=Path("llm-cache.sqlite"), opened=local_client(folder)) as session:
        ...

Waiting requests are answered in batches: the oldest, and those of the most similar length, as many as `MAX_BATCH_TOKENS`
and ``max_concurrency`` allow. A batch that exceeds the device's memory, or that one of its rows makes impossible, is
halved. One thread generates; the event loop stays free.

Requests may have the parameters in `SUPPORTED_PARAMETERS`. Defaults: temperature 1, as on servers, `DEFAULT_MAX_TOKENS`,
and seed 0: an answer depends on seed, prompt and sample index alone. A schema is an instruction in the prompt; it is not
enforced, and answers are validated like any other.

The device is a CUDA GPU if torch finds one, with the precision of the stored weights; else the CPU with float32. Not
supported: several GPUs, quantised weights.

A checkpoint with a vision tower and a processor reads images; rows with images are in batches of their own. One that reads
text only ends the run at the first image.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from threading import Event
from typing import Any

import orjson

from pairwright.datasets.errors import MissingResourceError, UsageError
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
from pairwright.generators.llm.local.token_probabilities import PARAMETERS as PROBABILITY_PARAMETERS
from pairwright.generators.llm.local.token_probabilities import parse_request
from pairwright.indexes.encoders.checkpoints import quiet_transformers, translate_load_errors

SUPPORTED_PARAMETERS = (
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed"),
    *PROBABILITY_PARAMETERS,
)
DEFAULT_MAX_TOKENS = 1024
MAX_BATCH_TOKENS = 32_768  # of prompts and longest answers, including padding
BATCH_DELAY_S = 0.005  # to collect requests before a batch
UNLIMITED_CONTEXT = 1_000_000  # tokens, if the configuration has no limit


def local_settings(folder: LocalFolder, *, max_concurrency: int = 64, cache_label: str = "") -> LLMSettings:
    """Return the settings of a session with a local model.

    Args:
        folder: of the model.
        max_concurrency: rows of a batch.
        cache_label: anything else that shapes its answers (a calibration); part of the cache keys.
    """
    endpoint = f"local:{folder.fingerprint}{f'+{cache_label}' if cache_label else ''}"
    return LLMSettings(model=folder.name, endpoint=endpoint, max_concurrency=max_concurrency)


def local_client(
    folder: LocalFolder, *, around: GenerationContext | None = None
) -> Callable[[LLMSettings, Cache | None], AbstractAsyncContextManager["LocalModel"]]:
    """Return the client factory of a session; ``around`` is the context of each batch (`generation`)."""

    @asynccontextmanager
    async def opened(settings: LLMSettings, cache: Cache | None) -> AsyncIterator[LocalModel]:  # noqa: ARG001 - as sessions call it
        model = LocalModel.open(folder, around=around, most_rows=settings.max_concurrency)
        try:
            yield model
        finally:
            await model.close()

    return opened


@dataclass(slots=True)
class _PendingRequest:
    """Request and the future of its answer."""

    wanted: GenerationRequest
    answer: "asyncio.Future[GeneratedText]"

    @property
    def tokens(self) -> int:
        return len(self.wanted.prompt.tokens)

    @property
    def kind(self) -> tuple[bool, bool]:
        """What a batch must share: a calibration concerns documents alone, and pixels are an input of their own."""
        prompt = self.wanted.prompt
        return bool(prompt.letters), bool(prompt.images)


class LocalModel:
    """Model on this machine. Use it from one event loop.

    Args:
        model: causal language model of transformers, on its device.
        tokenizer: of the model.
        processor: of images and texts; None: the model reads text only.
        name: model name in replies.
        around: context of each batch.
        most_rows: rows of a batch.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        model: Any,
        tokenizer: Any,
        processor: Any = None,
        *,
        name: str,
        around: GenerationContext | None = None,
        most_rows: int = 64,
    ) -> None:
        self._halt = Event()
        self._writer = TextGenerator(model, tokenizer, processor=processor, around=around, halt=self._halt)
        self._processor = processor
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
            InputError: it cannot be loaded, or is not a causal language model.
        """
        model, tokenizer, processor = load_local_model(folder)
        return cls(model, tokenizer, processor, name=folder.name, around=around, most_rows=most_rows)

    async def ask(self, request: Request) -> Reply:
        """Answer a request.

        Raises:
            RequestError: ``context_too_long``, ``unsupported``, ``bad_request``; or the error that stopped the run.
            UsageError: a parameter is unsupported or invalid.
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
        """Start no further batch: waiting requests end in ``failure``, those being generated may be answered."""
        self._stopped = failure
        for waiting in self._waiting:
            if not waiting.answer.done():
                waiting.answer.set_exception(failure)
        self._waiting.clear()

    async def close(self) -> None:
        """End generation at the next token and release the model."""
        self._halt.set()
        self.stop(self._stopped or RequestError("interrupted"))
        if self._work is not None:
            await asyncio.wait([self._work])
        self._thread.shutdown()

    def _wanted(self, request: Request) -> GenerationRequest:
        prompt = render_prompt(request, self._tokenizer, self._processor)
        given = parse_sampling_parameters(request.parameters)
        room = self._context - len(prompt.tokens)
        if room < 1:
            raise RequestError(
                "context_too_long", f"{len(prompt.tokens):,} tokens, more than the model's {self._context:,}"
            )
        pictures = [image.sha256 for message in request.messages for image in message.images]
        hashed = orjson.dumps([prompt.tokens, pictures] if pictures else prompt.tokens)
        prompt_hash = blake2b(hashed, digest_size=16).hexdigest()
        return GenerationRequest(
            prompt,
            min(given["most"], room),
            given["temperature"],
            given["top_p"],
            given["top_k"],
            (*given["stops"], *prompt.stops),
            (given["seed"], prompt_hash, request.sample),
            parse_request(request.parameters),
        )

    def _reply(self, waiting: _PendingRequest, written: GeneratedText) -> Reply:
        given = written.probabilities
        logprobs = {} if given is None else {"logprobs": {"content": [each.described() for each in given]}}
        body = {
            "object": "chat.completion",
            "model": self._name,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": written.text},
                    "finish_reason": written.finish_reason,
                    **logprobs,
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
                await asyncio.sleep(BATCH_DELAY_S)  # callers may send their next request
        finally:
            self._work = None

    def _batch(self) -> list[_PendingRequest]:
        self._waiting = [each for each in self._waiting if not each.answer.done()]
        if not self._waiting:
            return []
        first = self._waiting[0]
        batch: list[_PendingRequest] = []
        longest = most = 0
        alike = [each for each in self._waiting if each.kind == first.kind]
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
        except Exception as error:  # noqa: BLE001 - raised by the waiting requests
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
            if len(batch) == 1:  # caused by this row alone
                return [_row_request_error(error)]
        torch.cuda.empty_cache()
        half = len(batch) // 2
        return self._write(batch[:half]) + self._write(batch[half:])


def load_local_model(folder: LocalFolder) -> tuple[Any, Any, Any]:
    """Return model, tokenizer and processor (None: the model reads text only), the model on its device for evaluation.

    Raises:
        InputError: they cannot be loaded, or the model is not a causal language model.
        MissingResourceError: its processor of images cannot be loaded, and torchvision is not installed.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

    on_gpu = torch.cuda.is_available()
    family: Any = AutoModelForImageTextToText if folder.sees else AutoModelForCausalLM
    with translate_load_errors(f"model {folder.given}"), quiet_transformers():
        processor = _load_processor(folder) if folder.sees else None
        tokenizer = processor.tokenizer if processor is not None else AutoTokenizer.from_pretrained(folder.path)
        model = family.from_pretrained(folder.path, dtype="auto" if on_gpu else torch.float32, use_safetensors=True)
    return model.to("cuda" if on_gpu else "cpu").eval(), tokenizer, processor


def _load_processor(folder: LocalFolder) -> Any:
    from transformers import AutoProcessor

    try:
        return AutoProcessor.from_pretrained(folder.path)
    except (ImportError, AttributeError, ValueError, OSError) as error:
        if find_spec("torchvision") is not None:
            raise
        reason = str(error).strip().split("\n")[0].partition(". ")[0]
        raise MissingResourceError(
            f"model {folder.given}: its processor of images cannot be loaded ({reason}). Many need torchvision, which is not "
            "installed: pip install the build of torchvision that belongs to your torch."
        ) from None


def parse_sampling_parameters(parameters: Any) -> dict[str, Any]:
    """Return a request's parameters with defaults: most, temperature, top_p, top_k, stops, seed.

    Raises:
        UsageError: an unsupported name or invalid value.
    """
    if unknown := sorted(set(parameters) - set(SUPPORTED_PARAMETERS)):
        raise UsageError(
            f"local models do not support the parameter {', '.join(unknown)}. {suggest_alternatives(unknown, SUPPORTED_PARAMETERS)}. "
            f"--parameter {unknown[0]}= removes one."
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


def _number(  # noqa: PLR0913 - names and bounds
    parameters: Any, names: Sequence[str], usual: float, low: float, high: float, *, whole: bool = False
) -> Any:
    for name in names:
        value = parameters.get(name)
        if value is None:
            continue
        fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        if not fits or (whole and value != int(value)):
            raise UsageError(
                f"{name} {value!r}: expected {'an integer' if whole else 'a number'} from {low:g} to {high:g}."
            )
        return int(value) if whole else float(value)
    return usual


def _stops(stop: Any) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, list | tuple) else None
    if stops is None or not all(isinstance(each, str) and each for each in stops):
        raise UsageError(f"stop {stop!r}: expected a text or a list of texts.")
    return stops


def _row_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    return RequestError("request_too_large", "the request exceeds the device's memory")


def _failure(error: Exception) -> RequestError | UsageError:
    if isinstance(error, RequestError | UsageError):  # a UsageError ends the run: it concerns every row
        return error
    return RequestError("server_error", f"the local model failed: {type(error).__name__}: {error}")
