"""Mixtures: sources of conversations, sampled and shuffled into one instruction set (LLaVA-1.5's data mixture).

The sources are read twice. The first pass hashes all rows (`survey.py`), and the rows to take and their order are chosen
by the hashes (`datasets/mixtures/row_sampling.py`, `quotas.py`). The second pass moves the taken rows to their places,
through buckets on disk (`external_sort.py`). Memory is a few numbers per row. The same config, seed and sources give the
same bytes.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.exports.writing import ExportOptions
from pairwright.datasets.images.recoding import Recoding
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.external_sort import RankBuckets, open_buckets
from pairwright.datasets.mixtures.output import (
    ONE_IMAGE_LAYOUTS,
    MixtureRow,
    choose_layout,
    decode_row,
    encode_row,
    mixture_row_id,
    write_mixture,
)
from pairwright.datasets.mixtures.quotas import SourceShare, allocate_rows
from pairwright.datasets.mixtures.row_sampling import (
    DistinctRows,
    RankArray,
    assign_ranks,
    draw_sampling_keys,
    find_distinct_rows,
)
from pairwright.flows.mixtures.config import MixtureConfig
from pairwright.flows.mixtures.report import MixtureReport, TakenRows, report_file
from pairwright.flows.mixtures.survey import EVERY, SourceSummary, SourceSurvey, Watch
from pairwright.flows.state.overwrite_checks import refuse_overwriting


@dataclass(frozen=True)
class MixtureRequest:
    """A mixture to write.

    Attributes:
        config: sources and shares.
        out: file or folder; its extension determines the layout. None for a dry run.
        to: layout, if the extension has several; empty for the first.
        dry_run: whether to report only.
    """

    config: MixtureConfig
    out: Path | None
    to: str = ""
    dry_run: bool = False


def mix(request: MixtureRequest, watch: Watch) -> MixtureReport:
    """Write a mixture, its report and its rejected rows.

    Raises:
        UsageError: for an unknown layout, or more rows than a source has.
        InputError: when a source is not readable, has no usable rows, or changed while it was read.
    """
    config, out = request.config, request.out
    if out is None and not request.dry_run:
        raise UsageError("mix requires --out.")
    layout = ""
    if out is not None:
        layout = choose_layout(out, request.to)
        for file in (out, rejected_file(out), report_file(out)):
            refuse_overwriting(file, *(section.path for section in config.sources))
    with _rejects(request) as write:
        survey = SourceSurvey(config.seed, write, watch, one_image=layout if layout in ONE_IMAGE_LAYOUTS else "")
        surveyed = {section.name: survey.read(section) for section in config.sources}
    if out is not None:
        for one in surveyed.values():
            refuse_overwriting(out, one.section.path, *map(str, one.source.files))
    root = _image_root(config, survey)
    sources = {name: one.identities for name, one in surveyed.items()}
    distinct = find_distinct_rows(sources)
    requested, take = _shares(config, distinct)
    report = MixtureReport(config, out, root, tuple(surveyed.values()), distinct, requested, take)
    if out is None or request.dry_run:
        return report
    rows, mean = sum(take.values()), _mean_size(surveyed.values())
    with open_buckets(out, rows, int(rows * mean)) as store:
        place = assign_ranks(sources, distinct, take)
        for name, one in surveyed.items():
            report.taken[name] = _store_taken_rows(one, place[name], config.seed, store, watch)
        options = ExportOptions(config.seed, recoding=Recoding(config.image_format))
        written = write_mixture(
            lambda: _watched(map(decode_row, store.rows()), watch), layout, out, root or Path(os.sep), options
        )
    report.files = written.files
    write_bytes(report_file(out), report.as_bytes(out.absolute().parent))
    return report


@contextmanager
def _rejects(request: MixtureRequest) -> Iterator[Callable[[bytes], object] | None]:
    """Yield a function that writes rejected rows, if a source skips them; otherwise remove an earlier file."""
    if request.out is None or request.dry_run:
        yield None
        return
    path = rejected_file(request.out)
    if any(source.on_error == "skip" for source in request.config.sources):
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            yield handle.write
    else:
        path.unlink(missing_ok=True)
        yield None


def rejected_file(out: Path) -> Path:
    """Return the file of rejected rows of an output."""
    return out.with_name(f"{out.stem}.rejected.jsonl")


def _image_root(config: MixtureConfig, survey: SourceSurvey) -> Path | None:
    """Return the folder that image paths are relative to; None without images, or with URLs only."""
    common = survey.folder.folder
    if not config.image_root:
        return Path(common) if common else None
    root = os.path.normpath(config.image_root)
    if common and os.path.commonpath([root, common]) != root:
        raise UsageError(f"image_root {root}: some images are outside of it, in {common}. Set a common parent folder.")
    return Path(root)


def _shares(config: MixtureConfig, distinct: Mapping[str, DistinctRows]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the rows requested of each source, and those taken after ``keep``."""
    wanted = [SourceShare(source.name, source.count, source.ratio) for source in config.sources]
    available = {name: len(one.places) for name, one in distinct.items()}
    requested = allocate_rows(wanted, available, rows=config.rows)
    return requested, allocate_rows(wanted, available, rows=config.rows, keep=config.keep)


def _mean_size(surveyed: Iterable[SourceSummary]) -> float:
    rows, size = 0, 0
    for one in surveyed:
        rows, size = rows + len(one.identities), size + one.size
    return size / max(1, rows)


def _store_taken_rows(one: SourceSummary, place: RankArray, seed: int, store: RankBuckets, watch: Watch) -> TakenRows:
    """Write the taken rows of a source into the buckets, and count them."""
    taken = TakenRows()
    order, count = one.identities.order, 0
    for _, judged in one.source.conversations():
        if not isinstance(judged, Conversation):
            continue
        if count >= len(place):
            raise _changed(one)
        if place[count] >= 0:
            if draw_sampling_keys(judged, seed)[1] != order[count]:
                raise _changed(one)
            taken.count(judged)
            store.put(int(place[count]), encode_row(MixtureRow(mixture_row_id(one.name, judged), one.name, judged)))
            if taken.rows % EVERY == 0:
                watch(f"taking from {one.name}", taken.rows)
        count += 1
    if count != len(place):
        raise _changed(one)
    return taken


def _changed(one: SourceSummary) -> InputError:
    return InputError(
        "the source changed while it was read",
        where=one.section.path,
        fix="Start again when no other program writes to it.",
    )


def _watched(rows: Iterator[MixtureRow], watch: Watch) -> Iterator[MixtureRow]:
    for number, row in enumerate(rows, 1):
        if number % EVERY == 0:
            watch("writing", number)
        yield row
