"""The model of a job in another process or on another node: its requests go to the build's `AnswerService`.

If the connection breaks, requests without an answer are sent again to whoever serves then: answers that had come to the
service are in its cache. After `RECONNECT_S` seconds without a service the job ends.
"""

import asyncio
import contextlib
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Self

import orjson

from pairwright.flows.llm.answer_messages import (
    MAX_LINE,
    describe_error,
    encode,
    job_owner,
    read_error,
    read_reply,
    request_message,
)
from pairwright.flows.state.layout import ANSWERS_ADDRESS
from pairwright.generators.llm.client.messages import Image, Reply, Request, Schema, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.session import Snapshot

RECONNECT_S = 60.0
_POLL_S = 0.1
_CONNECT_S = 10.0


@dataclass(frozen=True)
class AnswerSource:
    """Where the answers of a job come from.

    Attributes:
        root: the folder that the build works in.
        stage: of the job.
        part: of the job.
        rows_in_stage: rows of the stage, for its progress; 0: unknown.
    """

    root: Path
    stage: str
    part: str
    rows_in_stage: int = 0


@dataclass(slots=True)
class _Open:
    """A request without an answer."""

    line: bytes
    reply: asyncio.Future[Reply]
    images: tuple[Image, ...]


class ServiceModel:
    """Model that the service of the build answers; for one event loop, within an ``async with``.

    Attributes:
        used: prompt and completion tokens of the answers so far, by cache key.
        counts: answered requests of all jobs, and parts with unanswered ones; as of the latest error.
    """

    def __init__(self, source: AnswerSource) -> None:
        self._source = source
        self._open: dict[int, _Open] = {}
        self._schemas: dict[bytes, tuple[int, bytes]] = {}  # by shape: number, and the line that defines it
        self._number = 0
        self._out: asyncio.StreamWriter | None = None  # while there is a connection
        self._stopped: RequestError | None = None
        self._connection: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self.counts = (0, 0)
        self.used: dict[str, tuple[int, int]] = {}

    async def ask(self, request: Request) -> Reply:
        """Return the service's answer.

        Raises:
            RequestError: as the service's model raises it, or when there is no service any more.
            PairwrightError: what else ended the request there.
        """
        if self._stopped is not None:
            raise self._stopped.copy()
        schema = self._number_of(request.schema) if request.schema is not None else 0
        self._number += 1
        number = self._number
        line = request_message(number, request, schema)
        images = tuple(image for message in request.messages for image in message.images)
        loop = asyncio.get_running_loop()
        self._open[number] = waiting = _Open(line, loop.create_future(), images)
        try:
            self._send(line)
            if self._connection is None or self._connection.done():
                self._connection = loop.create_task(self._connect())
            return await waiting.reply
        finally:
            del self._open[number]

    def stop(self, failure: RequestError) -> None:
        """Send nothing more; requests without an answer may still get one."""
        self._stopped = self._stopped or failure

    def report(self, now: Snapshot) -> None:
        """Send the progress of the job."""
        self._send(encode({"rows": [now.rows, now.failed, *astuple(now.spent)]}))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in [*self._background, *([self._connection] if self._connection else [])]:
            task.cancel()

    def _send(self, line: bytes) -> None:
        """Send a message if there is a connection; open requests are sent with the next one, too."""
        if self._out is not None and not self._out.is_closing():
            self._out.write(line)

    def _number_of(self, schema: Schema) -> int:
        known = self._schemas.get(schema.shape)
        if known is None:
            number = len(self._schemas) + 1
            known = number, encode({"define": number, "schema": [schema.name, schema.schema, schema.strict]})
            self._schemas[schema.shape] = known
            self._send(known[1])
        return known[0]

    async def _connect(self) -> None:
        """Exchange messages with the service, or its successor; end when a connection has ended and no request is open."""
        loop = asyncio.get_running_loop()
        until = loop.time() + RECONNECT_S
        while self._open:
            with contextlib.suppress(OSError, ValueError, KeyError):
                address = orjson.loads((self._source.root / ANSWERS_ADDRESS).read_bytes())
                if "closed" in address:
                    until = 0.0
                else:
                    async with asyncio.timeout(_CONNECT_S):
                        reader, writer = await asyncio.open_connection(address["host"], address["port"], limit=MAX_LINE)
                    try:
                        await self._exchange(reader, writer, address["secret"])
                    finally:
                        until = loop.time() + RECONNECT_S
                        self._out = None
                        writer.close()
            if loop.time() > until:
                self._give_up()
                return
            await asyncio.sleep(_POLL_S)

    async def _exchange(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter, secret: str) -> None:
        """Send the open requests and the next ones, and take what the service sends, until the connection ends."""
        source = self._source
        hello = {
            "secret": secret,
            "owner": job_owner(),
            "stage": source.stage,
            "part": source.part,
            "of": source.rows_in_stage,
        }
        out.writelines([encode(hello), *(line for _, line in self._schemas.values())])
        out.writelines([waiting.line for waiting in self._open.values()])
        self._out = out
        async for line in reader:
            self._take(orjson.loads(line))

    def _give_up(self) -> None:
        self._stopped = RequestError("interrupted", "the process that sends the requests has ended")
        for waiting in self._open.values():
            if not waiting.reply.done():
                waiting.reply.set_exception(self._stopped.copy())

    def _take(self, message: dict[str, Any]) -> None:
        """Take a message of the service."""
        waiting = self._open.get(message["id"])
        if waiting is None:
            return  # cancelled
        if "fetch" in message:
            task = asyncio.ensure_future(self._send_image(message["fetch"], waiting.images[message["position"]]))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        elif waiting.reply.done():
            return
        elif "reply" in message:
            reply = read_reply(message["reply"])
            self.used[reply.key] = reply.usage.prompt_tokens, reply.usage.completion_tokens
            if message["estimated"]:  # by the service; the job's bill estimates and counts it likewise
                reply = replace(reply, usage=Usage(0, 0))
            waiting.reply.set_result(reply)
        else:
            self.counts = (message["counts"][0], message["counts"][1])
            waiting.reply.set_exception(read_error(message["error"]))

    async def _send_image(self, ticket: int, image: Image) -> None:
        answer: dict[str, Any]
        try:
            answer = {"image": ticket, "url": await asyncio.to_thread(image.data_url)}
        except RequestError as error:
            answer = {"image": ticket, "error": describe_error(error)}
        except Exception as error:  # noqa: BLE001 - without an answer the service would wait for ever
            failure = RequestError("bad_image", f"{type(error).__name__}: {error}")
            answer = {"image": ticket, "error": describe_error(failure)}
        self._send(encode(answer))
