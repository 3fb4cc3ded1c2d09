"""Columns that are made of the columns of a row: paths into nested values, templates of texts, and numbered columns.

    conversations.1.value      field `value` of the second item of the list `conversations`
    sentences.raw              field `raw` of every item of the list `sentences`, as a list; an item that is a text, itself
    caption.lines              the lines of the text `caption` that are not empty, as a list
    {filepath}/{filename}      a text with the values of two columns
    {image_id:012}.jpg         a value filled up with zeros to 12 characters, as COCO names its images
    caption_*                  the values of caption_1, caption_2, ... as a list, without empty ones

They are written where a column is named. A column of that very name has precedence, and so a name with a dot stays one.
A path that leads nowhere is null, and so is a template of which a column is empty.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Any

from pairwright.datasets.readers.field_values import parse_identifier

LINES = "lines"
_PLACEHOLDER = re.compile(r"\{([^{}:]+)(?::0(\d{1,3}))?\}")


def is_computable(column: str, names: Collection[str]) -> bool:
    """Return whether a column is none of ``names``, but a path or a template of them."""
    if column in names:
        return False
    if is_numbered(column):
        return bool(numbered_columns(column, names))
    needed = _PLACEHOLDER.findall(column)
    if needed:
        return all(_is_readable(name, names) for name, _ in needed)
    return "." in column and _is_readable(column, names)


def add_computed(fields: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a row with the values of computable ``columns`` under their expressions.

    Raises:
        RejectError: a template needs a value that is neither a text nor a number.
    """
    return {**fields, **{column: compute(fields, column) for column in columns}}


def compute(fields: Mapping[str, Any], column: str) -> Any:
    """Return the value of a column, path or template of a row; errors as in `add_computed`."""
    if is_numbered(column) and column not in fields:
        return [value for name in numbered_columns(column, fields) if (value := fields[name]) not in (None, "")]
    if column in fields or not _PLACEHOLDER.search(column):
        return _follow(fields, column)
    values = {name: parse_identifier(_follow(fields, name), name) for name, _ in _PLACEHOLDER.findall(column)}
    if not all(values.values()):
        return None
    return _PLACEHOLDER.sub(lambda found: values[found[1]].zfill(int(found[2] or 0)), column)


def is_numbered(column: str) -> bool:
    """Return whether a column is a pattern of numbered columns (`caption_*`)."""
    return column.endswith("*") and "{" not in column


def numbered_columns(column: str, names: Iterable[str]) -> list[str]:
    """Return the columns whose names are ``column`` with a number for its ``*``, in the order of the numbers."""
    if not is_numbered(column):
        return []
    start = column[:-1]
    numbered = [name for name in names if name.startswith(start) and name[len(start) :].isdecimal()]
    return sorted(numbered, key=lambda name: (int(name[len(start) :]), name))


def _is_readable(path: str, names: Collection[str]) -> bool:
    return path in names or path.partition(".")[0] in names


def _follow(fields: Mapping[str, Any], path: str) -> Any:
    if path in fields:
        return fields[path]
    name, *steps = path.split(".")
    return reduce(_step, steps, fields.get(name))


def _step(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, str) and name == LINES:
        return [line.strip() for line in value.splitlines() if line.strip()]
    if not isinstance(value, list | tuple):
        return None
    if name.isdecimal():
        return value[int(name)] if int(name) < len(value) else None
    return [item if isinstance(item, str) else _step(item, name) for item in value]
