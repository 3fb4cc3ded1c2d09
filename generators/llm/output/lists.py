"""Answers that are a list: where it does not fit as a whole, each entry is read by itself, and a bad one costs itself alone.

    LIST = ListShape(Edits, Edit)  # class Edits(BaseModel): edits: list[Edit]

    [answer] = yield from asked([request], LIST)
    for entry in answer.value or ():
        use(entry.value) if entry.value is not None else count(entry.trouble, entry.said)

A server that holds a model to a schema gives lists that fit. Others let it name a type that there is not, leave a field
out, apologise in one entry, break the JSON of one, or end in the middle of one: the other entries were paid for and are
good. Nothing is completed: of a broken entry only what it says before the break is told.

An answer without one good entry is no list; what is wrong with the whole stands, and the model is asked once more. So
is one that holds several lists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from pairwright.generators.llm.output.accepted_forms import decode_nested_json, read_keyed_entries, read_plain_value
from pairwright.generators.llm.output.errors import OutputError
from pairwright.generators.llm.output.json_parsing import find_json_fragments
from pairwright.generators.llm.output.structured import (
    StructuredResult,
    decode_json_string,
    parse_structured,
    validate_variants,
)

M = TypeVar("M", bound=BaseModel)

MAX_ENTRIES = 500  # that are read one by one

_OF_ENTRIES = frozenset({"malformed", "truncated", "missing_field", "extra_field", "wrong_type", "wrong_value"})


@dataclass(frozen=True, slots=True)
class ListShape(Generic[M]):
    """The shape of a list; its value is a list of `Entry`.

    Attributes:
        whole: the model whose only field is the list; its schema is asked for.
        item: the model of an entry.
    """

    whole: type[BaseModel]
    item: type[M]


@dataclass(frozen=True, slots=True)
class ListEntry(Generic[M]):
    """An entry of a list.

    Attributes:
        value: None where it is no good.
        trouble: what is wrong with it then.
        said: the fields that a bad one has, as far as they could be read; what was no object has none.
    """

    value: M | None
    trouble: OutputError | None = None
    said: dict[str, Any] = field(default_factory=dict)


def to_entries(whole: BaseModel) -> list[ListEntry[Any]]:
    """Return the entries of a list that fits as a whole."""
    [items] = dict(whole).values()
    return [ListEntry(item) for item in items]


def parse_list(text: str, shape: ListShape[M], *, cut: bool = False) -> StructuredResult:
    """Find the list that was asked for; the arguments are those of `shaped.read_shape`."""
    read = parse_structured(text, shape.whole, cut=cut)
    if read.trouble is None:
        return StructuredResult(to_entries(read.value), None, read.forgiven)
    if read.trouble.word not in _OF_ENTRIES:
        return read
    entries = _one_by_one(decode_json_string(text)[0], shape, cut=cut)
    if all(entry.value is None for entry in entries):
        return read
    return StructuredResult(entries, None, ("entries",))


def reject_entries(
    entries: Sequence[ListEntry[M]], trouble_of: Callable[[M], OutputError | None]
) -> list[ListEntry[M]]:
    """Return the entries, of the good ones those as bad that ``trouble_of`` finds something wrong with."""
    found: list[ListEntry[M]] = []
    for entry in entries:
        trouble = trouble_of(entry.value) if entry.value is not None else None
        if entry.value is None or trouble is None:
            found.append(entry)
        else:
            found.append(ListEntry(None, trouble, entry.value.model_dump(by_alias=True)))
    return found


def _one_by_one(text: str, shape: ListShape[M], *, cut: bool) -> list[ListEntry[M]]:
    """Return the entries, each read by itself, and the one at which the list is cut; none where there are several lists."""
    [name] = shape.whole.model_fields
    found: list[ListEntry[M]] = []
    lists, broken_off = 0, False
    pieces = find_json_fragments(text)
    if not pieces and (plain := read_plain_value(text, shape.whole)) is not None:
        found = [_read(item, shape.item) for item in plain[name]]
        return [*found[:-1], ListEntry(None, OutputError("truncated"), plain[name][-1])] if cut else found
    for piece in pieces:
        if piece.value is None:
            broken_off |= cut and not piece.ends
            if piece.begun:
                word = "truncated" if cut and not piece.ends else "malformed"
                found.append(ListEntry(None, OutputError(word), dict(piece.begun)))
            continue
        items = _items(piece.value, name, shape.whole)
        lists += items is not None
        found += [_read(item, shape.item) for item in ([piece.value] if items is None else items[:MAX_ENTRIES])]
    if broken_off and (not found or found[-1].trouble != OutputError("truncated")):
        found.append(ListEntry(None, OutputError("truncated")))  # what would have come; how much, nobody knows
    return found if lists < 2 else []


def _items(value: dict[str, Any], name: str, whole: type[BaseModel]) -> list[Any] | None:
    """Return the list in an object, under its name or as all that there is; None where the object is an entry."""
    inner = decode_nested_json(value.get(name, next(iter(value.values())) if len(value) == 1 else None))
    if isinstance(inner, list):
        return inner
    return read_keyed_entries(value, whole) or read_keyed_entries(inner, whole)


def _read(item: Any, shape: type[M]) -> ListEntry[M]:
    read = validate_variants(item, shape)
    if read.trouble is None:
        return ListEntry(read.value)
    return ListEntry(None, read.trouble, item if isinstance(item, dict) else {})
