"""How a schema reaches the server: as ``response_format``, as a tool to call, or in words.

- *json_schema*: ``response_format``, what a `Request` with a schema is sent as. OpenAI, vLLM, llama.cpp, Ollama.
- *tool*: the one function that the model must call; its arguments are the answer.
- *json*: an instruction behind the first message. Nothing holds the model to it; answers are validated anyhow.

`as_form` changes a request beforehand: the form is the user's, the cache sees what is sent. `FormedModel` stands
between cache and server and finds out: it begins with the first form, and where the server refuses it for what it is,
goes on with the next. What worked then is what later requests begin with. The cache keys such requests by their
schema, whatever the form: an answer is the same answer then.

A server that ignores ``response_format`` says nothing about it, so prompts do well to show the shape in any case.
"""

import re
from dataclasses import replace
from typing import Literal

import orjson

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.failures import Failure
from pairwright.generators.llm.messages import Message, Model, Reply, Request, Schema

Form = Literal["json_schema", "tool", "json"]

FORMS: tuple[Form, ...] = ("json_schema", "tool", "json")

_INSTRUCTION = (
    "Answer with one JSON object and nothing else: no words around it, no code fence. It must fit this JSON schema:"
)
_ABOUT_FORMS = re.compile(
    r"response.?format|json.?schema|structured|guided|grammar|\bschema\b|\btools?\b|tool.?(choice|use|call)|function",
    re.IGNORECASE,
)
# server_error: llama.cpp of a grammar that it cannot make.
_PERHAPS = frozenset({"unsupported", "bad_request", "server_error"})


def as_form(request: Request, form: Form) -> Request:
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


class ForcedForm:
    """A model that asks ``model`` in one form; put it outside the cache.

    Args:
        model: asked.
        form: of every schema.
    """

    def __init__(self, model: Model, form: Form) -> None:
        self._model, self._form = model, form

    async def ask(self, request: Request) -> Reply:
        """Ask.

        Raises:
            Failure: as the model raises it.
            UsageError: as `as_form` raises it.
        """
        return await self._model.ask(as_form(request, self._form))


class FormedModel:
    """A model that asks ``model`` in the first form that the server takes; put it inside the cache.

    Requests under way when the first is refused are refused too, and find their way by themselves; those after begin
    with what has worked. A refusal of one schema is no refusal of all: what is remembered holds for the model's name
    where the server says that it does not support a form, else for that schema alone.

    Args:
        model: asked, as often as there are forms.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._by_model: dict[str, int] = {}
        self._by_schema: dict[tuple[str, bytes], int] = {}

    async def ask(self, request: Request) -> Reply:
        """Ask.

        Raises:
            Failure: as the model raises it; where every form is refused, the first refusal.
            UsageError: as `as_form` raises it.
        """
        if request.schema is None:
            return await self._model.ask(request)
        name, shape = request.model, (request.model, request.schema.shape)
        begin = max(self._by_model.get(name, 0), self._by_schema.get(shape, 0))
        refusals: list[Failure] = []
        for at in range(begin, len(FORMS)):
            try:
                reply = await self._model.ask(as_form(request, FORMS[at]))
            except Failure as failure:
                if not _is_about_form(failure, request):
                    raise
                refusals.append(failure)
                continue
            if refusals:
                self._remember(at, name, shape, is_general=all(each.word == "unsupported" for each in refusals))
            return reply
        raise refusals[0]

    def _remember(self, at: int, name: str, shape: tuple[str, bytes], *, is_general: bool) -> None:
        if is_general:
            self._by_model[name] = max(at, self._by_model.get(name, 0))
        else:
            self._by_schema[shape] = max(at, self._by_schema.get(shape, 0))


def _is_about_form(failure: Failure, request: Request) -> bool:
    """Return whether the form may be what the server does not take, rather than a parameter or the messages."""
    if failure.word not in _PERHAPS:
        return False
    if _ABOUT_FORMS.search(failure.detail):
        return True
    # Servers that do not say what they do not support mean the newest thing in the request.
    return failure.word == "unsupported" and not any(name in failure.detail for name in request.parameters)
