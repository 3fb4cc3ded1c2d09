"""Rows under review, from a build, shards, or a file of candidate rows; and their order.

Of a build and of shards these are the kept hard negatives of the samples. Rejected rows are not reviewed. All rows are
held in memory: about a kilobyte per row.

Any prefix of the order is a fair sample: rows of each type are shuffled (by the seed and their ids only, so that the
order of the input changes nothing) and spread evenly: row k of n rows of a type is placed at (k + u) / n, with one
random u in [0, 1) per type. So the first N rows contain each type in its proportion, give or take one; every row is
among them with the same probability; and a larger sample begins with the smaller one, whose decisions stay useful.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.build_manifest import is_build
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.records import edit_to_dict
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.sample_source import open_sample_source
from pairwright.datasets.shards.samples import Sample
from pairwright.filters.candidates.files import find_row_files, layout_of, read_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.layouts import Layout
from pairwright.filters.candidates.rows import candidate_frame, edit_type_name
from pairwright.filters.candidates.source_rows import SUFFIXES, Source
from pairwright.filters.review.images import FolderImages, ImageLocator, ShardImages
from pairwright.filters.scorers.image_groups import text_group

_FILES = frozenset(SUFFIXES)


@dataclass(frozen=True, eq=False)
class ReviewRows:
    """Rows of a review.

    Attributes:
        frame: all rows of the input, with ``candidates.rows.SCHEMA``.
        others: id of a row to the other captions of its image.
        images: locates the image of a row.
        decisions: default path of the decisions.
        positives: whether the candidates are hard positives (`positives.py`), to be true; else negatives.
        layout: of a file; None for a build or shards.
    """

    frame: pl.DataFrame
    others: Mapping[str, tuple[str, ...]]
    images: ImageLocator
    decisions: Path
    positives: bool = False
    layout: Layout | None = None

    def entering(self) -> pl.DataFrame:
        """Return the rows to review, with a column ``type``."""
        kept = self.frame.filter(pl.col("status") == "kept")
        return kept.with_columns(type=pl.Series(list_edit_types(kept), dtype=pl.String))


def list_edit_types(frame: pl.DataFrame) -> list[str]:
    """Return the edit type of each row: ``replace-object``; ``other`` when unknown."""
    return [edit_type_name(*row) for row in frame.select("form", "target").iter_rows()]


def read_rows(
    path: Path, image_root: str = "", screening: InvalidRowPolicy | None = None, layout: str = ""
) -> ReviewRows:
    """Return the rows of a build directory, shards, or a file of candidate rows.

    Args:
        path: the extension selects the format of a file.
        image_root: folder for relative image names; empty: the folder of the file, then the working directory.
        screening: policy for invalid rows of a file; without, the first is raised.
        layout: name of the layout of a file; empty to detect it.

    Raises:
        InputError: the path is missing, or a row is invalid.
        UsageError: the extension of ``path`` has no format.
        StorageError: the build is unfinished, or a file of it is corrupt.
    """
    if find_row_files(path) or (Source(path).suffix in _FILES and not path.is_dir()):
        return _read_file(path, image_root, screening, layout)
    if not path.exists() and "{" not in path.name:
        raise InputError("no such file or folder", where=str(path), fix="Check the path.")
    if not (path.is_dir() or path.suffix == ".tar"):
        known = ", ".join(sorted(_FILES))
        raise UsageError(f"{path}: not a build directory, shards, or a file with extension {known}.")
    return _read_samples(path)


def _read_file(path: Path, image_root: str, screening: InvalidRowPolicy | None, layout: str) -> ReviewRows:
    frame = read_candidates(path, screening, layout)
    roots = [Path(image_root)] if image_root else [path if path.is_dir() else path.parent, Path.cwd()]
    decisions = path.with_name(f"{path.name}.decisions.jsonl")
    found = layout_of(path, layout)
    return ReviewRows(frame, collect_image_captions(frame), FolderImages(roots), decisions, layout=found)


def collect_image_captions(frame: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the other captions of each row's image: its own ``captions``, and captions of other rows of the image."""
    captions: defaultdict[str, dict[str, None]] = defaultdict(dict)
    rows = [
        (id_, caption, text_group(image, key, caption), extra)
        for id_, key, image, caption, extra in frame.select("id", "key", "image", "caption", "extra").iter_rows()
    ]
    for _, caption, group, extra in rows:
        captions[group][caption] = None
        listed = orjson.loads(extra).get("captions")
        if isinstance(listed, list):
            captions[group].update(dict.fromkeys(each for each in listed if isinstance(each, str)))
    return {id_: tuple(each for each in captions[group] if each != caption) for id_, caption, group, _ in rows}


def _read_samples(path: Path) -> ReviewRows:
    others: dict[str, tuple[str, ...]] = {}

    def rows() -> Iterator[tuple[str, dict[str, Any]]]:
        for sample in open_sample_source(path).samples():
            for row in _iter_rows(sample):
                others[row["id"]] = sample.pair.captions
                yield f"{path}: {row['id']}", row

    build = is_build(path)
    shards = path / "shards" if build else path
    packed = any(shards.glob("*.tar")) or not build
    tars = find_shards(shards) if packed else open_sample_source(path).shards  # those in a store, if any
    frame = candidate_frame(rows())
    folder = path if path.is_dir() else path.parent
    return ReviewRows(frame, others, ShardImages(tars, images=build), folder / "review" / "decisions.jsonl")


def _iter_rows(sample: Sample) -> Iterator[dict[str, Any]]:
    positives = {row.id: row.text for row in sample.annotations if row.kind == "hard_positive"}
    for row in sample.annotations:
        if row.kind == "hard_negative":
            positive = positives.get(row.positive_id, "")
            yield {
                "id": row.id,
                "key": row.key,
                "image": sample.pair.image or sample.pair.source_id,
                "caption": sample.pair.caption if positive else row.source_text or sample.pair.caption,
                "negative": row.text,
                "positive": positive,
                "form": row.form,
                "target": row.target,
                "edit": [edit_to_dict(edit) for edit in row.edits],
                "scores": row.scores,
            }


NAME = "review"


def order_for_review(ids: Sequence[str], types: Sequence[str], seed: int) -> list[int]:
    """Return the positions of the rows in the order of review.

    Args:
        ids: unique id of each row.
        types: type of each row.
        seed: of the order.
    """
    members: defaultdict[str, list[int]] = defaultdict(list)
    for row, kind in enumerate(types):
        members[kind].append(row)
    places: list[tuple[float, str, int]] = []
    for kind, rows in members.items():
        drawn = sorted(rows, key=lambda row: (make_rng(seed, NAME, ids[row]).random(), ids[row]))
        start = make_rng(seed, f"{NAME}-start", kind).random()
        places += [((k + start) / len(rows), kind, row) for k, row in enumerate(drawn)]
    return [row for _, _, row in sorted(places)]
