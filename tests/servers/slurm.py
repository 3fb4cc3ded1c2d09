"""A simulated Slurm: `sbatch`, `squeue` and `scancel` on PATH, whose array tasks are processes of this machine.

Two tasks of an array run at a time. Tasks can be killed: `Slurm.kill_next` says at which moment the next ones are.
What is started ends with its array, or when the block ends.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Moment = Literal["start", "work"]

AT_ONCE = 2
_TICK = 0.02
_TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


@dataclass(frozen=True)
class Slurm:
    """A simulated cluster; ``bin`` is to be on PATH."""

    bin: Path
    state: Path

    def kill_next(self, *moments: Moment) -> None:
        """Kill the next tasks, one per moment: at their start, or when their array has its first result."""
        (self.state / "kills").write_text("\n".join(moments))

    def be_away(self, times: int) -> None:
        """Let the next calls of sbatch fail because the controller does not answer."""
        (self.state / "away").write_text("x" * times)

    def lose_answers(self, times: int) -> None:
        """Let the next calls of sbatch time out though the array is accepted."""
        (self.state / "lost").write_text("x" * times)

    @property
    def arrays(self) -> list[Path]:
        """The folders of all arrays, in the order of submission."""
        return sorted((path for path in self.state.iterdir() if path.is_dir()), key=lambda path: int(path.name))

    def tasks(self) -> int:
        """Return the number of tasks that have started."""
        return len(list(self.state.glob("*/*.pid")))

    def running(self) -> list[int]:
        """Return the processes of the tasks that run."""
        pids = [int(path.read_text()) for path in self.state.glob("*/*.pid")]
        return [pid for pid in pids if _alive(pid)]

    def unkilled(self) -> list[str]:
        """Return the moments that `kill_next` named and no task has met."""
        return _moments(self.state)


@contextmanager
def simulated_slurm(folder: Path) -> Iterator[Slurm]:
    """Provide a simulated cluster that keeps its state in ``folder``; end all of its tasks with the block."""
    slurm = Slurm(folder / "bin", folder / "state")
    for each in (slurm.bin, slurm.state):
        each.mkdir()
    for command in ("sbatch", "squeue", "scancel"):
        script = slurm.bin / command
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{__file__}" {command} "{slurm.state}" "$@"\n')
        script.chmod(0o755)
    try:
        yield slurm
    finally:
        for array in slurm.arrays:
            _cancel(array)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _moments(state: Path) -> list[str]:
    try:
        return (state / "kills").read_text().split()
    except OSError:
        return []


def _take_one(file: Path) -> bool:
    """Return whether a file counts one more, and count it."""
    left = file.read_text() if file.exists() else ""
    if left:
        file.write_text(left[1:])
    return bool(left)


def _sbatch(state: Path, *arguments: str) -> None:
    if _take_one(state / "away"):
        sys.exit(_TIMED_OUT)
    number = str(1 + sum(path.is_dir() for path in state.iterdir()))
    array = state / number
    array.mkdir()
    script = Path(arguments[-1])
    if not script.read_text().startswith("#!"):
        sys.exit("sbatch: error: This does not look like a batch script.")
    if "no-such-partition" in script.read_text():
        sys.exit("sbatch: error: invalid partition specified: no-such-partition")
    # A scheduler of its own, without a parent, runs the tasks.
    command = [sys.executable, "-S", "-E", __file__, "schedule", str(state), number, str(script)]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    while not (array / "scheduler").exists():
        time.sleep(_TICK)
    if _take_one(state / "lost"):
        sys.exit(_TIMED_OUT)
    print(number)  # noqa: T201 - as sbatch --parsable does


def _schedule(state: Path, number: str, script: str) -> None:
    array, text = state / number, Path(script).read_text()
    options = [word for line in re.findall(r"^#SBATCH (.*)", text, re.MULTILINE) for word in _words(line)]
    given = dict(option.split("=", 1) for option in options if "=" in option)
    (array / "comment").write_text(given["--comment"])
    first, last = re.findall(r"(\d+)-(\d+)", given["--array"])[0]
    output = given["--output"]
    (array / "scheduler.part").write_text(str(os.getpid()))
    waiting = list(range(int(first), int(last) + 1))
    (array / "tasks").write_text(" ".join(map(str, waiting)))
    (array / "scheduler.part").rename(array / "scheduler")
    running: dict[int, tuple[subprocess.Popen[bytes], str]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            task = waiting.pop(0)
            running[task] = _start(state, array, task, script, output)
        for task, (process, moment) in list(running.items()):
            if moment == "start" or (moment == "work" and list(Path(script).parent.glob("result-*.pickle"))):
                os.killpg(process.pid, signal.SIGKILL)
            if process.poll() is not None:
                del running[task]
                (array / f"{task}.done").touch()
        time.sleep(_TICK)


def _words(line: str) -> list[str]:
    """Return the words of a line of options as Slurm does: it splits at spaces, and a # begins a comment."""
    return shlex.split(line, comments=True)


def _start(state: Path, array: Path, task: int, script: str, output: str) -> tuple["subprocess.Popen[bytes]", str]:
    moment, *rest = [*_moments(state), *[""] * 2]
    (state / "kills").write_text("\n".join(filter(None, rest)))
    log_file = re.sub(r"%(.)", lambda found: str(task) if found[1] == "a" else found[1], output)
    with Path(log_file).open("ab") as log:
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task)}
        process = subprocess.Popen(["bash", script], stdout=log, stderr=log, env=environment, start_new_session=True)
    written = array / f"{task}.new"  # whoever sees the file sees the whole number
    written.write_text(str(process.pid))
    written.rename(array / f"{task}.pid")
    return process, moment


def _squeue(state: Path, *arguments: str) -> None:
    number = next((each.partition("=")[2] for each in arguments if each.startswith("--jobs=")), "")
    if not number:
        for path in state.glob("*/comment"):
            print(path.parent.name, path.read_text())  # noqa: T201 - as squeue does
        return
    array = state / number
    tasks = (array / "tasks").read_text().split() if array.is_dir() else []
    left = [task for task in tasks if not (array / f"{task}.done").exists()]
    if not left:
        sys.exit("slurm_load_jobs error: Invalid job id specified")
    print("\n".join(left))  # noqa: T201 - as squeue does


def _scancel(state: Path, *numbers: str) -> None:
    for number in numbers:
        _cancel(state / number)


def _cancel(array: Path) -> None:
    killed = []
    for path in [array / "scheduler", *array.glob("*.pid")]:
        with suppress(OSError, ValueError):
            killed.append(int(path.read_text()))
            os.killpg(killed[-1], signal.SIGKILL)
    while any(map(_alive, killed)):  # a busy machine lets them die a moment later
        time.sleep(_TICK)
    for task in (array / "tasks").read_text().split() if (array / "tasks").exists() else []:
        (array / f"{task}.done").touch()


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {
        "sbatch": _sbatch,
        "schedule": _schedule,
        "squeue": _squeue,
        "scancel": _scancel,
    }
    commands[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
