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
from pairwright.datasets.exports.embedded_tables import arrow_type
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ImageNames
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import encode_sample_json

ROW_GROUP_SIZE = 2_000


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write every pair of ``source`` to the Parquet file ``out``."""
    schema = pa.schema([("image", pa.string()), *((name, arrow_type(shape)) for name, shape in SAMPLE_SCHEMA.items())])
    names, count = ImageNames(options), 0
    rows = _rows(source, names)
    with replace_atomically(out) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROW_GROUP_SIZE)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return ExportResult(count, (out,), details=names.details())


def _rows(source: SampleSource, names: ImageNames) -> Iterator[dict[str, Any]]:
    for sample in source.samples():
        yield {"image": names.name(sample), **encode_sample_json(sample)}
