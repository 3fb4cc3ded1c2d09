"""Review of hard positives: rows whose ``positive`` should be as true of the image as the caption.

The candidate of such a row is its positive; the rest of the review is unchanged. A negative of the row is not shown,
and is written back. A text that a reviewer writes instead of a positive is accepted unchecked, with the first capital
and the final mark of its caption: the reviewer sees the image.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.records import compact_json
from pairwright.filters.candidates.files import read_raw_rows
from pairwright.filters.candidates.rows import candidate_frame, complete_rows
from pairwright.filters.review.fix_checks import CheckedFix, ReviewerText, match_caption_format
from pairwright.filters.review.images import FolderImages
from pairwright.filters.review.rows import ReviewRows, collect_image_captions
from pairwright.generators.edits.written.sentence_extraction import comparison_key

_BEFORE_REVIEW: Final = "before_review"  # in ``extra``: former values of columns that the review uses


def read_positives(path: Path, image_root: str = "") -> ReviewRows:
    """Return the rows of a file for a review of their positives; rows without one are not reviewed.

    Args:
        path: .jsonl, SugarCrepe .json or .parquet.
        image_root: as of `rows.read_rows`.

    Raises:
        InputError: the file is missing, a row is invalid, or no row has a positive.
        UsageError: the extension of ``path`` has no format.
    """
    frame = candidate_frame((place, _swap_texts(row)) for place, row in read_raw_rows(path))
    if not (frame["status"] == "kept").any():
        raise InputError("no row that is not rejected has a positive", where=str(path), fix="Give hard positives.")
    roots = [Path(image_root)] if image_root else [path.parent, Path.cwd()]
    decisions = path.with_name(f"{path.name}.positives.decisions.jsonl")
    return ReviewRows(frame, collect_image_captions(frame), FolderImages(roots), decisions, positives=True)


def write_positives(frame: pl.DataFrame, path: Path, *, only_kept: bool = False) -> int:
    """Write rows of `read_positives` in their original columns, with their status; return their number.

    Raises:
        UsageError: ``path`` is no .jsonl.
    """
    if path.suffix.lower() != ".jsonl":
        raise UsageError(f"{path}: reviewed positives are written as .jsonl. Change the extension.")
    rows = list(_restore_columns(frame))
    kept = [row for row in rows if row["status"] == "kept" or not only_kept]
    write_text(path, "".join(compact_json(row) + "\n" for row in kept))
    return len(kept)


def check_positive_fixes(written: Sequence[ReviewerText]) -> list[CheckedFix]:
    """Return the checked fixes of texts that reviewers wrote; a text that equals the caption is rejected."""
    return [
        CheckedFix(
            match_caption_format(each.text, each.caption),
            each.type,
            reason="identical" if comparison_key(each.text) == comparison_key(each.caption) else "",
        )
        for each in written
    ]


def _swap_texts(row: Mapping[str, Any]) -> Mapping[str, Any]:
    positive = row.get("positive") or row.get("positive_caption") or ""
    names = ("negative", "negative_caption", "positive_caption", "status", "reason")
    before = {name: row[name] for name in names if row.get(name) is not None}
    rest = {name: value for name, value in row.items() if name not in {*names, "positive"}}
    status: dict[str, Any] = {"status": "rejected"}
    if positive:
        status = {name: before[name] for name in ("status", "reason") if name in before}
    return {**rest, **status, "negative": positive, _BEFORE_REVIEW: before}


def _restore_columns(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for restored in complete_rows(frame):
        before = restored.pop(_BEFORE_REVIEW)
        restored["positive"] = restored.pop("negative")
        if not restored["positive"]:  # not reviewed
            restored |= {"status": before.get("status", "kept"), "reason": before.get("reason", "")}
        restored |= {name: before[name] for name in ("negative", "negative_caption") if name in before}
        yield restored
