"""What a build would do, as far as its input tells before anything is made: stages, pairs, parts, shards and bytes.

The input is read once; images are not opened, only their sizes looked up. What retrieval, fetching or a broken image
leaves out is not known yet, so these are the most. What an earlier run left, and still fits, is known when it runs.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.readers.pairs import read_pairs
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.graph import stage_names
from pairwright.flows.stages.shards import plan_shards, sample_bytes
from pairwright.flows.state.inputs import read_options, with_local_inputs
from pairwright.flows.state.layout import COPIES


@dataclass(frozen=True)
class BuildPlan:
    """The work of a build.

    Attributes:
        stages: in the order in which they run.
        pairs: that the input holds.
        refused: rows of the input that are none.
        parts: that the pairs are worked on in.
        shards: that they fill.
        bytes: of the shards, about.
    """

    stages: tuple[str, ...]
    pairs: int
    refused: int
    parts: int
    shards: int
    bytes: int

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in ("stages", "pairs", "refused", "parts", "shards", "bytes")}


def estimate_build(config: BuildConfig, out: Path) -> BuildPlan:
    """Return what a full build would do; inputs in a store are copied into ``out``, as the build does.

    Raises:
        PairwrightError: when the input cannot be read, or a row of it stops the build.
    """
    near = with_local_inputs(config, out / COPIES)
    sizes: list[int] = []
    refused = 0
    for batch in read_pairs(replace(read_options(near.input), verify_images="off")):
        sizes += (sample_bytes(pair.image, config.shards) for pair in batch.pairs)
        refused += len(batch.rejects)
    shards = plan_shards([("all", sizes)], config.shards.samples, config.shards.megabytes * 2**20)
    parts = -(-len(sizes) // config.part_size)
    return BuildPlan(stage_names(config), len(sizes), refused, parts, len(shards), sum(sizes))
