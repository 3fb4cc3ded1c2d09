"""A run, its folder and its checkpoints, sufficient to resume it exactly.

    OUT/recipe.yaml, run.json     all settings, and the model and data they were used with
    OUT/log.csv                   see `metrics_log.py`
    OUT/checkpoints/step-00000500/
        trained.safetensors       trained parameters; the frozen ones are those of the initial model
        optimizer.pt              state of AdamW, and of the gradient scaler under fp16
        average.safetensors       with ema: the averaged weights
        state.json                counters and loader position; written last, before the folder is renamed
    OUT/skipped.jsonl             samples that could not be used, if any
    OUT/model/                    the finished model
    OUT/model-ema/                with ema: the same with averaged weights
    OUT/model-openclip/           with save_openclip: OUT/model in OpenCLIP's layout

A new run needs an unused folder, a resumed one the same settings, and one process group trains in it at a time. Only the
newest checkpoint is kept. No random state is stored: each step seeds its generator from (seed, step, rank).
"""

import errno
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Generic, TypeVar
from zipfile import BadZipFile, ZipFile

import torch
import yaml
from torch import Tensor, nn

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import StorageError, UsageError, describe_write_error
from pairwright.datasets.records import compact_json
from pairwright.training.loading.loader import LoaderState
from pairwright.training.loading.shard_index import OnError
from pairwright.training.metrics_log import LogRow
from pairwright.training.models.checkpoints import copy_weights, read_weights, save_weights, trained_parameters
from pairwright.training.recipes.settings import RecipeSection

_STATE, _WEIGHTS, _OPTIMIZER, _AVERAGE = "state.json", "trained.safetensors", "optimizer.pt", "average.safetensors"

R = TypeVar("R", bound=RecipeSection)
_CHANGEABLE = {"batches.workers", "log_every", "save_every", "save_openclip"}  # may differ on resume


@dataclass(frozen=True)
class Run(Generic[R]):
    """A training run: settings, data, initial model and run folder."""

    recipe: R  # settings
    data: str  # shards, see `ShardLoader`; for step-by-step also a ``.jsonl`` of rationale rows
    model: str  # initial checkpoint: a folder (also of a run) or a name
    out: Path  # run folder
    validation: str = ""  # shards for evaluation during finetuning; empty: none
    resume: bool = False  # resume the run in ``out``
    # For broken samples and samples without image or caption: ``skip`` skips and counts them, ``stop`` ends the run
    on_error: OnError = "skip"
    report_to: tuple[str, ...] = ()  # names of `reporters.REPORTERS`, which get the log rows too
    on_row: Callable[[LogRow], None] = field(default=lambda _: None)  # called with each log row of our own loop
    # Called with notes on the data before the first step (skipped samples, missing texts, smaller batches), with the
    # first few samples skipped during training, and with the log rows of a finetuning run
    on_message: Callable[[str], None] = field(default=lambda _: None)

    def settings(self) -> dict[str, Any]:
        """Return model, data and recipe, as reports show them."""
        return {"model": self.model, "data": self.data, **self.recipe.model_dump(mode="json")}


def check_run_folder(run: Run[Any]) -> None:
    """Check that the run's folder holds no run, or with ``resume`` this run; UsageError or StorageError otherwise."""
    out, path = run.out, run.out / "run.json"
    if not path.is_file():
        if run.resume:
            raise UsageError(f"{out} holds no run to resume. Remove --resume.")
        return
    if not run.resume:
        raise UsageError(f"{out} already holds a run. Pass --resume to continue it, or choose another --out.")
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path} is damaged ({error}). Choose another --out.") from None
    flat = [dict(flat_settings(one["recipe"])) | {"--model": one["model"]} for one in (before, _description(run))]
    for key in sorted(set(flat[0]) | set(flat[1])):
        # A setting that only one of two versions has may be unset.
        if key not in _CHANGEABLE and (flat[0].get(key) or None) != (flat[1].get(key) or None):
            raise UsageError(
                f"{out} was started with {key} {flat[0].get(key)}, not {flat[1].get(key)}. "
                "Resume with the same settings, or choose another --out."
            )


def lock_run_folder(out: Path) -> IO[str]:
    """Lock the folder ``out`` for this process while the returned file is open, where the file system has locks.

    The operating system releases the lock when the process ends; forked processes do not hold it. StorageError: another
    run trains in this folder, or it is not writable.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        handle = (out / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{out} is not writable ({describe_write_error(error)}). Choose another --out.") from None
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            handle.close()
            raise StorageError(
                f"{out}: another run trains in this folder. Wait for it, or choose another --out. To train with several "
                "processes, launch them by torchrun or accelerate launch."
            ) from None
    return handle


def write_run_description(run: Run[Any]) -> None:
    """Write the settings, model and data of a run to recipe.yaml and run.json."""
    now = _description(run)
    write_text(run.out / "recipe.yaml", yaml.safe_dump(now["recipe"], sort_keys=False))
    write_text(run.out / "run.json", json.dumps(now, indent=2) + "\n")


def _description(run: Run[Any]) -> dict[str, Any]:
    return {
        **{name: getattr(run, name) for name in ("model", "data", "validation")},
        "recipe": run.recipe.model_dump(mode="json"),
    }


def flat_settings(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings with names such as ``optimizer.lr``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat_settings(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


@dataclass(slots=True)
class TrainingProgress:
    """Progress of a run."""

    step: int = 0  # steps done
    loader: LoaderState | None = None  # position of the next batch
    cut: int = 0  # truncated texts so far
    skipped: dict[str, str] = field(default_factory=dict)  # unusable samples so far: reason and detail by shard and key
    loss: float = 0.0  # of the last log row
    seconds: float = 0.0  # training time over all resumed parts


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
        save_weights(trained_parameters(state.model), temporary / _WEIGHTS)
        if state.average:
            save_weights(state.average, temporary / _AVERAGE)
        scaler = state.scaler.state_dict() if state.scaler else None
        torch.save({"optimizer": state.optimizer.state_dict(), "scaler": scaler}, temporary / _OPTIMIZER)
        write_text(temporary / _STATE, json.dumps(asdict(progress)) + "\n")
    for older in set(_checkpoints(out)) - {folder}:
        shutil.rmtree(older)
    return folder


def newest_checkpoint(out: Path) -> Path | None:
    """Return the folder of the newest complete checkpoint; None without one."""
    return max(_checkpoints(out), default=None)


def load_checkpoint(folder: Path, state: RunState) -> TrainingProgress:
    """Load a checkpoint into a model with the same trained parameters, and into its optimizer.

    Raises StorageError if it is damaged, UsageError if it belongs to another model.
    """
    copy_weights(trained_parameters(state.model), read_weights(folder / _WEIGHTS), folder / _WEIGHTS)
    if state.average:
        copy_weights(state.average, read_weights(folder / _AVERAGE), folder / _AVERAGE)
    try:
        ZipFile(folder / _OPTIMIZER).close()  # torch reads another file as a pickle, with errors of any kind
        states = torch.load(folder / _OPTIMIZER, map_location="cpu", weights_only=True)
        stored = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        progress = TrainingProgress(**{one.name: stored[one.name] for one in fields(TrainingProgress)})
        state.optimizer.load_state_dict(states["optimizer"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, BadZipFile) as error:
        raise StorageError(f"{folder} cannot be read ({error}). Remove the run folder and start again.") from None
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
