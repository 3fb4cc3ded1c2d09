"""Throughput of the verbs that ask a model: rows/s and CPU of the whole command, checks and output included.

    python -m benchmarks.llm.verbs [VERB ...] [--rows 5000] [--captions FILE] [--workers 1 2] [--latency 0 100] [--runs 1]

Verbs: negatives, positives, conversations, rationales (of the negatives), by default all. The answers are those of
``dev llm-server --plausible``; they are recorded first, and a server replays them in each run, since it must answer
faster than the verb asks. Every run is a new process with an empty cache. Figures are medians of the runs:

    rows/s       of the whole command, and of its session, which starts after the imports
    CPU          ms per row of the command with all processes that it starts; and *of a further row*: what the last
                 three quarters of the rows add to a run with the first quarter (more than 512 rows, so that both start
                 worker processes)
    busy         rows/s of the session, as a share of concurrency / latency

The outputs of all runs of a verb must be the same bytes.
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

from benchmarks.llm.server_process import PAIRWRIGHT, server
from benchmarks.process_usage import measured

AT_ONCE = 200
VERBS = {
    "negatives": ["generate", "negatives", "--method", "llm"],
    "positives": ["generate", "positives", "--method", "llm"],
    "conversations": ["generate", "conversations", "--method", "llm", "--types", "conversation"],
    "rationales": ["generate", "rationales", "--task", "itm"],
}


@dataclass(frozen=True)
class Ran:
    """A run: seconds and CPU seconds of the command, rows/s of its session, and its output."""

    wall: float
    cpu: float
    rate: float
    output: bytes


def run(verb: str, rows: Path, url: str, workers: int) -> Ran:
    """Run a verb over rows, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        command = [*PAIRWRIGHT, *VERBS[verb], str(rows), "--out", str(out), "--cache", f"{folder}/cache.sqlite"]
        command += ["--model", "small", "--max-concurrency", str(AT_ONCE), "--json", "--quiet"]
        command += ["--workers", str(workers)] if verb != "rationales" else []
        env = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "benchmark", "OMP_NUM_THREADS": "1"}
        done = measured(command, env=env, log=Path(folder) / "log")
        summary = json.loads(done.stdout)["llm"]
        rate = summary.get("captions_per_second") or summary["rows_per_second"]
        return Ran(done.wall, done.cpu, rate, out.read_bytes())  # other files name requests, hence the server's port


def record(verb: str, rows: Path, tape: Path) -> bytes:
    """Record the answers to a verb; return its output."""
    with server("--plausible", "--record", str(tape)) as url:
        return run(verb, rows, url, 0).output


def first_lines(path: Path, count: int, out: Path) -> Path:
    """Write the first lines of a file to another one."""
    with path.open("rb") as lines:
        out.write_bytes(b"".join(islice(lines, count)))
    return out


def measure(verb: str, rows: Path, folder: Path, given: argparse.Namespace) -> bytes:
    """Measure a verb in all cases and print a row for each; return its output."""
    count = sum(1 for _ in rows.open("rb"))
    tape, few = folder / f"{verb}.tape.jsonl", first_lines(rows, count // 4, folder / f"{verb}.few.jsonl")
    record(verb, few, tape)  # its last request may be about fewer captions
    output = record(verb, rows, tape)
    for latency in given.latency:
        for workers in given.workers if verb != "rationales" else [1]:
            runs, quarters = [], []
            for _ in range(given.runs):
                with server("--replay", str(tape), "--latency-ms", str(latency)) as url:
                    quarters.append(run(verb, few, url, workers))
                    runs.append(run(verb, rows, url, workers))
            same = all(each.output == output for each in runs)
            print(
                f"| {verb} | {latency} ms | {workers} | {_figures(runs, quarters, count, latency)} | {same} |",
                flush=True,
            )
    return output


def _figures(runs: Sequence[Ran], quarters: Sequence[Ran], count: int, latency: float) -> str:
    wall, cpu, rate = (statistics.median(getattr(each, name) for each in runs) for name in ("wall", "cpu", "rate"))
    quarter = statistics.median(each.cpu for each in quarters)
    busy = f"{rate / (AT_ONCE * 1000 / latency):.0%}" if latency else ""
    further = (cpu - quarter) / (count - count // 4) * 1000
    return f"{count / wall:,.0f} | {rate:,.0f} | {cpu / count * 1000:.2f} | {further:.2f} | {busy}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("PAIRWRIGHT_TEST_DATA", "../shared/data")) / "coco_captions" / "captions.jsonl"
    parser.add_argument("verbs", nargs="*", help=", ".join(VERBS))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--captions", type=Path, default=data, help="JSONL of captions [COCO's]")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--latency", type=float, nargs="*", default=[0, 100], help="ms")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    if unknown := set(given.verbs) - set(VERBS):
        parser.error(f"no verb {', '.join(unknown)}. There are: {', '.join(VERBS)}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {AT_ONCE} concurrent requests\n")
    print(
        "| verb | latency | workers | rows/s | rows/s of the session | CPU ms/row | of a further row | busy | same output |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        captions = first_lines(given.captions, given.rows, folder / "captions.jsonl")
        for verb in given.verbs or VERBS:
            rows = captions
            if verb == "rationales":
                rows = folder / "negatives.jsonl"
                rows.write_bytes(record("negatives", captions, folder / "unused.jsonl"))
                rows = first_lines(rows, given.rows, folder / "rows.jsonl")
            measure(verb, rows, folder, given)


if __name__ == "__main__":
    main()
