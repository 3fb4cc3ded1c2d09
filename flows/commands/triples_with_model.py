"""Evaluation triples whose positives a model writes: ``pairwright generate triples --method llm``.

Captions are asked about in passes. The first pass asks for the types of their negatives; if a negative has no positive
then and other types are allowed, a further pass asks for those, too. Answers are in the cache, so a pass sends only the
requests that are new, and the same command continues a stopped run. Captions whose negatives are all rejected, or have no
type to ask for, are skipped.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any

from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.commands.triples import NAME, CaptionGroup, TripleRequest, TripleResults, TripleRows
from pairwright.flows.llm.failed_rows import failed_rows_path
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import RowRun
from pairwright.generators.edit_types import POSITIVE_TYPES
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.group_size import CAPTIONS_PER_REQUEST
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.llm_edits.positives import NAME as MAKER
from pairwright.generators.llm_edits.positives import VERSION, LLMPositives
from pairwright.generators.llm_edits.requests import EditCandidate
from pairwright.generators.registry import LLMMaterials, build_llm_generator
from pairwright.generators.triples import TriplePositive, kept_positives

Rounds = Mapping[str, Sequence[tuple[str, ...]]]
"""By the key of a caption: the types of its first request, of the second one, and so on."""


class MissingPositives:
    """Generator (`protocols.CheckedLLMGenerator`) of the positives for the negatives of captions.

    Args:
        materials: resources of the generator.
        rounds: what is asked about each caption.
    """

    name = f"llm-{NAME}"
    version = VERSION
    kind = "hard_positive"
    captions_per_request = CAPTIONS_PER_REQUEST

    def __init__(self, materials: LLMMaterials, rounds: Rounds) -> None:
        self._rounds = rounds
        self._maker = lru_cache(maxsize=None)(partial(_maker, materials))

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts of all types, each as ``name@hash``."""
        return self._maker(POSITIVE_TYPES).prompts

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[list[EditCandidate]]]:
        """Return the steps of a caption, which end in the candidates of each round."""
        found = []
        for types in self._rounds[pair.key]:
            found.append((yield from self._maker(types).ask(pair, rng, attempt=attempt)))  # noqa: PERF401 - a generator
        return found

    def check(self, batch: Sequence[tuple[Pair, Sequence[Sequence[EditCandidate]]]]) -> list[list[Annotation]]:
        """Return one annotation per requested type of each caption."""
        waiting: defaultdict[tuple[str, ...], list[tuple[int, Sequence[EditCandidate]]]] = defaultdict(list)
        for at, (pair, rounds) in enumerate(batch):
            for types, found in zip(self._rounds[pair.key], rounds, strict=True):
                waiting[types].append((at, found))
        made: list[list[Annotation]] = [[] for _ in batch]
        for types, of_types in waiting.items():
            checked = self._maker(types).check([(batch[at][0], found) for at, found in of_types])
            for (at, _), rows in zip(of_types, checked, strict=True):
                made[at] += rows
        return made


def _maker(materials: LLMMaterials, types: tuple[str, ...]) -> LLMPositives:
    made = build_llm_generator(MAKER, materials, {"types": types})
    assert isinstance(made, LLMPositives)
    return made


def _next_types(
    work: TripleRows, group: CaptionGroup, rows: Sequence[Annotation], asked: Collection[str]
) -> tuple[str, ...]:
    """Return the types to request next for rows without a positive; empty if none are left."""
    found = work.choose_positives(group, by_type(rows))
    wanted: set[str] = set()
    for row, negative in group.usable:
        if not isinstance(found[row], TriplePositive):
            left = (set(types) - {*asked} for types in work.triples.rounds(negative.type))
            wanted |= next((types for types in left if types), set())
    return tuple(kind for kind in POSITIVE_TYPES if kind in wanted)


def by_type(rows: Iterable[Annotation]) -> dict[str, list[TriplePositive]]:
    """Return the kept positives by type."""
    offered: defaultdict[str, list[TriplePositive]] = defaultdict(list)
    for offer in kept_positives(rows):
        offered[offer.type].append(offer)
    return offered


def _first_rounds(work: TripleRows, groups: Iterable[CaptionGroup]) -> dict[str, list[tuple[str, ...]]]:
    """Return the types of the first request about each caption; captions with the same types come together."""
    types = ((group.caption.pair.key, _next_types(work, group, (), ())) for group in groups)
    return {key: [first] for key, first in sorted(types, key=lambda each: each[1]) if first}


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
    groups = {group.caption.pair.key: group for batch in rows.batches() for group in batch}
    for group in groups.values():
        results.add(group, rows.choose_positives(group, {}))
    rounds = _first_rounds(rows, groups.values())
    written: dict[str, list[Annotation]] = {}

    def add(pair: Pair, annotations: list[Annotation]) -> None:
        written[pair.key] = annotations

    with RowRun(access, failed_rows_path(request.out), note, watch) as run:
        unasked = True
        while unasked:
            task = _task(request, rows, access, rounds)
            pairs = task.rows(groups[key].caption.pair for key in rounds)
            run.run(task, pairs, len(rounds), nullcontext(add), unit="captions")
            unasked = False
            for key, asked in rounds.items():
                if more := _next_types(rows, groups[key], written[key], {kind for types in asked for kind in types}):
                    asked.append(more)
                    unasked = True
    run.note_failures()
    for key, annotations in written.items():
        results.add(groups[key], rows.choose_positives(groups[key], by_type(annotations)))
    return {**rows.finish(results), "llm": run.bill(), "failed": run.failures()}


def plan_with_model(request: TripleRequest, access: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return an estimate of `run_with_model`.

    Raises:
        PairwrightError: the run could not start.
    """
    access.settings()  # reports invalid settings before any work
    rows = TripleRows(request, note)
    groups = {group.caption.pair.key: group for batch in rows.batches() for group in batch}
    rounds = _first_rounds(rows, groups.values())
    return _task(request, rows, access, rounds).estimate((groups[key].caption.pair for key in rounds), request.out)


def _task(request: TripleRequest, rows: TripleRows, access: ModelAccess, rounds: Rounds) -> PairTask:
    generator = MissingPositives(access.materials(rows.materials, rows.tagger), rounds)
    return PairTask(generator, access, request.seed, {"any_type": request.any_type})
