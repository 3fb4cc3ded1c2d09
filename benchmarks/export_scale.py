"""Exports of many samples: seconds and peak memory of each format, in a process of its own.

    python -m benchmarks.export_scale [--samples 50000] [--only trl,vlmevalkit]

Samples are shards of small pictures with two hard negatives and a conversation of two answers.
"""

import argparse
import io
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from pairwright.datasets.exports.formats import EXPORTS, export
from pairwright.datasets.records import Annotation, Edit, Origin, Pair, Turn, pair_key
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import finish_shards, write_numbered_shards

FORMATS = ("trl", "trl-dpo", "llamafactory", "ms-swift", "hf-parquet", "lmms-eval", "vlmevalkit")
_MADE = Origin("benchmark", 1)


def make_samples(count: int) -> Iterator[Sample]:
    """Yield samples with distinct pictures and texts."""
    for number in range(count):
        out = io.BytesIO()
        Image.new("RGB", (64, 48), (number % 256, number // 256 % 256, 90)).save(out, "JPEG")
        caption = f"a red dog beside {number} cats"
        key = pair_key("scale", str(number), caption)
        negatives = [
            Annotation(
                id=f"{key}-{word}",
                key=key,
                kind="hard_negative",
                origin=_MADE,
                form="replace",
                target="attribute",
                text=caption.replace("red", word),
                source_text=caption,
                edits=(Edit("red", word, (2, 5), (2, 2 + len(word))),),
            )
            for word in ("blue", "green")
        ]
        turns = (Turn("human", "Is there a dog?"), Turn("assistant", "Yes, there is a dog."))
        more = (Turn("human", "What is its color?"), Turn("assistant", "The dog is red."))
        chat = Annotation(id=f"{key}-c", key=key, kind="conversation", origin=_MADE, turns=turns + more)
        pair = Pair(key=key, caption=caption, image="x.jpg", width=64, height=48)
        yield Sample(pair, (*negatives, chat), image=out.getvalue(), image_ext="jpg")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("--one", nargs=3, metavar=("FORMAT", "SHARDS", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        _run_one(*args.one)
        return
    print("| `--to` | rows | CPU s | peak MiB |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        shards = Path(scratch, "shards")
        finish_shards(shards, list(write_numbered_shards(make_samples(args.samples), shards)))
        for name in args.only.split(","):
            out = Path(scratch, name.replace("-", "_") + EXPORTS.get(name).suffixes[0])
            command = [sys.executable, "-m", "benchmarks.export_scale", "--one", name, str(shards), str(out)]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="", flush=True)


def _run_one(name: str, shards: str, out: str) -> None:
    started = time.process_time()
    rows = export(Path(shards), name, Path(out)).rows
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {rows:,} | {time.process_time() - started:.0f} | {peak:,.0f} |")


if __name__ == "__main__":
    main()
