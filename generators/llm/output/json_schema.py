"""JSON schema of a pydantic model, in the subset that servers enforce.

The subset is that of OpenAI's strict mode (https://platform.openai.com/docs/guides/structured-outputs) without what other
servers do not support: every property is required, no other is allowed, references are inlined unless they recur, and
bounds of values (lengths, ranges, patterns) are omitted. They still apply: answers are validated against the pydantic
model itself. A field with a default is required, too; declare ``X | None`` for one that may be empty.

Docstrings are omitted, since they are for readers of the code; ``Field(description=...)`` is part of the schema.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Schema

MAX_DEPTH = 10  # levels of objects and lists, and
MAX_PROPERTIES = 5000  # properties: what OpenAI's servers take

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_PLAIN = frozenset({"string", "number", "integer", "boolean", "null"})
_OF_PYTHON: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@lru_cache(maxsize=256)
def build_schema(shape: type[BaseModel]) -> Schema:
    """Return the schema of a shape.

    Raises:
        UsageError: when it holds what the subset cannot say: free-form dicts, tuples, values of any type, no fields.
    """
    try:
        given = shape.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise UsageError(f"{shape.__name__}: {error.message}. Use plain types.") from None
    return Schema(_NAME.sub("_", shape.__name__)[:64], _Writer(given, shape.__name__).written())


class _Writer:
    """Rewrites one schema of pydantic."""

    def __init__(self, given: Mapping[str, Any], name: str) -> None:
        self._given, self._name = given, name
        self._defs: Mapping[str, Any] = given.get("$defs", {})
        self._root = _target(given)
        self._recurring: set[str] = set()  # definitions that contain themselves
        self._properties = 0

    def written(self) -> dict[str, Any]:
        root = self._defs[self._root] if self._root else self._given
        if root.get("type") != "object":
            _refuse(self._name, "its root is no object. Give it a field")
        schema = self._write({**root, "description": ""}, self._name, 0, frozenset({self._root}))
        made: dict[str, Any] = {}
        while rest := self._recurring - made.keys():
            name = min(rest)
            made[name] = self._write({**self._defs[name], "description": ""}, name, 1, frozenset({name}))
        return {**schema, "$defs": dict(sorted(made.items()))} if made else schema

    def _write(self, node: Mapping[str, Any], where: str, depth: int, within: frozenset[str]) -> dict[str, Any]:
        """Return the schema of a node; ``within`` are the definitions that contain it."""
        if depth > MAX_DEPTH:
            _refuse(where, f"it is nested deeper than {MAX_DEPTH} levels. Flatten it")
        said = {"description": node["description"]} if node.get("description") else {}
        if name := _target(node):
            return {**self._referred(name, where, depth, within), **said}
        options = node.get("anyOf") or node.get("oneOf")
        if options:
            return {"anyOf": [self._write(option, where, depth, within) for option in options], **said}
        if "const" in node or "enum" in node:
            return {**_choice(node.get("enum", [node.get("const")]), where), **said}
        kind = node.get("type")
        if kind == "object":
            return {**self._object(node, where, depth, within), **said}
        if kind == "array":
            if "prefixItems" in node or not isinstance(node.get("items"), Mapping):
                _refuse(where, "its items have no single type. Use list[...] of a type")
            return {"type": "array", "items": self._write(node["items"], f"{where}[]", depth + 1, within), **said}
        if kind not in _PLAIN:
            _refuse(where, "it may be anything. Give it a type")
        return {"type": kind, **said}

    def _object(self, node: Mapping[str, Any], where: str, depth: int, within: frozenset[str]) -> dict[str, Any]:
        given = node.get("properties", {})
        if not given or node.get("additionalProperties", False) is not False:
            _refuse(where, "its fields are not named. Use a model with fields in place of a dict or of extra fields")
        self._properties += len(given)
        if self._properties > MAX_PROPERTIES:
            _refuse(where, f"there are more than {MAX_PROPERTIES} fields. Make it smaller")
        made = {name: self._write(inner, f"{where}.{name}", depth + 1, within) for name, inner in given.items()}
        return {"type": "object", "properties": made, "required": list(made), "additionalProperties": False}

    def _referred(self, name: str, where: str, depth: int, within: frozenset[str]) -> dict[str, Any]:
        if name == self._root:
            return {"$ref": "#"}
        if name in within:
            self._recurring.add(name)
            return {"$ref": f"#/$defs/{name}"}
        return self._write({**self._defs[name], "description": ""}, where, depth, within | {name})


def _target(node: Mapping[str, Any]) -> str:
    return str(node.get("$ref", "")).removeprefix("#/$defs/")


def _choice(values: list[Any], where: str) -> dict[str, Any]:
    """Return the schema of a choice of values, with one list per type, as strict mode requires."""
    by_type: dict[str, list[Any]] = {}
    for value in values:
        if type(value) not in _OF_PYTHON:
            _refuse(where, "one of its choices is not a plain value. Use strings or numbers")
        by_type.setdefault(_OF_PYTHON[type(value)], []).append(value)
    options = [{"type": kind, "enum": chosen} for kind, chosen in by_type.items()]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _refuse(where: str, why: str) -> NoReturn:
    raise UsageError(f"{where}: {why}.")
