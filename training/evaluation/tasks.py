"""The tasks that models are measured by, which models can do them, and the run over several models.

Everything that can be wrong with the input is found before a model is opened: kinds of models, files, images.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pairwright.datasets.errors import UsageError
from pairwright.indexes.retrieval.queries import Query, read_queries
from pairwright.training.evaluation.conditional_retrieval import conditional_precision, select_conditions
from pairwright.training.evaluation.data import read_captioned_images, read_hard_negatives, read_labelled_images
from pairwright.training.evaluation.embedding import IMAGE_TEXT_KINDS, Embedder
from pairwright.training.evaluation.evaluated_models import (
    NamedModel,
    OpenedModel,
    WiseFtSettings,
    identify_model,
    open_models,
)
from pairwright.training.evaluation.hard_negatives import hard_negative_accuracy
from pairwright.training.evaluation.images import image_sizes
from pairwright.training.evaluation.rationales import rationale_accuracy, read_student_tasks
from pairwright.training.evaluation.results import ModelResult, TaskResult
from pairwright.training.evaluation.retrieval import retrieval_recall
from pairwright.training.evaluation.zero_shot import join_classes, zero_shot_accuracy
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.out_of_memory import explain_out_of_memory

TASKS: Mapping[str, tuple[str, ...]] = {
    "negatives": IMAGE_TEXT_KINDS,
    "retrieval": IMAGE_TEXT_KINDS,
    "zero-shot": IMAGE_TEXT_KINDS,
    "conditions": (*IMAGE_TEXT_KINDS, FocalLensMllm.kind),
    "rationales": ("student",),
    "answers": ("llava",),
}

TaskFunction = Callable[[OpenedModel], TaskResult]


@dataclass(frozen=True)
class EvaluationRequest:
    """What to measure, and on what.

    Attributes:
        task: of `TASKS`, but for ``answers``, which a language model judges (`flows.answer_judging`).
        models: names.
        data: shards or files; which ones: `material`.
        images: folder that relative images start from.
        labels: of shards whose JSON has none.
        by: conditions; or the one label that tells the class.
        asked: instruction by condition.
        classes: class list of ``zero-shot``; None: the labels themselves.
        split: of rationales.
        single: students that write one text.
        mixing: WiSE-FT.
        device: as torch names it; empty: a GPU where there is one.
        batch: images or texts at once.
    """

    task: str
    models: tuple[str, ...]
    data: tuple[str, ...]
    images: str = ""
    labels: Path | None = None
    by: tuple[str, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
    classes: Path | None = None
    split: str = "validation"
    single: bool = False
    mixing: WiseFtSettings | None = None
    device: str = ""
    batch: int = 64


def identify_models(task: str, models: Sequence[str]) -> list[NamedModel]:
    """Say what the models are, and refuse those that cannot do the task.

    Raises:
        UsageError: naming the tasks that the model can do.
        PairwrightError: a model cannot be read.
    """
    found = [identify_model(name) for name in models]
    for named in found:
        if named.kind not in TASKS[task]:
            able = [name for name, kinds in TASKS.items() if named.kind in kinds]
            can = f"It can do {', '.join(able)}." if able else "There is no task for it."
            raise UsageError(f"{named.name} is of kind {named.kind}; {task} is for {', '.join(TASKS[task])}. {can}")
    return found


def evaluate_models(request: EvaluationRequest, note: Callable[[str], None]) -> Iterator[ModelResult]:
    """Yield what is found of each model, each share of WiSE-FT being one.

    Args:
        request: what to do.
        note: told which model is at work.

    Raises:
        PairwrightError: in one line, before the first model is opened where it can be.
    """
    if twice := [name for name, times in Counter(request.models).items() if times > 1]:
        raise UsageError(f"{twice[0]} is named twice.")
    named = identify_models(request.task, request.models)
    if request.mixing is not None:
        identify_model(request.mixing.base)
    measure = _MEASURES[request.task](request)
    for subject in open_models(named, request.mixing, request.device):
        one = ModelResult(subject.named.name, subject.named.kind, subject.share, TaskResult(()))
        note(f"{one.label}: {request.task}")
        with explain_out_of_memory(
            lambda: f"with {request.batch} images or texts at once. Give a smaller --batch-size."
        ):
            found = measure(subject)
        yield ModelResult(one.model, one.kind, one.share, found)


def _negatives(request: EvaluationRequest) -> TaskFunction:
    given = read_hard_negatives(request.data, request.images)
    sides = image_sizes([row.image for row in given.rows])
    return lambda subject: _embedded(request, subject, sides, lambda embedder: hard_negative_accuracy(embedder, given))


def _retrieval(request: EvaluationRequest) -> TaskFunction:
    given = read_captioned_images(request.data, request.images)
    sides = image_sizes(given.images)
    return lambda subject: _embedded(request, subject, sides, lambda embedder: retrieval_recall(embedder, given))


def _zero_shot(request: EvaluationRequest) -> TaskFunction:
    if len(request.by) != 1:
        raise UsageError("zero-shot: name the label that tells the class by one --by COLUMN.")
    found = read_labelled_images(request.data, request.labels, request.images)
    labels = found.texts(request.by[0])
    queries = _class_list(request.classes) if request.classes else []
    given = join_classes(found.images, labels, queries, found.where)
    sides = image_sizes(found.images)
    return lambda subject: _embedded(request, subject, sides, lambda embedder: zero_shot_accuracy(embedder, given))


def _class_list(path: Path) -> list[Query]:
    if path.suffix.lower() != ".json":
        raise UsageError(
            f'{path}: a class list is JSON, {{"classes": ["beagle", ...], "templates": ["a photo of a {{}}."]}}.'
        )
    return read_queries(path)


def _conditions(request: EvaluationRequest) -> TaskFunction:
    found = read_labelled_images(request.data, request.labels, request.images)
    given = select_conditions(found, request.by, request.asked)
    sides = image_sizes(found.images)
    return lambda subject: _embedded(request, subject, sides, lambda embedder: conditional_precision(embedder, given))


def _rationales(request: EvaluationRequest) -> TaskFunction:
    given = read_student_tasks(request.data, split=request.split, single=request.single)
    return lambda subject: rationale_accuracy(subject, given, batch=request.batch)


def _embedded(
    request: EvaluationRequest,
    subject: OpenedModel,
    sides: Mapping[str, int],
    measure: Callable[[Embedder], TaskResult],
) -> TaskResult:
    """Measure, and count what was lost: the ends of long texts, the sharpness of small images."""
    embedder = Embedder(subject, request.batch)
    found = measure(embedder)
    small = sum(side < embedder.size for side in sides.values())
    counts = dict(found.counts)
    if embedder.cut:
        counts[f"texts were longer than the {embedder.context} tokens that the model reads, and lost their end"] = (
            embedder.cut
        )
    if small:
        counts[f"images have a side below the {embedder.size} pixels that the model takes, and were enlarged"] = small
    return TaskResult(found.figures, counts, found.detail)


_MEASURES: Mapping[str, Callable[[EvaluationRequest], TaskFunction]] = {
    "negatives": _negatives,
    "retrieval": _retrieval,
    "zero-shot": _zero_shot,
    "conditions": _conditions,
    "rationales": _rationales,
}
