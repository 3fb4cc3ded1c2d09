"""Parquet export: one file, a row per pair, with its texts in nested columns; no image bytes.

Columns are the members of a shard's JSON (`SAMPLE_SCHEMA`) and ``image``, the image's name or URL. Written in row groups of
2,000, so memory does not grow with the data.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ImageNames
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA, MemberSchema
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import encode_sample_json

ROW_GROUP_SIZE = 2_000


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write every pair of ``source`` to the Parquet file ``out``."""
    schema = pa.schema([("image", pa.string()), *((name, _arrow(shape)) for name, shape in SAMPLE_SCHEMA.items())])
    rows, count = _rows(source, options), 0
    with replace_atomically(out) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROW_GROUP_SIZE)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return ExportResult(count, (out,))


def _rows(source: SampleSource, options: ExportOptions) -> Iterator[dict[str, Any]]:
    names = ImageNames(options)
    for sample in source.samples():
        yield {"image": names.name(sample), **encode_sample_json(sample)}


def _arrow(shape: MemberSchema) -> Any:
    if isinstance(shape, str):
        return {"string": pa.string(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}[shape]
    if isinstance(shape, list):
        return pa.list_(_arrow(shape[0]))
    return pa.struct([(name, _arrow(inner)) for name, inner in shape.items()])
