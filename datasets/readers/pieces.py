"""Division of an input into pieces that are read independently: whole files, and stretches of large ones.

JSON Lines without compression are divided at byte offsets, Parquet files at row groups; a file of another format is one
stretch, and small files share a piece. The size of a piece follows the size of the input, so the pieces do not depend
on who reads them. `read_piece` yields the batches of one; repeated keys are found within the piece only, and the flaws
of the whole input by `check_pieces`, from the summaries of all pieces.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.formats import LocatedInput
from pairwright.datasets.readers.input_rows import InputRowIterator
from pairwright.datasets.readers.normaliser import MAX_JOINED
from pairwright.datasets.readers.pairs import (
    BatchCollector,
    CaptionPresence,
    ReadOptions,
    check_mapped_columns,
    iter_file_candidates,
    locate_inputs,
    make_normaliser,
    no_pairs_error,
    require_captions_beside,
    select_reader,
)
from pairwright.datasets.readers.parquet import find_earlier_group, read_parquet
from pairwright.datasets.readers.text_files import count_line_starts, find_earlier_line, is_plain_text
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.datasets.remote.reading import open_table
from pairwright.datasets.remote.store_path import to_path

MIN_PIECE, MAX_PIECE = 2**20, 64 * 2**20
_PIECES = 64  # of an input whose pieces are neither the smallest nor the largest


@dataclass(frozen=True)
class Stretch:
    """A file, or a part of a large one.

    Attributes:
        file: path of the file.
        start: first byte or row group.
        stop: byte or row group after the last; 0 for the whole file.
        before: Parquet rows before the stretch. For JSON Lines, `count_lines` gives the lines.
    """

    file: str
    start: int = 0
    stop: int = 0
    before: int = 0


@dataclass(frozen=True)
class Piece:
    """Stretches of one input, in order, with its format, folder of relative paths and name (`LocatedInput`)."""

    input: int
    format: str
    root: str
    name: str
    stretches: tuple[Stretch, ...]

    @property
    def located(self) -> LocatedInput:
        """The input that the piece belongs to, with the files of the piece."""
        return LocatedInput(
            self.format, tuple(to_path(each.file) for each in self.stretches), to_path(self.root), self.name
        )

    @property
    def divided(self) -> bool:
        """Whether it is a part of a file whose lines before it have to be counted."""
        return self.format == "jsonl" and bool(self.stretches[0].stop)


@dataclass
class PieceSummary:
    """What the check of a whole input needs to know of a piece.

    Attributes:
        candidates: number of pairs and rejects.
        kept: number of pairs.
        rows: number of rows that could be read.
        unmatched: mapped columns that no row of it has.
        captionless: of a part of a file: the first candidate without a caption, if there are no others.
        others: of a part of a file: whether a candidate has a caption, or another flaw.
        first: the first reject.
        reasons: rejects by reason.
    """

    candidates: int = 0
    kept: int = 0
    rows: int = 0
    unmatched: list[str] = field(default_factory=list)
    captionless: Reject | None = None
    others: bool = False
    first: Reject | None = None
    reasons: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        rejects = {
            name: found and asdict(found) for name, found in (("captionless", self.captionless), ("first", self.first))
        }
        return {**vars(self), **rejects, "reasons": dict(self.reasons)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "PieceSummary":
        """Return the summary that `as_json` described."""
        rejects = {name: Reject(**fields[name]) for name in ("captionless", "first") if fields[name]}
        return cls(**{**fields, **rejects, "reasons": Counter(fields["reasons"])})


@dataclass(frozen=True)
class PieceBatch:
    """Pairs and rejects in row order.

    Attributes:
        pairs: of the batch.
        places: of each pair: file and line, row or member.
        formats: of the image of each pair, as of `ReadBatch.image_formats`.
        rejects: of the batch.
        pairs_before: number of pairs of the batch before each reject.
    """

    pairs: list[Pair]
    places: list[str]
    formats: list[str]
    rejects: list[Reject]
    pairs_before: list[int]


def plan_pieces(options: ReadOptions) -> list[Piece]:
    """Return the pieces of the inputs, in order; errors as in `read_pairs`."""
    located = locate_inputs(options)
    require_captions_beside(options, located)
    sizes = {file: file.stat().st_size if file.is_file() else MAX_PIECE for one in located for file in one.files}
    size = min(max(sum(sizes.values()) // _PIECES, MIN_PIECE), MAX_PIECE)
    return [piece for number, one in enumerate(located) for piece in _pieces_of(number, one, sizes, size)]


def _pieces_of(number: int, one: LocatedInput, sizes: Mapping[Path, int], size: int) -> Iterator[Piece]:
    make = partial(Piece, number, one.format, str(one.root), one.name)
    waiting: list[Stretch] = []
    total = 0
    for file in one.files:
        stretches = list(_divide(file, one.format, sizes[file], size))
        if waiting and (len(stretches) > 1 or total + sizes[file] > size):
            yield make(tuple(waiting))
            waiting, total = [], 0
        if len(stretches) > 1:
            yield from (make((stretch,)) for stretch in stretches)
        else:
            waiting += stretches
            total += sizes[file]
    if waiting:
        yield make(tuple(waiting))


def _divide(file: Path, format_: str, bytes_: int, size: int) -> Iterator[Stretch]:
    if bytes_ >= 2 * size and format_ == "parquet":
        yield from _divide_parquet(file, size)
    elif bytes_ >= 2 * size and format_ == "jsonl" and _is_plain(file):
        starts = range(0, bytes_ - size // 2, size)
        yield from (Stretch(str(file), start, stop) for start, stop in zip(starts, [*starts[1:], bytes_], strict=True))
    else:
        yield Stretch(str(file))


def _is_plain(file: Path) -> bool:
    try:
        return is_plain_text(file)
    except OSError:
        return False  # its reader reports it


def _divide_parquet(file: Path, size: int) -> Iterator[Stretch]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        footer = parquet.read_metadata(open_table(file))
    except (pa.ArrowException, OSError):
        yield Stretch(str(file))  # its reader reports it
        return
    start = rows = rows_before = held = 0
    for group in range(footer.num_row_groups):
        held += sum(footer.row_group(group).column(at).total_compressed_size for at in range(footer.num_columns))
        rows += footer.row_group(group).num_rows
        if held >= size or group == footer.num_row_groups - 1:
            yield Stretch(str(file), start, group + 1, rows_before)
            start, rows_before, held = group + 1, rows, 0


def count_lines(piece: Piece) -> int:
    """Return how many lines begin in a divided piece."""
    (stretch,) = piece.stretches
    return count_line_starts(to_path(stretch.file), stretch.start, stretch.stop)


def read_piece(
    options: ReadOptions, piece: Piece, summary: PieceSummary, lines_before: int = 0
) -> Iterator[PieceBatch]:
    """Yield the batches of a piece, and fill its ``summary``.

    Args:
        options: of the whole input.
        piece: from `plan_pieces`.
        summary: an empty one.
        lines_before: lines of the file before a divided piece.

    Raises:
        InputError: for a flaw of a file, and of a row if the policy is ``stop``.
    """
    one = piece.located
    screen = BatchCollector(options.on_error, options.option_names, options.clean_captions)
    normaliser = make_normaliser(options, one, screen.formats)
    for stretch, file in zip(piece.stretches, one.files, strict=True):
        watch = CaptionPresence(options.option_names)
        rows = _open_stretch(options, piece.format, stretch, lines_before)
        around = _rows_around(options, piece.format, stretch)
        for place, candidate in iter_file_candidates(options, one, normaliser, file, rows, watch, around):
            summary.candidates += 1
            screen.waiting.append(candidate if isinstance(candidate, Reject) else (place, candidate))
            if len(screen.waiting) >= options.batch_size or (
                isinstance(candidate, Reject) and screen.is_fatal(candidate)
            ):
                yield _closed(screen, summary)
        summary.rows += watch.rows
        if stretch.stop:
            summary.captionless, summary.others = watch.first, watch.others
        else:
            watch.end()
    if screen.waiting:
        yield _closed(screen, summary)
    summary.unmatched = sorted(normaliser.unmatched_columns)


def _closed(screen: BatchCollector, summary: PieceSummary) -> PieceBatch:
    batch = screen.close()
    summary.kept += len(batch.pairs)
    summary.first = summary.first or screen.first
    summary.reasons.update(reject.reason for reject in batch.rejects)
    return PieceBatch(batch.pairs, screen.places, batch.image_formats(), batch.rejects, screen.pairs_before)


def _open_stretch(options: ReadOptions, format_: str, stretch: Stretch, lines_before: int) -> InputRowIterator:
    file = to_path(stretch.file)
    if not stretch.stop:
        return select_reader(options, format_)(file)
    if format_ == "parquet":
        return read_parquet(file, (stretch.start, stretch.stop, stretch.before))
    return select_reader(options, format_)(file, stretch=(stretch.start, stretch.stop, lines_before))


def _rows_around(options: ReadOptions, format_: str, stretch: Stretch) -> tuple[InputRowIterator, ...]:
    """Return the rows before and after a stretch that may be of the same image as its first or last row."""
    if not stretch.stop:
        return ()
    file = to_path(stretch.file)
    if format_ == "parquet":
        first = find_earlier_group(file, stretch.start, MAX_JOINED)
        read = read_parquet
    else:
        first = find_earlier_line(file, stretch.start, MAX_JOINED)
        read = select_reader(options, format_)
    before = read(file, stretch=(first, stretch.start, 0)) if stretch.start else ()
    return iter(deque(before, MAX_JOINED)), islice(read(file, stretch=(stretch.stop, 0, 0)), MAX_JOINED)


def check_pieces(options: ReadOptions, pieces: Sequence[Piece], summaries: Sequence[PieceSummary]) -> None:
    """Check what only all pieces together show.

    Raises:
        InputError: when there are no rows or no valid row, a file has no caption, or no row has a mapped column.
    """
    if not any(each.candidates for each in summaries):
        where = pieces[0].stretches[0].file if pieces else str(options.input)
        raise InputError("there are no rows", where=where, fix="Give a file with rows.")
    both = list(zip(pieces, summaries, strict=True))
    for file in dict.fromkeys(piece.stretches[0].file for piece in pieces if piece.stretches[0].stop):
        parts = [each for piece, each in both if piece.stretches[0].file == file]
        watch = CaptionPresence(options.option_names, _first(part.captionless for part in parts))
        watch.others = any(part.others for part in parts)
        watch.end()
    for number in {piece.input for piece in pieces}:
        mine = [(piece, each) for piece, each in both if piece.input == number and each.rows]
        if mine:
            unmatched = set.intersection(*(set(each.unmatched) for _, each in mine))
            check_mapped_columns(options, unmatched, to_path(mine[-1][0].stretches[-1].file))
    first = _first(each.first for each in summaries)
    if first and not any(each.kept for each in summaries):
        reasons = sum((each.reasons for each in summaries), Counter[str]())
        raise no_pairs_error(first, reasons, options.option_names)


def _first(rejects: Iterable[Reject | None]) -> Reject | None:
    return next(filter(None, rejects), None)
