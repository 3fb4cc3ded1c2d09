"""log.csv of a finetuning run, from the history that transformers' Trainer keeps in its checkpoints."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text

_NAMES = {"learning_rate": "lr", "grad_norm": "gradient", "eval_loss": "validation"}
_FIRST = ("step", "epoch", "loss", "lr", "gradient", "validation")


def log_rows(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per step with our column names; summaries of the whole run are left out."""
    rows: dict[int, dict[str, Any]] = {}
    for entry in history:
        if "loss" in entry or "eval_loss" in entry:
            rows.setdefault(entry["step"], {}).update({_NAMES.get(name, name): value for name, value in entry.items()})
    return [rows[step] for step in sorted(rows)]


def write_log(out: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a run to ``OUT/log.csv``."""
    rows = log_rows(history)
    names = dict.fromkeys([*_FIRST, *(name for row in rows for name in row)])
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(out / "log.csv", text.getvalue())
