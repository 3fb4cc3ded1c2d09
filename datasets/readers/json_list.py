"""A JSON file that is a list of rows (``[{"image": ..., "caption": ...}, ...]``); it is held in memory whole."""

from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import json_type_name, parse_json, read_text_bytes
from pairwright.datasets.rejects import RejectError, make_reject


def read_json_list(path: Path) -> InputRowIterator:
    """Yield the items of a JSON list; places are ``file:item N``, from 1."""
    try:
        items = parse_json(read_text_bytes(path))
    except RejectError as flaw:
        raise InputError(f"{flaw.reason}: {flaw.detail}", where=str(path), fix="Correct the file.") from None
    if not isinstance(items, list):
        raise InputError(
            f"the file is {json_type_name(items)}, not a list", where=str(path), fix="Give a list of rows."
        )
    for number, item in enumerate(items, 1):
        place = f"{path}:item {number}"
        if isinstance(item, dict):
            yield InputRow(place, item)
        else:
            yield make_reject(place, "wrong_type", f"the item is {json_type_name(item)}, not an object", str(item))
