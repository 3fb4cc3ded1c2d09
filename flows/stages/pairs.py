"""Stage ``pairs``: reads the input into parts of checked pairs and of rejected rows.

All samples of a dataset have the same members. Where images are packed, this stage therefore reports pairs without an
image among pairs with one, and images of mixed or unsupported formats unless they are recoded, before any other work.
Formats are told by file names (in a table, by bytes); the bytes of files are checked when they are packed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, is_table_cell, is_url
from pairwright.datasets.images.recoding import IMAGE_EXTENSIONS
from pairwright.datasets.progress import open_step
from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.state.inputs import input_state, read_options
from pairwright.flows.state.layout import captions_path, pairs_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun

MISSING_IMAGE = "missing_image"
_SAME = {"jpeg": "jpg", "tiff": "tif"}


@dataclass(frozen=True, slots=True)
class Intake:
    """How the input is read into parts.

    Attributes:
        options: of the reader.
        part_size: pairs per part.
        all_have_images: whether each pair needs an image if one has an image.
        single_image_format: whether all images have to be of one format, since they are packed unchanged.
        captioned: whether stage ``captions`` wrote the pairs of the images without a caption.
    """

    options: ReadOptions
    part_size: int
    all_have_images: bool
    single_image_format: bool = False
    captioned: bool = False

    @classmethod
    def of(cls, config: BuildConfig) -> "Intake":
        """Return the intake of a full build."""
        captioned = config.captions is not None
        options = read_options(config.input, without_caption=captioned)
        return cls(options, config.part_size, config.all_have_images, config.single_image_format, captioned)

    def batches(self, root: Path) -> Iterator[ReadBatch]:
        """Yield the rows of the input, then the pairs of stage ``captions`` in place of the images without a caption."""
        for batch in report_rows_read(read_pairs(self.options)):
            yield replace(batch, pairs=[pair for pair in batch.pairs if pair.caption]) if self.captioned else batch
        if self.captioned:
            yield ReadBatch(list(PAIRS.read(captions_path(root))), [])


def pairs_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``pairs`` in a full build."""
    return [run.job(read_input, Intake.of(run.config), state=input_state(run.config.input))]


def read_input(root: Path, intake: Intake) -> JobResult:
    """Read the whole input and write its parts; the unit is a row.

    Raises:
        InputError: for a broken row, or a pair without an image among pairs with one, if the options say stop; when no
            pair is left; for images of mixed or unsupported formats.
    """
    options = intake.options
    outputs: list[Path] = []
    reasons: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    kept = without_image = 0
    for number, (pairs, rejects) in enumerate(_parts(intake.batches(root), intake.part_size, formats)):
        part = part_name(number)
        PAIRS.write(pairs, pairs_path(root, part))
        REJECTS.write(rejects, rejected_path(root, "pairs", part))
        outputs += [pairs_path(root, part), rejected_path(root, "pairs", part)]
        kept += len(pairs)
        without_image += sum(not pair.image for pair in pairs)
        formats.update(filter(None, (image_format_of(pair.image) for pair in pairs)))
        reasons.update(row.reason for row in rejects)
    if intake.single_image_format and formats and len(formats.keys() & set(IMAGE_EXTENSIONS)) != 1:
        raise _mixed_formats(formats, str(options.input))
    if intake.all_have_images and 0 < without_image < kept:
        if options.on_error == "stop":
            raise _missing_images(without_image, kept, str(options.input))
        _reject_without_image(outputs)
        kept -= without_image
        reasons[MISSING_IMAGE] += without_image
    counts = Counts("row", kept + reasons.total(), kept, dict(sorted(reasons.items())))
    return JobResult(outputs, counts, {"parts": len(outputs) // 2})


def _parts(batches: Iterable[ReadBatch], size: int, formats: Counter[str]) -> Iterator[tuple[list[Pair], list[Reject]]]:
    pairs: list[Pair] = []
    rejects: list[Reject] = []
    for batch in batches:
        pairs += batch.pairs
        rejects += batch.rejects
        for name, count in batch.formats.items():
            formats[_SAME.get(name, name)] += count
        while len(pairs) >= size or len(rejects) >= size:
            yield pairs[:size], rejects
            pairs, rejects = pairs[size:], []
    if pairs or rejects:
        yield pairs, rejects


def report_rows_read(batches: Iterable[ReadBatch]) -> Iterator[ReadBatch]:
    """Yield the batches and report the number of rows read."""
    with open_step("reading", unit="rows") as done:
        for batch in batches:
            yield batch
            done.advance(len(batch.pairs) + len(batch.rejects))


def reject_without_image(pair: Pair) -> Reject:
    """Return the reject for a pair without an image among pairs with one."""
    place = f"{pair.source}: {pair.source_id or pair.key}"
    return make_reject(place, MISSING_IMAGE, "no image, and other pairs have one", pair.caption)


def _missing_images(count: int, pairs: int, where: str) -> InputError:
    return InputError(
        f"{count:,} of {pairs:,} pairs have no image; either all samples of a dataset have one, or none has",
        where=where,
        fix="Set `on_error: skip` under input to reject them, or `images: false` under shards to pack texts only",
    )


def image_format_of(image: str) -> str:
    """Return the format of an image by its name; empty where the name does not state it."""
    suffix = PurePosixPath(image).suffix.lower()
    return (
        _SAME.get(suffix[1:], suffix[1:])
        if suffix in IMAGE_SUFFIXES and not (is_url(image) or is_table_cell(image))
        else ""
    )


def _mixed_formats(formats: Counter[str], where: str) -> InputError:
    counts = ", ".join(f"{name} {count:,}" for name, count in formats.most_common())
    return InputError(
        f"mixed or unsupported image formats ({counts})",
        where=where,
        fix="Set `image_format: jpg` (or png, webp) under shards to recode them",
    )


def _reject_without_image(outputs: Sequence[Path]) -> None:
    """Move the pairs without an image from the parts to their rejected rows."""
    for path, rejected in zip(outputs[::2], outputs[1::2], strict=True):
        pairs = list(PAIRS.read(path))
        if rows := [reject_without_image(pair) for pair in pairs if not pair.image]:
            PAIRS.write([pair for pair in pairs if pair.image], path)
            REJECTS.write([*REJECTS.read(rejected), *rows], rejected)
