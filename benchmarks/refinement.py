"""How fast the refinement is, and what it does to real sets of hard negatives.

    python -m benchmarks.refinement FOLDER [--part PART]

FOLDER holds ``coco_captions/captions.jsonl`` (objects with ``image_id`` and ``captions``) and, in
``sugarcrepe_unrefined``, candidate rows in SugarCrepe's layout. The parts, all of them without ``--part``:

- *speed*: the trigram model on 25, 50 and 100 thousand captions, Algorithm 1 on up to a million gaps;
- *reference*: Algorithm 1 on each set;
- *curve*: the REPLACE and SWAP sets together: the share kept at several targets;
- *sets*: each set alone, and those together without captions from elsewhere;
- *leave-outs*: each attack left out in turn, or what ``--without`` names alone, and what it finds then;
- *own*: pairs of this toolkit's rules, on both sides, six of a caption and type, from every fifth image;
- *size*: the time on 100,000 rows;
- *parts*: processor time and peak memory of each step of Algorithm 1 in parts of 10,000 rows, each step in its own process:
  the captions with one word of another caption, over again as those of other images.

Half of the images' captions train the scorers. *unseen* is the better of two trigram models of the other half, *MiniLM* a
classifier of sentence embeddings that took no part, where its checkpoint is installed; *s* is processor time.
"""

import argparse
import json
import random
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from pairwright.datasets.errors import MissingResourceError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.filters.attacks.accuracy import compute_attack_accuracy
from pairwright.filters.attacks.evidence import Evidence, build_classifier_evidence
from pairwright.filters.attacks.registry import (
    CLASSIFIERS,
    MEANING,
    WORD_CLUSTERS,
    build_auxiliary_scorers,
    build_fixed_scorers,
)
from pairwright.filters.attacks.text_classifier import compute_repeated_gaps
from pairwright.filters.attacks.word_clusters import compute_cluster_differences
from pairwright.filters.candidates.attack_input import usable_corpus
from pairwright.filters.candidates.files import read_candidates
from pairwright.filters.candidates.format_normalization import normalize_rows
from pairwright.filters.refinement.candidates import refine_candidates
from pairwright.filters.refinement.general.refine import AllAttacksOptions
from pairwright.filters.refinement.one_per_caption import add_original_captions
from pairwright.filters.refinement.reference.cell_quotas import (
    BalancedParts,
    choose_grids,
    count_rows,
    limit_rows,
    list_cells,
)
from pairwright.filters.refinement.reference.fold_assignment import assign_folds
from pairwright.filters.refinement.reference.fold_sums import fit_fold
from pairwright.filters.refinement.reference.parts import count_part, encode_part, score_part
from pairwright.filters.refinement.reference.refine import RefineOptions, refine_scored_rows
from pairwright.filters.scorers.image_groups import text_group
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.flows.commands.generate import GenerateRequest, run_generator
from pairwright.generators.language.trigram_model import TrigramModel

TARGETS = (0.51, 0.52, 0.55, 0.60)
# What SugarCrepe kept of its own candidates.
MIN_KEEP = 0.43
PART_ROWS = 10_000


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=PARTS, help="this part alone")
    parser.add_argument(
        "--without", action="append", default=[], metavar="A,B", help="of leave-outs: these alone; of own, too"
    )
    parser.add_argument("--rows", type=int, default=100_000, help="of the part size")
    parser.add_argument("--images", type=int, default=4_053, help="of the part own")
    parser.add_argument("--also", choices=["meaning"], help="of the part own: MiniLM takes part")
    arguments = parser.parse_args()
    data = Data(arguments.folder)
    for name in [arguments.part] if arguments.part else PARTS:
        print(f"\n{name}")
        PARTS[name](data, arguments)


@dataclass(frozen=True)
class Data:
    """What lies in the folder."""

    folder: Path

    @cached_property
    def corpus(self) -> CaptionCorpus:
        """All captions."""
        return read_corpus(self.folder / "coco_captions" / "captions.jsonl")

    @cached_property
    def halves(self) -> tuple[CaptionCorpus, CaptionCorpus]:
        """The captions of every other image, which train the scorers, and those of the model that takes no part."""
        first = set(sorted(set(self.corpus.groups))[::2])
        rows = list(zip(self.corpus.captions, self.corpus.groups, strict=True))
        parts = ([row for row in rows if (row[1] in first) is side] for side in (True, False))
        one, other = (
            CaptionCorpus([text for text, _ in part], [group for _, group in part], self.corpus.pool) for part in parts
        )
        return one, other

    @property
    def paths(self) -> list[Path]:
        """The sets."""
        return sorted((self.folder / "sugarcrepe_unrefined").glob("*.json"))

    @cached_property
    def pool(self) -> pl.DataFrame:
        """The REPLACE and SWAP sets together."""
        return together([path for path in self.paths if not path.stem.startswith("add")])


def speed(data: Data, _: argparse.Namespace) -> None:
    """Print how long the language model and Algorithm 1 take."""
    time_language_model(list(data.corpus.captions))
    time_balancing()


def reference(data: Data, _: argparse.Namespace) -> None:
    """Print what Algorithm 1 does to each set."""
    refine_sets(data.paths, data.corpus)


def curve(data: Data, _: argparse.Namespace) -> None:
    """Print what is kept at each target."""
    print(HEAD)
    for target in TARGETS:
        general(f"three pools at {target:.0%}", data.pool, data.halves, AllAttacksOptions(target=target))


def sets(data: Data, _: argparse.Namespace) -> None:
    """Print what is kept of each set, and of those together when no other captions are there."""
    print(HEAD)
    for path in data.paths:
        general(path.stem, together([path]), data.halves, AllAttacksOptions())
    general("three pools, no corpus", data.pool, (None, data.halves[1]), AllAttacksOptions())


def leave_outs(data: Data, arguments: argparse.Namespace) -> None:
    """Print what each attack finds that took no part."""
    alone = [
        (name,)
        for name in (
            *(scorer.name for scorer in (*build_fixed_scorers(), *build_auxiliary_scorers())),
            *CLASSIFIERS,
            WORD_CLUSTERS,
        )
    ]
    asked = [tuple(names.split(",")) for names in arguments.without]
    print(HEAD)
    two = (("grammar", "likelihood"), ("plausibility", "cooccurrence"), ("plausibility", "similarity"))
    for out in asked or (*alone, *two):
        general(f"without {', '.join(out)}", data.pool, data.halves, AllAttacksOptions(without=out))


def own(data: Data, arguments: argparse.Namespace) -> None:
    """Print what is kept of pairs by rules, chosen jointly."""
    frame = add_original_captions(
        normalize_rows(own_pairs(data.folder / "coco_captions" / "captions.jsonl", arguments.images))
    )
    without = tuple(name for names in arguments.without for name in names.split(","))
    options = AllAttacksOptions(min_keep=MIN_KEEP, without=without, meaning=bool(arguments.also))
    print(HEAD)
    ours, theirs = data.halves
    general("pairs by rules", frame, (usable_corpus(ours, frame)[0], theirs), options, choose=True)


def size(data: Data, arguments: argparse.Namespace) -> None:
    """Print how long many rows take."""
    time_general(data.pool, arguments.rows)


def parts(data: Data, arguments: argparse.Namespace) -> None:
    """Print what each step of Algorithm 1 in parts takes."""
    print(f"{'rows':>9} {'step':10} {'jobs':>5} {'us a row':>9} {'peak MB':>8}")
    captions = list(data.corpus.captions)
    for number in (20_000, 100_000, 300_000) if arguments.rows == 100_000 else (arguments.rows,):
        with TemporaryDirectory() as scratch:
            time_steps(Path(scratch), captions, number)


def time_steps(folder: Path, captions: Sequence[str], number: int) -> None:
    """Print the processor time and the greatest peak memory of the jobs of each step on so many rows."""
    names, options = [f"{start:09}" for start in range(0, number, PART_ROWS)], RefineOptions()
    folds = range(options.folds)
    steps: Mapping[str, Sequence[tuple[Any, ...]]] = {
        "encode": [(encode_rows, folder, name, captions) for name in names],
        "folds": [(assign_folds, folder, names, options)],
        "count": [(count_part, folder, name) for name in names],
        "fit": [(fit_fold, folder, names, fold) for fold in folds],
        "score": [(score_part, folder, name, folds) for name in names],
    }
    for step, jobs in steps.items():
        print_step(number, step, jobs)
    grids = choose_grids([count_rows(folder, name) for name in names], folds, options)
    print_step(number, "cells", [(list_cells, folder, name, grids, options) for name in names])
    print_step(number, "balance", [(limit_rows, folder, names)])
    print_step(number, "verdicts", [(BalancedParts(grids, options).read_verdicts, folder, name) for name in names])


def print_step(number: int, step: str, jobs: Sequence[tuple[Any, ...]]) -> None:
    """Print the processor time and the greatest peak memory of jobs, which run in one new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        measured = [pool.submit(measure, job, *arguments).result() for job, *arguments in jobs]
    seconds, peak = sum(each for each, _ in measured), max(each for _, each in measured)
    print(f"{number:9,} {step:10} {len(jobs):5} {seconds / number * 1e6:9.0f} {peak:8.0f}", flush=True)


def measure(job: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Return the processor time of a job in seconds, and the peak memory of this process in MB."""
    start = time.process_time()
    job(*arguments)
    return time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def encode_rows(folder: Path, name: str, captions: Sequence[str]) -> None:
    """Store a part of rows: captions with one word of another caption."""
    rng = random.Random(name)
    rows = []
    for row in range(int(name), int(name) + PART_ROWS):
        words, other = captions[row % len(captions)].split(), rng.choice(captions).split()
        rows.append((" ".join(words), " ".join(replace_word(words, rng.choice(other or ["none"]), rng))))
    ids = [f"{rng.getrandbits(128):032x}" for _ in rows]
    groups = [f"image-{int(name) + row}" for row in range(len(rows))]
    positives, negatives = ([pair[side] for pair in rows] for side in (0, 1))
    types = [rng.choice(("replace-object", "replace-attribute", "swap-object", "add-object")) for _ in rows]
    table = {"id": ids, "group": groups, "positive": positives, "negative": negatives, "type": types}
    encode_part(folder, name, pl.DataFrame({"group": groups, "caption": positives}), pl.DataFrame(table))


def replace_word(words: Sequence[str], by: str, rng: random.Random) -> list[str]:
    """Return the words with a random one replaced."""
    place = rng.randrange(len(words)) if words else 0
    return [*words[:place], by, *words[place + 1 :]]


PARTS: Mapping[str, Callable[[Data, argparse.Namespace], None]] = {
    "speed": speed,
    "reference": reference,
    "curve": curve,
    "sets": sets,
    "leave-outs": leave_outs,
    "own": own,
    "size": size,
    "parts": parts,
}
HEAD = f"{'set':30} {'in':>6} {'kept':>6} {'share':>6} {'bound':>6} {'worst':>6} {'unseen':>7} {'MiniLM':>7} {'holds':>6} {'s':>6}"


def read_corpus(path: Path) -> CaptionCorpus:
    """Return the captions of a JSONL file with their images."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return CaptionCorpus(
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
        two = {"grammar": gaps[:, 0], "plausibility": gaps[:, 1]}
        types, same = [""] * number, np.zeros(number, np.bool_)
        kept = refine_scored_rows(pl.Series(ids), types, two, same, RefineOptions()).kept.sum()
        print(f"{number:9,} {time.perf_counter() - start:10.2f} {kept:8,}")


def refine_sets(paths: list[Path], corpus: CaptionCorpus) -> None:
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
    return normalize_rows(pl.concat(frames))


def own_pairs(captions: Path, images: int) -> pl.DataFrame:
    """Return the pairs that rules make of one caption of each of so many images, every fifth; ADD on both sides, too."""
    rows = [json.loads(line) for line in captions.read_text().splitlines()][1::5][:images]
    with TemporaryDirectory() as folder:
        read, out = Path(folder) / "captions.jsonl", Path(folder) / "pairs.jsonl"
        read.write_text("".join(json.dumps(row) + "\n" for row in rows))
        options = {"per_type": 6, "both_sides": True}
        run_generator(GenerateRequest("rules-negatives", options, 0, ReadOptions(input=str(read)), "", out), print)
        return read_candidates(out).filter(pl.col("status") == "kept", pl.col("positive") != "")


def general(
    label: str,
    frame: pl.DataFrame,
    corpora: tuple[CaptionCorpus | None, CaptionCorpus],
    options: AllAttacksOptions,
    *,
    choose: bool = False,
) -> None:
    """Print what the general refinement keeps of a set, and what the best seen and unseen attacks find in it."""
    ours, theirs = corpora
    start = time.process_time()
    refined, outcome = refine_candidates(frame, ours, options, choose=choose)
    seconds = time.process_time() - start
    kept = refined.filter(pl.col("status") == "kept")
    worst = max(attack.after for attack in outcome.total.attacks.values())
    unseen = max(found for _, found in found_in(kept, theirs, ("grammar", "likelihood")))
    by_meaning = "" if options.meaning else next((f"{found:.1%}" for _, found in found_in(kept, None, (MEANING,))), "-")
    left = ", ".join(f"{name} {found:.1%}" for name, found in found_in(kept, ours, options.without))
    print(
        f"{label:30} {outcome.total.rows:6,} {outcome.total.kept:6,} {outcome.total.kept / outcome.total.rows:6.1%} "
        f"{outcome.bound:6,} {worst:6.1%} {unseen:7.1%} {by_meaning:>7} {'yes' if outcome.holds else 'no':>6} {seconds:6.1f}"
        f"   {left}",
        flush=True,
    )
    for name, one in outcome.by_type.items() if choose else ():
        attack, most = max(one.attacks.items(), key=lambda each: each[1].after)
        print(f"  {name:28} {one.rows:6,} {one.kept:6,} {one.kept / one.rows:6.1%} {'':6} {most.after:6.1%} {attack}")


def found_in(frame: pl.DataFrame, corpus: CaptionCorpus | None, names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield what the named attacks find in the rows, trained on these captions; MiniLM's only where it is installed."""
    groups = [text_group(*row) for row in frame.select("image", "key", "caption").iter_rows()]
    negatives = frame["negative"].to_list()
    positives = (
        frame.select(pl.when(pl.col("positive") != "").then("positive").otherwise("caption")).to_series().to_list()
    )
    for scorer in (*build_fixed_scorers(corpus), *build_auxiliary_scorers(corpus)):
        if scorer.name in names:
            yield scorer.name, compute_attack_accuracy(scorer.gaps(positives, negatives, groups, 1))
    captions = corpus.captions if corpus else list(dict.fromkeys(positives))
    for name in (name for name in (*CLASSIFIERS, MEANING, WORD_CLUSTERS) if name in names):
        with suppress(MissingResourceError):
            evidence = read_by(name, positives, negatives, captions)
            folds = compute_repeated_gaps(evidence.features, groups, (1, 2, 3), cost=evidence.cost)
            yield name, float(np.mean([compute_attack_accuracy(gaps) for gaps in folds]))


def read_by(name: str, positives: list[str], negatives: list[str], captions: Sequence[str]) -> Evidence:
    """Return what a classifier reads in the rows; kinds of words are those of the captions."""
    if name != WORD_CLUSTERS:
        return build_classifier_evidence(name, positives, negatives)
    return Evidence.of_features(WORD_CLUSTERS, compute_cluster_differences(positives, negatives, captions))


def time_general(frame: pl.DataFrame, number: int) -> None:
    """Print how long the general refinement takes on so many rows: these, over again as those of other images."""
    times = -(-number // len(frame))
    again = [
        frame.with_columns(id=pl.col("id") + f"-{time}", image=pl.col("image") + f"-{time}") for time in range(times)
    ]
    rows = pl.concat(again).head(number)
    start, used = time.perf_counter(), time.process_time()
    refine_candidates(rows, None, AllAttacksOptions())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(f"\n{len(rows):,} rows: {seconds:.0f} s, {used:.0f} s of processor time, peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
