"""Accuracy of labels and rationales of a Distilling step-by-step student on held-out examples.

Both are generated greedily. A label is correct if it is the same text up to case and spacing. A rationale is compared by
equality (rare beyond toy tasks) and by F1 over words, as answers in SQuAD. A student trained on one text (eq. 2.5) has
its label after "So the answer is".
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from pairwright.datasets.errors import InputError
from pairwright.datasets.rejects import Reject
from pairwright.filters.evaluation.results import Metric, TaskResult
from pairwright.training.evaluation.evaluated_models import EvaluatedModel
from pairwright.training.loading.rationales import RationaleCollator, index_samples
from pairwright.training.loading.shard_index import SampleSelection
from pairwright.training.loading.tokenization import encode
from pairwright.training.models.generative import EncoderDecoder

ANSWER_MARK = "So the answer is"
_TOKENS = 1024  # per input; the maximum in the appendix
_NO_ROWS = "no_rationales"


Row = Mapping[str, Any]
"""A rationale row: ``task``, ``objective`` (label, rationale or both), ``input`` with its prefix, ``output``."""


def read_student_tasks(
    data: Sequence[str], *, split: str = "validation", single: bool = False
) -> tuple[list[Row], int]:
    """Return the rows of the examples of a split (train or validation), and the number of skipped examples.

    ``data`` are shards with rationales, or JSONL files of rationale rows; ``single``: one text with rationale and
    label.
    """
    collator = RationaleCollator("single-task" if single else "multi-task", split)
    rows: list[Row] = []
    left_out = 0
    for one in data:
        given = index_samples(one, SampleSelection(collator.lacks))
        left_out += given.left_out.get(_NO_ROWS, 0)
        for sample in given.find(range(sum(given.counts))):
            if isinstance(sample, Reject):
                raise sample.error()
            rows += collator.rows(sample.key, sample.body)
    if not rows:
        kind = "both" if single else "label or rationale"
        fix = "Set another --split, or pass files with such rows (--single-task: rows with both)."
        raise InputError(f"no row of objective {kind} in split {split}", where=", ".join(data), fix=fix)
    return rows, left_out


def rationale_accuracy(
    subject: EvaluatedModel, rows: Sequence[Row], left_out: int, *, batch: int = 32, longest: int = 256
) -> TaskResult:
    """Return the accuracy of labels and rationales, also by task if several; ``left_out`` examples are reported."""
    generated, cut = _generate(subject, [row["input"] for row in rows], batch, longest)
    tasks = [row.get("task", "") for row in rows]
    parts = [*(sorted(set(tasks)) if len(set(tasks)) > 1 else []), "all"]
    metrics: list[Metric] = []
    labels, rationales = zip(*map(_label_and_rationale, rows, generated), strict=True)
    for part in parts:
        chosen = np.array([part in ("all", task) for task in tasks])
        for name, measure, pairs in (
            ("label", equal_texts, labels),
            ("rationale, same text", equal_texts, rationales),
            ("rationale, words (F1)", word_f1, rationales),
        ):
            values = np.array([np.nan if pair is None else float(measure(*pair)) for pair in pairs])
            counted = chosen & ~np.isnan(values)
            if not counted.any():
                continue
            if measure is word_f1:
                metrics.append(Metric.mean(part, name, values, counted=counted))
            else:
                metrics.append(Metric.rate(part, name, values > 0, counted=counted))
    counts = {"inputs exceeded the model's limit and were truncated": cut}
    counts["examples have no row of this split and are skipped"] = left_out
    return TaskResult(tuple(metrics), {sentence: number for sentence, number in counts.items() if number})


_Pair = tuple[str, str]  # expected, generated


def _label_and_rationale(row: Row, text: str) -> tuple[_Pair | None, _Pair | None]:
    """Return the (expected, generated) label and rationale of a row; None where not requested."""
    if row["objective"] == "label":
        return (row["output"], text), None
    if row["objective"] == "rationale":
        return None, (row["output"], text)
    (expected_why, expected), (why, label) = split_answer(row["output"]), split_answer(text)
    return (expected, label), (expected_why, why)


def equal_texts(expected: str, generated: str) -> bool:
    """Return whether two texts are equal up to case and spacing."""
    return expected.casefold().split() == generated.casefold().split()


def word_f1(expected: str, generated: str) -> float:
    """Return F1 over the words of two texts, 0-1; 1 for two empty ones."""
    one, two = Counter(expected.casefold().split()), Counter(generated.casefold().split())
    if not one or not two:
        return float(one == two)
    return 2 * (one & two).total() / (one.total() + two.total())


def split_answer(text: str) -> tuple[str, str]:
    """Return the rationale and label of one text; without `ANSWER_MARK` the label is empty."""
    why, mark, label = text.rpartition(ANSWER_MARK)
    if not mark:  # a tokenizer may change case and spacing
        place = text.casefold().rfind(ANSWER_MARK.casefold())
        why, label = (text[:place], text[place + len(ANSWER_MARK) :]) if place >= 0 else (text, "")
    label = label.strip()
    return why.strip(), label.removesuffix(".").strip()


def _generate(subject: EvaluatedModel, inputs: Sequence[str], batch: int, longest: int) -> tuple[list[str], int]:
    model = subject.model
    assert isinstance(model, EncoderDecoder)  # checked by tasks.py
    tokenizer = model.processor
    device = next(model.parameters()).device
    texts, cut = list[str](), 0
    for start in range(0, len(inputs), batch):
        input_ids, mask, lost = encode(inputs[start : start + batch], tokenizer, _TOKENS)
        cut += lost
        with torch.inference_mode():
            batch_inputs = {"input_ids": input_ids.to(device), "attention_mask": mask.long().to(device)}
            generated = model.answer(batch_inputs, most=longest)
        texts += tokenizer.batch_decode(generated, skip_special_tokens=True)
    return texts, cut
