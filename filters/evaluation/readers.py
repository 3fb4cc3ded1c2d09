"""Readers of evaluation data: rows with hard negatives, images with captions, images with labels.

Shards are a build, a folder of tars, a tar, or ``{00000..00009}.tar``. Other files:

- hard negatives: candidate rows (.jsonl, .parquet, the layouts of benchmarks), see `filters.candidates.layouts`;
- captions: any input with pairs, see `datasets.readers`;
- labels: a .jsonl, .csv, .tsv or .parquet with a column ``image`` and one column per label.

Relative image paths start from the folder of images if given, else from the file's folder.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.images.loading import (
    is_url,
    open_image,
    select_further_images,
    select_image_extensions,
    split_locator,
)
from pairwright.datasets.images.lookup import find_below
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_members
from pairwright.filters.candidates.files import layout_of, read_candidates
from pairwright.filters.candidates.layouts import TRIPLES
from pairwright.filters.candidates.rows import edit_type_name
from pairwright.filters.evaluation.crops import crop_locator
from pairwright.filters.metrics.score_files import NO_TYPE, read_table


@dataclass(frozen=True, slots=True)
class HardNegativeRow:
    """A caption and its hard negative.

    Attributes:
        image: locator.
        caption: a true text of the image.
        negative: a false one.
        positive: another true text; empty without one.
        type: such as ``swap-attribute``.
        question: ids of questions with several rows, see `filters.candidates.benchmark_readers`.
    """

    image: str
    caption: str
    negative: str
    positive: str
    type: str
    question: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HardNegativeRows:
    """Rows of one or several sets.

    Attributes:
        rows: in order.
        left_out: counts of skipped rows by a sentence.
        scores: measures that users of the sets report, see `filters.candidates.layouts`.
    """

    rows: list[HardNegativeRow]
    left_out: Mapping[str, int]
    scores: tuple[str, ...] = TRIPLES


@dataclass(frozen=True, slots=True)
class CaptionedImages:
    """Images with their captions.

    Attributes:
        images: locators, each image once.
        captions: texts.
        owners: index of the image of each caption.
    """

    images: list[str]
    captions: list[str]
    owners: list[int]


@dataclass(frozen=True, slots=True)
class LabelledImages:
    """Images with their labels.

    Attributes:
        images: locators.
        labels: one row per image, aligned with ``images``; values as in the file.
        where: file or shards, for messages.
    """

    images: list[str]
    labels: pl.DataFrame
    where: str

    def texts(self, column: str) -> list[str]:
        """Return a label as strings, one per image; columns joined by ``+`` form one label.

        Raises:
            InputError: no such column, or an image without the label.
        """
        parts = column.split("+")
        for part in parts:
            if part not in self.labels.columns:
                fix = f"Known: {', '.join(self.labels.columns)}."
                raise InputError(f"no column {part}", where=self.where, fix=fix)
            if missing := self.labels[part].null_count():
                raise InputError(
                    f"{missing:,} images have no {part}", where=self.where, fix="Add a label to every image."
                )
        return [" ".join(map(str, row)) for row in self.labels.select(parts).iter_rows()]


def is_shards(data: str) -> bool:
    """Return whether the data are shards and not a file of rows."""
    path = Path(data)
    return path.suffix == ".tar" or (path.is_dir() and any(path.glob("*.tar")))


def read_hard_negatives(data: Sequence[str], images: str = "", layout: str = "") -> HardNegativeRows:
    """Return the hard negatives of shards and files, in order.

    In a shard each hard negative is a row, with a hard positive of the text that it was edited from: the first of its own
    form and target, else the first.

    Args:
        data: shards, builds and files.
        images: root folder of image paths; empty: the folder of the file.
        layout: name of the layout of the files; empty to detect it.

    Raises:
        InputError: no rows; a damaged file; a row without an image.
    """
    data = [_shards_of_build(one) for one in data]
    left_out: Counter[str] = Counter()
    rows = [
        row
        for one in data
        for row in (_shard_rows(one, left_out) if is_shards(one) else _file_rows(one, images, left_out, layout))
    ]
    if not rows:
        raise InputError("no hard negatives", where=", ".join(data), fix="Pass shards or rows with hard negatives.")
    scores = [TRIPLES if is_shards(one) else layout_of(Path(one), layout).scores for one in data]
    return HardNegativeRows(rows, dict(left_out), tuple(dict.fromkeys(name for names in scores for name in names)))


def _shards_of_build(data: str) -> str:
    """Return the folder of shards of a build; other data unchanged."""
    shards = Path(data) / "shards"
    return str(shards) if (Path(data) / "manifest.json").is_file() and is_shards(str(shards)) else data


def _shard_rows(data: str, left_out: Counter[str]) -> Iterator[HardNegativeRow]:
    for image, _, body in _samples(data):
        found = body.get("hard_negatives") or []
        left_out.update([] if found else ["samples have no hard negative and are skipped"])
        for negative in found:
            caption = negative.get("positive") or body["caption"]
            kind = edit_type_name(negative.get("form", ""), negative.get("target", ""))
            yield HardNegativeRow(image, caption, negative["text"], _positive(body, negative, caption), kind)


def _positive(body: Mapping[str, Any], negative: Mapping[str, Any], caption: str) -> str:
    def edit(one: Mapping[str, Any]) -> tuple[Any, Any]:
        return one.get("form", ""), one.get("target", "")

    known = [one for one in body.get("hard_positives") or [] if one.get("source", caption) == caption]
    alike = [one for one in known if edit(one) == edit(negative)]
    return next((one["text"] for one in [*alike, *known] if one["text"] != caption), "")


def _file_rows(data: str, images: str, left_out: Counter[str], layout: str) -> Iterator[HardNegativeRow]:
    path = Path(data)
    for number, row in enumerate(read_candidates(path, layout=layout).iter_rows(named=True), 1):
        if row["status"] != "kept":
            left_out["rejected rows are skipped"] += 1
            continue
        if not row["image"]:
            raise InputError("no image", where=f"{data}, row {number}", fix="Set the image of each row.")
        kind = edit_type_name(row["form"], row["target"]) if row["form"] or row["target"] else NO_TYPE
        extra = orjson.loads(row["extra"])
        image = crop_locator(_image_locator(row["image"], images, path), extra)
        question = extra.get("question")
        ids = {name: f"{data}|{id_}" for name, id_ in question.items()} if isinstance(question, dict) else {}
        yield HardNegativeRow(image, row["caption"], row["negative"], row["positive"], kind, ids)


def read_captioned_images(data: Sequence[str], images: str = "") -> CaptionedImages:
    """Return the images and captions of inputs; images with equal files are one, with the captions of all.

    Raises:
        InputError: a missing or damaged input, a missing image, or fewer than two images.
    """
    options = ReadOptions(tuple(map(_shards_of_build, data)), image_root=images, option_names=WITHOUT_OPTIONS)
    places: dict[bytes, int] = {}
    found: list[str] = []
    texts: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for batch in read_pairs(options):
        for pair in batch.pairs:
            if not pair.image:
                raise InputError(
                    f"pair {pair.source_id or pair.key} has no image",
                    where=", ".join(data),
                    fix="Set the image of each pair.",
                )
            content = blake2b(open_image(pair.image), digest_size=16).digest()
            place = places.setdefault(content, len(found))
            found += [pair.image] if place == len(found) else []
            texts[place].update(dict.fromkeys([pair.caption, *pair.captions]))
    if len(found) < 2:
        raise InputError(f"{len(found)} images", where=", ".join(data), fix="Retrieval requires at least two.")
    owners = [place for place in range(len(found)) for _ in texts[place]]
    return CaptionedImages(found, [text for place in range(len(found)) for text in texts[place]], owners)


def read_labelled_images(data: Sequence[str], labels: Path | None, images: str = "") -> LabelledImages:
    """Return the images and labels of one input.

    Args:
        data: shards with labels in their JSON (``conditions``, ``rgb``) or in ``labels`` by key; or one file of labels with a
            column ``image``.
        labels: for shards, a file with a column ``key``.
        images: root folder of relative image paths.

    Raises:
        InputError: no labels, a key without labels, or a damaged file.
        UsageError: several inputs, or ``labels`` with a file of labels.
    """
    if len(data) != 1:
        raise UsageError("--data: this task requires one file or one set of shards.")
    where = _shards_of_build(data[0])
    if is_shards(where):
        return _labelled_shards(where, labels)
    if labels is not None:
        raise UsageError(f"--labels is for shards; {where} has its own labels.")
    table = read_table(Path(where))
    if "image" not in table.columns:
        fix = f"Add a column image; known: {', '.join(table.columns)}."
        raise InputError("no column image", where=where, fix=fix)
    return LabelledImages([_image_locator(str(image), images, Path(where)) for image in table["image"]], table, where)


def _labelled_shards(where: str, labels: Path | None) -> LabelledImages:
    images, keys, rows_of_labels = list[str](), list[str](), list[dict[str, Any]]()
    for image, key, body in _samples(where):
        images.append(image)
        keys.append(key)
        rgb = dict(zip("rgb", body.get("rgb") or (), strict=False))
        rows_of_labels.append({**(body.get("conditions") or {}), **rgb})
    if labels is None:
        if not images or not all(rows_of_labels):
            raise InputError("samples without labels", where=where, fix="Pass a file of labels with --labels.")
        return LabelledImages(images, pl.DataFrame(rows_of_labels), where)
    table = read_table(labels)
    if "key" not in table.columns:
        raise InputError("no column key", where=str(labels), fix=f"Known: {', '.join(table.columns)}.")
    rows = {str(key): place for place, key in enumerate(table["key"])}
    if missing := [key for key in keys if key not in rows]:
        what = f"no labels for {len(missing):,} of {len(keys):,} samples, the first {missing[0]}"
        raise InputError(what, where=str(labels), fix="Add a row for each sample.")
    return LabelledImages(images, table[[rows[key] for key in keys]], str(labels))


def _samples(data: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the image locator, key and JSON of each sample, in order."""
    for path in find_shards(Path(data)):
        for key, members in read_members(path):
            kinds = [*select_image_extensions(members), *select_further_images(members)]
            where = f"{path}, sample {key}"
            if len(kinds) != 1:
                what = f"{len(kinds)} images: {', '.join(kinds)}" if kinds else "no image"
                raise InputError(what, where=where, fix="Evaluation requires samples with one image each.")
            try:
                body = orjson.loads(members.get("json", b"{}"))
                caption = members["txt"].decode() if "txt" in members else ""
            except ValueError as error:
                raise StorageError(f"{where}: unreadable ({error}). Write the shard again.") from None
            yield f"{path}::{key}.{kinds[0]}", key, {"caption": caption, **body}


def _image_locator(image: str, images: str, file: Path) -> str:
    if is_url(image):
        return image
    folder = Path(images) if images else file if file.is_dir() else file.parent
    located = folder / split_locator(image)[0]
    return str(folder / image) if located.is_file() else find_below(folder, image) or str(folder / image)
