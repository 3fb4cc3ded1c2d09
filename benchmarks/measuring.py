"""Time and memory of a command with everything that it starts, read from ``/proc`` (Linux).

Memory is the sum over the processes of the tree at one moment, seen every 20 ms: *resident* counts pages of mapped
files, which the kernel may take back at any time and which processes that map the same file count twice;
*anonymous* is what they allocated themselves. Peaks shorter than 20 ms are missed.
"""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.02


@dataclass(frozen=True)
class Measured:
    """What a command used: seconds of wall and CPU, peak memory in bytes, and what it printed."""

    wall: float
    cpu: float
    resident: int
    anonymous: int
    stdout: str


def measured(command: Sequence[str]) -> Measured:
    """Run ``command``, which has to succeed; its stderr passes through."""
    before = os.times()
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        sampler = _Sampler(process.pid)
        sampler.start()
        stdout, _ = process.communicate()
        wall = time.perf_counter() - started
        sampler.stop()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(wall, cpu, sampler.resident, sampler.anonymous, stdout)


class _Sampler(threading.Thread):
    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.resident = self.anonymous = 0
        self._root = root
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(INTERVAL):
            sizes = [_memory(process) for process in _tree(self._root)]
            self.resident = max(self.resident, sum(resident for resident, _ in sizes))
            self.anonymous = max(self.anonymous, sum(anonymous for _, anonymous in sizes))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _tree(root: int) -> list[int]:
    found = [root]
    for process in found:  # grows while it is read
        for task in _listed(Path(f"/proc/{process}/task")):
            found += [int(child) for child in _read(task / "children").split()]
    return found


def _memory(process: int) -> tuple[int, int]:
    """Return resident and anonymous bytes; zeros when the process is gone."""
    fields = dict(line.split(":", 1) for line in _read(Path(f"/proc/{process}/status")).splitlines() if ":" in line)
    return tuple(int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]  # two names, two sizes


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
