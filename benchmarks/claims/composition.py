"""(a) Hard negatives raise compositional accuracy; (c) FSC-CLIP's losses forget less than a global loss alone.

A CLIP is pretrained on a broad world: ten shapes, twelve colours, counts and backgrounds. It is finetuned on a narrow
slice: two things of five shapes and six colours on white. Compositional accuracy is measured on the slice, and what was
forgotten on the broad world: zero-shot accuracy over all 120 kinds, and retrieval (NegCLIP; FSC-CLIP, table 2).

The learning rate of each arm is the one of `Design.rates` with the best compositional accuracy on a validation split of
the slice, of the seed that designs are made on.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean

from benchmarks.claims.pictures import (
    BACKGROUNDS,
    COLOURS,
    SHAPES,
    Kind,
    caption_of,
    draw,
    hard_negatives,
    make_sample,
    phrase,
    small_clip,
    two_kinds,
)
from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import DESIGN_SEED, Schedule, Trials
from pairwright.datasets.records import compact_json
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample

NUMBERS = {2: "two", 3: "three", 4: "four"}
SLICE_COLOURS, SLICE_SHAPES = tuple(COLOURS)[:6], tuple(SHAPES)[:5]
KINDS = ("swap-attribute", "replace-object", "replace-attribute")


@dataclass(frozen=True)
class Design:
    """Numbers of pictures and steps, and learning rates."""

    pixels: int = 32
    patch: int = 16
    pretraining: int = 2400
    pretraining_steps: int = 240
    pretraining_lr: float = 2e-3
    finetuning: int = 800
    finetuning_steps: int = 96
    rates: tuple[float, ...] = (5e-4, 1e-3, 2e-3, 5e-3)
    negatives: int = 2
    validation: int = 160
    test: int = 240
    broad_test: int = 240


DESIGN = Design()


def _fsc(**changed: float) -> tuple[str, ...]:
    parts = {"local_weight": 0.2, "focal": 2.0, "smoothing": 0.02, "negatives": DESIGN.negatives, **changed}
    return tuple(f"method.{name}={value}" for name, value in parts.items())


ARMS: Mapping[str, tuple[str, Sequence[str]]] = {
    "clip": ("clip", ()),
    "negclip": ("negclip", (f"method.negatives={DESIGN.negatives}",)),
    "global loss": ("fsc-clip", _fsc(local_weight=0, focal=0, smoothing=0)),
    "local loss": ("fsc-clip", _fsc(focal=0, smoothing=0)),
    "focal": ("fsc-clip", _fsc(local_weight=0, smoothing=0)),
    "smoothing": ("fsc-clip", _fsc(local_weight=0, focal=0)),
    "fsc-clip": ("fsc-clip", _fsc()),
}
"""Recipe and settings by arm."""


def words() -> list[str]:
    """Return all words of captions."""
    return [*COLOURS, *SHAPES, *(_plural(shape) for shape in SHAPES), *NUMBERS.values(), *BACKGROUNDS, "a an and on"]


def _plural(shape: str) -> str:
    return f"{shape}es" if shape.endswith("s") else f"{shape}s"


def broad_sample(seed: int, name: str, number: int, only: Kind | None = None) -> Sample:
    """Return a picture of the broad world: one kind once to four times, or two kinds, on one of the backgrounds.

    Args:
        seed: of the pictures.
        name: of the set.
        number: of the picture.
        only: the one kind, shown once.
    """
    rng = make_rng(seed, "claims", "composition", name, number)
    ground = rng.choice(tuple(BACKGROUNDS))
    if only or rng.random() < 0.5:
        kind = only or Kind(rng.choice(tuple(COLOURS)), rng.choice(tuple(SHAPES)))
        count = 1 if only else rng.randint(1, 4)
        things = (kind,) * count
        said = phrase(*kind) if count == 1 else f"{NUMBERS[count]} {kind.colour} {_plural(kind.shape)}"
    else:
        things = two_kinds(rng, tuple(COLOURS), tuple(SHAPES))
        said = caption_of(*things)
    image = draw(things, rng, pixels=DESIGN.pixels, background=BACKGROUNDS[ground])
    return make_sample(f"{name}-{number}", f"{said} on {ground}", image)


def slice_samples(seed: int, name: str, count: int) -> list[Sample]:
    """Return pictures of two things of the slice with one hard negative of each kind."""
    made = []
    for number in range(count):
        rng = make_rng(seed, "claims", "composition", name, number)
        kinds = two_kinds(rng, SLICE_COLOURS, SLICE_SHAPES)
        image = draw(kinds, rng, pixels=DESIGN.pixels)
        made.append(
            make_sample(
                f"{name}-{number}", caption_of(*kinds), image, hard_negatives(kinds, rng, SLICE_COLOURS, SLICE_SHAPES)
            )
        )
    return made


@dataclass(frozen=True)
class Start:
    """What the arms of a seed share: the pretrained model, and the slice to finetune on."""

    base: str
    data: str


def started(trials: Trials) -> Start:
    """Return the pretrained model and the finetuning data of a seed."""
    one, seed = DESIGN, trials.seed
    new = trials.new_clip(words(), small_clip(one.pixels, one.patch))
    broad = trials.save(broad_sample(seed, "pretraining", place) for place in range(trials.number(one.pretraining)))
    base = trials.train("clip", new, broad, Schedule(one.pretraining_steps, one.pretraining_lr))
    return Start(base, trials.save(slice_samples(seed, "finetuning", trials.number(one.finetuning))))


def finetuned(trials: Trials, start: Start, arm: str, rate: float) -> str:
    """Return the model of an arm at a learning rate."""
    recipe, settings = ARMS[arm]
    return trials.train(recipe, start.base, start.data, Schedule(DESIGN.finetuning_steps, rate), settings)


@cache
def chosen_rates(trials: Trials) -> Mapping[str, float]:
    """Return the learning rate of each arm, chosen on the validation split of these trials."""
    start = started(trials)
    data = trials.save(slice_samples(trials.seed, "validation", trials.number(DESIGN.validation)))

    def score(arm: str, rate: float) -> float:
        return slice_figures(trials, finetuned(trials, start, arm, rate), data)["accuracy"]

    return {arm: max(DESIGN.rates, key=_scored(score, arm)) for arm in ARMS}


def _scored(score: Callable[[str, float], float], arm: str) -> Callable[[float], float]:
    return lambda rate: score(arm, rate)


def slice_figures(trials: Trials, model: str, data: str) -> dict[str, float]:
    """Return compositional accuracy on pictures of the slice, by kind and of all."""
    found = trials.figures("negatives", model, data)
    by_kind = {f"{kind} accuracy": found[kind, "accuracy"] for kind in KINDS}
    return {**by_kind, "accuracy": mean(by_kind.values())}


def _recall(trials: Trials, model: str, data: str) -> float:
    found = trials.figures("retrieval", model, data)
    return mean(found[way, "recall@1"] for way in ("text to image", "image to text"))


def broad_figures(trials: Trials, model: str) -> dict[str, float]:
    """Return zero-shot accuracy and recall@1 on new pictures of the broad world."""
    number = trials.number(DESIGN.broad_test)
    kinds = [Kind(colour, shape) for colour in COLOURS for shape in SHAPES]
    single = [broad_sample(trials.seed, "single", n, kinds[n % len(kinds)]) for n in range(number)]
    rows = [
        {"key": sample.pair.key, "kind": " ".join(kinds[place % len(kinds)])} for place, sample in enumerate(single)
    ]
    labels = trials.save_text("labels.jsonl", "".join(compact_json(row) + "\n" for row in rows))
    classes = trials.save_text(
        "classes.json", json.dumps({"classes": sorted({row["kind"] for row in rows}), "templates": ["a {}"]})
    )
    shown = trials.figures("zero-shot", model, trials.save(single), labels=labels, by=("kind",), classes=classes)
    mixed = trials.save(broad_sample(trials.seed, "broad", place) for place in range(number))
    return {"zero-shot": shown["all", "accuracy"], "broad recall@1": _recall(trials, model, mixed)}


def run(trials: Trials) -> Arms:
    """Return what the pretrained model and the finetuned ones reach on slice and broad world."""
    rates = chosen_rates(trials.of_seed(DESIGN_SEED))
    start = started(trials)
    test = trials.save(slice_samples(trials.seed, "test", trials.number(DESIGN.test)))
    models = {"base": (start.base, 0.0)}
    models |= {arm: (finetuned(trials, start, arm, rate), rate) for arm, rate in rates.items()}
    return {
        arm: {**slice_figures(trials, model, test), **broad_figures(trials, model), "learning rate": rate}
        for arm, (model, rate) in models.items()
    }


CLAIM = Claim(
    "a/c",
    "composition",
    "Hard negatives raise compositional accuracy; local loss and regularization keep what was known",
    DESIGN,
    run,
    (
        *(
            Comparison(f"{kind} accuracy", arm, "clip")
            for kind in KINDS
            for arm in ("negclip", "global loss", "fsc-clip")
        ),
        *(Comparison(measure, "base", "clip") for measure in ("zero-shot", "broad recall@1")),
        *(Comparison(measure, "clip", "global loss") for measure in ("zero-shot", "broad recall@1")),
        *(Comparison(measure, "fsc-clip", "global loss") for measure in ("zero-shot", "broad recall@1")),
        *(
            Comparison(measure, arm, "global loss")
            for measure in ("swap-attribute accuracy", "zero-shot", "broad recall@1")
            for arm in ("local loss", "focal", "smoothing")
        ),
        Comparison("accuracy", "fsc-clip", "global loss"),
    ),
)
