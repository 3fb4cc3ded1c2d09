"""Parser of answers that are a list: if it is invalid as a whole, each entry is parsed on its own.

    LIST = ListShape(Edits, Edit)  # class Edits(BaseModel): edits: list[Edit]

    [answer] = yield from request_answers([request], LIST)
    for entry in answer.value or ():
        use(entry.value) if entry.value is not None else count(entry.error, entry.fields)

A server that enforces a schema returns valid lists. Others let the model name an unknown type, omit a field, apologise
in an entry, break its JSON, or stop in the middle of one: the other entries are billed and valid. Nothing is completed:
of a broken entry only the fields before the break are returned.

An answer without a valid entry, or with several lists, is an error as a whole, and is requested once more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from pairwright.generators.llm.output.accepted_forms import decode_nested_json, read_keyed_entries, read_plain_value
from pairwright.generators.llm.output.errors import OutputError, ParsedAnswer
from pairwright.generators.llm.output.json_parsing import find_json_fragments
from pairwright.generators.llm.output.structured import (
    decode_json_string,
    parse_structured,
    validate_variants,
)

M = TypeVar("M", bound=BaseModel)

MAX_ENTRIES = 500  # entries parsed one by one

_OF_ENTRIES = frozenset({"malformed", "truncated", "missing_field", "extra_field", "wrong_type", "wrong_value"})


@dataclass(frozen=True, slots=True)
class ListShape(Generic[M]):
    """The shape of a list; its value is a list of `ListEntry`.

    Attributes:
        whole: model whose only field is the list, and whose schema is sent.
        item: model of an entry.
    """

    whole: type[BaseModel]
    item: type[M]


@dataclass(frozen=True, slots=True)
class ListEntry(Generic[M]):
    """An entry of a list.

    Attributes:
        value: the value; None if it is invalid.
        error: what is wrong with it.
        fields: fields of an invalid entry, as far as they could be parsed; empty if it is not an object.
    """

    value: M | None
    error: OutputError | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def to_entries(whole: BaseModel) -> list[ListEntry[Any]]:
    """Return the entries of a valid list."""
    [items] = dict(whole).values()
    return [ListEntry(item) for item in items]


def parse_list(text: str, shape: ListShape[M], *, cut: bool = False) -> ParsedAnswer[Any]:
    """Return the requested list; arguments as in `structured.parse_structured`."""
    read = parse_structured(text, shape.whole, cut=cut)
    if read.value is not None:
        return ParsedAnswer(to_entries(read.value), None, read.tolerated)
    if read.error is None or read.error.word not in _OF_ENTRIES:
        return read
    entries = _one_by_one(decode_json_string(text)[0], shape, cut=cut)
    if all(entry.value is None for entry in entries):
        return read
    return ParsedAnswer(entries, None, ("entries",))


def reject_entries(entries: Sequence[ListEntry[M]], error_of: Callable[[M], OutputError | None]) -> list[ListEntry[M]]:
    """Return the entries, with the valid ones for which ``error_of`` returns an error made invalid."""
    found: list[ListEntry[M]] = []
    for entry in entries:
        error = error_of(entry.value) if entry.value is not None else None
        if entry.value is None or error is None:
            found.append(entry)
        else:
            found.append(ListEntry(None, error, entry.value.model_dump(by_alias=True)))
    return found


def _one_by_one(text: str, shape: ListShape[M], *, cut: bool) -> list[ListEntry[M]]:
    """Return the entries, each parsed on its own, and the one at which the list is cut; none if there are several lists."""
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
    if broken_off and (not found or found[-1].error != OutputError("truncated")):
        found.append(ListEntry(None, OutputError("truncated")))  # the missing entries, however many
    return found if lists < 2 else []


def _items(value: dict[str, Any], name: str, whole: type[BaseModel]) -> list[Any] | None:
    """Return the list in an object, by its name or as its only value; None if the object is an entry."""
    inner = decode_nested_json(value.get(name, next(iter(value.values())) if len(value) == 1 else None))
    if isinstance(inner, list):
        return inner
    return read_keyed_entries(value, whole) or read_keyed_entries(inner, whole)


def _read(item: Any, shape: type[M]) -> ListEntry[M]:
    read = validate_variants(item, shape)
    if read.error is None:
        return ListEntry(read.value)
    return ListEntry(None, read.error, item if isinstance(item, dict) else {})
