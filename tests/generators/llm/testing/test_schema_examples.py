"""The test server's instances of JSON schemas: valid, and the same each time."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.schema_examples import example_json, schema_example


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": [1]}, {}, {"type": ["integer", "null"]}]),
        st.lists(st.integers() | st.text(max_size=3), min_size=1, max_size=4).map(lambda e: {"enum": e}),
        st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "number"}]),
    )


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    return st.one_of(
        members.map(
            lambda m: {"type": "object", "properties": m, "required": sorted(m), "additionalProperties": False}
        ),
        inner.map(lambda items: {"type": "array", "items": items}),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options}),
    )


def bounded(low: int, spread: int) -> st.SearchStrategy[dict[str, Any]]:
    high = low + spread
    numbers = [{}, {"minimum": low}, {"maximum": low}, {"minimum": low, "maximum": high}, {"exclusiveMinimum": low}]
    numbers += [{"exclusiveMaximum": low}, {"exclusiveMinimum": low, "exclusiveMaximum": high + 2}]
    size = abs(low)
    items = [{"minItems": size}, {"maxItems": size}, {"minItems": size, "maxItems": size + spread}]
    texts = [{"minLength": size}, {"maxLength": size}, {"minLength": size, "maxLength": size + spread}]
    return st.one_of(
        st.builds(
            lambda kind, bounds: {"type": kind, **bounds},
            st.sampled_from(["integer", "number"]),
            st.sampled_from(numbers),
        ),
        st.sampled_from(items).map(lambda bounds: {"type": "array", "items": {"type": "integer"}, **bounds}),
        st.sampled_from(texts).map(lambda bounds: {"type": "string", **bounds}),
    )


@given(st.tuples(st.integers(-50, 50), st.integers(0, 5)).flatmap(lambda ends: bounded(*ends)), st.integers(0, 999))
def test_an_instance_is_within_the_bounds(schema: dict[str, Any], salt: int) -> None:
    jsonschema.validate(schema_example(schema, salt), schema)


@given(st.recursive(leaves(), nested, max_leaves=8), st.integers(0, 2**64 - 1))
def test_an_instance_is_valid_and_the_same_for_the_same_salt(schema: dict[str, Any], salt: int) -> None:
    made = schema_example(schema, salt)
    jsonschema.validate(made, schema)
    assert made == schema_example(schema, salt)


class Node(BaseModel):
    """A schema that holds itself."""

    name: str
    score: float
    children: list["Node"]
    other: "Node | None"


def test_a_recursive_schema_ends() -> None:
    Node.model_validate(schema_example(Node.model_json_schema(), 1))


def test_enum_members_are_spread_over_the_salts() -> None:
    assert {schema_example({"enum": ["a", "b", "c"]}, salt) for salt in range(50)} == {"a", "b", "c"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[A-Z]"},
        {"type": "string", "format": "date"},
        {"type": "integer", "multipleOf": 3},
        {"type": "number", "exclusiveMinimum": 2, "maximum": 2},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "array", "items": {"type": "integer"}, "minItems": 10**9},
        {"allOf": [{"type": "integer"}]},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
        {"$ref": "#/$defs/nothing"},
        {"$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "object", "properties": 3},
        {"type": "strange"},
        {"type": "object", "required": [1]},
        {"const": 2**70},
    ],
)
def test_unsupported_schemas_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(APIError, match="Script the answer"):
        example_json(schema, 1)
