"""What models are measured on: rows with hard negatives, images with captions, images with labels.

Shards are read as they are (a folder of tars, a tar, or ``{00000..00009}.tar``). Other files:

- hard negatives: candidate rows (SugarCrepe's .json, .jsonl, NegCLIP's .tsv, .parquet), see `filters.candidate_files`;
- captions: any input that holds pairs, see `datasets.reading`;
- labels: a .jsonl, .csv, .tsv or .parquet with a column ``image`` and a column for each label.

Relative images start from the folder of images, if one is given, else from the file's own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.images.loading import is_url, open_image, select_image_extensions
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.shards.webdataset import find_shards, read_members
from pairwright.filters.candidates.files import read_candidates
from pairwright.filters.candidates.rows import edit_type_name
from pairwright.filters.metrics.score_files import NO_TYPE, read_table


@dataclass(frozen=True, slots=True)
class HardNegativeRow:
    """A hard negative to be told from its caption.

    Attributes:
        image: locator.
        caption: the text that is true of the image.
        negative: the one that is not.
        positive: another that is true; empty when there is none.
        type: such as ``swap-attribute``.
    """

    image: str
    caption: str
    negative: str
    positive: str
    type: str


@dataclass(frozen=True, slots=True)
class HardNegativeRows:
    """Rows, and how many were left out, by a sentence that tells why."""

    rows: list[HardNegativeRow]
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CaptionedImages:
    """Images with their captions.

    Attributes:
        images: locators, each image once.
        captions: texts.
        owners: for each caption the place of its image.
    """

    images: list[str]
    captions: list[str]
    owners: list[int]


@dataclass(frozen=True, slots=True)
class LabelledImages:
    """Images with their labels.

    Attributes:
        images: locators.
        labels: one row an image, aligned with ``images``; numbers and texts as they stand in the file.
        where: the file or shards, for messages.
    """

    images: list[str]
    labels: pl.DataFrame
    where: str

    def texts(self, column: str) -> list[str]:
        """Return a label as texts, one an image; several columns joined by ``+`` are one label.

        Raises:
            InputError: no such column, or an image without the label.
        """
        parts = column.split("+")
        for part in parts:
            if part not in self.labels.columns:
                fix = f"There are {', '.join(self.labels.columns)}."
                raise InputError(f"no column {part}", where=self.where, fix=fix)
            if missing := self.labels[part].null_count():
                raise InputError(
                    f"{missing:,} images have no {part}", where=self.where, fix="Give every image a label."
                )
        return [" ".join(map(str, row)) for row in self.labels.select(parts).iter_rows()]


def is_shards(data: str) -> bool:
    """Tell shards from files of rows."""
    path = Path(data)
    return path.suffix == ".tar" or (path.is_dir() and any(path.glob("*.tar")))


def read_hard_negatives(data: Sequence[str], images: str = "") -> HardNegativeRows:
    """Return the hard negatives of shards and files, in their order.

    In a shard each hard negative is a row, beside a hard positive of the text that it was made from: the first of its
    own form and target, else the first.

    Raises:
        InputError: none is left; a file is broken; a row names no image.
    """
    left_out: Counter[str] = Counter()
    rows = [
        row
        for one in data
        for row in (_of_shards(one, left_out) if is_shards(one) else _of_file(one, images, left_out))
    ]
    if not rows:
        raise InputError("no hard negative in it", where=", ".join(data), fix="Give shards or rows that hold some.")
    return HardNegativeRows(rows, dict(left_out))


def _of_shards(data: str, left_out: Counter[str]) -> Iterator[HardNegativeRow]:
    for image, _, body in _samples(data):
        found = body.get("hard_negatives") or []
        left_out.update([] if found else ["samples have no hard negative and are left out"])
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


def _of_file(data: str, images: str, left_out: Counter[str]) -> Iterator[HardNegativeRow]:
    path = Path(data)
    for number, row in enumerate(read_candidates(path).iter_rows(named=True), 1):
        if row["status"] != "kept":
            left_out["rows are rejected and left out"] += 1
            continue
        if not row["image"]:
            raise InputError("no image is named", where=f"{data}, row {number}", fix="Give each row its image.")
        kind = edit_type_name(row["form"], row["target"]) if row["form"] or row["target"] else NO_TYPE
        image = _image_locator(row["image"], images, path)
        yield HardNegativeRow(image, row["caption"], row["negative"], row["positive"], kind)


def read_captioned_images(data: Sequence[str], images: str = "") -> CaptionedImages:
    """Return the images and captions of inputs; images whose files are equal are one, with the captions of all.

    Raises:
        InputError: an input is missing or broken, an image is missing, or there are fewer than two images.
    """
    options = ReadOptions(tuple(data), image_root=images, option_names=WITHOUT_OPTIONS)
    places: dict[bytes, int] = {}
    found: list[str] = []
    texts: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for batch in read_pairs(options):
        for pair in batch.pairs:
            if not pair.image:
                raise InputError(
                    f"pair {pair.source_id or pair.key} names no image",
                    where=", ".join(data),
                    fix="Give each pair its image.",
                )
            content = blake2b(open_image(pair.image), digest_size=16).digest()
            place = places.setdefault(content, len(found))
            found += [pair.image] if place == len(found) else []
            texts[place].update(dict.fromkeys([pair.caption, *pair.captions]))
    if len(found) < 2:
        raise InputError(f"{len(found)} images", where=", ".join(data), fix="Retrieval takes two at least.")
    owners = [place for place in range(len(found)) for _ in texts[place]]
    return CaptionedImages(found, [text for place in range(len(found)) for text in texts[place]], owners)


def read_labelled_images(data: Sequence[str], labels: Path | None, images: str = "") -> LabelledImages:
    """Return the images and labels of one input.

    Args:
        data: shards whose JSON tells labels (``conditions``, ``rgb``) or whose keys ``labels`` names; or else one file
            of labels with a column ``image``.
        labels: for shards, a file with a column ``key``.
        images: folder that relative images start from.

    Raises:
        InputError: no labels, a key without labels, or a file that is broken.
        UsageError: several inputs, or ``labels`` beside a file of labels.
    """
    if len(data) != 1:
        raise UsageError("--data: this task takes one file or one set of shards.")
    where = data[0]
    if is_shards(where):
        return _labelled_shards(where, labels)
    if labels is not None:
        raise UsageError(f"--labels is for shards; {where} holds the labels itself.")
    table = read_table(Path(where))
    if "image" not in table.columns:
        fix = f"Give it a column image; there are {', '.join(table.columns)}."
        raise InputError("no column image", where=where, fix=fix)
    return LabelledImages([_image_locator(str(image), images, Path(where)) for image in table["image"]], table, where)


def _labelled_shards(where: str, labels: Path | None) -> LabelledImages:
    images, keys, told = list[str](), list[str](), list[dict[str, Any]]()
    for image, key, body in _samples(where):
        images.append(image)
        keys.append(key)
        rgb = dict(zip("rgb", body.get("rgb") or (), strict=False))
        told.append({**(body.get("conditions") or {}), **rgb})
    if labels is None:
        if not images or not all(told):
            raise InputError("samples without labels", where=where, fix="Name a file with them by --labels.")
        return LabelledImages(images, pl.DataFrame(told), where)
    table = read_table(labels)
    if "key" not in table.columns:
        raise InputError("no column key", where=str(labels), fix=f"There are {', '.join(table.columns)}.")
    rows = {str(key): place for place, key in enumerate(table["key"])}
    if missing := [key for key in keys if key not in rows]:
        what = f"no labels for {len(missing):,} of {len(keys):,} samples, the first {missing[0]}"
        raise InputError(what, where=str(labels), fix="Give each sample a row.")
    return LabelledImages(images, table[[rows[key] for key in keys]], str(labels))


def _samples(data: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield locator of the image, key and JSON of each sample, in order."""
    for path in find_shards(Path(data)):
        for key, members in read_members(path):
            kinds = select_image_extensions(members)
            where = f"{path}, sample {key}"
            if len(kinds) != 1:
                what = f"{len(kinds)} images: {', '.join(kinds)}" if kinds else "no image"
                raise InputError(what, where=where, fix="Models are measured on samples with one image each.")
            try:
                body = orjson.loads(members.get("json", b"{}"))
                caption = members["txt"].decode() if "txt" in members else ""
            except ValueError as error:
                raise StorageError(f"{where}: unreadable ({error}). Write the shard again.") from None
            yield f"{path}::{key}.{kinds[0]}", key, {"caption": caption, **body}


def _image_locator(image: str, images: str, file: Path) -> str:
    if is_url(image):
        return image
    return str((Path(images) if images else file.parent) / image)
