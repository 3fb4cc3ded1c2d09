"""A run and its folder: a new run needs an unused folder, a resumed one the same settings, and one process group at a time."""

import errno
import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

import yaml

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import StorageError, UsageError, describe_write_error
from pairwright.training.loading.samples import OnError
from pairwright.training.metrics_log import LogRow
from pairwright.training.recipes.sections import RecipeSection

R = TypeVar("R", bound=RecipeSection)
_CHANGEABLE = {"batches.workers", "log_every", "save_every", "save_openclip"}  # may differ on resume


@dataclass(frozen=True)
class Run(Generic[R]):
    """A training run: settings, data, initial model and run folder."""

    recipe: R  # settings
    data: str  # shards, see `ShardLoader`; for step-by-step also a ``.jsonl`` of rationale rows
    model: str  # initial checkpoint: a folder (also of a run) or a name
    out: Path  # run folder (`run_checkpoints.py`, `finetuning/run.py`)
    validation: str = ""  # shards for early stop and for evaluation during finetuning; empty: none
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
    """Check that the run's folder can be used by it.

    Raises:
        UsageError: the folder holds another run, or no run to resume.
        StorageError: the description of the run is damaged.
    """
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
    _refuse_changes(before, _description(run), out)


def lock_run_folder(out: Path) -> IO[str]:
    """Lock the folder ``out`` for this process while the returned file is open.

    The operating system releases the lock when the process ends; forked processes do not hold it. On a file system without
    locks the folder is used unlocked.

    Raises:
        StorageError: another run trains in this folder, or it is not writable.
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


def _refuse_changes(before: dict[str, Any], now: dict[str, Any], out: Path) -> None:
    flat = [dict(flat_settings(one["recipe"])) | {"--model": one["model"]} for one in (before, now)]
    for key in sorted(set(flat[0]) | set(flat[1])):
        if key not in _CHANGEABLE and flat[0].get(key) != flat[1].get(key):
            raise UsageError(
                f"{out} was started with {key} {flat[0].get(key)}, not {flat[1].get(key)}. "
                "Resume with the same settings, or choose another --out."
            )


def flat_settings(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings with names such as ``optimizer.lr``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat_settings(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
