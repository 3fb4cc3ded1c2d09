"""Hugging Face Hub exports: a folder with ``README.md`` (the card with its metadata) and ``data/``.

``hf`` writes the shards, ``hf-parquet`` Parquet files with the same texts and embedded images, which the Hub's viewer shows.
``datasets.load_dataset(folder)`` opens both: the metadata has the paths and the type of each member, so nothing is inferred
from the first samples.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.exports.embedded_tables import IMAGE, embed_images, write_table_folder
from pairwright.datasets.exports.webdataset import describe_export, list_shard_files, write_shard_folder
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.reports.dataset_card import render_card
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import encode_sample_json


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write card and shards of ``source`` into the folder ``out``."""
    shards = write_shard_folder(source, out / "data", options)
    readme = out / "README.md"
    write_text(readme, render_card(describe_export(source, shards, out.name)))
    return ExportResult(shards.count, (readme, *list_shard_files(shards)))


def write_parquet(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write card and Parquet files of ``source`` into the folder ``out``; a text-only pair has no image."""

    def rows() -> Iterator[dict[str, Any]]:
        for sample in source.samples_with_images():
            with options.skip_unusable_images():
                yield {"image": next(iter(embed_images(sample, options)), None), **encode_sample_json(sample)}

    return write_table_folder(rows(), {"image": IMAGE, **SAMPLE_SCHEMA}, source, out, options)
