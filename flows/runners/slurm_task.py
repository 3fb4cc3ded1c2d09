"""The program of an array task: runs its share of jobs and writes the result of each.

    python -m pairwright.flows.runners.slurm_task FOLDER TASK

``FOLDER/setup.pickle`` says what the build runs, ``FOLDER/TASK.pickle`` which jobs. Both are written by `SlurmPool`. A job
that has a result is not run again: Slurm itself may requeue a task.
"""

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.runners.node_checks import check_node
from pairwright.indexes.hnsw.faiss_files import limit_faiss_threads


@dataclass(frozen=True)
class TaskSetup:
    """What all tasks of an array need: the arguments of `check_node`, and the cores of a task."""

    root: Path
    mark: str
    source: str
    packages: tuple[str, ...]
    cpus: int


@dataclass(frozen=True)
class Call:
    """A call of a function; ``number`` names the file of its result."""

    number: int
    run: Callable[..., Any]
    args: tuple[Any, ...]


def result_path(folder: Path, number: int) -> Path:
    """Return the file of the result of a call."""
    return folder / f"result-{number}.pickle"


def run_calls(folder: Path, setup: TaskSetup, calls: list[Call]) -> None:
    """Run the calls that have no result yet, ``setup.cpus`` at a time, and write their results.

    Raises:
        BrokenProcessPool: a process was killed; its calls have no result.
    """
    left = [call for call in calls if not result_path(folder, call.number).exists()]
    if setup.cpus == 1 or len(left) == 1:
        with limit_faiss_threads(setup.cpus):
            for call in left:
                _write(folder, call.number, _outcome(call))
        return
    with WorkerProcesses(min(setup.cpus, len(left))) as pool:
        running = {pool.submit(_outcome, call): call for call in left}
        for done in as_completed(running):
            _write(folder, running[done].number, done.result())


def _outcome(call: Call) -> Any:
    """Return the result of a call, or its error, which is no reason to run it again."""
    try:
        return call.run(*call.args)
    except BrokenProcessPool:
        raise
    except Exception as error:  # noqa: BLE001 - raised in the build's process
        return error


def _write(folder: Path, number: int, outcome: Any) -> None:
    try:
        data = pickle.dumps(outcome)
    except Exception as error:  # noqa: BLE001 - whatever pickle raises
        data = pickle.dumps(PairwrightError(f"the result of a job cannot be passed on ({error}): {outcome}"))
    write_bytes(result_path(folder, number), data)


def main() -> None:
    """Run the calls of a task."""
    folder, task = Path(sys.argv[1]), sys.argv[2]
    setup: TaskSetup = pickle.loads((folder / "setup.pickle").read_bytes())  # noqa: S301 - written by the build
    calls: list[Call] = pickle.loads((folder / f"{task}.pickle").read_bytes())  # noqa: S301 - likewise
    try:
        check_node(setup.root, setup.mark, setup.source, setup.packages)
    except PairwrightError as error:
        for call in calls:
            _write(folder, call.number, error)
        return
    run_calls(folder, setup, calls)


if __name__ == "__main__":
    # Under its own name, so that what it pickles is found in other processes.
    from pairwright.flows.runners.slurm_task import main as run

    run()
