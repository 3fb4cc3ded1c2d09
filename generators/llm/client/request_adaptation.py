"""Requests adapted to what a model refuses: reasoning models take no ``temperature``, some models no system role.

A server says so with an error that names the part (`provider_errors`). The part is renamed, merged or left out, the
request is sent again at once, and all later requests to this model are sent that way. The user is told in one line.

    refusals = Refusals(say)
    model = FormedModel(AdaptedModel(client, refusals), refusals)

The layers stand inside the cache, so keys hold requests as they were asked, not as they were adapted: the same run finds
its answers again whatever the server has refused. `Refusals.keep_in` reads and keeps what is refused in the cache's file,
so that a later run begins with it.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from pairwright.generators.llm.client.messages import Message, Model, Reply, Request
from pairwright.generators.llm.client.provider_errors import SYSTEM_ROLE
from pairwright.generators.llm.client.request_errors import RequestError

SYSTEM = "system"  # the role
SCHEMA, TOOLS = "response_format", "tools"  # refused forms of a schema: `schema_forms` goes on with the next
RENAMED_PARAMETERS: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_INSTEAD: Mapping[str, str] = {
    SYSTEM: "its text is put before the user's message",
    SCHEMA: "JSON is asked for by a tool call",
    TOOLS: "JSON is asked for in words",
}
_FORMS = ("response_format", "json_schema", "tools", "tool_choice", "function", "strict")
_log = logging.getLogger(__name__)


class RefusalStore(Protocol):
    """Where refusals are kept between runs."""

    def refused(self, endpoint: str) -> list[tuple[str, str]]:
        """Return pairs of a model and what it refuses."""
        ...

    def refuse(self, endpoint: str, model: str, name: str) -> None:
        """Keep one."""
        ...


class RefusedParts:
    """What each model of one server refuses, by name: a parameter, `SYSTEM`, `SCHEMA` or `TOOLS`."""

    def __init__(self, say: Callable[[str], None] = _log.warning) -> None:
        """Prepare an empty set.

        Args:
            say: called with one line for each new refusal.
        """
        self._say = say
        self._by_model: dict[str, frozenset[str]] = {}
        self._keep: Callable[[str, str], None] | None = None

    def persist_in(self, store: RefusalStore, endpoint: str) -> None:
        """Add what a store holds of a server, and keep there what is added from now on.

        Raises:
            StorageError: the store cannot be read.
        """
        for model, name in store.refused(endpoint):
            self._by_model[model] = self.of(model) | {name}
        self._keep = lambda model, name: store.refuse(endpoint, model, name)

    def of(self, model: str) -> frozenset[str]:
        """Return the names of what a model refuses."""
        return self._by_model.get(model, frozenset())

    def add(self, model: str, name: str, detail: str = "") -> None:
        """Add a refusal; ``detail`` is what the server said.

        Raises:
            StorageError: the store cannot be written.
        """
        known = self.of(model)
        if name in known:
            return
        self._by_model[model] = known | {name}
        other = RENAMED_PARAMETERS.get(name)
        instead = _INSTEAD.get(name) or (
            f"{other} is sent instead" if other and other not in known else "it is left out"
        )
        part = "the system role" if name == SYSTEM else name
        self._say(f"{model} refuses {part}: {instead} from now on{f' ({detail})' if detail else ''}")
        if self._keep is not None:
            self._keep(model, name)


class AdaptedModel:
    """A model whose requests leave out, rename or merge what it refuses.

    Args:
        model: asked; again at once after a refusal that can be adapted to.
        refusals: read before each request, and added to.
    """

    def __init__(self, model: Model, refusals: RefusedParts) -> None:
        self._model, self._refusals = model, refusals

    async def ask(self, request: Request) -> Reply:
        """Ask.

        Raises:
            Failure: as the model raises it.
            StorageError: what is refused cannot be kept.
        """
        while True:
            sent = adapt_request(request, self._refusals.of(request.model))
            try:
                return await self._model.ask(sent)
            except RequestError as failure:
                name = find_refused_part(failure, sent)
                if name is None:
                    raise
                self._refusals.add(request.model, name, failure.detail)


def adapt_request(request: Request, refused: frozenset[str]) -> Request:
    """Return a request without the parts that a model refuses, or with their replacements."""
    if not refused:
        return request
    parameters: dict[str, Any] = {}
    for name, value in request.parameters.items():
        other = RENAMED_PARAMETERS.get(name, "")
        if name not in refused:
            parameters[name] = value
        elif other and other not in refused and other not in request.parameters:
            parameters[other] = value
    messages = _merge_system_messages(request.messages) if SYSTEM in refused else request.messages
    return replace(request, parameters=parameters, messages=messages)


def _merge_system_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return messages without a system role: each such text goes before the next message of the user."""
    merged: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.role == "system":
            waiting.append(message.text)
        elif message.role == "user" and waiting:
            merged.append(replace(message, text="\n\n".join([*waiting, message.text]).strip()))
            waiting = []
        else:
            merged.append(message)
    if waiting:
        merged.append(Message("user", "\n\n".join(waiting)))
    return tuple(merged)


def find_refused_part(failure: RequestError, request: Request) -> str | None:
    """Return the name of the part of a request that a failure says is not supported; None when nothing can be adapted."""
    if failure.code != "unsupported":
        return None
    if any(message.role == "system" for message in request.messages) and re.search(
        SYSTEM_ROLE, failure.message, re.IGNORECASE
    ):
        return SYSTEM
    forms = _FORMS if request.schema is not None or TOOLS in request.parameters else ()
    named = _first_mentioned([*request.parameters, *forms], failure.message)
    return None if named in _FORMS else named


def _first_mentioned(names: list[str], text: str) -> str | None:
    """Return the name that a text mentions first: in quotes if any is, in camel case or not."""
    for quoted in (r"""["'`]([\w.]*\.)?%s["'`.]""", r"(?<!\w)%s(?!\w)"):
        places = {
            name: found.start()
            for name in names
            if (found := re.search(quoted % name.replace("_", "_?"), text, re.IGNORECASE))
        }
        if places:
            return min(places, key=lambda name: places[name])
    return None
