"""A student of Distilling step-by-step on examples it has not seen: is the label right, and the rationale as written?

Both are generated, likeliest token by token. A label is right when it is the same text but for capitals and spacing. A
rationale is compared twice: whether it is the same text (rare beyond toy tasks), and by F1 over its words, as answers
of SQuAD are. A student trained on one text (equation 2.5) has its label behind "So the answer is".
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pairwright.datasets.errors import InputError
from pairwright.training.evaluation.figures import Figure, Findings
from pairwright.training.evaluation.subjects import Subject
from pairwright.training.loading.raw import Samples
from pairwright.training.loading.shard_index import index_shards
from pairwright.training.loading.student_file import index_students
from pairwright.training.loading.students import Students
from pairwright.training.loading.texts import TextOptions, encode, fill_of, load_tokenizer, padded
from pairwright.training.models.rationales import Student

ANSWER = "So the answer is"
_TOKENS = 1024  # of an input; the appendix's longest
_NO_ROWS = "no_rationales"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing that the student is to write.

    Attributes:
        task: such as ``nli``.
        objective: label, rationale or both.
        input: with its prefix.
        output: what is right.
    """

    task: str
    objective: str
    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of examples, and how many examples were left out."""

    rows: list[Task]
    left_out: int


def tasks(data: Sequence[str], *, split: str = "validation", single: bool = False) -> Tasks:
    """Return what a student is asked about the examples of a split.

    Args:
        data: shards with rationales, or JSONL files of student rows.
        split: train or validation.
        single: ask for one text, rationale and label together.

    Raises:
        InputError: a file is broken, or has no such example.
    """
    wanted = Students("single-task" if single else "multi-task", split)
    rows: list[Task] = []
    left_out = 0
    for one in data:
        given: Samples = (
            index_students(Path(one), wanted.lacks) if one.endswith(".jsonl") else index_shards(one, wanted.lacks)
        )
        left_out += given.left_out.get(_NO_ROWS, 0)
        for sample in given.read(range(sum(given.counts))):
            rows += [
                Task(row.get("task", ""), row["objective"], row["input"], row["output"])
                for row in wanted.rows(sample.key, sample.body)
            ]
    if not rows:
        kind = "both" if single else "label or rationale"
        mend = "Name another --split, or give files that hold some (--single-task: those of such students)."
        raise InputError(f"no row of objective {kind} in split {split}", where=", ".join(data), mend=mend)
    return Tasks(rows, left_out)


def answered(subject: Subject, given: Tasks, *, batch: int = 32, longest: int = 256) -> Findings:
    """Return the accuracy of labels and of rationales, by task where there are several.

    Args:
        subject: a student.
        given: what to ask.
        batch: texts at once.
        longest: tokens of an answer at most.
    """
    said, cut = _written(subject, [row.input for row in given.rows], batch, longest)
    names = sorted({row.task for row in given.rows})
    parts = [*(names if len(names) > 1 else []), "all"]
    figures: list[Figure] = []
    for part in parts:
        chosen = [(row, text) for row, text in zip(given.rows, said, strict=True) if part in ("all", row.task)]
        figures += _figures(part, chosen)
    counts = {"inputs were longer than the model reads, and lost their end": cut}
    counts["examples have no row of this split and are left out"] = given.left_out
    return Findings(tuple(figures), {told: number for told, number in counts.items() if number})


def _figures(part: str, rows: Sequence[tuple[Task, str]]) -> list[Figure]:
    labels, rationales = list[tuple[str, str]](), list[tuple[str, str]]()
    for task, text in rows:
        if task.objective == "label":
            labels.append((task.output, text))
        elif task.objective == "rationale":
            rationales.append((task.output, text))
        else:
            (wanted_why, wanted), (why, label) = split_answer(task.output), split_answer(text)
            labels.append((wanted, label))
            rationales.append((wanted_why, why))
    figures = []
    if labels:
        figures.append(Figure.share(part, "label", sum(same(*pair) for pair in labels), len(labels)))
    if rationales:
        figures.append(
            Figure.share(part, "rationale, same text", sum(same(*pair) for pair in rationales), len(rationales))
        )
        shared = np.array([word_f1(*pair) for pair in rationales])
        figures.append(Figure.mean(part, "rationale, words (F1)", shared))
    return figures


def same(wanted: str, said: str) -> bool:
    """Tell whether two texts are the same but for capitals and spacing."""
    return wanted.casefold().split() == said.casefold().split()


def word_f1(wanted: str, said: str) -> float:
    """Return F1 over the words of two texts, 0-1; of two empty ones 1."""
    one, two = Counter(wanted.casefold().split()), Counter(said.casefold().split())
    if not one or not two:
        return float(one == two)
    return 2 * (one & two).total() / (one.total() + two.total())


def split_answer(text: str) -> tuple[str, str]:
    """Return rationale and label of one text; without the mark between them there is no label."""
    why, mark, label = text.rpartition(ANSWER)
    if not mark:  # a tokenizer may have other capitals and spaces
        place = text.casefold().rfind(ANSWER.casefold())
        why, label = (text[:place], text[place + len(ANSWER) :]) if place >= 0 else (text, "")
    label = label.strip()
    return why.strip(), label.removesuffix(".").strip()


def _written(subject: Subject, inputs: Sequence[str], batch: int, longest: int) -> tuple[list[str], int]:
    model = subject.model
    assert isinstance(model, Student)  # tasks.py lets no other kind come here
    options = TextOptions(subject.named.folder, _TOKENS)
    tokenizer: Any = load_tokenizer(options.tokenizer)
    device = next(model.parameters()).device
    texts, cut = list[str](), 0
    for start in range(0, len(inputs), batch):
        ids, lost = encode(inputs[start : start + batch], options)
        cut += lost
        asked, mask = padded(ids, fill_of(options))
        with torch.inference_mode():
            said = model.answer(asked.to(device), mask.to(device), most=longest)
        texts += tokenizer.batch_decode(said, skip_special_tokens=True)
    return texts, cut
