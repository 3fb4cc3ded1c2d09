"""The papers' claims about training, tested where the truth is known: tiny models from scratch on drawn pictures.

    python -m benchmarks.claims [--claims a/c b ...] [--seeds 0 1 2 3 4] [--results docs/claims.jsonl] [--cache DIR]
    python -m benchmarks.claims --table

Each claim has a module with its world, its arms and its comparisons. Arms of a claim share the pretrained model, the
pictures and the number of steps; seeds differ in weights, pictures and their order. All models are trained by the
recipes of `pairwright train` and measured as by `pairwright evaluate`. Designs and learning rates were chosen on seed 99.

Nothing is downloaded. A seed takes some minutes of one CPU core; what the file of results has is not run again, and
with ``--cache`` an interrupted run resumes with the models that it had trained. With the committed results the table in
``docs/concepts/training.md`` is updated too.
"""

import argparse
import re
import tempfile
import time
import warnings
from pathlib import Path

import torch
from transformers.utils import logging

from benchmarks.claims.registry import CLAIMS
from benchmarks.claims.results import read_rows, rows_of, table, write_rows
from benchmarks.claims.trials import Trials

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS, PAGE = DOCS / "claims.jsonl", DOCS / "concepts" / "training.md"
_TABLE = re.compile(r"<!-- claims -->\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    """Run what the file of results lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [claim.letter for claim in CLAIMS]
    parser.add_argument("--claims", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSONL file that is read and extended")
    parser.add_argument("--cache", type=Path, help="folder of data and models (default: a temporary one)")
    parser.add_argument("--table", action="store_true", help="print the table of the results only")
    asked = parser.parse_args()
    if not asked.table:
        with tempfile.TemporaryDirectory() as folder:
            run(asked.claims, asked.seeds, asked.results, asked.cache or Path(folder))
    rows = read_rows(asked.results)
    print(table([claim for claim in CLAIMS if claim.letter in asked.claims], rows))
    if asked.results.resolve() == RESULTS:
        page, part = PAGE.read_text("utf-8"), f"<!-- claims -->\n{table(CLAIMS, rows)}\n<!-- end -->"
        PAGE.write_text(_TABLE.sub(lambda _: part, page), encoding="utf-8")


def run(letters: list[str], seeds: list[int], results: Path, cache: Path) -> None:
    """Run claims and add their rows to the file after each seed."""
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=UserWarning)
    for claim in (claim for claim in CLAIMS if claim.letter in letters):
        for seed in seeds:
            rows = read_rows(results)
            if any((row.claim, row.seed, row.config) == (claim.letter, seed, claim.config) for row in rows):
                continue
            started = time.process_time()
            found = rows_of(claim, seed, claim.run(Trials(cache, seed)))
            others = [row for row in read_rows(results) if (row.claim, row.seed) != (claim.letter, seed)]
            write_rows(results, [*others, *found])
            for row in found:
                print(claim.letter, seed, row.arm, dict(row.figures), flush=True)
            print(f"{claim.letter} {seed}: {time.process_time() - started:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
