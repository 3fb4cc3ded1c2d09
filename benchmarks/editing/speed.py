"""CPU time of the rules for hard negatives, beside another checkout in the same run.

    python -m benchmarks.editing.speed CAPTIONS.jsonl [--half odd] [--images 1200] [--pool 4000] [--types A,B] [--against OTHER/src]

Rows of the input are ``{"image_id", "captions": [...]}``. Word statistics and the edit model of the captions of the first
``--pool`` images of the half are learned once. A process for each checkout then edits chunk after chunk of the captions of
the first ``--images`` images, in turn, so that what else the machine does slows both down. Tagging is not counted. Printed
as JSON, each a median over the chunks of the second half, in which tables are warm:

- *ms*: of CPU a caption, in batches of 500; *first_ms*: the mean over the first half, with cold tables.
- *alone_ms*: the same, one caption a call, as `OnlineNegatives` does.
- *ratio*: *ms* of this checkout over that of the other one, the median of the ratios of equal chunks.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

CHUNK = 500
ALONE, PART = 200, 50  # captions that are edited alone, and of these, those of one measurement
_WORKER = """
import gc, inspect, json, sys, time
from pathlib import Path
from benchmarks.editing.pool import read_pairs
from pairwright.datasets.rng import make_rng
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import (NegativeOptions, RuleNegatives)

folder, types = Path(sys.argv[1]), tuple(filter(None, sys.argv[2].split(","))) or BENCHMARK_TYPES
pairs = read_pairs([json.loads(line) for line in open(folder / "captions.jsonl", encoding="utf-8")])
pool, model = PoolStatistics.load(folder / "words.parquet"), EditModel.load(folder)
maker = RuleNegatives(load_wordnet(), pool, NegativeOptions(types=types), model)
gc.freeze()
gc.set_threshold(50_000)
for line in sys.stdin:
    start, end, size = map(int, line.split())
    chunk = pairs[start:end]
    tokens = load_tagger().tag([pair.caption for pair in chunk])
    rngs = [make_rng(0, 0, maker.name, maker.version, pair.key) for pair in chunk]
    options = {"screened": False} if size == 1 and "screened" in inspect.signature(maker.annotate_batch).parameters else {}
    began = time.process_time()
    for at in range(0, len(chunk), size):
        maker.annotate_batch(chunk[at : at + size], tokens[at : at + size], rngs[at : at + size], **options)
    print((time.process_time() - began) / len(chunk) * 1e3, flush=True)
"""


class Worker:
    """A process that edits captions with the code of a checkout."""

    def __init__(self, source: str, folder: Path, types: str) -> None:
        paths = [path for path in (source, str(Path.cwd())) if path]
        environment = os.environ | ({"PYTHONPATH": os.pathsep.join(paths)} if source else {})
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(folder), types],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def edit(self, start: int, end: int, size: int) -> float:
        """Return the CPU time of a caption, milliseconds, in batches of a size."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("no pipes to the worker")
        print(start, end, size, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def stop(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def learn(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write the word statistics and the edit model of captions to a folder."""
    from benchmarks.editing.pool import learn_pool, read_pairs

    pool, model = learn_pool(read_pairs(rows))
    pool.save(folder / "words.parquet")
    model.save(folder)


def measure(workers: Sequence[Worker], captions: int) -> dict[str, Any]:
    """Return the figures of this checkout, and of the other one if there are two workers."""
    chunks = [(start, min(start + CHUNK, captions)) for start in range(0, captions, CHUNK)]
    times = [[worker.edit(*chunk, CHUNK) for worker in workers] for chunk in chunks]
    warm, parts = times[len(times) // 2 :], range(max(0, captions - ALONE), captions - PART + 1, PART)
    alone = [[worker.edit(start, start + PART, 1) for worker in workers] for start in parts]
    found = {
        name: {
            "ms": round(median(row[at] for row in warm), 3),
            "first_ms": round(mean(row[at] for row in times[: (len(times) + 1) // 2]), 3),
            "alone_ms": round(median(row[at] for row in alone), 3),
        }
        for at, name in enumerate(("this", "other")[: len(workers)])
    }
    ratios = {"ratio": round(median(one / other for one, other in warm), 3)} if len(workers) > 1 else {}
    return {"captions": captions, **found, **ratios}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--half", choices=["even", "odd"], default="odd", help="lines of the file")
    parser.add_argument("--images", type=int, default=1_200, help="images whose captions are edited")
    parser.add_argument("--pool", type=int, default=4_000, help="images whose captions are learned from")
    parser.add_argument("--learned", type=Path, help="folder with words.parquet and an edit model, instead of learning")
    parser.add_argument("--types", default="", help="separated by commas")
    parser.add_argument("--against", default="", help="PYTHONPATH of another checkout")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.captions.read_text(encoding="utf-8").splitlines()]
    rows = rows[asked.half == "odd" :: 2]
    with TemporaryDirectory() as name:
        folder = Path(name)
        edited = "".join(f"{json.dumps(row)}\n" for row in rows[: asked.images])
        (folder / "captions.jsonl").write_text(edited, encoding="utf-8")
        if asked.learned:
            for path in asked.learned.glob("[wcb]*.[pnj]*"):
                (folder / path.name).symlink_to(path.resolve())
        else:
            learn(rows[: asked.pool], folder)
        captions = sum(bool(text.strip()) for row in rows[: asked.images] for text in row["captions"])
        workers = [Worker(source, folder, asked.types) for source in ("", asked.against)[: 1 + bool(asked.against)]]
        print(json.dumps(measure(workers, captions), indent=1))
        for worker in workers:
            worker.stop()


if __name__ == "__main__":
    main()
