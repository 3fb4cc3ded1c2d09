"""(g) What text alone gives away overstates the gain of hard negatives; refinement removes it (SugarCrepe, section 4.5).

The artifacts are not planted. The negatives are of our own rules as they were before the captions of the pool decided:
no constraint of plausibility, no floor, and an edit model of photo captions. So circles become cones, trains and clocks,
words that no caption of drawn shapes has. One CLIP is finetuned on captions, and by NegCLIP on such negatives. Both are
tested on negatives of the same rules about new pictures, as they are and as `pairwright refine` leaves them, and on
exchanged colours, which no text-only attack detects.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.claims.commands import pairwright
from benchmarks.claims.pictures import COLOURS, caption_of, draw, hard_negatives, make_sample, small_clip, two_kinds
from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import Schedule, Trials
from pairwright.datasets.colorshape.rendering import OUTLINES
from pairwright.datasets.records import compact_json
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample
from pairwright.generators.edits.constraints.table import CONSTRAINTS
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives

_COLOURS, _SHAPES = tuple(COLOURS)[:8], tuple(OUTLINES)


@dataclass(frozen=True)
class Design:
    """Numbers of pictures and steps, and learning rates."""

    pretraining: int = 1600
    pretraining_steps: int = 80
    pretraining_lr: float = 2e-3
    finetuning: int = 600
    steps: int = 48
    lr: float = 1e-3
    test: int = 500
    types: tuple[str, ...] = ("replace-object", "replace-attribute")
    floor: float = 1e-9


DESIGN = Design()


def pictures(seed: int, name: str, count: int) -> list[Sample]:
    """Return pictures of two things, with exchanged colours as their one hard negative."""
    made = []
    for number in range(count):
        rng = make_rng(seed, "claims", "refined", name, number)
        kinds = two_kinds(rng, _COLOURS, _SHAPES)
        swapped = hard_negatives(kinds, rng, _COLOURS, _SHAPES)[:1]
        made.append(make_sample(f"{name}-{number}", caption_of(*kinds), draw(kinds, rng), swapped))
    return made


def early_rules(samples: Sequence[Sample], seed: int) -> list[Sample]:
    """Return the samples with the negatives of the rules without what keeps them plausible alone."""
    skipped = frozenset(one.id for one in CONSTRAINTS if one.group == "plausibility")
    options = NegativeOptions(DESIGN.types, floor=DESIGN.floor, seed=seed, skip_constraints=skipped)
    tokens = load_tagger().tag([sample.pair.caption for sample in samples])
    rules = RuleNegatives(_wordnet(), count_captions(tokens).frozen(), options)
    made = []
    for sample, words in zip(samples, tokens, strict=True):
        rows = rules.annotate(sample.pair, words, make_rng(seed, "claims", "early rules", sample.pair.key))
        made.append(replace(sample, annotations=tuple(row for row in rows if row.status == "kept")))
    return made


_wordnet = cache(load_wordnet)


def refine(trials: Trials, samples: Sequence[Sample]) -> set[str]:
    """Return the ids of the negatives that `pairwright refine` keeps."""
    rows = "".join(
        compact_json(
            {
                "id": row.id,
                "key": sample.pair.key,
                "image": sample.pair.key,
                "caption": sample.pair.caption,
                "negative": row.text,
                "form": row.form,
                "target": row.target,
            }
        )
        + "\n"
        for sample in samples
        for row in sample.annotations
    )
    candidates = trials.save_text("candidates.jsonl", rows)

    def write(out: Path) -> None:
        out.mkdir()
        pairwright("refine", candidates, "--out", out / "refined.jsonl", "--min-keep", 0.02, codes=(0, 3))

    refined = Path(trials.folder("refined", rows, write)) / "refined.jsonl"
    found = map(json.loads, refined.read_text("utf-8").splitlines())
    return {row["id"] for row in found if row["status"] == "kept"}


def only(samples: Sequence[Sample], ids: Collection[str]) -> list[Sample]:
    """Return the samples with the annotations of these ids."""
    return [replace(one, annotations=tuple(row for row in one.annotations if row.id in ids)) for one in samples]


def run(trials: Trials) -> Arms:
    """Return the accuracy of both models on each test, and NegCLIP's gain by test."""
    one, seed, number = DESIGN, trials.seed, trials.number
    seen = trials.save(pictures(seed, "pretraining", number(one.pretraining)))
    edited = early_rules(pictures(seed, "finetuning", number(one.finetuning)), seed)
    swapped = pictures(seed, "test", number(one.test))
    hacked = early_rules(swapped, seed)
    kept = refine(trials, hacked)
    tests = {"unrefined": hacked, "refined": only(hacked, kept), "exchanged colours": swapped}
    said = [*_COLOURS, *_SHAPES, "a an and", *(row.text for one in (*edited, *hacked) for row in one.annotations)]
    new, data = trials.new_clip(said, small_clip()), trials.save(edited)
    base = trials.train("clip", new, seen, Schedule(one.pretraining_steps, one.pretraining_lr))
    found: dict[str, dict[str, float]] = {}
    for arm in ("clip", "negclip"):
        model = trials.train(arm, base, data, Schedule(one.steps, one.lr))
        found[arm] = {
            f"accuracy, {name}": trials.figures("negatives", model, trials.save(test))["all", "accuracy"]
            for name, test in tests.items()
        }
    gains = {
        name: {"gain of NegCLIP": found["negclip"][f"accuracy, {name}"] - found["clip"][f"accuracy, {name}"]}
        for name in tests
    }
    return found | gains


CLAIM = Claim(
    "g",
    "refined",
    "What text alone gives away overstates the gain of hard negatives",
    DESIGN,
    run,
    (
        *(Comparison(f"accuracy, {test}", "negclip", "clip") for test in ("unrefined", "refined", "exchanged colours")),
        *(Comparison("gain of NegCLIP", "unrefined", test) for test in ("refined", "exchanged colours")),
    ),
)
