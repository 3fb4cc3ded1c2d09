"""The folder of a run: started only where there is none, resumed only with the same settings, by one run at a time."""

import errno
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import StorageError, UsageError, describe_write_error
from pairwright.training.recipes.schema import Recipe

_CHANGEABLE = {("batches", "workers"), ("log_every",), ("save_every",)}  # may differ when a run goes on


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run was asked to do: the settings, and on what they are used."""

    recipe: Recipe
    model: str
    data: str
    validation: str


def check_run_folder(out: Path, asked: RunRequest, *, resume: bool) -> None:
    """Refuse a folder that is not this run's.

    Args:
        out: the folder.
        asked: of this run.
        resume: whether it goes on with what stands there.

    Raises:
        UsageError: another run stands there, or none that could be gone on with.
        StorageError: what stands there is torn.
    """
    path = out / "run.json"
    if not path.is_file():
        if resume:
            raise UsageError(f"{out} holds no run to go on with. Leave out --resume.")
        return
    if not resume:
        raise UsageError(f"{out} holds a run already. Give --resume to go on with it, or another folder.")
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path} is torn ({error}). Begin in another folder.") from None
    _refuse_changes(before, _description(asked), out)


def lock_run_folder(out: Path) -> IO[str]:
    """Lock the folder ``out`` for this process, as long as the returned file is open.

    The operating system drops the lock when the process ends; processes that it forked do not hold it. A file system
    without locks is used without one.

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


def write_run_description(out: Path, asked: RunRequest) -> None:
    """Write what the run of a folder is."""
    now = _description(asked)
    write_text(out / "recipe.yaml", yaml.safe_dump(now["recipe"], sort_keys=False))
    write_text(out / "run.json", json.dumps(now, indent=2) + "\n")


def _description(asked: RunRequest) -> dict[str, Any]:
    return {
        **{name: getattr(asked, name) for name in ("model", "data", "validation")},
        "recipe": asked.recipe.model_dump(mode="json"),
    }


def _refuse_changes(before: dict[str, Any], now: dict[str, Any], out: Path) -> None:
    flat = [dict(_leaves(one["recipe"])) | {("--model",): one["model"]} for one in (before, now)]
    for key in sorted(set(flat[0]) | set(flat[1])):
        if key not in _CHANGEABLE and flat[0].get(key) != flat[1].get(key):
            raise UsageError(
                f"{out} was begun with {'.'.join(key)} {flat[0].get(key)}, not {flat[1].get(key)}. "
                "Go on with the same settings, or begin in another folder."
            )


def _leaves(section: dict[str, Any], *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _leaves(value, *path, key)
        else:
            yield (*path, key), value
