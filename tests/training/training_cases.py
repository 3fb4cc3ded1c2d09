"""A tiny CLIP, shards of ColorShape with hard negatives and positives, and a run over them."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairwright.datasets.colorshape.corpus import make_sample, sample_to_pair
from pairwright.datasets.colorshape.rendering import encode_jpeg
from pairwright.datasets.records import Annotation, Example, Origin, Pair, Turn, annotation_id
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import write_shards
from pairwright.training.loading.tokenization import load_tokenizer
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.recipes.settings import Recipe
from pairwright.training.tiny_clip import ClipSizes, new_clip, write_word_tokenizer
from pairwright.training.trainer import TrainingReport, TrainingRun, train
from tests.training import tiny_models

COLOURS = {"red": "blue", "blue": "green", "green": "yellow", "yellow": "red"}
MADE = Origin("rules-negatives", 1, seed=7)
SMALL = [
    "batches.size=8",
    "batches.workers=0",
    "batches.crop=1",
    "optimizer.lr=1e-3",
    "schedule.steps=2",
    "schedule.warmup=0",
    "precision=fp32",
]


def shards(folder: Path, count: int = 48, seed: int = 3, *, texts: bool = True) -> str:
    """Write scenes with an edited colour as negative, a reworded caption as positive, a conversation and a rationale each, or bare."""
    samples = (_sample(seed, number) for number in range(count))
    kept = samples if texts else (replace(one, annotations=(), examples=()) for one in samples)
    return write_shards(kept, folder, max_samples=20).pattern


def clip(folder: Path, count: int = 48, seed: int = 3) -> str:
    """Write a CLIP of random weights that knows the words of `shards`, and return its folder."""
    texts = [
        "blue green yellow red look : what is it the colour no yes so answer . ? [label] [rationale] USER ASSISTANT"
    ]
    for number in range(count):
        texts += make_sample(seed, number).captions
    write_word_tokenizer(texts, folder / "words", max_tokens=40)
    sizes = ClipSizes(image=32, patch=8, width=32, layers=2, heads=2, dim=16, context=40)
    new_clip(load_tokenizer(str(folder / "words")), sizes, seed=5).save(folder / "clip")
    return str(folder / "clip")


def language(folder: Path) -> str:
    """Write a causal language model of random weights and return its folder."""
    tiny_models.language().save_pretrained(folder)
    tiny_models.tokenizer().save_pretrained(folder)
    return str(folder)


def llava(folder: Path) -> str:
    """Write a LLaVA of random weights, with its processor, and return its folder."""
    tiny_models.llava_checkpoint().save_pretrained(folder)
    tiny_models.llava_processor().save_pretrained(folder)
    return str(folder)


def student(folder: Path) -> str:
    """Write an encoder-decoder of random weights and return its folder."""
    tiny_models.student().save_pretrained(folder)
    tiny_models.tokenizer().save_pretrained(folder)
    return str(folder)


def run(recipe: str, data: str, model: str, out: Path, *changes: str, **named: Any) -> TrainingReport:
    """Train in this process, with few and small steps by default."""
    settings = read_recipe(recipe, [*SMALL, *changes])
    assert isinstance(settings, Recipe)
    return train(replace(TrainingRun(settings, data, model, out), **named))


def two_processes(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module in two processes that train together, by gloo."""
    return processes(2, module, *arguments)


def processes(count: int, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module in processes that train together, by gloo."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", "-m", module]
    return subprocess.run(
        [*command, *arguments],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def _sample(seed: int, number: int) -> Sample:
    made = make_sample(seed, number, pixels=48)
    pair = sample_to_pair(made)
    first = next((word for word in pair.caption.split() if word in COLOURS), "")
    texts = [_edited(pair, "hard_positive", f"look : {pair.caption}"), _conversation(pair, first)]
    if first:
        texts.append(_edited(pair, "hard_negative", pair.caption.replace(first, COLOURS[first])))
    why = Example(
        id=f"r{number}", task="itm", input="is it red ?", origin=MADE, key=pair.key, label="no", rationale="so no"
    )
    return Sample(pair, tuple(texts), (why,), encode_jpeg(made.scene), "jpg")


def _edited(pair: Pair, kind: Any, text: str) -> Annotation:
    name = annotation_id(pair.key, kind, MADE, "0", text)
    edit: dict[str, Any] = {"form": "replace", "target": "attribute", "source_text": pair.caption}
    return Annotation(id=name, key=pair.key, kind=kind, origin=MADE, text=text, **edit)


def _conversation(pair: Pair, colour: str) -> Annotation:
    turns = (Turn("human", "what colour is it ?"), Turn("assistant", colour or "no"))
    then = (Turn("human", "what is it ?"), Turn("assistant", pair.caption))
    name = annotation_id(pair.key, "conversation", MADE, "0", pair.caption)
    return Annotation(id=name, key=pair.key, kind="conversation", origin=MADE, turns=(*turns, *then))
