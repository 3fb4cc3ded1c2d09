"""Estimates of what rows would ask a model and cost, as ``--dry-run`` and ``pairwright plan`` print them.

No requests are sent: the steps of a sample run with the answers that their prompts expect (`llm.cost_estimate`).
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pairwright.flows.llm.context import ContextProvider, ModelRow
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.steps import LLMStep, map_requests
from pairwright.generators.llm.cost_estimate import EstimatedRange, StagePlan, plan_stage
from pairwright.generators.llm.runner import LLMRow

T = TypeVar("T")


def estimate_rows(stage: str, rows: Iterable[ModelRow[Any, Any]], total: int | None, access: ModelAccess) -> StagePlan:
    """Return what all rows would ask and cost, from a sample of them.

    Args:
        stage: name of the estimate.
        rows: the sample.
        total: number of all rows; None: unknown.
        access: the model.

    Raises:
        PairwrightError: settings or prices cannot work, or the cache cannot be read.
    """

    def step(row: ModelRow[Any, T], attempt: int) -> LLMStep[Sequence[T]]:
        return map_requests(row.step([attempt] * len(row.items)), access.as_sent)

    sample = [
        LLMRow(row.name, partial(step, row), size=len(row.items)) for row in ContextProvider(access.context).rows(rows)
    ]
    with Cache.open(access.cache, create=False) if _has_cache(access.cache) else nullcontext() as cache:
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


def _has_cache(path: Path) -> bool:
    """Return whether there is a cache; opening an empty file would write to it."""
    return path.exists() and (path.is_dir() or path.stat().st_size > 0)
