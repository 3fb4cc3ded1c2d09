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
from pairwright.flows.chosen import chosen_flags, chosen_frame, chosen_pairs
from pairwright.flows.counting import Filling, asked_and_given, told_missing
from pairwright.flows.layout import failed_path, pairs_path, tokens_path
from pairwright.flows.llm import Asking
from pairwright.flows.progress import Progress
from pairwright.flows.receipts import Counts, Outcome
from pairwright.flows.stages.generate import Generation, materials_of, not_on_both_sides, write_rows
from pairwright.flows.talking import TaggedPair, Talks
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.token_table import read_tokens
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import Session
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import build_llm_generator


@dataclass(frozen=True)
class AskingStage:
    """What an asking stage does, and with whom.

    Attributes:
        this: the generation.
        asking: the model.
        progress: who is told.
        stop: set by whoever wants the stage to end; what is done is kept.
    """

    this: Generation
    asking: Asking
    progress: Progress
    stop: Event

    def __call__(self, root: Path, parts: list[str]) -> Outcome:
        """Let a maker ask its model about the chosen pairs of all parts; the unit is an attempt.

        Rows go where `stages.generate.generate_part` puts them; rows that failed are named in ``failed/``.

        Raises:
            PairwrightError: what stopped it.
        """
        this, asking = self.this, self.asking
        before = replace(asking.bill)  # of the stages before this one
        tagger = load_tagger()
        filling = Filling(
            this.options,
            lambda: (key for part in parts for key in chosen_frame(root, part, this.choice)["key"]),
            this.seed,
        )
        materials = asking.materials(materials_of(root, this.seed), tagger)
        chosen = {part: sum(chosen_flags(root, PAIRS.read(pairs_path(root, part)), this.choice)) for part in parts}
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
        if short := told_missing(filling.missing(tally)):
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
            facts["limits"] = asked_and_given(this.options, tally).as_json()
        return Outcome(outputs, counts, facts)

    def _pass(
        self, root: Path, chosen: Mapping[str, int], session: Session, maker: LLMGenerator, *, retry: bool
    ) -> tuple[list[Path], AnnotationCounts, int]:
        """Make the rows of all parts; return their files, what they are, and how many rows failed."""
        this, tally = self.this, AnnotationCounts()
        outputs, run = [failed_path(root, this.stage)], self.asking.identity(maker, this.options, this.seed)
        with FailedRows(outputs[0], run=run, retry=retry) as failed:
            pairs = (tagged for part in chosen for tagged in _tagged(root, part, this))
            held = Talks(maker, this.seed, failed).hold(session, pairs, of=sum(chosen.values()))
            for part, count in chosen.items():
                rows = [row for _, made in islice(held, count) for row in made]
                rows = not_on_both_sides(root, part, this, rows)
                outputs += write_rows(root, part, this, rows)
                tally.add(rows)
        return outputs, tally, failed.counts.total()


def has_failed_rows(root: Path, stage: str) -> bool:
    """Return whether an earlier run of ``stage`` has left rows to ask anew."""
    path = failed_path(root, stage)
    return path.exists() and path.stat().st_size > 0


def _tagged(root: Path, part: str, this: Generation) -> Iterator[TaggedPair]:
    """Yield the chosen pairs of a part, fetched images in place, with the tokens of their captions."""
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    flags = chosen_flags(root, pairs, this.choice)
    words = (each for each, goes_on in zip(tokens, flags, strict=True) if goes_on)
    yield from zip(chosen_pairs(root, part, this.choice), words, strict=True)
