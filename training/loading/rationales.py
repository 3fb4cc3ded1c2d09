"""Texts with a label and a rationale, for a small model that learns from both (Distilling step-by-step, section 2.3).

``multi-task``   two rows an example: ``[label] x`` gives the label, ``[rationale] x`` the rationale (equations 2.3, 2.4)
``single-task``  one row: x gives rationale and label as one text (equation 2.5)
``label``        one row: ``[label] x`` gives the label (standard finetuning)

The rows of an example stand in the same batch. Those of shards are told as `pairwright export --to rationales` tells
them; files of such rows are read by `student_file.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from pairwright.datasets.exports.rationales import StudentRows
from pairwright.datasets.records import Example, Origin
from pairwright.training.loading.batches import IGNORE_INDEX, PackedBatch, RationaleBatch
from pairwright.training.loading.collation import CollationContext, Needs, PreparedImage
from pairwright.training.loading.rationale_file import ROWS
from pairwright.training.loading.samples import SampleJson, StoredSample
from pairwright.training.loading.tokenization import encode, pad_rows, padding_id

Objectives = Literal["multi-task", "single-task", "label"]

_TARGETS = {"multi-task": ("label", "rationale"), "single-task": ("both",), "label": ("label",)}


@dataclass(frozen=True, slots=True)
class RationaleCollator:
    """The recipe of rationales; see the module.

    Attributes:
        objectives: see the module.
        split: train or validation.
    """

    objectives: Objectives = "multi-task"
    split: str = "train"

    needs: Needs = "each"
    members = frozenset[str]()
    unit, units = "samples", None

    def lacks(self, body: SampleJson) -> str:
        """Return whether a sample has no row of this split and objective."""
        return "" if self.rows("", body) else "no_rationales"

    def collate(
        self,
        samples: Sequence[StoredSample],
        pictures: Sequence[PreparedImage],  # noqa: ARG002 - as every recipe
        making: CollationContext,
    ) -> PackedBatch[RationaleBatch]:
        """Return the batch of these samples."""
        rows = [(sample.key, row) for sample in samples for row in self.rows(sample.key, sample.body)]
        asked, cut_asked = encode([row["input"] for _, row in rows], making.texts)
        said, cut_said = encode([row["output"] for _, row in rows], making.texts)
        texts, mask = pad_rows(asked, padding_id(making.texts))
        targets, _ = pad_rows(said, IGNORE_INDEX)
        rationale = torch.tensor([row["objective"] == "rationale" for _, row in rows])
        batch = RationaleBatch(texts, mask, targets, rationale, [key for key, _ in rows], cut_asked + cut_said)
        return PackedBatch(batch, torch.empty(0, dtype=torch.uint8), torch.empty(0, dtype=torch.int64))

    def rows(self, key: str, body: SampleJson) -> list[dict[str, Any]]:
        """Return the student rows of a sample, or of an example of a file, which has them ready."""
        rows = [row for row in body.get(ROWS, ()) if row["split"] == self.split]
        told = StudentRows("single-task" if self.objectives == "single-task" else "multi-task")
        for known in body.get("rationales", ()):
            if known["split"] == self.split:
                rows += told.make_rows(Example(id=key, origin=Origin("shard", 1), key=key, **known))
        return [row for row in rows if row["objective"] in _TARGETS[self.objectives]]
