"""The loop: steps of AdamW over batches of shards, on one process or several, until the schedule or early stop ends it.

accelerate holds the processes, the precision and the gradients' scaling; what is trained and the loss are the
method's (`methods/`). Every step draws from (seed, step, rank), and a checkpoint names the next batch, so a run that was
killed and goes on ends with the same weights as one that was not (on the same machine and with as many processes).

Not covered: gradients accumulated over several batches, which contrastive losses do not add up over; sharded models.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.progress import open_step
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.samples import publishable_image_name
from pairwright.training.accelerate_setup import default_workers, start_processes
from pairwright.training.learning_rate import learning_rate_factor, warmup_steps
from pairwright.training.loading.loader import LoadingOptions, ShardLoader, check_data_exists
from pairwright.training.loading.samples import OnError
from pairwright.training.loss_curves import write_curves
from pairwright.training.metrics_log import CsvLog, LogRow, TensorBoardLog
from pairwright.training.models.checkpoints import load_trained, save_trained
from pairwright.training.models.clip import Clip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.models.registry import model_folder
from pairwright.training.models.trainable_parameters import count_parameters
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.out_of_memory import explain_out_of_memory
from pairwright.training.recipes.method import PreparedMethod
from pairwright.training.recipes.schema import Recipe
from pairwright.training.run_checkpoints import (
    OptimizerState,
    TrainingProgress,
    load_checkpoint,
    newest_checkpoint,
    save_checkpoint,
    save_model,
    write_skipped,
)
from pairwright.training.run_folder import RunRequest, check_run_folder, lock_run_folder, write_run_description
from pairwright.training.step_statistics import StepStatistics

_MAX_SKIP_MESSAGES = 5


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What to train, on what, and where.

    Attributes:
        recipe: the settings.
        data: shards, as `ShardLoader` takes them.
        model: the checkpoint it begins with, a folder (of a run too) or a name.
        out: the folder of the run (`saving.py`).
        validation: shards whose loss tells when to stop; empty: none.
        resume: go on with what stands in ``out``.
        on_error: samples that are broken or lack an image or caption: ``skip`` leaves them out and counts them, ``stop``
            ends the run.
        board: write for TensorBoard too.
        tell: is given each row of the log.
        say: is given, before the first step, in which way the data differs from complete data (samples that are left out
            or lack texts, batches that are smaller than asked for), and later the first samples that are skipped.
    """

    recipe: Recipe
    data: str
    model: str
    out: Path
    validation: str = ""
    resume: bool = False
    on_error: OnError = "skip"
    board: bool = False
    tell: Callable[[LogRow], None] = field(default=lambda _: None)
    say: Callable[[str], None] = field(default=lambda _: None)


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What came of a run; ``OUT/report.json`` holds it.

    Attributes:
        model: folder of the trained model.
        steps: done in all.
        epochs: likewise.
        loss: of the last row of the log.
        best: lowest loss on validation data, whose weights the model has; None without early stop.
        ended: ``done`` or ``early stop``.
        trained: parameters that were trained.
        frozen: parameters that were not.
        unit: what ``samples`` counts: samples, or conversations.
        samples: that an epoch has.
        left_out: samples that the recipe cannot use, by reason.
        skipped: samples that turned out to be broken when a batch needed them, by reason; ``OUT/skipped.jsonl`` lists them.
        lacking: samples that are used and have no text of some kind that the recipe takes, by reason.
        cut: texts that were longer than the model reads, and lost their end; of all epochs.
        seconds: spent in training.
        main: whether this process is the one that writes.
    """

    model: str
    steps: int
    epochs: float
    loss: float
    best: float | None
    ended: str
    trained: int
    frozen: int
    unit: str
    samples: int
    left_out: dict[str, int]
    skipped: dict[str, int]
    lacking: dict[str, int]
    cut: int
    seconds: float
    main: bool = True


def train(run: TrainingRun) -> TrainingReport:
    """Train as the recipe says.

    Raises:
        UsageError: settings that do not go together, or with the data or the model; a run that stands in the way.
        InputError: shards that do not hold what the recipe needs.
        StorageError: a shard or checkpoint that is torn.
        PairwrightError: out of memory, or a loss that is no number; each with the settings that help.
    """
    with explain_out_of_memory(lambda: _memory_helps(run.recipe, "before the first step")):
        trainer = _Trainer(run)
    return trainer.go()


class _Trainer:
    def __init__(self, run: TrainingRun) -> None:
        self.run, self.recipe = run, run.recipe
        if bool(run.validation) != bool(run.recipe.early_stop):
            raise UsageError("early_stop and --validation go together: give both, or neither.")
        self.accelerator = start_processes(run.recipe.precision)
        self.ranks = Ranks(self.accelerator.process_index, self.accelerator.num_processes)
        asked = RunRequest(run.recipe, run.model, run.data, run.validation)
        check_run_folder(run.out, asked, resume=run.resume)
        for data in filter(None, (run.data, run.validation)):
            check_data_exists(data)  # before a model that may be large, or far away
        torch.manual_seed(run.recipe.seed)
        ready = run.recipe.method.prepare(run.recipe, model_folder(run.model))
        self.model = ready.model
        self.loader = self._loader(run.data, ready, validation=False)
        self.looked = self._loader(run.validation, ready, validation=True) if run.validation else None
        self.progress = TrainingProgress()
        self.optimizer = _optimizer(self.model, run.recipe)
        self.steps = run.recipe.schedule.steps or run.recipe.schedule.epochs * len(self.loader)
        self._prepare()
        self.accelerator.wait_for_everyone()  # all have looked, and nothing was refused
        if self.accelerator.is_main_process:
            self.lock = lock_run_folder(run.out)
            check_run_folder(run.out, asked, resume=run.resume)  # again: another run may have started there meanwhile
            write_run_description(run.out, asked)
            for line in self.loader.notes():
                run.say(line)

    def go(self) -> TrainingReport:
        self.first = self.progress.step
        with (
            explain_out_of_memory(lambda: _memory_helps(self.recipe, f"at step {self.progress.step + 1}")),
            open_step("training", self.steps - self.first, "steps") as self.bar,
        ):
            writers = self._writers()
            while not self.progress.ended:
                self._epoch(writers)
        return self._finish()

    def _prepare(self) -> None:
        self.model.to(self.accelerator.device)
        if folder := newest_checkpoint(self.run.out) if self.run.resume else None:
            # Before the model is wrapped, and with the optimiser's own state: both as they were.
            self.progress = load_checkpoint(folder, self.model, OptimizerState(self.optimizer, self.accelerator.scaler))
            assert self.progress.loader is not None
            if not self.accelerator.is_main_process:
                self.progress.cut = 0  # the checkpoint has the sum
            self.loader.load_state_dict(self.progress.loader)
        self.wrapped: nn.Module = self.accelerator.prepare_model(self.model)
        self.stepping: Any = self.accelerator.prepare_optimizer(self.optimizer)
        self.running = OptimizerState(self.optimizer, self.accelerator.scaler)
        self.stretch = StepStatistics()

    def _loader(self, data: str, ready: PreparedMethod, *, validation: bool) -> ShardLoader[Any]:
        batches = self.recipe.batches
        if batches.size % self.ranks.count:
            raise UsageError(
                f"batches of {batches.size} over {self.ranks.count} processes: set batches.size to a multiple."
            )
        options = LoadingOptions(
            batch_size=batches.size // self.ranks.count,
            seed=self.recipe.seed,
            window=0 if validation else batches.window,
            ends="even" if validation else batches.ends,
            workers=default_workers(self.ranks.count) if batches.workers is None else batches.workers,
            rank=self.ranks.rank,
            ranks=self.ranks.count,
            device=str(self.accelerator.device),
            on_error=self.run.on_error,
        )
        images = replace(ready.images, crop=1.0, mirror=0.0) if validation else ready.images
        return ShardLoader(data, ready.rows, options, ready.texts, images)

    def _writers(self) -> list[Callable[[LogRow], None]]:
        if not self.accelerator.is_main_process:
            return []
        parts = self.recipe.method.loss_parts()
        writers = [CsvLog(self.run.out / "log.csv", parts, up_to=self.progress.step).add, self.run.tell]
        if self.run.board:
            writers.append(TensorBoardLog(self.run.out / "tensorboard", up_to=self.progress.step).add)
        return writers

    def _epoch(self, writers: list[Callable[[LogRow], None]]) -> None:
        """Take the steps to the end of the epoch, or of the run."""
        if self.progress.step >= self.steps:  # a checkpoint of the last step
            self.progress.ended = "done"
            return
        self.stretch.start()
        for batch in self.loader:
            self.stretch.got()
            self._step(batch)
            self.bar.reach(self.progress.step - self.first)
            self.progress.ended = "done" if self.progress.step >= self.steps else ""
            validation = self._look() if self._due() else None
            saving = self.progress.ended or self.progress.step % self.recipe.save_every == 0
            if saving or validation is not None or self.progress.step % self.recipe.log_every == 0:
                row = self._row(validation)  # before a checkpoint too: its mean begins anew behind it
                for write in writers:
                    write(row)
            if saving:
                self._save()
            if self.progress.ended:
                return

    def _step(self, batch: Any) -> None:
        step = self.progress.step
        torch.manual_seed(make_rng(self.recipe.seed, step, "step", str(self.ranks.rank)).getrandbits(63))
        rate = self.recipe.optimizer.lr * learning_rate_factor(step, self._warmup(), self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.wrapped.train()
        total = self.recipe.method.loss(self.wrapped, batch, self.ranks)
        self.accelerator.backward(total.loss)
        trained = [one for one in self.model.parameters() if one.requires_grad]
        norm = self.accelerator.clip_grad_norm_(trained, self.recipe.optimizer.clip or math.inf)
        self.stepping.step()
        self.optimizer.zero_grad(set_to_none=True)
        if isinstance(self.model, Clip | FocalLensMllm):
            self.model.limit_scale()
        self.progress.step += 1
        self.progress.loader = self.loader.state_dict()
        self.progress.cut += batch.cut
        self._note_skipped()
        self.stretch.add(total, norm, len(batch.keys), rate)

    def _warmup(self) -> int:
        return warmup_steps(self.recipe.schedule.warmup, self.steps)

    def _due(self) -> bool:
        """Say whether it is time to look at the validation data."""
        early = self.recipe.early_stop
        if early is None:
            return False
        return bool(self.progress.ended) or self.progress.step % (early.every or len(self.loader)) == 0

    def _look(self) -> float:
        """Return the mean loss on the validation data, and note whether it is time to stop."""
        assert self.looked is not None
        assert self.recipe.early_stop is not None
        self.wrapped.eval()
        losses = []
        with torch.no_grad():
            for batch in self.looked:
                value = self.recipe.method.loss(self.wrapped, batch, self.ranks).loss
                # A gathered loss is the same everywhere, and its own mean; others are shares of one.
                losses.append(self.ranks.total(value) / self.ranks.count)
        self._note_skipped()
        self.looked.epoch = 0  # the same edited texts at every look
        found = torch.stack(losses).mean().item()
        if self.progress.best is None or found < self.progress.best:
            self.progress.best, self.progress.waited = found, 0
            if self.accelerator.is_main_process:
                save_trained(self.model, self.run.out / "best.safetensors")
        else:
            self.progress.waited += 1
            if self.progress.waited >= self.recipe.early_stop.patience:
                self.progress.ended = "early stop"
        self.stretch.start()
        return found

    def _row(self, validation: float | None) -> LogRow:
        scale = getattr(self.model, "scale", None)
        row = self.stretch.row(self.progress, self.progress.step / len(self.loader), self.ranks, scale, validation)
        if not math.isfinite(row.loss):
            raise PairwrightError(
                f"the loss at step {row.step} is {row.loss}. What helps: a lower optimizer.lr, optimizer.clip=1, "
                "a longer schedule.warmup, precision bf16 instead of fp16. Then begin in another folder."
            )
        self.progress.loss = row.loss
        return row

    def _note_skipped(self) -> None:
        """Take over what the loaders skipped, and say so of the first few samples."""
        for loader in filter(None, (self.loader, self.looked)):
            for place, found in loader.skipped.items():
                name = publishable_image_name(place)
                if name in self.progress.skipped:
                    continue
                self.progress.skipped[name] = f"{found.reason}: {found.detail}"
                if len(self.progress.skipped) <= _MAX_SKIP_MESSAGES:
                    self.run.say(f"skipped {place}: {found.detail}.")
            loader.skipped.clear()

    def _save(self) -> None:
        cut = self._cut()
        self.progress.skipped = self.ranks.merged(self.progress.skipped)
        if self.accelerator.is_main_process:
            self.progress.seconds += self.stretch.lap()
            save_checkpoint(self.run.out, self.model, self.running, replace(self.progress, cut=cut))
        self.accelerator.wait_for_everyone()

    def _cut(self) -> int:
        return int(self.ranks.total(torch.tensor(self.progress.cut, device=self.accelerator.device)))

    def _finish(self) -> TrainingReport:
        cut = self._cut()
        sizes = count_parameters(self.model)
        folder = self.run.out / "model"
        main = self.accelerator.is_main_process
        report = TrainingReport(
            model=str(folder),
            steps=self.progress.step,
            epochs=round(self.progress.step / len(self.loader), 4),
            loss=self.progress.loss,
            best=self.progress.best,
            ended=self.progress.ended,
            trained=sizes.trained,
            frozen=sizes.frozen,
            unit=self.loader.unit,
            samples=self.loader.order.samples,
            left_out=dict(self.loader.index.left_out),
            skipped=dict(Counter(each.partition(":")[0] for each in self.progress.skipped.values())),
            lacking=dict(self.loader.lacking),
            cut=cut,
            seconds=round(self.progress.seconds, 1),
            main=main,
        )
        if main:
            if self.progress.best is not None:
                load_trained(self.model, self.run.out / "best.safetensors")
            save_model(self.recipe.method.finish(self.model), folder)
            write_text(self.run.out / "report.json", json.dumps(asdict(report), indent=2) + "\n")
            write_curves(self.run.out)
            write_skipped(self.run.out, self.progress.skipped)
        self.accelerator.wait_for_everyone()
        return report


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """Return AdamW over what is trained; what has fewer than two dimensions does not decay, as in OpenCLIP."""
    trained, settings = [one for one in model.parameters() if one.requires_grad], recipe.optimizer
    groups = [
        {"params": [one for one in trained if one.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [one for one in trained if one.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps)


def _memory_helps(recipe: Recipe, when: str) -> str:
    known = type(recipe.method).model_fields
    lora = ", method.lora" if "lora" in known else ""
    smaller = ", a smaller method.negatives" if "negatives" in known else ""
    tiles = ", method.tiles=false" if getattr(recipe.method, "tiles", False) else ""
    return (
        f"{when}, with batches.size {recipe.batches.size} and precision {recipe.precision}. What helps: a smaller "
        f"batches.size, precision bf16, a smaller batches.max_tokens{smaller}{tiles}{lora}, or more processes. "
        "Then begin in another folder."
    )
