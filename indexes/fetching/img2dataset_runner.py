"""One run of img2dataset, watched: started in a process group of its own, ended whole.

Known ways in which it hangs: a worker that is killed (memory) leaves its pool waiting for ever. Since every download
is bounded in time (`fetch_opener.py`), a run in which nothing has come for longer than that has died, and is ended.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import MissingResourceError, StorageError
from pairwright.indexes.fetching.http_opener import TOTAL_TIMEOUT_FACTOR, RequestSettings
from pairwright.indexes.fetching.img2dataset_worker import JOB_VARIABLE

MIN_VERSION = (1, 47)
INSTALL_HINT = "pip install 'pairwright[download]', then pip uninstall dataclasses (`pairwright doctor` says why)"
STARTUP_SECONDS = 60.0  # seconds that processes may need to start on a busy machine
POLL_SECONDS = 0.1
DISK_FULL_MESSAGE = "No space left on device"

# img2dataset's albumentations would ask PyPI for newer versions of itself.
_QUIET_ENVIRONMENT = {"NO_ALBUMENTATIONS_UPDATE": "1", "WANDB_MODE": "disabled", "PYTHONWARNINGS": "ignore"}


def check_img2dataset() -> str:
    """Return the version of img2dataset.

    Raises:
        MissingResource: when it is not there, or so old that it ignores the wishes of sites.
    """
    try:
        version = metadata.version("img2dataset")
    except metadata.PackageNotFoundError:
        raise MissingResourceError(f"img2dataset is not installed. {INSTALL_HINT}.") from None
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < MIN_VERSION:
        wanted = ".".join(map(str, MIN_VERSION))
        raise MissingResourceError(
            f"img2dataset {version} is too old: before {wanted} it ignores that sites opt out. {INSTALL_HINT}; "
            "a pandas of version 3 makes pip choose the old one."
        )
    return version


def run_img2dataset(
    arguments: Mapping[str, Any],
    manners: RequestSettings,
    log: Path,
    watch: Callable[[int], None],
    *,
    patience: float = 0.0,
) -> bool:
    """Run ``img2dataset.download``, and leave no process behind.

    Args:
        arguments: of the call.
        manners: how to ask; its ``progress`` file is watched.
        log: what it prints.
        watch: hears how many answers have come.
        patience: seconds without an answer after which it is taken for dead; 0 for the time one answer may take
            and a minute.

    Returns:
        True when it came to its end, false when it had to be ended.

    Raises:
        MissingResource, StorageError: as `check_log`.
    """
    environment = {
        **os.environ,
        **_QUIET_ENVIRONMENT,
        JOB_VARIABLE: json.dumps({"arguments": arguments, "manners": asdict(manners)}),
    }
    command = [sys.executable, "-P", "-m", "pairwright.indexes.fetching.img2dataset_worker"]
    with log.open("wb") as printed:
        process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        finished = _wait_for_end(
            process,
            Path(manners.progress),
            watch,
            patience or (TOTAL_TIMEOUT_FACTOR + 1) * manners.timeout + STARTUP_SECONDS,
        )
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    check_log(log, failed=finished and process.returncode != 0)
    return finished


def check_log(log: Path, *, failed: bool) -> None:
    """Look at what img2dataset printed; it ends well although the disk was full.

    Args:
        log: its output.
        failed: it ended with an error.

    Raises:
        MissingResource: when a module that it needs is not there.
        StorageError: when the disk was full, or it failed otherwise.
    """
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    if DISK_FULL_MESSAGE in text:
        raise StorageError(f"{log.parent}: the disk is full. Make room and start again; what came is kept.")
    if not failed:
        return
    last = text.rpartition("\n")[2] or "it said nothing"
    if "No module named" in last:
        raise MissingResourceError(
            f"img2dataset does not start ({last}). From Python 3.13 on it needs `pip install standard-imghdr`; else: {INSTALL_HINT}."
        )
    raise StorageError(f"img2dataset failed: {last}. All that it printed: {log}")


def _wait_for_end(
    process: "subprocess.Popen[bytes]", progress: Path, watch: Callable[[int], None], patience: float
) -> bool:
    seen, since = 0, time.monotonic()
    while not _has_ended(process):
        time.sleep(POLL_SECONDS)
        answers = progress.stat().st_size if progress.exists() else 0
        if answers != seen:
            seen, since = answers, time.monotonic()
            watch(answers)
        elif time.monotonic() - since > patience:
            return False
    return True


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Say whether the process has ended, and leave it unreaped where the system can: its group has its number."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None
