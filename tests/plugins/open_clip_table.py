"""Export for OpenCLIP's CSV loader: a table of ``filepath`` and ``title``."""

import csv
from pathlib import Path

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.exports.writing import ExportFormat, ExportOptions, ExportResult, ImageNames
from pairwright.datasets.shards.sample_source import SampleSource


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write one row per sample with an image."""
    names, rows = ImageNames(options), 0
    with replace_atomically(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle, delimiter="\t")
        table.writerow(["filepath", "title"])
        for sample in source.samples():
            if sample.pair.image:
                table.writerow([names.name(sample), sample.pair.caption])
                rows += 1
    return ExportResult(rows, (out,))


EXPORT = ExportFormat("open-clip", "filepath and title, for OpenCLIP's CSV loader", write, suffixes=(".tsv",))
