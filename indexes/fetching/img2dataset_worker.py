"""Process in which img2dataset runs: ``python -m pairwright.indexes.fetching.img2dataset_worker``.

img2dataset runs in a separate process because it replaces signal handlers, prints, and spawns processes that it does not
always end. A spawned process first runs the main module of its parent, which is this one, so all of them get

- the opener with checked addresses and time limits (`http_opener`);
- no torch, Ray or Hugging Face hub, which dependencies of img2dataset would import without need: torch alone takes 1.7 s
  and 200 MB per process;
- an empty module ``wandb``, which img2dataset imports but does not use with ``enable_wandb`` off: saves a second per
  start and telemetry;
- a lazily imported albumentations, which two of the processes never use;
- an end with the parent: this process leads a process group and kills the group when its standard input closes, however
  the parent dies; spawned processes exit when this one does.

The environment variable `JOB_VARIABLE` holds the job as JSON: ``arguments`` of ``img2dataset.download`` and ``settings``
(`RequestSettings`).
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
import types
import urllib.request
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

JOB_VARIABLE = "PAIRWRIGHT_FETCH_JOB"
_BLOCKED_PACKAGES = ("torch", "ray", "huggingface_hub")


class _ImportBlocker(MetaPathFinder):
    """Import hook that reports unneeded packages as not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002 - signature of the protocol
        if fullname in _BLOCKED_PACKAGES:
            raise ModuleNotFoundError(f"{fullname} is not loaded in a downloader", name=fullname)


class _LazyModule(types.ModuleType):
    """Placeholder that imports the real module on first attribute access."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # accessed by the import system
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def prepare_process(job: dict[str, Any]) -> None:
    """Set up this process for img2dataset."""
    from pairwright.indexes.fetching.http_opener import FetchOpener, RequestSettings

    sys.meta_path.insert(0, _ImportBlocker())
    for module in (types.ModuleType("wandb"), _LazyModule("albumentations")):
        module.__spec__ = ModuleSpec(module.__name__, None)  # for importlib.util.find_spec
        sys.modules[module.__name__] = module
    urllib.request.install_opener(FetchOpener(RequestSettings(**job["settings"])))


def _kill_group_when_starter_ends() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _exit_when_parent_ends(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Run the job."""
    if os.getpgrp() != os.getpid():
        sys.exit("img2dataset_worker: not to be started directly; use `pairwright fetch`")
    threading.Thread(target=_kill_group_when_starter_ends, daemon=True).start()
    from img2dataset import download  # type: ignore[import-untyped, import-not-found, unused-ignore]  # no types; an extra

    download(**_read_job()["arguments"])


def _read_job() -> dict[str, Any]:
    job: dict[str, Any] = json.loads(os.environ[JOB_VARIABLE])
    return job


if __name__ in {"__main__", "__mp_main__"}:
    prepare_process(_read_job())
if __name__ == "__mp_main__":
    threading.Thread(target=_exit_when_parent_ends, args=(os.getppid(),), daemon=True).start()
if __name__ == "__main__":
    main()
