"""Conditional retrieval: images with the same label are near each other under an instruction (FocalLens, section 5.4.1).

Each condition has an instruction; images are embedded under it, and each is a query for the others. With labels: mean
average precision. With RGB colors: Spearman's rank correlation of cosine and RGB distance per query, averaged.

A model without instructions has one embedding for all conditions: the baseline of the dissertation's table 5.1.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.filters.evaluation.readers import LabelledImages
from pairwright.filters.evaluation.results import Metric, TaskResult
from pairwright.filters.metrics.retrieval_precision import average_precisions, random_precision
from pairwright.training.evaluation.embedding import INSTRUCTED_KINDS, Embedder, EmbeddingRows

RGB = "rgb"
# Table D.3.
INSTRUCTIONS = {
    "colour": "What is the color of the object in the image?",
    "shape": "What is the shape of the object in the image?",
    "both": "What is the color and shape of the object in the image?",
    RGB: "What is the color of the object in the image?",
}
_BLOCK = 256

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Condition:
    """A criterion for similar images."""

    name: str  # of the label column, or several joined by ``+``, or ``rgb``
    instruction: str  # given to the model
    labels: tuple[str, ...]  # one per image; empty for ``rgb``
    colours: Numbers | None = None  # float64 (n, 3), 0-255, for ``rgb``; else None


def select_conditions(given: LabelledImages, by: Sequence[str], instructions: Mapping[str, str]) -> list[Condition]:
    """Return the named conditions, or all columns with a known instruction.

    ``by`` names columns, several joined by ``+``, or ``rgb`` for the columns ``r``, ``g``, ``b``; empty: those of
    `INSTRUCTIONS`, which ``instructions`` overrides.
    """
    columns = set(given.labels.columns)
    known = columns | ({RGB} if set(RGB) <= columns else set())
    names = list(dict.fromkeys(by)) or [name for name in INSTRUCTIONS if name in known]
    if not names:
        raise UsageError(f"{given.where}: pass --by with a label column; known: {', '.join(given.labels.columns)}.")
    require_known("--instruction: no such condition:", instructions, names)
    return [_condition(given, name, instructions) for name in names]


def _condition(given: LabelledImages, name: str, instructions: Mapping[str, str]) -> Condition:
    instruction = instructions.get(name) or INSTRUCTIONS.get(name, "")
    if not instruction:
        raise UsageError(f"--by {name} requires an instruction: pass --instruction '{name}=What is the {name} ...?'")
    if name != RGB:
        return Condition(name, instruction, tuple(given.texts(name)))
    given.texts("r+g+b")  # checks the columns
    try:
        colours = given.labels.select(pl.col(*RGB).cast(pl.Float64)).to_numpy()
    except pl.exceptions.PolarsError:
        raise InputError("r, g and b are not numbers", where=given.where, fix="Set them to 0 to 255.") from None
    return Condition(name, instruction, (), colours)


def conditional_precision(embedder: Embedder, images: Sequence[str], conditions: Sequence[Condition]) -> TaskResult:
    """Return mAP (or rank correlation) by condition, and the mean mAP of several conditions."""
    reads = embedder.subject.kind in INSTRUCTED_KINDS
    plain = None if reads else embedder.images(images)
    metrics: list[Metric] = []
    for condition in conditions:
        rows = embedder.images(images, condition.instruction) if plain is None else plain
        metrics.append(_condition_metric(rows, condition))
    maps = [metric for metric in metrics if metric.measure == "mAP"]
    if len(maps) > 1:
        value = sum(metric.value for metric in maps) / len(maps)
        # Conditions share their images, so the interval is the widest for a mean over the same queries.
        half = [sum(side) / len(maps) for side in ([one.low for one in maps], [one.high for one in maps])]
        chance = sum(metric.chance or 0.0 for metric in maps) / len(maps)
        # Per image; images without another of their label under some condition do not count.
        units = np.mean([one.units for one in maps if one.units is not None], axis=0)
        metrics.append(Metric("mean", "mAP", value, half[0], half[1], len(images), chance, units=units))
    instructions = {one.name: one.instruction if reads else "" for one in conditions}
    return TaskResult(tuple(metrics), {}, {"images": len(images), "instructions": instructions})


def _condition_metric(rows: EmbeddingRows, condition: Condition) -> Metric:
    if condition.colours is not None:
        return Metric.mean(
            condition.name, "rank correlation", rank_correlations(rows, condition.colours), 0.0, percent=False
        )
    precisions, others = average_precisions(rows, condition.labels)
    alike = Counter(condition.labels)
    counted = np.array([alike[label] > 1 for label in condition.labels])  # others have nothing to retrieve
    values = np.zeros(len(rows))
    values[counted] = precisions
    return Metric.mean(condition.name, "mAP", values, random_precision(others, len(rows) - 1), counted=counted)


def rank_correlations(rows: EmbeddingRows, colours: Numbers) -> Numbers:
    """Return Spearman's correlation of cosine and nearness in RGB, for each image as a query for all others.

    Ties share their mean rank. A query with only ties, in either, has 0. ``colours`` are float64 (n, 3), n at least 3.
    """
    if len(rows) < 3:
        raise InputError(f"{len(rows)} images", where=RGB, fix="A rank correlation requires at least three.")
    from scipy.stats import rankdata

    found = np.zeros(len(rows))
    for start in range(0, len(rows), _BLOCK):
        places = np.arange(start, min(start + _BLOCK, len(rows)))
        others = np.array([np.delete(np.arange(len(rows)), place) for place in places])
        cosine = np.take_along_axis(rows[places] @ rows.T, others, axis=1)
        far = np.linalg.norm(colours[places][:, None] - colours[None], axis=2)
        ranks = rankdata(cosine, axis=1), rankdata(-np.take_along_axis(far, others, axis=1), axis=1)
        one, two = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
        below = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
        found[places] = np.divide((one * two).sum(axis=1), below, out=np.zeros(len(places)), where=below > 0)
    return found
