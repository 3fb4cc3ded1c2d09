"""Reading of pairs from any supported input, in batches of pairs and rejects.

A reader yields raw rows, `normaliser.py` makes pairs of them, and this module finds repeated keys and applies the error
policy. A *candidate* is the unit of acceptance: a row, a single rejected caption of a row, its rejected boxes, a failed download. Each becomes
a pair or a `Reject`; a batch has both.

Policy: what exceeds a limit (`rejects.NEVER_FATAL_REASONS`) is always a `Reject`. Otherwise ``stop`` ends the reading at
the first flaw with an `InputError` (place, problem, fix), and ``skip`` makes it a `Reject`. A flaw of the whole input
(unreadable, no caption column, no rows, no valid row) is an error under both.

Memory: one batch, and 8 bytes per key (`key_set.py`); COCO files are held in memory.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.directories import folder_of_input, stable_place
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.images.loading import (
    ImageRoot,
    image_format_by_name,
    is_table_cell,
    publishable_image_name,
    short_format_name,
)
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.boxes import BoxUnit
from pairwright.datasets.readers.caption_tables import find_caption_tables
from pairwright.datasets.readers.coco import list_instance_files, read_coco
from pairwright.datasets.readers.columns import check_column_mapping
from pairwright.datasets.readers.formats import READERS, LocatedInput, locate_input
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.key_set import KeySet
from pairwright.datasets.readers.known_layouts import CAPTION_PARTS
from pairwright.datasets.readers.normaliser import MAX_CAPTION_LENGTH, Normaliser, NormaliserOptions, VerifyImages
from pairwright.datasets.readers.text_files import Transcoder
from pairwright.datasets.records import Pair, pair_key
from pairwright.datasets.rejects import (
    DUPLICATE_CAPTION,
    NEVER_FATAL_REASONS,
    NOT_SELECTED,
    Reject,
    fix_for,
    make_reject,
)
from pairwright.datasets.remote.object_store import is_remote

ErrorPolicy = Literal["stop", "skip"]
MISSING_CAPTION_REASONS = frozenset({"missing_column", "missing_caption"})
_SHOWN_TABLES = 5
CANDIDATE_COLUMNS = frozenset({"negative", "form", "status"})
"""Columns of a file of negatives, as `flows/commands/annotation_files.py` writes it."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read, and how.

    Attributes:
        input: path or brace pattern, or several.
        format: a name of `formats.READERS`; empty to detect.
        columns: part of a pair to column name (``{"key": "image_id"}``); `key` fills `source_id`.
        where: column to the values that a row may have in it (``{"split": ("train", "restval")}``); other rows are a `Reject`
            with the reason ``not_selected``, which never stops the reading.
        explode: one pair per caption instead of one per image.
        image_root: folder of relative image paths, or a brace pattern of several; empty for the input's own folder.
        source: name of the dataset; empty for the rows' `source`, or else ``default_source``.
        default_source: name of the dataset of rows that name none; empty for the input's name without its ending.
        instances: COCO instances JSON with the boxes of a COCO input; a brace pattern with a file for each of its files.
        on_error: ``stop`` at the first flaw, or ``skip`` it as a `Reject`.
        batch_size: candidates per batch, at least 1.
        verify_images: ``header`` finds missing, broken and truncated images in 0.1 ms each; it is the default, as a broken
            image would otherwise fail a build at its last stage. ``full`` decodes every pixel. ``off`` is for work on
            texts only.
        box_unit: of box coordinates; ``guess`` by the rule in `boxes.py`.
        max_caption: characters of a caption; longer ones are rejected as ``caption_too_long``.
        without_caption: also read images without a caption, as pairs with an empty one.
        encoding: of the lines of CSV, TSV and JSON Lines that are not UTF-8; empty: they are flaws.
        clean_captions: remove HTML, addresses, mentions, hashtags, emoji and notes of agencies from captions; those of which
            nothing is left are rejected as ``no_content``, and those that equal an earlier one of the same image as
            ``duplicate_caption``.
        option_names: how messages name these options.
    """

    input: str | tuple[str, ...]
    format: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Collection[str]] = field(default_factory=dict)
    explode: bool = False
    image_root: str = ""
    source: str = ""
    default_source: str = ""
    instances: str = ""
    on_error: ErrorPolicy = "stop"
    batch_size: int = 4096
    verify_images: VerifyImages = "header"
    box_unit: BoxUnit = "guess"
    max_caption: int = MAX_CAPTION_LENGTH
    without_caption: bool = False
    clean_captions: bool = False
    encoding: str = ""
    option_names: OptionNames = COMMAND_LINE


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """Processed candidates.

    Attributes:
        pairs: in row order.
        rejects: in row order.
        formats: locator to format of the images that were opened (``jpeg``, ``png``, ...): file endings may be wrong.
    """

    pairs: list[Pair]
    rejects: list[Reject]
    formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def candidates(self) -> int:
        """Number of pairs and rejects."""
        return len(self.pairs) + len(self.rejects)

    def image_formats(self) -> list[str]:
        """Return the format of the image of each pair (``jpg``, ``png``, ...), by its name if it was not opened; or empty."""
        opened = (self.formats.get(pair.image, "") for pair in self.pairs)
        return [
            short_format_name(name) or image_format_by_name(pair.image)
            for name, pair in zip(opened, self.pairs, strict=True)
        ]


def read_pairs(options: ReadOptions) -> Iterator[ReadBatch]:
    """Read all pairs of the inputs, in order.

    Returns:
        An iterator of batches; none is empty, and at least one has a pair.

    Raises:
        UsageError: immediately, for invalid options.
        InputError: immediately for missing inputs; while iterating, for flaws (see the module's docstring).
    """
    located = locate_inputs(options)
    require_captions_beside(options, located)
    return _collect_batches(options, located)


def locate_inputs(options: ReadOptions) -> list[LocatedInput]:
    """Return the files of the inputs, after a check of the options; errors as in `read_pairs`."""
    check_column_mapping(options.columns, options.option_names)
    for name, value, known in (
        ("on_error", options.on_error, get_args(ErrorPolicy)),
        ("verify_images", options.verify_images, get_args(VerifyImages)),
        ("box_unit", options.box_unit, get_args(BoxUnit)),
    ):
        if value not in known:
            raise UsageError(f"{options.option_names.option(name)} {value}: not one of {', '.join(known)}.")
    if options.batch_size < 1:
        raise UsageError(f"batch size {options.batch_size}: at least 1.")
    if options.max_caption < 1:
        raise UsageError(f"{options.option_names.option('max_caption')} {options.max_caption}: at least 1.")
    inputs = (options.input,) if isinstance(options.input, str) else options.input
    if not inputs:
        raise UsageError("no input to read.")
    named = bool(CAPTION_PARTS & options.columns.keys())
    located = [
        locate_input(written, options.format, options.option_names, caption_is_named=named) for written in inputs
    ]
    if Transcoder.of(options.encoding, options.option_names).encoding:
        for one in located:
            if not READERS.get(one.format).transcodes:
                option = options.option_names.option("encoding")
                raise UsageError(f"{option}: for CSV, TSV and JSON Lines; {one.files[0]} is read as {one.format}.")
    _check_instances(options, located)
    return located


def _check_instances(options: ReadOptions, located: Sequence[LocatedInput]) -> None:
    if options.instances and any(one.format != "coco" for one in located):
        raise UsageError("`instances` requires COCO captions; other formats contain their boxes.")
    files, boxes = sum(len(one.files) for one in located), list_instance_files(options.instances)
    if len(boxes) > 1 and len(boxes) != files:
        option = options.option_names.option("instances")
        raise UsageError(f"{option}: {len(boxes)} files for {count_phrase(files, 'file')} of captions. Give one each.")


def require_captions_beside(options: ReadOptions, located: Sequence[LocatedInput]) -> None:
    """Refuse a folder of images whose captions are in a file of it, as they would seem to have none.

    Raises:
        InputError: naming the file.
    """
    if options.format or options.without_caption:
        return
    for one in located:
        folder = one.files[0]
        if (
            one.format != "images"
            or is_remote(folder)
            or not (tables := find_caption_tables(folder, options.columns).captions)
        ):
            continue
        names = [str(table.path) for table in tables[:_SHOWN_TABLES]]
        choice = "it" if len(tables) == 1 else "one of them"
        fix = f"Give {choice} as input; for the folder, `pairwright init` finds the file and its images."
        raise InputError(f"the captions of its images are in {', '.join(names)}", where=str(folder), fix=fix)


@dataclass
class BatchCollector:
    """Collects candidates into batches; finds repeated keys and applies the policy."""

    policy: ErrorPolicy
    option_names: OptionNames
    cleaned: bool = False  # captions
    seen: KeySet = field(default_factory=KeySet)
    waiting: list[tuple[str, Pair] | Reject] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)  # of the images of the rows that are waiting
    kept: int = 0
    first: Reject | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)  # of the pairs of the last batch
    pairs_before: list[int] = field(default_factory=list)  # each reject of the last batch

    def is_fatal(self, flaw: Reject) -> bool:
        """Return whether a flaw ends the reading."""
        return self.policy == "stop" and flaw.reason not in NEVER_FATAL_REASONS

    def close(self) -> ReadBatch:
        """Return the batch of collected candidates.

        Raises:
            InputError: under ``stop``, for the first flaw in row order.
        """
        waiting, self.waiting = self.waiting, []
        batch = ReadBatch([], [], dict(self.formats))
        self.formats.clear()
        self.places, self.pairs_before = [], []
        for item in self._without_repeats(waiting):
            if isinstance(item, Pair):
                batch.pairs.append(item)
                continue
            flaw = item
            if self.is_fatal(flaw):
                raise flaw.error(self.option_names)
            batch.rejects.append(flaw)
            self.pairs_before.append(len(batch.pairs))
            self.first = self.first or flaw
            self.reasons[flaw.reason] += 1
        self.kept += len(batch.pairs)
        return batch

    def _without_repeats(self, waiting: list[tuple[str, Pair] | Reject]) -> Iterator[Pair | Reject]:
        placed = [item for item in waiting if isinstance(item, tuple)]
        repeated = self.seen.add([pair.key for _, pair in placed])
        again = {at: key for at in repeated.nonzero()[0].tolist() if (key := make_row_key(placed[at][1]))}
        apart = {at for at, seen in zip(again, self.seen.add(list(again.values())), strict=True) if not seen}
        at = -1
        for item in waiting:
            if isinstance(item, Reject):
                yield item
                continue
            at += 1
            if repeated[at] and at not in apart:
                yield duplicate_reject(*item, cleaned=self.cleaned)
            else:
                self.places.append(item[0])
                yield replace(item[1], key=again[at]) if at in apart else item[1]


def make_row_key(pair: Pair) -> str:
    """Return another key for an image inside a table that is identified by its caption only, else empty.

    Two images may have the same caption; all but the first get a key that includes their row.
    """
    if not is_table_cell(pair.image) or pair.key != pair_key(pair.source, "", pair.caption):
        return ""
    return pair_key(pair.source, publishable_image_name(pair.image), pair.caption)


def duplicate_reject(place: str, pair: Pair, *, cleaned: bool) -> Reject:
    """Return the reject for a pair whose key came before.

    Captions that are ``cleaned`` may be equal without being written alike, so such a pair is no flaw of the input. Which
    of them were written alike is unknown.
    """
    who = pair.source_id or pair.image
    detail = f"{who!r} came before with the same caption" if who else "the same caption came before"
    reason = DUPLICATE_CAPTION if cleaned else "duplicate_key"
    if json.loads(pair.meta).keys() >= CANDIDATE_COLUMNS:
        reason = "candidate_row"
    elif cleaned:
        detail += ", as written or after cleaning"
    return replace(make_reject(place, reason, detail, pair.caption), source=pair.source)


def no_pairs_error(first: Reject, reasons: Counter[str], option_names: OptionNames) -> InputError:
    """Return the error of an input without a valid row; ``first`` is its first reject."""
    counts = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
    return InputError(
        f"no valid row ({counts}); the first is {first.reason}: {first.detail}",
        where=first.place,
        fix=fix_for(first.reason, option_names),
    )


def _collect_batches(options: ReadOptions, located: list[LocatedInput]) -> Iterator[ReadBatch]:
    screen = BatchCollector(options.on_error, options.option_names, options.clean_captions)
    empty = True
    for one in located:
        for place, candidate in _iter_candidates(options, one, screen.formats):
            empty = False
            if isinstance(candidate, Reject):
                screen.waiting.append(candidate)
                if screen.is_fatal(candidate):
                    screen.close()
            else:
                screen.waiting.append((place, candidate))
            if len(screen.waiting) >= options.batch_size:
                yield screen.close()
    if empty:
        raise InputError("there are no rows", where=str(located[0].files[0]), fix="Give a file with rows.")
    if screen.waiting:
        yield screen.close()
    if screen.first and not screen.kept:
        raise no_pairs_error(screen.first, screen.reasons, options.option_names)


def _iter_candidates(
    options: ReadOptions, one: LocatedInput, formats: dict[str, str]
) -> Iterator[tuple[str, Pair | Reject]]:
    """Yield (place, candidate) of one input and fill ``formats``; flaws of whole files are raised."""
    normaliser = make_normaliser(options, one, formats)
    rows = 0
    for file in one.files:
        watch = CaptionPresence(options.option_names)
        yield from iter_file_candidates(options, one, normaliser, file, select_reader(options, one.format)(file), watch)
        watch.end()
        rows += watch.rows
    if rows:
        check_mapped_columns(options, normaliser.unmatched_columns, one.files[-1])


def make_normaliser(options: ReadOptions, one: LocatedInput, formats: dict[str, str]) -> Normaliser:
    """Return what makes pairs of the rows of one input, and fills ``formats`` with those of images that it opens."""
    rules = NormaliserOptions(
        options.columns,
        options.where,
        options.explode,
        options.verify_images,
        options.box_unit,
        options.source,
        options.option_names,
        options.max_caption,
        options.without_caption,
        options.clean_captions,
    )
    root = ImageRoot.named(options.image_root) if options.image_root else ImageRoot(one.root)
    return Normaliser(rules, root, options.default_source or one.name, formats)


def iter_file_candidates(  # noqa: PLR0913, PLR0917 - what reading a file needs
    options: ReadOptions,
    one: LocatedInput,
    normaliser: Normaliser,
    file: Path,
    rows: InputRowIterator,
    watch: "CaptionPresence",
    around: Sequence[InputRowIterator] = (),
) -> Iterator[tuple[str, Pair | Reject]]:
    """Yield (place, candidate) of the ``rows`` of a file, or of a stretch of it.

    Args:
        options: of the whole input.
        one: the input.
        normaliser: of the input.
        file: of the rows.
        rows: of the file or stretch.
        watch: is shown each candidate.
        around: the rows before and those after a stretch.
    """
    reader = READERS.get(one.format)
    fixed = reader.fixed_columns
    if not (options.image_root or reader.reads_folders):  # of a pattern, each file has its own folder
        normaliser.root = ImageRoot(folder_of_input(file))
    rows = normaliser.select(rows)
    if reader.caption_per_row:
        rows = normaliser.join_captions(rows, *map(normaliser.select, around))
    name = options.source or options.default_source or one.name
    for row in normaliser.check_ahead(rows):
        for candidate in [row] if isinstance(row, Reject) else normaliser.candidates(row):
            watch.look(candidate, fixed=fixed)
            if isinstance(candidate, Reject):
                yield candidate.place, replace(candidate, place=stable_place(candidate.place, file), source=name)
            else:
                yield row.place, candidate
        if isinstance(row, InputRow) or row.reason == NOT_SELECTED:  # columns are unknown if no row can be read
            watch.rows += 1
            if fixed:
                check_mapped_columns(options, normaliser.unmatched_columns, file)


def select_reader(options: ReadOptions, format_: str) -> Callable[..., InputRowIterator]:
    """Return the reader of a format for these options."""
    if options.instances:
        return lambda file: read_coco(file, _instances_of(options, file))
    read = READERS.get(format_).read
    if format_ == "jsonl":
        read = partial(read, option_names=options.option_names)
    return partial(read, transcoder=Transcoder.of(options.encoding)) if options.encoding else read


def _instances_of(options: ReadOptions, file: Path) -> Path:
    """Return the instances of a file of captions, which is at the same place of the inputs."""
    boxes = list_instance_files(options.instances)
    if len(boxes) == 1:
        return boxes[0]
    inputs = (options.input,) if isinstance(options.input, str) else options.input
    return boxes[[file for written in inputs for file in locate_input(written, "coco").files].index(file)]


def check_mapped_columns(options: ReadOptions, unmatched: AbstractSet[str], file: Path) -> None:
    """Check that each column that is mapped or selected by occurs.

    Raises:
        InputError: for the ``unmatched`` ones.
    """
    if unmatched:
        option = "where" if unmatched <= options.where.keys() else "columns"
        fix = f"Correct {options.option_names.option(option)}."
        raise InputError(f"no row has a column {', '.join(sorted(unmatched))}", where=str(file), fix=fix)


@dataclass
class CaptionPresence:
    """Distinguishes a file without any caption from one in which some rows have none.

    Attributes:
        option_names: how messages name options.
        first: the first candidate without a caption.
        others: whether there are other candidates.
        rows: number of rows that could be read.
    """

    option_names: OptionNames
    first: Reject | None = None
    others: bool = False
    rows: int = 0

    def look(self, candidate: Pair | Reject, *, fixed: bool) -> None:
        """Look at a candidate; ``fixed``: all rows have the same columns.

        Raises:
            InputError: if no row of a file with fixed columns can have a caption.
        """
        if isinstance(candidate, Pair) or candidate.reason not in MISSING_CAPTION_REASONS:
            self.others = True
        elif fixed:
            raise candidate.error(self.option_names, whole_file=True)
        else:
            self.first = self.first or candidate

    def end(self) -> None:
        """End the file.

        Raises:
            InputError: if no row of it has a caption.
        """
        if self.first and not self.others:
            raise self.first.error(self.option_names, whole_file=True)
