"""What becomes of a pydantic model on its way to a server."""

import enum
import json
from collections.abc import Callable
from datetime import date
from typing import Any, Literal

import jsonschema  # type: ignore[import-untyped]
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.output.json_schema import build_schema

ALLOWED = {"type", "description", "enum", "properties", "items", "anyOf", "required", "additionalProperties"}


class Colour(enum.Enum):
    """For readers of the code."""

    RED = "red"
    BLUE = "blue"


class Thing(BaseModel):
    """For readers of the code."""

    name: str = Field(min_length=1, max_length=40, pattern="^[a-z ]+$", description="a noun")
    count: int = Field(default=1, ge=1, le=9)


class Edit(BaseModel):
    """Every kind of field that is allowed."""

    kind: Literal["swap", "add"]
    mixed: Literal["one", 2]
    things: list[Thing] = Field(min_length=1, max_length=3)
    colour: Colour | None = None
    other: Thing | str
    score: float
    day: date
    main: Thing = Field(description="the main one")


class Tree(BaseModel):
    """Holds itself."""

    name: str
    children: list["Tree"]


class Forest(BaseModel):
    """Holds what holds itself."""

    trees: list[Tree]


def keywords(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(keywords, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    inner = {**node, "properties": list(node.get("properties", {}).values()), "enum": []}
    return set(node) | set().union(*map(keywords, inner.values()))


def objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for each in node for found in objects(each)]
    if not isinstance(node, dict):
        return []
    own = [node] if node.get("type") == "object" else []
    return own + [found for each in node.values() for found in objects(each)]


def test_every_property_is_required_and_no_other_allowed() -> None:
    found = objects(build_schema(Edit).schema)
    assert len(found) == 4
    for each in found:
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False


def test_only_keywords_of_the_strict_subset_are_used() -> None:
    assert keywords(build_schema(Edit).schema) <= ALLOWED


def test_it_is_a_json_schema_that_takes_what_the_shape_takes() -> None:
    jsonschema.Draft202012Validator.check_schema(build_schema(Edit).schema)
    thing = {"name": "a dog", "count": 2}
    value = {"kind": "add", "mixed": 2, "things": [thing], "colour": "red", "other": "x", "score": 1.5}
    value |= {"day": "2020-01-01", "main": thing}
    Edit.model_validate_json(json.dumps(value))
    jsonschema.validate(value, build_schema(Edit).schema)
    for wrong in ({"kind": "drop"}, {"mixed": "2"}, {"colour": "green"}, {"things": [{"name": "x"}]}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**value, **wrong}, build_schema(Edit).schema)


def test_descriptions_of_fields_are_told_and_docstrings_are_not() -> None:
    schema = build_schema(Edit).schema
    assert schema["properties"]["main"]["description"] == "the main one"
    assert schema["properties"]["things"]["items"]["properties"]["name"]["description"] == "a noun"
    assert "readers" not in json.dumps(schema)


def test_the_name_is_one_that_servers_take() -> None:
    assert build_schema(Edit).name == "Edit"
    generic = type("Odd[name] of " + "x" * 80, (Edit,), {})
    assert len(build_schema(generic).name) == 64
    assert build_schema(generic).name.startswith("Odd_name_of_xxx")


@pytest.mark.parametrize("shape", [Tree, Forest])
def test_a_shape_that_holds_itself_keeps_references_and_validates(shape: type[BaseModel]) -> None:
    tree = {"name": "a", "children": [{"name": "b", "children": []}]}
    schema = build_schema(shape).schema
    assert schema["type"] == "object"
    jsonschema.validate(tree if shape is Tree else {"trees": [tree]}, schema)
    tree["children"] = [{"name": 3, "children": []}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree if shape is Tree else {"trees": [tree]}, schema)


class FreeDict(BaseModel):
    """Names are not known."""

    values: dict[str, int]


class Pair(BaseModel):
    """Items of two types."""

    pair: tuple[int, str]


class Anything(BaseModel):
    """No type."""

    value: Any


class AnyList(BaseModel):
    """No type of items."""

    values: list  # type: ignore[type-arg]


class Empty(BaseModel):
    """No fields."""


class Open(BaseModel):
    """Other fields, too."""

    model_config = ConfigDict(extra="allow")
    name: str


class Listed(RootModel[list[str]]):
    """No object."""


class Called(BaseModel):
    """No JSON."""

    call: Callable[[], int]


@pytest.mark.parametrize(
    ("shape", "where"),
    [
        (FreeDict, "FreeDict.values"),
        (Pair, "Pair.pair"),
        (Anything, "Anything.value"),
        (AnyList, "AnyList.values[]"),
        (Empty, "Empty"),
        (Open, "Open"),
        (Listed, "Listed"),
        (Called, "Called"),
    ],
)
def test_what_the_subset_cannot_say_is_refused_by_place(shape: type[BaseModel], where: str) -> None:
    with pytest.raises(UsageError, match=f"^{where.replace('[', '.').replace(']', '.')}: "):
        build_schema(shape)


def test_nesting_without_end_is_refused() -> None:
    shape: type[BaseModel] = Thing
    for level in range(12):
        shape = type(f"Level{level}", (BaseModel,), {"__annotations__": {"inner": shape}})
    with pytest.raises(UsageError, match="deeper than 10"):
        build_schema(shape)
