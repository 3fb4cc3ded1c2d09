"""Throughput of a build stage that asks a model: rows/s and CPU of the whole command, by number of workers.

    python -m benchmarks.llm.builds [--captions 2000] [--part-size 500] [--workers 1 2] [--runs 3] [--against CHECKOUT]

The build makes hard negatives from ColorShape captions; the test server answers with ``--plausible`` answers, recorded
first and replayed in each run, since it must answer faster than the build asks. Each run is a new process with an empty
build directory. Figures are medians: seconds of the stage as the manifest's receipts have them (their end minus their
start), rows/s in it, and CPU seconds of the command with all of its processes, without the server. ``--against`` measures
another checkout of pairwright in turn with this one. The texts of all runs of a checkout must be the same.
"""

import argparse
import hashlib
import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.llm.server_process import PAIRWRIGHT, server
from benchmarks.process_usage import measured
from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus

HERE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """A build: seconds and CPU seconds of the command, seconds of the stage, and a hash of its texts."""

    wall: float
    cpu: float
    stage: float
    texts: str


def run(config: Path, checkout: Path, url: str, workers: int) -> Run:
    """Build with an empty build directory."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [*PAIRWRIGHT, "build", str(config), "--out", str(out), "--no-prefect", "--workers", str(workers)]
        env = {
            **os.environ,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "benchmark",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(checkout / "src"),
        }
        done = measured(command, env=env, log=Path(folder) / "log")
        receipts = sorted((out / "receipts").glob("negatives/*.json"), key=lambda path: path.stat().st_mtime)
        begin = (out / "receipts" / "words" / "all.json").stat().st_mtime
        digest = hashlib.sha256()
        for path in sorted((out / "annotations").glob("negatives-*")):
            digest.update(path.read_bytes())
        return Run(done.wall, done.cpu, receipts[-1].stat().st_mtime - begin, digest.hexdigest())


def row(name: str, runs: Sequence[Run], captions: int) -> str:
    """Return a line of the table."""
    wall, cpu, stage = (statistics.median(getattr(each, what) for each in runs) for what in ("wall", "cpu", "stage"))
    return f"| {name} | {captions / stage:,.0f} | {stage:.1f} | {wall:.1f} | {cpu:.1f} |"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=int, default=2000)
    parser.add_argument("--part-size", type=int, default=500)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--latency", type=float, default=50, help="milliseconds of an answer")
    parser.add_argument("--against", type=Path, help="checkout to compare with")
    given = parser.parse_args()
    checkouts = {"this": HERE, **({"other": given.against.resolve()} if given.against else {})}
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "text", CorpusSpec(pairs=given.captions, images=False))
        config, tape = Path(folder) / "build.yaml", Path(folder) / "tape.jsonl"
        settings = {"name": "t", "input": {"path": "text/captions.jsonl"}, "llm": {"model": "small"}}
        settings |= {"negatives": {"method": "llm"}, "part_size": given.part_size, "shards": {"images": False}}
        config.write_text(yaml.safe_dump(settings))
        with server("--plausible", "--record", str(tape)) as url:
            for checkout in checkouts.values():
                run(config, checkout, url, given.workers[-1])
        found: dict[str, list[Run]] = {}
        with server("--replay", str(tape), "--latency-ms", str(given.latency)) as url:
            for _ in range(given.runs):
                for workers in given.workers:
                    for name, checkout in checkouts.items():
                        found.setdefault(f"{name}, {workers} workers", []).append(run(config, checkout, url, workers))
    print("| build | rows/s in the stage | stage s | wall s | CPU s |\n| --- | ---: | ---: | ---: | ---: |")
    for name, runs in found.items():
        print(row(name, runs, given.captions))
    same = {name.partition(",")[0]: len({each.texts for each in runs}) == 1 for name, runs in found.items()}
    print(json.dumps({"same texts": same, "load": os.getloadavg()}))


if __name__ == "__main__":
    main()
