"""Losses of several ranks: equal to those of one process with the whole batch, in value and gradient."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from pairwright.training.objectives.distributed import Ranks  # noqa: E402 - behind the guard of torch
from tests.training.objectives.rank_cases import (  # noqa: E402
    FULL,
    OBJECTIVES,
    SCALE,
    loss_and_gradients,
    part_of,
    whole_batch,
)
from tests.training.training_cases import processes  # noqa: E402


@dataclass(frozen=True)
class Meeting:
    """Where threads exchange tensors, each with its graph."""

    barrier: Barrier
    slots: list[Any]

    def exchange(self, rank: int, value: Any) -> list[Any]:
        """Return the values of all threads."""
        self.slots[rank] = value
        self.barrier.wait(timeout=60)
        found = list(self.slots)
        self.barrier.wait(timeout=60)
        return found


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    """Ranks that are threads of one process: gathered tensors share a graph, so gradients need no communication."""

    meeting: Any = None

    def agree(self, rows: int, device: Any) -> Any:
        """Pad to the most rows of any thread."""
        del device
        return ThreadRanks(self.rank, self.count, max(self.meeting.exchange(self.rank, rows)), self.meeting)

    def gather(self, own: Any) -> Any:
        """Pad and join."""
        missing = own.new_zeros(self.rows - len(own), *own.shape[1:])
        return torch.cat(self.meeting.exchange(self.rank, torch.cat([own, missing])))

    def total(self, value: Any) -> Any:
        """Sum over threads."""
        return sum(self.meeting.exchange(self.rank, value.detach()))


def in_threads(count: int, task: Callable[[Ranks], Any]) -> list[Any]:
    meeting = Meeting(Barrier(count), [None] * count)
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(task, [ThreadRanks(rank, count, FULL, meeting) for rank in range(count)]))


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_mean_over_ranks_is_the_loss_of_the_whole_batch(name: str, count: int) -> None:
    rows = whole_batch(count)
    expected, slopes = loss_and_gradients(name, rows)
    leaves = {place: one.clone().requires_grad_() for place, one in rows.items() if one.is_floating_point()}
    scale = torch.tensor(SCALE).double().requires_grad_()
    losses = in_threads(count, lambda ranks: OBJECTIVES[name](part_of({**rows, **leaves}, ranks.rank), scale, ranks))
    loss = sum(losses) / count
    torch.autograd.backward(loss)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    for place, leaf in (leaves | {"scale": scale}).items():
        if slopes[place] is None:
            assert leaf.grad is None or not leaf.grad.any()
        else:
            torch.testing.assert_close(leaf.grad, slopes[place], rtol=0, atol=1e-12)


def test_only_what_is_compared_is_gathered() -> None:
    rows, gathered = whole_batch(2), list[int]()

    class Counting(ThreadRanks):
        def gather(self, own: Any) -> Any:
            """Count the numbers of a row."""
            gathered.append(own[0].numel())
            return super().gather(own)

    def task(ranks: Any) -> Any:
        counting = Counting(ranks.rank, ranks.count, ranks.rows, ranks.meeting)
        return OBJECTIVES["fsc-clip"](part_of(rows, ranks.rank), torch.tensor(SCALE), counting)

    in_threads(2, task)
    embedding = rows["images"].shape[1]
    # Images and captions, and a flag for each row; no negative, patch or token.
    assert sum(gathered) / 2 == 2 * embedding + 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_processes_find_the_loss_and_the_gradients_of_the_whole_batch(count: int) -> None:
    done = processes(count, "tests.training.objectives.rank_processes")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == OBJECTIVES.keys()
    assert max(found.values()) < 1e-6, found
