"""Validation of candidate rows: ``pairwright validate`` (SugarCrepe, stage 2).

A hard negative that is true of the image is a false negative. There are three validators: the other captions and boxes of
the image, a CLIP-like model, and a language model that sees the image. They run in this order, the cheap ones first, each
on the rows that the ones before did not reject. Rows that are rejected in the input stay rejected.

Memory: the rows, as `filters.candidates` stores them, and the facts about their images.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from pairwright.datasets.images.loading import locate_row_image
from pairwright.datasets.readers.pairs import ErrorPolicy, ReadOptions
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import RejectError
from pairwright.datasets.suggestions import require_known
from pairwright.filters.candidates.files import check_extension, layout_of, read_candidates, write_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import candidate_frame, complete_rows, edit_type_name
from pairwright.filters.scorers.image_groups import text_group
from pairwright.filters.validation.caption_context import check_by_context, collect_facts
from pairwright.filters.validation.clip_margin import check_by_clip_margin
from pairwright.filters.validation.llm_judge import NegativeJudge, pair_for_row
from pairwright.filters.validation.verdicts import ValidationRow, ValidationVerdict
from pairwright.flows.commands.annotation_files import require_candidate_rows
from pairwright.flows.commands.checked_pool import count_checked_pool
from pairwright.flows.commands.pair_inputs import BATCH, read_auxiliary_pairs
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import collect_rows
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.triples import CachingTagger, Triples

Validator = Literal["context", "clip", "llm"]
VALIDATORS: tuple[Validator, ...] = get_args(Validator)
UNDECIDED = frozenset({"judge_undecided", "judge_unreadable"})


def parse_validators(written: str) -> tuple[Validator, ...]:
    """Return the validators in ``context,llm``, in the order in which they run.

    Raises:
        UsageError: there is none, or an unknown one.
    """
    named = {name.strip() for name in written.split(",") if name.strip()}
    require_known("--by names", named or ["(none)"], VALIDATORS)
    return tuple(name for name in VALIDATORS if name in named)


@dataclass(frozen=True)
class ValidationRequest:
    """Input, output and validators of a run.

    Attributes:
        input: a file of candidate rows.
        out: file to write.
        by: the validators.
        captions: pairs of the images, for their other captions and boxes; None: those of the rows.
        image_root: folder of the images of the rows; rows whose image is outside it are rejected. Without, relative
            images start from the folder of ``input``, then from the working one.
        model: CLIP model: folder, hub name or ``ARCH::pretrained``.
        device: device of the CLIP model.
        margin: cosine; see `filters.validation.clip_margin`.
        keep_undecided: keep rows on which the two answers of the language model disagree.
        only_kept: do not write rejected rows.
        seed: seed of the run and of the sample of an estimate.
        on_error: policy for invalid rows of ``input``.
        layout: name of the layout of ``input``; empty to detect it.
    """

    input: Path
    out: Path
    by: tuple[Validator, ...] = ("context",)
    captions: ReadOptions | None = None
    image_root: Path | None = None
    model: str = ""
    device: str = ""
    margin: float = 0.05
    keep_undecided: bool = False
    only_kept: bool = False
    seed: int = 0
    on_error: ErrorPolicy = "stop"
    layout: str = ""


class Validation:
    """The rows of a request, and the verdicts so far.

    Raises:
        InputError: INPUT is missing, broken or empty.
        UsageError: the ending of INPUT or OUT names no format, or OUT is INPUT.
    """

    def __init__(self, request: ValidationRequest) -> None:
        given = request.captions.input if request.captions else ""
        refuse_overwriting(request.out, str(request.input), *([given] if isinstance(given, str) else given))
        self._layout = layout_of(request.input, request.layout)
        check_extension(request.out, self._layout)
        self.request = request
        self.started = time.perf_counter()
        self._screening = InvalidRowPolicy(request.on_error)
        self.frame = read_candidates(request.input, self._screening, request.layout)
        require_candidate_rows(request.input, self.frame.height)
        self.verdicts: dict[int, ValidationVerdict] = {}
        self.facts: dict[str, Any] = {}
        columns = self.frame.select("id", "key", "image", "caption", "positive", "negative", "form", "target", "status")
        self._rows: dict[int, tuple[ValidationRow, str, str]] = {}
        for at, (id_, key, image, caption, positive, negative, form, target, status) in enumerate(columns.iter_rows()):
            if status == "kept":
                question = ValidationRow(id_, self._locator(at, image), positive or caption, negative)
                kind = edit_type_name(form, target) if form or target else ""
                self._rows[at] = question, text_group(image, key, caption), kind

    def _locator(self, at: int, image: str) -> str:
        """Return the locator of the image of row ``at``; reject the row when the image is outside ``image_root``."""
        try:
            return locate_row_image(image, self.request.input, self.request.image_root)
        except RejectError as refused:
            self.verdicts[at] = ValidationVerdict(refused.reason)
            return ""

    def undecided(self) -> dict[int, ValidationRow]:
        """Return the rows that no validator has rejected, by position."""
        return {
            at: question
            for at, (question, _, _) in self._rows.items()
            if not self.verdicts.get(at, ValidationVerdict()).reason
        }

    def add_verdicts(self, validator: str, found: Iterable[tuple[int, ValidationVerdict]]) -> None:
        """Add the verdicts of a validator, by position."""
        heard, reasons = 0, Counter[str]()
        for at, verdict in found:
            before = self.verdicts.get(at, ValidationVerdict())
            heard += 1
            ignored = self.request.keep_undecided and verdict.reason in UNDECIDED
            reason = "" if ignored else verdict.reason
            reasons[reason] += 1
            self.verdicts[at] = ValidationVerdict(reason, (*before.scores, *verdict.scores))
        kept = reasons.pop("", 0)
        self.facts[validator] = {"rows": heard, "kept": kept, "rejected": dict(sorted(reasons.items()))}

    def context(self, note: Callable[[str], None]) -> None:
        """Compare the rows with the other captions and boxes of their images."""
        groups = {group for _, group, _ in self._rows.values()}
        known = collect_facts(self._pairs(note), groups)
        several = sum(len(each.captions) + len(each.boxes) > 1 for each in known.values())
        if not several:
            note(
                "No image has another caption or a box, so only rewordings can be found. Add captions with --captions FILE."
            )
        wordnet, tagger = load_wordnet(), CachingTagger(load_tagger())
        captions = dict.fromkeys(text for each in known.values() for text in each.captions)
        pool = count_checked_pool(captions, tagger)
        triples = Triples(EditChecks(wordnet, pool, tagger), tagger, as_given=True)
        undecided = self.undecided()

        def verdicts() -> Iterator[tuple[int, ValidationVerdict]]:
            waiting = iter(undecided)
            while batch := list(islice(waiting, BATCH)):
                tagger.learn(text for at in batch for text in (undecided[at].positive, undecided[at].negative))
                rows = (self._rows[at] for at in batch)
                yield from zip(batch, check_by_context(rows, known, triples, tagger), strict=True)

        self.add_verdicts("context", verdicts())
        self.facts["context"]["images_with_context"] = several

    def _pairs(self, note: Callable[[str], None]) -> Iterator[Pair]:
        for key, image, caption in self.frame.select("key", "image", "caption").iter_rows():
            yield Pair(key, caption, image=image)
        if self.request.captions is not None:
            yield from read_auxiliary_pairs(self.request.captions, note)

    def clip(self) -> None:
        """Compare the rows with a CLIP-like model."""
        from pairwright.indexes.encoders.clip import ClipEncoder  # torch: seconds

        encoder = ClipEncoder(self.request.model, device=self.request.device)
        undecided = self.undecided()
        order = sorted(undecided, key=lambda at: (undecided[at].image, at))
        found = check_by_clip_margin((undecided[at] for at in order), encoder, self.request.margin)
        self.add_verdicts("clip", zip(order, found, strict=True))
        self.facts["clip"] |= {"model": encoder.model, "margin": self.request.margin, "truncated": encoder.truncated}

    def llm(self, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]) -> None:
        """Run a language model that sees the images.

        Raises:
            PairwrightError: what stopped the run; answers are in the cache.
        """
        rows = self.undecided()
        self.ask("llm", self.judging_task(access, rows.values()), rows, self.request.out, note, watch)

    def ask(  # noqa: PLR0913, PLR0917 - what a run over rows needs
        self,
        validator: str,
        task: PairTask,
        rows: Mapping[int, ValidationRow],
        out: Path,
        note: Callable[[str], None],
        watch: Callable[[Snapshot], None],
    ) -> None:
        """Ask a model about rows by position, and add its verdicts; failed rows are written next to ``out``."""
        access = task.access
        access.check()
        pairs = task.rows(map(pair_for_row, rows.values()))
        found, run = collect_rows(access, task, pairs, len(rows), out=out, note=note, watch=watch)
        verdicts = (ValidationVerdict(made[0].reason, tuple(sorted(made[0].scores.items()))) for _, made in found)
        self.add_verdicts(validator, zip(rows, verdicts, strict=True))
        self.facts[validator] |= run.bill()

    def judging_task(self, access: ModelAccess, rows: Iterable[ValidationRow]) -> PairTask:
        """Return the task of judging rows."""
        judge = NegativeJudge(access.prompts(), access.model, access.images, rows)
        return PairTask(judge, access, self.request.seed, {"image_root": str(self.request.image_root)})

    def finish(self, note: Callable[[str], object] = lambda _: None) -> dict[str, Any]:
        """Write the rows and return the counts.

        Args:
            note: takes a message about kept rows that are not written (`write_candidates`).

        Returns:
            ``in``, ``kept``, ``rejected`` (by reason; ``rejected_before``: in the input, without a reason there),
            ``rejected_in_input`` (how many of these rows were), ``by`` (counts by validator), ``by_type``, ``broken`` and ``broken_captions`` (see `SkipCounts`), ``seconds``, ``out``.
        """
        rows = [self._row(at, row) for at, row in enumerate(complete_rows(self.frame))]
        write_candidates(
            candidate_frame((f"row {at}", row) for at, row in enumerate(rows)),
            self.request.out,
            only_kept=self.request.only_kept,
            like=self._layout,
            note=note,
        )
        types = sorted({edit_type_name(row["form"], row["target"]) for row in rows})
        by_type = {
            kind: _counted([r for r in rows if edit_type_name(r["form"], r["target"]) == kind]) for kind in types
        }
        seconds = round(time.perf_counter() - self.started, 2)
        before = {"rejected_in_input": len(rows) - len(self._rows)}
        facts = {**before, "by": self.facts, "by_type": by_type, **self._screening.skipped.as_json()}
        return {**_counted(rows), **facts, "seconds": seconds, "out": str(self.request.out)}

    def _row(self, at: int, row: dict[str, Any]) -> dict[str, Any]:
        if at not in self._rows:
            return row | {"reason": row["reason"] or "rejected_before"}
        verdict = self.verdicts.get(at, ValidationVerdict())
        status = "rejected" if verdict.reason else "kept"
        return row | {"status": status, "reason": verdict.reason, "scores": {**row["scores"], **dict(verdict.scores)}}


def validate(
    request: ValidationRequest,
    access: ModelAccess | None,
    note: Callable[[str], None],
    watch: Callable[[Snapshot], None],
) -> dict[str, Any]:
    """Validate rows and write them.

    Args:
        request: input, output and validators.
        access: the language model; None if it is not a validator.
        note: receives messages about the run.
        watch: receives progress snapshots of the language model.

    Returns:
        As `Validation.finish`.

    Raises:
        PairwrightError: the run could not start, or what stopped it.
    """
    if access is not None:
        access.check()  # before minutes of work
    work = Validation(request)
    if "context" in request.by:
        work.context(note)
    if "clip" in request.by:
        work.clip()
    if "llm" in request.by and access is not None:
        work.llm(access, note, watch)
    return work.finish(note)


def plan_validation(request: ValidationRequest, access: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return an estimate of the requests to the language model, after the context validator if it is used.

    Raises:
        PairwrightError: the run could not start.
    """
    access.settings()  # reports invalid settings before any work
    work = Validation(request)
    if "context" in request.by:
        work.context(note)
    rows = list(work.undecided().values())
    return work.judging_task(access, rows).estimate(map(pair_for_row, rows), request.out)


def _counted(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    reasons = Counter(row["reason"] for row in rows if row["status"] == "rejected")
    return {"in": len(rows), "kept": len(rows) - reasons.total(), "rejected": dict(sorted(reasons.items()))}
