"""Builds that are killed again and again: the same bytes in the end, and no answer paid for twice without need.

    python -m benchmarks.chaos [--kills 30] [--pairs 40] [--seed 0] [--workers 2] [--patience 900]

A build of twelve stages, three of which ask the test server, is made once undisturbed. Then builds of the same config
start in folders of their own, and each run is killed (SIGKILL to its whole process group) some moments, drawn from the
seed, after it tells of a stage, drawn likewise from those that are still to be made; started again, until it ends by
itself; then the next folder, until there were so many kills. Checked of every build:

- pairs, annotations, rejected rows, rationales and shards are byte for byte those of the undisturbed build;
- `verify` finds nothing, and nothing temporary is left in its folders;
- requests sent <= requests needed + those that at a kill were in flight or whose answer was under 100 ms old.

Prints a line a kill and a line a build; exit 1 when a check fails. Without Prefect, whose state a build does not rest on.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pairwright.datasets.colorshape.corpus import CorpusSpec, vocabulary, write_corpus
from pairwright.datasets.verify import verify
from pairwright.generators.llm.server.app import App
from pairwright.generators.llm.server.script import Script
from pairwright.generators.llm.server.serving import Server, in_thread

SAME = ("pairs", "retrieval", "tokens", "candidates", "annotations", "rejected", "rationales", "shards")
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
    "refine",
    "rationales",
    "shards",
    "sizes",
)
YOUNG = 0.1  # seconds: the age of an answer that a kill may take along
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
    paid_twice: list[float] = field(default_factory=list)  # ages at the kill, of answers that it should not have taken
    _moment: float = 0.0
    _lost: frozenset[str] = frozenset()
    _seen: dict[str, list[float]] = field(default_factory=dict)

    def now(self) -> float:
        """Return the server's time."""
        return float(self.server.stats()["seconds"])

    def killed(self, moment: float) -> int:
        """Count what a kill at ``moment`` took along: sent since the last one, and unanswered or answered just before."""
        each = self.ended()
        before = {key: self._seen.get(key, [0, 0, 0.0]) for key in each}
        self._lost = frozenset(
            key
            for key, (came, answered, last) in each.items()
            if came > before[key][0] and (answered == before[key][1] or last > moment - YOUNG)
        )
        self.excused += len(self._lost)
        self._seen, self._moment = each, moment
        return len(self._lost)

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
            now = account.now()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            account.killed(now)
            return Run(time.monotonic() - started, _told(log)[-1])
    if process.returncode:
        raise SystemExit(f"the build failed:\n{log.read_text()}")
    return Run(0.0, _told(log)[-1])


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
    return ["(start)"] * bool(lines) + [line.split()[0] for line in lines if line.startswith("  ")]


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


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--latency-ms", type=float, default=60.0, help="of the test server")
    parser.add_argument("--patience", type=float, default=900.0, help="seconds, after which no build is begun")
    chosen = parser.parse_args()
    script = Script(latency_ms=chosen.latency_ms, rules=RULES)
    with tempfile.TemporaryDirectory() as temporary, in_thread(App(script)) as server:
        folder = Path(temporary)
        write_corpus(folder, CorpusSpec(pairs=chosen.pairs, images=False))
        (folder / "queries.txt").write_text("\n".join(f"a {word}" for word in vocabulary()))
        (folder / "build.yaml").write_text(yaml.safe_dump(config(folder, chosen.workers)))
        return _all(folder, server, chosen)


def _all(folder: Path, server: Server, chosen: argparse.Namespace) -> int:
    started, dice = time.monotonic(), random.Random(chosen.seed)
    run_build(folder, folder / "undisturbed", server.url, None, Account(server))
    whole, needed, wanted = time.monotonic() - started, server.stats()["requests"], digests(folder / "undisturbed")
    print(f"undisturbed: {whole:.1f} s, {needed} requests, {len(wanted)} files", flush=True)
    kills = builds = failed = 0
    while kills < chosen.kills and time.monotonic() - started < chosen.patience:
        builds += 1
        server.reset()
        out, account = folder / f"build-{builds}", Account(server)
        last = STAGES[0]
        while True:
            before = account.excused
            moment = None
            if kills < chosen.kills and last != STAGES[-1]:  # killed behind the last stage once, it may end
                left = STAGES[STAGES.index(last) :]
                moment = Moment(dice.choice(left), dice.uniform(0, whole / len(STAGES)))
            run = run_build(folder, out, server.url, moment, account)
            if not run.killed:
                break
            kills, last = kills + 1, max(last, run.said, key=STAGES.index)
            lost = account.excused - before
            print(
                f"kill {kills:>3}  build {builds:>3}  at {run.killed:5.1f} s  after {run.said:<14} {lost:>3} answers lost"
            )
        account.ended()
        sent = server.stats()["requests"]
        wrong = check(out, wanted, sent, needed, account)
        failed += bool(wrong)
        print(
            f"build {builds}: {sent} requests, {needed} needed, {account.excused} excused: {'; '.join(wrong) or 'same'}",
            flush=True,
        )
    print(f"{kills} kills, {builds} builds, {failed} not as they should be")
    return 1 if failed or kills < chosen.kills else 0


if __name__ == "__main__":
    sys.exit(main())
