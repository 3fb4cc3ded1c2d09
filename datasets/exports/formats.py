"""Every export format that there is, in one table, and the one function that runs them.

A format is a small module with ``write(source, out, options) -> Exported``; its line here is all the wiring it needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pairwright.datasets.errors import StorageError, UsageError, describe_write_error
from pairwright.datasets.exports import (
    croissant,
    hugging_face,
    llava,
    negclip,
    openai_chat,
    parquet,
    rationales,
    sugarcrepe,
    triplets,
    webdataset,
)
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ExportWriter
from pairwright.datasets.progress import track
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.shards.sample_source import SampleSource, open_sample_source, source_from_records
from pairwright.datasets.suggestions import require_known


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One line of the table.

    Attributes:
        write: what writes it.
        endings: of the output; empty means a folder.
        summary: in a few words.
    """

    write: ExportWriter
    endings: tuple[str, ...]
    summary: str


EXPORT_FORMATS: dict[str, ExportFormat] = {
    "llava": ExportFormat(llava.write, (".json",), "conversations as LLaVA's trainer reads them"),
    "sugarcrepe": ExportFormat(sugarcrepe.write, (".json", ""), "captions and hard negatives, one file or one a type"),
    "negclip": ExportFormat(negclip.write, (".tsv", ".csv"), "image, caption, hard negatives as NegCLIP reads them"),
    "openai": ExportFormat(openai_chat.write, (".jsonl",), "conversations as chat messages, images inside"),
    "triplets": ExportFormat(triplets.write, (".jsonl",), "image, instruction, output"),
    "rationales": ExportFormat(rationales.write, (".jsonl", ""), "tasks with rationales, as a student trains on them"),
    "parquet": ExportFormat(parquet.write, (".parquet",), "one row a pair, texts in nested columns"),
    "hf": ExportFormat(hugging_face.write, ("",), "a folder for the Hugging Face Hub: card and shards"),
    "croissant": ExportFormat(croissant.write, ("",), "shards and their description for machines (MLCommons)"),
    "webdataset": ExportFormat(webdataset.write, ("",), "shards, sizes.json and check sums"),
}

DEFAULT_OPTIONS = ExportOptions()


def export(source: SampleSource | Path, to: str, out: Path, options: ExportOptions = DEFAULT_OPTIONS) -> ExportResult:
    """Write ``source`` in the format ``to``.

    Args:
        source: a `Source`, or the path of a build directory or of shards.
        to: a name in `FORMATS`.
        out: a file with an ending of the format, or a folder.
        options: see there.

    Raises:
        UsageError: an unknown format, or an ending that it does not have.
        InputError: data that the format cannot hold; missing images.
        StorageError: when the output cannot be written, or a shard or part that is read is torn.
    """
    require_known("no export format", [to], EXPORT_FORMATS)
    endings = EXPORT_FORMATS[to].endings
    if out.suffix not in endings and "" not in endings:
        raise UsageError(f"{out}: {to} is written to a file that ends in {' or '.join(endings)}.")
    opened = _track_passes(open_sample_source(source) if isinstance(source, Path) else source)
    if opened.examples and to != "rationales":
        raise UsageError(f"{source}: examples of text tasks; they are exported to rationales, not to {to}.")
    try:
        return EXPORT_FORMATS[to].write(opened, out, options)
    except OSError as error:  # what is read has its own errors, so this is about writing
        raise StorageError(f"{out}: cannot be written ({describe_write_error(error)}). Choose another place.") from None


def _track_passes(source: SampleSource) -> SampleSource:
    """Return the source with passes that report how many samples were read."""
    total = source.manifest.get("shards", {}).get("samples")
    return replace(source, samples=lambda: track(source.samples(), "exporting", total, "samples"))


def export_records(
    pairs: Sequence[Pair],
    annotations: Iterable[Annotation],
    to: str,
    out: Path,
    options: ExportOptions = DEFAULT_OPTIONS,
) -> ExportResult:
    """Write records in memory in the format ``to``; see `export`."""
    return export(source_from_records(pairs, annotations), to, out, options)
