"""Small instances of JSON schemas, deterministic in schema and salt.

Supported are the keywords that schemas of answers have: type (also a list of types), enum, const, properties, required,
items, anyOf, $ref inside the schema, and bounds of numbers, lengths and counts. Optional members are included except deep
in a recursive schema. A schema with another keyword is refused with a 400; script the answer instead.
"""

import math
from collections.abc import Mapping
from typing import Any

import orjson

from pairwright.generators.llm.testing.api_errors import APIError

DEPTH = 6  # from here on without optional members and items
MAX_DEPTH = 40
LARGEST = 10_000  # characters or items that a schema may require

_Schema = Mapping[str, Any] | bool

_KEYWORDS = frozenset(
    {
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
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
            count = max(_least(schema, "minItems"), min(schema.get("maxItems", 1), 1 if depth < DEPTH else 0))
            return [self.make(schema.get("items", True), depth + 1) for _ in range(count)]
        if kind in {"integer", "number"}:
            return self._numeric(schema.get("minimum", -math.inf), schema.get("maximum", math.inf), kind)
        if kind == "boolean":
            return self._number() % 2 == 0
        if kind == "string":
            text = f"text {self._number():x}".ljust(_least(schema, "minLength"), "x")
            return text[: schema.get("maxLength", LARGEST)]
        if kind != "null":
            raise _cannot(f"{kind!r} is not a type")
        return None

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

    def _numeric(self, low: float, high: float, kind: str) -> float:
        start = low if low > -math.inf else high - 10 if high < math.inf else 0
        if kind == "number":
            value = (start + min(high, start + 1)) / 2
        else:
            first = math.ceil(start)
            value = first + self._number() % (max(0, math.floor(min(9, high - first))) + 1)
        if value > high:
            raise _cannot("no number lies within the bounds")
        return value

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
    if "items" in schema:
        return "array"
    return "number" if {"minimum", "maximum"} & set(schema) else "string"


def _least(schema: Mapping[str, Any], name: str) -> int:
    least: int = schema.get(name, 0)
    if least > LARGEST:
        raise _cannot(f"it requires more than {LARGEST} characters or items")
    return least


def _without(schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def _cannot(why: str) -> APIError:
    message = f"this test server cannot make an instance of the schema: {why}. Script the answer"
    return APIError(400, message, code="invalid_json_schema", param="response_format")
