"""Small instances of JSON schemas, deterministic in schema and salt.

Supported: type (also a list of types), enum, const, properties, required, items, prefixItems, anyOf, oneOf, allOf, $ref
inside the schema, bounds of numbers, lengths and counts, multipleOf, format. Not supported: not, if/then, dependent and
unevaluated members, patternProperties. ``pattern`` is met only by a short list of common texts. Optional members are
included except deep in a recursive schema.

Unsupported schemas are refused with a 400; script the answer instead.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from pairwright.generators.llm.testing.api_errors import APIError

DEPTH = 6  # from here on without optional members and items
MAX_DEPTH = 40
LARGEST = 10_000  # characters, items or members that a schema may require

_FORMATS = {
    "date": "2024-01-31",
    "time": "12:30:00Z",
    "date-time": "2024-01-31T12:30:00Z",
    "duration": "P1D",
    "email": "someone@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_USUAL = (
    *("a", "A", "0", "1", "abc", "ABC", "a1", "A1", "123", "a-b", "a_b", "word", "Word", "two words", "A sentence."),
    *("12", "1.0", "+15550100", "#a0b1c2", "a/b", "yes", "no", "en", "en-US", "AB-123", "12:30", *_FORMATS.values()),
)
_Schema = Mapping[str, Any] | bool


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
        if depth > MAX_DEPTH:
            raise _cannot("it does not end")
        if schema is True:
            return "anything"
        if not isinstance(schema, Mapping):
            raise _cannot("a part of it allows nothing, or is not a schema")
        schema = self._merged(schema, depth)
        if any(schema.get(least, 0) > LARGEST for least in ("minLength", "minItems", "minProperties")):
            raise _cannot(f"it requires more than {LARGEST} characters, items or members")
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][self._number() % len(schema["enum"])]
        for several in ("anyOf", "oneOf"):
            if options := schema.get(several):
                rest = {name: value for name, value in schema.items() if name != several}
                return self.make(_both(rest, self._option(options, depth)), depth + 1)
        return self._typed(schema, _type_of(schema), depth)

    def _typed(self, schema: Mapping[str, Any], kind: str, depth: int) -> Any:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind in {"integer", "number"}:
            return self._numeric(schema, whole=kind == "integer")
        if kind == "boolean":
            return self._number() % 2 == 0
        if kind == "string":
            return self._text(schema)
        if kind != "null":
            raise _cannot(f"{kind!r} is not a type")
        return None

    def _option(self, options: list[_Schema], depth: int) -> _Schema:
        # Deep in a schema, a branch without members ends the recursion.
        if depth < DEPTH:
            return options[0]
        return next((o for o in options if isinstance(o, Mapping) and o.get("type") in {"null", "string"}), options[-1])

    def _merged(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
        if isinstance(ref := schema.get("$ref"), str):
            if depth > MAX_DEPTH:
                raise _cannot("it does not end")
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            return self._merged(_both(self._aimed(ref), rest), depth + 1)
        for part in schema.get("allOf", ()):
            inner = self._merged(part, depth) if isinstance(part, Mapping) else {}
            schema = _both({name: value for name, value in schema.items() if name != "allOf"}, inner)
        return schema

    def _aimed(self, ref: str) -> Mapping[str, Any]:
        found: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if not ref.startswith("#") or not isinstance(found, Mapping):
            raise _cannot(f"{ref} does not exist in it")
        return found

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        members = schema.get("properties", {})
        needed = schema.get("required", ())
        made = {
            name: self.make(member, depth + 1) for name, member in members.items() if depth < DEPTH or name in needed
        }
        more = schema.get("additionalProperties", True)
        for name in needed:
            if name not in made:
                made[name] = self.make(more, depth + 1)
        for extra in range(max(0, schema.get("minProperties", 0) - len(made))):
            made[f"member{extra + 1}"] = self.make(more, depth + 1)
        return made

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        first = schema.get("prefixItems", [])
        made = [self.make(item, depth + 1) for item in first]
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        wanted = max(least, min(most, len(made) + 1 if depth < DEPTH else 0))
        rest = schema.get("items", True)
        for _ in range(100 * (least + 1) if rest is not False else 0):
            if len(made) >= wanted:
                return made
            item = self.make(rest, depth + 1)
            if not (schema.get("uniqueItems") and item in made):
                made.append(item)
        if len(made) >= least:
            return made
        raise _cannot("too few different items were found")

    def _numeric(self, schema: Mapping[str, Any], *, whole: bool) -> float:
        step = schema.get("multipleOf") or (1 if whole else 0)
        low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
        high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
        start = low if low > -math.inf else high - 10 if high < math.inf else 0
        if not step:
            return _between(start, high, schema)
        first = math.ceil(start / step) * step
        value = first + step if _excluded(first, schema) else first
        if _excluded(value, schema):
            raise _cannot("no number lies within the bounds")
        room = int(min(9, (high - value) // step)) if high < math.inf else 9
        chosen = value + (self._number() % (room + 1)) * step
        return value if _excluded(chosen, schema) else chosen

    def _text(self, schema: Mapping[str, Any]) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
        own = f"text {self._number():x}"
        if pattern := schema.get("pattern"):
            fits = (text for text in (*_USUAL, own) if least <= len(text) <= most and _found(pattern, text))
            found = next(fits, None)
            if found is None:
                raise _cannot(f"no text for the pattern {pattern!r} is known")
            return found
        usual = _FORMATS.get(schema.get("format", ""))
        return usual or own.ljust(least, "x")[:most]

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
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if {"minimum", "maximum", "multipleOf"} & set(schema) else "string"


def _both(one: Mapping[str, Any], other: _Schema) -> Mapping[str, Any]:
    if not isinstance(other, Mapping):
        return one
    joined = {**one, **other}
    if "properties" in one and "properties" in other:
        joined["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        joined["required"] = [*dict.fromkeys([*one["required"], *other["required"]])]
    return joined


def _between(low: float, high: float, schema: Mapping[str, Any]) -> float:
    chosen = (low + high) / 2 if high < math.inf else low + 0.5
    if _excluded(chosen, schema):
        raise _cannot("no number lies within the bounds")
    return chosen


def _excluded(value: float, schema: Mapping[str, Any]) -> bool:
    return bool(
        value < schema.get("minimum", -math.inf)
        or value > schema.get("maximum", math.inf)
        or value <= schema.get("exclusiveMinimum", -math.inf)
        or value >= schema.get("exclusiveMaximum", math.inf)
    )


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        raise _cannot(f"{pattern!r} is not a regular expression") from None


def _cannot(why: str) -> APIError:
    message = f"this test server cannot make an instance of the schema: {why}. Script the answer"
    return APIError(400, message, code="invalid_json_schema", param="response_format")
