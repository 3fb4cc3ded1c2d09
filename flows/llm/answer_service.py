"""The service that sends the requests of a build: one rate limit, one budget and one answer store for all of its jobs.

Jobs run in other processes and on other nodes. They prepare requests and check answers; the service, a thread of the
build's process, looks answers up in the cache, sends what is missing within the limits, and stores each answer before it
passes it on. Nodes need neither the API key nor access to the model, and a killed job loses no answer: its successor finds
them in the cache.

The address is in the file `ANSWERS_ADDRESS` of the build directory, readable by its owner only, with a secret that a job
must send first. Messages (`answer_messages`) are not encrypted: the network between the nodes has to be trusted.

Several processes may build the parts of one build (``--part``). The one that holds `ANSWERS_LOCK` serves, the
others wait for the lock, so that another one serves when it ends or dies. Jobs then reconnect (`answer_client`).
"""

import asyncio
import contextlib
import hmac
import os
import secrets
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.file_locks import acquire_lock
from pairwright.flows.llm.answer_messages import (
    MAX_LINE,
    describe_error,
    encode,
    job_owner,
    read_error,
    read_request,
    reply_message,
)
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.progress import BuildProgress
from pairwright.flows.state.layout import ANSWERS_ADDRESS
from pairwright.flows.state.locks import ANSWERS_LOCK
from pairwright.generators.llm.client.messages import Model, Schema
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import SHUTDOWN_GRACE_S, Pace, Session, Snapshot

LOOPBACK = "127.0.0.1"
_POLL_S = 0.1  # between attempts to get the lock
_JOB_ENDED = "the job that had the image has ended"


@dataclass
class _StageProgress:
    """Progress of the jobs of a stage: the last snapshot of each part."""

    of: int
    parts: dict[str, tuple[int, int, RequestTotals]] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    def snapshot(self, cost: float | None) -> Snapshot:
        """Return the progress of the stage."""
        rows = sum(part[0] for part in self.parts.values())
        failed = sum(part[1] for part in self.parts.values())
        spent = sum((part[2] for part in self.parts.values()), RequestTotals())
        return self.pace.snapshot(rows, self.of, spent, cost, failed)


class AnswerService:
    """Sends the requests of the jobs of one build; started by the first job that needs it.

    Args:
        root: the folder that the jobs work in.
        host: name or IP address of this machine for workers on other machines; empty: its host name; `LOOPBACK`: all workers
            are on this machine.
        progress: receives messages and progress.
        others_go_on: other processes build parts too: when the service ends, their jobs connect to its successor.
    """

    def __init__(self, root: Path, host: str, progress: BuildProgress, *, others_go_on: bool = False) -> None:
        self._root, self._host, self._progress = root, host, progress
        self._others_go_on = others_go_on
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt: asyncio.Event | None = None
        self._ready: Future[None] = Future()
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # requests, also those of jobs that have ended
        self._stages: dict[str, _StageProgress] = {}
        self.answered = 0  # requests
        self.without_answer: set[str] = set()  # parts with requests that got none

    def start(self, access: ModelAccess) -> None:
        """Start the service, unless it runs; return when it serves, or when another process of this build does.

        Args:
            access: the model; ``bill`` adds up what is spent.

        Raises:
            PairwrightError: settings, prices or limits cannot work, or the cache cannot be opened.
        """
        with self._starting:
            if self._thread is None:
                access.check()
                self._thread = threading.Thread(
                    target=self._run, args=(access,), name="pairwright-answers", daemon=True
                )
                self._thread.start()
        self._ready.result()

    def close(self) -> None:
        """End the service: no further request is sent, those in flight have some seconds; then jobs get an error."""
        self._closing.set()
        if self._loop is not None and self._halt is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._halt.set)
        if self._thread is not None:
            self._thread.join()

    def remove_address(self) -> None:
        """Remove the address of the closed service, when no job runs any more."""
        if self._thread is not None and not self._others_go_on:
            (self._root / ANSWERS_ADDRESS).unlink(missing_ok=True)

    def _run(self, access: ModelAccess) -> None:
        try:
            with (self._root / ANSWERS_LOCK).open("a") as lock:
                while not self._closing.is_set():
                    try:
                        acquire_lock(lock, self._root)
                    except BlockingIOError:
                        self._settle()  # another process serves
                        self._closing.wait(_POLL_S)
                        continue
                    with access.session(watch=lambda _: None, say=self._progress.note) as session:
                        session.serve(lambda model: self._serve(session, model))
                    return
        except Exception as error:  # noqa: BLE001 - raised where the service is started
            self._settle(error)

    def _settle(self, error: Exception | None = None) -> None:
        if self._ready.done():
            if error is not None:
                self._progress.note(f"The service that sends requests failed: {error}")
        elif error is not None:
            self._ready.set_exception(error)
        else:
            self._ready.set_result(None)

    async def _serve(self, session: Session, model: Model) -> None:
        self._loop, self._halt = asyncio.get_running_loop(), asyncio.Event()
        if self._closing.is_set():
            return
        secret = secrets.token_hex(16)
        listen = self._host or None

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            job = _Job(self, session, model, writer)
            self._connections.add(writer)
            try:
                # Others may connect: what is not a message, or comes without the secret, ends the connection.
                with contextlib.suppress(ValueError, LookupError, TypeError, OSError):
                    if job.greeted(orjson.loads(await reader.readline()), secret):
                        async for line in reader:
                            job.take(orjson.loads(line))
            finally:
                self._connections.discard(writer)
                writer.close()
                job.lost()

        try:
            server = await asyncio.start_server(connected, listen, 0, limit=MAX_LINE)
        except OSError as error:
            raise UsageError(
                f"host {self._host!r}: not an address of this machine ({error.strerror}). Correct `host` in the config."
            ) from None
        port = server.sockets[0].getsockname()[1]
        path = self._root / ANSWERS_ADDRESS
        _write_private(path, {"host": self._host or socket.gethostname(), "port": port, "secret": secret})
        self._settle()
        try:
            await self._halt.wait()
            session.stop_sending()
            until = self._loop.time() + SHUTDOWN_GRACE_S
            while self._tasks and self._loop.time() < until:
                await asyncio.wait(self._tasks, timeout=until - self._loop.time())
        finally:
            if self._others_go_on:
                path.unlink(missing_ok=True)
            else:
                _write_private(path, {"closed": True})
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for connection in self._connections:
                connection.close()

    def run(self, answering: Coroutine[Any, Any, None]) -> None:
        """Answer a request; it goes on when its job ends."""
        task = asyncio.get_running_loop().create_task(answering)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def watch(self, stage: str, of: int, part: str, described: list[Any], cost: float | None) -> None:
        """Take the progress of a job: rows, failed rows, and its totals."""
        state = self._stages.setdefault(stage, _StageProgress(of))
        state.of = of
        rows, failed, *spent = described
        state.parts[part] = rows, failed, RequestTotals(*spent)
        if state.pace.due():
            self._progress.report_model(stage, state.snapshot(cost))

    def ends_for(self, owner: str) -> bool:
        """Return whether the end of the service is the end of the jobs of a build's process."""
        return not (self._others_go_on and self._closing.is_set()) or owner == job_owner()


class _Job:
    """A job that is connected."""

    def __init__(self, service: AnswerService, session: Session, model: Model, out: asyncio.StreamWriter) -> None:
        self._service, self._session, self._model, self._out = service, session, model, out
        self._loop = asyncio.get_running_loop()
        self._hello: dict[str, Any] = {}
        self._schemas: dict[int, Schema] = {}
        self._images: dict[int, asyncio.Future[str]] = {}

    def greeted(self, hello: dict[str, Any], secret: str) -> bool:
        """Take the first message; return whether it has the secret."""
        self._hello = hello
        return hmac.compare_digest(str(hello["secret"]), secret)

    def lost(self) -> None:
        """End; requests that were sent are still answered, and their answers stored."""
        for waiting in self._images.values():
            if not waiting.done():
                waiting.set_exception(RequestError("connection_lost", _JOB_ENDED))

    def take(self, message: dict[str, Any]) -> None:
        """Take a message."""
        if "ask" in message:
            self._service.run(self._answer(message))
        elif "define" in message:
            self._schemas[message["define"]] = Schema(*message["schema"])
        elif "image" in message:
            self._take_image(message)
        elif "rows" in message:
            hello = self._hello
            cost = self._session.totals().cost
            self._service.watch(hello["stage"], hello["of"], hello["part"], message["rows"], cost)

    def _take_image(self, message: dict[str, Any]) -> None:
        waiting = self._images.pop(message["image"], None)
        if waiting is not None and not waiting.done():
            if "url" in message:
                waiting.set_result(message["url"])
            else:
                waiting.set_exception(read_error(message["error"]))

    async def _answer(self, message: dict[str, Any]) -> None:
        number = message["id"]

        def open_image(position: int) -> Callable[[], str]:
            def fetch() -> str:  # in a thread
                return asyncio.run_coroutine_threadsafe(self._fetch(number, position), self._loop).result()

            return fetch

        try:
            reply = await self._model.ask(
                read_request(message["ask"], self._schemas.get(message["schema"]), open_image)
            )
            self._service.answered += 1
            answer = reply_message(number, reply)
        except PairwrightError as error:
            if not self._service.ends_for(self._hello["owner"]):
                return  # its job asks the next service
            self._service.without_answer.add(self._hello["part"])
            counts = [self._service.answered, len(self._service.without_answer)]
            answer = encode({"id": number, "error": describe_error(error), "counts": counts})
        if not self._out.is_closing():
            self._out.write(answer)

    async def _fetch(self, number: int, position: int) -> str:
        """Ask the job for an image of a request.

        Raises:
            RequestError: ``connection_lost``: the job has ended, before or meanwhile.
        """
        if self._out.is_closing():
            raise RequestError("connection_lost", _JOB_ENDED)
        ticket = len(self._images) + 1
        while ticket in self._images:
            ticket += 1
        waiting: asyncio.Future[str] = self._loop.create_future()
        self._images[ticket] = waiting
        self._out.write(encode({"fetch": ticket, "id": number, "position": position}))
        return await waiting


def _write_private(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file that only its owner can read."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.touch(0o600)
    temporary.write_bytes(orjson.dumps(content))
    temporary.replace(path)
