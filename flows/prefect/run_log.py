"""Log files of scheduled runs: one file a run in ``logs/`` of the build directory, the newest `KEPT` of them.

A file holds the lines that the run prints, what pairwright logs from level INFO on, what other packages log from WARNING
on, and the traceback of an error. Worker processes do not log into it.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pairwright.datasets.errors import StorageError, describe_write_error

LOG_FOLDER, KEPT = "logs", 50
_OURS = "pairwright"


def log_path(out: Path, run: str) -> Path:
    """Return the log file of a run: the one that is there already, or a new name that begins with the time.

    Args:
        out: the build directory.
        run: id of the flow run.
    """
    there = sorted((out / LOG_FOLDER).glob(f"*-{run}.log"))
    return there[0] if there else out / LOG_FOLDER / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{run}.log"


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Append what is logged in the block to a file, made when missing; of the files beside it the newest stay.

    Raises:
        StorageError: when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8")
        _remove_old(path)
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written ({describe_write_error(error)}). Check the permissions of the folder."
        ) from None
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    handler.setFormatter(form)
    ours, root = logging.getLogger(_OURS), logging.getLogger()
    level, propagates = ours.level, ours.propagate
    ours.setLevel(logging.INFO)
    ours.propagate = False  # Prefect has a handler of its own on the root, which prints
    for each in (ours, root):
        each.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        for each in (ours, root):
            each.removeHandler(handler)
        ours.setLevel(level)
        ours.propagate = propagates
        handler.close()


def _remove_old(path: Path) -> None:
    """Remove the oldest files of the folder; their names sort by time."""
    for old in sorted(path.parent.glob("*.log"))[:-KEPT]:
        with suppress(FileNotFoundError):
            old.unlink()
