"""Which pairs of a build go on: all, those that retrieval chose, or of these the ones whose image was fetched.

A fetched pair goes on with the local copy as its image; its key, which was fixed when it was read, stays.
"""

from pathlib import Path
from typing import Literal

import polars as pl

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.flows.layout import chosen_path, fetched_path, pairs_path

Choice = Literal["all", "retrieved", "fetched"]


def chosen_flags(root: Path, pairs: list[Pair], choice: Choice) -> list[bool]:
    """Return for each pair whether it goes on."""
    if choice == "all":
        return [True] * len(pairs)
    keys = set(_table(root, choice)["key"])
    return [pair.key in keys for pair in pairs]


def chosen_pairs(root: Path, part: str, choice: Choice) -> list[Pair]:
    """Return the pairs of a part that go on, in order."""
    return PAIRS.records(chosen_frame(root, part, choice))


def chosen_frame(root: Path, part: str, choice: Choice) -> pl.DataFrame:
    """Return the pairs of a part that go on as a frame, in order."""
    frame = PAIRS.read_frame(pairs_path(root, part))
    if choice == "all":
        return frame
    if choice == "retrieved":
        return frame.filter(pl.col("key").is_in(_table(root, choice)["key"].implode()))
    local = _table(root, choice).with_columns((pl.lit(f"{root}/") + pl.col("image")).alias("image"))
    joined = frame.join(local, on="key", suffix="_local", maintain_order="left")
    replaced = [pl.coalesce(f"{name}_local", name).alias(name) for name in ("image", "width", "height")]
    return joined.with_columns(replaced).select(frame.columns)


def _table(root: Path, choice: Choice) -> pl.DataFrame:
    return pl.read_parquet(fetched_path(root) if choice == "fetched" else chosen_path(root))
