"""Join of pairs and download outcomes by URL: each pair is fetched, or rejected with one reason.

A fetched pair keeps its key; ``image`` is the local copy (relative to the folder of the table, so that the folder can be
moved), ``width`` and ``height`` are those of the copy, and `meta` gets the ``url`` and the ``sha256`` of the downloaded
file, which is compared with evaluation sets (`exclusion`). Both tables keep the input order.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import compact_json
from pairwright.datasets.rejects import Reject, RejectError, make_reject
from pairwright.indexes.fetching.url_safety import clean_url


@dataclass(frozen=True)
class RequestedImages:
    """Pairs, with the URL to fetch of each (empty if invalid) and the errors of invalid ones by row."""

    pairs: pl.DataFrame
    urls: list[str]
    flaws: dict[int, RejectError]

    @cached_property
    def distinct(self) -> list[str]:
        """Distinct URLs in order."""
        return list(dict.fromkeys(filter(None, self.urls)))


def collect_urls(pairs: pl.DataFrame) -> RequestedImages:
    """Return the cleaned URLs of ``pairs``, a frame with the columns of `PAIRS`."""
    cleaned: dict[str, str | RejectError] = {}
    for written in pairs["image"].unique(maintain_order=True):
        try:
            cleaned[written] = clean_url(written)
        except RejectError as flaw:
            cleaned[written] = flaw
    each = [cleaned[written] for written in pairs["image"]]
    flaws = {row: found for row, found in enumerate(each) if isinstance(found, RejectError)}
    return RequestedImages(pairs, ["" if isinstance(found, RejectError) else found for found in each], flaws)


def join_outcomes(
    requested: RequestedImages, outcomes: pl.DataFrame, refused: Mapping[str, RejectError]
) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the fetched pairs as a frame of `PAIRS`, and a `Reject` for each other pair.

    Args:
        requested: pairs and their URLs.
        outcomes: one row per URL, from `DownloadFolder.outcomes`.
        refused: URLs that were not requested, with reasons.
    """
    table = requested.pairs.with_columns(pl.Series("url", requested.urls, dtype=pl.String)).join(
        outcomes.select("url", "state", "reason", "detail", "sha256", copy="image", w="width", h="height"),
        on="url",
        how="left",
        maintain_order="left",
    )
    taken = (pl.col("state") == "fetched") & ~pl.col("url").is_in(list(refused))
    fetched = table.filter(taken.fill_null(value=False)).with_columns(
        pl.struct("meta", "image", "sha256").map_elements(_add_fetch_metadata, return_dtype=pl.String).alias("meta"),
        pl.col("copy").alias("image"),
        pl.col("w").alias("width"),
        pl.col("h").alias("height"),
    )
    rest = table.with_row_index("row").filter(~taken.fill_null(value=False))
    rejects = [
        make_reject(key, *_reject_reason(requested.flaws.get(row) or refused.get(url), reason, detail), image)
        for row, key, image, url, reason, detail in rest.select(
            "row", "key", "image", "url", "reason", "detail"
        ).iter_rows()
    ]
    return fetched.select(PAIRS.schema.names()), rejects


def _add_fetch_metadata(row: Mapping[str, str]) -> str:
    hashed = {"sha256": row["sha256"]} if row["sha256"] else {}
    return compact_json({**json.loads(row["meta"]), "url": row["image"], **hashed})


def _reject_reason(flaw: RejectError | None, reason: str | None, detail: str | None) -> tuple[str, str]:
    if flaw is not None:
        return flaw.reason, flaw.detail
    return reason or "download_failed", detail or "not requested"
