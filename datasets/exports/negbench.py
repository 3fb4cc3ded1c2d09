"""NegBench retrieval export: the image and its captions per row, comma-separated.

Columns: ``filepath``, ``captions`` (a Python list literal of texts: the caption, then the other ones of the image). Images
of several pairs have a row for each. Pairs without an image are omitted and counted as ``without_image``.
"""

import csv
from pathlib import Path
from typing import Final

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ImageNames
from pairwright.datasets.shards.sample_source import SampleSource

COLUMNS: Final = ("filepath", "captions")


def write_retrieval(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the captions of ``source`` to the table ``out`` (``.csv``)."""
    names = ImageNames(options)
    rows = without = 0
    with replace_atomically(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
        table = csv.writer(handle, lineterminator="\r\n")
        table.writerow(COLUMNS)
        for sample in source.samples():
            file = names.name(sample)
            without += not file
            if file:
                captions = dict.fromkeys([sample.pair.caption, *sample.pair.captions])
                table.writerow([file, repr(list(captions))])
                rows += 1
    return ExportResult(rows, (out,), details={"without_image": without, **names.details()})
