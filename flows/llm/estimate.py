"""Estimates of what rows would ask a model and cost, as ``--dry-run`` and ``pairwright plan`` print them.

No requests are sent: the steps of a sample run with the answers that their prompts expect (`llm.cost_estimate`). What is
sampled are rows as they are sent, so that the cache holds the answers of those that were: a row of several items is
another request than each of them. Rows that are retried are sampled apart, since they are few and all others are cached.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pairwright.flows.llm.context import ContextProvider, ModelRow
from pairwright.flows.llm.model_access import ModelAccess, has_cache
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Request
from pairwright.generators.llm.client.parameter_overrides import as_resampled
from pairwright.generators.llm.client.steps import LLMStep, map_requests
from pairwright.generators.llm.cost_estimate import (
    SAMPLE_SIZE,
    EstimatedRange,
    RowSampler,
    StagePlan,
    plan_stage,
    sum_plans,
)
from pairwright.generators.llm.runner import LLMRow

T = TypeVar("T")


def _first_attempt(_: str) -> int:
    return 0


def estimate_all(  # noqa: PLR0913 - keywords
    stage: str,
    rows: Iterable[ModelRow[Any, Any]],
    access: ModelAccess,
    *,
    attempt: Callable[[str], int] = _first_attempt,
    items_per_row: int = 1,
    seed: int = 0,
) -> StagePlan:
    """Return what rows would ask and cost, from a sample of them.

    Args:
        stage: name of the estimate.
        rows: all of them, read once.
        access: the model.
        attempt: returns the attempt of an item by its name.
        items_per_row: at most, for the size of the sample.
        seed: of the sample.

    Raises:
        PairwrightError: as in `estimate_rows`.
    """
    size = -(-SAMPLE_SIZE // items_per_row)
    samplers = [RowSampler[ModelRow[Any, Any]](size, seed=seed) for _ in range(2)]  # first attempts, retries
    totals = [0, 0]
    for row in rows:
        retried = any(map(attempt, row.names))
        samplers[retried].add(row)
        totals[retried] += len(row.items)
    plans = [
        estimate_rows(stage, sampler.sample().items, total, access, attempt)
        for sampler, total in zip(samplers, totals, strict=True)
        if total or not any(totals)
    ]
    return plans[0] if len(plans) == 1 else replace(sum_plans(plans), stage=stage)


def estimate_rows(
    stage: str,
    rows: Iterable[ModelRow[Any, Any]],
    total: int | None,
    access: ModelAccess,
    attempt: Callable[[str], int] = _first_attempt,
) -> StagePlan:
    """Return what all rows would ask and cost, from a sample of them.

    Args:
        stage: name of the estimate.
        rows: the sample.
        total: number of items of all rows; None: unknown.
        access: the model.
        attempt: returns the attempt of an item by its name.

    Raises:
        PairwrightError: settings or prices cannot work, or the cache cannot be read.
    """

    def step(row: ModelRow[Any, T], _: int) -> LLMStep[Sequence[T]]:
        attempts = [*map(attempt, row.names)]
        again = len(attempts) == 1 and attempts[0] > 0  # several items are retried one by one, by their step
        return map_requests(row.step(attempts), partial(_as_sent, access, again=again))

    sample = [
        LLMRow(row.name, partial(step, row), size=len(row.items)) for row in ContextProvider(access.context).rows(rows)
    ]
    with Cache.open(access.cache, create=False) if has_cache(access.cache) else nullcontext() as cache:
        plan = plan_stage(
            stage,
            sample,
            total,
            settings=access.settings(),
            prices=access.prices(),
            cache=cache,
            batch=access.section.batch,
        )
    # The speed of a local model is unknown.
    return plan if access.local is None else replace(plan, seconds=EstimatedRange())


def _as_sent(access: ModelAccess, request: Request, *, again: bool) -> Request:
    return access.as_sent(as_resampled(request) if again else request)
