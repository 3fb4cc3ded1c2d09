"""(d) Embeddings under an instruction retrieve by the condition it names (FocalLens, section 5.4.1).

Each picture of 64 pixels shows one thing. A CLIP trained on captions ("a red circle") has one embedding for colour and
shape; FocalLens-CLIP, trained on questions and answers about the same pictures, has one for each question. Both begin
with the same pretrained CLIP and take the same number of steps. Mean average precision of retrieval by colour and by
shape, of new pictures.
"""

from dataclasses import dataclass

from benchmarks.claims.pictures import BACKGROUNDS, COLOURS, SHAPES, Kind, draw, make_sample, phrase, small_clip
from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import Schedule, Trials
from pairwright.datasets.records import compact_json
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample

QUESTIONS = {"colour": "what colour is it ?", "shape": "what shape is it ?"}
ARMS = {"clip": "clip", "focallens-clip": "focallens-clip"}
_COLOURS, _SHAPES = tuple(COLOURS)[:8], tuple(SHAPES)[:8]


@dataclass(frozen=True)
class Design:
    """Sizes, numbers of pictures and steps, and learning rates."""

    pixels: int = 64
    patch: int = 32
    pictures: int = 1500
    pretraining_steps: int = 120
    pretraining_lr: float = 2e-3
    steps: int = 160
    lr: float = 1e-3
    test: int = 320


DESIGN = Design()


def pictures(seed: int, name: str, count: int) -> tuple[list[Sample], list[dict[str, str]]]:
    """Return pictures of one thing with caption and conversation, and their labels; any prefix is balanced."""
    made, labels = [], []
    kinds = [Kind(colour, shape) for shape in _SHAPES for colour in _COLOURS]
    for number in range(count):
        rng = make_rng(seed, "claims", "instructions", name, number)
        kind = kinds[number % len(kinds)]
        image = draw([kind], rng, pixels=DESIGN.pixels, background=rng.choice(tuple(BACKGROUNDS.values())))
        answers = [(QUESTIONS["colour"], kind.colour), (QUESTIONS["shape"], kind.shape)]
        made.append(make_sample(f"{name}-{number}", phrase(*kind), image, turns=answers))
        labels.append({"key": made[-1].pair.key, "colour": kind.colour, "shape": kind.shape})
    return made, labels


def run(trials: Trials) -> Arms:
    """Return the mean average precision of the base and of both finetuned models."""
    one = DESIGN
    words = [*_COLOURS, *_SHAPES, "a an", *QUESTIONS.values()]
    new = trials.new_clip(words, small_clip(one.pixels, one.patch))
    data = trials.save(pictures(trials.seed, "training", trials.number(one.pictures))[0])
    shown, labels = pictures(trials.seed, "test", trials.number(one.test))
    test, answers = (
        trials.save(shown),
        trials.save_text("labels.jsonl", "".join(compact_json(row) + "\n" for row in labels)),
    )
    base = trials.train("clip", new, data, Schedule(one.pretraining_steps, one.pretraining_lr))
    models = {"base": base}
    models |= {arm: trials.train(recipe, base, data, Schedule(one.steps, one.lr)) for arm, recipe in ARMS.items()}
    found = {}
    for arm, model in models.items():
        figures = trials.figures("conditions", model, test, labels=answers, by=tuple(QUESTIONS), instructions=QUESTIONS)
        found[arm] = {f"mAP by {by}": figures[by, "mAP"] for by in QUESTIONS}
    return found


CLAIM = Claim(
    "d",
    "instructions",
    "Embeddings under an instruction retrieve by its condition",
    DESIGN,
    run,
    tuple(Comparison(f"mAP by {by}", "focallens-clip", other) for by in QUESTIONS for other in ("clip", "base")),
)
