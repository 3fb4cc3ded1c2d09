"""(f) Rationales as a second task need fewer labels (Distilling step-by-step, figures 2.4 to 2.7).

An input asks for a shape and lists four facts, a colour and a shape each. The label is *yes* for half of the colours: a
function of one fact, which has to be looked up. Two of the four colours are of either half, so that nothing but the
lookup helps. The rationale is the fact. A fact is one word ("redcube"): with two words no arm learned the lookup, which
then takes a circuit of two layers. Curves over the number of labels, which all have rationales.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import T5Config, T5ForConditionalGeneration

from benchmarks.claims.pictures import COLOURS, ORIGIN, SHAPES
from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import Schedule, Trials, cached_name
from pairwright.datasets.exports.rationales import Objectives, StudentRows
from pairwright.datasets.records import Example, compact_json
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.tokenization import load_tokenizer

ARMS = {"multi-task": "multi-task", "single-task": "single-task", "label alone": "label"}


@dataclass(frozen=True)
class Design:
    """Sizes of the curve, steps and learning rate."""

    labels: tuple[int, ...] = (100, 1000, 5000)
    test: int = 300
    steps: int = 300
    batch: int = 32
    lr: float = 3e-3
    facts: int = 4


DESIGN = Design()
_YES, _NO, _SHAPES = tuple(COLOURS)[:8:2], tuple(COLOURS)[1:8:2], tuple(SHAPES)[:6]


def examples(seed: int, train: int, validation: int) -> list[Example]:
    """Return examples, those to train on first; a smaller training set is a prefix of a larger one."""
    numbered = [*((n, "train") for n in range(train)), *((n, "validation") for n in range(validation))]
    return [_example(seed, number, split) for number, split in numbered]


def _example(seed: int, number: int, split: str) -> Example:
    rng = make_rng(seed, "claims", "rationales", split, number)
    colours = [*rng.sample(_YES, DESIGN.facts // 2), *rng.sample(_NO, DESIGN.facts // 2)]
    rng.shuffle(colours)
    facts = list(zip(rng.sample(_SHAPES, DESIGN.facts), colours, strict=True))
    shape, colour = rng.choice(facts)
    return Example(
        id=f"{rng.getrandbits(128):032x}",
        task="facts",
        input=f"{shape} ? " + " ".join(f"{other}{one}" for one, other in facts),
        origin=ORIGIN,
        label="yes" if colour in _YES else "no",
        rationale=f"{colour}{shape}",
        split="train" if split == "train" else "validation",
    )


def save_rows(trials: Trials, kind: Objectives, rows: Iterable[Example]) -> str:
    """Write student rows of a kind, and return their file; those to test on have no rationale of their own."""
    made = (
        row
        for one in rows
        for row in StudentRows(kind).make_rows(one)
        if (row["split"], row["objective"]) != ("validation", "rationale")
    )
    return str(trials.save_text("rows.jsonl", "".join(compact_json(row) + "\n" for row in made)))


def new_student(trials: Trials) -> str:
    """Write an encoder-decoder of random weights with its tokenizer, and return its folder."""
    words = trials.save_words(
        [
            *_SHAPES,
            *(f"{colour}{shape}" for colour in (*_YES, *_NO) for shape in _SHAPES),
            "yes no So the answer is . ? [ label rationale ]",
        ],
        context=64,
    )

    def write(out: Path) -> None:
        tokenizer = load_tokenizer(words)
        sizes = {
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_decoder_layers": 1,
            "num_heads": 4,
            "dropout_rate": 0.0,
        }
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(trials.seed)
            config = T5Config(
                vocab_size=len(tokenizer),
                decoder_start_token_id=tokenizer.pad_token_id,
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id,
                **sizes,
            )
            T5ForConditionalGeneration(config).save_pretrained(out)
        tokenizer.save_pretrained(out)

    return trials.folder("student", [cached_name(words), trials.seed], write)


def run(trials: Trials) -> Arms:
    """Return the label accuracy of each arm by the number of labels."""
    one, student = DESIGN, new_student(trials)
    found: dict[str, dict[str, float]] = {arm: {} for arm in ARMS}
    for count in one.labels:
        rows = examples(trials.seed, trials.number(count), trials.number(one.test))
        for arm, objectives in ARMS.items():
            single = arm == "single-task"
            data = save_rows(trials, "single-task" if single else "multi-task", rows)
            model = trials.train(
                "step-by-step",
                student,
                data,
                Schedule(one.steps, one.lr),
                (f"method.objectives={objectives}", f"batches.size={one.batch}"),
            )
            figures = trials.figures("rationales", model, data, single=single)
            found[arm][measure(count)] = next(value for (_, what), value in figures.items() if what == "label")
    return found


def measure(labels: int) -> str:
    """Return the name of the measure for a number of labels."""
    return f"label accuracy, {labels:,} labels"


CLAIM = Claim(
    "f",
    "rationales",
    "Rationales as a second task need fewer labels",
    DESIGN,
    run,
    tuple(
        Comparison(measure(count), "multi-task", other)
        for count in DESIGN.labels
        for other in ("label alone", "single-task")
    ),
)
