"""One run of a peer: its job written out, its process measured, its answers checked against what the server says."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.llm.peers.environments import HERE, Peer, environment_of, python_of
from benchmarks.llm.server_process import server, stats
from benchmarks.process_usage import measured

SYSTEM = "Rewrite the caption so that one object is another one. Answer with the new caption only."
LIMIT_S = 150.0  # after which a run is given up
FAULTY = 50  # every so many rows the server has something against one, where it is told so


def caption(number: int) -> str:
    """Return a caption of its own for each number; the test server repeats it."""
    return f"A brown dog runs with a red ball, {number + 1} metres from the sea."


@dataclass(frozen=True)
class Setup:
    """How to run a peer: where its environment is, what it asks, where it keeps what it keeps."""

    peer: Peer
    cache: Path
    url: str
    work: Path
    rows: int
    at_once: int
    system: str = SYSTEM

    def command(self) -> list[str]:
        """Write the captions and return the command."""
        self.work.mkdir(parents=True, exist_ok=True)
        captions = self.work / "captions.json"
        captions.write_text("".join(json.dumps(caption(number)) + "\n" for number in range(self.rows)))
        command = [str(python_of(self.peer, self.cache)), str(HERE / self.peer.script), "--url", self.url]
        command += ["--captions", str(captions), "--system", self.system, "--at-once", str(self.at_once)]
        return [*command, "--work", str(self.work), "--variant", self.peer.variant]


@dataclass(frozen=True)
class Ran:
    """What came of a run.

    Attributes:
        wall, cpu: seconds of the run proper; 0 when it did not get to its end.
        whole, whole_cpu: the same with start and end of the process.
        resident: bytes, the most at one moment.
        right: rows whose answer is the right one.
        rows: in the output, whatever is in them.
        ordered: whether they come in the order of the captions.
        requests: chat requests that the server received.
        code: exit code; -9: it was given up after `LIMIT_S`.
    """

    wall: float
    cpu: float
    whole: float
    whole_cpu: float
    resident: int
    right: int
    rows: int
    ordered: bool
    requests: int
    code: int


def run(setup: Setup, log: Path) -> Ran:
    """Run a peer to its end."""
    before = stats(setup.url)["requests"]
    for name in ("figures.json", "answers.jsonl"):
        (setup.work / name).unlink(missing_ok=True)
    env = environment_of(setup.peer, setup.cache)
    done = measured(setup.command(), env=env, log=log, limit=LIMIT_S, check=False)
    figures, answers = setup.work / "figures.json", setup.work / "answers.jsonl"
    own = json.loads(figures.read_text()) if figures.exists() else {"wall": 0.0, "cpu": 0.0}
    told = [json.loads(line) for line in answers.read_text().splitlines()] if answers.exists() else []
    numbers = [number for number, _ in told]
    return Ran(
        own["wall"],
        own["cpu"],
        done.wall,
        done.cpu,
        done.resident,
        len({number for number, answer in told if answer == f"You said: {caption(number)}"}),
        len(numbers),
        numbers == sorted(numbers),
        stats(setup.url)["requests"] - before,
        done.code,
    )


def run_until(setup: Setup, log: Path, answered: int) -> None:
    """Run a peer until the server has answered so many requests, then kill it with all that it started."""
    began = stats(setup.url)["bodies"]["answered"]
    with log.open("ab") as said:
        process = subprocess.Popen(
            setup.command(),
            env=environment_of(setup.peer, setup.cache),
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    ends = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < ends:
        if stats(setup.url)["bodies"]["answered"] - began >= answered:
            break
        time.sleep(0.01)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def set_up(peer: Peer, cache: Path, rows: int, at_once: int, options: Sequence[str] = ()) -> Iterator[Setup]:
    """Give a fresh server and a fresh folder."""
    with tempfile.TemporaryDirectory(prefix="peers-") as work, server(*options) as url:
        yield Setup(peer, cache, url, Path(work) / "run", rows, at_once)


def more_rows(setup: Setup, rows: int) -> Setup:
    """Return the same job about so many captions more."""
    return replace(setup, rows=setup.rows + rows)
