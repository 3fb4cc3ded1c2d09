"""Batch API of a server: files and batches through the ``openai`` package, without retries.

Files are streamed in both directions. The API: https://platform.openai.com/docs/api-reference/batch.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pairwright.generators.llm.batch.lines import split_lines
from pairwright.generators.llm.client.chat_completions import parse_error
from pairwright.generators.llm.client.factory import require_api_key
from pairwright.generators.llm.client.network_errors import MAX_RESPONSE_BYTES, translate_network_error
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
METADATA_KEY = "pairwright"
PAGE_SIZE = 100  # batches or files per list request
CLOCK_TOLERANCE_S = 3600.0  # difference between clocks

_QUEUE_FULL = "token_limit_exceeded"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class InputProblem:
    """Problem of a batch's input. ``line``: from 1; 0: the whole input."""

    code: str
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Batch as the server reports it; ids of missing files are empty."""

    id: str
    status: str
    input_file: str
    output_file: str
    error_file: str
    flaws: tuple[InputProblem, ...]
    completed: int
    failed: int

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self.status in ENDED

    @property
    def queue_full(self) -> bool:
        """Whether it was refused because too many tokens are queued."""
        return any(flaw.code == _QUEUE_FULL for flaw in self.flaws)


class QueueFullError(Exception):
    """The server accepts no batch for now: too many tokens are queued."""


class BatchService:
    """Files and batches of one server; created by `open_service`."""

    def __init__(self, client: "AsyncOpenAI", settings: LLMSettings) -> None:
        from openai import APIStatusError

        from pairwright.generators.llm.client.sdk_transport import anonymous_headers, foreign_errors

        self._client, self._hide, self._timeout = client, settings.hide, settings.timeout
        self._headers = anonymous_headers(settings)
        self._status_error = APIStatusError
        self._foreign = foreign_errors()
        # Azure's paths by deployment have no version.
        self.url = "/chat/completions" if settings.address.azure else "/v1/chat/completions"

    async def upload(self, path: Path, name: str) -> tuple[str, bool]:
        """Upload a batch's input; return the file id, and whether the file is ready."""
        with self._translated(), path.open("rb") as file:
            made = await self._client.files.create(file=(name, file), purpose="batch", extra_headers=self._headers)
        return _identity(made), _is_ready(made, self._hide)

    async def ready(self, file_id: str) -> bool:
        """Return whether an uploaded file is ready; Azure processes files first.

        Raises:
            RequestError: ``bad_batch``: the server could not read it; in every method, the error of the call.
        """
        made = await self._called(self._client.files.retrieve(file_id, extra_headers=self._headers))
        return _is_ready(made, self._hide)

    async def create(self, file_id: str, token: str) -> BatchStatus:
        """Create a batch of an uploaded file.

        Raises:
            QueueFullError: too many tokens are queued.
        """
        url: Any = self.url
        return await self._status(
            self._client.batches.create(
                input_file_id=file_id,
                endpoint=url,
                completion_window="24h",
                metadata={METADATA_KEY: token},
                extra_headers=self._headers,
            )
        )

    async def retrieve(self, identity: str) -> BatchStatus:
        """Return the status of a batch."""
        return await self._status(self._client.batches.retrieve(identity, extra_headers=self._headers))

    async def cancel(self, identity: str) -> BatchStatus:
        """Cancel a batch; lines processed by then are kept and billed."""
        return await self._status(self._client.batches.cancel(identity, extra_headers=self._headers))

    async def find(self, token: str, since: float) -> BatchStatus | None:
        """Return the batch with a token among those created since ``since`` (seconds since 1970), or None."""
        after: Any = None
        while True:
            more = {"after": after} if after else {}
            page = await self._called(self._client.batches.list(limit=PAGE_SIZE, extra_headers=self._headers, **more))
            batches = list(getattr(page, "data", None) or [])
            for batch in batches:
                metadata = getattr(batch, "metadata", None)
                if isinstance(metadata, dict) and metadata.get(METADATA_KEY) == token:
                    return _status_of(batch, self._hide)
            # OpenAI lists the newest first.
            if (
                not batches
                or not page.has_next_page()
                or _number(batches[-1], "created_at") < since - CLOCK_TOLERANCE_S
            ):
                return None
            after = _identity(batches[-1])

    async def delete(self, file_id: str) -> None:
        """Delete a file."""
        await self._called(self._client.files.delete(file_id, extra_headers=self._headers))

    async def uploads(self, name: str) -> list[str]:
        """Return the ids of the batch inputs with a name, among the newest."""
        page = await self._called(
            self._client.files.list(purpose="batch", limit=PAGE_SIZE, extra_headers=self._headers)
        )
        return [_identity(file) for file in getattr(page, "data", None) or [] if file.filename == name]

    async def lines(self, file_id: str) -> AsyncIterator[list[bytes]]:
        """Yield the lines of a file in groups as they arrive; the last line may be incomplete."""
        rest = b""
        with self._translated():
            reading = self._client.files.with_streaming_response.content(file_id, extra_headers=self._headers)
            async with reading as response:
                async for chunk in response.iter_bytes(1 << 20):
                    lines, rest = split_lines(chunk, rest, most=MAX_RESPONSE_BYTES)
                    yield lines
        if rest.strip():
            yield [rest]

    async def _status(self, call: Awaitable[Any]) -> BatchStatus:
        return _status_of(await self._called(call), self._hide)

    async def _called(self, call: Awaitable[_T]) -> _T:
        with self._translated():
            async with asyncio.timeout(self._timeout):
                return await call

    @contextmanager
    def _translated(self) -> Iterator[None]:
        # Raised outside the handlers: the package's errors hold the request, including the key.
        raised: Exception | None = None
        try:
            yield
        except self._status_error as error:
            raised = self._refusal(error)
        except self._foreign as error:
            raised = translate_network_error(error, timeout=self._timeout)
        if raised is not None:
            raise raised

    def _refusal(self, error: Any) -> Exception:
        if _is_queue_full(error):
            return QueueFullError()
        response = error.response
        failure = parse_error(response.status_code, response.headers, _body_of(response), hide=self._hide)
        # Only of the collections: a single file or batch may be gone.
        if failure.code == "wrong_url" and response.url.path.endswith(("/files", "/batches")):
            return RequestError("no_batches", failure.detail, status=failure.status)
        return failure


@asynccontextmanager
async def open_service(settings: LLMSettings) -> AsyncIterator[BatchService]:
    """Yield the service while its connections are open.

    Raises:
        UsageError: the server requires a key and there is none.
    """
    from pairwright.generators.llm.client.sdk_transport import open_client

    require_api_key(settings)
    async with open_client(settings, bounded=False) as client:
        yield BatchService(client, settings)


def _body_of(response: Any) -> bytes:
    try:
        return bytes(response.content)
    except Exception:  # noqa: BLE001 - an unread stream; the status suffices
        return b""


def _is_queue_full(error: Any) -> bool:
    body = error.body if isinstance(error.body, dict) else {}
    return _QUEUE_FULL in {str(body.get("code")), str(error.code)}


def _status_of(batch: Any, hide: Callable[[str], str]) -> BatchStatus:
    errors = getattr(getattr(batch, "errors", None), "data", None)
    counts = getattr(batch, "request_counts", None)
    return BatchStatus(
        id=_identity(batch),
        status=str(getattr(batch, "status", "") or ""),
        input_file=str(getattr(batch, "input_file_id", "") or ""),
        output_file=str(getattr(batch, "output_file_id", "") or ""),
        error_file=str(getattr(batch, "error_file_id", "") or ""),
        flaws=tuple(
            InputProblem(
                str(getattr(each, "code", "") or ""),
                hide(str(getattr(each, "message", "") or "")),
                int(_number(each, "line")),
            )
            for each in (errors or [])
        ),
        completed=int(_number(counts, "completed")),
        failed=int(_number(counts, "failed")),
    )


def _is_ready(file: Any, hide: Callable[[str], str]) -> bool:
    status = str(getattr(file, "status", "") or "")
    if status in {"error", "failed"}:
        raise RequestError("bad_batch", hide(f"{status}: {getattr(file, 'status_details', '') or ''}"))
    return status not in {"pending", "running", "notRunning", "uploading"}


def _identity(thing: Any) -> str:
    identity = getattr(thing, "id", None)
    if not isinstance(identity, str) or not identity:
        raise RequestError("wrong_shape", f"a {type(thing).__name__} without an id")
    return identity


def _number(thing: Any, name: str) -> float:
    value = getattr(thing, name, None)
    return float(value) if isinstance(value, (int, float)) else 0.0
