"""Stages whose maker asks a model: one job over all parts, in this process, so that one session serves them all.

A killed stage starts again from the first row; what was answered is in the cache, and is not paid for twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event

from pairwright.datasets.record_tables import PAIRS
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.quotas import QuotaPasses, missing_message, quota_verdict
from pairwright.flows.llm.steps import PairSteps, TaggedPair
from pairwright.flows.progress import BuildProgress
from pairwright.flows.stages.generate import GeneratingStage, materials_of, reject_positives_among_negatives, write_rows
from pairwright.flows.state.layout import failed_path, pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.flows.state.selection import selected_frame, selected_pairs, selection_mask
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.token_storage import read_tokens
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import Session
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import build_llm_generator


@dataclass(frozen=True)
class ModelStage:
    """What an asking stage does, and with whom.

    Attributes:
        this: the generation.
        asking: the model.
        progress: who is told.
        stop: set by whoever wants the stage to end; what is done is kept.
    """

    this: GeneratingStage
    asking: ModelAccess
    progress: BuildProgress
    stop: Event

    def __call__(self, root: Path, parts: list[str]) -> JobResult:
        """Let a maker ask its model about the chosen pairs of all parts; the unit is an attempt.

        Rows go where `stages.generate.generate_part` puts them; rows that failed are named in ``failed/``.

        Raises:
            PairwrightError: what stopped it.
        """
        this, asking = self.this, self.asking
        before = replace(asking.bill)  # of the stages before this one
        tagger = load_tagger()
        filling = QuotaPasses(
            this.options,
            lambda: (key for part in parts for key in selected_frame(root, part, this.choice)["key"]),
            this.seed,
        )
        materials = asking.materials(materials_of(root, this.seed), tagger)
        chosen = {part: sum(selection_mask(root, PAIRS.read(pairs_path(root, part)), this.choice)) for part in parts}
        with asking.session(
            watch=partial(self.progress.far, this.stage), say=self.progress.note, stop=self.stop
        ) as session:
            maker = build_llm_generator(this.generator, materials, filling.now())
            passed = RequestTotals()
            outputs, tally, failed = self._pass(root, chosen, session, maker, retry=asking.retry_failed)
            while filling.goes_on(tally, sum(chosen.values())):
                passed = session.totals().spent
                maker = build_llm_generator(this.generator, materials, filling.now())
                outputs, tally, failed = self._pass(root, chosen, session, maker, retry=False)
            told = {**asking.told(session.totals().spent.since(passed), before), "failed": failed}
        if short := missing_message(filling.missing(tally)):
            self.progress.note(short)
        made = tally.by_type()
        counts = Counts(
            "attempt",
            sum(each["made"] for each in made.values()),
            sum(each["kept"] for each in made.values()),
            tally.reasons(),
        )
        facts = {"generator": f"{maker.name}/{maker.version}", "by_type": made, "llm": told}
        if this.options.get("counts"):
            facts["limits"] = quota_verdict(this.options, tally).as_json()
        return JobResult(outputs, counts, facts)

    def _pass(
        self, root: Path, chosen: Mapping[str, int], session: Session, maker: LLMGenerator, *, retry: bool
    ) -> tuple[list[Path], AnnotationCounts, int]:
        """Make the rows of all parts; return their files, what they are, and how many rows failed."""
        this, tally = self.this, AnnotationCounts()
        outputs, run = [failed_path(root, this.stage)], self.asking.identity(maker, this.options, this.seed)
        with FailedRows(outputs[0], run=run, retry=retry) as failed:
            pairs = (tagged for part in chosen for tagged in _tagged_pairs(root, part, this))
            held = PairSteps(maker, this.seed, failed).hold(session, pairs, of=sum(chosen.values()))
            for part, count in chosen.items():
                rows = [row for _, made in islice(held, count) for row in made]
                rows = reject_positives_among_negatives(root, part, this, rows)
                outputs += write_rows(root, part, this, rows)
                tally.add(rows)
        return outputs, tally, failed.counts.total()


def has_failed_rows(root: Path, stage: str) -> bool:
    """Return whether an earlier run of ``stage`` has left rows to ask anew."""
    path = failed_path(root, stage)
    return path.exists() and path.stat().st_size > 0


def _tagged_pairs(root: Path, part: str, this: GeneratingStage) -> Iterator[TaggedPair]:
    """Yield the chosen pairs of a part, fetched images in place, with the tokens of their captions."""
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    flags = selection_mask(root, pairs, this.choice)
    words = (each for each, goes_on in zip(tokens, flags, strict=True) if goes_on)
    yield from zip(selected_pairs(root, part, this.choice), words, strict=True)
