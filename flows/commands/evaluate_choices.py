"""Evaluation of a model that writes text on captions and hard negatives: ``pairwright evaluate choices``.

The model sees each image and chooses a caption, in both orders, or gives the probability of each caption
(`filters.metrics.image_choices`). Answers are in the cache; failed rows are retried with ``--retry-failed``.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.records import Annotation
from pairwright.filters.evaluation.hard_negative_metrics import SCORE_SCHEMA, hard_negative_metrics
from pairwright.filters.evaluation.readers import HardNegativeRow, HardNegativeRows, read_hard_negatives
from pairwright.filters.evaluation.results import Metric, ModelResult, TaskResult
from pairwright.filters.metrics.hard_negative_accuracy import evaluate_scores
from pairwright.filters.metrics.image_choices import NO_PROBABILITIES, CaptionChoice, CaptionProbability, ChoiceRow
from pairwright.filters.metrics.question_scores import QUESTION_COLUMNS
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import collect_rows
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot

Method = Literal["choice", "probability"]
_ACROSS_IMAGES: Final = frozenset({"image", "group"})  # a choice between captions does not compare images


@dataclass(frozen=True)
class ChoiceRequest:
    """Data and method of an evaluation.

    Attributes:
        data: shards or files of rows.
        images: root folder of image paths.
        layout: of the files; empty to detect it.
        method: ``choice`` between two captions, or ``probability`` of each.
        out: output next to which failed rows are written.
        limit: rows to evaluate, the first ones; 0: all.
    """

    data: tuple[str, ...]
    images: str
    layout: str
    method: Method
    out: Path
    limit: int = 0

    def read(self) -> HardNegativeRows:
        """Return the rows; errors as of `read_hard_negatives`."""
        given = read_hard_negatives(self.data, self.images, self.layout)
        return replace(given, rows=given.rows[: self.limit or None])


def plan_choices(request: ChoiceRequest, access: ModelAccess) -> StagePlan:
    """Return an estimate of `evaluate_choices`.

    Raises:
        PairwrightError: settings, prices or rows are invalid.
    """
    access.settings()  # reports invalid settings before any work
    generator = _generator(request, access, request.read())
    return PairTask(generator, access, access.seed).estimate(generator.pairs, request.out)


def evaluate_choices(
    request: ChoiceRequest, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> tuple[ModelResult, dict[str, Any]]:
    """Return the result of the model, and the bill.

    Raises:
        InputError: no row has scores.
        PairwrightError: the run could not start, or what stopped it; answers are in the cache.
    """
    access.check()
    given = request.read()
    generator = _generator(request, access, given)
    task, pairs = PairTask(generator, access, access.seed), generator.pairs
    made, run = collect_rows(access, task, task.rows(pairs), len(pairs), out=request.out, note=note, watch=watch)
    found = summarize_answers(request.method, given, {pair.key: rows[0] for pair, rows in made})
    where = "local" if access.local is not None else "server"
    return ModelResult(access.model, f"{where}, {request.method}", found), run.bill()


def _generator(
    request: ChoiceRequest, access: ModelAccess, given: HardNegativeRows
) -> CaptionChoice | CaptionProbability:
    rows = [_choice_row(row) for row in given.rows]
    generator = CaptionChoice if request.method == "choice" else CaptionProbability
    return generator(access.prompts(), access.model, access.images, rows)


def _choice_row(row: HardNegativeRow) -> ChoiceRow:
    return ChoiceRow(row.image, row.caption, row.negative)


def summarize_answers(method: Method, given: HardNegativeRows, answers: Mapping[str, Annotation]) -> TaskResult:
    """Return the metrics of the answers.

    Args:
        method: of the evaluation.
        given: the rows.
        answers: annotation of each row, by the key of its pair.

    Raises:
        InputError: no row has scores.
    """
    keyed = [(row, answers[_choice_row(row).pair.key]) for row in given.rows]
    scored = [(row, answer.scores) for row, answer in keyed if not answer.reason]
    reasons = Counter(answer.reason for _, answer in keyed if answer.reason)
    if not scored:
        what = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
        fix = "Use --method choice." if NO_PROBABILITIES in reasons else "Check the images and the model."
        raise InputError(f"no row has an answer ({what})", where="evaluate choices", fix=fix)
    metrics = _choice_metrics(given, scored) if method == "choice" else _probability_metrics(given, scored)
    counts = {f"rows have no answer ({reason}) and are left out": count for reason, count in sorted(reasons.items())}
    if method == "choice" and (unclear := sum(2 - s["caption"] - s["negative"] for _, s in scored)):
        counts["answers name no caption and are wrong"] = int(unclear)
    rows = [
        {"image": row.image, "caption": row.caption, "negative": row.negative, "type": row.type, "scores": scores}
        for row, scores in scored
    ]
    return TaskResult(metrics, {**given.left_out, **counts}, {"rows": rows})


Scored = list[tuple[HardNegativeRow, dict[str, float]]]


def _choice_metrics(given: HardNegativeRows, scored: Scored) -> tuple[Metric, ...]:
    """Return the accuracy over both orders, the share right in both, and the share where the order decides.

    Measures of questions count a row as right if both answers name its caption.
    """
    caption, turned = (np.array([scores[name] for _, scores in scored]) for name in ("caption", "turned"))
    types = np.array([row.type for row, _ in scored])
    metrics: list[Metric] = []
    for part in [*(sorted(set(types)) if len(set(types)) > 1 else ()), "all"]:
        of = (types == part) | (part == "all")
        metrics += [
            Metric.mean(part, "accuracy", caption / 2, 1 / 2, counted=of),
            Metric.rate(part, "both orders", caption == 2, 1 / 4, counted=of),
            Metric.rate(part, "order decides", turned == 1, 1 / 2, counted=of, better="less"),
        ]
    both = [(row, {"caption": float(scores["caption"] == 2), "negative": 0.5}) for row, scores in scored]
    wanted = set(given.scores) - {"accuracy"} - _ACROSS_IMAGES
    questions = [one for one in _metrics(both) if one.measure in wanted]
    return (*metrics, *(replace(one, chance=None) for one in questions))


def _probability_metrics(given: HardNegativeRows, scored: Scored) -> tuple[Metric, ...]:
    """Return the metrics of the probabilities, and those with the prior of the texts removed."""
    free = [
        (row, {name: scores[name] - scores[f"{name}_prior"] for name in ("caption", "negative")})
        for row, scores in scored
    ]
    plain = [one for one in _metrics(scored) if one.measure in given.scores]
    removed = [replace(one, measure=f"{one.measure} (prior removed)") for one in _metrics(free)]
    kept = {f"{name} (prior removed)" for name in given.scores}
    return (*plain, *(one for one in removed if one.measure in kept))


def _metrics(scored: Scored) -> tuple[Metric, ...]:
    scores = pl.DataFrame(
        {
            "type": [row.type for row, _ in scored],
            "s_caption": [scores["caption"] for _, scores in scored],
            "s_negative": [scores["negative"] for _, scores in scored],
            **dict.fromkeys(("s_positive", "t_positives", "t_negative"), [None] * len(scored)),
            **{name: [row.question.get(name) for row, _ in scored] for name in QUESTION_COLUMNS},
        },
        schema=SCORE_SCHEMA,
    )
    return hard_negative_metrics(evaluate_scores(scores), scores)
