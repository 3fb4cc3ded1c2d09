"""The pairs of a build that get texts: all, those that retrieval selected, or of these the ones with a fetched image.

The image of a fetched pair is its local copy; its key does not change.
"""

from pathlib import Path
from typing import Literal

import polars as pl

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.flows.state.layout import fetched_part_path, pairs_path, retrieved_part_path

PairSelection = Literal["all", "retrieved", "fetched"]


def selection_mask(root: Path, part: str, pairs: list[Pair], selection: PairSelection) -> list[bool]:
    """Return for each pair of a part whether it is selected."""
    if selection == "all":
        return [True] * len(pairs)
    keys = set(_selection_table(root, part, selection)["key"])
    return [pair.key in keys for pair in pairs]


def selected_pairs(root: Path, part: str, selection: PairSelection) -> list[Pair]:
    """Return the selected pairs of a part, in order."""
    return PAIRS.records(selected_frame(root, part, selection))


def selected_frame(root: Path, part: str, selection: PairSelection) -> pl.DataFrame:
    """Return the selected pairs of a part as a frame, in order."""
    return _select(root, part, selection, PAIRS.read_frame(pairs_path(root, part)))


def selected_images(root: Path, part: str, selection: PairSelection) -> pl.Series:
    """Return the images of the selected pairs of a part, in order; nothing else is read of the pairs."""
    columns = PAIRS.read_frame(pairs_path(root, part), ("key", "image", "width", "height"))
    return _select(root, part, selection, columns)["image"]


def _select(root: Path, part: str, selection: PairSelection, frame: pl.DataFrame) -> pl.DataFrame:
    if selection == "all":
        return frame
    if selection == "retrieved":
        return frame.filter(pl.col("key").is_in(_selection_table(root, part, selection)["key"].implode()))
    local = _selection_table(root, part, selection).with_columns((pl.lit(f"{root}/") + pl.col("image")).alias("image"))
    joined = frame.join(local, on="key", suffix="_local", maintain_order="left")
    replaced = [pl.coalesce(f"{name}_local", name).alias(name) for name in ("image", "width", "height")]
    return joined.with_columns(replaced).select(frame.columns)


def _selection_table(root: Path, part: str, selection: PairSelection) -> pl.DataFrame:
    if selection == "fetched":
        return pl.read_parquet(fetched_part_path(root, part))
    return pl.read_parquet(retrieved_part_path(root, part)).filter(pl.col("reason") == "").select("key")
