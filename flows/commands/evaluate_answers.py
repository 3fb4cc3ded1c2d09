"""Evaluation of answers to questions about images by a language model: ``pairwright evaluate answers``.

A model is an image-text-to-text model, which answers first, or a JSONL file of existing answers (which needs no torch). Judgements are in the
cache; failed and unreadable ones are retried with ``--retry-failed``.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError
from pairwright.filters.evaluation.results import Metric, ModelResult, TaskResult, Units
from pairwright.filters.metrics.answer_judging import (
    AnswerJudge,
    AnswerJudgement,
    ImageQuestion,
    RelativeScore,
    read_answers,
    read_questions,
    relative_score,
)
from pairwright.filters.metrics.confidence_intervals import ratio_interval
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import collect_rows
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot

ANSWERS_KIND = "answers"
_SCORE = "relative score"


@dataclass(frozen=True)
class JudgingRequest:
    """Models, questions and output of an evaluation.

    Attributes:
        models: image-text-to-text models, or .jsonl files of answers.
        questions: file for `filters.metrics.answer_judging.read_questions`.
        images: root folder of the images.
        out: file next to which failed rows are written.
        device: device of the models.
        batch: questions per batch.
        see_image: send the image of each question to the judge.
    """

    models: tuple[str, ...]
    questions: Path
    images: str
    out: Path
    device: str = ""
    batch: int = 8
    see_image: bool = False


def plan_judging(request: JudgingRequest, access: ModelAccess) -> StagePlan:
    """Return an estimate of `judge_models`, in which the answers of a model are as long as the references.

    Raises:
        PairwrightError: settings, prices, questions or answers are invalid.
    """
    access.settings()  # reports invalid settings before any work
    questions = read_questions(request.questions, request.images)
    # As long as the reference, and another text: with two equal answers both orders are one request.
    references = [f"{question.reference}." for question in questions]
    answers = {name: read_answers(Path(name), questions) if _is_file(name) else references for name in request.models}
    judge = _judge(access, questions, answers, see_image=request.see_image)
    return PairTask(judge, access, access.seed).estimate(judge.pairs, request.out)


def judge_models(
    request: JudgingRequest, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> tuple[list[ModelResult], dict[str, Any]]:
    """Return the relative score of each model, by type of question if there are several, and the bill.

    Raises:
        PairwrightError: the run could not start, or what stopped it; judgements are in the cache.
    """
    access.check()  # before minutes of work
    questions = read_questions(request.questions, request.images)
    kinds, answers = _read_answers(request, questions, note)
    judge = _judge(access, questions, answers, see_image=request.see_image)
    task, pairs = PairTask(judge, access, access.seed), judge.pairs
    found, run = collect_rows(access, task, task.rows(pairs), len(pairs), out=request.out, note=note, watch=watch)
    judgements: defaultdict[str, list[AnswerJudgement]] = defaultdict(list)
    for _, (row, *_rest) in found:
        model, judgement = judge.judged(row)
        judgements[model].append(judgement)
    results = [ModelResult(name, kinds[name], judgement_summary(judgements[name], answers[name])) for name in answers]
    return results, run.bill()


def _read_answers(
    request: JudgingRequest, questions: Sequence[ImageQuestion], note: Callable[[str], None]
) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
    """Return the kind and the answers of each model, by its name."""
    given: dict[str, Sequence[str]] = {
        name: read_answers(Path(name), questions) for name in request.models if _is_file(name)
    }
    kinds = dict.fromkeys(given, ANSWERS_KIND)
    if models := [name for name in request.models if name not in given]:
        from pairwright.training.evaluation.embedding import image_sizes
        from pairwright.training.evaluation.evaluated_models import open_models
        from pairwright.training.evaluation.image_answers import generate_answers
        from pairwright.training.evaluation.tasks import identify_models
        from pairwright.training.out_of_memory import explain_out_of_memory

        named = identify_models("answers", models)
        image_sizes([question.image for question in questions])
        for subject in open_models(named, request.device):
            note(f"{subject.name} answers {count_phrase(len(questions), 'question')}.")
            with explain_out_of_memory(lambda: f"with --batch-size {request.batch}. Use a smaller one."):
                given[subject.name] = generate_answers(subject, questions, batch=request.batch)
            kinds[subject.name] = subject.kind
    return kinds, {name: given[name] for name in request.models}


def _judge(
    access: ModelAccess,
    questions: Sequence[ImageQuestion],
    answers: Mapping[str, Sequence[str]],
    *,
    see_image: bool,
) -> AnswerJudge:
    if not answers:
        raise UsageError("nothing to judge: name a model, or a .jsonl file of answers.")
    images = access.images if see_image else None
    return AnswerJudge(access.prompts(), access.model, questions, answers, images)


def _is_file(name: str) -> bool:
    return name.endswith(".jsonl")


def judgement_summary(judged: Sequence[AnswerJudgement], answers: Sequence[str]) -> TaskResult:
    """Return what the judgements on one model come to.

    Args:
        judged: one a question.
        answers: aligned.
    """
    types = sorted({one.question.type for one in judged if one.question.type})
    parts = {
        **({name: [one for one in judged if one.question.type == name] for name in types} if len(types) > 1 else {})
    }
    parts["all"] = list(judged)
    figures = [
        replace(figure, units=_score_sums(judged, rows)) if figure.measure == _SCORE else figure
        for name, rows in parts.items()
        for figure in _figures(name, relative_score(rows))
    ]
    every = relative_score(judged)
    counts = {f"questions have no score ({reason}) and are left out": n for reason, n in every.unscored.items()}
    if every.unparsed:
        counts["judgements cannot be read"] = every.unparsed
    rows = [
        {
            "id": one.question.id,
            "type": one.question.type,
            "answer": answer,
            "model": one.model,
            "reference": one.reference,
            "reason": one.reason,
        }
        for one, answer in zip(judged, answers, strict=True)
    ]
    return TaskResult(tuple(figures), counts, {"judgements": rows})


def _score_sums(every: Sequence[AnswerJudgement], chosen: Sequence[AnswerJudgement]) -> Units:
    """Return what each question adds to both sums of a relative score."""
    counted = {one.question.id for one in chosen if not one.reason}
    rows = [(one.model, one.reference) if one.question.id in counted else (np.nan, np.nan) for one in every]
    return np.array(rows, dtype=np.float64).T


def _figures(part: str, found: RelativeScore) -> list[Metric]:
    n = len(found.model)
    if not n:
        return []
    low, high = ratio_interval(found.model, found.reference)
    score = Metric(part, _SCORE, float(found.model.sum() / found.reference.sum()), low, high, n)
    return [score, Metric.share(part, "order decides", found.inconsistent, n, better="less")]
