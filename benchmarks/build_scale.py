"""Large text-only builds: rate and memory by the number of pairs, through rules, refinement and shards.

    python -m benchmarks.build_scale [--pairs 250000 500000 1000000] [--workers 2] [--method reference] [--work DIR]
        [--json scale.json]

ColorShape sentences, made here; no images. For each number of pairs a build (`pairs` to `shards`, without retrieval)
runs in processes of its own, all of whose memory is summed while they run (`measuring.py`). A build is linear when the
seconds a thousand pairs, the last column, stay the same from line to line; the stages below each line say which is
not. Seconds of a stage are summed over its parts, so with two workers they come to more than the wall's.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.process_usage import Measured, measured
from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus

GIB = 2**30


def config(folder: Path, workers: int, method: str) -> dict[str, Any]:
    """Return what is built: negatives by rules, refined, packed as texts alone."""
    return {
        "name": "scale",
        "input": {"path": str(folder / "captions.jsonl")},
        "negatives": {},
        "refine": {"method": method},
        "shards": {"images": False},
        "workers": workers,
    }


def build(folder: Path, pairs: int, workers: int, method: str) -> tuple[dict[str, Any], Measured]:
    """Write the corpus, build from it, and return the manifest and what the build used."""
    folder.mkdir(parents=True, exist_ok=True)
    write_corpus(folder, CorpusSpec(pairs=pairs, images=False, captions=1))
    (folder / "build.yaml").write_text(yaml.safe_dump(config(folder, workers, method)))
    command = [sys.executable, "-m", "pairwright", "build", str(folder / "build.yaml"), "--out", str(folder / "out")]
    run = measured([*command, "--no-prefect", "--json"], log=folder / "build.log")
    manifest: dict[str, Any] = json.loads((folder / "out" / "manifest.json").read_text())
    return manifest, run


def told(manifest: dict[str, Any], run: Measured, pairs: int) -> dict[str, Any]:
    """Return the figures of one build."""
    stages = manifest["stages"]
    return {
        "pairs": pairs,
        "negatives": stages["negatives"]["kept"],
        "refined": stages["refine"]["kept"],
        "wall s": run.wall,
        "CPU s": run.cpu,
        "pairs/s": pairs / run.wall,
        "resident GiB": run.resident / GIB,
        "anonymous GiB": run.anonymous / GIB,
        "CPU s a thousand": 1000 * run.cpu / pairs,
        "stages": {name: stage["seconds"] for name, stage in stages.items()},
    }


def report(figures: dict[str, Any]) -> None:
    """Print one line, and the stages below it."""
    for name, value in figures.items():
        if name != "stages":
            print(f"{name} {value:,.2f}" if isinstance(value, float) else f"{name} {value:,}", end="  ")
    stages = ", ".join(f"{name} {1000 * seconds / figures['pairs']:.2f}" for name, seconds in figures["stages"].items())
    print(f"\n    seconds a thousand pairs: {stages}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[250_000, 500_000, 1_000_000], help="of each build")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", choices=("general", "reference"), default="reference", help="of the refinement")
    parser.add_argument("--work", type=Path, help="folder for the builds, which are kept; else a temporary one")
    parser.add_argument("--json", type=Path, help="file for all figures")
    chosen = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for pairs in chosen.pairs:
            folder = (chosen.work or Path(temporary)) / str(pairs)
            lines.append(told(*build(folder, pairs, chosen.workers, chosen.method), pairs))
            report(lines[-1])
            if not chosen.work:
                shutil.rmtree(folder)
    if chosen.json:
        chosen.json.write_text(json.dumps(lines, indent=2))


if __name__ == "__main__":
    main()
