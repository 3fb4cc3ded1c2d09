"""Generator of rationales for labels (Distilling step-by-step, section 2.3.1).

The model gets demonstrations of input, rationale and label, and writes a rationale and a label for a new input. The
label is predicted (and compared with the gold label, if known), or given and only explained. With several samples the
labels vote (self-consistency), and the rationale of the first sample with the winning label is used.

Reason codes of a row:
    (kept)            rationale and label are usable for training
    no_answer         no "So the answer is" before the first invented question
    unreadable_label  the answer is none of the task's labels
    several_answers   different answers, after two markers or as alternatives after one ("either (c) or (d)")
    no_rationale      a label without a rationale
    tied_vote         several samples without a most frequent label
    wrong_label       the label is not the gold label; such rows are stored separately, with the model's label
    inconsistent      the rationale contradicts its own label or has a wrong calculation (`labels.check_agreement`)
    no_image          the image is missing or invalid, and the model is to see it
    image_url         the image is a web address, which is not sent
and the codes of `llm.output.errors` and `llm.client.request_errors`, if there is no usable answer at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pairwright.datasets.records import Example, Origin, annotation_id, compact_json, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Image, Request
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.errors import OutputError
from pairwright.generators.llm.output.plain_text import TextShape
from pairwright.generators.prompts.prompt import Prompt
from pairwright.generators.rationales.chain_of_thought import (
    NO_ANSWER,
    NO_RATIONALE,
    SEVERAL_ANSWERS,
    UNREADABLE_LABEL,
    ParsedRationale,
    parse_chain_of_thought,
)
from pairwright.generators.rationales.labels import Agreement, Labels, check_agreement
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow

NAME = "rationales"
VERSION = 5  # raise when the same rows and answers would give other examples

WRONG_LABEL = "wrong_label"
INCONSISTENT = "inconsistent"
TIED_VOTE = "tied_vote"
REASONS = (NO_ANSWER, UNREADABLE_LABEL, SEVERAL_ANSWERS, NO_RATIONALE, TIED_VOTE, WRONG_LABEL, INCONSISTENT)

VALIDATION_SHARE = 0.1  # share of the rows, if the source has no split

_COMPLETE_SENTENCES = re.compile(r"(?:.*[.!?][\"”’)]*\s)?", re.DOTALL)

_REPAIR_INSTRUCTIONS = {
    NO_ANSWER: 'Your answer does not end in "So the answer is X.", with the answer in place of X.',
    UNREADABLE_LABEL: "What you gave behind 'So the answer is' is none of the answers that there are.",
    SEVERAL_ANSWERS: "You gave more than one answer.",
    NO_RATIONALE: "You gave the answer without the reasons, which stand before it.",
    WRONG_LABEL: "That is not the right answer that was given. Explain why the given one is right.",
}


@dataclass(frozen=True)
class RationaleSettings:
    """Settings of `RationaleGenerator`.

    Attributes:
        label_given: give the model the gold label to explain.
        samples: samples for each row; several samples vote on the label.
        wrong_labels: ``apart``: reject a row with a wrong label; ``keep``: keep it with the gold label and the model's
            rationale, as in the paper.
        validation: share of the rows in the validation split, 0-1.
        seed: seed of the split.
        see_image: send the image of each row; a row without one is rejected.
    """

    label_given: bool = False
    samples: int = 1
    wrong_labels: Literal["apart", "keep"] = "apart"
    validation: float = VALIDATION_SHARE
    seed: int = 0
    see_image: bool = False


@dataclass(frozen=True)
class JudgedExample:
    """An example with statistics of its answers.

    Attributes:
        example: the record, kept or rejected.
        parsed: whether a label could be read in the output.
        correct: whether the label is the gold label; None if that is unknown or no label was read.
        consistency: whether the rationale agrees with its own label.
        agreement: share of the samples with the chosen label; 0.0 if none is usable.
    """

    example: Example
    parsed: bool
    correct: bool | None
    consistency: Agreement
    agreement: float = 1.0


@dataclass(frozen=True)
class RationaleGenerator:
    """Generates the examples of a task.

    Attributes:
        task: the task.
        settings: settings of generation and judging.
        prompt: prompt for the model; None for imported outputs.
        model: model name.
        images: reads the images, with ``see_image``.
    """

    task: TaskDefinition
    settings: RationaleSettings
    prompt: Prompt | None = None
    model: str = ""
    images: MessageImages = field(default_factory=MessageImages, compare=False)

    def ask(self, item: TaskRow, *, ordinal: int = 0, row: str = "", attempt: int = 0) -> LLMStep[JudgedExample]:
        """Return the steps that ask about a row and end in its example.

        Args:
            item: the row.
            ordinal: distinguishes rows with the same content.
            row: name of the row in messages.
            attempt: from 0; a higher number draws new samples.
        """
        images = self.images.find(item.image) if self.settings.see_image else ()
        if self.settings.see_image and not images:
            return self.failed_example(item, missing_image_reason(item.image), ordinal)
        answers = yield from request_answers(
            self.requests(item, row, attempt, images), TextShape("text"), check=lambda text: self._check(item, text)
        )
        thoughts = [self._of_answer(item, answer) for answer in answers]
        return self._judged(item, thoughts, ordinal, next((each.key for each in answers if each.key), ""))

    def judge(self, item: TaskRow, outputs: Sequence[str], *, ordinal: int = 0, request: str = "") -> JudgedExample:
        """Return the example of a row from existing model outputs.

        Args:
            item: the row.
            outputs: one output, or several that vote.
            ordinal: distinguishes rows with the same content.
            request: source of the outputs, stored in the origin.
        """
        return self._judged(item, [self.read(item, output) for output in outputs], ordinal, request)

    def read(self, item: TaskRow, output: str) -> ParsedRationale:
        """Parse one output for a row."""
        task = self.task
        return parse_chain_of_thought(
            output, task.labels, choices=item.choices, fields=tuple(task.fields), question=task.question(item)
        )

    def requests(self, item: TaskRow, row: str, attempt: int, images: Sequence[Image] = ()) -> list[Request]:
        """Return the requests for a row, one for each sample."""
        if self.prompt is None:
            raise TypeError("imported rationales have no prompt")
        label = item.gold if self.settings.label_given else ""
        values = {name: list(each) if isinstance(each, tuple) else each for name, each in item.values.items()}
        first = attempt * self.settings.samples
        return [
            self.prompt.request(
                {**values, "label": label}, model=self.model, row=row, sample=first + number, images=images
            )
            for number in range(self.settings.samples)
        ]

    def _check(self, item: TaskRow, text: str) -> OutputError | None:
        thought = self.read(item, text)
        reason = thought.reason
        if (
            not reason
            and item.gold
            and self.settings.label_given
            and not self.task.labels.same(thought.label, item.gold)
        ):
            reason = WRONG_LABEL
        return OutputError(reason, _REPAIR_INSTRUCTIONS[reason]) if reason else None

    def _of_answer(self, item: TaskRow, answer: Answer[str]) -> ParsedRationale:
        text = answer.value if answer.value is not None else answer.raw
        if answer.reason == "truncated":  # the truncated sentence may belong to an invented question
            text = _COMPLETE_SENTENCES.match(text)[0]  # type: ignore[index]  # matches any text
        thought = self.read(item, text)
        truncated_after_answer = answer.reason == "truncated" and not thought.reason
        if answer.value is None and answer.reason not in REASONS and not truncated_after_answer:
            return ParsedRationale(thought.rationale, reason=answer.reason)  # refused, truncated or no answer
        return thought

    def _judged(self, item: TaskRow, thoughts: Sequence[ParsedRationale], ordinal: int, request: str) -> JudgedExample:
        labels = self.task.labels
        chosen, agreement = majority_vote(thoughts, labels, item.choices)
        parsed = chosen.parsed
        correct = labels.same(chosen.label, item.gold) if parsed and item.gold else None
        consistency: Agreement = (
            check_agreement(chosen.rationale, chosen.label, labels, item.choices) if chosen.label else "silent"
        )
        reason = chosen.reason
        if not reason and correct is False and self.settings.wrong_labels == "apart":
            reason = WRONG_LABEL
        if not reason and consistency == "contradicts":
            reason = INCONSISTENT
        # A rejected wrong label is stored with its rationale; otherwise the gold label is used.
        use_gold = bool(item.gold) and reason != WRONG_LABEL
        example = Example(
            id="",
            task=self.task.name,
            input=item.input,
            origin=self._origin(request),
            label=item.gold if use_gold else chosen.label or chosen.raw_label,
            label_source="gold" if use_gold else "model" if chosen.raw_label else "",
            rationale=chosen.rationale,
            split=assign_split(item, self.settings),
            key=item.key,
            status="rejected" if reason else "kept",
            reason=reason,
        )
        example = replace(example, id=self._id(item, example, ordinal))
        return JudgedExample(example, parsed, correct, consistency, agreement)

    def failed_example(self, item: TaskRow, reason: str, ordinal: int = 0) -> JudgedExample:
        """Return the rejected example of a row whose request failed."""
        return self._judged(item, [ParsedRationale(reason=reason)], ordinal, "")

    def _origin(self, request: str) -> Origin:
        prompt = self.prompt.id if self.prompt is not None else ""
        name = NAME if self.prompt is not None else f"{NAME}-import"
        return Origin(name, VERSION, self.settings.seed, self.model, prompt, request)

    def _id(self, item: TaskRow, example: Example, ordinal: int) -> str:
        return annotation_id(row_key(item), example.task, example.origin, str(ordinal), example.rationale)


def majority_vote(
    thoughts: Sequence[ParsedRationale], labels: Labels, choices: Sequence[str] = ()
) -> tuple[ParsedRationale, float]:
    """Return the chosen output and the share of all outputs with its label.

    The most frequent label wins, with its first rationale that does not contradict it. If no output is usable, the
    first is returned with its reason; if two labels are equally frequent, the reason is ``tied_vote``.
    """
    usable = [thought for thought in thoughts if not thought.reason]
    if not usable:
        return thoughts[0], 0.0
    votes: list[list[ParsedRationale]] = []
    for thought in usable:
        same = [voters for voters in votes if labels.same(voters[0].label, thought.label)]
        if same:
            same[0].append(thought)
        else:
            votes.append([thought])
    best, *others = sorted(votes, key=len, reverse=True)
    share = len(best) / len(thoughts)
    if others and len(others[0]) == len(best):
        return replace(best[0], reason=TIED_VOTE), share
    sound = (each for each in best if check_agreement(each.rationale, each.label, labels, choices) != "contradicts")
    return next(sound, best[0]), share


def row_key(item: TaskRow) -> str:
    """Return the content key of a row: 32 hex digits over its fields, its pair's key and its label."""
    return pair_key(item.key, item.gold, compact_json(dict(item.values)))


def assign_split(item: TaskRow, settings: RationaleSettings) -> Literal["train", "validation"]:
    """Return the split of a row by its pair's key or else its input, so that equal inputs share a split."""
    draw = make_rng(settings.seed, 0, NAME, VERSION, item.key or item.input, "split").random()
    return "validation" if draw < settings.validation else "train"
