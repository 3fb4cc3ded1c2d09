"""Estimate of a build: its stages, pairs, parts, shards and bytes.

The input is read once; images are not opened, only their file sizes are read. Retrieval, fetching and broken images may
reduce the numbers, which are upper bounds. Finished jobs of an earlier run are not considered.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.readers.pairs import read_pairs
from pairwright.datasets.remote.store_path import StoreListings
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.graph import stage_names
from pairwright.flows.stages.scan import default_part_size
from pairwright.flows.stages.shards import plan_shards, sample_bytes
from pairwright.flows.state.inputs import read_options, with_local_inputs
from pairwright.flows.state.layout import COPIES


@dataclass(frozen=True)
class BuildPlan:
    """Size of a build.

    Attributes:
        stages: in the order in which they run.
        pairs: of the input.
        rejected: rows of the input by the reason of their rejection.
        parts: of the pairs.
        shards: that the pairs fill.
        bytes: of the shards, about.
    """

    stages: tuple[str, ...]
    pairs: int
    rejected: Mapping[str, int]
    parts: int
    shards: int
    bytes: int
    part_size: int

    def described(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        names = ("stages", "pairs", "rejected", "parts", "shards", "bytes")
        return {name: getattr(self, name) for name in names} | {"refused": sum(self.rejected.values())}


def estimate_build(config: BuildConfig, out: Path) -> BuildPlan:
    """Return the size of a full build; inputs in an object store are copied into ``out``, as in the build.

    Raises:
        PairwrightError: when the input is not readable, or a row of it stops the build.
    """
    near = with_local_inputs(config, out / COPIES)
    sizes: list[int] = []
    rejected, listings = Counter[str](), StoreListings()
    section = config.captions
    options = read_options(near.input, without_caption=section is not None)
    captions = len(section.forms) * section.per_image if section is not None else 1  # of an image that has none
    for batch in read_pairs(replace(options, verify_images="off")):
        for pair in batch.pairs:
            sizes += [sample_bytes(pair.image, config.shards, listings)] * (1 if pair.caption else captions)
        rejected.update(each.reason for each in batch.rejects if each.part != "boxes")
    shards = plan_shards([("all", sizes)], config.shards.samples, config.shards.megabytes * 2**20)
    part_size = config.part_size or default_part_size(len(sizes))
    parts = -(-len(sizes) // part_size)
    return BuildPlan(stage_names(config), len(sizes), rejected, parts, len(shards), sum(sizes), part_size)
