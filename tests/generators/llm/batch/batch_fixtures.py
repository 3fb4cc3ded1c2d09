"""What the tests of batch mode share: a server that can be interfered with, and runs that do not wait."""

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pairwright.generators.llm.batch.ledger import LOCK_POLL_S
from pairwright.generators.llm.batch.model import BatchLimits, BatchModel, open_batch_model
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.testing import http_messages
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import parse_script
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

KEY = "sk-do-not-tell-anybody"
Meddle = Callable[
    [http_messages.HTTPRequest, Callable[[http_messages.HTTPRequest], http_messages.HTTPReply]], http_messages.HTTPReply
]
_T = TypeVar("_T")


class MeddledApp(ServerApp):
    """An app whose every request passes through a function first."""

    meddle: Meddle | None = None

    def handle(self, request: http_messages.HTTPRequest) -> http_messages.HTTPReply:
        """Return what the function makes of it."""
        return self.meddle(request, super().handle) if self.meddle else super().handle(request)


@contextmanager
def serving(meddle: Meddle | None = None, **settings: Any) -> Iterator[Server]:
    """Start a server."""
    app = MeddledApp(parse_script(settings, where="test"))
    app.meddle = meddle
    with serve_in_thread(app) as server:
        yield server


def settings_for(server: Server, **more: Any) -> LLMSettings:
    return LLMSettings(**{"base_url": server.url, "api_key": KEY, "model": "m", **more})


def request(text: object, **more: Any) -> Request:
    return Request((Message("user", str(text)),), **{"model": "m", **more})


def requests(count: int) -> list[Request]:
    return [request(f"row {n}") for n in range(count)]


@dataclass
class Bench:
    """Runs against one server and one ledger, and what they said and waited for."""

    server: Server
    ledger: Path
    limits: BatchLimits = field(default_factory=BatchLimits)
    said: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    tries: int = 0  # for the turn of the ledger
    meanwhile: Callable[[], Awaitable[None]] | None = None  # run instead of each wait
    more: dict[str, Any] = field(default_factory=dict)  # settings

    async def pause(self, seconds: float) -> None:
        """Note a wait, and let others go on instead."""
        if seconds == LOCK_POLL_S:
            await self._until_another_try()
            return
        self.waits.append(seconds)
        assert len(self.waits) < 3000, "waits for ever"
        await asyncio.sleep(0)
        if self.meanwhile:
            await self.meanwhile()

    async def _until_another_try(self) -> None:
        # Another run has the turn, over calls that take the machine's time: no jump of the clock makes them shorter, and
        # a task that only tries again keeps the server's thread from answering them.
        self.tries += 1
        assert self.tries < 120_000, "the turn never comes"
        await asyncio.sleep(0.001)

    @property
    def settings(self) -> LLMSettings:
        """Settings that lead to the server."""
        return settings_for(self.server, **self.more)

    def run(self, work: Callable[[BatchModel], Coroutine[Any, Any, _T]], **options: Any) -> _T:
        """Open batch mode for a piece of work."""

        async def main() -> _T:
            opened = open_batch_model(
                self.settings, self.ledger, limits=self.limits, say=self.said.append, pause=self.pause, **options
            )
            async with opened as model:
                return await work(model)

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(main())

    def ask(self, asked: Sequence[Request]) -> list[Reply | RequestError]:
        """Ask all concurrently through the ledger's cache; return the outcomes."""
        with Cache.open(self.ledger.with_name("answers.sqlite")) as cache:
            endpoint = self.settings.cache_endpoint
            return self.run(
                lambda model: ask_all(CachedModel(model, cache, endpoint), asked), safe=cache.flush, kept=cache.get_many
            )

    def break_off(self, asked: Sequence[Request], *, after: int = 5) -> None:
        """Ask, and give up (as Ctrl-C does) after so many waits."""

        async def work(model: BatchModel) -> None:
            reached = asyncio.Event()

            async def look() -> None:
                if len(self.waits) >= after:
                    reached.set()

            self.meanwhile = look
            task = asyncio.ensure_future(ask_all(model, asked))
            await reached.wait()
            task.cancel()

        self.run(work)
        self.meanwhile = None

    @property
    def lines(self) -> int:
        """How many lines the server has worked on."""
        return int(self.server.stats()["endpoints"].get("batch_line", 0))


async def ask_all(model: Any, asked: Sequence[Request]) -> list[Reply | RequestError]:
    found = await asyncio.gather(*(model.ask(each) for each in asked), return_exceptions=True)
    assert all(isinstance(each, Reply | RequestError) for each in found), found
    return found  # type: ignore[return-value]


def texts(found: Sequence[Reply | RequestError]) -> list[str]:
    """Return answers, or the words of failures."""
    return [each.text if isinstance(each, Reply) else each.code for each in found]


def said(count: int) -> list[str]:
    """Return the answers to `requests`."""
    return [f"You said: row {n}" for n in range(count)]


def listed(server: Server, what: str) -> list[dict[str, Any]]:
    """Return the server's files or batches, the oldest first."""
    with urllib.request.urlopen(f"{server.url}/{what}?limit=1000") as response:  # noqa: S310 - our own server
        rows: list[dict[str, Any]] = json.load(response)["data"][::-1]
    return rows
