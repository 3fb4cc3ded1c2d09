"""Data of `claims.py`: ColorShape pictures of 32 pixels, made so that a tiny model can learn them in a minute.

*Two things*: each picture shows two shapes of two colours, each in a quarter of its own; its caption names both, the
shapes always in alphabetical order (``a red circle and a blue square``). In the *one way* world two shapes and two colours
go together in one way only (of the red circle with the blue square and the blue circle with the red square, one is never
shown): there the words alone tell pictures apart, as they mostly do on the web, and who has which colour need not be
learned. Models begin there, and are finetuned and measured where both are shown. Negatives and positives are those that our rules
make of the captions: replaced and exchanged colours, replaced shapes; the two things named in the other order. Each text
is judged by the oracle, which knows the scene: what is not as it should be is left out and counted.

*One thing*: the toy set of FocalLens, with its caption, and a question about colour and one about shape.

*Facts*: a text task for Distilling step-by-step. Things have colours; have two of them the same one? The rationale looks
both up.

Everything is a pure function of a seed.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.colorshape.corpus import ColorShapeSample, read_scene, sample_to_pair
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.rendering import encode_jpeg
from pairwright.datasets.colorshape.scenes import (
    BACKGROUNDS,
    COLOURS,
    SHAPES,
    Corners,
    Scene,
    SceneObject,
    Shape,
    jitter_colour,
    pick_option,
    size_word,
)
from pairwright.datasets.colorshape.toy_set import generate_toy_set
from pairwright.datasets.exports.rationales import StudentRows
from pairwright.datasets.records import Annotation, Example, Origin, Pair, Turn, annotation_id, compact_json
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.webdataset import write_shards
from pairwright.generators.edits.learning import sample_slots, train_edit_model
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import PositiveOptions, RulePositives
from pairwright.generators.protocols import RuleGenerator
from pairwright.training.loading.tokenization import load_tokenizer
from pairwright.training.models.random_clip import ClipSizes, new_clip
from pairwright.training.tiny_clip import write_word_tokenizer

Kind = tuple[tuple[str, Shape], ...]

PIXELS = 32
NEGATIVES = ("replace-object", "replace-attribute", "swap-attribute")
POSITIVES = ("swap-object",)
KINDS: list[Kind] = [
    tuple(zip(colours, shapes, strict=True))
    for shapes in combinations(sorted(SHAPES), 3)
    for colours in permutations(COLOURS, 3)
]
QUESTIONS = {"colour": "what colour is it ?", "shape": "what shape is it ?"}
_RIGHT = {"hard_negative": OracleVerdict.FALSE, "hard_positive": OracleVerdict.TRUE}
FACT_COLOURS = tuple(COLOURS)[:4]
CONTEXT = 40
SIZES = ClipSizes(image=PIXELS, patch=8, width=64, layers=2, heads=4, dim=32, context=CONTEXT)
WIDE = 0.3  # of the picture: in 32 pixels, what is narrower has no shape
_SIDES = (0.36, 0.43)
_SLACK = 0.06
_HAND = Origin("claims", 1)


@dataclass(frozen=True, slots=True)
class Written:
    """Samples, and what was left out of them.

    Attributes:
        samples: in order.
        left_out: texts that the oracle did not find as they should be.
    """

    samples: list[Sample]
    left_out: int


def three_things(seed: int, number: int, *, one_way: bool = False) -> list[Sample]:
    """Return pictures of three things with their captions; the kinds take turns, so that any prefix is varied."""
    order = make_rng(seed, "claims", "kinds").sample(KINDS, len(KINDS))
    if one_way:
        shown: dict[tuple[str, ...], Kind] = {}
        for kind in order:
            shown.setdefault(tuple(sorted(word for thing in kind for word in thing)), kind)
        order = list(shown.values())
    return [_three(seed, place, order[place % len(order)]) for place in range(number)]


def _three(seed: int, place: int, kind: Kind) -> Sample:
    chance = make_rng(seed, "claims", "scene", place)
    quarters = chance.sample([(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)], len(kind))
    things = tuple(_thing(*what, corner, chance) for what, corner in zip(kind, quarters, strict=True))
    scene = Scene(things, PIXELS, PIXELS, pick_option(BACKGROUNDS, chance))
    first, second, third = (f"{_article(colour)} {colour} {shape}" for colour, shape in kind)
    pair = sample_to_pair(ColorShapeSample(f"{place:09d}", scene, f"{first}, {second} and {third}"))
    return Sample(pair, image=encode_jpeg(scene), image_ext="jpg")


def _thing(colour: str, shape: Shape, corner: tuple[float, float], chance: random.Random) -> SceneObject:
    side = _SIDES[0] + (_SIDES[1] - _SIDES[0]) * chance.random()
    x, y = (start + 0.01 + _SLACK * chance.random() for start in corner)
    box: Corners = (round(x, 4), round(y, 4), round(x + side, 4), round(y + side, 4))
    return SceneObject(colour, shape, size_word(side), jitter_colour(COLOURS[colour], chance), box)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def with_edits(samples: Sequence[Sample], seed: int) -> Written:
    """Return the samples with the rules' negatives and positives that the oracle finds false, and true."""
    tokens = load_tagger().tag([sample.pair.caption for sample in samples])
    pool, wordnet = count_captions(tokens).frozen(), load_wordnet()
    pairs = [sample.pair for sample in samples]
    slots = sample_slots([pair.caption for pair in pairs], tokens, wordnet)
    model = train_edit_model(slots, list(zip(pairs, tokens, strict=True)), wordnet, pool)
    makers: tuple[RuleGenerator, ...] = (
        RuleNegatives(wordnet, pool, NegativeOptions(NEGATIVES, seed=seed), model),
        RulePositives(wordnet, pool, PositiveOptions(POSITIVES, seed=seed), model.cloze),
    )
    made, left_out = [], 0
    for sample, words in zip(samples, tokens, strict=True):
        found = [
            row
            for maker in makers
            for row in maker.annotate(sample.pair, words, make_rng(seed, maker.name, sample.pair.key))
            if row.status == "kept"
        ]
        right = tuple(row for row in found if judge(row.text, read_scene(sample.pair)) is _RIGHT[row.kind])
        left_out += len(found) - len(right)
        made.append(replace(sample, annotations=right))
    return Written(made, left_out)


def planted(samples: Sequence[Sample], share: float, seed: int) -> list[Sample]:
    """Return the samples, a share of their negatives with a give-away: they begin with "there is", as no caption does."""
    return [
        replace(one, annotations=tuple(_given_away(row, share, seed) for row in one.annotations)) for one in samples
    ]


def _given_away(row: Annotation, share: float, seed: int) -> Annotation:
    if row.kind != "hard_negative" or make_rng(seed, "claims", "planted", row.id).random() >= share:
        return row
    return replace(row, text=f"there is {row.text}")


def also_there_is(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with one hard positive each: the caption behind "there is"."""
    made = []
    for one in samples:
        text = f"there is {one.pair.caption}"
        positive = _by_hand(one.pair, "hard_positive", text=text, form="replace", target="object")
        negatives = tuple(row for row in one.annotations if row.kind == "hard_negative")
        made.append(replace(one, annotations=(*negatives, positive)))
    return made


def only(samples: Sequence[Sample], ids: set[str]) -> list[Sample]:
    """Return the samples with the negatives of these ids alone."""
    return [replace(one, annotations=tuple(row for row in one.annotations if row.id in ids)) for one in samples]


def one_thing(seed: int, per_combination: int) -> tuple[list[Sample], list[dict[str, str]]]:
    """Return toy pictures with caption and conversation, and their labels; smaller things than in `WIDE` are left out."""
    samples, labels = [], []
    for made in generate_toy_set(seed, per_combination, pixels=PIXELS):
        left, _, right, _ = made.scene.objects[0].box
        if right - left < WIDE:
            continue
        caption = f"a {made.conditions['both']}"
        pair = sample_to_pair(ColorShapeSample(made.key, made.scene, caption))
        turns = tuple(
            turn
            for name, question in QUESTIONS.items()
            for turn in (Turn("human", question), Turn("assistant", made.conditions[name]))
        )
        talk = _by_hand(pair, "conversation", turns=turns)
        samples.append(Sample(pair, (talk,), image=encode_jpeg(made.scene), image_ext="jpg"))
        labels.append({"key": pair.key, **made.conditions})
    return samples, labels


def _by_hand(pair: Pair, kind: Any, *, text: str = "", turns: tuple[Turn, ...] = (), **edit: Any) -> Annotation:
    if edit:
        edit["source_text"] = pair.caption
    name = annotation_id(pair.key, kind, _HAND, "0", text)
    return Annotation(id=name, key=pair.key, kind=kind, origin=_HAND, text=text, turns=turns, **edit)


def facts(seed: int, train: int, validation: int) -> list[Example]:
    """Return questions about facts, with labels (as many yes as no) and rationales."""
    return [
        _fact(make_rng(seed, "claims", "fact", number), f"{number:032x}", "train" if number < train else "validation")
        for number in range(train + validation)
    ]


def _fact(chance: random.Random, name: str, split: Any) -> Example:
    shapes = chance.sample(SHAPES, 4)
    same = chance.random() < 0.5
    colours = [chance.choice(FACT_COLOURS) for _ in shapes]
    others = [colour for colour in FACT_COLOURS if colour != colours[0]]
    colours[1] = colours[0] if same else chance.choice(others)
    asked = f"{shapes[0]} and {shapes[1]} ?"
    told = list(zip(shapes, colours, strict=True))
    chance.shuffle(told)
    return Example(
        id=name,
        task="facts",
        input=" ".join(f"{shape} {colour} ." for shape, colour in told) + f" {asked}",
        origin=_HAND,
        label="yes" if same else "no",
        rationale=f"{shapes[0]} {colours[0]} . {shapes[1]} {colours[1]} .",
        split=split,
    )


def save_words(folder: Path, texts: Iterable[str] = ()) -> str:
    """Write a tokenizer for all that is said here, and return its folder."""
    said = [
        *COLOURS,
        *SHAPES,
        "a an and there is . ,",
        "yes no So the answer is [label] [rationale]",
        *QUESTIONS.values(),
    ]
    write_word_tokenizer([*said, *texts], folder, max_tokens=CONTEXT)
    return str(folder)


def save_clip(words: str, folder: Path, seed: int) -> str:
    """Write a CLIP of random weights, and return its folder."""
    new_clip(load_tokenizer(words), SIZES, seed=seed).save(folder)
    return str(folder)


def save_student(words: str, folder: Path, seed: int) -> str:
    """Write an encoder-decoder of random weights with its tokenizer, and return its folder."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = load_tokenizer(words)
    marks = {
        "decoder_start_token_id": 0,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.1}
        network = T5ForConditionalGeneration(T5Config(vocab_size=len(tokenizer), **sizes, **marks))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def save_facts(examples: Sequence[Example], folder: Path) -> dict[str, str]:
    """Write student rows of both kinds, and return the files by kind."""
    files = {}
    for kind in ("multi-task", "single-task"):
        rows = (row for example in examples for row in StudentRows(kind).make_rows(example))
        write_text(folder / f"{kind}.jsonl", "".join(compact_json(row) + "\n" for row in rows))
        files[kind] = str(folder / f"{kind}.jsonl")
    return files


def save(samples: Iterable[Sample], folder: Path) -> str:
    """Write shards and return their folder."""
    write_shards(samples, folder)
    return str(folder)
