"""Question answering over several documents with one gold document: accuracy by its position and attention (000, chapter 3).

Measured for a decoder and a number of documents K:

- best-subspan accuracy by the gold document's position, for each treatment (table B.2, figures 3.5 and 3.6);
- Recall@3 of document rankings, the gold one in the middle (table 3.3), if K is above 3;
- Attn(x, k) by position, for each position of the gold document (figure 3.4);
- how often two documents keep their order at two positions, and the rank correlation of the linear and the log-linear
  model (tables 3.2 and B.1).

Treatments: *plain*; *calibrated*, rescaled attention (eq. 3.5); *attention-sorting*, the most attended document last
(Peysakhovich and Lerer 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from pairwright.datasets.rng import make_rng
from pairwright.filters.evaluation.results import Metric, TaskResult
from pairwright.filters.metrics.confidence_intervals import Z95
from pairwright.training.attention.calibration import (
    Calibration,
    FloatArray,
    Form,
    calibrated_relevance,
    descending_order,
)
from pairwright.training.attention.decoder import DocumentDecoder
from pairwright.training.attention.question_files import MultiDocumentQuestion, contains_answer

Treatment = Literal["plain", "calibrated", "attention-sorting"]
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
DEFAULT_TREATMENTS: tuple[Treatment, ...] = ("plain", "calibrated")
_RECALL = 3
_PAIRS = 4  # pairs of documents and positions drawn for each question


@dataclass(frozen=True)
class MultiDocumentPlan:
    """Settings of an evaluation."""

    documents: int  # K
    places: tuple[int, ...]  # positions of the gold document, from 0
    treatments: tuple[Treatment, ...] = DEFAULT_TREATMENTS  # to measure
    longest: int = 100  # maximum tokens per answer
    calibration: Calibration = field(default_factory=Calibration)  # of attention
    seed: int = 0  # of the drawn pairs


def evaluate_multi_document(
    reader: DocumentDecoder, questions: Sequence[MultiDocumentQuestion], plan: MultiDocumentPlan
) -> TaskResult:
    """Return the metrics of a decoder on questions that each have K - 1 or more distractors.

    ``detail`` has attention by position and the number of forward passes.
    """
    before = reader.passes
    metrics: list[Metric] = []
    for treatment in plan.treatments:
        right = {place + 1: _accuracy(reader, questions, plan, treatment, place) for place in plan.places}
        metrics += [
            Metric.share(treatment, f"gold {at} of {plan.documents}", sum(r), len(r)) for at, r in right.items()
        ]
        every = [one for r in right.values() for one in r]
        if len(right) > 1:
            metrics.append(Metric.share(treatment, f"average of {plan.documents}", sum(every), len(every)))
    if plan.documents > _RECALL:
        metrics += [_recall(reader, questions, plan, calibration) for calibration in (plan.calibration, None)]
    attention = {}  # mean of Attn(x, k) by position k, for each position of the gold document
    for place in plan.places:
        prompts = [reader.prompt(one.text, one.documents(plan.documents, place)) for one in questions]
        attention[place + 1] = np.mean(reader.attention(prompts), axis=0).tolist()
    metrics += check_attention_conditions(reader, questions, plan)
    detail = {f"attention of {plan.documents}": attention, f"passes of {plan.documents}": reader.passes - before}
    return TaskResult(tuple(metrics), {}, detail)


def _accuracy(
    reader: DocumentDecoder,
    questions: Sequence[MultiDocumentQuestion],
    plan: MultiDocumentPlan,
    treatment: Treatment,
    place: int,
) -> list[bool]:
    prompts = []
    for question in questions:
        given = question.documents(plan.documents, place)
        if treatment == "attention-sorting":
            given = [given[number] for number in reversed(descending_order(reader.scores(question.text, given, None)))]
        prompts.append(reader.prompt(question.text, given))
    relevances = reader.relevances(prompts, plan.calibration) if treatment == "calibrated" else None
    generated = reader.answers(prompts, plan.longest, relevances, plan.calibration)
    return [contains_answer(text, question.answers) for text, question in zip(generated, questions, strict=True)]


def _recall(
    reader: DocumentDecoder,
    questions: Sequence[MultiDocumentQuestion],
    plan: MultiDocumentPlan,
    calibration: Calibration | None,
) -> Metric:
    middle, hits = (plan.documents - 1) // 2, 0
    for question in questions:
        found = reader.scores(question.text, question.documents(plan.documents, middle), calibration)
        hits += middle in descending_order(found)[:_RECALL]
    chance, ranking = min(1.0, _RECALL / plan.documents), "attention" if calibration else "plain-attention"
    return Metric.share(f"ranking by {ranking}", f"recall@{_RECALL} of {plan.documents}", hits, len(questions), chance)


def check_attention_conditions(
    reader: DocumentDecoder, questions: Sequence[MultiDocumentQuestion], plan: MultiDocumentPlan
) -> list[Metric]:
    """Return how often conditions 1 and 2 hold, and the rank correlations of both models of attention.

    Two documents are swapped; a pass before and one after give the attention of each at both positions.
    """
    rows: list[tuple[float, float, float, float]] = []
    for number, question in enumerate(questions):
        drawn, middle = make_rng("conditions", plan.seed, number), (plan.documents - 1) // 2
        given = question.documents(plan.documents, middle)
        for _ in range(_PAIRS):
            k, other = drawn.sample(range(plan.documents), 2)
            moved = list(given)
            moved[k], moved[other] = given[other], given[k]
            here, there = reader.attention([reader.prompt(question.text, held) for held in (given, moved)])
            rows.append((here[k], there[other], there[k], here[other]))  # first and second document, each at k and l
    first_k, first_l, second_k, second_l = np.asarray(rows).T
    one = (first_k > first_l) == (second_k > second_l)
    two = (first_k > second_k) == (first_l > second_l)
    metrics = [
        Metric.share("condition 1", f"valid of {plan.documents}", int(one.sum()), len(one), 0.5),
        Metric.share("condition 2", f"valid of {plan.documents}", int(two.sum()), len(two), 0.5),
    ]
    for form in get_args(Form):
        differences = (
            calibrated_relevance(one, other, form) for one, other in ((first_k, second_k), (first_l, second_l))
        )
        metrics.append(_correlation(form, f"rank correlation of {plan.documents}", *differences))
    return metrics


def _correlation(part: str, measure: str, one: FloatArray, other: FloatArray) -> Metric:
    """Return Spearman's correlation with Fisher's interval, widened for ranks (Bonett and Wright 2000)."""
    from scipy.stats import rankdata  # takes a second

    ranks = rankdata([one, other], axis=1)
    rho = 0.0 if np.ptp(ranks, axis=1).min() == 0 else float(np.corrcoef(ranks)[0, 1])
    spread = Z95 * np.sqrt((1 + rho * rho / 2) / max(1, len(one) - 3))
    middle = np.arctanh(np.clip(rho, -0.999999, 0.999999))
    low, high = np.tanh(middle - spread), np.tanh(middle + spread)
    return Metric(part, measure, rho, float(low), float(high), len(one), 0.0, percent=False)
