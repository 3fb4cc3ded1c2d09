"""How a schema reaches the server: as ``response_format``, as a tool to call, or in words.

- *json_schema*: ``response_format``, what a `Request` with a schema is sent as. OpenAI, vLLM, llama.cpp, Ollama.
- *tool*: the one function that the model must call; its arguments are the answer.
- *json*: an instruction behind the first message. Nothing holds the model to it; answers are validated anyhow.

`apply_response_format` changes a request beforehand: the form is the user's, the cache sees what is sent. `NegotiatedFormatModel` stands
between cache and server and finds out: it begins with the first form, and where the server refuses it for what it is,
goes on with the next. What worked then is what later requests begin with. The cache keys such requests by their
schema, whatever the form: an answer is the same answer then.

Some servers check the output of the model and send an error where it does not fit (Groq: ``json_validate_failed``). Such
an answer is asked for in the next form, and a schema that fails `MAX_MISSES` times more often than it succeeds begins there.

A server that ignores ``response_format`` says nothing about it, so prompts do well to show the shape in any case.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import orjson

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message, Model, Reply, Request, Schema
from pairwright.generators.llm.client.request_adaptation import SCHEMA, TOOLS, RefusedParts, find_refused_part
from pairwright.generators.llm.client.request_errors import RequestError

ResponseFormat = Literal["json_schema", "tool", "json"]

RESPONSE_FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "tool", "json")

_INSTRUCTION = (
    "Answer with one JSON object and nothing else: no words around it, no code fence. It must fit this JSON schema:"
)
_ABOUT_FORMS = re.compile(
    r"response.?format|json.?schema|structured|guided|grammar|\bschema\b|\btools?\b|tool.?(choice|use|call)|function",
    re.IGNORECASE,
)
# server_error: llama.cpp of a grammar that it cannot make.
_PERHAPS = frozenset({"unsupported", "bad_request", "server_error"})
MAX_MISSES = 3

_REFUSED_AS: Mapping[ResponseFormat, str] = {"json_schema": SCHEMA, "tool": TOOLS}


def apply_response_format(request: Request, form: ResponseFormat) -> Request:
    """Return the request with its schema in another form; one without a schema is returned as it is.

    Raises:
        UsageError: a tool is to be called and the request has tools of its own.
    """
    if request.schema is None or form == "json_schema":
        return request
    return _as_tool(request, request.schema) if form == "tool" else _as_words(request, request.schema)


def _as_tool(request: Request, schema: Schema) -> Request:
    if "tools" in request.parameters:
        raise UsageError("a request with tools of its own cannot give its schema as one. Use another schema form.")
    function = {"name": schema.name, "parameters": schema.schema, **({"strict": True} if schema.strict else {})}
    tools = {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": schema.name}},
    }
    return replace(request, schema=None, parameters={**request.parameters, **tools})


def _as_words(request: Request, schema: Schema) -> Request:
    first, *rest = request.messages
    # The first message stays first in a repair round: what the server has computed of it holds.
    told = f"{first.text}\n\n{_INSTRUCTION}\n{orjson.dumps(schema.schema).decode()}".lstrip()
    return replace(request, schema=None, messages=(Message(first.role, told, first.images), *rest))


class FixedFormatModel:
    """A model that asks ``model`` in one form; put it outside the cache.

    Args:
        model: asked.
        form: of every schema.
    """

    def __init__(self, model: Model, form: ResponseFormat) -> None:
        self._model, self._form = model, form

    async def ask(self, request: Request) -> Reply:
        """Ask.

        Raises:
            Failure: as the model raises it.
            UsageError: as `apply_response_format` raises it.
        """
        return await self._model.ask(apply_response_format(request, self._form))


class NegotiatedFormatModel:
    """A model that asks ``model`` in the first form that the server takes; put it inside the cache.

    Requests under way when the first is refused are refused too, and find their way by themselves; those after begin
    with what has worked. A refusal of one schema is no refusal of all: what is remembered holds for the model's name
    where the server says that it does not support a form, else for that schema alone.

    Args:
        model: asked, as often as there are forms.
        refusals: where the forms that a model does not support are remembered.
    """

    def __init__(self, model: Model, refusals: RefusedParts | None = None) -> None:
        self._model, self._refusals = model, refusals or RefusedParts()
        self._by_schema: dict[tuple[str, bytes], int] = {}
        self._misses: Counter[tuple[str, bytes, ResponseFormat]] = Counter()

    async def ask(self, request: Request) -> Reply:
        """Ask.

        Raises:
            Failure: as the model raises it; where every form is refused, the first refusal.
            UsageError: as `apply_response_format` raises it.
        """
        if request.schema is None:
            return await self._model.ask(request)
        shape = (request.model, request.schema.shape)
        refused = self._refusals.of(request.model)
        forms = [
            form for form in RESPONSE_FORMATS[self._by_schema.get(shape, 0) :] if _REFUSED_AS.get(form) not in refused
        ]
        failures: dict[ResponseFormat, RequestError] = {}
        for form in forms:
            try:
                reply = await self._model.ask(apply_response_format(request, form))
            except RequestError as failure:
                if not _is_about_form(failure, request):
                    raise
                failures[form] = failure
                continue
            self._learn(shape, form, failures)
            return reply
        raise next(iter(failures.values()))

    def _learn(
        self, shape: tuple[str, bytes], form: ResponseFormat, failures: Mapping[ResponseFormat, RequestError]
    ) -> None:
        """Remember that a form has worked, after those that failed."""
        words = {failure.code for failure in failures.values()}
        first = (*shape, next(iter(failures), form))
        if not words:
            self._misses[first] = max(0, self._misses[first] - 1)
        elif words == {"unsupported"}:
            for each, failure in failures.items():
                self._refusals.add(shape[0], _REFUSED_AS[each], failure.detail)
        elif words == {"schema_failed"} and self._misses[first] < MAX_MISSES - 1:
            self._misses[first] += 1
        else:
            self._by_schema[shape] = max(RESPONSE_FORMATS.index(form), self._by_schema.get(shape, 0))


def _is_about_form(failure: RequestError, request: Request) -> bool:
    """Return whether the form may be what the server does not take, rather than a parameter or the messages."""
    if failure.code == "schema_failed":
        return True
    if failure.code not in _PERHAPS:
        return False
    if _ABOUT_FORMS.search(failure.message):
        return True
    # Servers that do not say what they do not support mean the newest thing in the request.
    return failure.code == "unsupported" and find_refused_part(failure, request) is None
