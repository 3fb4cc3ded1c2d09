"""Adaptation of requests to what a model refuses: reasoning models accept no ``temperature``, some models no system role.

The server's error names the request part (`provider_errors`). The part is renamed, merged or removed, the request is sent
again at once, and all later requests to this model are sent that way. The user gets one line about it.

    refused = RefusedParts(say)
    model = NegotiatedFormatModel(AdaptedModel(client, refused), refused)

These layers are inside the cache: keys cover requests before adaptation, so the same run finds its responses whatever the
server has refused. `RefusedParts.persist` stores refusals in the cache file for later runs.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pairwright.generators.llm.client.messages import Message, Model, Reply, Request
from pairwright.generators.llm.client.provider_errors import SYSTEM_ROLE
from pairwright.generators.llm.client.request_errors import RequestError

SYSTEM = "system"  # the role
SCHEMA, TOOLS = "response_format", "tools"  # refused schema formats: `response_formats` continues with the next
RENAMED_PARAMETERS: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_INSTEAD: Mapping[str, str] = {
    SYSTEM: "its text is put before the user's message",
    SCHEMA: "JSON is asked for by a tool call",
    TOOLS: "JSON is requested in the prompt",
}
_FORMS = ("response_format", "json_schema", "tools", "tool_choice", "function", "strict")
_log = logging.getLogger(__name__)


class RefusedParts:
    """Request parts that each model of a server refuses: a parameter name, `SYSTEM`, `SCHEMA` or `TOOLS`."""

    def __init__(self, say: Callable[[str], None] = _log.warning) -> None:
        """Create an empty set.

        Args:
            say: called with one line for each new refusal.
        """
        self.say = say
        self._by_model: dict[str, frozenset[str]] = {}
        self._keep: Callable[[str, str], None] | None = None

    def persist(self, known: Iterable[tuple[str, str]], keep: Callable[[str, str], None]) -> None:
        """Add stored refusals, and store new ones.

        Args:
            known: (model, request part) pairs.
            keep: stores a model and a part.
        """
        for model, name in known:
            self._by_model[model] = self.of(model) | {name}
        self._keep = keep

    def of(self, model: str) -> frozenset[str]:
        """Return the parts that a model refuses."""
        return self._by_model.get(model, frozenset())

    def add(self, model: str, name: str, detail: str = "") -> None:
        """Add a refusal; ``detail`` is the server's message.

        Raises:
            StorageError: the store cannot be written.
        """
        known = self.of(model)
        if name in known:
            return
        self._by_model[model] = known | {name}
        other = RENAMED_PARAMETERS.get(name)
        instead = _INSTEAD.get(name) or (
            f"{other} is sent instead" if other and other not in known else "it is omitted"
        )
        part = "the system role" if name == SYSTEM else name
        self.say(f"{model} refuses {part}: {instead} from now on{f' ({detail})' if detail else ''}")
        if self._keep is not None:
            self._keep(model, name)


class AdaptedModel:
    """Model whose requests are sent without the parts that it refuses, or with replacements.

    Args:
        model: wrapped model; asked again at once after a refusal that can be adapted to.
        refusals: read before each request, and extended.
    """

    def __init__(self, model: Model, refusals: RefusedParts) -> None:
        self._model, self._refusals = model, refusals

    async def ask(self, request: Request) -> Reply:
        """Ask the wrapped model.

        Raises:
            RequestError: as the model raises it.
            StorageError: a refusal cannot be stored.
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
    """Return the request without the parts that a model refuses, or with replacements."""
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
    """Return messages without a system role: its text is put before the next user message."""
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
    """Return the request part that an error calls unsupported; None if it cannot be adapted."""
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
    """Return the name that a text mentions first: a quoted one if any, with or without underscores."""
    for quoted in (r"""["'`]([\w.]*\.)?%s["'`.]""", r"(?<!\w)%s(?!\w)"):
        places = {
            name: found.start()
            for name in names
            if (found := re.search(quoted % name.replace("_", "_?"), text, re.IGNORECASE))
        }
        if places:
            return min(places, key=lambda name: places[name])
    return None
