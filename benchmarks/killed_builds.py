"""Builds that are killed again and again: the same bytes in the end, and no answer paid for twice without need.

    python -m benchmarks.killed_builds [--kills 30] [--pairs 40] [--seed 0] [--workers 2] [--patience 900] [--state FOLDER]

A build of fourteen stages, three of which ask the test server, is made once undisturbed. Then builds of the same config
start in folders of their own, and each run is killed (SIGKILL to its whole process group) some moments, drawn from the
seed, after it tells of a stage, drawn likewise from the next that are still to be made; started again, until it ends by
itself; then the next folder, until there were so many kills. Checked of every build:

- pairs, annotations, rejected rows, rationales and shards are byte for byte those of the undisturbed build;
- `verify` finds nothing, and nothing temporary is left in its folders;
- requests sent <= requests needed + those that at a kill were in flight or whose answer was under 100 ms old.

In flight is what the build has not read: on its way, at the server, or in the system's buffer of a connection. An
answer may lie there for as long as a stage writes the rows of a part, since nothing is read meanwhile; none is sent
meanwhile either, so these are never more than may be asked at once. To see them, a build is stopped (SIGSTOP) and the
system's table of connections read before the kill; so this needs Linux.

With ``--state`` whole builds and the counts of their kills are kept, and the same command goes on with the next build.
Prints a line a kill and a line a build; exit 1 when a check fails. Without Prefect, whose state a build does not rest on.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pairwright.datasets.colorshape.corpus import CorpusSpec, list_box_labels, write_corpus
from pairwright.datasets.verification.checks import verify
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

SAME = (
    "pairs",
    "index",
    "retrieval",
    "chosen",
    "tokens",
    "statistics",
    "drafts",
    "balance",
    "candidates",
    "annotations",
    "rejected",
    "rationales",
    "shards",
)
STAGES = (
    "(start)",
    "pairs",
    "index",
    "retrieve",
    "tag",
    "words",
    "negatives",
    "positives",
    "conversations",
    "balance",
    "balance-positives",
    "refine",
    "rationales",
    "shards",
    "sizes",
)
NEAR = 4  # of the stages to come, the kill is behind one of so many, so that a build is killed more than once
NOTHING_KEPT = 3  # exit code: of some stage, no text was kept, as may be of the test server's answers
YOUNG = 0.1  # seconds: the age of an answer that a kill may take along
CONNECTIONS = Path("/proc/net/tcp")
ESTABLISHED, CLOSE_WAIT = "01", "08"
QUIET_S = 30.0  # for which the server may be busy with what a killed build has sent
RULES = [
    {"contains": "So the answer is", "text": "It says what is known. So the answer is yes."},
]


def config(folder: Path, workers: int) -> dict[str, Any]:
    """Return what is built."""
    return {
        "name": "chaos",
        "input": {"path": str(folder / "captions.jsonl")},
        "retrieve": {"queries": str(folder / "queries.txt"), "k": 30},
        "llm": {"model": "small", "max_concurrency": 6},
        "negatives": {},
        "positives": {"method": "llm"},
        "conversations": {"method": "llm", "types": ["conversation"]},
        "refine": {"method": "reference", "cells": 10},
        "rationales": {},
        "shards": {"samples": 10, "images": False},
        "part_size": 10,
        "workers": workers,
    }


@dataclass(frozen=True)
class Run:
    """One run of the build: when it was killed, in seconds from its first word (0: it ended), and what it said last."""

    killed: float
    said: str


@dataclass
class Account:
    """What was sent to the server in one build, and how much of it a kill excuses."""

    server: Server
    excused: int = 0
    unread: int = 0  # of those: older than `YOUNG`, in the buffers of connections
    paid_twice: list[float] = field(default_factory=list)  # ages at the kill, of answers that it should not have taken
    _moment: float = 0.0
    _lost: frozenset[str] = frozenset()
    _seen: dict[str, list[float]] = field(default_factory=dict)

    def now(self) -> float:
        """Return the server's time."""
        return float(self.server.stats()["seconds"])

    def killed(self, moment: float, unread: int) -> int:
        """Count what a kill at ``moment`` took along: sent since the last one, and unanswered, unread or young.

        ``unread`` answers had come and were not read yet: the latest, since they are read as they come.
        """
        each = self.ended()
        before = {key: self._seen.get(key, [0, 0, 0.0]) for key in each}
        come = {key: row for key, row in each.items() if row[0] > before[key][0]}
        answered = sorted((key for key, row in come.items() if row[1] > before[key][1]), key=lambda key: come[key][2])
        lost = {key for key in come if key not in answered or come[key][2] > moment - YOUNG}
        lost.update(answered[-unread:] if unread else ())
        self._lost = frozenset(lost | {key for key in self._lost if key not in come})
        self.excused += len(lost)
        self.unread += (
            len({*answered[-unread:]} & {key for key in lost if come[key][2] <= moment - YOUNG}) if unread else 0
        )
        self._seen, self._moment = each, moment
        return len(lost)

    def ended(self) -> dict[str, list[float]]:
        """Note what was asked again without need since the last kill; return each body's count, answers and last time."""
        each: dict[str, list[float]] = self.server.stats(each=True)["bodies"]["each"]
        for key, (came, answered, last) in self._seen.items():
            if each[key][0] > came and answered and key not in self._lost:
                self.paid_twice.append(round(self._moment - last, 3))
        return each


@dataclass(frozen=True)
class Moment:
    """When to kill: so many seconds after a stage was told of."""

    stage: str
    seconds: float


def run_build(folder: Path, out: Path, url: str, moment: Moment | None, account: Account) -> Run:
    """Build, or go on building; kill the process group at ``moment``, if it still runs."""
    command = [sys.executable, "-m", "pairwright", "build", str(folder / "build.yaml"), "--out", str(out)]
    env = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none-is-needed"}
    log = out.with_suffix(".log")
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "--no-prefect"], stdout=subprocess.DEVNULL, stderr=said, env=env, start_new_session=True
        )
    with process:
        started = time.monotonic()
        if _waited(process, log, moment):
            os.killpg(process.pid, signal.SIGSTOP)
            now, unread = account.now(), _unread(account.server.port)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _wait_for_quiet(account.server.port)
            account.killed(now, unread)
            return Run(time.monotonic() - started, _told(log)[-1])
    if process.returncode not in {0, NOTHING_KEPT}:
        raise SystemExit(f"the build failed:\n{log.read_text()}")
    return Run(0.0, _told(log)[-1])


def _connections(port: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield state and unread bytes of the connections whose ``end`` (1: here, 2: there) is ``port``."""
    for line in CONNECTIONS.read_text().splitlines()[1:]:
        columns = line.split()
        if int(columns[end].partition(":")[2], 16) == port:
            yield columns[3], int(columns[4].partition(":")[2], 16)


def _unread(port: int) -> int:
    """Return how many answers of the server at ``port`` wait to be read."""
    return sum(size > 0 for state, size in _connections(port, 2) if state == ESTABLISHED)


def _wait_for_quiet(port: int) -> None:
    """Wait until the server at ``port`` has dealt with all that dead clients have sent."""
    ends = time.monotonic() + QUIET_S
    while any(state in {ESTABLISHED, CLOSE_WAIT} for state, _ in _connections(port, 1)):
        if time.monotonic() > ends:
            raise SystemExit(f"a client of the server lives on, {QUIET_S:.0f} s after the kill of its build")
        time.sleep(0.005)


def _waited(process: "subprocess.Popen[bytes]", log: Path, moment: Moment | None) -> bool:
    """Wait for the moment, or for the end; say whether the process still runs."""
    while moment is not None and moment.stage not in _told(log) and process.poll() is None:
        time.sleep(0.01)
    try:
        process.wait(moment.seconds if moment else None)
    except subprocess.TimeoutExpired:
        return True
    return False


def _told(log: Path) -> list[str]:
    """Return the stages whose end was told, in order, behind the start once there is a first word."""
    lines = log.read_text().splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ")]  # some are of messages
    return ["(start)"] * bool(lines) + [name for name in named if name in STAGES]


def digests(out: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that has to be the same."""
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in _files(out)}


def _files(out: Path) -> Iterator[Path]:
    return (path for folder in SAME for path in sorted((out / folder).rglob("*")) if path.is_file())


def left_behind(out: Path) -> list[str]:
    """Return the names of temporary files in the folders that trainers read."""
    return [path.name for path in _files(out) if ".tmp-" in path.name]


def check(out: Path, wanted: Mapping[str, str], sent: int, needed: int, account: Account) -> list[str]:
    """Return what is wrong with a build that was killed."""
    found = digests(out)
    wrong = [f"{name} differs" for name in sorted({*found, *wanted}) if found.get(name) != wanted.get(name)]
    wrong += [f"{name} was left behind" for name in left_behind(out)]
    wrong += [str(problem) for problem in verify(out)]
    if sent > needed + account.excused:
        wrong.append(f"asked again though answered so many seconds before the kill: {account.paid_twice}")
    return wrong


@dataclass
class State:
    """What has been done, whole builds only.

    The server keeps its port: rows name the request that they come from by its key, which the address is a part of.
    """

    port: int = 0
    whole: float = 0.0  # seconds of the undisturbed build
    needed: int = 0
    kills: int = 0
    builds: int = 0
    failed: int = 0
    excused: int = 0
    unread: int = 0
    again: int = 0  # requests sent beyond those needed


@contextmanager
def _folder(chosen: argparse.Namespace) -> Iterator[Path]:
    """Give the folder of builds and state: the one named, kept, or one for this run."""
    if chosen.state is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    chosen.state.mkdir(parents=True, exist_ok=True)
    asked = {name: getattr(chosen, name) for name in ("pairs", "seed", "workers", "latency_ms")}
    named = chosen.state / "asked.json"
    if named.exists() and json.loads(named.read_text()) != asked:
        raise SystemExit(f"{chosen.state}: of other settings ({named.read_text()}). Give another folder.")
    named.write_text(json.dumps(asked))
    yield chosen.state


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--latency-ms", type=float, default=60.0, help="of the test server")
    parser.add_argument("--patience", type=float, default=900.0, help="seconds, after which no build is begun")
    parser.add_argument("--state", type=Path, help="folder to go on in, and to leave for the next run")
    chosen = parser.parse_args()
    script = ServerScript(latency_ms=chosen.latency_ms, rules=RULES)
    with _folder(chosen) as folder, ExitStack() as stack:
        kept = folder / "state.json"
        state = State(**json.loads(kept.read_text())) if kept.exists() else State()
        server = stack.enter_context(serve_in_thread(ServerApp(script), port=state.port))
        state.port = server.port
        if not (folder / "build.yaml").exists():
            write_corpus(folder, CorpusSpec(pairs=chosen.pairs, images=False))
            (folder / "queries.txt").write_text("\n".join(f"a {word}" for word in list_box_labels()))
            (folder / "build.yaml").write_text(yaml.safe_dump(config(folder, chosen.workers)))
        return _all(folder, server, chosen, state)


def _all(folder: Path, server: Server, chosen: argparse.Namespace, state: State) -> int:
    started, kept, undisturbed = time.monotonic(), folder / "state.json", folder / "undisturbed"
    if not state.needed:
        shutil.rmtree(undisturbed, ignore_errors=True)
        run_build(folder, undisturbed, server.url, None, Account(server))
        state.whole, state.needed = time.monotonic() - started, server.stats()["requests"]
        kept.write_text(json.dumps(asdict(state)))
    wanted = digests(undisturbed)
    print(f"undisturbed: {state.whole:.1f} s, {state.needed} requests, {len(wanted)} files", flush=True)
    while state.kills < chosen.kills and time.monotonic() - started < chosen.patience:
        server.reset()
        _one(folder, server, chosen, state, wanted)
        kept.write_text(json.dumps(asdict(state)))
    print(
        f"{state.kills} kills, {state.builds} builds, {state.failed} not as they should be; requests sent again:"
        f" {state.again}, excused: {state.excused}, of them unread for over {YOUNG * 1000:.0f} ms: {state.unread}"
    )
    return 1 if state.failed or state.kills < chosen.kills else 0


def _one(folder: Path, server: Server, chosen: argparse.Namespace, state: State, wanted: Mapping[str, str]) -> None:
    """Make one build, killed again and again; note in ``state`` what came of it."""
    number = state.builds + 1
    dice, out, account = random.Random(f"{chosen.seed}/{number}"), folder / f"build-{number}", Account(server)
    shutil.rmtree(out, ignore_errors=True)  # of a run of this program that was stopped
    kills, last = state.kills, STAGES[0]
    while True:
        before = account.excused
        moment = None
        if kills < chosen.kills and last != STAGES[-1]:  # killed behind the last stage once, it may end
            at = STAGES.index(last)
            moment = Moment(dice.choice(STAGES[at : at + NEAR]), dice.uniform(0, state.whole / len(STAGES)))
        run = run_build(folder, out, server.url, moment, account)
        if not run.killed:
            break
        kills, last = kills + 1, max(last, run.said, key=STAGES.index)
        lost = account.excused - before
        print(
            f"kill {kills:>3}  build {number:>3}  at {run.killed:5.1f} s  after {run.said:<14} {lost:>3} answers excused",
            flush=True,
        )
    account.ended()
    sent = server.stats()["requests"]
    wrong = check(out, wanted, sent, state.needed, account)
    state.kills, state.builds, state.failed = kills, number, state.failed + bool(wrong)
    state.excused, state.unread = state.excused + account.excused, state.unread + account.unread
    state.again += sent - state.needed
    told = "; ".join(wrong) or "same"
    print(f"build {number}: {sent} requests, {state.needed} needed, {account.excused} excused: {told}", flush=True)
    if not wrong:
        shutil.rmtree(out)


if __name__ == "__main__":
    sys.exit(main())
