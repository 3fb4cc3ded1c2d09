"""Small instances of JSON schemas, deterministic in schema and salt.

Supported are the keywords that schemas of answers have (`output.json_schema`): type (also a list of types), enum, const,
properties, required, items, anyOf, $ref inside the schema, and bounds of numbers, texts and lists. Optional members are
included except deep in a recursive schema. A schema with another keyword, such as a pattern, is refused with a 400;
script the answer instead.
"""

import math
from collections.abc import Mapping
from typing import Any

import orjson

from pairwright.generators.llm.testing.api_errors import APIError

DEPTH = 6  # from here on without optional members and items
MAX_DEPTH = 40
MAX_LENGTH = 1000  # upper limit of minItems and minLength

_Schema = Mapping[str, Any] | bool

_NAMES = """
type enum const properties required additionalProperties items anyOf $ref $defs minimum maximum exclusiveMinimum
exclusiveMaximum minLength maxLength minItems maxItems title description default examples deprecated $schema $id $comment
"""
_KEYWORDS = frozenset(_NAMES.split())


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
            length = _length(schema, "Items", int(depth < DEPTH))
            return [self.make(schema.get("items", True), depth + 1) for _ in range(length)]
        if kind == "integer":
            low, high = _integer_range(schema)
            return low + self._number() % (high - low + 1)
        if kind == "string":
            text = f"text {self._number():x}"
            return text.ljust(length := _length(schema, "Length", len(text)), "x")[:length]
        if kind not in {"boolean", "number", "null"}:
            raise _cannot(f"{kind!r} is not a type")
        return {"boolean": self._number() % 2 == 0, "number": _fraction(schema), "null": None}[kind]

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


def _length(schema: Mapping[str, Any], unit: str, usual: int) -> int:
    """Return the length of a list or text: the usual one, moved into the bounds of the schema."""
    low, high = schema.get(f"min{unit}", 0), schema.get(f"max{unit}", MAX_LENGTH)
    if not 0 <= low <= min(high, MAX_LENGTH):
        raise _cannot(f"its min{unit} is above max{unit}, or not in 0 to {MAX_LENGTH:,}")
    return int(min(max(usual, low), high))


def _integer_range(schema: Mapping[str, Any]) -> tuple[int, int]:
    """Return the smallest and largest integer of a schema: one digit where it has no bounds."""
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [math.floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    highs += [math.ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    low = max(lows) if lows else min([0, *highs])
    high = min(highs) if highs else max(9, low)
    if low > high:
        raise _cannot("its bounds allow no integer")
    return low, high


def _fraction(schema: Mapping[str, Any]) -> float:
    """Return the middle of the bounds of a schema, or a number beside the only one."""
    lows = [schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema]
    highs = [schema[name] for name in ("maximum", "exclusiveMaximum") if name in schema]
    low = max(lows) if lows else min([0, *(high - 1 for high in highs)])
    high = min(highs) if highs else max(1, low + 1)
    middle = low + (high - low) / 2
    if low > high or middle in {schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")}:
        raise _cannot("its bounds allow no number")
    return float(middle)


def _without(schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def _cannot(why: str) -> APIError:
    message = f"this test server cannot make an instance of the schema: {why}. Script the answer"
    return APIError(400, message, code="invalid_json_schema", param="response_format")
