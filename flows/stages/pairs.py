"""Stage ``pairs``: the user's data becomes checked pairs, in parts; what is broken becomes rejected rows.

Every sample of a dataset has the same members. So where images are packed, the pairs without one, among others that
have one, are told here and not behind all work; so are pictures whose names (inside a table, whose bytes) tell of several
formats that shards hold, or of none, unless they are recoded. What a picture is in truth its bytes tell, when it is packed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, is_table_cell, is_url
from pairwright.datasets.images.recoding import IMAGE_EXTENSIONS
from pairwright.datasets.progress import open_step
from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.flows.state.layout import pairs_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult

MISSING_IMAGE = "missing_image"
_SAME = {"jpeg": "jpg", "tiff": "tif"}


@dataclass(frozen=True, slots=True)
class Intake:
    """How the input becomes parts.

    Attributes:
        options: of the reader.
        part_size: pairs a part.
        all_pictured: whether every pair is to have an image where one has.
        one_format: whether the images are packed as they are, so that all have to be of one format.
    """

    options: ReadOptions
    part_size: int
    all_have_images: bool
    single_image_format: bool = False


def read_input(root: Path, intake: Intake) -> JobResult:
    """Read the input to the end; write a part for every so many pairs that are kept.

    Raises:
        InputError: on a broken row, or a pair without an image among others, when the options say stop; when no
            pair is left; and for images of several formats, or of none that shards hold.
    """
    options = intake.options
    outputs: list[Path] = []
    reasons: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    kept = bare = 0
    for number, (pairs, rejects) in enumerate(_parts(options, intake.part_size, formats)):
        part = part_name(number)
        PAIRS.write(pairs, pairs_path(root, part))
        REJECTS.write(rejects, rejected_path(root, "pairs", part))
        outputs += [pairs_path(root, part), rejected_path(root, "pairs", part)]
        kept += len(pairs)
        bare += sum(not pair.image for pair in pairs)
        formats.update(filter(None, (image_format_of(pair.image) for pair in pairs)))
        reasons.update(row.reason for row in rejects)
    if intake.single_image_format and formats and len(formats.keys() & set(IMAGE_EXTENSIONS)) != 1:
        raise _mixed_formats_message(formats, str(options.input))
    if intake.all_have_images and 0 < bare < kept:
        if options.on_error == "stop":
            raise _mixed(bare, kept, str(options.input))
        _rejected_writer(outputs)
        kept -= bare
        reasons[MISSING_IMAGE] += bare
    counts = Counts("row", kept + reasons.total(), kept, dict(sorted(reasons.items())))
    return JobResult(outputs, counts, {"parts": len(outputs) // 2})


def _parts(options: ReadOptions, size: int, formats: Counter[str]) -> Iterator[tuple[list[Pair], list[Reject]]]:
    pairs: list[Pair] = []
    rejects: list[Reject] = []
    for batch in report_rows_read(read_pairs(options)):
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
    """Yield batches as they come, and report how many rows were read."""
    with open_step("reading", unit="rows") as done:
        for batch in batches:
            yield batch
            done.advance(len(batch.pairs) + len(batch.rejects))


def without_image_field(pair: Pair) -> Reject:
    """Return what becomes of a pair without an image where others have one."""
    place = f"{pair.source}: {pair.source_id or pair.key}"
    return make_reject(place, MISSING_IMAGE, "no image, and other pairs have one", pair.caption)


def _mixed(bare: int, pairs: int, where: str) -> InputError:
    return InputError(
        f"{bare:,} of {pairs:,} pairs have no image, and the samples of a dataset have one all or none",
        where=where,
        fix="`on_error: skip` under input sets them aside; `images: false` under shards packs texts alone",
    )


def image_format_of(image: str) -> str:
    """Return what an image's name says of its format; nothing for names that say nothing, or are not the file's."""
    suffix = PurePosixPath(image).suffix.lower()
    return (
        _SAME.get(suffix[1:], suffix[1:])
        if suffix in IMAGE_SUFFIXES and not (is_url(image) or is_table_cell(image))
        else ""
    )


def _mixed_formats_message(formats: Counter[str], where: str) -> InputError:
    told = ", ".join(f"{name} {count:,}" for name, count in formats.most_common())
    return InputError(
        f"the images are of several formats, or of none that shards hold ({told})",
        where=where,
        fix="`image_format: jpg` (or png, webp) under shards recodes those that are of another",
    )


def _rejected_writer(outputs: Sequence[Path]) -> None:
    for path, rejected in zip(outputs[::2], outputs[1::2], strict=True):
        pairs = list(PAIRS.read(path))
        if bare := [without_image_field(pair) for pair in pairs if not pair.image]:
            PAIRS.write([pair for pair in pairs if pair.image], path)
            REJECTS.write([*REJECTS.read(rejected), *bare], rejected)
