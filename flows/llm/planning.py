"""What a maker that asks a model would ask over an input, and what that would cost: ``--dry-run`` and ``pairwright plan``.

Nothing is sent. The talks of a sample are held with the answers that their prompts expect (`generators.llm.plan`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from pairwright.datasets.readers.pairs import read_pairs
from pairwright.datasets.records import Pair
from pairwright.flows.commands.generate import GenerateRequest, load_materials
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.llm.context import ContextProvider
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.quotas import restrict_to_counts
from pairwright.flows.llm.steps import pair_step
from pairwright.flows.rationales.generation import rationale_generator, session_row
from pairwright.flows.stages.generating import generating_stages, selection_of
from pairwright.flows.stages.rationales import STAGE, TASK
from pairwright.flows.state.inputs import read_options
from pairwright.flows.state.layout import fetched_images_path, retrieved_keys_path
from pairwright.flows.state.selection import selected_pairs
from pairwright.generators.edits.general_english import GeneralEnglish
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.budget import SpendingTotals
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Request as LLMRequest
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import EstimatedRange, RowSample, StagePlan, plan_stage, sample_rows
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.rationales.generator import RationaleSettings
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.registry import Materials, build_llm_generator, needs_model

T = TypeVar("T")


def plan_llm_generator(request: GenerateRequest, asking: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return what `llm_generating.run_llm_generator` would ask and cost.

    Raises:
        PairwrightError: when it could not begin.
    """
    asking.settings()  # what cannot work is told first
    tagger = load_tagger()
    made = asking.materials(load_materials(request, note), tagger)
    keys = (pair.key for batch in read_pairs(request.read) for pair in batch.pairs)
    maker = build_llm_generator(request.generator, made, restrict_to_counts(request.options, keys, request.seed))
    pairs = (pair for batch in read_pairs(request.read) for pair in batch.pairs)
    return plan_generator(maker, sample_rows(pairs, seed=request.seed), tagger, asking, request.seed)


def plan_build_requests(config: BuildConfig, out: Path) -> list[StagePlan]:
    """Return what the stages of a build would ask and cost, those that ask a model, in order.

    Where the build directory tells which pairs were retrieved or fetched, these are planned for; else all of the input,
    of which retrieval may leave less.

    Raises:
        PairwrightError: when it could not begin.
    """
    stages = [this for this in generating_stages(config) if needs_model(this.generator)]
    if not stages and not config.rationales:
        return []
    asking = model_access_for_build(config.llm, out, SpendingTotals(), seed=config.seed)
    tagger, wordnet = load_tagger(config.tagger), load_wordnet()
    # Which words a pool uses changes what is kept, not what is asked.
    made = asking.materials(Materials(wordnet, GeneralEnglish(wordnet), config.seed), tagger)
    sample = sample_rows(_pairs_of_build(config, out), seed=config.seed)
    plans = []
    for this in stages:
        keys = (pair.key for pair in _pairs_of_build(config, out))
        maker = build_llm_generator(this.generator, made, restrict_to_counts(this.options, keys, config.seed))
        plans.append(replace(plan_generator(maker, sample, tagger, asking, config.seed), stage=this.name))
    if config.rationales:
        plans.append(_plan_rationales(config, sample, asking))
    return plans


def _plan_rationales(config: BuildConfig, sample: RowSample[Pair], asking: ModelAccess) -> StagePlan:
    """Plan for as many negatives as can be kept, each of its own and about as long as its caption."""
    assert config.rationales is not None
    task = open_task(TASK)
    maker = rationale_generator(task, RationaleSettings(seed=config.seed, **config.rationales.model_dump()), asking)
    most = len(config.negatives.types) * config.negatives.per_type if config.negatives else 1
    rows = []
    for pair in sample.items:
        known = [pair.caption, *pair.captions, *(box.label for box in pair.boxes)]
        for ordinal, label in enumerate(["yes", *["no"] * most]):
            # Were they alike, they would be one request, and the others free.
            text = f"{pair.caption} {ordinal}" if ordinal else pair.caption
            item = task.item({"known": list(dict.fromkeys(known)), "caption": text, "label": label}, pair.key)
            rows.append(session_row(maker, item, ordinal))
    total = None if sample.total is None else sample.total * (most + 1)
    return replace(plan_rows(STAGE, rows, total, asking), stage=STAGE)


def _pairs_of_build(config: BuildConfig, out: Path) -> Iterator[Pair]:
    choice = selection_of(config)
    table = {"retrieved": retrieved_keys_path, "fetched": fetched_images_path}.get(choice)
    if table is not None and table(out).exists():
        for path in sorted((out / "pairs").glob("*.parquet")):
            yield from selected_pairs(out, path.stem, choice)
        return
    for batch in read_pairs(replace(read_options(config.input), verify_images="off")):
        yield from batch.pairs


def plan_generator(
    maker: LLMGenerator, sample: RowSample[Pair], tagger: Tagger, asking: ModelAccess, seed: int
) -> StagePlan:
    """Return what a maker would ask about pairs, by a sample of them.

    Raises:
        PairwrightError: when settings or prices cannot work, or the cache cannot be read.
    """
    tokens = tagger.tag([pair.caption for pair in sample.items])
    rows = (
        (LLMRow(pair.key, partial(pair_step, maker, seed, pair, words)), pair.caption, pair.key)
        for pair, words in zip(sample.items, tokens, strict=True)
    )
    return plan_rows(maker.name, list(ContextProvider(asking.context).rows(rows)), sample.total, asking)


def plan_rows(stage: str, rows: Sequence[LLMRow[T]], total: int | None, asking: ModelAccess) -> StagePlan:
    """Return what rows would ask, and with them all ``total`` that they stand for; errors as in `plan_generator`."""

    def talk(row: LLMRow[T], attempt: int) -> LLMStep[T]:
        return _with_sent_requests(row.talk(attempt), asking.changed)

    with ExitStack() as stack:
        cache = stack.enter_context(Cache.open(asking.cache, create=False)) if _has_cache(asking.cache) else None
        plan = plan_stage(
            stage,
            [replace(row, talk=partial(talk, row)) for row in rows],
            total,
            settings=asking.settings(),
            prices=asking.prices(),
            cache=cache,
            batch=asking.section.batch,
        )
    # How fast this machine is, a plan does not know.
    return plan if asking.local is None else replace(plan, seconds=EstimatedRange())


def _has_cache(path: Path) -> bool:
    """Whether there is a cache; an empty file becomes one when it is first asked, and a plan writes nothing."""
    return path.exists() and (path.is_dir() or path.stat().st_size > 0)


def _with_sent_requests(talk: LLMStep[T], change: Callable[[LLMRequest], LLMRequest]) -> LLMStep[T]:
    """Hold a talk with its requests as they would be sent."""
    try:
        requests = next(talk)
        while True:
            outcomes = yield [change(request) for request in requests]
            requests = talk.send(outcomes)
    except StopIteration as end:
        result: T = end.value
        return result
