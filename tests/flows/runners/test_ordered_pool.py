"""Work is shared out to processes, and what comes back is in order."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from operator import neg
from pathlib import Path

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.runners.ordered_pool import MAX_JOBS_ALONE, OrderedPool

MANY = range(10 * MAX_JOBS_ALONE)
ASK_PROCESS = "__import__('os').getpid()"  # a test's own functions are not there in another process


def test_results_come_in_the_order_of_the_jobs() -> None:
    with OrderedPool(2) as crew:
        assert list(crew.map_jobs(neg, iter(MANY))) == [(number, -number) for number in MANY]


def test_few_jobs_are_done_here_and_many_elsewhere() -> None:
    with OrderedPool(2) as crew:
        assert {found for _, found in crew.map_jobs(eval, [ASK_PROCESS] * MAX_JOBS_ALONE)} == {os.getpid()}
        assert os.getpid() not in {found for _, found in crew.map_jobs(eval, [ASK_PROCESS] * len(MANY))}


def test_one_worker_is_this_process() -> None:
    with OrderedPool(1) as crew:
        assert {found for _, found in crew.map_jobs(eval, [ASK_PROCESS] * len(MANY))} == {os.getpid()}


def told(read: list[int]) -> Iterator[int]:
    for number in range(1000):
        read.append(number)
        yield number


def test_few_jobs_are_read_ahead() -> None:
    read: list[int] = []
    with OrderedPool(2) as crew:
        results = crew.map_jobs(neg, told(read))
        next(results)
        assert len(read) < 50


def test_an_error_of_a_job_is_raised_here() -> None:
    with OrderedPool(2) as crew, pytest.raises(ValueError, match="no number"):
        list(crew.map_jobs(int, ["no number"] * len(MANY)))


def test_work_that_cannot_be_pickled_is_an_error_and_does_not_hang() -> None:
    with OrderedPool(2) as crew, pytest.raises((pickle.PicklingError, AttributeError), match="pickle"):
        list(crew.map_jobs(lambda number: number, MANY))


def test_a_process_that_dies_is_an_error() -> None:
    with OrderedPool(2) as crew, pytest.raises(PairwrightError, match="fewer --workers") as told:
        list(crew.map_jobs(os._exit, MANY))
    assert not isinstance(told.value, BrokenProcessPool)


INTERRUPTED_AT_START = """
import os, signal
from operator import neg
from pairwright.datasets.errors import PairwrightError
from pairwright.flows.runners.ordered_pool import OrderedPool

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests themselves run in the background
    try:
        with OrderedPool(2) as crew:
            list(crew.map_jobs(neg, range(100)))
    except PairwrightError as error:
        print("ended")
else:  # in a worker, which reads this file before anything else
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupt_while_workers_start_ends_them_without_a_traceback(tmp_path: Path) -> None:
    """Ctrl-C reaches all processes of a terminal, at whatever moment."""
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED_AT_START)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_where_interrupts_are_ignored_workers_ignore_them() -> None:
    """So it is with a script's job in the background: it goes on where others of its terminal are ended."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with OrderedPool(2) as crew:
            interrupts = [f"__import__('os').kill({ASK_PROCESS}, {int(signal.SIGINT)})"] * len(MANY)
            assert len(list(crew.map_jobs(eval, interrupts))) == len(MANY)
    finally:
        signal.signal(signal.SIGINT, before)


FORKED = """
import os, signal
from pairwright.flows.runners.ordered_pool import OrderedPool

if __name__ == "__main__":
    asked = "(__import__('loaded_once').PROCESS, __import__('os').getpid())"
    with OrderedPool(2, preload="loaded_once") as crew:
        found = {pair for _, pair in crew.map_jobs(eval, [asked] * 100)}
        print(len({loader for loader, _ in found}), {loader for loader, _ in found} & {own for _, own in found}, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are spawned")
def test_what_all_workers_need_is_loaded_once_and_none_outlives_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "loaded_once.py").write_text("import os\n\nPROCESS = os.getpid()\n")
    script = tmp_path / "script.py"
    script.write_text(FORKED)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    # It returns when the last process that could write has ended.
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=env, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "1 set()\n")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are spawned")
def test_a_module_that_cannot_be_preloaded_is_no_error() -> None:
    """Workers import what they need themselves."""
    script = "from operator import neg; from pairwright.flows.runners.ordered_pool import OrderedPool\n"
    script += "if __name__ == '__main__':\n    with OrderedPool(2, preload='missing_module') as crew:\n"
    script += "        print(sum(found for _, found in crew.map_jobs(neg, range(100))))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "-4950\n"


def test_deaf_workers_finish_their_work_after_an_interrupt() -> None:
    """Ctrl-C reaches them too; a run that stops has answers checked that it has paid for."""
    with OrderedPool(2, deaf=True) as crew:
        interrupts = [f"__import__('os').kill({ASK_PROCESS}, {int(signal.SIGINT)})"] * len(MANY)
        assert len(list(crew.map_jobs(eval, interrupts))) == len(MANY)
