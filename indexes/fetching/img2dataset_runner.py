"""Supervised run of img2dataset in a separate process group.

img2dataset hangs when one of its workers is killed (out of memory). Every download is limited in time (`http_opener`),
so a run without a response for longer than that is dead and is stopped.
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
STARTUP_SECONDS = 60.0  # startup time of processes on a busy machine
POLL_SECONDS = 0.1
DISK_FULL_MESSAGE = "No space left on device"

# albumentations, which img2dataset uses, would check PyPI for updates.
_QUIET_ENVIRONMENT = {"NO_ALBUMENTATIONS_UPDATE": "1", "WANDB_MODE": "disabled", "PYTHONWARNINGS": "ignore"}


def check_img2dataset() -> str:
    """Return the version of img2dataset.

    Raises:
        MissingResourceError: if it is missing, or so old that it ignores opt-outs of sites.
    """
    try:
        version = metadata.version("img2dataset")
    except metadata.PackageNotFoundError:
        raise MissingResourceError(f"img2dataset is not installed. {INSTALL_HINT}.") from None
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < MIN_VERSION:
        wanted = ".".join(map(str, MIN_VERSION))
        raise MissingResourceError(
            f"img2dataset {version} is too old: before {wanted} it ignores opt-outs of sites. {INSTALL_HINT}; "
            "pandas 3 makes pip choose the old version."
        )
    return version


def run_img2dataset(
    arguments: Mapping[str, Any],
    settings: RequestSettings,
    log: Path,
    watch: Callable[[int], None],
    *,
    patience: float = 0.0,
) -> bool:
    """Run ``img2dataset.download`` and end all its processes.

    Args:
        arguments: arguments of the call.
        settings: request settings; the ``progress`` file is polled.
        log: file for its output.
        watch: called with the number of responses.
        patience: seconds without a response after which it is stopped; 0 for the maximum duration of a download plus a
            minute.

    Returns:
        True if it ended by itself, false if it was stopped.

    Raises:
        MissingResourceError, StorageError: from `check_log`.
    """
    environment = {
        **os.environ,
        **_QUIET_ENVIRONMENT,
        JOB_VARIABLE: json.dumps({"arguments": arguments, "settings": asdict(settings)}),
    }
    command = [sys.executable, "-P", "-m", "pairwright.indexes.fetching.img2dataset_worker"]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        finished = _wait_for_end(
            process,
            Path(settings.progress),
            watch,
            patience or (TOTAL_TIMEOUT_FACTOR + 1) * settings.timeout + STARTUP_SECONDS,
        )
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    check_log(log, failed=finished and process.returncode != 0)
    return finished


def check_log(log: Path, *, failed: bool) -> None:
    """Check the output of img2dataset, which succeeds even if the disk is full.

    Args:
        log: file with its output.
        failed: whether it ended with an error.

    Raises:
        MissingResourceError: if a required module is missing.
        StorageError: if the disk was full, or it failed otherwise.
    """
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    if DISK_FULL_MESSAGE in text:
        raise StorageError(f"{log.parent}: the disk is full. Free space and start again; completed downloads are kept.")
    if not failed:
        return
    last = text.rpartition("\n")[2] or "no output"
    if "No module named" in last:
        raise MissingResourceError(
            f"img2dataset does not start ({last}). From Python 3.13 on it needs `pip install standard-imghdr`;"
            f" else: {INSTALL_HINT}."
        )
    raise StorageError(f"img2dataset failed: {last}. Full output: {log}")


def _wait_for_end(
    process: "subprocess.Popen[bytes]", progress: Path, watch: Callable[[int], None], patience: float
) -> bool:
    count, since = 0, time.monotonic()
    while not _has_ended(process):
        time.sleep(POLL_SECONDS)
        responses = progress.stat().st_size if progress.exists() else 0
        if responses != count:
            count, since = responses, time.monotonic()
            watch(responses)
        elif time.monotonic() - since > patience:
            return False
    return True


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether the process has ended, without reaping it if possible: its pid is needed to kill its group."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None
