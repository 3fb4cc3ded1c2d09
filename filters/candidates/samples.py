"""Candidate rows of a file as samples for the exports: one pair per image and caption, with its negatives."""

from pathlib import Path

import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import is_url, split_locator
from pairwright.datasets.images.lookup import find_below
from pairwright.datasets.mixtures.conversations import COLUMN_NAMES_BY_PART
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.shards.sample_source import SampleSource, source_from_records
from pairwright.filters.candidates.files import find_row_files, layout_of, read_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRow, InvalidRowPolicy
from pairwright.filters.candidates.layouts import PREFERENCES
from pairwright.filters.candidates.source_rows import NEGATIVE_COLUMNS, SUFFIXES, Source

NAME = "rows"
_TURNS = frozenset(COLUMN_NAMES_BY_PART["conversations"] + COLUMN_NAMES_BY_PART["answer"])


def holds_candidates(path: Path, layout: str = "") -> bool:
    """Return whether a path is a file or folder of candidate rows, and not of conversations or examples.

    Rows with turns or an answer are conversations, unless they have negatives: those with a preference are both.

    Args:
        path: existing or not.
        layout: name of the layout; empty to detect it.

    Raises:
        InputError: the file cannot be read to its end.
    """
    files = find_row_files(path) or ([path] if path.is_file() and Source(path).suffix in SUFFIXES else [])
    if not files:
        return False
    found, source = layout_of(files[0], layout), Source(files[0])
    try:
        has_turns = not source.fields.isdisjoint(_TURNS)
        return bool(layout) or (found.sniff(source) and not has_turns) or not source.fields.isdisjoint(NEGATIVE_COLUMNS)
    except InvalidRow:  # no JSON; the reader of conversations reports it
        return False


def candidate_source(
    path: Path, layout: str = "", image_root: Path | None = None, screening: InvalidRowPolicy | None = None
) -> tuple[SampleSource, Path]:
    """Return the kept rows of a file as a source, and the folder of its images.

    Args:
        path: file of candidate rows, or a folder of such files.
        layout: name of the layout; empty to detect it.
        image_root: folder of the images; None: that of the file.
        screening: policy for invalid rows; without, the first is raised.

    Raises:
        InputError: the file is invalid.
        UsageError: it has preferences, whose questions would be lost.
    """
    if layout_of(path, layout).name == PREFERENCES.name:
        what = "preferences answer questions, and rows of captions and negatives have none"
        raise UsageError(f"{path}: {what}. Export the build or the conversations that they were made of.")
    root = (image_root or (path if path.is_dir() else path.parent)).absolute()
    pairs: dict[str, Pair] = {}
    annotations: list[Annotation] = []
    origin = Origin(NAME, 1)
    for row in read_candidates(path, screening, layout).filter(pl.col("status") == "kept").iter_rows(named=True):
        key = pair_key(NAME, row["image"] or row["key"], row["caption"])
        pairs.setdefault(key, Pair(key, row["caption"], row["image"] or row["key"], _locate(row["image"], root)))
        positive_id = ""
        if row["positive"]:
            positive_id = annotation_id(key, "hard_positive", origin, row["id"], row["positive"])
            texts = {"text": row["positive"], "source_text": row["caption"]}
            annotations.append(
                Annotation(positive_id, key, "hard_positive", origin, row["form"], row["target"], **texts)
            )
        id_ = annotation_id(key, "hard_negative", origin, row["id"], row["negative"])
        texts = {"text": row["negative"], "source_text": row["caption"], "positive_id": positive_id}
        annotations.append(Annotation(id_, key, "hard_negative", origin, row["form"], row["target"], **texts))
    return source_from_records(list(pairs.values()), annotations), root


def _locate(image: str, root: Path) -> str:
    if not image or is_url(image):
        return image
    located = root / split_locator(image)[0]
    return str(root / image) if located.is_file() else find_below(root, image) or str(root / image)
