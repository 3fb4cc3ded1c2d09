"""Large text-only builds: time, CPU, memory and disk by stage and number of pairs, and how far they can be divided.

    python -m benchmarks.build_scale [--pairs 100000 300000 1000000] [--workers 2] [--method reference] [--index]
        [--types replace-attribute] [--work DIR] [--json scale.json]

ColorShape sentences, made here; no images. For each number of pairs a build (`pairs` to `shards`, with ``--index`` also
the index) runs in processes of its own, all of whose memory is summed while they run (`process_usage.py`). A build is
linear when the CPU seconds a thousand pairs stay the same from line to line; the stages below each line say which is not.

A stage is jobs of several kinds, one after another: ``pairs`` scans pieces, numbers the pairs, and writes parts. A kind
with one job cannot be divided; the line below a table has the share of these jobs, and of the build's own process, in
all CPU seconds, and how many times faster 32 nodes with a worker each would be than one: they need what the build's own
process and the start of workers take and, for each kind, its longest job or a 32nd of its CPU time. CPU seconds of jobs
come from the receipts; those of the start of workers, which all nodes spend at the same time, are the rest of what the
system counted.

With ``--work`` builds are kept: the same command goes on where an earlier one was stopped, and figures of a build that
was resumed lack the time before.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from benchmarks.process_usage import Measured, measured
from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from pairwright.flows.state.receipts import Receipt, read_receipts

GIB, MIB = 2**30, 2**20
NODES = 32


def config(folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return what is built: negatives by rules, refined, packed as texts alone."""
    return {
        "name": "scale",
        "input": {"path": str(folder / "captions.jsonl")},
        **({"index": {}} if chosen.index else {}),
        "negatives": {"types": chosen.types.split(",")} if chosen.types else {},
        "refine": {"method": chosen.method},
        "shards": {"images": False},
        "workers": chosen.workers,
    }


def build(folder: Path, pairs: int, chosen: argparse.Namespace) -> Measured:
    """Write the corpus, build from it, and return what the build used."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "build.yaml").exists():
        write_corpus(folder, CorpusSpec(pairs=pairs, images=False, captions=1))
        (folder / "build.yaml").write_text(yaml.safe_dump(config(folder, chosen)))
    command = [sys.executable, "-m", "pairwright", "build", str(folder / "build.yaml"), "--out", str(folder / "out")]
    return measured([*command, "--no-prefect", "--json"], log=folder / "build.log")


def stage_figures(receipts: list[Receipt]) -> dict[str, Any]:
    """Return jobs, seconds of wall (summed over jobs) and CPU, those in single jobs and on `NODES` nodes, and MiB, of a stage."""
    kinds: dict[str, list[Receipt]] = defaultdict(list)
    for receipt in receipts:
        kinds[re.sub(r"-.*|\d+$", "", receipt.part)].append(receipt)
    return {
        "jobs": len(receipts),
        "seconds": sum(each.seconds for each in receipts),
        "cpu": sum(each.cpu for each in receipts),
        "single": sum(each[0].cpu for each in kinds.values() if len(each) == 1),
        "longest": max(each.cpu for each in receipts),
        "divided": sum(
            max(*(job.cpu for job in each), sum(job.cpu for job in each) / NODES, 0) for each in kinds.values()
        ),
        "MiB": sum(output.bytes for each in receipts for output in each.outputs) / MIB,
    }


def figures(out: Path, run: Measured, pairs: int) -> dict[str, Any]:
    """Return the figures of one build."""
    by_stage: dict[str, list[Receipt]] = defaultdict(list)
    for receipt in read_receipts(out):
        by_stage[receipt.stage].append(receipt)
    order = list(json.loads((out / "manifest.json").read_bytes())["stages"])
    stages = {name: stage_figures(by_stage[name]) for name in order}
    in_jobs = sum(stage["cpu"] for stage in stages.values())
    total, outside = max(run.cpu, in_jobs), max(0.0, run.cpu - in_jobs)
    own = min(run.own_cpu, outside)
    single = own + sum(stage["single"] for stage in stages.values())
    divided = outside + sum(stage["divided"] for stage in stages.values())
    return {
        "pairs": pairs,
        "wall s": run.wall,
        "CPU s": run.cpu,
        "CPU s a thousand": 1000 * run.cpu / pairs,
        "own process": own,
        "start of workers": outside - own,
        "single": single / total,
        "speed-up": total / divided,
        "resident GiB": run.resident / GIB,
        "anonymous GiB": run.anonymous / GIB,
        "MiB": sum(stage["MiB"] for stage in stages.values()),
        "stages": stages,
    }


def report(found: dict[str, Any]) -> None:
    """Print the figures of one build."""
    pairs = found["pairs"]
    print(
        f"\n{pairs:,} pairs: wall {found['wall s']:,.0f} s, CPU {found['CPU s']:,.0f} s"
        f" ({found['CPU s a thousand']:.2f} a thousand pairs), resident {found['resident GiB']:.2f} GiB,"
        f" anonymous {found['anonymous GiB']:.2f} GiB, disk {found['MiB']:,.0f} MiB"
    )
    print(f"{'stage':<20}{'jobs':>6}{'CPU s':>9}{'ms a pair':>11}{'single s':>10}{'longest s':>11}{'MiB':>9}")
    for name, stage in found["stages"].items():
        print(
            f"{name:<20}{stage['jobs']:>6}{stage['cpu']:>9.1f}{1000 * stage['cpu'] / pairs:>11.3f}"
            f"{stage['single']:>10.1f}{stage['longest']:>11.1f}{stage['MiB']:>9.1f}"
        )
    for name in ("own process", "start of workers"):
        print(f"{f'({name})':<20}{'':>6}{found[name]:>9.1f}")
    print(
        f"single {found['single']:.1%} of the CPU time; {NODES} nodes: {found['speed-up']:.1f} times faster", flush=True
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 300_000, 1_000_000], help="of each build")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", choices=("general", "reference"), default="reference", help="of the refinement")
    parser.add_argument("--index", action="store_true", help="also build the index")
    parser.add_argument("--types", default="", help="of negatives, separated by commas; default: all")
    parser.add_argument("--work", type=Path, help="folder for the builds, which are kept; else a temporary one")
    parser.add_argument("--json", type=Path, help="file for all figures")
    chosen = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for pairs in chosen.pairs:
            folder = (chosen.work or Path(temporary)) / str(pairs)
            run = build(folder, pairs, chosen)
            lines.append(figures(folder / "out", run, pairs))
            report(lines[-1])
            if not chosen.work:
                shutil.rmtree(folder)
    if chosen.json:
        chosen.json.write_text(json.dumps(lines, indent=2))


if __name__ == "__main__":
    main()
