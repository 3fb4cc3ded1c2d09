"""Texts with a label and a rationale, for a small model that learns from both (Distilling step-by-step, section 2.3).

``multi-task``   two rows an example: ``[label] x`` gives the label, ``[rationale] x`` the rationale (equations 2.3, 2.4)
``single-task``  one row: x gives rationale and label as one text (equation 2.5)
``label``        one row: x gives the label (standard finetuning)

The rows of an example stand in the same batch. Those of shards are told as `pairwright export --to rationales` tells
them; files of such rows are read by `student_file.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from pairwright.datasets.exports.rationales import StudentRows
from pairwright.datasets.records import Example, Origin
from pairwright.training.loading.batches import IGNORED, Packed, StudentBatch
from pairwright.training.loading.recipes import Making, Needs
from pairwright.training.loading.shard_index import Body, RawSample
from pairwright.training.loading.texts import encode, fill_of, padded

Objectives = Literal["multi-task", "single-task", "label"]


@dataclass(frozen=True, slots=True)
class Students:
    """The recipe of rationales; see the module.

    Attributes:
        objectives: see the module.
        split: train or validation.
    """

    objectives: Objectives = "multi-task"
    split: str = "train"

    needs: Needs = "each"
    pictures = False

    def lacks(self, body: Body) -> str:
        """Return whether a sample has no rationale of this split."""
        return "" if any(row["split"] == self.split for row in body.get("rationales", ())) else "no_rationales"

    def collate(self, samples: Sequence[RawSample], making: Making) -> Packed[StudentBatch]:
        """Return the batch of these samples."""
        rows = [(sample.key, row) for sample in samples for row in self._rows(sample)]
        asked, cut_asked = encode([row["input"] for _, row in rows], making.texts)
        said, cut_said = encode([row["output"] for _, row in rows], making.texts)
        texts, mask = padded(asked, fill_of(making.texts))
        targets, _ = padded(said, IGNORED)
        rationale = torch.tensor([row["objective"] == "rationale" for _, row in rows])
        batch = StudentBatch(texts, mask, targets, rationale, [key for key, _ in rows], cut_asked + cut_said)
        return Packed(batch, torch.empty(0, dtype=torch.uint8), torch.empty(0, dtype=torch.int64))

    def _rows(self, sample: RawSample) -> list[dict[str, Any]]:
        told = StudentRows("single-task" if self.objectives == "single-task" else "multi-task")
        if self.objectives == "label":
            told = StudentRows(label_prefix="")
        rows = [
            row
            for known in sample.body.get("rationales", ())
            if known["split"] == self.split
            for row in told.of(Example(id=sample.key, origin=Origin("shard", 1), key=sample.key, **known))
        ]
        return [row for row in rows if row["objective"] == "label"] if self.objectives == "label" else rows
