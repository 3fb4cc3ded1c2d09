"""Parquet files with embedded images, as the Hugging Face Hub stores datasets: ``data/train-00000.parquet`` and so on.

An image is a struct of ``bytes`` and ``path`` (a file name). The schema declares the features of `datasets`, so that
``load_dataset`` infers nothing and decodes the images. A file ends before the row that would make its images and texts
larger than the limit; rows are written in groups of at most 16 MiB, so memory does not grow with the data.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, list_images
from pairwright.datasets.reports.dataset_card import render_card
from pairwright.datasets.shards.sample_schema import MemberSchema
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample

IMAGE = "image"  # type of a column, beside those of `sample_schema.py`
MAX_FILE_BYTES = 256 * 2**20
GROUP_BYTES, GROUP_ROWS = 16 * 2**20, 1_000

_IMAGE_TYPE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_TYPES = {"string": pa.string(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64(), IMAGE: _IMAGE_TYPE}

Schema = Mapping[str, MemberSchema]
Row = dict[str, Any]


def embed_images(sample: Sample, options: ExportOptions) -> list[Row]:
    """Return a cell for each image of the sample, none for a text-only one; errors as in `load_image`."""
    images = list_images(sample, options.recoding)
    return [{"bytes": data, "path": f"{sample.pair.key}.{end}"} for end, data in images]


def write_table_folder(
    rows: Iterable[Row], schema: Schema, source: SampleSource, out: Path, options: ExportOptions
) -> ExportResult:
    """Write rows to ``data/`` in ``out``, and a card that names them to ``README.md``."""
    written = write_tables(rows, schema, out / "data", options)
    readme = out / "README.md"
    manifest = {"name": out.name, **source.manifest, "shards": {}, "tables": {"rows": written.rows}}
    write_text(readme, render_card(manifest))
    return ExportResult(written.rows, (readme, *written.files))


def write_tables(
    rows: Iterable[Row], schema: Schema, folder: Path, options: ExportOptions, split: str = "train"
) -> ExportResult:
    """Write rows to ``split-00000.parquet``, ... in ``folder``, whose other files of that split are removed."""
    arrow = _arrow_schema(schema)
    files: list[Path] = []
    count = 0
    for part in _parts(rows, options.max_bytes or MAX_FILE_BYTES, options.max_samples or sys.maxsize):
        files.append(folder / f"{split}-{len(files):05d}.parquet")
        with replace_atomically(files[-1]) as temporary, pq.ParquetWriter(temporary, arrow, compression="zstd") as out:
            for group in map(list, _parts(part, GROUP_BYTES, GROUP_ROWS)):
                out.write_table(pa.Table.from_pylist(group, schema=arrow))
                count += len(group)
    for stale in set(folder.glob(f"{split}-*.parquet")) - set(files):
        if re.fullmatch(rf"{split}-\d{{5}}\.parquet", stale.name):
            stale.unlink()
    return ExportResult(count, tuple(files))


def _parts(rows: Iterable[Row], most_bytes: int, most_rows: int) -> Iterator[Iterator[Row]]:
    """Yield the rows in parts, each to be read to its end; a part has a row at least."""
    source = iter(rows)
    pending = next(source, None)

    def part() -> Iterator[Row]:
        nonlocal pending
        size = count = 0
        while pending is not None:
            size, count = size + _size(pending), count + 1
            if count > 1 and (size > most_bytes or count > most_rows):
                return
            yield pending
            pending = next(source, None)

    while pending is not None:
        yield part()


def _size(value: Any) -> int:
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list) else 8


def _arrow_schema(schema: Schema) -> Any:
    features = {"info": {"features": {name: _feature(shape) for name, shape in schema.items()}}}
    fields = [(name, arrow_type(shape)) for name, shape in schema.items()]
    return pa.schema(fields, metadata={"huggingface": orjson.dumps(features)})


def arrow_type(shape: MemberSchema) -> Any:
    """Return the Arrow type of a column."""
    if isinstance(shape, str):
        return _TYPES[shape]
    if isinstance(shape, list):
        return pa.list_(arrow_type(shape[0]))
    return pa.struct([(name, arrow_type(inner)) for name, inner in shape.items()])


def _feature(shape: MemberSchema) -> Any:
    """Return the feature of `datasets` for a column; releases from 2 on read lists in this notation."""
    if isinstance(shape, str):
        return {"_type": "Image"} if shape == IMAGE else {"_type": "Value", "dtype": shape}
    if isinstance(shape, list):
        return [_feature(shape[0])]
    return {name: _feature(inner) for name, inner in shape.items()}
