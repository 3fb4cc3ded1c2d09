"""(e) Gated tuning on retrieved pairs lifts the classes of a task (REACT, tables 2.2 and 2.5).

The web of this world is long-tailed: shape number n is shown about ``decay ** n`` as often as the first. A CLIP is
pretrained on a first part of it. The task is zero-shot classification by shape and colour; `pairwright retrieve` finds
pairs for its classes in a second part. Gated blocks are tuned on them, on as many random pairs, and the whole CLIP is
finetuned on them. Accuracy is over all classes alike, and over those of the five rarest shapes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import polars as pl

from benchmarks.claims.commands import pairwright
from benchmarks.claims.pictures import BACKGROUNDS, COLOURS, SHAPES, Kind, draw, make_sample, phrase, small_clip
from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import Schedule, Trials
from pairwright.datasets.records import compact_json
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample

_COLOURS, _SHAPES = tuple(COLOURS)[:8], tuple(SHAPES)


@dataclass(frozen=True)
class Design:
    """Numbers of pictures and steps, and learning rates."""

    decay: float = 0.6
    pretraining: int = 2400
    pretraining_steps: int = 150
    pretraining_lr: float = 2e-3
    pool: int = 6000
    per_class: int = 12
    steps: int = 100
    gated_lr: float = 3e-3
    full_lr: float = 1e-3
    blocks: int = 2
    test: int = 400


DESIGN = Design()
_WEIGHTS = [DESIGN.decay**place for place in range(len(_SHAPES))]
RARE = frozenset(_SHAPES[5:])


def web(seed: int, name: str, count: int) -> list[Sample]:
    """Return pictures of one thing, long-tailed in shapes."""

    def kind(rng: Random) -> Kind:
        return Kind(rng.choice(_COLOURS), rng.choices(_SHAPES, _WEIGHTS)[0])

    rngs = [make_rng(seed, "claims", "retrieved", name, number) for number in range(count)]
    return [_picture(f"{name}-{number}", kind(rng), rng) for number, rng in enumerate(rngs)]


def _picture(name: str, kind: Kind, rng: Random) -> Sample:
    image = draw([kind], rng, background=rng.choice(tuple(BACKGROUNDS.values())))
    return make_sample(name, phrase(*kind), image)


def classes() -> list[Kind]:
    """Return the classes of the task."""
    return [Kind(colour, shape) for shape in _SHAPES for colour in _COLOURS]


def retrieve(trials: Trials, pool: Sequence[Sample]) -> set[str]:
    """Return the names of the pairs that `pairwright retrieve` finds for the classes."""
    rows = "".join(compact_json({"name": one.pair.source_id, "caption": one.pair.caption}) + "\n" for one in pool)
    names = json.dumps({"classes": [" ".join(kind) for kind in classes()], "templates": ["a {}"]})
    captions, queries = trials.save_text("captions.jsonl", rows), trials.save_text("classes.json", names)
    wanted = trials.number(DESIGN.per_class)

    def write(out: Path) -> None:
        index, hits = out / "index", out / "hits.jsonl"
        found = ("--out", hits, "--pairs", out / "pairs.parquet")
        pairwright("index", "build", captions, "--columns", "key=name", "--out", index)
        pairwright("retrieve", "--index", index, "--queries", queries, "--k", wanted, *found)

    folder = Path(trials.folder("retrieved", [rows, names, wanted], write))
    return set(pl.read_parquet(folder / "pairs.parquet")["source_id"])


def run(trials: Trials) -> Arms:
    """Return the accuracy of the base, and after tuning on retrieved and on random pairs."""
    one, seed = DESIGN, trials.seed
    new = trials.new_clip([*_COLOURS, *_SHAPES, "a an"], small_clip())
    seen = trials.save(web(seed, "pretraining", trials.number(one.pretraining)))
    base = trials.train("clip", new, seen, Schedule(one.pretraining_steps, one.pretraining_lr))
    pool = web(seed, "pool", trials.number(one.pool))
    names = retrieve(trials, pool)
    found = [sample for sample in pool if sample.pair.source_id in names]
    random = make_rng(seed, "claims", "retrieved", "random").sample(pool, len(found))
    retrieved, unrelated = trials.save(found), trials.save(random)
    gated = (f"method.blocks={one.blocks}",)
    models = {
        "base": base,
        "gated, retrieved": trials.train("react", base, retrieved, Schedule(one.steps, one.gated_lr), gated),
        "gated, random": trials.train("react", base, unrelated, Schedule(one.steps, one.gated_lr), gated),
        "full, retrieved": trials.train("clip", base, retrieved, Schedule(one.steps, one.full_lr)),
    }
    return {arm: _measured(trials, model) for arm, model in models.items()}


def _measured(trials: Trials, model: str) -> dict[str, float]:
    """Return zero-shot accuracy over all classes, and over those of rare shapes."""
    kinds, found = classes(), {}
    for measure, tested in (("accuracy", kinds), ("rare accuracy", [one for one in kinds if one.shape in RARE])):
        shown, rows = [], []
        for number in range(trials.number(DESIGN.test)):
            kind = tested[number % len(tested)]
            rng = make_rng(trials.seed, "claims", "retrieved", measure, number)
            shown.append(_picture(f"{measure}-{number}", kind, rng))
            rows.append({"key": shown[-1].pair.key, "kind": " ".join(kind)})
        labels = trials.save_text("labels.jsonl", "".join(compact_json(row) + "\n" for row in rows))
        names = json.dumps({"classes": [" ".join(kind) for kind in kinds], "templates": ["a {}"]})
        options = {"labels": labels, "by": ("kind",), "classes": trials.save_text("classes.json", names)}
        found[measure] = trials.figures("zero-shot", model, trials.save(shown), **options)["all", "accuracy"]
    return found


CLAIM = Claim(
    "e",
    "retrieved",
    "Gated tuning on retrieved pairs lifts the classes of a task",
    DESIGN,
    run,
    tuple(
        Comparison(measure, "gated, retrieved", other)
        for measure in ("accuracy", "rare accuracy")
        for other in ("base", "gated, random", "full, retrieved")
    ),
)
