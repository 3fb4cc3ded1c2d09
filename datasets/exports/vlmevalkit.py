"""VLMEvalKit export: a TSV of two-choice questions, with images in base64.

Named ``NAME.tsv`` in the folder ``$LMUData`` it is the data set ``NAME`` of ``run.py --data NAME``. Columns: ``index``,
``image``, ``question``, ``A``, ``B``, ``answer``, ``category`` and ``pair`` (the same in both orders). An image is written
once: the other rows of its sample have the index of the first one in its place, which VLMEvalKit looks up.

Source: VLMEvalKit, Development.md; ``ImageBaseDataset`` and ``CustomMCQDataset``.
"""

import base64
import csv
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.exports.two_choice import QUESTION, ChoiceSource
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, list_images
from pairwright.datasets.shards.sample_source import SampleSource

COLUMNS = ("index", "image", "question", "A", "B", "answer", "category", "pair")


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the questions of ``source`` to the TSV ``out``; details: ``without_negatives`` (pairs)."""
    choices, written = ChoiceSource(source), 0
    with replace_atomically(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
        table = csv.writer(handle, delimiter="\t", lineterminator="\n")
        table.writerow(COLUMNS)
        for row in _rows(choices, options):
            table.writerow(row)
            written += 1
    details = {"without_negatives": choices.without}
    return ExportResult(written, (out,), details)


def _rows(choices: ChoiceSource, options: ExportOptions) -> Iterator[tuple[str, ...]]:
    numbers = count()
    for sample, found in choices.each():
        with options.skip_unusable_images():
            (_, data), *_ = list_images(sample, options.recoding)
            image, first = base64.b64encode(data).decode(), ""
            for each in found:
                index = str(next(numbers))
                yield index, first or image, QUESTION, *each.options, each.answer, each.category, each.pair
                first = first or index
