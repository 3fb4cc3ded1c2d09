"""Time and memory of a command with everything that it starts, read from ``/proc`` (Linux).

Memory is the sum over the processes of the tree at one moment, seen every 20 ms: *resident* counts pages of mapped
files, which the kernel may take back at any time and which processes that map the same file count twice;
*anonymous* is what they allocated themselves. Peaks shorter than 20 ms are missed.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.02
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


@dataclass(frozen=True)
class Measured:
    """What a command used: seconds of wall and CPU, peak memory in bytes; what it printed, and its exit code.

    ``own_cpu`` is the CPU of its first process alone, seen like the memory.
    """

    wall: float
    cpu: float
    resident: int
    anonymous: int
    stdout: str
    code: int = 0
    own_cpu: float = 0.0


def measured(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    limit: float | None = None,
    check: bool = True,
) -> Measured:
    """Run ``command`` and wait for it.

    Args:
        command: with its arguments.
        env: its environment; None: that of this process.
        log: file for what it says on stderr; None: it passes through.
        limit: seconds after which it is killed with all that it started, which is the exit code -9.
        check: end this program where the command fails.
    """
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)  # a fork server ends after its parent
    others = _children(os.getpid())
    before = os.times()
    started = time.perf_counter()
    with (
        open(log or os.devnull, "ab") as said,  # noqa: PTH123 - either kind of path
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said if log else None, text=True, env=env) as process,
    ):
        sampler = _Sampler(process.pid)
        sampler.start()
        try:
            stdout, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)
            stdout, _ = process.communicate()
        wall = time.perf_counter() - started
        sampler.stop()
    for orphan in _children(os.getpid()) - others:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(orphan, 0)
    if process.returncode and check:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(wall, cpu, sampler.resident, sampler.anonymous, stdout, process.returncode, sampler.own_cpu)


def kill_tree(root: int) -> None:
    """Kill a process and all that it started, at once."""
    for process in _tree(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


class _Sampler(threading.Thread):
    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.resident = self.anonymous = 0
        self.own_cpu = 0.0
        self._root = root
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(INTERVAL):
            self.own_cpu = max(self.own_cpu, _cpu(self._root))
            sizes = [_memory(process) for process in _tree(self._root)]
            self.resident = max(self.resident, sum(resident for resident, _ in sizes))
            self.anonymous = max(self.anonymous, sum(anonymous for _, anonymous in sizes))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _tree(root: int) -> list[int]:
    found = [root]
    for process in found:  # grows while it is read
        found += _children(process)
    return found


def _children(process: int) -> set[int]:
    tasks = _listed(Path(f"/proc/{process}/task"))
    return {int(child) for task in tasks for child in _read(task / "children").split()}


def _memory(process: int) -> tuple[int, int]:
    """Return resident and anonymous bytes; zeros when the process is gone."""
    fields = dict(line.split(":", 1) for line in _read(Path(f"/proc/{process}/status")).splitlines() if ":" in line)
    return tuple(int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]  # two names, two sizes


def _cpu(process: int) -> float:
    """Return the CPU seconds of a process with its threads, without its children; 0 when it is gone."""
    fields = _read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []
