"""Accepted forms of a structured answer: one table of what models write in place of the requested JSON object.

    class Negatives(BaseModel):  # {"negatives": [{"type": ..., "caption": ...}, ...]}

`ACCEPTED_FORMS` lists the forms of a JSON value, each with an example. `iter_interpretations` applies them, also one to
the result of another, and yields possible values of the answer; pydantic decides which is valid. `read_plain_value` parses
an answer without JSON: numbered lists and lines of ``name: value``.

All names come from the model of the answer; `SYNONYMS` is the only word list.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "type": ("kind", "category", "name"),
    "kind": ("type", "category", "name"),
    "from": ("old", "original", "before", "removed"),
    "to": ("new", "replacement", "after", "added"),
    "caption": ("text", "sentence", "negative", "hard-negative", "positive", "hard-positive"),
    "question": ("q", "user", "human", "instruction"),
    "answer": ("a", "assistant", "gpt", "response"),
}
_SOURCE = frozenset({"original", "old", "source", "input", "given", "first"})  # "original_caption" is not the new one

MAX_DEPTH = 3  # forms applied one after another
MAX_INTERPRETATIONS = 40  # per value
MAX_LINES = 500


@dataclass(frozen=True, slots=True)
class AcceptedForm:
    """A form of a value.

    Attributes:
        tolerated: its key in `structured.TOLERATED_DEFECTS`.
        example: a value of this form.
        read: returns what a value means for a model; the value itself if it does not have this form.
    """

    tolerated: str
    example: str
    read: Callable[[Any, type[BaseModel]], Any]


def iter_interpretations(value: Any, shape: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """Yield the possible interpretations of a value, fewest forms first, each with the key of its first form.

    Args:
        value: a JSON value.
        shape: the model of the answer.
    """
    seen = {_bytes(value)}
    level: list[tuple[str, Any]] = [("", value)]
    for _ in range(MAX_DEPTH):
        following: list[tuple[str, Any]] = []
        for name, each in level:
            for form in ACCEPTED_FORMS:
                read = form.read(each, shape)
                key = _bytes(read)
                if key not in seen and len(seen) < MAX_INTERPRETATIONS:
                    seen.add(key)
                    following.append((name or form.tolerated, read))
        yield from following
        level = following


def decode_nested_json(value: Any) -> Any:
    """Return the object or list that a string contains as JSON, else the value."""
    if isinstance(value, str) and value[:1] in "{[" and value:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def read_keyed_entries(value: Any, shape: type[BaseModel]) -> list[Any] | None:
    """Return the entries of an object whose keys are the types of its entries; None for other values.

    Args:
        value: such as ``{"replace-object": "A cat sits.", "swap-object": {"caption": ...}}``.
        shape: a model whose only field is a list of models that have a type (a ``Literal``) and a required text.
    """
    item = _item_of(shape)
    names = _type_and_text(item) if item is not None else None
    if names is None or not isinstance(value, dict):
        return None
    type_, text, known = names
    if not any(normalize_name(name) in known for name in value):
        return None
    return [
        {type_: name, **entry} if isinstance(entry, dict) else {type_: name, text: entry}
        for name, entries in ((known.get(normalize_name(name), name), entries) for name, entries in value.items())
        for entry in (entries if isinstance(entries, list) else [entries])
    ]


def read_plain_value(text: str, shape: type[BaseModel]) -> Any:
    """Return the value of an answer without JSON; None if it has no such value.

    Parsed are ``name: value`` lines, whose names are fields, their synonyms, or types, with an optional number or bullet;
    and for a list of texts, numbered lines. A line without a name continues the value before it if that is empty. A
    repeated name starts the next entry.
    """
    lines = [line.strip() for line in text.splitlines()[:MAX_LINES] if line.strip()]
    item = _item_of(shape)
    if item is None:
        [only] = entries if len(entries := list(_entries(lines, shape))) == 1 else [None]
        return only
    [list_name] = field_names(shape)
    if not isinstance(item, type) or not issubclass(item, BaseModel):
        items = [found["rest"].strip() for line in lines if (found := _NUMBERED.match(line))]
        return {list_name: items} if items else None
    named = list(_entries(lines, item))
    return {list_name: named} if named else None


# --- the forms of a value


def _of_one(value: Any, shape: type[BaseModel]) -> Any:  # noqa: ARG001 - the form's signature
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _bare_list(value: Any, shape: type[BaseModel]) -> Any:
    return {next(iter(field_names(shape))): value} if isinstance(value, list) and _item_of(shape) else value


def _enclosed(value: Any, shape: type[BaseModel]) -> Any:
    if not isinstance(value, dict) or len(value) != 1 or field_names(shape) & set(value):
        return value
    inner = decode_nested_json(next(iter(value.values())))
    return inner if isinstance(inner, dict | list) else value


def _as_text(value: Any, shape: type[BaseModel]) -> Any:  # noqa: ARG001 - the form's signature
    return {name: decode_nested_json(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _keyed(value: Any, shape: type[BaseModel]) -> Any:
    if _item_of(shape) is None:
        return value
    [list_name] = field_names(shape)
    listed = value[list_name] if isinstance(value, dict) and set(value) == {list_name} else value
    parts = listed if isinstance(listed, list) else [listed]
    each = [read_keyed_entries(part, shape) for part in parts]
    if not parts or any(items is None for items in each):
        return value
    return {list_name: [item for items in each for item in items or ()]}


# --- names


def field_names(shape: type[BaseModel]) -> set[str]:
    """Return the names of a model's fields, as its JSON has them."""
    return set(_fields(shape))


def _fields(shape: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in shape.model_fields.items()}


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def normalize_name(name: str) -> str:
    """Return a name in lower case with hyphens between its words: "Replace object", replaceObject and REPLACE_OBJECT are one."""
    return "-".join(re.findall(r"[^\W_]+", _CAMEL.sub("-", name).casefold()))


def _with_own_names(value: Any, shape: type[BaseModel]) -> Any:
    """Return a value with synonyms replaced by the names of the fields, also in entries of lists."""
    if not isinstance(value, dict):
        return value
    own = field_names(shape)
    others: dict[str, list[Any]] = {}
    for name, inner in value.items():
        if name not in own and (meant := _match_field(name, own)):
            others.setdefault(meant, []).append(inner)
    # A field that is present is replaced only by a qualified name of it: "new_caption" replaces the old "caption".
    taken = {
        meant: inners[0]
        for meant, inners in others.items()
        if len(inners) == 1 and (meant not in value or _is_qualified(value, meant))
    }
    kept = {name: inner for name, inner in value.items() if name in own or _match_field(name, own) not in taken}
    renamed = {**kept, **taken}
    item = _item_of(shape)
    if isinstance(item, type) and issubclass(item, BaseModel):
        return {
            name: [_with_own_names(each, item) for each in inner] if name in own and isinstance(inner, list) else inner
            for name, inner in renamed.items()
        }
    return renamed


def _match_field(name: str, own: set[str]) -> str:
    """Return the field that a name means: in another case, with a prefix, or as a synonym; empty: none."""
    words = normalize_name(name).split("-")
    for field in own:
        if words == [field] or (words[-1] == field and not _SOURCE & set(words)):
            return field
    return next((field for field in own if normalize_name(name) in SYNONYMS.get(field, ())), "")


def _is_qualified(value: Mapping[str, Any], field: str) -> bool:
    return any(
        name != field and normalize_name(name).split("-")[-1] == field and _match_field(name, {field}) for name in value
    )


def _item_of(shape: type[BaseModel]) -> Any:
    """Return the type of the entries if the only field of a model is a list, else None."""
    if len(shape.model_fields) != 1:
        return None
    [field] = shape.model_fields.values()
    return get_args(field.annotation)[0] if get_origin(field.annotation) is list else None


def _type_and_text(item: Any) -> tuple[str, str, Mapping[str, str]] | None:
    """Return the names of the type and the text field of an entry, and its types by normalized name."""
    if not isinstance(item, type) or not issubclass(item, BaseModel):
        return None
    fields = _fields(item)
    kinds = {
        name: get_args(field.annotation) for name, field in fields.items() if get_origin(field.annotation) is Literal
    }
    texts = [
        name
        for name, field in fields.items()
        if field.is_required() and (field.annotation is str or set(get_args(field.annotation)) == {str, NoneType})
    ]
    if len(kinds) != 1 or len(texts) != 1:
        return None
    [(type_, known)] = kinds.items()
    return type_, texts[0], {normalize_name(str(each)): each for each in known}


def _bytes(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


ACCEPTED_FORMS: tuple[AcceptedForm, ...] = (
    AcceptedForm("renamed", '{"new_caption": "A cat sits."}', _with_own_names),
    AcceptedForm("wrapped", '[{"caption": "A cat sits."}]', _of_one),
    AcceptedForm("wrapped", '[{"type": "swap-object", "caption": "..."}, ...]', _bare_list),
    AcceptedForm("wrapped", '{"result": {"caption": "A cat sits."}}', _enclosed),
    AcceptedForm("wrapped", '{"negatives": "[{...}, {...}]"}', _as_text),
    AcceptedForm("keyed", '{"swap-object": "A cat sits.", "add-object": {"caption": "..."}}', _keyed),
)


# --- answers without JSON

_NUMBERED = re.compile(r"(?:#{1,6}\s+)?(?:\(?\d{1,3}[.):]|[-*•–](?!\*))\s+(?P<rest>.+)")
# `**Replace object** (dog -> cat): ...`, `Caption: ...`, `swap-object - ...`
_NAMED = re.compile(
    r"[*_`\"'#\s]*(?P<name>[^\W\d_][\w -]{0,40}?)\s?\d{0,2}[*_`\"']*(?:\s*\([^()]{0,120}\))?[*_`\"']*"
    r"(?:\s*:[*_\s]*|\s+[–—-]+>?\s+|\s*\Z)(?P<rest>.*)"
)


def _entries(lines: list[str], item: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the entries in lines of ``name: value``; a repeated name starts the next entry."""
    own = field_names(item)
    names = _type_and_text(item)
    first_text = next((name for name, field in _fields(item).items() if field.annotation is str), "")
    type_, text, known = names or ("", first_text, {})
    entry: dict[str, Any] = {}
    last = ""
    for line in lines:
        numbered = _NUMBERED.match(line)
        found = _NAMED.match(numbered["rest"] if numbered else line)
        name = found["name"] if found else ""
        kind = known.get(normalize_name(name), "")
        field = type_ if kind else _match_field(name, own) if name else ""
        value = _unquoted(found["rest"]) if found else ""
        if not field:
            if last and not entry.get(last):
                entry[last] = _unquoted(line)
            elif numbered and entry:
                yield entry
                entry, last = {}, ""
            continue
        if field in entry:
            yield entry
            entry = {}
        entry[field], last = (kind, text) if kind else (value, field)
        if kind and value:
            entry[text] = value
    if entry:
        yield entry


def _unquoted(text: str) -> str:
    text = text.strip().strip("*").strip()
    closing = {'"': '"', "“": "”"}.get(text[:1])
    return text[1:-1].strip() if len(text) > 1 and closing and text.endswith(closing) else text
