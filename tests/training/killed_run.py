"""A run of several processes whose first is killed on the way: ``python -m tests.training.killed_run``.

Arguments: shards, model, folder of the run, step (0: nothing is killed), settings. The signal is one that no process can
answer, as when memory is short or a job is ended.
"""

import os
import signal
import sys
from pathlib import Path

from pairwright.training.metrics_log import LogRow
from tests.training.training_cases import run


def main(data: str, model: str, out: str, last: str, *changes: str) -> None:
    """Train, or resume the run in ``out``, until a log row of step ``last`` kills the process."""

    def log_row(row: LogRow) -> None:
        if row["step"] == int(last):
            os.kill(os.getpid(), signal.SIGKILL)

    run("fsc-clip", data, model, Path(out), *changes, on_row=log_row, resume=(Path(out) / "run.json").is_file())


if __name__ == "__main__":
    main(*sys.argv[1:])
