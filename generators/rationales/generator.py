"""Rationales: why a row has the label that it has, in the words of a model (Distilling step-by-step, section 2.3.1).

A model is shown demonstrations of input, rationale and label, and writes a rationale and a label for a new input. The
label is *asked for* (and held against the right one, where that is known) or *given*, and then only explained. With
several samples the labels vote (self-consistency), and the rationale of the first sample that says the winner counts.

What becomes of a row, in one word:
    (kept)            rationale and label can be trained on
    no_answer         no "So the answer is" before the first invented question
    unreadable_label  it is none of the task's answers
    several_answers   answers that differ: behind two markers, or as alternatives behind one ("either (c) or (d)")
    no_rationale      a label alone
    tied_vote         several samples, and no label that more of them say than any other
    wrong_label       it is not the right one; such rows are kept apart, with the model's label
    inconsistent      the rationale contradicts its own label, or calculates wrongly (`rationales.consistency`)
and the words of `llm.troubles` and `llm.failures` where a model gave no such answer at all.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pairwright.datasets.records import Example, Origin, annotation_id, compact_json, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Request
from pairwright.generators.llm.client.steps import LLMStep
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
VERSION = 3  # raised when the same rows and answers would give other examples

WRONG_LABEL = "wrong_label"
INCONSISTENT = "inconsistent"
TIED_VOTE = "tied_vote"
REASONS = (NO_ANSWER, UNREADABLE_LABEL, SEVERAL_ANSWERS, NO_RATIONALE, TIED_VOTE, WRONG_LABEL, INCONSISTENT)

VALIDATION_SHARE = 0.1  # share of the rows, where the source has no split of its own

_WHOLE = re.compile(r"(?:.*[.!?][\"”’)]*\s)?", re.DOTALL)  # a text's sentences that something follows

_REPAIR_INSTRUCTIONS = {
    NO_ANSWER: 'Your answer does not end in "So the answer is X.", with the answer in place of X.',
    UNREADABLE_LABEL: "What you gave behind 'So the answer is' is none of the answers that there are.",
    SEVERAL_ANSWERS: "You gave more than one answer.",
    NO_RATIONALE: "You gave the answer without the reasons, which stand before it.",
    WRONG_LABEL: "That is not the right answer that was given. Explain why the given one is right.",
}


@dataclass(frozen=True)
class RationaleSettings:
    """How rationales are asked for and judged.

    Attributes:
        label_given: the model is told the right label and explains it.
        samples: answers a row; more than one vote on the label.
        wrong_labels: ``apart``: a row whose label is wrong is rejected; ``keep``: it is kept with the right label and
            the model's rationale, as in the paper.
        validation: share of the rows, 0-1.
        seed: of the split.
    """

    label_given: bool = False
    samples: int = 1
    wrong_labels: Literal["apart", "keep"] = "apart"
    validation: float = VALIDATION_SHARE
    seed: int = 0


@dataclass(frozen=True)
class JudgedExample:
    """A row that has been worked on.

    Attributes:
        example: the record, kept or rejected.
        parsed: whether a label can be read in what the model said.
        correct: whether its label is the right one; None where that is not known, or nothing was parsed.
        says: whether the rationale agrees with the label that it comes with.
        agreement: share of the samples that say the label; 0.0 where none can be used.
    """

    example: Example
    parsed: bool
    correct: bool | None
    says: Agreement
    agreement: float = 1.0


@dataclass(frozen=True)
class RationaleGenerator:
    """Makes the examples of a task.

    Attributes:
        task: which.
        settings: how.
        prompt: by which a model is asked; None for outputs that are there already.
        model: its name at the server.
    """

    task: TaskDefinition
    settings: RationaleSettings
    prompt: Prompt | None = None
    model: str = ""

    def ask(self, item: TaskRow, *, ordinal: int = 0, row: str = "", attempt: int = 0) -> LLMStep[JudgedExample]:
        """Return the talk about a row, which ends in its example.

        Args:
            item: the row.
            ordinal: tells rows with the same content apart.
            row: its name in messages.
            attempt: from 0; a higher one asks anew.
        """
        answers = yield from request_answers(
            self.requests(item, row, attempt), TextShape("text"), check=lambda text: self._trouble(item, text)
        )
        thoughts = [self._of_answer(item, answer) for answer in answers]
        return self._judged(item, thoughts, ordinal, next((each.key for each in answers if each.key), ""))

    def judge(self, item: TaskRow, outputs: Sequence[str], *, ordinal: int = 0, request: str = "") -> JudgedExample:
        """Return the example of a row for which a model's outputs are there already.

        Args:
            item: the row.
            outputs: one, or several that vote.
            ordinal: tells rows with the same content apart.
            request: what they came from, for the record.
        """
        return self._judged(item, [self.read(item, output) for output in outputs], ordinal, request)

    def read(self, item: TaskRow, output: str) -> ParsedRationale:
        """Return what one output says about a row."""
        task = self.task
        return parse_chain_of_thought(
            output, task.labels, choices=item.choices, fields=tuple(task.fields), question=task.asked(item)
        )

    def requests(self, item: TaskRow, row: str, attempt: int) -> list[Request]:
        """Return what is asked about a row: one request a sample."""
        if self.prompt is None:
            raise TypeError("no prompt: these rationales are imported")
        label = item.gold if self.settings.label_given else ""
        values = {name: list(each) if isinstance(each, tuple) else each for name, each in item.values.items()}
        first = attempt * self.settings.samples
        return [
            self.prompt.request({**values, "label": label}, model=self.model, row=row, sample=first + number)
            for number in range(self.settings.samples)
        ]

    def _trouble(self, item: TaskRow, text: str) -> OutputError | None:
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
        said = answer.value if answer.value is not None else answer.raw
        if answer.reason == "truncated":  # what was cut off may be the next question: whole sentences count
            said = _WHOLE.match(said)[0]  # type: ignore[index]  # matches any text
        thought = self.read(item, said)
        cut_behind = answer.reason == "truncated" and not thought.reason
        if answer.value is None and answer.reason not in REASONS and not cut_behind:
            return ParsedRationale(thought.rationale, reason=answer.reason)  # refused, truncated, no answer at all
        return thought

    def _judged(self, item: TaskRow, thoughts: Sequence[ParsedRationale], ordinal: int, request: str) -> JudgedExample:
        labels = self.task.labels
        chosen, agreement = majority_vote(thoughts, labels, item.choices)
        parsed = chosen.parsed
        correct = labels.same(chosen.label, item.gold) if parsed and item.gold else None
        told = check_agreement(chosen.rationale, chosen.label, labels, item.choices) if chosen.label else "silent"
        reason = chosen.reason
        if not reason and correct is False and self.settings.wrong_labels == "apart":
            reason = WRONG_LABEL
        if not reason and told == "contradicts":
            reason = INCONSISTENT
        # A wrong label stays with its rationale; else the label is the source's own.
        use_gold = bool(item.gold) and reason != WRONG_LABEL
        example = Example(
            id="",
            task=self.task.name,
            input=item.input,
            origin=self._origin(request),
            label=item.gold if use_gold else chosen.label or chosen.said,
            label_source="gold" if use_gold else "model" if chosen.said else "",
            rationale=chosen.rationale,
            split=assign_split(item, self.settings),
            key=item.key,
            status="rejected" if reason else "kept",
            reason=reason,
        )
        return JudgedExample(replace(example, id=self._id(item, example, ordinal)), parsed, correct, told, agreement)

    def broken_off(self, item: TaskRow, reason: str, ordinal: int = 0) -> JudgedExample:
        """Return the rejected example of a row whose talk ended in an error."""
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
    """Return the thought that counts, and the share of all that say its label.

    The label said most often wins; its first rationale that does not contradict it is taken. Where none can be used,
    the first thought is returned with its reason; where two labels are said equally often, with ``tied_vote``.
    """
    usable = [thought for thought in thoughts if not thought.reason]
    if not usable:
        return thoughts[0], 0.0
    kinds: list[ParsedRationale] = []
    counts: Counter[int] = Counter()
    kind_of: list[int] = []
    for thought in usable:
        at = next((n for n, other in enumerate(kinds) if labels.same(other.label, thought.label)), len(kinds))
        if at == len(kinds):
            kinds.append(thought)
        counts[at] += 1
        kind_of.append(at)
    (best, most), *others = counts.most_common(2)
    if others and others[0][1] == most:
        return replace(kinds[best], reason=TIED_VOTE), most / len(thoughts)
    voters = [thought for thought, at in zip(usable, kind_of, strict=True) if at == best]
    if len(voters) == 1:
        return voters[0], most / len(thoughts)
    sound = [each for each in voters if check_agreement(each.rationale, each.label, labels, choices) != "contradicts"]
    return (sound or voters)[0], most / len(thoughts)


def row_key(item: TaskRow) -> str:
    """Return what stands for a row's content: 32 hex digits over its fields, its key and its label."""
    return pair_key(item.key, item.gold, compact_json(dict(item.values)))


def assign_split(item: TaskRow, settings: RationaleSettings) -> Literal["train", "validation"]:
    """Return the split of a row, by its pair's key, else by its input: equal inputs are never in both."""
    drawn = make_rng(settings.seed, 0, NAME, VERSION, item.key or item.input, "split").random()
    return "validation" if drawn < settings.validation else "train"
