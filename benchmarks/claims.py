"""The papers' claims about training, where the truth is known: tiny models from nothing on ColorShape, several seeds.

    python benchmarks/claims.py [--groups edits refined conditions repeated rationales] [--seeds 0 1 2] [--results claims.jsonl]

Nothing is downloaded, and a CPU is enough: some minutes a seed on one core. Data: `claims_data.py`. All models are
trained by our recipes, loaded, saved and measured as `pairwright train` and `pairwright evaluate` do. What is compared
has the same start, the same pictures and the same number of steps; seeds differ in weights, pictures and their order.

(a) hard negatives lift replaced and exchanged words well above plain CLIP (NegCLIP; SugarCrepe)
(b) negatives alone make brittle to hard positives; with both it is not (The Hard Positive Truth, table 1)
(c) local loss, focal weight and smoothing keep more of plain retrieval than the global loss alone (FSC-CLIP, table 2)
(d) embeddings under an instruction find colour, and shape, better than those without (FocalLens, table 5.1)
(e) soft positives against one-to-one, on pairs whose captions repeat (REACT, table 2.5)
(f) rationales as a second task against one text, and against labels alone, at few labels (Distilling step-by-step)
(g) refined negatives against unrefined ones that give themselves away

Printed is what either side reaches, and the mean difference over the seeds with its 95% interval (Student's t over pairs of
runs). A claim is *shown* where the interval lies above 0, *refuted* where it lies below, and open between.
"""

import argparse
import json
import math
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev

import torch
from claims_data import (
    QUESTIONS,
    also_there_is,
    facts,
    one_thing,
    only,
    planted,
    save,
    save_clip,
    save_facts,
    save_student,
    save_words,
    three_things,
    with_edits,
)
from claims_trials import Trials
from transformers.utils import logging

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.records import compact_json
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample
from pairwright.filters.candidates.rows import candidate_frame, refine_candidates
from pairwright.filters.refinement.all_attacks import AllAttacksOptions

Found = dict[str, dict[str, float]]
"""By what was trained, and by what was measured."""

ELSEWHERE = 1_000  # added to a seed: other pictures
PLANTED = 0.9
# Student's t, two-sided 95%, by the number of seeds.
_T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


@dataclass(frozen=True)
class Comparison:
    """One line of the table: ``better`` is claimed to have more of ``measure`` than ``worse``."""

    claim: str
    group: str
    measure: str
    better: str
    worse: str


_EDITS = [
    *(
        Comparison("a", "edits", f"{kind} accuracy", arm, "clip")
        for kind in ("swap-attribute", "replace-object", "replace-attribute")
        for arm in ("negclip", "hn", "fsc-clip")
    ),
    Comparison("b", "edits", "brittleness", "hn", "clip"),
    Comparison("b", "edits", "brittleness", "negclip", "clip"),
    Comparison("b", "edits", "brittleness", "hn", "hp-hn"),
    Comparison("b", "edits", "augmented accuracy", "hp-hn", "hn"),
    Comparison("b", "edits", "augmented accuracy", "hp-hn", "clip"),
    Comparison("c", "edits", "recall@1", "clip", "global loss"),
    Comparison("c", "edits", "recall@1", "fsc-clip", "global loss"),
    Comparison("c", "edits", "swap-attribute accuracy", "fsc-clip", "global loss"),
]
COMPARISONS = [
    *_EDITS,
    Comparison("d", "conditions", "mAP by colour", "focallens-clip", "clip"),
    Comparison("d", "conditions", "mAP by shape", "focallens-clip", "clip"),
    Comparison("e", "repeated", "zero-shot accuracy", "soft positives", "one-to-one"),
    Comparison("f", "rationales", "label accuracy", "multi-task", "label alone"),
    Comparison("f", "rationales", "label accuracy", "multi-task", "single-task"),
    Comparison("g", "refined", "accuracy", "refined", "unrefined"),
    Comparison("g", "refined", "augmented accuracy", "refined", "unrefined"),
    Comparison("g", "refined", "accuracy", "refined", "as many by chance"),
    Comparison("g", "refined", "augmented accuracy", "refined", "as many by chance"),
    Comparison("g", "refined", "accuracy", "nothing planted", "unrefined"),
]


class Begun:
    """What the groups of a seed share: words, a CLIP that has seen three things one way, and data, each made when asked."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self.words = save_words(trials.folder / "words")

    @cached_property
    def base(self) -> str:
        """The CLIP that all begin with."""
        trials = self.trials
        start = save_clip(self.words, trials.folder / "nothing", trials.seed)
        data = save(three_things(trials.seed, trials.number(1200), one_way=True), trials.folder / "one-way")
        return trials.train("base", "clip", (start, data), 300, optimizer__lr=1e-3)

    @cached_property
    def pictures(self) -> tuple[list[Sample], list[Sample]]:
        """Pictures of three things with edits, to train on and to measure on."""
        seed, number = self.trials.seed, self.trials.number
        seen = with_edits(three_things(seed + ELSEWHERE, number(1200)), seed)
        unseen = with_edits(three_things(seed + 2 * ELSEWHERE, number(250)), seed)
        print(f"texts that the oracle refused: {seen.left_out + unseen.left_out}", flush=True)
        return seen.samples, unseen.samples


def edits(begun: Begun) -> Found:
    """Finetune with and without negatives and positives: (a), (b), (c)."""
    trials = begun.trials
    seen, unseen = begun.pictures
    data, test = save(seen, trials.folder / "both"), save(unseen, trials.folder / "test")
    found: Found = {"base": _edits_of(trials, begun.base, test)}
    for name, (recipe, settings) in _FINETUNED.items():
        model = trials.train(name, recipe, (begun.base, data), 200, optimizer__lr=1e-3, **settings)
        found[name] = _edits_of(trials, model, test)
    return found


_GLOBAL = {"method__local_weight": 0, "method__focal": 0, "method__smoothing": 0}
_FINETUNED: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "clip": ("clip", {}),
    "negclip": ("negclip", {"method__negatives": 3}),
    "hn": ("hp-hn", {"method__negatives": 3, "method__positives_weight": 0}),
    "hp-hn": ("hp-hn", {"method__negatives": 3}),
    "global loss": ("fsc-clip", _GLOBAL),
    "fsc-clip": ("fsc-clip", {}),
}


def _edits_of(trials: Trials, model: str, test: str) -> dict[str, float]:
    told = trials.figures("negatives", model, test)
    kinds = ("swap-attribute", "replace-object", "replace-attribute")
    both = trials.figures("retrieval", model, test)
    return {
        **{f"{kind} accuracy": told[kind, "accuracy"] for kind in kinds},
        **_together(told),
        "recall@1": mean(both[way, "recall@1"] for way in ("text to image", "image to text")),
    }


def _together(told: Mapping[tuple[str, str], float]) -> dict[str, float]:
    return {
        "accuracy": told["all", "accuracy"],
        "augmented accuracy": told["all", "augmented"],
        "brittleness": told["all", "brittleness"],
    }


def refined(begun: Begun) -> Found:
    """Train on negatives of which most give themselves away, on those that refinement keeps, and on as many by chance: (g)."""
    trials = begun.trials
    clean, unseen = begun.pictures
    hacked = planted(clean, PLANTED, trials.seed)
    ids = sorted(row.id for one in hacked for row in one.annotations if row.kind == "hard_negative")
    kept = refine(hacked)
    chosen = set(make_rng(trials.seed, "claims", "as many").sample(ids, len(kept)))
    sets = {
        "nothing planted": clean,
        "unrefined": hacked,
        "refined": only(hacked, kept),
        "as many by chance": only(hacked, chosen),
    }
    print(f"refinement keeps {len(kept):,} of {len(ids):,}", flush=True)
    test = save(also_there_is(unseen), trials.folder / "there-is")
    found: Found = {}
    for name, samples in sets.items():
        data = save(samples, trials.folder / f"data {name}")
        settings = {"method__negatives": 3, "optimizer__lr": 1e-3}
        model = trials.train(name, "negclip", (begun.base, data), 200, **settings)
        found[name] = _together(trials.figures("negatives", model, test))
    return found


def refine(samples: Sequence[Sample]) -> set[str]:
    """Return the ids of the negatives that the general refinement keeps."""
    rows = [
        ("", {"id": row.id, "key": one.pair.key, "image": one.pair.key, "caption": one.pair.caption, "negative": row.text,
              "form": row.form, "target": row.target, "status": "kept"})
        for one in samples
        for row in one.annotations
        if row.kind == "hard_negative"
    ]  # fmt: skip
    frame, _ = refine_candidates(candidate_frame(rows), None, AllAttacksOptions(min_keep=0.02))
    return set(frame.filter(frame["status"] == "kept")["id"].to_list())


def conditions(begun: Begun) -> Found:
    """Train on captions, and on questions and answers, of the same pictures: (d)."""
    trials = begun.trials
    seen, _ = one_thing(trials.seed, trials.number(80))
    unseen, labels = one_thing(trials.seed + ELSEWHERE, trials.number(40))
    data, test = save(seen, trials.folder / "one-thing"), save(unseen, trials.folder / "one-thing-test")
    told = trials.folder / "labels.jsonl"
    write_text(told, "".join(compact_json(row) + "\n" for row in labels))
    found: Found = {}
    for name in ("clip", "focallens-clip"):
        model = trials.train(f"{name} of one", name, (begun.base, data), 500, optimizer__lr=1e-3)
        asked = {"labels": told, "by": tuple(QUESTIONS), "asked": QUESTIONS}
        figures = trials.figures("conditions", model, test, **asked)
        found[name] = {f"mAP by {by}": figures[by, "mAP"] for by in QUESTIONS}
    return found


def repeated(begun: Begun) -> Found:
    """Train gated blocks on pictures of sixteen captions, whose repetitions are positives or not: (e)."""
    trials = begun.trials
    seen, _ = one_thing(trials.seed, trials.number(80))
    unseen, labels = one_thing(trials.seed + ELSEWHERE, trials.number(40))
    data, test = save(seen, trials.folder / "repeated"), save(unseen, trials.folder / "repeated-test")
    told, classes = trials.folder / "labels.jsonl", trials.folder / "classes.json"
    write_text(told, "".join(compact_json(row) + "\n" for row in labels))
    names = sorted({row["both"] for row in labels})
    write_text(classes, json.dumps({"classes": names, "templates": ["a {}"]}))
    found: Found = {}
    for name, threshold in (("soft positives", 0.999), ("one-to-one", 2.0)):
        settings = {"method__blocks": 2, "method__threshold": threshold, "optimizer__lr": 1e-3}
        model = trials.train(name, "react", (begun.base, data), 150, **settings)
        figures = trials.figures("zero-shot", model, test, labels=told, by=("both",), classes=classes)
        found[name] = {"zero-shot accuracy": figures["all", "accuracy"]}
    return found


def rationales(begun: Begun) -> Found:
    """Train students on few facts, with and without rationales: (f)."""
    trials = begun.trials
    files = save_facts(facts(trials.seed, trials.number(FEW), 200), trials.folder)
    start = save_student(begun.words, trials.folder / "student", trials.seed)
    found: Found = {}
    for name, objectives in (("multi-task", "multi-task"), ("single-task", "single-task"), ("label alone", "label")):
        single = name == "single-task"
        data = files["single-task" if single else "multi-task"]
        settings = {"method__objectives": objectives, "optimizer__lr": 2e-3}
        model = trials.train(name, "step-by-step", (start, data), 400, **settings)
        figures = trials.figures("rationales", model, data, single=single)
        found[name] = {"label accuracy": next(value for (_, what), value in figures.items() if what == "label")}
    return found


FEW = 200
GROUPS: Mapping[str, Callable[[Begun], Found]] = {
    "edits": edits,
    "refined": refined,
    "conditions": conditions,
    "repeated": repeated,
    "rationales": rationales,
}


def judged(better: Sequence[float], worse: Sequence[float]) -> tuple[float, float, float, str]:
    """Return the mean difference of pairs, its 95% interval, and shown, refuted or open; open below two pairs."""
    differences = [one - other for one, other in zip(better, worse, strict=True)]
    middle = mean(differences)
    if len(differences) < 2:
        return middle, -math.inf, math.inf, "open"
    half = _T95.get(len(differences), 2.23) * stdev(differences) / math.sqrt(len(differences))
    low, high = middle - half, middle + half
    return middle, low, high, "shown" if low > 0 else "refuted" if high < 0 else "open"


def table(found: Mapping[tuple[str, int], Found]) -> str:
    """Return the table of what was found, by group and seed, in Markdown."""
    lines = [
        "| claim | more of | has | than | difference, 95% | seeds | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in COMPARISONS:
        runs = [run for (group, _), run in sorted(found.items()) if group == one.group]
        if not runs:
            continue
        sides = [[run[arm][one.measure] for run in runs] for arm in (one.better, one.worse)]
        middle, low, high, verdict = judged(*sides)
        has, than = (
            f"{name} {100 * mean(values):.1f}" for name, values in zip((one.better, one.worse), sides, strict=True)
        )
        interval = f"{100 * middle:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
        lines.append(f"| {one.claim} | {one.measure} | {has} | {than} | {interval} | {len(runs)} | {verdict} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is not in the file of results yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="none: only print the table")
    parser.add_argument("--results", type=Path, help="JSONL that results are added to, and taken from")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=UserWarning)
    found = read_results(asked.results)
    for seed in asked.seeds:
        missing = [group for group in asked.groups if (group, seed) not in found]
        with tempfile.TemporaryDirectory() as folder:
            begun = Begun(Trials(Path(folder), seed))
            for group in missing:
                found[group, seed] = GROUPS[group](begun)
                print(json.dumps([group, seed, found[group, seed]]), flush=True)
                if asked.results:
                    with asked.results.open("a") as out:
                        out.write(json.dumps([group, seed, found[group, seed]]) + "\n")
    print(table(found))


def read_results(path: Path | None) -> dict[tuple[str, int], Found]:
    """Return what a file of results holds, by group and seed; nothing where there is none."""
    lines = path.read_text().splitlines() if path and path.is_file() else []
    return {(group, seed): found for group, seed, found in map(json.loads, lines)}


if __name__ == "__main__":
    main()
