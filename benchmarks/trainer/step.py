"""Work of the host in a contrastive training step, and memory of the loss, by the number of processes; on the CPU.

    python -m benchmarks.trainer.step host [--recipes clip fsc-clip] [--ranks 1 2 4] [--steps 10]
    python -m benchmarks.trainer.step memory [--recipes negclip fsc-clip] [--ranks 1 2 4] [--batch 2048]

*host*: a tiny CLIP with 8 rows a process, so that a step is little else than the work of its host. Per step, medians:
operations that the host starts, those for which it would wait for a GPU (`device_reads.py`; AdamW's own count of steps,
which a GPU does not need, is left out), and CPU milliseconds of the main thread. It uses nothing but `train`, so with
another commit's package on PYTHONPATH it measures that commit.

*memory*: peak memory of a process for loss and gradients of embeddings alone: *local*, the losses of its own rows among
those of all (what `train` does), and *gathered*, the loss of the whole batch in each process, to which all embeddings,
negatives, patches and tokens are gathered. The batch is divided among the processes. Each figure is the growth of resident
memory at its peak, embeddings of the process included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from benchmarks.trainer.device_reads import DeviceReads
from benchmarks.trainer.loading import sample

WARM = 3
SIZES = {"width": 512, "patches": 49, "tokens": 24, "negatives": 3}


def processes(count: int, *arguments: str) -> Any:
    """Run this module in processes that train together, and return what the first prints as JSON."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    done = subprocess.run(
        [*command, "-m", "benchmarks.trainer.step", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},  # freed tensors are given back
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def write_inputs(folder: Path) -> None:
    """Write shards with three negatives for each caption, and a tiny CLIP."""
    from benchmarks.shards import noisy_jpeg
    from pairwright.datasets.shards.writing import write_shards
    from pairwright.training.tiny_clip import write_tiny_clip

    write_shards((sample(number, noisy_jpeg(32)) for number in range(512)), folder / "shards", max_samples=256)
    write_tiny_clip(str(folder / "shards"), folder / "clip")


class StepCounter:
    """Measures steps, from one update of the optimizer to the next: first CPU time, then operations, which takes time."""

    def __init__(self, steps: int) -> None:
        self.reads, self.times, self.counts = DeviceReads(), list[float](), list[tuple[int, int]]()
        self._steps, self._at = steps, (0, 0)
        self._hooks = (
            register_optimizer_step_pre_hook(lambda *_: self._before()),
            register_optimizer_step_post_hook(lambda *_: self._after()),
        )
        self._began = time.thread_time()

    def medians(self) -> list[float]:
        """Stop, and return operations, waits and CPU milliseconds of a step."""
        self.reads.__exit__(None, None, None)
        for hook in self._hooks:
            hook.remove()
        columns = [*zip(*self.counts[1:], strict=True), self.times[WARM:]]
        return [statistics.median(column) for column in columns]

    def _seen(self) -> tuple[int, int]:
        return self.reads.operations, len(self.reads.waits)

    def _before(self) -> None:
        self._own = self._seen()

    def _after(self) -> None:
        if len(self.times) < WARM + self._steps:
            now = time.thread_time()
            self.times.append(1000 * (now - self._began))
            if len(self.times) == WARM + self._steps:
                self.reads.__enter__()
            self._began = time.thread_time()
        else:
            # The reads of AdamW between both hooks are left out.
            self.counts.append((self._seen()[0] - self._at[0], self._own[1] - self._at[1]))
        self._at = self._seen()


def host_worker(folder: str, steps: str, *recipes: str) -> None:
    """Train in this process by each recipe, and print the medians of a step."""
    from pairwright.training.recipes.reading import read_recipe
    from pairwright.training.recipes.settings import Recipe
    from pairwright.training.trainer import TrainingRun, train

    ranks, last, found = int(os.environ["WORLD_SIZE"]), WARM + 2 * int(steps), {}
    changes = [f"batches.size={8 * ranks}", "batches.workers=1", "precision=fp32", f"schedule.steps={last}"]
    for recipe in recipes:
        settings = read_recipe(recipe, [*changes, "log_every=10000", "save_every=10000"])
        assert isinstance(settings, Recipe)
        counter = StepCounter(int(steps))
        out = Path(folder) / f"run-{recipe}-{ranks}"
        report = train(TrainingRun(settings, f"{folder}/shards", f"{folder}/clip", out))
        found[recipe] = counter.medians()
    if report.main:
        print(json.dumps(found))


def host(recipes: list[str], ranks: list[int], steps: int) -> None:
    """Print the table of the host's work."""
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        print("| ranks | recipe | operations | waits for the device | CPU ms |\n| --- | --- | --- | --- | --- |")
        for count in ranks:
            found = processes(count, "host-worker", folder, str(steps), *recipes)
            for recipe, (operations, waits, spent) in found.items():
                print(f"| {count} | {recipe} | {operations:,.0f} | {waits:.0f} | {spent:.1f} |", flush=True)


def embeddings(rows: int, *, local: bool) -> Any:
    """Return random embeddings of ``rows`` pairs."""
    from pairwright.training.objectives.embeddings import PairEmbeddings

    width, k = SIZES["width"], SIZES["negatives"]

    def unit(*shape: int) -> Tensor:
        return torch.nn.functional.normalize(torch.randn(rows, *shape), dim=-1)

    mask = torch.ones(rows, k, dtype=torch.bool)
    texts = (unit(k, width), mask, unit(k, width), mask)
    pairs = PairEmbeddings(unit(width), unit(width), *texts, torch.tensor(50.0), torch.tensor(-5.0))
    if not local:
        return pairs
    words = torch.ones(rows, 1 + k, SIZES["tokens"], dtype=torch.bool)
    tokens = unit(1 + k, SIZES["tokens"], width)
    return pairs._replace(patches=unit(SIZES["patches"], width), tokens=tokens, tokens_mask=words)


def gathered(pairs: Any, ranks: Any) -> Any:
    """Return the embeddings of all ranks, with gradients to those of this one."""
    first, last = ranks.rank * ranks.rows, (ranks.rank + 1) * ranks.rows

    def whole(own: Tensor) -> Tensor:
        every = ranks.gather(own.detach())
        return torch.cat([every[:first], own, every[last:]])

    return type(pairs)(*(one if one is None or not one.dim() else whole(one) for one in pairs))


def peak(task: Callable[[], Any]) -> float:
    """Return by how much a call raises this process's resident memory at its peak, in MiB (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is now what is resident
    before = resident("VmRSS")
    task()
    return (resident("VmHWM") - before) / 1024


def resident(name: str) -> int:
    """Return a value of /proc/self/status, in KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def memory_worker(batch: str, *recipes: str) -> None:
    """Print the peaks of both forms of each recipe's loss and its gradients."""
    from pairwright.training.objectives.distributed import ALONE, Ranks
    from pairwright.training.recipes.preparation import pair_loss
    from pairwright.training.recipes.reading import read_recipe

    distributed.init_process_group("gloo")
    ranks = Ranks(distributed.get_rank(), distributed.get_world_size(), int(batch) // distributed.get_world_size())
    found = {}
    for recipe in recipes:
        method: Any = read_recipe(recipe).method

        def local(rows: int, method: Any = method) -> None:
            pairs = leaves(embeddings(rows, local=method.local_features))
            torch.autograd.backward(pair_loss(method, pairs, replace(ranks, rows=rows)).loss)

        def whole(method: Any = method) -> None:
            pairs = leaves(embeddings(ranks.rows, local=method.local_features))
            torch.autograd.backward(pair_loss(method, gathered(pairs, ranks), ALONE).loss * ranks.count)

        local(2)
        found[recipe] = [peak(whole), peak(lambda: local(ranks.rows))]
    if ranks.rank == 0:
        print(json.dumps(found))
    distributed.destroy_process_group()


def leaves(pairs: Any) -> Any:
    """Return the embeddings, whose gradients are to be computed."""
    for each in pairs:
        if each is not None and each.is_floating_point() and each.dim():
            each.requires_grad_()
    return pairs


def memory(recipes: list[str], ranks: list[int], batch: int) -> None:
    """Print the table of peak memory."""
    print(f"batch {batch:,}, {SIZES}; MiB a process\n")
    print("| ranks | recipe | gathered | local | local / gathered |\n| --- | --- | --- | --- | --- |")
    for count in ranks:
        for recipe, (whole, local) in processes(count, "memory-worker", str(batch), *recipes).items():
            print(f"| {count} | {recipe} | {whole:,.0f} | {local:,.0f} | {local / whole:.0%} |", flush=True)


def main() -> None:
    """Print a table."""
    workers: dict[str, Callable[..., None]] = {"host-worker": host_worker, "memory-worker": memory_worker}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["host", "memory"])
    parser.add_argument("--recipes", nargs="+", default=["clip", "negclip", "hp-hn", "fsc-clip"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=2048)
    asked = parser.parse_args()
    if asked.what == "host":
        host(asked.recipes, asked.ranks, asked.steps)
    else:
        memory(asked.recipes, asked.ranks, asked.batch)


if __name__ == "__main__":
    main()
