"""(g) What text alone gives away overstates the gain of hard negatives; refinement removes it (SugarCrepe, section 4.5).

The artifacts are not planted. In (g) the negatives are of our own rules as they were before the captions of the pool
decided: no constraint of plausibility, no floor, and an edit model of photo captions. So circles become cones, trains and
clocks, words that no caption of drawn shapes has. In (g-llm) they are what `pairwright generate negatives --method llm`
keeps of the texts of a scripted language model (`scripted_model`): favourite words, some of another vocabulary, and
additions, which are longer.

One CLIP is finetuned on captions, and by NegCLIP on such negatives. Both are tested on negatives of the same source about
new pictures, as they are and as `pairwright refine` leaves them, and on exchanged colours, which no text-only attack
detects.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

from benchmarks.claims import scripted_model
from benchmarks.claims.commands import pairwright
from benchmarks.claims.pictures import (
    COLOURS,
    Edited,
    caption_of,
    draw,
    hard_negatives,
    make_sample,
    small_clip,
    two_kinds,
)
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


@dataclass(frozen=True)
class ModelDesign(Design):
    """The same numbers, with the types of edits that the scripted model writes."""

    types: tuple[str, ...] = scripted_model.TYPES
    floor: float = 0


DESIGN, MODEL_DESIGN = Design(), ModelDesign()
Editor = Callable[[Trials, Sequence[Sample]], list[Sample]]
"""Returns samples with other hard negatives."""


def pictures(seed: int, name: str, count: int, *, by_people: bool = False) -> list[Sample]:
    """Return pictures of two things, with exchanged colours as their one hard negative.

    Args:
        seed: of the pictures.
        name: of the set.
        count: number of pictures.
        by_people: whether captions have a capital and a full stop now and then (`scripted_model.as_people_write`).
    """
    made = []
    for number in range(count):
        rng = make_rng(seed, "claims", "refined", name, number)
        kinds = two_kinds(rng, _COLOURS, _SHAPES)
        swapped, image = hard_negatives(kinds, rng, _COLOURS, _SHAPES)[0], draw(kinds, rng)
        style = make_rng(seed, "claims", "style", name, number)
        said, false = (
            scripted_model.as_people_write(text, style) if by_people else text
            for text in (caption_of(*kinds), swapped.text)
        )
        made.append(make_sample(f"{name}-{number}", said, image, [replace(swapped, text=false)]))
    return made


def scripted(trials: Trials, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with the negatives of the scripted language model that pairwright's generator keeps."""
    captions = {sample.pair.source_id: sample.pair.caption for sample in samples}

    def write(out: Path) -> None:
        out.mkdir()
        kept = scripted_model.edit_captions(captions, out)
        edits = {name: [asdict(one) for one in edits] for name, edits in kept.items()}
        (out / "kept.json").write_text(json.dumps(edits), encoding="utf-8")

    found = json.loads((Path(trials.folder("scripted", captions, write)) / "kept.json").read_text("utf-8"))
    return [
        make_sample(name, one.pair.caption, one.image, (Edited(**edit) for edit in found[name]))
        for one in samples
        for name in (one.pair.source_id,)
    ]


def early_rules(trials: Trials, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with the negatives of the rules without what keeps them plausible alone."""
    seed = trials.seed
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


def run(trials: Trials, one: Design, edit: Editor, *, by_people: bool = False) -> Arms:
    """Return the accuracy of both models on each test, and NegCLIP's gain by test."""
    seed, number = trials.seed, trials.number
    shown = partial(pictures, seed, by_people=by_people)
    seen = trials.save(shown("pretraining", number(one.pretraining)))
    edited = edit(trials, shown("finetuning", number(one.finetuning)))
    swapped = shown("test", number(one.test))
    hacked = edit(trials, swapped)
    kept = refine(trials, hacked)
    tests = {"unrefined": hacked, "refined": only(hacked, kept), "exchanged colours": swapped}
    said = [*_COLOURS, *_SHAPES, "a an and", *_negatives((*edited, *hacked)), *(". A An" for _ in range(by_people))]
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


def _negatives(samples: Iterable[Sample]) -> list[str]:
    return [row.text for sample in samples for row in sample.annotations]


COMPARISONS = (
    *(Comparison(f"accuracy, {test}", "negclip", "clip") for test in ("unrefined", "refined", "exchanged colours")),
    *(Comparison("gain of NegCLIP", "unrefined", test) for test in ("refined", "exchanged colours")),
)
_TITLE = "What text alone gives away overstates the gain of hard negatives"
CLAIM = Claim("g", "refined", _TITLE, DESIGN, partial(run, one=DESIGN, edit=early_rules), COMPARISONS)
MODEL_CLAIM = Claim(
    "g-llm",
    "refined-llm",
    f"{_TITLE}; negatives by a language model",
    MODEL_DESIGN,
    partial(run, one=MODEL_DESIGN, edit=scripted, by_people=True),
    COMPARISONS,
)
