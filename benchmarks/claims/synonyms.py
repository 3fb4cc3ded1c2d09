"""(b) Hard negatives alone make a model brittle to hard positives (The Hard Positive Truth, tables 1 and 3).

Every colour has two words. Pretraining captions use both. In finetuning, captions use the first word; hard negatives
(another colour) and hard positives (the same colour) use the second, as texts of a language model use words that
captions do not. A model that sees the second words in false texts only learns to avoid them.
"""

from dataclasses import dataclass
from random import Random

from benchmarks.claims.pictures import SHAPES, Edited, Kind, caption_of, draw, make_sample, small_clip, two_kinds
from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import Schedule, Trials
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample

WORDS = {
    "red": "crimson",
    "orange": "amber",
    "yellow": "golden",
    "green": "emerald",
    "blue": "azure",
    "purple": "violet",
    "brown": "tan",
    "black": "ebony",
}
_SHAPES = tuple(SHAPES)[:6]


@dataclass(frozen=True)
class Design:
    """Numbers of pictures and steps, and learning rates."""

    pretraining: int = 2400
    pretraining_steps: int = 160
    pretraining_lr: float = 2e-3
    finetuning: int = 1200
    finetuning_steps: int = 80
    finetuning_lr: float = 1e-3
    test: int = 300


DESIGN = Design()
ARMS = {
    "clip": ("clip", ()),
    "hn": ("hp-hn", ("method.positives_weight=0",)),
    "hp-hn": ("hp-hn", ()),
}


def pictures(name: str, seed: int, count: int, *, both_words: bool) -> list[Sample]:
    """Return pictures of two things.

    Args:
        name: of the set.
        seed: of the pictures.
        count: of them.
        both_words: captions use either word of a colour and have no edits; otherwise the first, with edits.
    """
    made = []
    for number in range(count):
        rng = make_rng(seed, "claims", "synonyms", name, number)
        kinds = two_kinds(rng, tuple(WORDS), _SHAPES)
        image = draw(kinds, rng)
        said = [_either(kind.colour, rng) if both_words else kind.colour for kind in kinds]
        caption = caption_of(*((word, kind.shape) for word, kind in zip(said, kinds, strict=True)))
        edits = () if both_words else _edits(kinds, rng, test=name == "test")
        made.append(make_sample(f"{name}-{number}", caption, image, edits))
    return made


def _either(colour: str, rng: Random) -> str:
    return colour if rng.random() < 0.5 else WORDS[colour]


def _edits(kinds: tuple[Kind, Kind], rng: Random, *, test: bool) -> list[Edited]:
    """Return one negative and one positive; in a test, negatives use either word of the colour."""
    place = rng.randrange(2)
    right = kinds[place].colour
    wrong = rng.choice([colour for colour in WORDS if colour not in {kinds[0].colour, kinds[1].colour}])
    found = []
    for word, true in ((_either(wrong, rng) if test else WORDS[wrong], False), (WORDS[right], True)):
        said: list[tuple[str, str]] = list(kinds)
        said[place] = (word, kinds[place].shape)
        found.append(Edited(caption_of(*said), "replace", "attribute", true))
    return found


def run(trials: Trials) -> Arms:
    """Return what the pretrained model and the three finetuned ones reach."""
    one, seed, number = DESIGN, trials.seed, trials.number
    start = trials.new_clip([*WORDS, *WORDS.values(), *_SHAPES, "a an and"], small_clip())
    broad = trials.save(pictures("pretraining", seed, number(one.pretraining), both_words=True))
    data = trials.save(pictures("finetuning", seed, number(one.finetuning), both_words=False))
    test = trials.save(pictures("test", seed, number(one.test), both_words=False))
    base = trials.train("clip", start, broad, Schedule(one.pretraining_steps, one.pretraining_lr))
    models = {"base": base}
    for arm, (recipe, settings) in ARMS.items():
        models[arm] = trials.train(recipe, base, data, Schedule(one.finetuning_steps, one.finetuning_lr), settings)
    return {arm: _measured(trials, model, test) for arm, model in models.items()}


def _measured(trials: Trials, model: str, test: str) -> dict[str, float]:
    found = trials.figures("negatives", model, test)
    names = {"accuracy": "accuracy", "augmented accuracy": "augmented", "brittleness": "brittleness"}
    return {name: found["all", measure] for name, measure in names.items()}


CLAIM = Claim(
    "b",
    "synonyms",
    "Hard negatives alone make a model brittle; hard positives prevent it",
    DESIGN,
    run,
    (
        Comparison("accuracy", "hn", "base"),
        Comparison("augmented accuracy", "base", "hn"),
        Comparison("brittleness", "hn", "base"),
        Comparison("brittleness", "hn", "hp-hn"),
        Comparison("augmented accuracy", "hp-hn", "hn"),
        Comparison("augmented accuracy", "hp-hn", "clip"),
    ),
)
