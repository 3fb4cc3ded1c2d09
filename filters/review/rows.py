"""The rows under review, read from wherever negatives are: a build, shards, or a file of candidate rows.

Of a build and of shards these are the kept hard negatives of its samples. Rows that come in rejected are not reviewed.
Everything is held in memory: about a kilobyte a row.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.build_manifest import is_build
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import edit_to_dict
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.sample_source import open_sample_source
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.webdataset import find_shards
from pairwright.filters.candidates.files import find_sugarcrepe_files, read_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import candidate_frame, edit_type_name
from pairwright.filters.review.images import FolderImages, ImageLocator, ShardImages
from pairwright.filters.scorers.image_groups import text_group

_FILES = frozenset({".jsonl", ".json", ".tsv", ".parquet"})


@dataclass(frozen=True, eq=False)
class ReviewRows:
    """What is reviewed.

    Attributes:
        frame: all rows of the input, with ``candidates.SCHEMA``.
        others: id of a row to the other captions of its image.
        images: tells where the image of a row lies.
        decisions: where decisions stand when nobody names a file.
        positives: whether the candidates are hard positives (`positives.py`), to be true; else negatives.
    """

    frame: pl.DataFrame
    others: Mapping[str, tuple[str, ...]]
    images: ImageLocator
    decisions: Path
    positives: bool = False

    def entering(self) -> pl.DataFrame:
        """Return the rows that are reviewed, with a column ``type``."""
        kept = self.frame.filter(pl.col("status") == "kept")
        return kept.with_columns(type=pl.Series(edit_types(kept), dtype=pl.String))


def edit_types(frame: pl.DataFrame) -> list[str]:
    """Return the type of each row: ``replace-object``; ``other`` when nothing is known."""
    return [edit_type_name(*row) for row in frame.select("form", "target").iter_rows()]


def read_rows(path: Path, image_root: str = "", screening: InvalidRowPolicy | None = None) -> ReviewRows:
    """Return the rows of a build directory, shards, or a file of candidate rows.

    Args:
        path: its ending names the format of a file.
        image_root: folder that relative names of images start from; empty: the folder of the file, then the working one.
        screening: what becomes of rows of a file that are none; without, the first ends the reading.

    Raises:
        InputError: nothing is there, or a place in it is wrong.
        UsageError: the ending of ``path`` names no format.
        StorageError: the build is unfinished, or a file of it is torn.
    """
    if find_sugarcrepe_files(path) or (path.suffix.lower() in _FILES and not path.is_dir()):
        return _of_file(path, image_root, screening)
    if not (path.is_dir() or path.suffix == ".tar"):
        known = ", ".join(sorted(_FILES))
        raise UsageError(f"{path}: is no build directory, no shards, and no file that ends in {known}.")
    return _of_samples(path)


def _of_file(path: Path, image_root: str, screening: InvalidRowPolicy | None) -> ReviewRows:
    frame = read_candidates(path, screening)
    roots = [Path(image_root)] if image_root else [path if path.is_dir() else path.parent, Path.cwd()]
    beside = path.with_name(f"{path.name}.decisions.jsonl")
    return ReviewRows(frame, captions_of_images(frame), FolderImages(roots), beside)


def captions_of_images(frame: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return what else is said of each row's image: its own ``captions``, and captions of other rows of the image."""
    said: defaultdict[str, dict[str, None]] = defaultdict(dict)
    rows = [
        (id_, caption, text_group(image, key, caption), extra)
        for id_, key, image, caption, extra in frame.select("id", "key", "image", "caption", "extra").iter_rows()
    ]
    for _, caption, group, extra in rows:
        said[group][caption] = None
        listed = orjson.loads(extra).get("captions")
        if isinstance(listed, list):
            said[group].update(dict.fromkeys(each for each in listed if isinstance(each, str)))
    return {id_: tuple(each for each in said[group] if each != caption) for id_, caption, group, _ in rows}


def _of_samples(path: Path) -> ReviewRows:
    others: dict[str, tuple[str, ...]] = {}

    def rows() -> Iterator[tuple[str, dict[str, Any]]]:
        for sample in open_sample_source(path).samples():
            for row in _rows_of(sample):
                others[row["id"]] = sample.pair.captions
                yield f"{path}: {row['id']}", row

    build = is_build(path)
    shards = path / "shards" if build else path
    tars: Sequence[Path] = find_shards(shards) if any(shards.glob("*.tar")) or not build else ()
    frame = candidate_frame(rows())
    folder = path if path.is_dir() else path.parent
    return ReviewRows(frame, others, ShardImages(tars, images=build), folder / "review" / "decisions.jsonl")


def _rows_of(sample: Sample) -> Iterator[dict[str, Any]]:
    beside = {row.id: row.text for row in sample.annotations if row.kind == "hard_positive"}
    for row in sample.annotations:
        if row.kind == "hard_negative":
            positive = beside.get(row.positive_id, "")
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


def review_order(ids: Sequence[str], types: Sequence[str], seed: int) -> list[int]:
    """Return the positions of the rows in the order of review.

    Args:
        ids: of the rows; each once.
        types: of the rows.
        seed: another seed, another order.
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
