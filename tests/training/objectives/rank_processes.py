"""Differences between the losses of processes and of the whole batch: ``python -m tests.training.objectives.rank_processes``.

To be launched by torchrun; the first process prints the largest difference of each objective as JSON.
"""

import json
import sys

import torch
from torch import Tensor, distributed

from pairwright.training.objectives.distributed import Ranks
from tests.training.objectives.rank_cases import FULL, OBJECTIVES, loss_and_gradients, part_of, whole_batch


def difference(name: str, ranks: Ranks) -> float:
    """Return the largest difference of the loss and of any gradient, over all processes."""
    rows = whole_batch(ranks.count)
    own, slopes = loss_and_gradients(name, part_of(rows, ranks.rank), ranks)
    loss, expected = loss_and_gradients(name, rows)
    found = [ranks.total(own) / ranks.count - loss]
    for place, value in expected.items():
        if value is None:
            assert slopes[place] is None, place
        elif value.dim():  # the mean over ranks divides by their number, as training does for parameters
            found.append(slopes[place] / ranks.count - part_of({place: value}, ranks.rank)[place])
        else:
            found.append(ranks.total(slopes[place]) / ranks.count - value)
    most: Tensor = torch.stack([one.abs().max() for one in found]).max()
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    return most.item()


def main() -> None:
    """Print the differences."""
    distributed.init_process_group("gloo")
    ranks = Ranks(distributed.get_rank(), distributed.get_world_size(), FULL)
    found = {name: difference(name, ranks) for name in OBJECTIVES}
    if ranks.rank == 0:
        sys.stdout.write(json.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
