"""Files of a training run, sufficient to resume it exactly.

    OUT/recipe.yaml, run.json     all settings, and the model and data they were used with
    OUT/log.csv                   see `metrics_log.py`
    OUT/checkpoints/step-00000500/
        trained.safetensors       trained parameters; the frozen ones are those of the initial model
        optimizer.pt              state of AdamW, and of the gradient scaler under fp16
        average.safetensors       with ema: the averaged weights
        state.json                counters and loader position; written last, before the folder is renamed
    OUT/best.safetensors          with early stop: the trained parameters with the lowest validation loss
    OUT/skipped.jsonl             samples that could not be used, if any
    OUT/model/                    the finished model
    OUT/model-ema/                with ema: the same with averaged weights
    OUT/model-openclip/           with save_openclip: OUT/model in OpenCLIP's layout

Only the newest checkpoint is kept. No random state is stored: each step seeds its generator from (seed, step, rank).
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import StorageError
from pairwright.datasets.records import compact_json
from pairwright.training.loading.loader import LoaderState
from pairwright.training.models.checkpoints import (
    copy_weights,
    load_trained,
    read_weights,
    save_trained,
    save_weights,
)

_STATE, _WEIGHTS, _OPTIMIZER, _AVERAGE = "state.json", "trained.safetensors", "optimizer.pt", "average.safetensors"


@dataclass(slots=True)
class TrainingProgress:
    """Progress of a run."""

    step: int = 0  # steps done
    loader: LoaderState | None = None  # position of the next batch
    cut: int = 0  # truncated texts so far
    skipped: dict[str, str] = field(default_factory=dict)  # unusable samples so far: reason and detail by shard and key
    loss: float = 0.0  # of the last log row
    best: float | None = None  # lowest validation loss; None before the first validation
    waited: int = 0  # validations since then
    seconds: float = 0.0  # training time over all resumed parts
    ended: str = ""  # why the run ended; empty while it runs


@dataclass(frozen=True, slots=True)
class RunState:
    """Objects that a checkpoint restores."""

    model: nn.Module  # not wrapped
    optimizer: Any  # of its trained parameters
    scaler: Any = None  # gradient scaler under fp16; None otherwise
    average: Mapping[str, Tensor] = field(default_factory=dict)  # averaged weights by parameter name; empty without ema


def save_checkpoint(out: Path, state: RunState, progress: TrainingProgress) -> Path:
    """Write a checkpoint atomically and remove older ones."""
    folder = out / "checkpoints" / f"step-{progress.step:08d}"
    with replace_folder(folder) as temporary:
        save_trained(state.model, temporary / _WEIGHTS)
        if state.average:
            save_weights(state.average, temporary / _AVERAGE)
        scaler = state.scaler.state_dict() if state.scaler else None
        torch.save({"optimizer": state.optimizer.state_dict(), "scaler": scaler}, temporary / _OPTIMIZER)
        write_text(temporary / _STATE, json.dumps(asdict(progress)) + "\n")
    for older in _checkpoints(out):
        if older != folder:
            shutil.rmtree(older)
    return folder


def newest_checkpoint(out: Path) -> Path | None:
    """Return the folder of the newest complete checkpoint; None without one."""
    return max(_checkpoints(out), default=None)


def load_checkpoint(folder: Path, state: RunState) -> TrainingProgress:
    """Load a checkpoint into a model with the same trained parameters, and into its optimizer.

    Raises:
        StorageError: the checkpoint is damaged.
        UsageError: it belongs to another model.
    """
    load_trained(state.model, folder / _WEIGHTS)
    if state.average:
        copy_weights(state.average, read_weights(folder / _AVERAGE), folder / _AVERAGE)
    try:
        states = torch.load(folder / _OPTIMIZER, map_location="cpu", weights_only=True)
        progress = TrainingProgress(**json.loads((folder / _STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise StorageError(f"{folder} cannot be read ({error}). Remove the run folder and start again.") from None
    state.optimizer.load_state_dict(states["optimizer"])
    if state.scaler and states["scaler"]:
        state.scaler.load_state_dict(states["scaler"])
    return progress


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Provide a temporary folder that takes the place of ``folder`` at the end of the block, without an error in it."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    yield temporary
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def write_skipped(out: Path, skipped: Mapping[str, str]) -> None:
    """Write skipped samples to ``OUT/skipped.jsonl``, one row each; no file without skipped samples."""
    if skipped:
        rows = ({"sample": name, "why": skipped[name]} for name in sorted(skipped))
        write_text(out / "skipped.jsonl", "".join(compact_json(row) + "\n" for row in rows))


def _checkpoints(out: Path) -> Iterator[Path]:
    return (path.parent for path in out.glob(f"checkpoints/step-*/{_STATE}"))
