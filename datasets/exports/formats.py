"""Registry of export formats, and the function that runs one.

A format is a module with ``write(source, out, options) -> ExportResult`` and one entry in the table below.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from pairwright.datasets.errors import PluginError, StorageError, UsageError, describe_write_error
from pairwright.datasets.exports import (
    croissant,
    hugging_face,
    llava,
    lmms_eval,
    negbench,
    negclip,
    openai_chat,
    parquet,
    rationales,
    sugarcrepe,
    trainer_folders,
    triplets,
    trl,
    vlmevalkit,
    webdataset,
)
from pairwright.datasets.exports.omitted_texts import (
    ALL_TEXTS,
    COMPARED,
    CONVERSATIONS,
    NEGATIVES,
    RATIONALES,
    SHUFFLED,
    OmittedTexts,
)
from pairwright.datasets.exports.writing import ExportFormat, ExportOptions, ExportResult
from pairwright.datasets.plugins import PluginRegistry, call_plugin
from pairwright.datasets.progress import track
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.shards.sample_source import (
    SampleSource,
    omit_several_images,
    open_sample_source,
    source_from_records,
)

_CHOICES: Final = frozenset({NEGATIVES, COMPARED})
_PREFERENCES: Final = _CHOICES | {CONVERSATIONS}

_BUILT_IN = (
    ExportFormat(
        "llava",
        "conversations in the layout of LLaVA's trainer",
        llava.write,
        (".json",),
        texts=frozenset({CONVERSATIONS}),
        several_images=True,
        names_images=True,
    ),
    ExportFormat(
        "sugarcrepe",
        "captions and hard negatives, in one file or one per type",
        sugarcrepe.write,
        (".json", ""),
        texts=_CHOICES,
        names_images=True,
    ),
    ExportFormat(
        "negclip",
        "image, caption and hard negatives in the layout of NegCLIP",
        negclip.write,
        (".tsv", ".csv"),
        texts=frozenset({NEGATIVES, SHUFFLED}),
        names_images=True,
    ),
    ExportFormat(
        "negbench-retrieval",
        "image and captions in NegBench's layout of retrieval",
        negbench.write_retrieval,
        (".csv",),
        names_images=True,
    ),
    ExportFormat(
        "openai",
        "conversations as chat messages with embedded images",
        openai_chat.write,
        (".jsonl",),
        writes_images=True,
        texts=frozenset({CONVERSATIONS}),
        several_images=True,
    ),
    ExportFormat(
        "trl",
        "conversations with embedded images for TRL's SFTTrainer",
        trl.write,
        ("",),
        writes_shards=True,
        writes_images=True,
        texts=frozenset({CONVERSATIONS}),
        several_images=True,
    ),
    ExportFormat(
        "trl-dpo",
        "chosen and rejected answers with embedded images for TRL's DPOTrainer",
        trl.write_preferences,
        ("",),
        texts=_PREFERENCES,
        writes_shards=True,
        writes_images=True,
    ),
    ExportFormat(
        "llamafactory",
        "conversations and preferences with dataset_info.json for LLaMA-Factory",
        trainer_folders.write_llamafactory,
        ("",),
        writes_images=True,
        texts=_PREFERENCES,
        several_images=True,
    ),
    ExportFormat(
        "ms-swift",
        "conversations and preferences for ms-swift",
        trainer_folders.write_ms_swift,
        ("",),
        writes_images=True,
        texts=_PREFERENCES,
        several_images=True,
    ),
    ExportFormat(
        "lmms-eval",
        "a task folder for lmms-eval: two-choice questions",
        lmms_eval.write,
        ("",),
        texts=_CHOICES,
        writes_shards=True,
        writes_images=True,
    ),
    ExportFormat(
        "vlmevalkit",
        "two-choice questions with base64 images",
        vlmevalkit.write,
        (".tsv",),
        texts=_CHOICES,
        writes_images=True,
    ),
    ExportFormat(
        "triplets",
        "image, instruction, output",
        triplets.write,
        (".jsonl",),
        texts=frozenset({CONVERSATIONS}),
        names_images=True,
    ),
    ExportFormat(
        "rationales",
        "tasks with rationales for training a student",
        rationales.write,
        (".jsonl", ""),
        texts=frozenset({RATIONALES}),
        takes_examples=True,
    ),
    ExportFormat("parquet", "one row per pair, texts in nested columns", parquet.write, (".parquet",), texts=ALL_TEXTS),
    ExportFormat(
        "hf",
        "a folder for the Hugging Face Hub: card and shards",
        hugging_face.write,
        ("",),
        writes_shards=True,
        writes_images=True,
        texts=ALL_TEXTS,
    ),
    ExportFormat(
        "hf-parquet",
        "a folder for the Hugging Face Hub: card and Parquet files with embedded images",
        hugging_face.write_parquet,
        ("",),
        writes_shards=True,
        writes_images=True,
        texts=ALL_TEXTS,
    ),
    ExportFormat(
        "croissant",
        "shards and their Croissant metadata (MLCommons)",
        croissant.write,
        ("",),
        writes_shards=True,
        writes_images=True,
        texts=ALL_TEXTS,
    ),
    ExportFormat(
        "webdataset",
        "shards, sizes.json and checksums",
        webdataset.write,
        ("",),
        writes_shards=True,
        writes_images=True,
        texts=ALL_TEXTS,
        several_images=True,
    ),
)


def _write_third_party(
    write: Callable[..., ExportResult], label: str, source: SampleSource, out: Path, options: ExportOptions
) -> ExportResult:
    result = call_plugin(write, label, source, out, options)
    if not isinstance(result, ExportResult):
        raise PluginError(f"{label} returned {type(result).__name__}, not an ExportResult.")
    return result


EXPORTS = PluginRegistry(
    "export",
    ("pairwright.exports",),
    {one.name: one for one in _BUILT_IN},
    attrgetter("about"),
    ExportFormat,
    lambda format_, label: replace(format_, write=partial(_write_third_party, format_.write, label)),
)

DEFAULT_OPTIONS = ExportOptions()


def export(source: SampleSource | Path, to: str, out: Path, options: ExportOptions = DEFAULT_OPTIONS) -> ExportResult:
    """Write ``source`` in the format ``to``.

    Texts that the format has no place for are counted in ``omitted``; samples of several images, if rows of the format have
    one, in the detail ``several_images``.

    Args:
        source: a source, or the path of a build directory or of shards.
        to: name of the format.
        out: a file with an ending of the format, or a folder.
        options: export options.

    Raises:
        UsageError: an unknown format, or a file ending that the format does not have.
        InputError: data that the format cannot hold; missing images.
        StorageError: if the output cannot be written, or a shard or part is damaged.
    """
    format_ = EXPORTS.get(to)
    _check_ending(out, to, format_.suffixes)
    opened = _track_passes(open_sample_source(source) if isinstance(source, Path) else source)
    if opened.examples and not format_.takes_examples:
        raise UsageError(f"{source}: examples of text tasks can be exported to rationales, not to {to}.")
    rejected = set[str]()
    if not format_.several_images:
        opened = omit_several_images(opened, rejected)
    omitted = OmittedTexts(format_.texts)
    try:
        written = format_.write(omitted.watch(opened), out, options)
    except OSError as error:  # reading raises errors of its own, so this one comes from writing
        raise StorageError(f"{out}: cannot be written ({describe_write_error(error)}). Choose another path.") from None
    details = {**written.details, "several_images": len(rejected)} if rejected else written.details
    return replace(written, details=details, omitted=omitted.by_kind())


def formats_with(kind: str) -> list[str]:
    """Return the names of the built-in formats that write all texts of a kind."""
    return [name for name, each in EXPORTS.built_in.items() if kind in each.texts]


def _check_ending(out: Path, to: str, suffixes: Sequence[str]) -> None:
    """Refuse a file ending that the format does not have; a folder may be named with dots, but not like a data file."""
    if out.suffix in suffixes:
        return
    endings = " or ".join(filter(None, suffixes))
    if "" not in suffixes:
        raise UsageError(f"{out}: {to} writes a file that ends in {endings}.")
    if out.suffix in {suffix for format_ in _BUILT_IN for suffix in format_.suffixes}:
        file = f", or a file that ends in {endings}" if endings else ""
        raise UsageError(f"{out}: {to} writes a folder{file}. Name it without {out.suffix}: {out.with_suffix('')}.")


def _track_passes(source: SampleSource) -> SampleSource:
    """Return the source with progress reports for each pass over its samples."""
    total = source.manifest.get("shards", {}).get("samples")
    return replace(source, samples=lambda: track(source.samples(), "exporting", total, "samples"))


def export_records(
    pairs: Sequence[Pair],
    annotations: Iterable[Annotation],
    to: str,
    out: Path,
    options: ExportOptions = DEFAULT_OPTIONS,
) -> ExportResult:
    """Write in-memory records in the format ``to``; see `export`."""
    return export(source_from_records(pairs, annotations), to, out, options)
