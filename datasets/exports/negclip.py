"""NegCLIP table: an image, its caption and its hard negatives a row, tab- or comma-separated by the file's ending.

Columns: ``filepath``, ``title``, ``neg_caption`` (a Python list literal of texts), ``neg_image`` (a list literal of row
numbers, from 0, of other images). NegCLIP's loader draws one of each for every step, so rows without a negative are
left out, counted as ``without_negatives``, and ``neg_image`` is never empty. The other image is drawn at random over the rows, not by likeness: the
loader's own negatives by feature distance can be put in its place. Text-only pairs name their source id as
``filepath``. Holds the rows in memory.
"""

from pathlib import Path

from pairwright.datasets.atomic import replacing
from pairwright.datasets.chance import stream
from pairwright.datasets.exports.source import Source
from pairwright.datasets.exports.writing import Exported, ExportOptions, ImageNames, negatives

VERSION = 1
COLUMNS = ("filepath", "title", "neg_caption", "neg_image")
_TRIES = 16


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write the hard negatives of ``source`` to the table ``out`` (``.tsv``, or ``.csv`` with commas)."""
    names = ImageNames(options)
    rows: list[tuple[str, str, str, list[str]]] = []
    without = 0
    for sample in source.samples():
        texts = [annotation.text for annotation in negatives(sample)]
        without += not texts
        if texts:
            file = names.name(sample) or sample.pair.source_id
            rows.append((sample.pair.key, file, sample.pair.caption, texts))
    files = [row[1] for row in rows]
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as handle:
        delimiter = "," if out.suffix == ".csv" else "\t"
        handle.write(_line(COLUMNS, delimiter))
        for number, (key, file, caption, texts) in enumerate(rows):
            other = _other(number, key, files, options.seed)
            handle.write(_line((file, caption, repr(texts), repr([other])), delimiter))
    return Exported(len(rows), (out,), told={"without_negatives": without})


def _line(fields: tuple[str, ...], delimiter: str) -> str:
    # Python's csv leaves a lone carriage return unquoted, and every reader then ends the row there.
    quoted = [f'"{f.replace(chr(34), chr(34) * 2)}"' if set(f) & {delimiter, '"', "\r", "\n"} else f for f in fields]
    return delimiter.join(quoted) + "\n"


def _other(number: int, key: str, files: list[str], seed: int) -> int:
    rng = stream(seed, 0, "negclip", VERSION, key)
    for _ in range(_TRIES):
        drawn = rng.randrange(len(files))
        if files[drawn] != files[number]:
            return drawn
    # Text-only tables, and tables of one image, have no other image: any other row serves, or the row itself.
    return (number + 1) % len(files)
