"""A pool that runs the jobs of a build as array tasks of a Slurm cluster.

The jobs of a stage become one array, submitted with ``sbatch``; each task runs a share of them (`slurm_task`) and writes the
result of each into a folder of the build directory, which all nodes see on a shared disk. Tasks that end without all of
their results, because they failed, were killed, preempted or timed out, are submitted again with what is left: up to
`RETRIES` times without any progress. Then the build ends with the path of the task's log.

Only ``sbatch``, ``squeue`` and ``scancel`` are called, so that neither accounting nor a Python interface to Slurm is needed.
submitit does not submit failed tasks again (only preempted ones, which it signals itself), and asks ``sacct``, which needs
accounting. A build that ends early cancels its arrays; one that was killed leaves them, and the next run cancels them.
"""

import contextlib
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from pairwright.datasets.atomic_files import write_bytes, write_text
from pairwright.datasets.errors import MissingResourceError, PairwrightError, UsageError
from pairwright.flows.config.sections import SlurmSection
from pairwright.flows.runners.slurm_task import Call, TaskSetup, result_path
from pairwright.flows.state.code_versions import package_versions, source_hash
from pairwright.flows.state.layout import SHARED_MARK

RETRIES = 5  # of a task without progress
FOLDER = ".slurm"  # in the build directory
_TICK_S = 0.1  # between two looks for results; without a further job until an array is submitted
_UNSEEN = re.compile(r"invalid job id", re.IGNORECASE)  # squeue, about a job that has ended a while ago
_AWAY = re.compile(
    r"timed out|unable to contact|connection refused|temporar", re.IGNORECASE
)  # the controller, for a while


@dataclass
class _Waiting:
    """A call without a result."""

    call: Call
    future: "Future[Any]"
    alone: bool = False  # in a task of its own
    failures: int = 0


@dataclass
class _Array:
    """A submitted array: the calls of each of its tasks."""

    id: str
    folder: Path
    tasks: dict[int, list[_Waiting]] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)  # tasks with a result from this submission
    ended: set[int] = field(default_factory=set)  # tasks that squeue did not show at the last look


def check_slurm_commands() -> None:
    """Check that Slurm's commands are installed.

    Raises:
        MissingResourceError: when one is not.
    """
    for command in ("sbatch", "squeue", "scancel"):
        if shutil.which(command) is None:
            raise MissingResourceError(
                f"`{command}` was not found: start the build where Slurm's commands are installed, such as a login node."
            )


def cancel_left_arrays(root: Path) -> None:
    """Cancel the arrays of an earlier build in ``root`` that was killed, and remove their files.

    Without the files, tasks that cannot be cancelled from here end when they start.
    """
    left = []
    for path in (root / FOLDER).glob("*/id"):
        with contextlib.suppress(FileNotFoundError):  # another part of the build removes it at the same time
            left.append(path.read_text())
    if left:
        _run("scancel", *left)
    shutil.rmtree(root / FOLDER, ignore_errors=True)


class SlurmPool(Executor):
    """Runs jobs as array tasks.

    Args:
        root: the build directory.
        section: of the config.
        name: of the build, shown by ``squeue``.
        note: receives messages.

    Raises:
        MissingResourceError: when Slurm's commands are not installed.
    """

    def __init__(self, root: Path, section: SlurmSection, name: str, note: Callable[[str], None]) -> None:
        check_slurm_commands()
        self._root, self._section, self._name, self._note = root, section, name, note
        self._folder, self._mark = root / FOLDER, uuid4().hex
        self._number = 0
        self._new: list[_Waiting] = []
        self._arrays: list[_Array] = []
        self._changed = threading.Condition()
        self._last = 0.0  # time of the last submission of a call
        self._closing = self._failed = self._unanswered = False
        write_text(root / SHARED_MARK, self._mark)
        self._thread = threading.Thread(target=self._work, name="pairwright-slurm", daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run ``fn(*args)`` in an array task; the future raises its error, or `PairwrightError` for a lost task."""
        if kwargs:
            raise TypeError("jobs take positional arguments only")
        return self._submit(fn, args, alone=False)

    def submit_alone(self, fn: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        """Run ``fn(*args)`` in an array task of its own, with all its cores; otherwise like `submit`."""
        return self._submit(fn, args, alone=True)

    def _submit(self, fn: Callable[..., Any], args: tuple[Any, ...], *, alone: bool) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # it cannot be cancelled any more
        with self._changed:
            self._number += 1
            self._new.append(_Waiting(Call(self._number, fn, args), future, alone))
            self._last = time.monotonic()
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as Executor has it
        """End the pool, after its running jobs have ended or, with ``cancel_futures``, are cancelled."""
        if wait and not cancel_futures:
            with self._changed:
                self._changed.wait_for(lambda: not self._new and not self._arrays)
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        if self._arrays:
            _run("scancel", *(array.id for array in self._arrays))
        left = [*self._new, *(each for array in self._arrays for calls in array.tasks.values() for each in calls)]
        self._arrays, self._new = [], []
        for each in left:
            each.future.set_exception(PairwrightError("the build has ended"))
        (self._root / SHARED_MARK).unlink(missing_ok=True)
        if not self._failed and not left:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _work(self) -> None:
        polled = 0.0
        while True:
            with self._changed:
                idle = not self._arrays and not self._new
                if idle:
                    self._changed.notify_all()
                if not self._closing:
                    self._changed.wait(None if idle else _TICK_S)
                if self._closing:
                    return
                settled = time.monotonic() - self._last >= _TICK_S
                new, self._new = (self._new, []) if settled else ([], self._new)
            try:
                if new:
                    self._submit_calls(new)
                self._collect()
                if time.monotonic() - polled >= self._section.poll_seconds:
                    polled = time.monotonic()
                    self._look_for_lost_tasks()
            except Exception as error:  # noqa: BLE001 - raised where results are awaited
                self._fail(error, new)

    def _fail(self, error: Exception, new: Sequence[_Waiting]) -> None:
        self._failed = True
        with self._changed:
            left, self._new = [*new, *self._new], []
        left += [each for array in self._arrays for calls in array.tasks.values() for each in calls]
        if self._arrays:
            _run("scancel", *(array.id for array in self._arrays if array.id))
        self._arrays = []
        for each in left:
            if not each.future.done():
                each.future.set_exception(error)

    def _submit_calls(self, calls: Sequence[_Waiting]) -> None:
        """Submit calls as arrays: those that run alone in a task each, of others a consecutive share per task."""
        alone = [[each] for each in calls if each.alone]
        others = [each for each in calls if not each.alone]
        size = -(-len(others) // self._section.array)
        shares = [others[start : start + size] for start in range(0, len(others), size or 1)] if others else []
        tasks = [*alone, *shares]
        for start in range(0, len(tasks), self._section.array):
            self._submit_array(tasks[start : start + self._section.array])

    def _submit_array(self, tasks: Sequence[list[_Waiting]]) -> None:
        folder = self._folder / uuid4().hex[:12]
        array = _Array("", folder, dict(enumerate(tasks)))
        self._arrays.append(array)  # before anything may fail
        self._folder.mkdir(exist_ok=True)
        folder.mkdir(mode=0o700)  # what tasks read from it can run code
        setup = TaskSetup(self._root, self._mark, source_hash(), tuple(package_versions()), self._section.cpus)
        write_bytes(folder / "setup.pickle", pickle.dumps(setup))
        for number, calls in array.tasks.items():
            write_bytes(folder / f"{number}.pickle", pickle.dumps([each.call for each in calls]))
        script = folder / "script.sh"
        write_text(script, task_script(self._section, self._name, folder, len(tasks)))
        done = self._sbatch(script, folder.name)
        if done.returncode:
            self._arrays.remove(array)
            fix = "Start the build again when Slurm answers." if _is_away(done) else "Correct `slurm` in the config."
            error = UsageError(f"sbatch: {_said(done)}. {fix}")
            for calls in tasks:
                for each in calls:
                    each.future.set_exception(error)
            self._failed = True
            return
        array.id = done.stdout.strip().partition(";")[0]
        write_text(folder / "id", array.id)

    def _sbatch(self, script: Path, mark: str) -> "subprocess.CompletedProcess[str]":
        """Submit a script, up to `RETRIES` times again while Slurm's controller is away.

        A call that timed out may have been accepted: before another one, Slurm is asked for an array with ``mark`` in its
        comment.
        """
        done = _run("sbatch", "--parsable", str(script))
        for _ in range(RETRIES):
            if not (done.returncode and _is_away(done)):
                break
            self._note(f"sbatch: {_said(done)}; trying again")
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, self._section.poll_seconds):
                    break
            found = _find_array(mark)
            if found:
                return subprocess.CompletedProcess([], 0, found, "")
            if found is not None:
                done = _run("sbatch", "--parsable", str(script))
        return done

    def _collect(self) -> None:
        """Take the results that have come."""
        for array in list(self._arrays):
            present = {path.name for path in array.folder.glob("result-*.pickle")}
            for task, calls in array.tasks.items():
                for each in [each for each in calls if result_path(array.folder, each.call.number).name in present]:
                    calls.remove(each)
                    array.finished.add(task)
                    path = result_path(array.folder, each.call.number)
                    outcome = pickle.loads(path.read_bytes())  # noqa: S301 - written by our task
                    if isinstance(outcome, Exception):
                        self._failed = True
                        each.future.set_exception(outcome)
                    else:
                        each.future.set_result(outcome)
            if not any(array.tasks.values()):
                self._arrays.remove(array)
                if not self._failed:
                    shutil.rmtree(array.folder, ignore_errors=True)

    def _look_for_lost_tasks(self) -> None:
        """Submit the jobs of tasks again that have ended without all of their results."""
        again: list[_Waiting] = []
        for array in list(self._arrays):
            queued = queued_tasks(array.id)
            if queued is None:
                if not self._unanswered:
                    self._note("squeue fails: until it works again, tasks that are lost are not submitted again")
                self._unanswered = True
                continue
            self._unanswered = False
            ended = {task for task, calls in array.tasks.items() if calls and task not in queued}
            # Results may appear on this node some seconds after a task has ended on another.
            for task in ended & array.ended:
                calls, array.tasks[task] = array.tasks[task], []
                log = array.folder / f"log-{task}.txt"
                for each in calls:
                    each.failures = each.failures + 1 if task not in array.finished else 0
                if any(each.failures > RETRIES for each in calls):
                    array.tasks[task] = calls
                    raise PairwrightError(
                        f"Slurm task {array.id}_{task} ended {RETRIES + 1} times without a result (failed, killed, preempted, "
                        f"or over its limits). Its log: {log}. Raise `time` or `memory` under `slurm` if these were too small."
                    )
                self._note(
                    f"Slurm task {array.id}_{task} ended without all of its results: submitting it again ({log})"
                )
                again += calls
            array.ended = ended
            if not any(array.tasks.values()):
                self._arrays.remove(array)  # its folder holds the log
        if again:
            self._submit_calls(again)


def task_script(section: SlurmSection, name: str, folder: Path, tasks: int) -> str:
    """Return the batch script of an array.

    Args:
        section: of the config.
        name: of the build.
        folder: with the files of the array.
        tasks: of the array.
    """
    limit = f"%{section.at_once}" if section.at_once else ""
    given = {
        "--job-name": f"pairwright-{name}",
        "--comment": _comment(folder.name),
        "--array": f"0-{tasks - 1}{limit}",
        "--output": _quoted(f"{str(folder).replace('%', '%%')}/log-%a.txt"),
        "--open-mode": "append",
        "--ntasks": "1",
        "--cpus-per-task": str(section.cpus),
        "--partition": section.partition,
        "--account": section.account,
        "--time": section.time,
        "--mem": section.memory,
    }
    options = [*(f"{option}={value}" for option, value in given.items() if value), *section.options]
    lines = [f"#SBATCH {option}" for option in options]
    task = shlex.join([sys.executable, "-m", "pairwright.flows.runners.slurm_task", str(folder)])
    return "\n".join(["#!/bin/bash", *lines, *section.setup, f'exec {task} "$SLURM_ARRAY_TASK_ID"', ""])


def _quoted(value: str) -> str:
    """Return a value for a line of options, which Slurm splits at spaces, and where # begins a comment."""
    return re.sub(r"""([\\"])""", r"\\\1", value).join('""') if re.search(r"""[\s\\"'#]""", value) else value


def queued_tasks(array: str) -> set[int] | None:
    """Return the tasks of an array that wait or run; None if Slurm does not answer."""
    done = _run("squeue", "--noheader", "--array", f"--jobs={array}", "--format=%K")
    if done.returncode:
        return set() if _UNSEEN.search(done.stderr) else None
    return {int(line) for line in done.stdout.split() if line.isdigit()}


def _find_array(mark: str) -> str | None:
    """Return the array with a mark in its comment, also if it has ended; empty without one, None if Slurm does not answer."""
    done = _run("squeue", "--noheader", "--states=all", f"--user={os.getuid()}", "--format=%F %k")
    if done.returncode:
        return None
    found = (line.split() for line in done.stdout.splitlines())
    return next((words[0] for words in found if words[1:] == [_comment(mark)]), "")


def _comment(mark: str) -> str:
    return f"pairwright-{mark}"


def _said(done: "subprocess.CompletedProcess[str]") -> str:
    """Return what a command that failed printed."""
    return (done.stderr.strip() or done.stdout.strip()).rstrip(".")


def _is_away(done: "subprocess.CompletedProcess[str]") -> bool:
    """Return whether a command failed because Slurm's controller did not answer."""
    return bool(_AWAY.search(_said(done)))


def _run(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    with contextlib.suppress(OSError):
        return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - from PATH, as users call them
    return subprocess.CompletedProcess([command, *arguments], 1, "", f"{command} could not be started")
