"""Training log: rows of metrics for CSV, console and reporters, and the statistics they are computed from.

A row is the mean over the steps since the previous row. On resume, rows after the checkpoint are removed, so the log of
an interrupted run equals that of an uninterrupted one. A finetuning run's log is made of the history that transformers'
Trainer keeps in its checkpoints.
"""

import csv
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.training.loading.batches import B
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.embeddings import WeightedLoss

LogRow = dict[str, float]
"""Values by column name, as docs/verbs/train.md lists them; unweighted parts of the loss are ``loss_*``."""

_COLUMNS = ("step", "epoch", "loss", "lr", "gradient", "scale", "samples_per_second", "waiting")
_FINETUNING_COLUMNS = ("step", "epoch", "loss", "lr", "gradient", "validation")
_TRAINER_COLUMNS = {"learning_rate": "lr", "grad_norm": "gradient", "eval_loss": "validation"}


class CsvLog:
    """CSV log; all rows of a run have the same parts."""

    def __init__(self, path: Path, parts: Sequence[str], *, up_to: int) -> None:
        """Create the file, or keep its rows up to step ``up_to``."""
        self._path, self._columns = path, [*_COLUMNS, *(f"loss_{name}" for name in parts)]
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        _write(path, self._columns, [row for row in csv.DictReader(lines) if int(row["step"]) <= up_to])

    def add(self, row: LogRow) -> None:
        """Append a row and close the file."""
        with self._path.open("a", newline="", encoding="utf-8") as file:
            cells = {name: f"{value:.6g}" for name, value in row.items()} | {"step": str(row["step"])}
            csv.DictWriter(file, self._columns, restval="", lineterminator="\n").writerow(cells)


def log_columns(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a Trainer's log with our column names; empty for summaries of the whole run."""
    if not {"loss", "eval_loss"} & entry.keys():
        return {}
    return {_TRAINER_COLUMNS.get(name, name): value for name, value in entry.items()}


def write_history(path: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """Write a Trainer's history, a row per step."""
    rows: dict[int, dict[str, Any]] = {}
    for entry in history:
        if named := log_columns(entry):
            rows.setdefault(entry["step"], {}).update(named)
    names = dict.fromkeys([*_FINETUNING_COLUMNS, *(name for row in rows.values() for name in row)])
    _write(path, list(names), [rows[step] for step in sorted(rows)])


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with replace_atomically(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


class StepStatistics:
    """Losses and timings since the previous row of the log; tensors stay on their device until then."""

    def __init__(self) -> None:
        self._begun = self._saved = time.perf_counter()
        self._clear()

    def timed(self, batches: Iterable[B]) -> Iterator[B]:
        """Yield the batches, and add up the time of waiting for them."""
        since = time.perf_counter()
        for batch in batches:
            self._waited += time.perf_counter() - since
            yield batch
            since = time.perf_counter()

    def add(self, total: WeightedLoss, norm: Tensor, samples: int, rate: float) -> None:
        """Add a finished step."""
        self._losses.append(total.loss.detach())
        self._norms.append(norm)
        for name, part in total.parts.items():
            self._parts.setdefault(name, []).append(part.detach())
        self._samples += samples
        self._rate = rate

    def row(self, step: int, epoch: float, ranks: Ranks, scale: Tensor | None) -> LogRow:
        """Return the row, equal on all ranks except for the speed, and reset; ``scale`` is 1 / temperature, if any."""
        row = {"step": step, "epoch": epoch, "loss": _mean(self._losses, ranks), "lr": self._rate}
        row["gradient"] = torch.stack(self._norms).mean().item()
        if scale is not None:
            row["scale"] = scale.item()
        parts = {f"loss_{name}": _mean(own, ranks) for name, own in self._parts.items()}
        spent = time.perf_counter() - self._begun
        row |= {"samples_per_second": self._samples * ranks.count / spent, "waiting": self._waited / spent, **parts}
        self._begun = time.perf_counter()
        self._clear()
        return row

    def lap(self) -> float:
        """Return the seconds since the previous call."""
        before, self._saved = self._saved, time.perf_counter()
        return self._saved - before

    def _clear(self) -> None:
        self._losses, self._norms, self._parts = list[Tensor](), list[Tensor](), dict[str, list[Tensor]]()
        self._samples, self._rate, self._waited = 0, 0.0, 0.0


def _mean(values: list[Tensor], ranks: Ranks) -> float:
    # The loss of a batch is the mean over ranks.
    return (ranks.total(torch.stack(values).mean()) / ranks.count).item()
