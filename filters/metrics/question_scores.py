"""Measures of benchmarks over questions with several rows, from the scores of images and texts.

With s(I, c) the score of an image and a caption; all comparisons are strict:

- *choice*: the caption of an image beats all its negatives (What'sUp, NegBench). Chance level 1 / (1 + negatives).
- *pair*, *set*: all choices of a pair (2) or a set (4) are right (What'sUp). Incomplete ones are not counted.
- *text*, *image*, *group* (Winoground), of two images with two captions: each image prefers its caption; each caption
  prefers its image; both. Chance levels 1/4, 1/4, 1/6.
- *class mean*: mean of the accuracies of the classes (ARO).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

QUESTION_COLUMNS: Final = ("choice", "pair", "set", "group", "class")
_COMPLETE: Final = {"pair": 2, "set": 4}
_GROUP_CHANCE: Final = {"text": 1 / 4, "image": 1 / 4, "group": 1 / 6}

Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QuestionMeasure:
    """A measure whose value of a question is at the question's first row.

    Attributes:
        name: of the measure.
        right: bool (n,).
        counted: bool (n,), rows that are the first of a counted question.
        chance: float64 (n,), chance level of each counted question.
    """

    name: str
    right: Flags
    counted: Flags
    chance: Scores


def question_measures(scores: pl.DataFrame) -> list[QuestionMeasure]:
    """Return the measures of all questions in scored rows.

    Args:
        scores: ``s_caption``, ``s_negative`` (no nulls) and the ``QUESTION_COLUMNS`` that there are.
    """
    columns = {name: scores[name].to_list() if name in scores.columns else [] for name in QUESTION_COLUMNS}
    caption, negative = (scores[name].to_numpy() for name in ("s_caption", "s_negative"))
    found = [_choices(_rows_by_key(columns["choice"]), caption > negative)]
    found += [_together(name, _rows_by_key(columns[name]), found[0]) for name in _COMPLETE]
    found += _groups(_rows_by_key(columns["group"]), caption, negative)
    return [one for one in found if one.counted.any()]


def class_accuracies(scores: pl.DataFrame) -> Scores:
    """Return the accuracy of each class, in order of their names, float64 (classes,); empty without classes."""
    classes = _rows_by_key(scores["class"].to_list() if "class" in scores.columns else [])
    measures = {one.name: one for one in question_measures(scores)}
    right = (scores["s_caption"] > scores["s_negative"]).to_numpy()
    counted = np.ones(len(right), dtype=bool)
    if "choice" in measures:
        right, counted = measures["choice"].right, measures["choice"].counted
    means = [right[rows][counted[rows]].mean() for _, rows in sorted(classes.items()) if counted[rows].any()]
    return np.array(means, dtype=np.float64)


def _rows_by_key(keys: Sequence[str | None]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        if key:
            found[key].append(row)
    return dict(found)


def _measure(name: str, rows: int, questions: Iterator[tuple[int, bool, float]]) -> QuestionMeasure:
    """Return a measure of (first row, right, chance level) of each question."""
    right, counted, chance = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool), np.zeros(rows)
    for first, hit, level in questions:
        right[first], counted[first], chance[first] = hit, True, level
    return QuestionMeasure(name, right, counted, chance)


def _choices(choices: dict[str, list[int]], right: Flags) -> QuestionMeasure:
    found = ((rows[0], bool(right[rows].all()), 1 / (1 + len(rows))) for rows in choices.values())
    return _measure("choice", len(right), found)


def _together(name: str, groups: dict[str, list[int]], choices: QuestionMeasure) -> QuestionMeasure:
    def found() -> Iterator[tuple[int, bool, float]]:
        for rows in groups.values():
            firsts = [row for row in rows if choices.counted[row]]
            if len(firsts) == _COMPLETE[name]:
                yield firsts[0], bool(choices.right[firsts].all()), float(choices.chance[firsts].prod())

    return _measure(name, len(choices.right), found())


def _groups(groups: dict[str, list[int]], caption: Scores, negative: Scores) -> Iterator[QuestionMeasure]:
    pairs = [rows for rows in groups.values() if len(rows) == 2]

    def right(name: str, one: int, two: int) -> bool:
        text = caption[one] > negative[one] and caption[two] > negative[two]
        # The negative of a row is the caption of the other, so its score is that of the other caption.
        image = caption[one] > negative[two] and caption[two] > negative[one]
        return bool({"text": text, "image": image, "group": text and image}[name])

    for name, chance in _GROUP_CHANCE.items():
        yield _measure(name, len(caption), ((one, right(name, one, two), chance) for one, two in pairs))
