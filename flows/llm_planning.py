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
from pairwright.flows.chosen import chosen_pairs
from pairwright.flows.config import BuildConfig
from pairwright.flows.context import Given
from pairwright.flows.counting import counted
from pairwright.flows.generating import Request, materials
from pairwright.flows.generations import choice_of, generations
from pairwright.flows.inputs import read_options
from pairwright.flows.layout import chosen_path, fetched_path
from pairwright.flows.llm import Asking, asking_of
from pairwright.flows.rationale_asking import maker_of, row_of
from pairwright.flows.stages.rationales import STAGE, TASK
from pairwright.flows.talking import talk_about
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


def plan_llm_generator(request: Request, asking: Asking, note: Callable[[str], None]) -> StagePlan:
    """Return what `llm_generating.run_llm_generator` would ask and cost.

    Raises:
        PairwrightError: when it could not begin.
    """
    asking.settings()  # what cannot work is told first
    tagger = load_tagger()
    made = asking.materials(materials(request, note), tagger)
    keys = (pair.key for batch in read_pairs(request.read) for pair in batch.pairs)
    maker = build_llm_generator(request.generator, made, counted(request.options, keys, request.seed))
    pairs = (pair for batch in read_pairs(request.read) for pair in batch.pairs)
    return plan_maker(maker, sample_rows(pairs, seed=request.seed), tagger, asking, request.seed)


def plan_build(config: BuildConfig, out: Path) -> list[StagePlan]:
    """Return what the stages of a build would ask and cost, those that ask a model, in order.

    Where the build directory tells which pairs were retrieved or fetched, these are planned for; else all of the input,
    of which retrieval may leave less.

    Raises:
        PairwrightError: when it could not begin.
    """
    stages = [this for this in generations(config) if needs_model(this.generator)]
    if not stages and not config.rationales:
        return []
    asking = asking_of(config.llm, out, SpendingTotals(), seed=config.seed)
    tagger, wordnet = load_tagger(config.tagger), load_wordnet()
    # Which words a pool uses changes what is kept, not what is asked.
    made = asking.materials(Materials(wordnet, GeneralEnglish(wordnet), config.seed), tagger)
    sample = sample_rows(_pairs_of(config, out), seed=config.seed)
    plans = []
    for this in stages:
        keys = (pair.key for pair in _pairs_of(config, out))
        maker = build_llm_generator(this.generator, made, counted(this.options, keys, config.seed))
        plans.append(replace(plan_maker(maker, sample, tagger, asking, config.seed), stage=this.stage))
    if config.rationales:
        plans.append(_plan_rationales(config, sample, asking))
    return plans


def _plan_rationales(config: BuildConfig, sample: RowSample[Pair], asking: Asking) -> StagePlan:
    """Plan for as many negatives as can be kept, each of its own and about as long as its caption."""
    assert config.rationales is not None
    task = open_task(TASK)
    maker = maker_of(task, RationaleSettings(seed=config.seed, **config.rationales.model_dump()), asking)
    most = len(config.negatives.types) * config.negatives.per_type if config.negatives else 1
    rows = []
    for pair in sample.items:
        known = [pair.caption, *pair.captions, *(box.label for box in pair.boxes)]
        for ordinal, label in enumerate(["yes", *["no"] * most]):
            # Were they alike, they would be one request, and the others free.
            text = f"{pair.caption} {ordinal}" if ordinal else pair.caption
            item = task.item({"known": list(dict.fromkeys(known)), "caption": text, "label": label}, pair.key)
            rows.append(row_of(maker, item, ordinal))
    total = None if sample.total is None else sample.total * (most + 1)
    return replace(plan_rows(STAGE, rows, total, asking), stage=STAGE)


def _pairs_of(config: BuildConfig, out: Path) -> Iterator[Pair]:
    choice = choice_of(config)
    table = {"retrieved": chosen_path, "fetched": fetched_path}.get(choice)
    if table is not None and table(out).exists():
        for path in sorted((out / "pairs").glob("*.parquet")):
            yield from chosen_pairs(out, path.stem, choice)
        return
    for batch in read_pairs(replace(read_options(config.input), verify_images="off")):
        yield from batch.pairs


def plan_maker(maker: LLMGenerator, sample: RowSample[Pair], tagger: Tagger, asking: Asking, seed: int) -> StagePlan:
    """Return what a maker would ask about pairs, by a sample of them.

    Raises:
        PairwrightError: when settings or prices cannot work, or the cache cannot be read.
    """
    tokens = tagger.tag([pair.caption for pair in sample.items])
    rows = (
        (LLMRow(pair.key, partial(talk_about, maker, seed, pair, words)), pair.caption, pair.key)
        for pair, words in zip(sample.items, tokens, strict=True)
    )
    return plan_rows(maker.name, list(Given(asking.context).rows(rows)), sample.total, asking)


def plan_rows(stage: str, rows: Sequence[LLMRow[T]], total: int | None, asking: Asking) -> StagePlan:
    """Return what rows would ask, and with them all ``total`` that they stand for; errors as in `plan_maker`."""

    def talk(row: LLMRow[T], attempt: int) -> LLMStep[T]:
        return _as_sent(row.talk(attempt), asking.changed)

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


def _as_sent(talk: LLMStep[T], change: Callable[[LLMRequest], LLMRequest]) -> LLMStep[T]:
    """Hold a talk with its requests as they would be sent."""
    try:
        requests = next(talk)
        while True:
            outcomes = yield [change(request) for request in requests]
            requests = talk.send(outcomes)
    except StopIteration as end:
        result: T = end.value
        return result
