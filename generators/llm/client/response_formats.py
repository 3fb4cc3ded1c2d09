"""Response formats: a schema as ``response_format``, as a tool call, or as an instruction in the prompt.

- *json_schema*: ``response_format``, the default of a `Request` with a schema. OpenAI, vLLM, llama.cpp, Ollama.
- *tool*: one function that the model must call; its arguments are the answer.
- *json*: an instruction after the first message. The server enforces nothing; answers are validated in any case.

`apply_response_format` changes a request before the cache: the user's choice, part of the key. `NegotiatedFormatModel`
wraps the server inside the cache: it tries the first format and continues with the next if the server refuses it; later
requests start with what worked. Keys then cover the schema only.

Some servers validate the output and return an error if it does not match (Groq: ``json_validate_failed``). Such a request
is sent in the next format, and a schema that fails `MAX_MISSES` times more often than it succeeds starts there. So does
one whose answers are lost in whitespace (`Reply.runs_away`), which were billed and are kept.

A server that ignores ``response_format`` returns no error, so prompts should show the format in any case.
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
# server_error: llama.cpp for a grammar that it cannot build.
_PERHAPS = frozenset({"unsupported", "bad_request", "server_error"})
MAX_MISSES = 3

_REFUSED_AS: Mapping[ResponseFormat, str] = {"json_schema": SCHEMA, "tool": TOOLS}


def apply_response_format(request: Request, form: ResponseFormat) -> Request:
    """Return the request with its schema in another format; unchanged without a schema.

    Raises:
        UsageError: format *tool* for a request with its own tools.
    """
    if request.schema is None or form == "json_schema":
        return request
    return _as_tool(request, request.schema) if form == "tool" else _as_instruction(request, request.schema)


def _as_tool(request: Request, schema: Schema) -> Request:
    if "tools" in request.parameters:
        raise UsageError("a request with tools cannot use the format `tool` for its schema. Choose another format.")
    function = {"name": schema.name, "parameters": schema.schema, **({"strict": True} if schema.strict else {})}
    tools = {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": schema.name}},
    }
    return replace(request, schema=None, parameters={**request.parameters, **tools})


def _as_instruction(request: Request, schema: Schema) -> Request:
    first, *rest = request.messages
    # In the first message, which a repair round repeats: the server's prefix cache stays valid.
    text = f"{first.text}\n\n{_INSTRUCTION}\n{orjson.dumps(schema.schema).decode()}".lstrip()
    return replace(request, schema=None, messages=(Message(first.role, text, first.images), *rest))


class NegotiatedFormatModel:
    """Model asked in the first format that the server accepts; inside the cache.

    If the server says that it does not support a format, that is remembered for the model; if it refuses one schema, for
    that schema only.

    Args:
        model: wrapped model, asked once per format at most.
        refusals: formats that models do not support.
    """

    def __init__(self, model: Model, refusals: RefusedParts | None = None) -> None:
        self._model, self._refusals = model, refusals or RefusedParts()
        self._by_schema: dict[tuple[str, bytes], int] = {}
        self._misses: Counter[tuple[str, bytes, ResponseFormat]] = Counter()

    async def ask(self, request: Request) -> Reply:
        """Ask the wrapped model.

        Raises:
            RequestError: as the model raises it; the first one if every format is refused.
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
            if reply.runs_away:
                self._note_runaway(shape, form)
            else:
                self._learn(shape, form, failures)
            return reply
        raise next(iter(failures.values()))

    def _learn(
        self, shape: tuple[str, bytes], form: ResponseFormat, failures: Mapping[ResponseFormat, RequestError]
    ) -> None:
        """Remember that a format has worked after others failed."""
        codes = {failure.code for failure in failures.values()}
        first = (*shape, next(iter(failures), form))
        if not codes:
            self._misses[first] = max(0, self._misses[first] - 1)
        elif codes == {"unsupported"}:
            for each, failure in failures.items():
                self._refusals.add(shape[0], _REFUSED_AS[each], failure.detail)
        elif codes == {"schema_failed"} and self._misses[first] < MAX_MISSES - 1:
            self._misses[first] += 1
        else:
            self._by_schema[shape] = max(RESPONSE_FORMATS.index(form), self._by_schema.get(shape, 0))

    def _note_runaway(self, shape: tuple[str, bytes], form: ResponseFormat) -> None:
        """Continue with the next format after several answers that were lost in whitespace."""
        self._misses[*shape, form] += 1
        following = RESPONSE_FORMATS.index(form) + 1
        if self._misses[*shape, form] >= MAX_MISSES and self._by_schema.get(shape, 0) < following < len(
            RESPONSE_FORMATS
        ):
            self._by_schema[shape] = following
            self._refusals.say(
                f"{shape[0]}: JSON by {form} ends in whitespace up to the token limit; {RESPONSE_FORMATS[following]} is used"
                " from now on"
            )


def _is_about_form(failure: RequestError, request: Request) -> bool:
    """Return whether an error may be about the format rather than a parameter or the messages."""
    if failure.code == "schema_failed":
        return True
    if failure.code not in _PERHAPS:
        return False
    if _ABOUT_FORMS.search(failure.message):
        return True
    # An unnamed unsupported part is taken to be the format.
    return failure.code == "unsupported" and find_refused_part(failure, request) is None
