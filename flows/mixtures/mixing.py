"""Mixtures: sources of conversations, sampled and shuffled into one instruction set (LLaVA-1.5's data mixture).

Two readings. The first makes numbers of all rows (`mixture_survey`); over these it is decided which are taken and in
which order (`datasets.mixture_choice`, `mixture_shares`). The second carries the taken ones to their places, by way of
drawers on disk (`mixture_order`). So memory is a few numbers a row, whatever the rows hold. The same config, seed and
sources give the same bytes.
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
    """What to mix.

    Attributes:
        config: sources and shares.
        out: file or folder; its ending names the layout. None is for a dry run.
        to: layout, where the ending leaves a choice; empty for the ending's first.
        dry_run: only tell what would be taken.
    """

    config: MixtureConfig
    out: Path | None
    to: str = ""
    dry_run: bool = False


def mix(request: MixtureRequest, watch: Watch) -> MixtureReport:
    """Mix, and write OUT with its report and its rejected rows beside it.

    Raises:
        UsageError: for an output of no known kind, or more rows asked of a source than it has.
        InputError: for sources that cannot be read, hold nothing, or changed while they were read.
    """
    config, out = request.config, request.out
    if out is None and not request.dry_run:
        raise UsageError("a mixture needs a file or folder to write. Give it with --out.")
    layout = ""
    if out is not None:
        layout = choose_layout(out, request.to)
        for file in (out, rejected_file(out), report_file(out)):
            refuse_overwriting(file, *(section.path for section in config.sources))
    with _rejects(request) as write:
        survey = SourceSurvey(config.seed, write, watch)
        surveyed = {section.name: survey.read(section) for section in config.sources}
    if out is not None:
        for one in surveyed.values():
            refuse_overwriting(out, one.section.path, *map(str, one.source.files))
    root = _image_root(config, survey)
    sources = {name: one.identities for name, one in surveyed.items()}
    distinct = find_distinct_rows(sources)
    asked, take = _shares(config, distinct)
    report = MixtureReport(config, out, root, tuple(surveyed.values()), distinct, asked, take)
    if out is None or request.dry_run:
        return report
    rows, mean = sum(take.values()), _mean_size(surveyed.values())
    with open_buckets(out, rows, int(rows * mean)) as store:
        place = assign_ranks(sources, distinct, take)
        for name, one in surveyed.items():
            report.given[name] = _store_taken_rows(one, place[name], config.seed, store, watch)
        options = ExportOptions(config.seed, recoding=Recoding(config.image_format))
        written = write_mixture(
            lambda: _watched(map(decode_row, store.rows()), watch), layout, out, root or Path(os.sep), options
        )
    report.files = written.files
    write_bytes(report_file(out), report.as_bytes(out.absolute().parent))
    return report


@contextmanager
def _rejects(request: MixtureRequest) -> Iterator[Callable[[bytes], object] | None]:
    """Give what writes broken rows, where a source sets them aside; a file of an earlier run goes."""
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
    """Return where the broken rows of OUT's sources stand, when some source sets them aside."""
    return out.with_name(f"{out.stem}.rejected.jsonl")


def _image_root(config: MixtureConfig, survey: SourceSurvey) -> Path | None:
    """Return the folder below which the output names images; None when there are no images, or URLs only."""
    common = survey.folder.folder
    if not config.image_root:
        return Path(common) if common else None
    root = os.path.normpath(config.image_root)
    if common and os.path.commonpath([root, common]) != root:
        raise UsageError(f"image_root {root}: images lie outside it, in {common}. Name a folder above all of them.")
    return Path(root)


def _shares(config: MixtureConfig, distinct: Mapping[str, DistinctRows]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the rows asked of each source, and those taken after ``keep``."""
    wanted = [SourceShare(source.name, source.count, source.ratio) for source in config.sources]
    there = {name: len(one.places) for name, one in distinct.items()}
    asked = allocate_rows(wanted, there, rows=config.rows)
    return asked, allocate_rows(wanted, there, rows=config.rows, keep=config.keep)


def _mean_size(surveyed: Iterable[SourceSummary]) -> float:
    rows, size = 0, 0
    for one in surveyed:
        rows, size = rows + len(one.identities), size + one.size
    return size / max(1, rows)


def _store_taken_rows(one: SourceSummary, place: RankArray, seed: int, store: RankBuckets, watch: Watch) -> TakenRows:
    """Put the taken rows of a source into the drawers, and count what they hold."""
    given = TakenRows()
    order, count = one.identities.order, 0
    for _, judged in one.source.conversations():
        if not isinstance(judged, Conversation):
            continue
        if count >= len(place):
            raise _changed(one)
        if place[count] >= 0:
            if draw_sampling_keys(judged, seed)[1] != order[count]:
                raise _changed(one)
            given.count(judged)
            store.put(int(place[count]), encode_row(MixtureRow(mixture_row_id(one.name, judged), one.name, judged)))
            if given.rows % EVERY == 0:
                watch(f"taking from {one.name}", given.rows)
        count += 1
    if count != len(place):
        raise _changed(one)
    return given


def _changed(one: SourceSummary) -> InputError:
    return InputError(
        "the source changed while it was read", where=one.section.path, fix="Start again when nothing writes to it."
    )


def _watched(rows: Iterator[MixtureRow], watch: Watch) -> Iterator[MixtureRow]:
    for number, row in enumerate(rows, 1):
        if number % EVERY == 0:
            watch("writing", number)
        yield row
