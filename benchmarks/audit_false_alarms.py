"""How often ``audit`` calls a set hackable in which nothing tells negatives from positives.

    python -m benchmarks.audit_false_alarms CAPTIONS.jsonl [--sets 30]

Rows of CAPTIONS are ``{"image_id", "captions": [...]}``. Both texts of a row are captions of images drawn at random, so
every accuracy that is far from 50% is so by chance. For sets of several types: the number of sets that are hackable,
and of those that would be without a correction for multiple comparisons, by the 95% interval of each accuracy.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pairwright.filters.audit.verdict import Audit, run_audit

SIZES = ((8, 54), (5, 150), (3, 400), (2, 1_000))  # types, and rows of each


def draw_rows(images: Sequence[tuple[str, Sequence[str]]], types: int, rows: int, seed: int) -> pl.DataFrame:
    """Return rows of ``group``, ``positive``, ``negative``, ``type`` whose two texts are captions of random images."""
    rng = random.Random(seed)
    found = []
    for at in range(types * rows):
        (group, own), (_, other) = rng.sample(images, 2)
        found.append((group, rng.choice(own).strip(), rng.choice(other).strip(), f"type {at % types}"))
    return pl.DataFrame(found, schema=["group", "positive", "negative", "type"], orient="row")


def exceeds_alone(audit: Audit) -> bool:
    """Return whether an accuracy is above the limit and its 95% interval above 50%."""
    every = [*audit.attacks.values(), *(each for one in audit.attacks.values() for each in one.by_type.values())]
    return any(each.accuracy > audit.limit and each.low > 0.5 for each in every)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--sets", type=int, default=30, help="sets of each size")
    asked = parser.parse_args()
    read = map(json.loads, asked.captions.read_text(encoding="utf-8").splitlines())
    images = [(str(row["image_id"]), row["captions"]) for row in read]
    print("| types | rows of each | hackable | each accuracy judged alone |\n| --: | --: | --: | --: |")
    for types, rows in SIZES:
        audits = [run_audit(draw_rows(images, types, rows, seed), seed=seed) for seed in range(asked.sets)]
        hackable, alone = (sum(map(found, audits)) for found in (lambda each: bool(each.exceeded), exceeds_alone))
        print(f"| {types} | {rows:,} | {hackable} of {asked.sets} | {alone} of {asked.sets} |", flush=True)


if __name__ == "__main__":
    main()
