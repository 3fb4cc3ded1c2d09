"""Trainers of transformers over our shards: the order of samples, skipped samples, and the loss of step-by-step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel, Seq2SeqTrainer, Trainer, TrainerCallback

from pairwright.datasets.errors import PairwrightError, StorageError
from pairwright.datasets.images.loading import publishable_image_name
from pairwright.datasets.rejects import Reject
from pairwright.training.finetuning.dataset import EpochOrder, ShardDataset
from pairwright.training.loading.tokenization import IGNORE_INDEX
from pairwright.training.metrics_log import log_columns, write_history
from pairwright.training.objectives.step_by_step import WrittenTexts, multi_task_loss
from pairwright.training.reporters import Report


class ShardTrainer(Trainer):  # type: ignore[misc]  # mypy does not follow transformers
    """A `Trainer` whose epochs follow our order, and which records skipped samples and truncated rows.

    Attributes:
        order: sampler of the training rows.
        skipped: reason and detail of skipped samples by place, of this process.
        cut: truncated rows, of this process.
    """

    order: EpochOrder
    train_dataset: ShardDataset

    def __init__(self, *arguments: Any, order: EpochOrder, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if not self.model_accepts_loss_kwargs:  # Qwen2.5-VL: its own loss is a mean per forward pass, and parts differ
            self.compute_loss_func = answer_loss
        self.order, self.skipped, self.cut = order, dict[str, Reject](), 0

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:  # noqa: ARG002 - interface of Trainer
        return self.order

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Any:
        found = super()._get_num_items_in_batch(batch_samples, device)
        return found.clamp(min=1) if torch.is_tensor(found) else found  # a step whose samples are all broken

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:  # noqa: FBT001, FBT002
        """Write the model; checkpoints with the network's own names of weights.

        `Trainer` loads a checkpoint by these names, but writes LLaVA's and Qwen2.5-VL's in the layout of the hub.
        """
        model: Any = self.model
        if not _internal_call or not isinstance(model, PreTrainedModel):
            super().save_model(output_dir, _internal_call)
            return
        model.save_pretrained = partial(model.save_pretrained, save_original_format=False)
        try:
            super().save_model(output_dir, _internal_call)
        finally:
            del model.save_pretrained

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Raise StorageError on weights that the checkpoint lacks, on which `Trainer` only warns."""
        names: dict[int, list[str]] = {}
        for name, parameter in self.model.named_parameters(remove_duplicate=False):
            names.setdefault(id(parameter), []).append(name)
        missing = set(load_result.missing_keys)
        if lost := [each[0] for each in names.values() if missing.issuperset(each)]:
            raise StorageError(f"the checkpoint lacks {lost[0]} and {len(lost) - 1} others: start the run again.")

    def _prepare_inputs(self, inputs: dict[str, Any]) -> Any:
        for found in inputs.pop("skipped", ()):
            if isinstance(found, PairwrightError):
                raise found
            if self.train_dataset.on_error == "stop":
                raise found.error()
            self.skipped[publishable_image_name(found.place)] = found
        self.cut += inputs.pop("cut", 0)
        # A cache of keys would be extended again where FSDP computes a layer's activations once more.
        return {**super()._prepare_inputs(inputs), "use_cache": False}


def answer_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
    """Return the cross entropy of the labelled tokens (LLaVA, eq. 3.3), as a part of the whole batch's mean.

    ``outputs`` have ``logits``, float (b, t, v); ``labels`` are int64 (b, t), `IGNORE_INDEX` without a loss;
    ``num_items_in_batch`` counts the labelled tokens of the whole batch, None: those of ``labels``.
    """
    wanted = labels[:, 1:].contiguous()
    logits = outputs.logits[:, :-1].float()
    total = functional.cross_entropy(logits.mT, wanted, ignore_index=IGNORE_INDEX, reduction="sum")
    return total / ((wanted != IGNORE_INDEX).sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch)


class StepByStepTrainer(ShardTrainer, Seq2SeqTrainer):  # type: ignore[misc]
    """L_label + lambda L_rationale (Hsieh, eq. 2.1, 2.3 and 2.4), each the mean over the examples of the whole batch.

    ``rationale_weight`` is lambda; None: no row is a rationale, and the parts are not logged.
    """

    rationale_weight: float | None = None
    loss_is_scaled_for_ga = True

    def __init__(self, *arguments: Any, rationale_weight: float | None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.rationale_weight = rationale_weight
        self._parts, self._steps = torch.zeros(2), 0  # since the last row of the log

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Tensor:
        """Return the number of labels and of rationales of the whole batch, over all processes, int64 (2,)."""
        counted = [(batch["labels"] != IGNORE_INDEX).any(dim=1) for batch in batch_samples]
        is_rationale = torch.cat([batch["rationale"][rows] for batch, rows in zip(batch_samples, counted, strict=True)])
        counts = torch.stack([(~is_rationale).sum(), is_rationale.sum()]).to(device)
        if self.args.world_size > 1:
            counts = self.accelerator.reduce(counts, "sum")
        return counts.clamp(min=1)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,  # noqa: FBT001, FBT002 - interface of Trainer
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return this batch's share of the loss, times the number of processes, which average their gradients."""
        rationale, labels = inputs["rationale"][:, None], inputs["labels"]
        totals = num_items_in_batch
        if totals is None:
            totals = self._get_num_items_in_batch([inputs], labels.device)
        out = model(**{name: value for name, value in inputs.items() if name != "rationale"})
        counted = labels != IGNORE_INDEX
        first, second = (WrittenTexts(out.logits, labels, counted & chosen) for chosen in (~rationale, rationale))
        found = multi_task_loss(first, second, self.rationale_weight or 0.0, list(totals))
        if model.training:
            parts = torch.stack(list(found.parts.values())).detach()
            self._parts = self._parts.to(parts.device) + parts
            self._steps += self.accelerator.sync_gradients
        loss = found.loss * self.args.world_size
        return (loss, out) if return_outputs else loss

    def log(self, logs: dict[str, float], *arguments: Any, **named: Any) -> None:
        """Add both parts of the loss to a row of the log."""
        if "loss" in logs and self.rationale_weight is not None:
            parts = self.accelerator.reduce(self._parts.to(self.args.device), "sum") / max(1, self._steps)
            logs |= {"loss_label": round(float(parts[0]), 6), "loss_rationale": round(float(parts[1]), 6)}
            self._parts, self._steps = torch.zeros(2), 0
        super().log(logs, *arguments, **named)


@dataclass
class RunCallback(TrainerCallback):  # type: ignore[misc]
    """Order of the epochs, progress, and the log of a run."""

    out: Path  # run folder
    order: EpochOrder  # of the training rows
    reach: Callable[[int, int], None]  # shows the steps done and in total
    note: Callable[[str], None]  # prints a line
    report: Report

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set the epoch of the order, which accelerate does not reach through the sampler of a resumed run."""
        self.order.epoch = int(state.epoch or 0)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        """Give unused parameters a gradient of 0 in the first step: FSDP resumes only with a state for each parameter."""
        if state.global_step == 0:
            for parameter in model.parameters():
                if parameter.requires_grad and parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Advance the progress bar, and log the last step, also of a run that is shorter than a row of the log."""
        self.reach(state.global_step, state.max_steps)
        control.should_log |= state.global_step >= state.max_steps

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG002
        """Print and report a row of the log."""
        if state.is_world_process_zero and (row := log_columns(logs or {})):
            shown = "  ".join(f"{name} {float(value):.4g}" for name, value in row.items() if name != "epoch")
            self.note(f"  step {state.global_step}  epoch {state.epoch:.2f}  {shown}")
            self.report(row, state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the log so far."""
        if state.is_world_process_zero:
            write_history(self.out / "log.csv", state.log_history)
