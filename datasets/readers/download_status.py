"""The table that img2dataset writes beside each shard: which downloads failed, and which samples must be there.

A row whose status is not ``success`` is a candidate that never became a sample: it is told as
``download_failed`` with the downloader's message. A success whose sample is not in the shard is lost:
``missing_sample``.
"""

from collections.abc import Iterator
from pathlib import Path

from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.rejects import Reject, make_reject


def iter_failed_downloads(table: Path, keys: set[str]) -> Iterator[Reject]:
    """Yield what the table of a shard says is missing.

    Args:
        table: the shard's Parquet file. One without the columns key and status is not of this kind: nothing is said.
        keys: of the samples that the shard holds.
    """
    for row in read_parquet(table):
        if isinstance(row, Reject):
            yield row
            continue
        if "key" not in row.fields or "status" not in row.fields:
            return
        key, status = row.fields["key"], row.fields["status"]
        if status != "success":
            message = row.fields.get("error_message") or "no message"
            yield make_reject(row.place, "download_failed", f"{status}: {message}", row.fields)
        elif key not in keys:
            yield make_reject(row.place, "missing_sample", f"the sample {key} is not in the shard", row.fields)
