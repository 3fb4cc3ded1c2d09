"""The test server's instances of JSON schemas: valid, and the same each time."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.schema_examples import example_json, schema_example


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    lengths = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)
    bounds = st.tuples(st.integers(-50, 50), st.integers(1, 60)).map(lambda b: (b[0], b[0] + b[1]))
    return st.one_of(
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": [1]}, {}, {"type": ["integer", "null"]}]),
        st.lists(st.integers() | st.text(max_size=3), min_size=1, max_size=4).map(lambda e: {"enum": e}),
        lengths.map(lambda b: {"type": "string", "minLength": b[0], "maxLength": b[1]}),
        bounds.map(lambda b: {"type": "integer", "minimum": b[0], "maximum": b[1]}),
        bounds.map(lambda b: {"type": "number", "minimum": b[0], "maximum": b[1]}),
    )


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    counts = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
    return st.one_of(
        members.map(
            lambda m: {"type": "object", "properties": m, "required": sorted(m), "additionalProperties": False}
        ),
        st.tuples(inner, counts).map(
            lambda t: {"type": "array", "items": t[0], "minItems": t[1][0], "maxItems": t[1][1]}
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options}),
    )


@given(st.recursive(leaves(), nested, max_leaves=8), st.integers(0, 2**64 - 1))
def test_an_instance_is_valid_and_the_same_for_the_same_salt(schema: dict[str, Any], salt: int) -> None:
    made = schema_example(schema, salt)
    jsonschema.validate(made, schema)
    assert made == schema_example(schema, salt)


class Node(BaseModel):
    """A schema that holds itself."""

    name: str = Field(min_length=3, max_length=5)
    score: float = Field(ge=0, le=1)
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
        {"allOf": [{"type": "integer"}]},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
        {"$ref": "#/$defs/nothing"},
        {"$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "integer", "minimum": "x"},
        {"type": "object", "properties": 3},
        {"type": "strange"},
        {"type": "string", "minLength": 10**18},
        {"type": "array", "minItems": 10**9},
        {"type": "object", "required": [1]},
        {"const": 2**70},
    ],
)
def test_unsupported_schemas_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(APIError, match="Script the answer"):
        example_json(schema, 1)
