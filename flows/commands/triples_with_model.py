"""Evaluation triples whose positives a model writes: ``pairwright generate triples --method llm``.

A row of the session is a caption, however many negatives it has. The first request asks for the types of its negatives;
if a negative has no positive then and other types are allowed, further requests ask for those. Captions whose negatives
are all rejected, or have no type to ask for, are skipped. Answers are in the cache: the same command continues a stopped
run.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.commands.triples import NAME, CaptionGroup, TripleRequest, TripleResults, TripleRows
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import run_rows
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.llm_positives import NAME as MAKER
from pairwright.generators.llm_positives import TYPES, VERSION
from pairwright.generators.protocols import AnyLLMGenerator, steps_of_pair
from pairwright.generators.registry import LLMMaterials, build_llm_generator
from pairwright.generators.triples import TriplePositive, kept_positives


class MissingPositives:
    """Generator (`protocols.LLMGenerator`) of the positives for the negatives of a caption.

    Args:
        work: decides which positive a negative gets.
        materials: resources of the generator.
        groups: the captions to ask about.
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
        maker: AnyLLMGenerator = self._maker(TYPES)
        return maker.prompts

    def annotate(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[Annotation]]:
        """Return the step of a caption, which returns one annotation per requested type."""
        group, rows = self._groups[pair.key], list[Annotation]()
        asked: set[str] = set()
        while types := _next_types(self._work, group, rows, asked):
            asked.update(types)
            rows += yield from steps_of_pair(self._maker(types), pair, rng, attempt=attempt)
        return rows


def _next_types(work: TripleRows, group: CaptionGroup, rows: Sequence[Annotation], asked: set[str]) -> tuple[str, ...]:
    """Return the types to request next for rows without a positive; empty if none are left."""
    found = work.chosen(group, by_type(rows))
    wanted: set[str] = set()
    for row, negative in group.usable:
        if not isinstance(found[row], TriplePositive):
            left = (set(types) - asked for types in work.triples.rounds(negative.type))
            wanted |= next((types for types in left if types), set())
    return tuple(kind for kind in TYPES if kind in wanted)


def by_type(rows: Iterable[Annotation]) -> dict[str, list[TriplePositive]]:
    """Return the kept positives by type."""
    offered: defaultdict[str, list[TriplePositive]] = defaultdict(list)
    for offer in kept_positives(rows):
        offered[offer.type].append(offer)
    return offered


def _groups_to_ask(work: TripleRows, groups: Iterable[CaptionGroup]) -> list[CaptionGroup]:
    return [group for group in groups if _next_types(work, group, (), set())]


def run_with_model(
    request: TripleRequest, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Make triples whose positives a model writes, and write them.

    Args:
        request: input and output.
        access: the model.
        note: receives messages about the run.
        watch: receives progress snapshots.

    Returns:
        As `TripleRows.finish`, with ``llm`` and ``failed`` as in `generate_with_model.run_llm_generator`.

    Raises:
        PairwrightError: what stopped the run; answers are in the cache.
    """
    access.check()
    rows, results = TripleRows(request, note), TripleResults()
    groups = [group for batch in rows.batches() for group in batch]
    for group in groups:
        results.add(group, rows.chosen(group, {}))
    to_ask = {group.caption.pair.key: group for group in _groups_to_ask(rows, groups)}
    task = _task(request, rows, access, to_ask.values())

    def add(pair: Pair, annotations: list[Annotation]) -> None:
        results.add(to_ask[pair.key], rows.chosen(to_ask[pair.key], by_type(annotations)))

    pairs = task.rows(group.caption.pair for group in to_ask.values())
    run = run_rows(
        access, task, pairs, len(to_ask), nullcontext(add), out=request.out, note=note, watch=watch, unit="captions"
    )
    return {**rows.finish(results), "llm": run.bill(), "failed": run.failures()}


def plan_with_model(request: TripleRequest, access: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return an estimate of `run_with_model`.

    Raises:
        PairwrightError: the run could not start.
    """
    access.settings()  # reports invalid settings before any work
    rows = TripleRows(request, note)
    groups = _groups_to_ask(rows, (group for batch in rows.batches() for group in batch))
    task = _task(request, rows, access, groups)
    return task.estimate(group.caption.pair for group in groups)


def _task(request: TripleRequest, rows: TripleRows, access: ModelAccess, groups: Iterable[CaptionGroup]) -> PairTask:
    generator = MissingPositives(rows, access.materials(rows.materials, rows.tagger), groups)
    return PairTask(generator, access, request.seed, {"any_type": request.any_type})
