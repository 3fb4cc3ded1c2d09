"""Collator of rationales, and the reader of JSONL files of rationale rows (Distilling step-by-step, section 2.3).

``multi-task``   two rows per example: ``[label] x`` to the label, ``[rationale] x`` to the rationale (eq. 2.3, 2.4)
``single-task``  one row: x to rationale and label as one text (eq. 2.5)
``label``        one row: ``[label] x`` to the label (standard finetuning)

All rows of an example share a batch. Shards yield the rows that `pairwright export --to rationales` writes. In a JSONL
(`pairwright generate rationales`, `pairwright export --to rationales`), the rows with one ``id`` are an example.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from pairwright.datasets.errors import InputError
from pairwright.datasets.exports.rationales import StudentRows
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.records import Example, Origin
from pairwright.datasets.rejects import Reject
from pairwright.datasets.shards.indexed_shards import find_indexed_shards
from pairwright.training.loading.shard_index import (
    SampleJson,
    SampleSelection,
    ShardSamples,
    StoredSample,
    index_shards,
)
from pairwright.training.loading.tokenization import IGNORE_INDEX, encode

ROWS = "student_rows"
_MEMBERS = ("id", "objective", "input", "output", "split")


@dataclass(frozen=True, slots=True)
class RationaleFile:
    """Usable examples of a JSONL file."""

    path: Path  # of the file
    examples: tuple[list[SampleJson], ...]  # for each its rows
    left_out: Mapping[str, int]  # skipped examples by reason

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of examples, as a tuple of one file."""
        return (len(self.examples),)

    def find(self, numbers: Sequence[int]) -> Iterator[StoredSample | Reject]:
        """Yield the examples with these numbers, in order."""
        for number in numbers:
            rows = self.examples[number]
            yield StoredSample(rows[0]["id"], f"{self.path}, example {rows[0]['id']}", "", {ROWS: rows}, b"")


SampleIndex = ShardSamples | RationaleFile


def index_samples(data: str, selection: SampleSelection) -> SampleIndex:
    """Return the samples of shards, or the examples of a ``.jsonl`` of rationale rows; errors as of `index_shards`."""
    return _read_file(Path(data), selection) if data.endswith(".jsonl") else index_shards(data, selection)


def _read_file(path: Path, selection: SampleSelection) -> RationaleFile:
    check_training_data(str(path))
    rows: defaultdict[str, list[SampleJson]] = defaultdict(list)
    for found in read_jsonl(path):
        if isinstance(found, Reject):
            raise InputError(found.detail, where=found.place, fix="Write the rows again.")
        if not all(isinstance(found.fields.get(name), str) for name in _MEMBERS):
            what = f"not a rationale row: {', '.join(_MEMBERS)} must be strings"
            raise InputError(what, where=found.place, fix="pairwright export --to rationales writes such rows.")
        rows[found.fields["id"]].append(found.fields)
    if not rows:
        raise InputError("no rows", where=str(path), fix="Write rows with pairwright generate rationales.")
    reasons = {name: selection.lacks({ROWS: found}) if selection.lacks else "" for name, found in rows.items()}
    kept = tuple(found for name, found in rows.items() if not reasons[name])
    return RationaleFile(path, kept, Counter(filter(None, reasons.values())))


def check_training_data(data: str) -> None:
    """Check that data exist: shards, or a ``.jsonl`` of rationale rows."""
    if not data.endswith(".jsonl"):
        find_indexed_shards(data)
    elif not Path(data).is_file():
        raise InputError("no such file", where=data, fix="Pass a .jsonl of rationale rows.")


Objectives = Literal["multi-task", "single-task", "label"]

_TARGETS = {"multi-task": ("label", "rationale"), "single-task": ("both",), "label": ("label",)}


@dataclass(frozen=True)
class RationaleCollator:
    """Collator of rationales."""

    objectives: Objectives = "multi-task"  # see the module
    split: str = "train"  # train or validation
    processor: Any = None  # tokenizer of the encoder-decoder; needed for batches only
    max_tokens: int = 1024  # per text; longer ones are truncated

    unit, units = "samples", None  # all rows of an example are in one batch

    def lacks(self, body: SampleJson) -> str:
        """Return ``no_rationales`` for a sample without a row of this split and objective."""
        return "" if self.rows("", body) else "no_rationales"

    def length(self, sample: StoredSample) -> int:
        """Return the number of characters of an example's texts."""
        return sum(len(row["input"]) + len(row["output"]) for row in self.rows(sample.key, sample.body))

    def __call__(self, samples: Sequence[Any]) -> dict[str, Any]:
        """Return the model's inputs with ``labels``, and ``rationale``, bool (b,): the output is a rationale.

        ``skipped`` has the unusable samples, ``cut`` the number of truncated texts.
        """
        usable = [sample for sample in samples if isinstance(sample, StoredSample)]
        rows = [row for sample in usable for row in self.rows(sample.key, sample.body)]
        counted = bool(rows)
        rows = rows or [{"input": "", "output": "", "objective": "label"}]  # a process cannot miss a step
        ids, mask, cut_inputs = encode([row["input"] for row in rows], self.processor, self.max_tokens)
        outputs = [row["output"] for row in rows]
        labels, _, cut_outputs = encode(outputs, self.processor, self.max_tokens, fill=IGNORE_INDEX)
        return {
            "input_ids": ids,
            "attention_mask": mask.long(),
            "labels": labels if counted else torch.full_like(labels, IGNORE_INDEX),
            "rationale": torch.tensor([row["objective"] == "rationale" for row in rows], dtype=torch.bool),
            "skipped": [sample for sample in samples if not isinstance(sample, StoredSample)],
            "cut": cut_inputs + cut_outputs,
        }

    def rows(self, key: str, body: SampleJson) -> list[dict[str, Any]]:
        """Return the rationale rows of a sample, or of an example of a file."""
        rows = [row for row in body.get(ROWS, ()) if row["split"] == self.split]
        exporter = StudentRows("single-task" if self.objectives == "single-task" else "multi-task")
        for known in body.get("rationales", ()):
            if known["split"] == self.split:
                rows += exporter.make_rows(Example(id=key, origin=Origin("shard", 1), key=key, **known))
        return [row for row in rows if row["objective"] in _TARGETS[self.objectives]]
