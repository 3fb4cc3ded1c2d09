"""Shared parts of export formats: options, results, JSON writers, image names, conversations.

An image is named as its consumer looks for it: a URL is kept; with ``images`` its bytes are written there as
``{key}.{ext}`` (further images of a sample as ``{key}.1.{ext}``, ...), which the row names; with ``image_root`` the row has the path below it (`relative_image_name`); otherwise
the file name. An image inside a table is not a file: its row has ``table.parquet::column/row-N``, which pairwright opens.
Two images with one name are an error.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import (
    UnusableImageError,
    check_image,
    is_table_cell,
    publishable_image_name,
    split_locator,
)
from pairwright.datasets.images.recoding import NO_RECODING, Recoding
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import EDITED_KINDS, Annotation, Turn
from pairwright.datasets.rejects import make_reject
from pairwright.datasets.remote.output import FinishFile, keep_file
from pairwright.datasets.shards.sample_source import SampleSource, load_sample_image
from pairwright.datasets.shards.samples import Sample, SampleImage


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        seed: of random choices (position of ``<image>``, other images of NegCLIP rows).
        image_root: folder below which images are named.
        images: folder to write the images into; rows then name these files.
        recoding: re-encoding of written image bytes.
        max_samples: per shard; 0 keeps existing shards, and uses the default size for new ones.
        max_bytes: per shard; likewise.
        max_tokens: for triplets, the limit in tokens of an output, which is truncated there; 0 means unlimited.
        tokenizer: for triplets, folder of the CLIP tokenizer that counts; None counts words (`clip_tokens.py`).
        finish: called with each complete shard of a WebDataset export, which it may send elsewhere and remove.
        skipped: counts samples whose image is to be embedded and cannot be read; None: the first one is an error.
    """

    seed: int = 0
    image_root: Path | None = None
    images: Path | None = None
    recoding: Recoding = NO_RECODING
    max_samples: int = 0
    max_bytes: int = 0
    max_tokens: int = 0
    tokenizer: Path | None = None
    finish: FinishFile = keep_file
    skipped: SkipCounts | None = None

    @contextmanager
    def skip_unusable_images(self) -> Iterator[None]:
        """Skip and count the sample of this context if its image cannot be read, unless that is an error."""
        try:
            yield
        except UnusableImageError as error:
            if self.skipped is None:
                raise
            self.skipped.add([make_reject(error.where, error.reason, error.what)])


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Result of an export: number of rows, and the files in order (without those in ``images``).

    ``details`` are counts of a format, by name; ``omitted``, which `formats.export` adds, counts the texts that the format
    has no place for, by kind (`omitted_texts.py`).
    """

    rows: int
    files: tuple[Path, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    omitted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """An export format.

    Attributes:
        name: the value of ``--to``.
        about: description for ``pairwright plugins``.
        write: writes a source to a file or folder.
        suffixes: endings of the output file; ``""`` means a folder.
        texts: kinds of texts beside the caption that rows have (`omitted_texts.py`); others are counted as omitted.
        writes_shards: whether `ExportOptions.max_samples` and `max_bytes` apply.
        writes_images: whether `ExportOptions.recoding` applies.
        takes_examples: whether examples of text tasks can be written.
        several_images: whether a row can hold several images; otherwise such samples are rejected and counted.
        names_images: whether `ExportOptions.image_root` applies: rows name image files.
    """

    name: str
    about: str
    write: Callable[[SampleSource, Path, ExportOptions], ExportResult]
    suffixes: tuple[str, ...]
    texts: frozenset[str] = frozenset()
    writes_shards: bool = False
    writes_images: bool = False
    takes_examples: bool = False
    several_images: bool = False
    names_images: bool = False


@dataclass
class ImageNames:
    """Names images for the rows of one export.

    Attributes:
        options: of the export.
        packed: locators of the named images that are no files, but members of tars or cells of tables.
        without_images: samples that `file_name` named by their ids.
    """

    options: ExportOptions
    packed: set[str] = field(default_factory=set)
    without_images: int = 0
    _locator_of: dict[str, str] = field(default_factory=dict)

    def name(self, sample: Sample) -> str:
        """Return the name of the sample's first image; empty for a text-only sample. See `names`."""
        return next(iter(self.names(sample)), "")

    def file_name(self, sample: Sample) -> str:
        """Return the name of the sample's first image; the source id of a text-only sample, which is counted."""
        name = self.name(sample)
        self.without_images += not name
        return name or sample.pair.source_id

    def names(self, sample: Sample) -> list[str]:
        """Return the names of the sample's images, in order, writing their bytes if requested.

        Raises:
            InputError: an image outside ``image_root``, or two images with one name.
        """
        if self.options.images is None or not sample.pair.image:
            return list(map(self._name, sample.locators))
        named = {f"{sample.pair.key}.{end}": data for end, data in list_images(sample, self.options.recoding)}
        for name, data in named.items():
            write_bytes(self.options.images / name, data)
        return list(named)

    def _name(self, locator: str) -> str:
        if split_locator(locator)[1]:
            self.packed.add(locator)
        name = locator if "://" in locator else self._relative(locator)
        if self.options.image_root is not None:
            return name  # names below one folder are unique
        if self._locator_of.setdefault(name, locator) != locator:
            raise InputError(
                f"{locator} and {self._locator_of[name]} are both named {name}",
                where="export",
                fix="Name the folder above both with --image-root, which their names then start from.",
            )
        return name

    def details(self) -> dict[str, int]:
        """Return the numbers of named images that are no files, and of samples without one, for `ExportResult.details`."""
        without = {"without_images": self.without_images} if self.without_images else {}
        return {"packed_images": len(self.packed), **without}

    def _relative(self, locator: str) -> str:
        if self.options.image_root is not None:
            return relative_image_name(locator, self.options.image_root)
        if is_table_cell(locator):
            return publishable_image_name(locator)
        path, _, inside = locator.partition("::")
        return publishable_image_name(inside or path)


def relative_image_name(locator: str, root: Path) -> str:
    """Return an image's name below a folder; a member of ``shard.tar`` is in a folder ``shard`` next to it.

    An image inside a table is named by the table below the folder, and its column and row.

    Raises:
        InputError: if the image is outside ``root``.
    """
    path, member = split_locator(locator)
    if is_table_cell(locator):
        return f"{relative_image_name(path, root)}::{member}"
    path = f"{path.removesuffix('.tar')}/{member}" if member else path
    # The unresolved path first: image folders are often links to other disks.
    below = Path(os.path.relpath(path, root))
    if os.pardir not in below.parts:
        return below.as_posix()
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise InputError(
            f"the image lies outside image_root {root}", where=locator, fix="Name a folder above all images."
        ) from None


def load_whole_image(image: SampleImage, recoding: Recoding) -> SampleImage:
    """Return an image with its bytes, which are an image without an end that is missing; errors as in `load_image`."""
    loaded = load_sample_image(image, recoding)
    check_image(loaded.data or b"", where=image.locator)  # bytes that need no change are not decoded
    return loaded


def list_images(sample: Sample, recoding: Recoding) -> list[tuple[str, bytes]]:
    """Return name ending (``jpg``; ``1.jpg`` for the second image) and bytes of each image; errors as in `load_image`."""
    loaded = (load_whole_image(image, recoding) for image in sample.images)
    return [(f"{number}.{each.ext}" if number else each.ext, each.data or b"") for number, each in enumerate(loaded)]


def list_conversations(sample: Sample) -> list[Annotation]:
    """Return the sample's conversations, each with alternating turns of human and assistant.

    Raises:
        InputError: if turns do not alternate, or their number is odd.
    """
    found = [a for a in sample.annotations if a.kind not in EDITED_KINDS and a.turns]
    for annotation in found:
        roles = [turn.role for turn in annotation.turns]
        if roles != ["human", "assistant"] * (len(roles) // 2):
            raise InputError(
                f"turns by {', '.join(roles)}",
                where=f"conversation {annotation.id}",
                fix="Turns must alternate from human to assistant.",
            )
    return found


def iter_exchanges(turns: tuple[Turn, ...]) -> Iterator[tuple[str, str]]:
    """Yield question and answer of each pair of turns."""
    for question, answer in zip(turns[::2], turns[1::2], strict=True):
        yield question.text, answer.text


def list_negatives(sample: Sample) -> list[Annotation]:
    """Return the sample's hard negatives that have a text."""
    return [a for a in sample.annotations if a.kind == "hard_negative" and a.text]


def find_positive(sample: Sample, negative: Annotation) -> str:
    """Return the true text that ``negative`` is compared with: its hard positive, or the caption it was edited from."""
    texts = {a.id: a.text for a in sample.annotations}
    return texts.get(negative.positive_id) or negative.source_text or sample.pair.caption


def write_json_lines(rows: Iterable[dict[str, Any]], path: Path) -> ExportResult:
    """Write one JSON object per line, atomically."""
    count = 0
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        for row in rows:
            handle.write(encode_json(row) + b"\n")
            count += 1
    return ExportResult(count, (path,))


def write_json_list(rows: Iterable[dict[str, Any]], path: Path) -> ExportResult:
    """Write a JSON list with one object per line, atomically."""
    count = 0
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        handle.write(b"[")
        for row in rows:
            handle.write((b",\n" if count else b"\n") + encode_json(row))
            count += 1
        handle.write(b"\n]\n")
    return ExportResult(count, (path,))


def encode_json(row: dict[str, Any], option: int = 0) -> bytes:
    """Return ``row`` as JSON in UTF-8.

    Raises:
        InputError: if a text cannot be encoded as UTF-8.
    """
    try:
        return orjson.dumps(row, option=option)
    except TypeError as error:
        raise InputError(str(error), where=str(row)[:80], fix="Fix or remove the row.") from None
