"""Writer of caption files: captions of a model as pairs that every other verb reads.

OUT.jsonl has one row per kept caption: ``key``, ``source_id``, ``image``, ``caption``, ``captions`` (the other captions of the
image, its own first, tags excluded), ``boxes``, ``width``, ``height``, ``source``, ``license``, and ``meta``, with the form, the
scores and the origin of the caption added. OUT.rejected.jsonl has the rejected ones, each with its reason.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.llm_captions import FORM_OF, captioned_pairs


def check_captions_path(out: Path) -> None:
    """Check the extension of a file of captions.

    Raises:
        UsageError: it is not .jsonl.
    """
    if out.suffix.lower() != ".jsonl":
        raise UsageError(f"{out}: captions are written as .jsonl. Change the extension.")


def rejected_captions_path(out: Path) -> Path:
    """Return the file of the rejected captions of OUT, or of its ``.partial``."""
    return out.with_name(f"{out.stem.removesuffix('.partial')}.rejected{out.suffix}")


@contextmanager
def open_caption_writer(path: Path) -> Iterator[Callable[[Pair, Sequence[Annotation]], None]]:
    """Open the two files of captions; they are complete at the end of the block, or absent."""
    with (
        replace_atomically(path) as kept,
        replace_atomically(rejected_captions_path(path)) as rejected,
        kept.open("wb") as out,
        rejected.open("wb") as out_rejected,
    ):

        def write(pair: Pair, rows: Sequence[Annotation]) -> None:
            out.writelines(map(_line, caption_rows(pair, rows)))
            out_rejected.writelines(_line(_rejected_row(pair, row)) for row in rows if row.status == "rejected")

        yield write


def caption_rows(pair: Pair, rows: Sequence[Annotation]) -> Iterator[dict[str, Any]]:
    """Yield the kept captions of an image as rows of pairs."""
    for each in captioned_pairs(pair, rows):
        yield {**asdict(each), "meta": json.loads(each.meta)}


def _rejected_row(pair: Pair, row: Annotation) -> dict[str, Any]:
    form = FORM_OF.get(row.kind, row.kind)
    return {
        "key": row.key,
        "image": pair.image,
        "form": form,
        "text": row.text,
        "scores": row.scores,
        "reason": row.reason,
    }


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
