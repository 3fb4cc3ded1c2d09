"""Layouts of files of candidate rows: how each is recognised, read, written and scored.

A layout is one `Layout` in the table below, or an entry point of the group ``pairwright.layouts``. The first layout
whose ``sniff`` accepts a file reads it; a file that none accepts is read as its ending says.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

import polars as pl

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.plugins import PluginRegistry, call_plugin, iterate_plugin
from pairwright.filters.candidates import benchmark_readers, benchmark_writers, own_layouts, preferences
from pairwright.filters.candidates.invalid_rows import InvalidRow
from pairwright.filters.candidates.source_rows import (
    NEGATIVE_COLUMNS,
    SUFFIXES,
    LocatedReading,
    LocatedRow,
    Source,
    SourceRow,
)

ACCURACY: Final = ("accuracy",)
TRIPLES: Final = ("accuracy", "original", "augmented", "brittleness")
ALL_SCORES: Final = (*TRIPLES, "choice", "pair", "set", "text", "image", "group", "class mean")


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of candidate rows.

    Attributes:
        name: value of ``--format``.
        about: description for ``pairwright plugins``.
        read: yields (place, row) or (place, error) of a file; fields as of `rows.py`, and ``question`` of
            `benchmark_readers.py`.
        sniff: whether a file has this layout, by its container and the fields of its first row.
        suffix: file name ending that `write` writes.
        write: writes a frame of kept rows; None: read only.
        scores: measures that are reported, of `ALL_SCORES` and those of the evaluation.
        stores_only_kept: whether files contain kept rows only; other layouts have a status.
        joins_rows: whether one row of a file is several candidate rows: it is written if all of them are kept.
    """

    name: str
    about: str
    read: Callable[[Source], Iterator[LocatedReading]]
    sniff: Callable[[Source], bool] = lambda _: False
    suffix: str = ""
    write: Callable[[pl.DataFrame, Path], None] | None = None
    scores: tuple[str, ...] = ALL_SCORES
    stores_only_kept: bool = True
    joins_rows: bool = False


def each_row(convert: Callable[[SourceRow], Iterable[LocatedRow]]) -> Callable[[Source], Iterator[LocatedReading]]:
    """Return a reader that makes candidate rows of each row of a file, and rejects repeated and equal ones.

    Args:
        convert: returns the candidate rows of a row; may raise `InvalidRow`.
    """

    def read(source: Source) -> Iterator[LocatedReading]:
        for row in source.rows():
            if isinstance(row, InvalidRow):
                yield row.where, row
                continue
            try:
                found = list(convert(row))
            except InvalidRow as flaw:
                yield row.place, flaw
            else:
                yield from found

    return lambda source: benchmark_readers.screen(read(source))


def _has(*fields: str, container: str = "") -> Callable[[Source], bool]:
    """Return a test for the fields of the first row, and for the container unless empty."""
    return lambda source: source.fields.issuperset(fields) and container in {"", source.container}


def _is_two_by_two(source: Source) -> bool:
    return benchmark_readers.two_by_two_names(source.fields) is not None


def _is_negbench(source: Source) -> bool:
    return {"caption_0", "caption_1", "correct_answer"} <= source.fields


def _is_triple_list(source: Source) -> bool:
    first = source.first
    return source.container == "list" and isinstance(first, list) and all(isinstance(text, str) for text in first[1:])


def _is_preference(source: Source) -> bool:
    return isinstance(source.first, Mapping) and preferences.has_preference(source.first)


def _is_text_table(source: Source) -> bool:
    texts = "caption" in source.fields and not source.fields.isdisjoint(NEGATIVE_COLUMNS)
    return texts and source.suffix in {".csv", ".tsv"}


_BUILT_IN = (
    Layout(
        "sugarcrepe++",
        "SugarCrepe++: two captions and a negative",
        each_row(benchmark_readers.sugarcrepe_plus_plus),
        _has("caption2", "negative_caption"),
        ".json",
        benchmark_writers.write_plus_plus,
        ("accuracy", "augmented", "brittleness", "text-only"),
    ),
    Layout(
        "valse",
        "VALSE: captions and foils, with annotators' votes",
        each_row(benchmark_readers.valse),
        lambda source: source.container == "object" and bool({"foil", "foils"} & source.fields),
        ".json",
        benchmark_writers.write_valse,
        ACCURACY,
    ),
    Layout(
        "aro",
        "ARO: VG-Relation and VG-Attribution",
        each_row(benchmark_readers.aro),
        _has("true_caption", "false_caption"),
        ".json",
        benchmark_writers.write_aro,
        ("accuracy", "class mean"),
    ),
    Layout(
        "whatsup",
        "What'sUp: four positions of two objects",
        each_row(benchmark_readers.whatsup),
        _has("caption_options"),
        ".json",
        benchmark_writers.write_whatsup,
        ("choice", "pair", "set", "class mean"),
        joins_rows=True,
    ),
    Layout(
        "whatsup-qa",
        "What'sUp: COCO-QA and VG-QA",
        each_row(benchmark_readers.whatsup_qa),
        _is_triple_list,
        ".json",
        benchmark_writers.write_whatsup_qa,
        ACCURACY,
    ),
    Layout(
        "vl-checklist",
        "VL-CheckList: images with captions and negatives",
        each_row(benchmark_readers.vl_checklist),
        lambda source: benchmark_readers.is_vl_checklist(source.first),
        scores=ACCURACY,
    ),
    Layout(
        "negbench",
        "NegBench: multiple choice",
        each_row(benchmark_readers.negbench),
        _is_negbench,
        ".csv",
        benchmark_writers.write_negbench,
        ("choice",),
        joins_rows=True,
    ),
    Layout(
        "mmvp",
        "MMVP-VLM: Questions.csv, two lines a group",
        lambda source: benchmark_readers.screen(benchmark_readers.mmvp(source)),
        _has("Question ID", "Statement"),
        ".csv",
        benchmark_writers.write_mmvp,
        ("text", "image", "group"),
        joins_rows=True,
    ),
    Layout(
        "winoground",
        "Winoground, ColorSwap, BiVLC: two images and two captions",
        each_row(benchmark_readers.two_by_two),
        _is_two_by_two,
        ".json",
        benchmark_writers.write_two_by_two,
        ("text", "image", "group"),
        joins_rows=True,
    ),
    Layout(
        "sugarcrepe",
        "SugarCrepe: captions with negatives, an object",
        own_layouts.read_sugarcrepe,
        _has("negative_caption", container="object"),
        ".json",
        own_layouts.write_sugarcrepe,
        TRIPLES,
    ),
    Layout(
        "negclip",
        "NegCLIP: a table with lists of negatives",
        own_layouts.read_negclip,
        _has("title", "neg_caption", container="table"),
        ".tsv",
        own_layouts.write_negclip,
        TRIPLES,
    ),
    Layout(
        "preferences",
        "preferences: chosen and rejected answers, as of RLAIF-V, RLHF-V, VLFeedback, TRL, LLaMA-Factory and ms-swift",
        each_row(preferences.read_preferences),
        _is_preference,
        ".jsonl",
        preferences.write_preferences,
        ACCURACY,
    ),
    Layout(
        "jsonl",
        "pairwright's rows: one JSON object a line, or the lines of a CSV or TSV",
        own_layouts.read_rows,
        _is_text_table,
        suffix=".jsonl",
        write=own_layouts.write_jsonl,
        stores_only_kept=False,
    ),
    Layout(
        "parquet",
        "pairwright's rows in a table",
        own_layouts.read_parquet,
        suffix=".parquet",
        write=own_layouts.write_parquet,
        stores_only_kept=False,
    ),
)
LAYOUTS = PluginRegistry(
    "layout",
    ("pairwright.layouts",),
    {one.name: one for one in _BUILT_IN},
    attrgetter("about"),
    Layout,
    lambda layout, label: replace(
        layout,
        read=partial(iterate_plugin, layout.read, tuple, label),
        sniff=partial(call_plugin, layout.sniff, label),
    ),
)
_GENERAL: Final = frozenset({"jsonl", "parquet"})  # layouts of any table of rows
PREFERENCES: Final = LAYOUTS.built_in["preferences"]
BENCHMARK_FILES: Final = own_layouts.SUGARCREPE_FILES | benchmark_readers.VALSE_FILES
_BY_SUFFIX: Final = {
    ".json": "sugarcrepe",
    ".jsonl": "jsonl",
    ".tsv": "negclip",
    ".csv": "negclip",
    ".parquet": "parquet",
}
WRITTEN: Final = {".jsonl": "jsonl", ".json": "sugarcrepe", ".tsv": "negclip", ".parquet": "parquet"}


def find_layout(source: Source, name: str = "") -> Layout:
    """Return the layout of a file.

    Args:
        source: the file.
        name: of the layout; empty to detect it.

    Raises:
        UsageError: no such layout, or an ending that no layout has.
    """
    if source.path.is_dir():
        what = "candidate rows are in files, or in a folder of a benchmark's files such as swap_att.json"
        fix = (
            f"Write those of a build or of shards first: `pairwright export {source.path} --to sugarcrepe --out rows`."
        )
        raise UsageError(f"{source.path}: {what}. {fix}")
    if source.suffix not in SUFFIXES:
        raise UsageError(f"{source.path}: candidate rows are in {', '.join(SUFFIXES)} files. Rename or convert it.")
    if name:
        return LAYOUTS.get(name)
    for layout in _all_layouts():
        try:
            if layout.sniff(source):
                return layout
        except InputError:  # the reader reports it
            break
    return LAYOUTS.built_in[_BY_SUFFIX[source.suffix]]


def describe_negatives(path: Path) -> str:
    """Return what a file of captions with negatives is; empty for another file."""
    source = Source(path)
    if source.suffix not in SUFFIXES:
        return ""
    try:
        found = next((one for one in LAYOUTS.built_in.values() if one is not PREFERENCES and one.sniff(source)), None)
        if found is None and source.fields.isdisjoint(NEGATIVE_COLUMNS):
            return ""
    except InputError:  # reported by the reader
        return ""
    return found.about if found and found.name not in _GENERAL else "captions with negatives"


def _all_layouts() -> Iterator[Layout]:
    yield from LAYOUTS.built_in.values()
    for point in LAYOUTS.entry_points():
        yield LAYOUTS.get(point.name)


def layout_to_write(path: Path, like: Layout | None = None) -> Layout:
    """Return the layout of a file to write: that of the input if it has the ending, else that of the ending.

    Raises:
        UsageError: no layout has the ending.
    """
    suffix = path.suffix.lower()
    if like is not None and like.write is not None and like.suffix == suffix:
        return like
    if suffix in WRITTEN:
        return LAYOUTS.built_in[WRITTEN[suffix]]
    if suffix in {layout.suffix for layout in LAYOUTS.built_in.values() if layout.write is not None}:
        what = f"rows of the layout {like.name}" if like is not None else "rows made from captions"
        raise UsageError(f"{path}: {what} are not written as {suffix}. Use one of {', '.join(WRITTEN)}.")
    raise UsageError(f"{path}: candidate rows are in {', '.join(WRITTEN)} files. Rename or convert it.")
