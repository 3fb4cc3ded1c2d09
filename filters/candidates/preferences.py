"""Preferences between two answers about an image, as RLAIF-V and trainers store them.

RLAIF-V, TRL and LLaMA-Factory have ``chosen`` and ``rejected``; ms-swift has ``rejected_response``, and the chosen answer is
the last of ``messages``.

The chosen answer is the caption of a candidate row, the rejected one its negative: an attack that tells them apart does so
without image and question. The row of the file is kept in ``preference`` and written back with all of its columns; an
image inside a table is replaced by its locator.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.records import compact_json
from pairwright.filters.candidates.invalid_rows import InvalidRow
from pairwright.filters.candidates.source_rows import LocatedRow, SourceRow, locate_image

COLUMNS: Final = (("chosen", "rejected"), ("messages", "rejected_response"))
_IMAGES: Final = ("image", "images")
_ROW: Final = "preference"


def preference(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield a row of a preference; answers are texts, a message, or messages of which the assistant's count.

    Raises:
        InvalidRow: an answer is missing or of another type.
    """
    if not isinstance(row.value, Mapping):
        what = f"{type(row.value).__name__} instead of an object"
        raise InvalidRow("wrong_type", what, where=row.place, fix="Each row is a JSON object.")
    fields = {str(name): value for name, value in row.value.items()}
    fields |= {name: _locate(fields[name], name, row) for name in _IMAGES if fields.get(name) is not None}
    columns = next((each for each in COLUMNS if fields.get(each[1]) is not None), COLUMNS[0])
    caption, negative = (_answer(_last_turn(fields, name), name, row.place) for name in columns)
    found = next((fields[name] for name in _IMAGES if fields.get(name)), "")
    image = found[0] if isinstance(found, list) else found
    yield row.place, {"image": image or "", "caption": caption, "negative": negative, _ROW: fields}


def _locate(value: Any, name: str, row: SourceRow) -> Any:
    if isinstance(value, list):
        return [locate_image(one, name, row, item) for item, one in enumerate(value, 1)]
    return locate_image(value, name, row)


def _last_turn(fields: Mapping[str, Any], name: str) -> Any:
    """Return an answer; of the turns before and with it the last one."""
    value = fields.get(name)
    return value[-1:] if name == "messages" and isinstance(value, list) else value


def _answer(value: Any, name: str, place: str) -> str:
    value = [value] if isinstance(value, Mapping) else value
    texts = _assistant_texts(value) if isinstance(value, list) else [value]
    if not texts or any(text is None or text == "" for text in texts):
        fix = "Write the answer, or drop the row."
        raise InvalidRow("missing_column", f"no {name} answer", where=place, fix=fix)
    if not all(isinstance(text, str) for text in texts):
        fix = "Write it as a text, or as messages with role and content."
        raise InvalidRow("wrong_type", f"{name} is no text", where=place, fix=fix)
    return "\n".join(texts)


def _assistant_texts(messages: list[Any]) -> list[Any]:
    """Return the texts of the assistant's messages; content is a text or a list of parts."""
    said = [one for one in messages if isinstance(one, Mapping) and one.get("role") == "assistant"]
    return [text for one in said for text in _parts(one.get("content"))]


def _parts(content: Any) -> list[Any]:
    if not isinstance(content, list):
        return [content]
    return [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]


def write_preferences(frame: pl.DataFrame, path: Path) -> None:
    """Write the rows as they were read, as JSON Lines."""
    rows = (orjson.loads(extra).get(_ROW, {}) for extra in frame["extra"])
    write_text(path, "".join(compact_json(row) + "\n" for row in rows))
