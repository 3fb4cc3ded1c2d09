"""Runs of the trainer and of its evaluation, as `pairwright train` and `pairwright evaluate` make them.

Data and models are kept in a cache folder under the digest of what they are made from: samples, recipe, initial model.
So arms of a claim share their pretraining, and an interrupted benchmark resumes where it stopped.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.records import compact_json
from pairwright.datasets.shards.samples import Sample, encode_members
from pairwright.datasets.shards.writing import write_shards
from pairwright.training.evaluation.tasks import EvaluationRequest, evaluate_models
from pairwright.training.finetuning.run import FinetuningRun, finetune
from pairwright.training.loading.tokenization import load_tokenizer
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.recipes.settings import FinetuningRecipe
from pairwright.training.tiny_clip import ClipSizes, new_clip, write_word_tokenizer
from pairwright.training.trainer import TrainingReport, TrainingRun, train

DESIGN_SEED = 99
"""The seed on which designs and learning rates are chosen; it is never reported."""

COMMON = (
    "batches.size=64",
    "batches.workers=0",
    "schedule.warmup=0.1",
    "precision=fp32",
    "optimizer.weight_decay=0.05",
    "log_every=1000",
    "save_every=100000",
)
Figures = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Number of steps, and the highest learning rate."""

    steps: int
    lr: float


@dataclass(frozen=True)
class Trials:
    """Trains and measures models of one seed.

    Attributes:
        cache: folder of data and models.
        seed: of weights, pictures and their order.
        effort: 1 for the table; below, for tests, the share of all numbers of steps and samples.
    """

    cache: Path
    seed: int
    effort: float = 1.0

    def of_seed(self, seed: int) -> "Trials":
        """Return the trials of another seed with the same cache."""
        return replace(self, seed=seed)

    def number(self, usual: int) -> int:
        """Return the number of steps or samples for ``usual`` in the table."""
        return max(2, round(usual * self.effort))

    def folder(self, kind: str, content: Any, write: Callable[[Path], object]) -> str:
        """Return the cached folder of a content, written first if missing.

        Args:
            kind: beginning of its name.
            content: JSON value; the digest of it names the folder.
            write: called with a folder to create.
        """
        found = self.cache / f"{kind}-{digest(content)}"
        if not found.is_dir():
            made = found.with_name(f"{found.name}.part")
            shutil.rmtree(made, ignore_errors=True)
            made.parent.mkdir(parents=True, exist_ok=True)
            write(made)
            made.rename(found)
        return str(found)

    def save(self, samples: Iterable[Sample]) -> str:
        """Write samples as shards and return their folder."""
        held = list(samples)
        members = hashlib.sha256()
        for sample in held:
            for name, body in encode_members(sample):
                members.update(name.encode() + body)
        return self.folder("data", members.hexdigest(), lambda out: write_shards(held, out))

    def save_text(self, name: str, text: str) -> Path:
        """Write a text file of that name and return its path."""

        def write(out: Path) -> None:
            out.mkdir()
            (out / name).write_text(text, encoding="utf-8")

        return Path(self.folder("text", [name, text], write)) / name

    def save_words(self, words: Iterable[str], context: int) -> str:
        """Write a tokenizer of whole words and return its folder."""
        known = sorted({word for text in words for word in text.split()})
        return self.folder("words", [known, context], lambda out: write_word_tokenizer(known, out, max_tokens=context))

    def new_clip(self, words: Iterable[str], sizes: ClipSizes) -> str:
        """Write a CLIP of random weights of this seed for these words, and return its folder."""
        vocabulary = self.save_words(words, sizes.context)
        content = [cached_name(vocabulary), repr(sizes), self.seed]
        return self.folder(
            "clip", content, lambda out: new_clip(load_tokenizer(vocabulary), sizes, seed=self.seed).save(out)
        )

    def train(self, recipe: str, model: str, data: str, schedule: Schedule, settings: Sequence[str] = ()) -> str:
        """Train by a recipe and return the model's folder.

        Args:
            recipe: one of ours.
            model: folder of the initial model.
            data: shards, or a file of rationale rows.
            schedule: for the table; the steps are scaled by ``effort``.
            settings: further ones, ``key=value`` as for ``--set``.
        """
        fixed = [*COMMON, f"optimizer.lr={schedule.lr}", f"schedule.steps={self.number(schedule.steps)}"]
        uncropped = () if recipe == "step-by-step" else ("batches.crop=1",)
        read = read_recipe(recipe, [*fixed, *uncropped, f"seed={self.seed}", *settings])

        def run(out: Path) -> TrainingReport:
            if isinstance(read, FinetuningRecipe):
                return finetune(FinetuningRun(read, data, model, out))
            return train(TrainingRun(read, data, model, out))

        content = [read.model_dump(mode="json"), cached_name(model), cached_name(data)]
        return f"{self.folder('run', content, run)}/model"

    def figures(self, task: str, model: str, data: str, **request: Any) -> Figures:
        """Return what an evaluation measures, by part and measure.

        Args:
            task: of `pairwright evaluate`.
            model: folder of the model.
            data: shards or a file.
            request: further attributes of `EvaluationRequest`.
        """

        def write(out: Path) -> None:
            (found,) = evaluate_models(EvaluationRequest(task, (model,), (data,), **request), lambda _: None)
            rows = [[one.part, one.measure, one.value] for one in found.found.metrics]
            out.mkdir()
            (out / "figures.json").write_text(json.dumps(rows), encoding="utf-8")

        further = {name: cached_name(str(value)) for name, value in sorted(request.items())}
        folder = self.folder("figures", [task, cached_name(model), cached_name(data), further], write)
        rows = json.loads((Path(folder) / "figures.json").read_text("utf-8"))
        return {(part, measure): value for part, measure, value in rows}


def cached_name(path: str) -> str:
    """Return the name under which a folder or file is cached: its content's digest, without the place of the cache."""
    return next((part for part in reversed(Path(path).parts) if "-" in part), Path(path).name)


def digest(content: Any) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.sha256(compact_json(content).encode()).hexdigest()[:16]
