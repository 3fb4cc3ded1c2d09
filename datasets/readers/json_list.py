"""A JSON file that is a list of rows (``[{"image": ..., "caption": ...}, ...]``); it is held in memory whole."""

from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.rows import Row, Rows
from pairwright.datasets.readers.text import parse_json, read_whole, type_name
from pairwright.datasets.rejects import Refused, reject


def read_json_list(path: Path) -> Rows:
    """Yield the items of a JSON list; places are ``file:item N``, from 1."""
    try:
        items = parse_json(read_whole(path))
    except Refused as flaw:
        raise InputError(f"{flaw.reason}: {flaw.detail}", where=str(path), mend="Correct the file.") from None
    if not isinstance(items, list):
        raise InputError(f"the file is {type_name(items)}, not a list", where=str(path), mend="Give a list of rows.")
    for number, item in enumerate(items, 1):
        place = f"{path}:item {number}"
        if isinstance(item, dict):
            yield Row(place, item)
        else:
            yield reject(place, "wrong_type", f"the item is {type_name(item)}, not an object", str(item))
