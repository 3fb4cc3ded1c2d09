"""Reader of JSON files that are one object with rows, plain or compressed.

    {"info": {...}, "annotations": [{"caption": ...}, ...]}   one list of rows among other values (RedCaps, Karpathy)
    {"train": [{"caption": ...}, ...], "test": [...]}         a list of rows per split; `split` is its name
    {"image_urls": [...], "captions": [...]}                  a list per column, of equal length (SBU)
    {"image": {"0": ...}, "caption": {"0": ...}}              an object of numbered values per column (pandas)
    {"1.jpg": {"caption": ...}, "2.jpg": ["a", "b"]}          a row, a list of captions or a caption per image or number

Limits: the file is held in memory. An object with several lists of rows that are no splits is refused, as one of them
would be ignored.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import json_type_name, parse_object, read_text_bytes
from pairwright.datasets.rejects import RejectError, make_reject

SPLIT = "split"
_SPLITS = frozenset({"train", "restval", "val", "valid", "validation", "dev", "test"})


def read_json_object(path: Path) -> InputRowIterator:
    """Yield the rows of an object; places are ``file:NAME item N`` and ``file:NAME``, from 1.

    Raises:
        InputError: the file is no object with rows.
    """
    try:
        data = parse_object(read_text_bytes(path), "file")
    except RejectError as flaw:
        raise InputError(f"{flaw.reason}: {flaw.detail}", where=str(path), fix="Fix the file.") from None
    for place, row in _rows(path, data):
        if isinstance(row, dict):
            yield InputRow(f"{path}:{place}", row)
        else:
            yield make_reject(f"{path}:{place}", "wrong_type", f"the row is {json_type_name(row)}, not an object", row)


def has_rows(data: Any) -> bool:
    """Return whether parsed JSON is an object with rows."""
    return isinstance(data, dict) and (is_table(data) or _is_keyed(data))


def is_table(data: Mapping[str, Any]) -> bool:
    """Return whether an object has lists of rows, or columns: its names are none of rows."""
    return bool(_row_lists(data)) or _is_columnar(data) or _is_numbered_columns(data)


def _rows(path: Path, data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if is_table(data):
        yield from iterate_table(path, data)
    elif _is_keyed(data):
        yield from ((name, _keyed_row(name, value)) for name, value in data.items())
    else:
        raise InputError("the file is no object with rows", where=str(path), fix="Give a list of rows, or JSON Lines.")


def iterate_table(path: Path, data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the rows of an object that `is_table`, each with its place in the file.

    Raises:
        InputError: several lists of rows, whose names are not those of splits.
    """
    if _is_numbered_columns(data):
        yield from _rows_of_columns({name: values.values() for name, values in data.items()})
        return
    lists = _row_lists(data)
    if len(lists) > 1 and not lists.keys() <= _SPLITS:
        fix = f"Extract one of them: jq .{next(iter(lists))} {path.name} > rows.json."
        raise InputError(f"several lists of rows ({', '.join(lists)})", where=str(path), fix=fix)
    if lists:
        split = len(lists) > 1 or lists.keys() <= _SPLITS
        for name, rows in lists.items():
            for number, row in enumerate(rows, 1):
                yield f"{name} item {number}", {SPLIT: name, **row} if split and isinstance(row, dict) else row
    else:
        yield from _rows_of_columns(data)


def _rows_of_columns(columns: Mapping[str, Iterable[Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, values in enumerate(zip(*columns.values(), strict=True), 1):
        yield f"item {number}", dict(zip(columns, values, strict=True))


def _row_lists(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: value for name, value in data.items() if isinstance(value, list) and value and _is_row(value[0])}


def _is_row(value: Any) -> bool:
    return isinstance(value, dict)


def _is_columnar(data: Mapping[str, Any]) -> bool:
    """Return whether all values are lists of one length, whose names are not those of rows: images or numbers."""
    lists = [value for value in data.values() if isinstance(value, list)]
    equal = len(lists) == len(data) and len({len(value) for value in lists}) == 1 and bool(lists[0])
    return equal and not any(map(_is_row_name, data))


def _is_numbered_columns(data: Mapping[str, Any]) -> bool:
    """Return whether all values are objects with the same numbers as names: those of rows, as columns have names.

    What images or numbers name are texts of these images.
    """
    if any(_is_image_name(name) or name.isdecimal() for name in data):
        return False
    numbers = next((value.keys() for value in data.values() if isinstance(value, dict)), {}.keys())
    return (
        bool(numbers)
        and all(map(str.isdecimal, numbers))
        and all(isinstance(value, dict) and value.keys() == numbers for value in data.values())
    )


def _is_keyed(data: Mapping[str, Any]) -> bool:
    """Return whether each value is a row, or texts of the image or id that is its name."""
    return (
        bool(data)
        and not _is_table_of_labels(data)
        and (
            all(map(_is_row, data.values()))
            or all(_is_texts(value) or (isinstance(value, str) and _is_row_name(name)) for name, value in data.items())
        )
    )


def _is_table_of_labels(data: Mapping[str, Any]) -> bool:
    """Return whether texts of numbers are mostly single words, as those of a table of classes."""
    texts = [value for name, value in data.items() if isinstance(value, str) and name.isdecimal()]
    return 2 * sum(" " not in text.strip() for text in texts) > len(texts)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _is_row_name(name: str) -> bool:
    return _is_image_name(name) or name.isdecimal()


def _is_image_name(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES


def _keyed_row(name: str, value: Any) -> dict[str, Any]:
    row = value if isinstance(value, dict) else {"caption" if isinstance(value, str) else "captions": value}
    identity = "image" if _is_image_name(name) else "key"
    return row if identity in row else {identity: name, **row}
