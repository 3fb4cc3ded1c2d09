"""Training loop: steps of AdamW over shard batches, on one or several processes.

accelerate handles processes, precision and gradient scaling; the model and the loss come from the recipe's method
(`recipes/preparation.py`), the update from `training_step.py`. Each step is seeded from (seed, step, rank) and a
checkpoint records the next batch, so a resumed run ends with the same weights as an uninterrupted one. Not covered:
gradient accumulation, over which contrastive losses do not add up (cached gradients instead); sharded models.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object  # type: ignore[import-untyped]

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.images.loading import publishable_image_name
from pairwright.datasets.progress import open_step
from pairwright.datasets.shards.indexed_shards import find_indexed_shards
from pairwright.training.accelerate_setup import default_workers, start_processes
from pairwright.training.loading.loader import LoadingOptions, ShardLoader
from pairwright.training.metrics_log import CsvLog, LogRow, StepStatistics
from pairwright.training.models.checkpoints import copy_weights
from pairwright.training.models.clip import Clip
from pairwright.training.models.openclip_checkpoint import save_openclip
from pairwright.training.models.registry import model_folder
from pairwright.training.models.trainable_parameters import count_parameters, merge_lora
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.out_of_memory import explain_out_of_memory
from pairwright.training.recipes.preparation import PreparedMethod, prepare
from pairwright.training.recipes.settings import PairMethod, Recipe, TowerMethod
from pairwright.training.reporters import Report, open_reporters
from pairwright.training.run_folder import (
    Run,
    TrainingProgress,
    check_run_folder,
    load_checkpoint,
    lock_run_folder,
    newest_checkpoint,
    replace_folder,
    save_checkpoint,
    write_run_description,
    write_skipped,
)
from pairwright.training.training_step import TrainingStep, schedule_notes

_MAX_SKIP_MESSAGES = 5


TrainingRun = Run[Recipe]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """Result of a run, written to ``OUT/report.json``."""

    model: str  # folder of the trained model
    steps: int  # total
    epochs: float  # total
    loss: float  # of the last log row
    trained: int  # number of trained parameters
    frozen: int  # number of frozen parameters
    unit: str = "samples"  # what ``samples`` counts: samples or conversations
    samples: int  # per epoch
    left_out: dict[str, int]  # samples that the recipe cannot use, by reason
    skipped: dict[str, int]  # samples found broken during training, by reason; ``OUT/skipped.jsonl`` lists them
    lacking: dict[str, int] = field(default_factory=dict)  # used samples that lack some kind of text, by reason
    cut: int  # texts truncated to the model's limit, over all epochs
    seconds: float  # training time
    main: bool = True  # whether this is the process that writes

    def as_json(self) -> dict[str, Any]:
        """Return the result without what concerns this process alone."""
        return {name: value for name, value in asdict(self).items() if name != "main"}

    def write(self, out: Path, skipped: Mapping[str, str]) -> None:
        """Write ``report.json``, and the skipped samples with their reasons."""
        write_text(out / "report.json", json.dumps(self.as_json(), indent=2) + "\n")
        write_skipped(out, skipped)


def train(run: TrainingRun) -> TrainingReport:
    """Train a model by a recipe.

    Raises:
        UsageError: settings that conflict with each other, the data or the model; the run folder is in use.
        InputError: the shards lack what the recipe needs.
        StorageError: a shard or checkpoint is damaged.
        PairwrightError: out of memory, or a loss that is not finite; the message names the settings that help.
    """
    with explain_out_of_memory(lambda: _memory_helps(run.recipe, "before the first step")):
        trainer = _Trainer(run)
    return trainer.train_to_end()


class _Trainer:
    def __init__(self, run: TrainingRun) -> None:
        self.run, self.recipe = run, run.recipe
        if run.validation:
            raise UsageError("--validation is for generative models. Evaluate this one by `pairwright evaluate`.")
        self.accelerator = start_processes(run.recipe.precision)
        size, count = run.recipe.batches.size, self.accelerator.num_processes
        if size % count:
            raise UsageError(f"batches.size {size} is not divisible by {count} processes: set it to a multiple.")
        self.ranks = Ranks(self.accelerator.process_index, count, size // count)
        check_run_folder(run)
        find_indexed_shards(run.data)  # before loading a large model
        torch.manual_seed(run.recipe.seed)
        prepared = prepare(run.recipe, model_folder(run.model))
        self.loader = self._loader(prepared)
        self.progress = TrainingProgress()
        self.statistics = StepStatistics()
        self.steps = run.recipe.schedule.steps or run.recipe.schedule.epochs * len(self.loader)
        self.step = TrainingStep(run.recipe, prepared.model, self.accelerator, self.ranks, self.steps)
        if folder := newest_checkpoint(run.out) if run.resume else None:
            self.progress = load_checkpoint(folder, self.step.state)
            assert self.progress.loader is not None
            if not self.accelerator.is_main_process:
                self.progress.cut = 0  # the checkpoint holds the sum over ranks
            self.loader.load_state_dict(self.progress.loader)
        self.accelerator.wait_for_everyone()  # all checks passed on all ranks
        if self.accelerator.is_main_process:
            self.lock = lock_run_folder(run.out)
            check_run_folder(run)  # again, under the lock
            write_run_description(run)
            for line in (*self.loader.notes(), *schedule_notes(run.recipe.schedule, self.steps)):
                run.on_message(line)

    def train_to_end(self) -> TrainingReport:
        self.first = self.progress.step
        with (
            explain_out_of_memory(lambda: _memory_helps(self.recipe, f"at step {self.progress.step + 1}")),
            open_step("training", self.steps - self.first, "steps") as self.bar,
            open_reporters(self.accelerator, self.run, self.progress.step) as report,
        ):
            writers = self._writers(report)
            while self.progress.step < self.steps:
                self._epoch(writers)
        return self._finish()

    def _loader(self, prepared: PreparedMethod) -> ShardLoader[Any]:
        batches = self.recipe.batches
        options = LoadingOptions(
            batch_size=self.ranks.rows,
            seed=self.recipe.seed,
            window=batches.window,
            ends=batches.ends,
            workers=default_workers(self.ranks.count) if batches.workers is None else batches.workers,
            rank=self.ranks.rank,
            ranks=self.ranks.count,
            device=str(self.accelerator.device),
            on_error=self.run.on_error,
        )
        return ShardLoader(self.run.data, prepared.rows, options, prepared.texts, prepared.images)

    def _writers(self, report: Report) -> list[Callable[[LogRow], None]]:
        if not self.accelerator.is_main_process:
            return []
        log = CsvLog(self.run.out / "log.csv", self.recipe.method.loss_parts, up_to=self.progress.step)
        return [
            log.add,
            self.run.on_row,
            lambda row: report({name: row[name] for name in row if name != "step"}, self.progress.step),
        ]

    def _epoch(self, writers: list[Callable[[LogRow], None]]) -> None:
        """Run the steps to the end of the epoch or of the run."""
        for batch in self.statistics.timed(self.loader):
            self._train_on(batch)
            self.bar.reach(self.progress.step - self.first)
            ended = self.progress.step >= self.steps
            saving = ended or self.progress.step % self.recipe.save_every == 0
            if saving or self.progress.step % self.recipe.log_every == 0:
                row = self._row()  # also before a checkpoint: the mean restarts after it
                for write in writers:
                    write(row)
            if saving:
                self._save()
            if ended:
                return

    def _train_on(self, batch: Any) -> None:
        total, norm, rate = self.step.take(batch, self.progress.step)
        self.progress.step += 1
        self.progress.loader = self.loader.state_dict()
        self.progress.cut += batch.cut
        self._note_skipped()
        self.statistics.add(total, norm, len(batch.keys), rate)

    def _row(self) -> LogRow:
        step, scale = self.progress.step, getattr(self.step.model, "scale", None)
        row = self.statistics.row(step, step / len(self.loader), self.ranks, scale)
        if not math.isfinite(row["loss"]):
            raise PairwrightError(
                f"the loss at step {step} is {row['loss']}. Try a lower optimizer.lr, optimizer.clip=1, "
                "a longer schedule.warmup, precision bf16 instead of fp16. Then choose another --out."
            )
        self.progress.loss = row["loss"]
        return row

    def _note_skipped(self) -> None:
        """Record the samples that the loaders skipped, with a message for the first few."""
        for place, found in self.loader.skipped.items():
            name = publishable_image_name(place)
            if name in self.progress.skipped:
                continue
            self.progress.skipped[name] = f"{found.reason}: {found.detail}"
            if len(self.progress.skipped) <= _MAX_SKIP_MESSAGES:
                self.run.on_message(f"skipped {place}: {found.detail}.")
        self.loader.skipped.clear()

    def _save(self) -> None:
        cut = self._total_cut()
        self.progress.skipped = dict(gather_object(list(self.progress.skipped.items())))
        if self.accelerator.is_main_process:
            self.progress.seconds += self.statistics.lap()
            save_checkpoint(self.run.out, self.step.state, replace(self.progress, cut=cut))
        self.accelerator.wait_for_everyone()

    def _total_cut(self) -> int:
        return int(self.ranks.total(torch.tensor(self.progress.cut, device=self.accelerator.device)))

    def _finish(self) -> TrainingReport:
        cut = self._total_cut()
        sizes = count_parameters(self.step.model)
        folder, main = self.run.out / "model", self.accelerator.is_main_process
        report = TrainingReport(
            model=str(folder),
            steps=self.progress.step,
            epochs=round(self.progress.step / len(self.loader), 4),
            loss=self.progress.loss,
            trained=sizes.trained,
            frozen=sizes.frozen,
            samples=self.loader.order.samples,
            left_out=dict(self.loader.index.left_out),
            skipped=dict(Counter(each.partition(":")[0] for each in self.progress.skipped.values())),
            lacking=dict(self.loader.lacking),
            cut=cut,
            seconds=round(self.progress.seconds, 1),
            main=main,
        )
        if main:
            self._save_models(folder)
            report.write(self.run.out, self.progress.skipped)
        self.accelerator.wait_for_everyone()
        return report

    def _save_models(self, folder: Path) -> None:
        model = self.step.model
        if average := self.step.state.average:
            averaged = deepcopy(model)
            copy_weights(dict(averaged.named_parameters()), {**dict(model.named_parameters()), **average}, folder)
            self._save_model(averaged, folder.with_name("model-ema"))
        self._save_model(model, folder)
        if self.recipe.save_openclip:
            assert isinstance(model, Clip)
            save_openclip(model, folder.with_name("model-openclip"))

    def _save_model(self, model: Any, folder: Path) -> None:
        """Write a model, low-rank matrices merged into its weights."""
        if isinstance(self.recipe.method, TowerMethod) and self.recipe.method.lora:
            merge_lora(model)
        with replace_folder(folder) as temporary:
            model.save(temporary)


def _memory_helps(recipe: Recipe, when: str) -> str:
    known = type(recipe.method).model_fields
    chunk = "a smaller batches.chunk (rows per pass), " if isinstance(recipe.method, PairMethod) else ""
    lora = ", method.lora" if "lora" in known else ""
    smaller = ", a smaller method.negatives" if "negatives" in known else ""
    tiles = ", method.tiles=false" if getattr(recipe.method, "tiles", False) else ""
    return (
        f"{when}, with batches.size {recipe.batches.size} and precision {recipe.precision}. Try {chunk}a smaller "
        f"batches.size, precision bf16, a smaller batches.max_tokens{smaller}{tiles}{lora}, or more processes. "
        "Then choose another --out."
    )
