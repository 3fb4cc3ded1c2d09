"""Which pairs of a build go on: all, those that retrieval chose, or of these the ones whose image was fetched.

A fetched pair goes on with the local copy as its image; its key, which was fixed when it was read, stays.
"""

from pathlib import Path
from typing import Literal

import polars as pl

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.flows.state.layout import fetched_images_path, pairs_path, retrieved_keys_path

PairSelection = Literal["all", "retrieved", "fetched"]


def selection_mask(root: Path, pairs: list[Pair], choice: PairSelection) -> list[bool]:
    """Return for each pair whether it goes on."""
    if choice == "all":
        return [True] * len(pairs)
    keys = set(_selection_table(root, choice)["key"])
    return [pair.key in keys for pair in pairs]


def selected_pairs(root: Path, part: str, choice: PairSelection) -> list[Pair]:
    """Return the pairs of a part that go on, in order."""
    return PAIRS.records(selected_frame(root, part, choice))


def selected_frame(root: Path, part: str, choice: PairSelection) -> pl.DataFrame:
    """Return the pairs of a part that go on as a frame, in order."""
    frame = PAIRS.read_frame(pairs_path(root, part))
    if choice == "all":
        return frame
    if choice == "retrieved":
        return frame.filter(pl.col("key").is_in(_selection_table(root, choice)["key"].implode()))
    local = _selection_table(root, choice).with_columns((pl.lit(f"{root}/") + pl.col("image")).alias("image"))
    joined = frame.join(local, on="key", suffix="_local", maintain_order="left")
    replaced = [pl.coalesce(f"{name}_local", name).alias(name) for name in ("image", "width", "height")]
    return joined.with_columns(replaced).select(frame.columns)


def _selection_table(root: Path, choice: PairSelection) -> pl.DataFrame:
    return pl.read_parquet(fetched_images_path(root) if choice == "fetched" else retrieved_keys_path(root))
