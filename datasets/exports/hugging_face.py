"""Hugging Face Hub export: a folder with ``README.md`` (the card with its metadata) and ``data/`` with the shards.

``datasets.load_dataset(folder)`` opens it: the metadata has the paths of the shards and the type of each member, so
nothing is inferred from the first samples.
"""

from pathlib import Path

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.exports.webdataset import list_shard_files, write_shard_folder
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.reports.dataset_card import render_card
from pairwright.datasets.shards.content_counts import count_contents
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.webdataset import summarize_shards


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write card and shards of ``source`` into the folder ``out``."""
    shards = write_shard_folder(source, out / "data", options)
    manifest = {
        "name": out.name,
        **source.manifest,
        "contents": count_contents(source.samples()),
        "shards": summarize_shards(shards) | {"folder": "data"},
    }
    readme = out / "README.md"
    write_text(readme, render_card(manifest))
    return ExportResult(shards.count, (readme, *list_shard_files(shards)))
