"""Stage ``pairs``: reads the input into parts of checked pairs and of rejected rows.

The pieces of the input are read independently (`scan.py`); one job finds keys that several pieces have and numbers the
pairs; then each part is written from the pieces that it lies in. Parts have the same content for any pieces.

All samples of a dataset have the same members. Where images are packed, this stage therefore reports pairs without an
image among pairs with one, images of mixed or unsupported formats unless they are recoded, and images that are all URLs,
before any other work.
Formats are those of the bytes, as file endings may be wrong; where images are not opened (``verify_images: off``), of the names.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.recoding import IMAGE_EXTENSIONS
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.readers.pieces import Piece, PieceSummary, check_pieces, plan_pieces
from pairwright.datasets.readers.skip_counts import REJECTED_PARTS
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, RejectedPart, make_reject
from pairwright.datasets.remote.store_path import to_path
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.stages.scan import FORMAT, PieceSource, count_piece_lines, number_pairs, repeats_path, scan_piece
from pairwright.flows.state.inputs import file_state, files_state, read_options
from pairwright.flows.state.layout import pairs_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, Receipt, json_hash

if TYPE_CHECKING:
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

MISSING_IMAGE = "missing_image"


@dataclass(frozen=True, slots=True)
class Intake:
    """How the input is read into parts.

    Attributes:
        options: of the reader.
        part_size: pairs per part; 0 for `scan.default_part_size`.
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


@dataclass(frozen=True)
class ScannedInput:
    """What the jobs that read the input found.

    Attributes:
        sources: its pieces.
        scans: the facts of each.
        numbers: the facts of `scan.number_pairs`.
    """

    sources: Sequence[PieceSource]
    scans: Sequence[Mapping[str, Any]]
    numbers: Mapping[str, Any]

    def spans(self) -> "list[PartSpan]":
        """Return where the pairs of each part are."""
        offsets = [0, *accumulate(scan["pairs"] for scan in self.scans)]
        starts = self.numbers["starts"]
        return [self._span(start, stop, offsets) for start, stop in zip(starts, [*starts[1:], None], strict=True)]

    def _span(self, start: int, stop: int | None, offsets: Sequence[int]) -> "PartSpan":
        first = max(0, bisect_left(offsets, start) - 1)  # the piece before may end with rejected rows
        end = len(self.sources) if stop is None else bisect_left(offsets, stop)
        return PartSpan(start, stop, tuple(self.sources[first:end]), tuple(offsets[first:end]), first)

    def state(self, number: int, span: "PartSpan") -> str:
        """Return the state of what a part is read from."""
        contents = [scan["content"] for scan in self.scans[span.first : span.first + len(span.sources)]]
        return json_hash([contents, self.numbers["repeats"].get(str(number), "")])


def pairs_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``pairs`` in a full build: the scan of each piece, the numbering, and the parts.

    Raises:
        InputError: for what the whole input lacks, such as a valid row; for images of mixed or unsupported formats, or
            a pair without an image among pairs with one if the options say stop.
    """
    intake = Intake.of(run.config)
    scanned = yield from scan_jobs(run, intake)
    reject_images = _check_images(intake, scanned.scans, scanned.numbers)
    return [
        run.job(write_part, part_name(number), span, reject_images, part=part_name(number), state=state)
        for number, span in enumerate(scanned.spans())
        for state in [scanned.state(number, span)]
    ]


def scan_jobs(run: "StageRun", intake: Intake) -> "Generator[Sequence[Job], tuple[Receipt, ...], ScannedInput]":
    """Yield the jobs that read the input, a piece each, and the one that numbers the pairs; return what they found.

    Raises:
        InputError: for what the whole input lacks, such as a valid row.
    """
    pieces = plan_pieces(intake.options)
    divided = [piece for piece in pieces if piece.divided]
    counted = (yield [_lines_job(run, number, piece) for number, piece in enumerate(divided)]) if divided else ()
    sources = _sources(intake, pieces, counted)
    states = [_piece_state(run.config, source) for source in sources]
    scanned = yield [
        run.job(scan_piece, source, part=f"scan-{source.name}", state=state)
        for source, state in zip(sources, states, strict=True)
    ]
    scans = [each.facts for each in scanned]
    summaries = [PieceSummary.from_json(scan["summary"]) for scan in scans]
    check_pieces(intake.options, pieces, summaries[: len(pieces)])
    contents = json_hash([scan["content"] for scan in scans])
    (numbered,) = yield [run.job(number_pairs, sources, intake.part_size, part="numbers", state=contents)]
    return ScannedInput(sources, scans, numbered.facts)


def _lines_job(run: "StageRun", number: int, piece: Piece) -> Job:
    state = file_state([to_path(piece.stretches[0].file)])
    return run.job(count_piece_lines, piece, part=f"lines-{part_name(number)}", state=state)


def _sources(intake: Intake, pieces: Sequence[Piece], counted: Sequence[Receipt]) -> list[PieceSource]:
    lines, before = iter(counted), Counter[str]()
    sources = []
    for number, piece in enumerate(pieces):
        file = piece.stretches[0].file
        sources.append(PieceSource(part_name(number), intake.options, piece, before[file], intake.captioned))
        before[file] += next(lines).facts["lines"] if piece.divided else 0
    if intake.captioned:
        sources.append(PieceSource(part_name(len(pieces)), intake.options, None))
    return sources


def _piece_state(config: BuildConfig, source: PieceSource) -> str:
    """Return the state of the files that a piece is read from."""
    files = [to_path(stretch.file) for stretch in source.piece.stretches] if source.piece else []
    return files_state(files, config.input.instances)


def _check_images(intake: Intake, scans: Sequence[Mapping[str, Any]], numbers: Mapping[str, Any]) -> bool:
    """Return whether pairs without an image have to be rejected, after the checks of formats and of missing images."""
    options, formats = intake.options, Counter[str]()
    urls = sum(scan["urls"] for scan in scans)
    with_image = sum(scan["pairs"] - scan["without_image"] for scan in scans)
    if intake.all_have_images and urls and urls == with_image:
        raise _only_urls(urls, str(options.input))
    for scan in scans:
        formats.update(scan["image_formats"])
    if intake.single_image_format and formats and len(formats.keys() & set(IMAGE_EXTENSIONS)) != 1:
        raise _mixed_formats(formats, str(options.input))
    without_image = sum(scan["without_image"] for scan in scans) - numbers["repeats_without_image"]
    if not (intake.all_have_images and 0 < without_image < numbers["pairs"]):
        return False
    if options.on_error == "stop":
        raise _missing_images(without_image, numbers["pairs"], str(options.input))
    return True


@dataclass(frozen=True)
class PartSpan:
    """The pairs of a part.

    Attributes:
        start: position of its first pair in all pieces together.
        stop: position after its last pair; None for the last part.
        sources: the pieces that it has pairs or rejected rows of.
        offsets: position of the first pair of each piece.
        first: number of the first piece.
    """

    start: int
    stop: int | None
    sources: tuple[PieceSource, ...]
    offsets: tuple[int, ...]
    first: int


def write_part(root: Path, part: str, span: PartSpan, reject_images: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Write the pairs of a part and its rejected rows; the unit is a row.

    Args:
        root: the build directory.
        part: its name.
        span: where its pairs are.
        reject_images: whether pairs without an image are rejected.
    """
    pairs, rejects = read_span(root, span)
    pairs = pairs.drop(FORMAT)
    if reject_images:
        none = PAIRS.records(pairs.filter(pl.col("image") == ""))
        rejects = pl.concat([rejects, rejected_rows([reject_without_image(pair) for pair in none])])
        pairs = pairs.filter(pl.col("image") != "")
    outputs = [pairs_path(root, part), rejected_path(root, "pairs", part)]
    PAIRS.write_frame(pairs.rechunk(), outputs[0])
    REJECTS.write_frame(rejects.select(REJECTS.schema.names()).rechunk(), outputs[1])
    return intake_result(outputs, pairs.height, rejects, {"parts": 1})


def intake_result(outputs: Sequence[Path], kept: int, rejects: pl.DataFrame, facts: Mapping[str, int]) -> JobResult:
    """Return the result of a job that read rows: candidates are kept and rejected rows.

    Captions, boxes and fields that were rejected from kept rows are no candidates: the facts count them by reason.

    Args:
        outputs: of the job.
        kept: number of pairs.
        rejects: with the ``part`` of the row that is rejected.
        facts: more of them.
    """
    rows, *parts = (_count_reasons(rejects.filter(pl.col("part") == part)) for part in get_args(RejectedPart))
    counts = Counts("row", kept + sum(rows.values()), kept, rows)
    return JobResult(outputs, counts, {**facts, **dict(zip(REJECTED_PARTS, parts, strict=True))})


def read_span(root: Path, span: PartSpan) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the pairs in a span of the scanned input with their `FORMAT`, and its rejected rows with the ``part`` of each.

    Both are in order.
    """
    within = pl.col("position") >= span.start
    if span.stop is not None:
        within &= pl.col("position") < span.stop
    repeats = pl.scan_parquet(repeats_path(root)).filter(within).collect()
    pairs = pl.concat([_pairs_of(root, source, offset, span) for source, offset in _with_offsets(span)])
    pairs = pairs.join(repeats.filter(pl.col("reason") != ""), on="position", how="anti", maintain_order="left")
    renamed = repeats.filter(pl.col("reason") == "").select("position", other="key")
    pairs = pairs.join(renamed, on="position", how="left", maintain_order="left")
    pairs = pairs.with_columns(key=pl.coalesce("other", "key")).select(*PAIRS.schema.names(), FORMAT)
    rejects = [
        *(_rejects_of(root, source, offset).filter(within) for source, offset in _with_offsets(span)),
        repeats.filter(pl.col("reason") != "").select(
            *REJECTS.schema.names(), "position", part=pl.lit("row"), last=pl.lit(1)
        ),
    ]
    return pairs, pl.concat(rejects).sort("position", "last", maintain_order=True).select(
        *REJECTS.schema.names(), "part"
    )


def rejected_rows(rejects: Sequence[Reject]) -> pl.DataFrame:
    """Return rejects of whole rows as a table, with their ``part``."""
    return REJECTS.frame(rejects).with_columns(part=pl.lit("row"))


def _count_reasons(rejects: pl.DataFrame) -> dict[str, int]:
    return dict(rejects.group_by("reason").len().sort("reason").iter_rows())


def _with_offsets(span: PartSpan) -> Iterator[tuple[PieceSource, int]]:
    return zip(span.sources, span.offsets, strict=True)


def _pairs_of(root: Path, source: PieceSource, offset: int, span: PartSpan) -> pl.DataFrame:
    """Return the pairs of a piece that are in the span, with their ``position``."""
    start = max(0, span.start - offset)
    length = None if span.stop is None else max(0, span.stop - offset - start)
    rows = source.pairs(root).slice(start, length).drop("place").collect()
    return rows.with_columns(position=pl.int_range(offset + start, offset + start + pl.len(), dtype=pl.UInt64))


def _rejects_of(root: Path, source: PieceSource, offset: int) -> pl.DataFrame:
    """Return the rejected rows of a piece, with their ``position``: that of the next pair; ``last`` is 0."""
    rows = source.rejects(root)
    position = (pl.col("before").cast(pl.UInt64) + offset).alias("position")
    return rows.select(*REJECTS.schema.names(), position, "part", last=pl.lit(0))


def reject_without_image(pair: Pair) -> Reject:
    """Return the reject for a pair without an image among pairs with one."""
    place = f"{pair.source}: {pair.source_id or pair.key}"
    return make_reject(place, MISSING_IMAGE, "no image, and other pairs have one", pair.caption)


def _missing_images(count: int, pairs: int, where: str) -> InputError:
    return InputError(
        f"{count:,} of {count_phrase(pairs, 'pair')} {verb_form(count, 'have')} no image; either all samples of a "
        "dataset have one, or none has",
        where=where,
        fix="Set `on_error: skip` under input to reject them, or `images: false` under shards to pack texts only",
    )


def _only_urls(count: int, where: str) -> InputError:
    return InputError(
        f"all images ({count:,}) are URLs, and the build does not download them",
        where=where,
        fix="Add a section `fetch`, or set `images: false` under shards to pack texts only",
    )


def _mixed_formats(formats: Counter[str], where: str) -> InputError:
    counts = ", ".join(f"{name} {count:,}" for name, count in formats.most_common())
    return InputError(
        f"mixed or unsupported image formats ({counts})",
        where=where,
        fix="Set `image_format: jpg` (or png, webp) under shards to recode them",
    )
