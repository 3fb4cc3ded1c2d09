"""Evaluation tasks, the models that support them, and the loop over several models.

Errors in the input are found before a model is opened: kinds of models, files, images.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pairwright.datasets.errors import UsageError
from pairwright.filters.evaluation.readers import read_captioned_images, read_hard_negatives, read_labelled_images
from pairwright.filters.evaluation.results import ModelResult, TaskResult
from pairwright.indexes.retrieval.queries import read_queries
from pairwright.training.evaluation.conditional_retrieval import conditional_precision, select_conditions
from pairwright.training.evaluation.embedding import IMAGE_TEXT_KINDS, Embedder, image_sizes
from pairwright.training.evaluation.evaluated_models import EvaluatedModel, identify_model, open_models
from pairwright.training.evaluation.image_text import (
    hard_negative_accuracy,
    join_classes,
    retrieval_recall,
    zero_shot_accuracy,
)
from pairwright.training.evaluation.rationales import rationale_accuracy, read_student_tasks
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.out_of_memory import explain_out_of_memory

TASKS: Mapping[str, tuple[str, ...]] = {
    "negatives": IMAGE_TEXT_KINDS,
    "retrieval": IMAGE_TEXT_KINDS,
    "zero-shot": IMAGE_TEXT_KINDS,
    "conditions": (*IMAGE_TEXT_KINDS, FocalLensMllm.kind),
    "rationales": ("student",),
    "answers": ("image-text",),
}

TaskFunction = Callable[[EvaluatedModel], TaskResult]


@dataclass(frozen=True)
class EvaluationRequest:
    """Settings of an evaluation."""

    task: str  # of `TASKS`, except ``answers``, which a language model judges (`flows.commands.evaluate_answers`)
    models: tuple[str, ...]  # names
    data: tuple[str, ...]  # shards or files, see `data`
    images: str = ""  # root folder of relative image paths
    layout: str = ""  # of files of hard negatives; empty to detect it
    labels: Path | None = None  # of shards without labels in their JSON
    by: tuple[str, ...] = ()  # conditions, or the one label column with the class
    instructions: Mapping[str, str] = field(default_factory=dict)  # instruction by condition
    classes: Path | None = None  # class list of ``zero-shot``; None: the labels themselves
    split: str = "validation"  # of rationales
    single: bool = False  # for students that write rationale and label as one text
    device: str = ""  # torch device; empty: a GPU if available
    batch: int = 64  # images or texts per batch


def identify_models(task: str, models: Sequence[str]) -> list[EvaluatedModel]:
    """Return the models' folders and kinds."""
    found = [identify_model(name) for name in models]
    for one in found:
        if one.kind not in TASKS[task]:
            able = [name for name, kinds in TASKS.items() if one.kind in kinds]
            can = f"It supports {', '.join(able)}." if able else "It supports no task."
            raise UsageError(f"{one.name} is of kind {one.kind}; {task} is for {', '.join(TASKS[task])}. {can}")
    return found


def evaluate_models(request: EvaluationRequest, note: Callable[[str], None]) -> Iterator[ModelResult]:
    """Yield the result of each model; invalid input is found before the first model is opened where possible."""
    if twice := [name for name, times in Counter(request.models).items() if times > 1]:
        raise UsageError(f"{twice[0]} is named twice.")
    named = identify_models(request.task, request.models)
    measure = _MEASURES[request.task](request)
    for subject in open_models(named, request.device):
        note(f"{subject.name}: {request.task}")
        with explain_out_of_memory(
            lambda: f"with {request.batch} images or texts per batch. Set a smaller --batch-size."
        ):
            found = measure(subject)
        yield ModelResult(subject.name, subject.kind, found)


def _negatives(request: EvaluationRequest) -> TaskFunction:
    given = read_hard_negatives(request.data, request.images, request.layout)
    return _embedding_task(request, [row.image for row in given.rows], partial(hard_negative_accuracy, given=given))


def _retrieval(request: EvaluationRequest) -> TaskFunction:
    given = read_captioned_images(request.data, request.images)
    return _embedding_task(request, given.images, partial(retrieval_recall, given=given))


def _zero_shot(request: EvaluationRequest) -> TaskFunction:
    if len(request.by) != 1:
        raise UsageError("zero-shot requires exactly one --by COLUMN with the class.")
    found = read_labelled_images(request.data, request.labels, request.images)
    if request.classes and request.classes.suffix.lower() != ".json":
        example = '{"classes": ["beagle", ...], "templates": ["a photo of a {}."]}'
        raise UsageError(f"{request.classes}: a class list is JSON, {example}.")
    queries = read_queries(request.classes) if request.classes else []
    given = join_classes(found.images, found.texts(request.by[0]), queries, found.where)
    return _embedding_task(request, found.images, partial(zero_shot_accuracy, given=given))


def _conditions(request: EvaluationRequest) -> TaskFunction:
    found = read_labelled_images(request.data, request.labels, request.images)
    conditions = select_conditions(found, request.by, request.instructions)
    measure = partial(conditional_precision, images=found.images, conditions=conditions)
    return _embedding_task(request, found.images, measure)


def _rationales(request: EvaluationRequest) -> TaskFunction:
    rows, left_out = read_student_tasks(request.data, split=request.split, single=request.single)
    return partial(rationale_accuracy, rows=rows, left_out=left_out, batch=request.batch)


def _embedding_task(
    request: EvaluationRequest, images: Sequence[str], measure: Callable[[Embedder], TaskResult]
) -> TaskFunction:
    """Check that the images are readable, and return a task that also counts truncated texts and enlarged images."""
    sides = image_sizes(images)

    def run(subject: EvaluatedModel) -> TaskResult:
        embedder = Embedder(subject, request.batch)
        found = measure(embedder)
        small = sum(side < embedder.size for side in sides.values())
        counts = dict(found.counts)
        if embedder.cut:
            counts[f"texts exceeded the model's {embedder.context} tokens and were truncated"] = embedder.cut
        if small:
            counts[f"images have a side below the model's {embedder.size} pixels and were enlarged"] = small
        return TaskResult(found.metrics, counts, found.detail)

    return run


_MEASURES: Mapping[str, Callable[[EvaluationRequest], TaskFunction]] = {
    "negatives": _negatives,
    "retrieval": _retrieval,
    "zero-shot": _zero_shot,
    "conditions": _conditions,
    "rationales": _rationales,
}
