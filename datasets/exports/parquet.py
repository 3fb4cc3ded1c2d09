"""Parquet: one file, a row a pair, with its texts in nested columns; no image bytes.

Columns are the members of a shard's JSON (`samples.SHAPE`) and ``image``, the image's name or URL. Written in groups of
2,000 rows, so memory does not grow with the data.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pairwright.datasets.atomic import replacing
from pairwright.datasets.exports.source import Source
from pairwright.datasets.exports.writing import Exported, ExportOptions, ImageNames
from pairwright.datasets.sample_shape import SHAPE, Shape
from pairwright.datasets.samples import sample_json

GROUP = 2_000


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write every pair of ``source`` to the Parquet file ``out``."""
    schema = pa.schema([("image", pa.string()), *((name, _arrow(shape)) for name, shape in SHAPE.items())])
    rows, count = _rows(source, options), 0
    with replacing(out) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        while group := list(islice(rows, GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return Exported(count, (out,))


def _rows(source: Source, options: ExportOptions) -> Iterator[dict[str, Any]]:
    names = ImageNames(options)
    for sample in source.samples():
        yield {"image": names.name(sample), **sample_json(sample)}


def _arrow(shape: Shape) -> Any:
    if isinstance(shape, str):
        return {"string": pa.string(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}[shape]
    if isinstance(shape, list):
        return pa.list_(_arrow(shape[0]))
    return pa.struct([(name, _arrow(inner)) for name, inner in shape.items()])
