"""Small instances of JSON schemas, deterministic in schema and salt.

Supported are the keywords that schemas of answers have (`output.json_schema`): type (also a list of types), enum, const,
properties, required, items, anyOf, and $ref inside the schema. Optional members are included except deep in a recursive
schema. A schema with another keyword, such as a bound, is refused with a 400; script the answer instead.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from pairwright.generators.llm.testing.api_errors import APIError

DEPTH = 6  # from here on without optional members and items
MAX_DEPTH = 40

_Schema = Mapping[str, Any] | bool

_KEYWORDS = frozenset(
    {
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs"),
        *("title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment"),
    }
)


def schema_example(schema: Mapping[str, Any], salt: int) -> Any:
    """Return an instance of ``schema``; ``salt`` selects enum members, texts and numbers.

    Raises:
        APIError: 400: the schema is invalid or unsupported.
    """
    try:
        return _ExampleBuilder(schema, salt).make(schema, 0)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise _cannot(f"it is not well formed ({type(error).__name__})") from None


def example_json(schema: Mapping[str, Any], salt: int) -> str:
    """Return an instance of ``schema`` as JSON text.

    Raises:
        APIError: 400: as `schema_example`.
    """
    made = schema_example(schema, salt)
    try:
        return orjson.dumps(made).decode()
    except TypeError:
        raise _cannot("a number in it exceeds 64 bits, or a name is not a text") from None


class _ExampleBuilder:
    def __init__(self, root: Mapping[str, Any], salt: int) -> None:
        self._root, self._salt, self._made = root, salt, 0

    def make(self, schema: _Schema, depth: int) -> Any:
        if schema is True:
            return "anything"
        if not isinstance(schema, Mapping):
            raise _cannot("a part of it allows nothing, or is not a schema")
        if depth > MAX_DEPTH:
            raise _cannot("it does not end")
        if unknown := sorted(schema.keys() - _KEYWORDS):
            raise _cannot(f"its keyword {unknown[0]} is not supported")
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][self._number() % len(schema["enum"])]
        inner = self._target(schema["$ref"]) if "$ref" in schema else self._option(schema.get("anyOf"), depth)
        if inner is not None:
            return self.make({**_without(schema, "$ref", "anyOf"), **inner}, depth + 1)
        return self._typed(schema, _type_of(schema), depth)

    def _typed(self, schema: Mapping[str, Any], kind: str, depth: int) -> Any:
        if kind == "object":
            members, needed = schema.get("properties", {}), schema.get("required", ())
            names = dict.fromkeys([*(members if depth < DEPTH else ()), *needed])
            return {name: self.make(members.get(name, True), depth + 1) for name in names}
        if kind == "array":
            return [self.make(schema.get("items", True), depth + 1)] if depth < DEPTH else []
        if kind in {"integer", "boolean", "string"}:
            number = self._number()
            return {"integer": number % 10, "boolean": number % 2 == 0, "string": f"text {number:x}"}[kind]
        if kind not in {"number", "null"}:
            raise _cannot(f"{kind!r} is not a type")
        return 0.5 if kind == "number" else None

    def _option(self, options: list[Mapping[str, Any]] | None, depth: int) -> Mapping[str, Any] | None:
        # Deep in a schema, a branch without members ends the recursion.
        if not options or depth < DEPTH:
            return options[0] if options else None
        return next((option for option in options if option.get("type") in {"null", "string"}), options[-1])

    def _target(self, ref: str) -> Mapping[str, Any]:
        found: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if not ref.startswith("#") or not isinstance(found, Mapping):
            raise _cannot(f"{ref} does not exist in it")
        return found

    def _number(self) -> int:
        # A different number for each value and request.
        self._made += 1
        return (self._salt * 31 + self._made * 2_654_435_761) % 65_521


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _without(schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def _cannot(why: str) -> APIError:
    message = f"this test server cannot make an instance of the schema: {why}. Script the answer"
    return APIError(400, message, code="invalid_json_schema", param="response_format")
