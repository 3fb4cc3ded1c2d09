"""Worker processes: how they end."""

import atexit
from pathlib import Path

from pairwright.datasets.worker_processes import WorkerProcesses

KEPT: list[object] = []


class Freed:
    """Leaves a mark when it is freed."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __del__(self) -> None:
        self.mark.touch()


def hold(folder: Path) -> None:
    KEPT.append(Freed(folder / "freed"))
    atexit.register((folder / "exit handler").touch)


def test_a_worker_runs_the_exit_handlers_of_its_jobs_and_does_not_free_what_it_holds(tmp_path: Path) -> None:
    with WorkerProcesses(1) as pool:
        pool.submit(hold, tmp_path).result()
    assert [path.name for path in tmp_path.iterdir()] == ["exit handler"]
