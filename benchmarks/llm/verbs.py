"""Throughput of the verbs that ask a model: rows/s and CPU of the whole command, checks and output included.

    python -m benchmarks.llm.verbs [VERB ...] [--rows 5000] [--captions FILE] [--workers 1 2] [--latency 0 100] [--runs 1]
        [--at-once 200] [--captions-per-request N] [--estimates]

Verbs: those of `VERBS`, by default all. Captions get an image of their own each; the verbs that read candidate rows get
negatives of these captions. The answers are those of ``dev llm-server --plausible``; they are recorded first, and a server
replays them in each run, since it must answer faster than the verb asks. Every run is a new process with an empty cache.
Figures are medians of the runs:

    rows/s       of the whole command
    CPU          ms per row of the command with all processes that it starts; and *of a further row*: what the last
                 three quarters of the rows add to a run with the first quarter (more than 512 rows, so that both start
                 worker processes)
    loop         CPU ms per further request of the process with the event loop; with several workers, checks are
                 elsewhere, so that 1000 divided by it is the number of requests/s that one core can send
    requests/s   at the server, from the first tenth of the answers to the last, so without start and end
    busy         requests/s as a share of concurrency / latency

The outputs of all runs of a verb must be the same bytes. ``--estimates`` compares ``--dry-run`` with what the server
counts instead: requests, tokens of prompts and of answers.
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from benchmarks.llm.real_servers import PROMPT
from benchmarks.llm.server_process import PAIRWRIGHT, server, stats
from benchmarks.process_usage import measured

IMAGE_SIDE = 64  # pixels


@dataclass(frozen=True)
class Verb:
    """A command: its words, what it reads, and whether it has the options ``--workers`` and ``--captions-per-request``."""

    words: Sequence[str]
    reads: Literal["captions", "images", "negatives"] = "captions"
    workers: bool = False
    groups: bool = False


VERBS = {
    "negatives": Verb(["generate", "negatives", "--method", "llm"], workers=True, groups=True),
    "positives": Verb(["generate", "positives", "--method", "llm"], workers=True, groups=True),
    "conversations": Verb(["generate", "conversations", "--method", "llm", "--types", "conversation"], workers=True),
    "captions": Verb(["generate", "captions"], "images"),
    "rationales": Verb(["generate", "rationales", "--task", "itm"], "negatives"),
    "triples": Verb(["generate", "triples", "--method", "llm"], "negatives"),
    "judge": Verb(["validate", "--by", "llm"], "negatives"),
    "mistakes": Verb(["generate", "mistakes"], "negatives"),
    "prompt": Verb(["prompts", "ask", "one-sentence"]),
}


@dataclass(frozen=True)
class Ran:
    """A run: seconds, CPU seconds, those of its first process, what the server counted, and the output."""

    wall: float
    cpu: float
    own_cpu: float
    counts: dict[str, Any]
    output: bytes

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        answered: int = self.counts["bodies"]["answered"]
        return answered

    @property
    def rate(self) -> float:
        """Requests/s between the first and the last tenth of the answers."""
        times = sorted(last for _, _, last in self.counts["bodies"]["each"].values())
        first, last = len(times) // 10, len(times) - len(times) // 10 - 1
        return (last - first) / (times[last] - times[first]) if times[last] > times[first] else 0.0


def command_of(verb: Verb, rows: Path, out: Path, given: argparse.Namespace, workers: int) -> list[str]:
    """Return the command of a verb over rows."""
    own = ["--prompts", str(rows.parent / "prompts")] if verb.words[0] == "prompts" else []
    own += ["--workers", str(workers)] if verb.workers else []
    if verb.groups and given.captions_per_request:
        own += ["--captions-per-request", str(given.captions_per_request)]
    cache = ["--cache", str(out.with_name("cache.sqlite")), "--endpoint", "tape"]  # outputs may name requests
    own += ["--model", "small", "--max-concurrency", str(given.at_once)]
    return [*PAIRWRIGHT, *verb.words, str(rows), "--out", str(out), *cache, *own, "--json", "--quiet"]


def run(verb: Verb, rows: Path, url: str, given: argparse.Namespace, workers: int) -> Ran:
    """Run a verb over rows, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        done = measured(
            command_of(verb, rows, out, given, workers), env=environment(url), log=Path(folder) / "log", check=False
        )
        if done.code not in {0, 3}:  # 3: nothing kept
            raise SystemExit(f"{' '.join(verb.words)}: exit code {done.code}: {(Path(folder) / 'log').read_text()}")
        return Ran(done.wall, done.cpu, done.own_cpu, stats(url), out.read_bytes())  # other files name the port


def environment(url: str) -> dict[str, str]:
    """Return the environment of a command that asks a server."""
    return {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "benchmark", "OMP_NUM_THREADS": "1"}


def record(verb: Verb, rows: Path, tape: Path, given: argparse.Namespace) -> bytes:
    """Record the answers to a verb; return its output."""
    with server("--plausible", "--record", str(tape)) as url:
        return run(verb, rows, url, given, 0).output


def first_lines(path: Path, count: int, out: Path) -> Path:
    """Write the first lines of a file to another one."""
    with path.open("rb") as lines:
        out.write_bytes(b"".join(islice(lines, count)))
    return out


def measure(name: str, rows: Path, given: argparse.Namespace) -> None:
    """Measure a verb in all cases and print a row for each."""
    verb = VERBS[name]
    count = sum(1 for _ in rows.open("rb"))
    tape, few = rows.with_suffix(".tape"), first_lines(rows, count // 4, rows.with_suffix(".few.jsonl"))
    record(verb, few, tape, given)  # its last request may be about fewer captions
    output = record(verb, rows, tape, given)
    for latency in given.latency:
        for workers in given.workers if verb.workers else [1]:
            runs, quarters = list[Ran](), list[Ran]()
            for _ in range(given.runs):
                for each, into in ((few, quarters), (rows, runs)):
                    with server("--replay", str(tape), "--latency-ms", str(latency)) as url:
                        into.append(run(verb, each, url, given, workers))
            same = all(each.output == output for each in runs)
            print(
                f"| {name} | {latency:g} ms | {workers} | {_figures(runs, quarters, count, latency and given.at_once / latency * 1000)} | {same} |",
                flush=True,
            )


def _figures(runs: Sequence[Ran], quarters: Sequence[Ran], count: int, most: float) -> str:
    whole, quarter = (
        {name: _median(each, name) for name in ("wall", "cpu", "own_cpu", "requests", "rate")}
        for each in (runs, quarters)
    )
    busy = f"{whole['rate'] / most:.0%}" if most else ""
    further = (whole["cpu"] - quarter["cpu"]) / (count - count // 4) * 1000
    loop = (whole["own_cpu"] - quarter["own_cpu"]) / max(1.0, whole["requests"] - quarter["requests"]) * 1000
    rows = f"{count / whole['wall']:,.0f} | {whole['cpu'] / count * 1000:.2f} | {further:.2f}"
    return f"{rows} | {loop:.2f} | {whole['requests'] / count:.2f} | {whole['rate']:,.0f} | {busy}"


def _median(runs: Sequence[Ran], name: str) -> float:
    return float(statistics.median(getattr(each, name) for each in runs))


def compare_estimate(name: str, rows: Path, given: argparse.Namespace) -> None:
    """Print what ``--dry-run`` estimates for a verb, and what the server counts."""
    verb = VERBS[name]
    with server("--plausible") as url, tempfile.TemporaryDirectory() as folder:
        command = command_of(verb, rows, Path(folder) / "out.jsonl", given, 1)
        log = Path(folder) / "log"
        plan = json.loads(measured([*command, "--dry-run"], env=environment(url), log=log).stdout)
        counts = run(verb, rows, url, given, 1).counts
    billed = {
        "requests": counts["requests"],
        "tokens_in": counts["tokens"]["prompt"],
        "tokens_out": counts["tokens"]["completion"],
    }
    for stage in plan["plan"]:
        for unit, count in billed.items():
            found = stage[unit]
            within = found["low"] <= count <= found["high"]
            print(
                f"| {name} | {unit} | {found['value']:,.0f} | {found['low']:,.0f} - {found['high']:,.0f} | {count:,} | {within} |",
                flush=True,
            )


def write_captions(source: Path, count: int, folder: Path) -> Path:
    """Write captions, each with an image of its own, and a prompt; return the file of the captions."""
    (folder / "prompts").mkdir()
    (folder / "prompts" / "one-sentence.yaml").write_text(PROMPT)
    (folder / "images").mkdir()
    path = folder / "all.jsonl"
    with source.open("rb") as lines, path.open("w") as out:
        for number, line in enumerate(islice(lines, count)):
            image = f"images/{number}.png"
            colour = (number % 256, number // 256 % 256, 160)
            Image.new("RGB", (IMAGE_SIDE, IMAGE_SIDE), colour).save(folder / image)
            out.write(json.dumps({**json.loads(line), "image": image}) + "\n")
    return path


def rows_for(name: str, captions: Path, given: argparse.Namespace) -> Path:
    """Return the file that a verb reads."""
    kind = VERBS[name].reads
    rows = captions.with_name(f"{name}.jsonl")
    if kind == "captions":
        return first_lines(captions, given.rows, rows)
    if kind == "images":
        images = (json.dumps({"image": json.loads(line)["image"]}) + "\n" for line in captions.open())
        rows.write_text("".join(images))
        return rows
    made = captions.with_name("made.jsonl")
    if not made.exists():
        made.write_bytes(record(VERBS["negatives"], captions, captions.with_suffix(".unused"), given))
    return first_lines(made, given.rows, rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("PAIRWRIGHT_TEST_DATA", "../shared/data")) / "coco_captions" / "captions.jsonl"
    parser.add_argument("verbs", nargs="*", help=", ".join(VERBS))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--captions", type=Path, default=data, help="JSONL of captions [COCO's]")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--latency", type=float, nargs="*", default=[0, 100], help="ms")
    parser.add_argument("--at-once", type=int, default=200, help="concurrent requests")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--captions-per-request", type=int, default=0, help="0: the verb's default")
    parser.add_argument("--estimates", action="store_true", help="compare --dry-run with what is billed")
    given = parser.parse_args()
    if unknown := set(given.verbs) - set(VERBS):
        parser.error(f"no verb {', '.join(unknown)}. There are: {', '.join(VERBS)}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.at_once} concurrent requests\n")
    if given.estimates:
        print("| verb | what | estimate | range | billed | within |\n|---|---|--:|--:|--:|---|")
    else:
        titles = ("rows/s", "CPU ms/row", "of a further row", "loop ms/request", "requests/row", "requests/s", "busy")
        print(
            f"| verb | latency | workers | {' | '.join(titles)} | same output |\n|---|--:|--:|{'--:|' * len(titles)}---|"
        )
    with tempfile.TemporaryDirectory() as name:
        captions = write_captions(given.captions, given.rows, Path(name))
        for verb in given.verbs or VERBS:
            (compare_estimate if given.estimates else measure)(verb, rows_for(verb, captions, given), given)


if __name__ == "__main__":
    main()
