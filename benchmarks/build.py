"""A whole build over real captions: time, memory and counts by stage.

    python -m benchmarks.build CAPTIONS.jsonl [--pairs 5000 10000 20000] [--prefect]

CAPTIONS is any text-only input with a few captions an image (COCO's captions as JSON lines, say). For each number of
pairs a build with every stage but retrieval runs in a process of its own; the table tells whether candidates =
kept + rejected in every stage of its manifest, the seconds of each stage (summed over its parts), and the peak memory
of the largest process. Ratios between rows say how the build scales; absolute seconds are this machine's.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

SECTIONS: dict[str, Any] = {"negatives": {}, "positives": {}, "conversations": {}, "refine": {}, "part_size": 2_000}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, help="JSON lines with captions")
    parser.add_argument("--pairs", type=int, nargs="+", default=[5_000, 10_000, 20_000], help="pairs of each build")
    parser.add_argument("--prefect", action="store_true", help="run through Prefect; its start is in the wall time")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for pairs in chosen.pairs:
            report(*build(chosen.captions, pairs, Path(folder) / str(pairs), prefect=chosen.prefect))


def build(captions: Path, pairs: int, folder: Path, *, prefect: bool) -> tuple[dict[str, Any], float]:
    """Build from the first ``pairs`` rows; return the manifest and the wall seconds of the whole command."""
    folder.mkdir()
    with captions.open(encoding="utf-8") as lines:
        (folder / "captions.jsonl").write_text("".join(islice(lines, pairs)), encoding="utf-8")
    config = {"name": "benchmark", "input": {"path": "captions.jsonl"}, **SECTIONS}
    (folder / "build.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "pairwright", "build", str(folder / "build.yaml"), "--out", str(folder / "out")]
    started = time.perf_counter()
    subprocess.run([*command, *([] if prefect else ["--no-prefect"])], check=True, capture_output=True)
    seconds = time.perf_counter() - started
    return json.loads((folder / "out" / "manifest.json").read_text()), seconds


def report(manifest: dict[str, Any], seconds: float) -> None:
    """Print the stages of one build."""
    stages = manifest["stages"]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    pairs = stages["pairs"]["kept"]
    print(f"\n{pairs:,} pairs: {seconds:.1f} s wall, {pairs / seconds:,.0f} pairs/s, peak {peak:,.0f} MiB so far")
    print(f"{'stage':<14}{'unit':<10}{'candidates':>11}{'kept':>9}{'rejected':>10}{'adds up':>9}{'seconds':>9}")
    for name, stage in stages.items():
        rejected = sum(stage["rejected"].values())
        adds_up = "yes" if stage["candidates"] == stage["kept"] + rejected else "NO"
        print(
            f"{name:<14}{stage['unit']:<10}{stage['candidates']:>11,}{stage['kept']:>9,}{rejected:>10,}"
            f"{adds_up:>9}{stage['seconds']:>9.1f}"
        )


if __name__ == "__main__":
    main()
