"""Hard negatives from a model's own mistakes: ``pairwright generate mistakes`` (ConMe).

A vision-language model chooses between the caption and each candidate negative. The negatives that it chooses in both
orders are kept; with a judge, only those that the judge, which sees the image as well, finds false. INPUT holds candidate
rows; for pairs, candidates are made by rules first.

Memory: the rows, as `filters.candidates` stores them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.count_phrases import count_phrase
from pairwright.filters.validation.llm_judge import pair_for_row
from pairwright.filters.validation.model_mistakes import CHOSE_FIRST, NAME, SCORE, MistakeFinder
from pairwright.filters.validation.verdicts import ValidationRow
from pairwright.flows.commands.generate import GenerateRequest, run_generator
from pairwright.flows.commands.validate import Validation, ValidationRequest
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.rationales.task_rows import holds_candidates
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot

JUDGE = "judge"


@dataclass(frozen=True)
class MistakeRequest:
    """Input and output of a run.

    Attributes:
        candidates: makes candidate rows from pairs; unused if the input holds candidate rows.
        rows: the candidate rows, and where the result goes.
    """

    candidates: GenerateRequest
    rows: ValidationRequest

    def make_candidates(self, note: Callable[[str], None]) -> "MistakeRequest":
        """Return the request for candidate rows, which are made by rules if the input holds pairs.

        Raises:
            PairwrightError: the input cannot be read, or no row was made.
        """
        if holds_candidates(self.rows.input):
            return self
        made = run_generator(self.candidates, note)
        kept = sum(each["kept"] for each in made["types"].values())
        note(
            f"{count_phrase(kept, 'candidate')} by rules for {count_phrase(made['captions'], 'caption')}: {self.candidates.out}"
        )
        return replace(self, rows=replace(self.rows, input=self.candidates.out))


def find_mistakes(
    request: MistakeRequest,
    access: ModelAccess,
    judge: ModelAccess | None,
    note: Callable[[str], None],
    watch: Callable[[Snapshot], None],
) -> dict[str, Any]:
    """Find the negatives that a model mistakes for the caption, and write all rows.

    Args:
        request: input and output.
        access: the model that may be mistaken.
        judge: confirms that its mistakes are false; None: nothing does.
        note: receives messages about the run.
        watch: receives progress snapshots.

    Returns:
        As `Validation.finish`, with the counts and the bill of ``mistakes`` and ``judge`` in ``by``. Those of
        ``mistakes`` include ``answered`` (rows with a choice), ``accuracy`` and ``chose_first`` of the first answers.

    Raises:
        PairwrightError: the run could not start, or what stopped it; answers are in the cache.
    """
    for each in (access, judge):
        if each is not None:
            each.check()
    work = Validation(request.make_candidates(note).rows)
    rows, out = work.undecided(), work.request.out
    work.ask(NAME, _task(access, work, rows), rows, out, note, watch)
    work.facts[NAME] |= _first_answers(work)
    if judge is not None:
        mistakes = work.undecided()
        work.ask(JUDGE, work.judging_task(judge, mistakes.values()), mistakes, _of_judge(out), note, watch)
    return work.finish()


def plan_mistakes(
    request: MistakeRequest, access: ModelAccess, judge: ModelAccess | None, note: Callable[[str], None]
) -> list[StagePlan]:
    """Return estimates of the requests to the model, and of those to the judge if every choice were a mistake.

    Raises:
        PairwrightError: the run could not start.
    """
    for each in (access, judge):
        if each is not None:
            each.settings()  # reports invalid settings before any work
    work = Validation(request.make_candidates(note).rows)
    rows = work.undecided()
    out, pairs = work.request.out, [pair_for_row(row) for row in rows.values()]
    plans = [_task(access, work, rows).estimate(pairs, out)]
    if judge is not None:
        plans.append(work.judging_task(judge, rows.values()).estimate(pairs, _of_judge(out)))
    return plans


def _task(access: ModelAccess, work: Validation, rows: Mapping[int, ValidationRow]) -> PairTask:
    finder = MistakeFinder(access.prompts(), access.model, access.images, rows.values())
    return PairTask(finder, access, work.request.seed, {"image_root": str(work.request.image_root)})


def _first_answers(work: Validation) -> dict[str, Any]:
    """Return how often the first answers are right, and choose (1): the order of the texts is random."""
    scores = [dict(verdict.scores) for verdict in work.verdicts.values()]
    answered = [found for found in scores if SCORE in found]
    if not answered:
        return {"answered": 0, "accuracy": None, "chose_first": None}
    return {
        "answered": len(answered),
        "accuracy": round(sum(not found[SCORE] for found in answered) / len(answered), 4),
        "chose_first": round(sum(found[CHOSE_FIRST] for found in answered) / len(answered), 4),
    }


def _of_judge(out: Path) -> Path:
    """Return the path next to which the failed rows of the judge are written."""
    return out.with_stem(f"{out.stem}.{JUDGE}")
