"""Where a run stands, on disk: enough to go on as if it had never stopped.

    OUT/recipe.yaml, run.json     the settings, whole; and what they were used on
    OUT/log.csv                   `log.py`
    OUT/checkpoints/step-00000500/
        trained.safetensors       the parameters that are trained; the others are those of the model it began with
        optimizer.pt              of AdamW, and of the gradient scaler under fp16
        state.json                counters, the loader's place; last, and the folder is renamed when it is whole
    OUT/best.safetensors          with early stop: the trained parameters with the lowest loss so far
    OUT/skipped.jsonl             samples that could not be used, where there are some
    OUT/model/                    the finished model

Only the newest checkpoint is kept. Chance needs no place here: each step draws from (seed, step, rank).
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import StorageError
from pairwright.datasets.records import compact_json
from pairwright.training.loading.loader import LoaderState
from pairwright.training.models.checkpoints import load_trained, save_trained

_STATE, _WEIGHTS, _OPTIMIZER = "state.json", "trained.safetensors", "optimizer.pt"


@dataclass(slots=True)
class TrainingProgress:
    """How far a run is.

    Attributes:
        step: steps done.
        loader: the place of the next batch.
        cut: texts that lost their end, so far.
        skipped: samples that cannot be used, met so far: reason and detail by shard and key.
        loss: of the last row of the log.
        best: lowest loss on validation data; None before the first look.
        waited: looks since then.
        seconds: spent in training, over all its parts.
        ended: why the run is over; empty while it is not.
    """

    step: int = 0
    loader: LoaderState | None = None
    cut: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    loss: float = 0.0
    best: float | None = None
    waited: int = 0
    seconds: float = 0.0
    ended: str = ""


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """What of a run has a state beside its weights: the optimiser, and under fp16 the gradient scaler."""

    optimizer: Any
    scaler: Any = field(default=None)


def save_checkpoint(out: Path, model: nn.Module, running: OptimizerState, progress: TrainingProgress) -> Path:
    """Write a checkpoint, whole or not at all, and remove those before it."""
    folder = out / "checkpoints" / f"step-{progress.step:08d}"
    temporary = folder.with_name(f".{folder.name}.tmp")
    for stale in (temporary, folder):
        shutil.rmtree(stale, ignore_errors=True)
    temporary.mkdir(parents=True)
    save_trained(model, temporary / _WEIGHTS)
    scaler = running.scaler.state_dict() if running.scaler else None
    torch.save({"optimizer": running.optimizer.state_dict(), "scaler": scaler}, temporary / _OPTIMIZER)
    with (temporary / _STATE).open("w", encoding="utf-8") as file:
        file.write(json.dumps(asdict(progress)) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder)
    for older in _checkpoints(out):
        if older != folder:
            shutil.rmtree(older)
    return folder


def newest_checkpoint(out: Path) -> Path | None:
    """Return the folder of the newest whole checkpoint, if there is one."""
    return max(_checkpoints(out), default=None)


def load_checkpoint(folder: Path, model: nn.Module, running: OptimizerState) -> TrainingProgress:
    """Put a checkpoint into a model that trains the same parameters.

    Raises:
        StorageError: it is torn.
        UsageError: it is of another model.
    """
    load_trained(model, folder / _WEIGHTS)
    try:
        states = torch.load(folder / _OPTIMIZER, map_location="cpu", weights_only=True)
        progress = TrainingProgress(**json.loads((folder / _STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise StorageError(f"{folder} cannot be read ({error}). Remove it, and start anew.") from None
    running.optimizer.load_state_dict(states["optimizer"])
    if running.scaler and states["scaler"]:
        running.scaler.load_state_dict(states["scaler"])
    return progress


def save_model(model: Any, folder: Path) -> None:
    """Write the finished model, whole or not at all."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    for stale in (temporary, folder):
        shutil.rmtree(stale, ignore_errors=True)
    model.save(temporary)
    temporary.rename(folder)


def write_skipped(out: Path, skipped: Mapping[str, str]) -> None:
    """Write the samples that were skipped to ``OUT/skipped.jsonl``, a row each; no file where none was."""
    if skipped:
        rows = ({"sample": name, "why": skipped[name]} for name in sorted(skipped))
        write_text(out / "skipped.jsonl", "".join(compact_json(row) + "\n" for row in rows))


def _checkpoints(out: Path) -> Iterator[Path]:
    return (path.parent for path in out.glob(f"checkpoints/step-*/{_STATE}"))
