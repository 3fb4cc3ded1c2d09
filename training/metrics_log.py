"""What a run tells while it goes: rows for a CSV, for the console, and for TensorBoard where asked for.

A row is the mean of the steps since the row before it. Going on from a checkpoint, rows behind it are removed, so that a
log reads as if the run had never stopped.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import MissingResourceError

_LEADING_COLUMNS = ("step", "epoch", "loss", "validation", "lr", "gradient", "scale", "samples_per_second", "waiting")


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line of the log.

    Attributes:
        step: steps done.
        epoch: epochs done, with the part of the one that runs.
        loss: mean since the row before.
        parts: of the loss by name, before their weights; likewise.
        lr: learning rate of the last step.
        gradient: norm of the gradient, before it is cut; mean.
        scale: 1 / temperature; None for models without.
        samples_per_second: over all processes.
        waiting: share of the time, 0-1, in which the step waited for data.
        validation: mean loss on validation data, where it was looked at.
    """

    step: int
    epoch: float
    loss: float
    lr: float
    gradient: float
    samples_per_second: float
    waiting: float
    scale: float | None = None
    validation: float | None = None
    parts: dict[str, float] = field(default_factory=dict)

    def values(self) -> dict[str, float | None]:
        """Return the columns by name, parts last."""
        own = {name: getattr(self, name) for name in _LEADING_COLUMNS}
        return own | {f"loss_{name}": value for name, value in self.parts.items()}


class CsvLog:
    """Rows in a file that any table program reads. All rows of a run have the same parts."""

    def __init__(self, path: Path, parts: Sequence[str], *, up_to: int) -> None:
        """Begin the file, or go on with its rows of up to ``up_to`` steps."""
        self._path, self._columns = path, [*_LEADING_COLUMNS, *(f"loss_{name}" for name in parts)]
        kept = [row for row in _read(path) if int(row["step"]) <= up_to]
        with replace_atomically(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)

    def add(self, row: LogRow) -> None:
        """Write a row; it is in the file when this returns."""
        with self._path.open("a", newline="", encoding="utf-8") as file:
            said = {name: "" if value is None else f"{value:.6g}" for name, value in row.values().items()}
            csv.DictWriter(file, self._columns, restval="", lineterminator="\n").writerow(said | {"step": row.step})


class TensorBoardLog:
    """Rows for TensorBoard."""

    def __init__(self, folder: Path, *, up_to: int) -> None:
        """Begin, or go on behind ``up_to`` steps.

        Raises:
            MissingResource: it is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingResourceError(
                "TensorBoard is not installed. pip install tensorboard, or leave it out."
            ) from None
        make: Any = SummaryWriter  # has no types
        self._writer = make(str(folder), purge_step=up_to + 1)

    def add(self, row: LogRow) -> None:
        """Write a row."""
        for name, value in row.values().items():
            if value is not None and name != "step":
                self._writer.add_scalar(name, value, row.step)
        self._writer.flush()


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
