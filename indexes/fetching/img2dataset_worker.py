"""The process in which img2dataset runs: ``python -m pairwright.indexes.fetching.img2dataset_worker``.

img2dataset is run in a process of its own, because it takes over the signal handlers, prints, and starts processes that
it does not always end. Those are spawned, and a spawned process begins with the main module of the process that
started it, which is this one. So what is prepared here holds in each of them:

- the opener that guards addresses and time (`fetch_opener.py`);
- no torch, Ray or Hugging Face hub: packages that img2dataset imports would load them, 1.7 s and 200 MB a process for
  torch alone, for data loaders and clusters that nobody uses here;
- an empty module under the name of ``wandb``, which img2dataset imports and, with ``enable_wandb`` off, never uses:
  what is not loaded does not call home, and a second of every start is saved;
- albumentations is imported when an image is resized, and so not by the two processes that resize none;
- an end when the starter ends: this process is the head of a process group, and ends the group when its standard input
  closes, which happens whatever way the starter dies; the spawned ones end when this one does.

The job comes in the environment variable `JOB_VARIABLE`, as JSON: ``arguments`` of ``img2dataset.download`` and ``manners``.
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
    """Says that what a downloader does not need is not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002 - as the protocol has it
        if fullname in _BLOCKED_PACKAGES:
            raise ModuleNotFoundError(f"{fullname} is not loaded in a downloader", name=fullname)


class _LazyModule(types.ModuleType):
    """Stands for a module, which is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by who imports, not by who uses
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def prepare_process(job: dict[str, Any]) -> None:
    """Make this process one that img2dataset may run in."""
    from pairwright.indexes.fetching.http_opener import FetchOpener, RequestSettings

    sys.meta_path.insert(0, _ImportBlocker())
    for module in (types.ModuleType("wandb"), _LazyModule("albumentations")):
        module.__spec__ = ModuleSpec(module.__name__, None)  # who asks whether it is there shall get an answer
        sys.modules[module.__name__] = module
    urllib.request.install_opener(FetchOpener(RequestSettings(**job["manners"])))


def _kill_group_when_starter_ends() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _exit_when_parent_ends(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Download as the job says."""
    if os.getpgrp() != os.getpid():
        sys.exit("fetch_worker: started by hand; use `pairwright fetch`")
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
