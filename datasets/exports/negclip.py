"""NegCLIP table export: an image, its caption and its hard negatives per row, tab- or comma-separated by file ending.

Columns: ``filepath``, ``title``, ``neg_caption`` (a Python list literal of texts), ``neg_image`` (a list literal of row
numbers, from 0, of other images). NegCLIP's loader draws one of each in every step, so rows without a negative are omitted
and counted as ``without_negatives``, and ``neg_image`` is never empty. The other image is drawn uniformly from the rows; it
can be replaced by NegCLIP's nearest images in feature space. Text-only pairs use their source id as ``filepath``. Rows are
held in memory.
"""

from pathlib import Path

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ImageNames, list_negatives
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.sample_source import SampleSource

VERSION = 1
COLUMNS = ("filepath", "title", "neg_caption", "neg_image")
_MAX_TRIES = 16


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the hard negatives of ``source`` to the table ``out`` (``.tsv``, or ``.csv`` with commas)."""
    names = ImageNames(options)
    rows: list[tuple[str, str, str, list[str]]] = []
    without = 0
    for sample in source.samples():
        texts = [annotation.text for annotation in list_negatives(sample)]
        without += not texts
        if texts:
            file = names.file_name(sample)
            rows.append((sample.pair.key, file, sample.pair.caption, texts))
    files = [row[1] for row in rows]
    with replace_atomically(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
        delimiter = "," if out.suffix == ".csv" else "\t"
        handle.write(_line(COLUMNS, delimiter))
        for number, (key, file, caption, texts) in enumerate(rows):
            other = _draw_other_row(number, key, files, options.seed)
            handle.write(_line((file, caption, repr(texts), repr([other])), delimiter))
    return ExportResult(len(rows), (out,), details={"without_negatives": without, **names.details()})


def _line(fields: tuple[str, ...], delimiter: str) -> str:
    # Python's csv does not quote a lone carriage return, where readers then end the row.
    quoted = [f'"{f.replace(chr(34), chr(34) * 2)}"' if set(f) & {delimiter, '"', "\r", "\n"} else f for f in fields]
    return delimiter.join(quoted) + "\n"


def _draw_other_row(number: int, key: str, files: list[str], seed: int) -> int:
    rng = make_rng(seed, 0, "negclip", VERSION, key)
    for _ in range(_MAX_TRIES):
        drawn = rng.randrange(len(files))
        if files[drawn] != files[number]:
            return drawn
    # Text-only tables, and tables of one image, have no other image: use any other row, or the row itself.
    return (number + 1) % len(files)
