"""A finetuning run of several processes: ``python -m tests.training.finetuning.sharded_run``.

Arguments: recipe, shards, model, run folder, step (0: nothing is killed), settings. The first process kills itself after the
log row of that step, with a signal that no process can handle.

accelerate shards models on accelerators only, and silently trains copies on a CPU. torch's FSDP runs on a CPU, so here
accelerate's state is set to shard there as well; everything else is what a GPU would do.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from accelerate.state import AcceleratorState  # type: ignore[import-untyped]
from accelerate.utils import DistributedType  # type: ignore[import-untyped]

from pairwright.training.finetuning.run import FinetuningRun, finetune
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.recipes.settings import FinetuningRecipe
from tests.training.finetuning import tiny_vlms  # noqa: F401 - registers the processor of Qwen2.5-VL

_start = AcceleratorState.__init__


def _start_sharded(self: Any, *arguments: Any, **named: Any) -> None:
    plugin = named.get("fsdp_plugin") or AcceleratorState._shared_state.get("fsdp_plugin")
    _start(self, *arguments, **named)
    if plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
        self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, plugin


def main(recipe: str, data: str, model: str, out: str, last: str, *changes: str) -> None:
    """Train, or resume the run in ``out``."""
    AcceleratorState.__init__ = _start_sharded
    settings = read_recipe(recipe, changes)
    assert isinstance(settings, FinetuningRecipe)

    def log_row(line: str) -> None:
        if line.startswith(f"  step {last} "):
            os.kill(os.getpid(), signal.SIGKILL)

    resume = (Path(out) / "run.json").is_file()
    report = finetune(FinetuningRun(settings, data, model, Path(out), resume=resume, on_message=log_row))
    sys.stdout.write(
        f"{AcceleratorState().distributed_type} {report.steps}\n"
    )  # in one piece: processes share the pipe


if __name__ == "__main__":
    main(*sys.argv[1:])
