"""Which pairs of a build go on after retrieval: those whose keys were chosen, or all when nothing was asked."""

from pathlib import Path

import polars as pl

from pairwright.datasets.records import Pair
from pairwright.datasets.tables import PAIRS
from pairwright.flows.layout import chosen_path, pairs_path


def chosen_flags(root: Path, pairs: list[Pair], *, retrieved: bool) -> list[bool]:
    """Return for each pair whether it goes on; all do when the build retrieves nothing."""
    if not retrieved:
        return [True] * len(pairs)
    keys = set(_keys(root))
    return [pair.key in keys for pair in pairs]


def chosen_pairs(root: Path, part: str, *, retrieved: bool) -> list[Pair]:
    """Return the pairs of a part that go on, in order."""
    return PAIRS.records(chosen_frame(root, part, retrieved=retrieved))


def chosen_frame(root: Path, part: str, *, retrieved: bool) -> pl.DataFrame:
    """Return the pairs of a part that go on as a frame, in order."""
    frame = PAIRS.read_frame(pairs_path(root, part))
    return frame.filter(pl.col("key").is_in(_keys(root).implode())) if retrieved else frame


def _keys(root: Path) -> pl.Series:
    return pl.read_parquet(chosen_path(root))["key"]
