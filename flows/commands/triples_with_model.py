"""Evaluation triples whose positives a model writes: ``pairwright generate triples --method llm``.

One row of the session is a caption, however many negatives it has. It is asked for the types of its negatives first;
only where that leaves a negative without a positive, and other types are allowed, for those. Nothing is asked about
captions whose negatives are rejected or have no type that could be asked for. Answers are kept: a run that was stopped
goes on with the same command.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.commands.generate_with_model import failed_rows_path
from pairwright.flows.commands.triples import NAME, CaptionGroup, TripleRequest, TripleResults, TripleRows
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.planning import plan_generator
from pairwright.flows.llm.steps import PairSteps
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import StagePlan, sample_rows
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.llm_positives import NAME as MAKER
from pairwright.generators.llm_positives import TYPES, VERSION
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import LLMMaterials, build_llm_generator
from pairwright.generators.triples import TriplePositive, kept_positives


class MissingPositives:
    """The generator (`protocols.LLMGenerator`) of the positives that the negatives of a caption want.

    Args:
        work: says which positives go beside a negative.
        materials: see `registry.LLMMaterials`.
        groups: the captions that will be asked about.
    """

    name = f"llm-{NAME}"
    version = VERSION
    kind = "hard_positive"

    def __init__(self, work: TripleRows, materials: LLMMaterials, groups: Iterable[CaptionGroup]) -> None:
        self._work = work
        self._groups = {group.caption.pair.key: group for group in groups}
        self._maker = lru_cache(maxsize=None)(
            lambda types: build_llm_generator(MAKER, materials, {"types": types})  # a maker of these types
        )

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts of all types, each as ``name@hash``."""
        maker: LLMGenerator = self._maker(TYPES)
        return maker.prompts

    def annotate(
        self, pair: Pair, tokens: Sequence[Token], rng: random.Random, *, attempt: int = 0
    ) -> LLMStep[list[Annotation]]:
        """Return the talk about a caption, which ends in one annotation for each type that was asked for."""
        group, rows = self._groups[pair.key], list[Annotation]()
        asked: set[str] = set()
        while types := _next_types(self._work, group, rows, asked):
            asked.update(types)
            rows += yield from self._maker(types).annotate(pair, tokens, rng, attempt=attempt)
        return rows


def _next_types(work: TripleRows, group: CaptionGroup, rows: Sequence[Annotation], asked: set[str]) -> tuple[str, ...]:
    """Return the types that the rows without a positive want next; none when nothing is left to try."""
    found = work.chosen(group, by_type(rows))
    wanted: set[str] = set()
    for row, negative in group.usable:
        if not isinstance(found[row], TriplePositive):
            left = (set(types) - asked for types in work.triples.rounds(negative.type))
            wanted |= next((types for types in left if types), set())
    return tuple(kind for kind in TYPES if kind in wanted)


def by_type(rows: Iterable[Annotation]) -> dict[str, list[TriplePositive]]:
    """Return the positives that were kept, by type."""
    offered: defaultdict[str, list[TriplePositive]] = defaultdict(list)
    for offer in kept_positives(rows):
        offered[offer.type].append(offer)
    return offered


def _groups_to_ask(work: TripleRows, groups: Iterable[CaptionGroup]) -> list[CaptionGroup]:
    return [group for group in groups if _next_types(work, group, (), set())]


def run_with_model(
    request: TripleRequest, asking: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Make triples whose positives a model writes, and write them.

    Args:
        request: of what, into which file.
        asking: of which model, and how.
        note: told in one line what concerns the whole run.
        watch: told how far it is.

    Returns:
        As `TripleWork.finish`, with ``llm`` (model, requests, tokens, cost) and ``failed``: how many captions failed,
        the file that names them, and why.

    Raises:
        PairwrightError: what stopped the run, in one line; answers are kept.
    """
    asking.check()
    work, outcome = TripleRows(request, note), TripleResults()
    groups = [group for batch in work.batches() for group in batch]
    for group in groups:
        outcome.add(group, work.chosen(group, {}))
    askable = {group.caption.pair.key: group for group in _groups_to_ask(work, groups)}
    maker = MissingPositives(work, asking.materials(work.materials, work.tagger), askable.values())
    run = asking.identity(maker, {"any_type": request.any_type}, request.seed)
    done = 0
    with FailedRows(failed_rows_path(request.out), run=run, retry=asking.retry_failed) as failed:
        talks = PairSteps(maker, request.seed, failed)
        pairs = ((group.caption.pair, group.caption.tokens) for group in askable.values())
        with asking.session(watch=watch, say=note) as session:
            try:
                for pair, rows in talks.hold(session, pairs, of=len(askable)):
                    outcome.add(askable[pair.key], work.chosen(askable[pair.key], by_type(rows)))
                    done += 1
            except (PairwrightError, KeyboardInterrupt):
                note(f"{done:,} of {len(askable):,} captions are done. The same command goes on from there.")
                raise
    if summary := failed.summary(len(askable)):
        note(summary)
    reasons = dict(sorted(failed.counts.items()))
    return {
        **work.finish(outcome),
        "llm": asking.told(session.totals().spent),
        "failed": {"rows": sum(reasons.values()), "reasons": reasons, "file": str(failed.path)},
    }


def plan_with_model(request: TripleRequest, asking: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return what `run_with_model` would ask and cost.

    Raises:
        PairwrightError: when it could not begin.
    """
    asking.settings()  # what cannot work is told first
    work = TripleRows(request, note)
    groups = _groups_to_ask(work, (group for batch in work.batches() for group in batch))
    maker = MissingPositives(work, asking.materials(work.materials, work.tagger), groups)
    sample = sample_rows((group.caption.pair for group in groups), seed=request.seed)
    return plan_generator(maker, sample, work.tagger, asking, request.seed)
