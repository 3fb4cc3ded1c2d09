"""How fast the refinement is, and what it does to real sets of hard negatives.

    python benchmarks/refinement.py FOLDER

FOLDER holds ``coco_captions/captions.jsonl`` (objects with ``image_id`` and ``captions``) and, in
``sugarcrepe_unrefined``, candidate rows in SugarCrepe's layout. Prints: the trigram model on 25, 50 and 100 thousand
captions; Algorithm 1 on up to a million gaps, and on each set; the general refinement of the REPLACE and SWAP sets
together and alone, with the share kept at several targets and what attacks that took no part find on what is left:
each attack left out in turn (and together with what is like it), and a trigram model of captions that no scorer saw. Half of the images' captions train
the scorers, the other half the unseen model. Last, the time on 100,000 rows.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from pairwright.filters.attacks import attack_accuracy
from pairwright.filters.balancing import balance
from pairwright.filters.blind_classifier import held_out_gaps
from pairwright.filters.candidate_files import read_candidates
from pairwright.filters.candidates import refine_candidates
from pairwright.filters.evidence import CLASSIFIERS, classifier_evidence
from pairwright.filters.format import tidied
from pairwright.filters.general import GeneralOptions
from pairwright.filters.groups import text_group
from pairwright.filters.guards import GUARDS, guards
from pairwright.filters.refinement import RefineOptions
from pairwright.filters.scorers import Corpus, fixed_scorers
from pairwright.generators.language.ngrams import TrigramModel
from pairwright.generators.language.vocabulary import FloatArray


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000, help="of the last table")
    arguments = parser.parse_args()
    folder = arguments.folder
    corpus = read_corpus(folder / "coco_captions" / "captions.jsonl")
    time_language_model(list(corpus.captions))
    time_balancing()
    paths = sorted((folder / "sugarcrepe_unrefined").glob("*.json"))
    refine_sets(paths, corpus)
    ours, theirs = corpus.halves
    pool = [path for path in paths if not path.stem.startswith("add")]
    whole = together(pool)
    print(
        f"\n{'set':26} {'in':>6} {'kept':>6} {'share':>6} {'bound':>6} {'worst':>6} {'unseen':>7} {'holds':>6} {'s':>6}"
    )
    for target in (0.51, 0.52, 0.55, 0.60):
        general(f"three pools at {target:.0%}", whole, (ours, theirs), GeneralOptions(target=target))
    for path in paths:
        general(path.stem, together([path]), (ours, theirs), GeneralOptions())
    general("three pools, no corpus", whole, (None, theirs), GeneralOptions())
    alone = [(name,) for name in (*(scorer.name for scorer in fixed_scorers()), *GUARDS, *CLASSIFIERS)]
    for out in (*alone, ("grammar", "likelihood"), ("plausibility", "kinship")):
        general(f"without {', '.join(out)}", whole, (ours, theirs), GeneralOptions(without=out), left_out=out[0])
    time_general(whole, arguments.rows)


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


def together(paths: list[Path]) -> pl.DataFrame:
    """Return the rows of the files as one tidy set; ids say which file they are of."""
    frames = [read_candidates(path).with_columns(id=path.stem + "-" + pl.col("id")) for path in paths]
    return tidied(pl.concat(frames))


def general(
    label: str,
    frame: pl.DataFrame,
    corpora: tuple[Corpus | None, Corpus],
    options: GeneralOptions,
    left_out: str = "",
) -> None:
    """Print what the general refinement keeps of a set, and the accuracy of the best seen and the best unseen attack."""
    ours, theirs = corpora
    start = time.perf_counter()
    refined, outcome = refine_candidates(frame, ours, options)
    seconds = time.perf_counter() - start
    kept = refined.filter(pl.col("status") == "kept")
    worst = max(attack.after for attack in outcome.total.attacks.values())
    unseen = max(attack_accuracy(gaps) for gaps in gaps_of(kept, theirs, ("grammar", "likelihood")))
    print(
        f"{label:26} {outcome.total.rows:6,} {outcome.total.kept:6,} {outcome.total.kept / outcome.total.rows:6.1%} "
        f"{outcome.bound:6,} {worst:6.1%} {unseen:7.1%} {'yes' if outcome.holds else 'no':>6} {seconds:6.1f}",
        end="" if left_out else "\n",
    )
    if left_out:
        found = attack_accuracy(next(iter(gaps_of(kept, ours, (left_out,)))))
        print(f"   {left_out} {found:.1%}", flush=True)


def gaps_of(frame: pl.DataFrame, corpus: Corpus | None, names: tuple[str, ...]) -> Iterator[FloatArray]:
    """Yield the gaps of the named attacks on rows, as trained on these captions."""
    groups = [text_group(*row) for row in frame.select("image", "key", "caption").iter_rows()]
    positives, negatives = frame["caption"].to_list(), frame["negative"].to_list()
    for scorer in (*fixed_scorers(corpus), *guards(corpus)):
        if scorer.name in names:
            yield scorer.gaps(positives, negatives, groups, 1)
    for name in set(names) & set(CLASSIFIERS):
        evidence = classifier_evidence(name, positives, negatives)
        yield held_out_gaps(evidence.features, groups, 1, cost=evidence.cost)


def time_general(frame: pl.DataFrame, number: int) -> None:
    """Print how long the general refinement takes on so many rows: these, over again as those of other images."""
    times = -(-number // len(frame))
    again = [
        frame.with_columns(id=pl.col("id") + f"-{time}", image=pl.col("image") + f"-{time}") for time in range(times)
    ]
    rows = pl.concat(again).head(number)
    start, used = time.perf_counter(), time.process_time()
    refine_candidates(rows, None, GeneralOptions())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(f"\n{len(rows):,} rows: {seconds:.0f} s, {used:.0f} s of processor time, peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
