"""How fast the refinement is, and what it does to real sets of hard negatives.

    python benchmarks/refinement.py FOLDER

FOLDER holds ``coco_captions/captions.jsonl`` (objects with ``image_id`` and ``captions``) and, in
``sugarcrepe_unrefined``, candidate rows in SugarCrepe's layout. Prints three tables: the trigram model on 25, 50 and
100 thousand captions, Algorithm 1 on up to a million gaps, and each set before and after.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from pairwright.filters.balancing import balance
from pairwright.filters.candidate_files import read_candidates
from pairwright.filters.candidates import refine_candidates
from pairwright.filters.refinement import RefineOptions
from pairwright.filters.scorers import Corpus
from pairwright.generators.language.ngrams import TrigramModel


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    corpus = read_corpus(folder / "coco_captions" / "captions.jsonl")
    time_language_model(list(corpus.captions))
    time_balancing()
    refine_sets(sorted((folder / "sugarcrepe_unrefined").glob("*.json")), corpus)


def read_corpus(path: Path) -> Corpus:
    """Return the captions of a JSONL file with their images."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return Corpus(
        [caption for row in rows for caption in row["captions"]],
        [str(row["image_id"]) for row in rows for _ in row["captions"]],
    )


def time_language_model(captions: list[str]) -> None:
    """Print how long fitting and scoring take, and what the model and the process weigh."""
    print(f"{'captions':>9} {'fit s':>6} {'score s':>8} {'trigrams':>9} {'model MB':>9} {'peak MB':>8}")
    for number in (25_000, 50_000, 100_000):
        start = time.perf_counter()
        model = TrigramModel.fit(captions[:number])
        fitted = time.perf_counter()
        model.log_prob(captions[:number])
        scored = time.perf_counter()
        size = sum(array.nbytes for array in vars(model).values() if isinstance(array, np.ndarray)) / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(
            f"{number:9,} {fitted - start:6.2f} {scored - fitted:8.2f} {len(model.trigrams):9,} {size:9.1f} {peak:8.0f}"
        )


def time_balancing() -> None:
    """Print how long Algorithm 1 takes on a grid of 100 x 100 cells."""
    print(f"\n{'gaps':>9} {'balance s':>10} {'kept':>8}")
    for number in (10_000, 100_000, 1_000_000):
        gaps = np.random.default_rng(0).normal(0.1, 0.2, (number, 2)).clip(-1, 1)
        ids = [f"row-{row}" for row in range(number)]
        start = time.perf_counter()
        kept = balance(gaps, ids).kept.sum()
        print(f"{number:9,} {time.perf_counter() - start:10.2f} {kept:8,}")


def refine_sets(paths: list[Path], corpus: Corpus) -> None:
    """Print rows in, rows kept and folded accuracy of both scorers before and after, for each file."""
    print(f"\n{'set':14} {'in':>6} {'kept':>6} {'share':>6}   {'grammar':>14} {'plausibility':>14} {'seconds':>8}")
    for path in paths:
        frame = read_candidates(path)
        start = time.perf_counter()
        _, outcome = refine_candidates(frame, corpus, RefineOptions())
        seconds, total = time.perf_counter() - start, outcome.total
        attacks = [f"{attack.before:.3f} → {attack.after:.3f}" for attack in total.attacks.values()]
        print(
            f"{path.stem:14} {total.rows:6,} {total.kept:6,} {total.kept / total.rows:6.1%}   "
            f"{attacks[0]:>14} {attacks[1]:>14} {seconds:8.1f}"
        )


if __name__ == "__main__":
    main()
