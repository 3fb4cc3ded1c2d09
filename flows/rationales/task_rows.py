"""Where the rows of a task come from: a table of any format, or for image-text matching what holds hard negatives.

Rows of a table are read as they are; a broken one stops the reading, or is counted, as asked. For image-text matching
INPUT may also be a build, shards, or a file of candidate rows (caption, negative).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pairwright.datasets.build_manifest import is_build
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import locate_row_image
from pairwright.datasets.readers.formats import NON_PAIR_FORMATS, READERS, guess_format, locate_input
from pairwright.datasets.readers.pairs import ErrorPolicy
from pairwright.datasets.rejects import Reject, RejectError
from pairwright.datasets.shards.sample_source import open_sample_source
from pairwright.datasets.suggestions import require_known
from pairwright.filters.candidates.files import find_row_files, read_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import candidate_rows
from pairwright.generators.rationales.image_text_matching import RawRow, rows_from_candidate, rows_from_sample
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow, TaskRowError

MATCHING = frozenset({"known", "caption"})  # the fields of a task that hard negatives can fill


@dataclass(frozen=True)
class TaskInput:
    """What to read, and how.

    Attributes:
        path: of INPUT.
        format: of a table; empty: guessed.
        columns: field of the task, ``label`` or ``image`` -> column, before the task's own.
        on_error: ``stop`` at the first broken row, or ``skip`` it.
        image_root: folder of the images; None: that of INPUT, then the working one.
    """

    path: str
    format: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    on_error: ErrorPolicy = "stop"
    image_root: Path | None = None

    def locate(self, item: TaskRow) -> TaskRow:
        """Return a row whose image is a locator; an image outside of ``image_root`` counts as none."""
        try:
            return replace(item, image=locate_row_image(item.image, Path(self.path), self.image_root))
        except RejectError:
            return replace(item, image="")


def read_items(task: TaskDefinition, given: TaskInput, broken: Counter[str]) -> Iterator[TaskRow]:
    """Give the rows of an input as items of a task, in order; ``broken`` counts those that are skipped, by reason.

    Raises:
        UsageError, InputError: as `read_aligned_items`.
    """
    return (item for item in read_aligned_items(task, given, broken) if item is not None)


def read_aligned_items(task: TaskDefinition, given: TaskInput, broken: Counter[str]) -> Iterator[TaskRow | None]:
    """Give the rows of an input as items of a task, and None in the place of each that is skipped.

    Raises:
        UsageError: columns for fields that the task does not have.
        InputError: the input cannot be read, or a row of it is broken.
    """
    require_known(f"--columns: no field of {task.name}:", given.columns, [*task.fields, "label", "image"])
    raws = _matching_rows(given.path, given.on_error, broken) if task.fields.keys() == MATCHING else None
    for place, raw in raws if raws is not None else _table_rows(given, broken):
        if raw is None:
            yield None
            continue
        row, key = raw
        named = {name: row[column] for name, column in given.columns.items() if column in row}
        try:
            yield given.locate(_with_columns(task, given.columns).item({**row, **named}, key))
        except TaskRowError as fault:
            if given.on_error == "stop":
                raise InputError(
                    str(fault), where=place, fix="Correct the row, or name your columns with --columns."
                ) from None
            broken["broken_row"] += 1
            yield None


def _with_columns(task: TaskDefinition, columns: Mapping[str, str]) -> TaskDefinition:
    """Return the task with the user's columns in place of its own."""
    if not columns:
        return task
    fields = {name: ((name,),) if name in columns else places for name, places in task.fields.items()}
    return replace(task, fields=fields, label_columns=(("label",),) if "label" in columns else task.label_columns)


def _table_rows(given: TaskInput, broken: Counter[str]) -> Iterator[tuple[str, RawRow | None]]:
    located = locate_input(given.path, given.format)
    for file in located.files:
        for row in READERS.get(located.format).read(file):
            if not isinstance(row, Reject):
                key = row.fields.get("key")
                yield row.place, (row.fields, key if isinstance(key, str) and _is_key(key) else "")
            elif given.on_error == "stop":
                raise row.error()
            else:
                broken[row.reason] += 1
                yield row.place, None


def _matching_rows(path: str, on_error: ErrorPolicy, broken: Counter[str]) -> Iterator[tuple[str, RawRow]] | None:
    """Return the rows that hard negatives make; None where INPUT is a table of rows."""
    given = Path(path)
    if is_build(given) or given.suffix == ".tar" or (given.is_dir() and any(given.glob("*.tar"))):
        return (
            (f"{path}: {sample.pair.key}", raw)
            for sample in open_sample_source(given).samples()
            for raw in rows_from_sample(sample)
        )
    return _candidates(given, on_error, broken) if holds_candidates(given) else None


def holds_candidates(path: Path) -> bool:
    """Return whether a file, or a folder of SugarCrepe files, holds candidate rows: each with a caption and a negative."""
    if not path.is_file():
        return bool(find_row_files(path))
    format_ = guess_format(path)
    if format_ == "sugarcrepe":
        return True
    if format_ in NON_PAIR_FORMATS:
        return False
    fields = next((row.fields for row in READERS.get(format_).read(path) if not isinstance(row, Reject)), {})
    return "known" not in fields and any(name in fields for name in ("negative", "negative_caption", "neg_caption"))


def _candidates(path: Path, on_error: ErrorPolicy, broken: Counter[str]) -> Iterator[tuple[str, RawRow]]:
    screening = InvalidRowPolicy(on_error)
    frame = read_candidates(path, screening)
    broken.update(screening.skipped.rows)
    judged: set[tuple[str, str]] = set()
    for number, candidate in enumerate(candidate_rows(frame), 1):
        if candidate["status"] != "kept":
            broken["rejected_candidate"] += 1
            continue
        for row, key in rows_from_candidate(candidate, judged):
            yield f"{path}: row {number}", (row, key if _is_key(key) else "")


def _is_key(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)
