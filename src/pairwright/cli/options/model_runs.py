"""What every command that asks a model does with its options: cancel batches, print a plan, or run with a bar."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pairwright.cli.options.model import ModelOptions, ModelRunBar, cancelled_lines, plan_lines
from pairwright.cli.output.console import emit, note

if TYPE_CHECKING:
    from pairwright.flows.llm.model_access import ModelAccess
    from pairwright.generators.llm.cost_estimate import StagePlan

Result = TypeVar("Result")


def cancel_plan_or_run(
    asked: ModelOptions,
    access: "ModelAccess",
    unit: str,
    *,
    plan: "Callable[[], StagePlan | Sequence[StagePlan]]",
    run: Callable[[ModelRunBar], Result],
    as_json: bool,
) -> Result | None:
    """Return the result of a run; None where the options want a plan or a cancellation, which is printed.

    Args:
        asked: options of the model.
        access: how the model is reached.
        unit: what is sent, as the name of the bar.
        plan: estimates the run: one stage, or several that run one after another.
        run: performs it.
        as_json: how a plan is printed.
    """
    if asked.batch_cancel:
        ids = access.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
        return None
    if asked.dry_run:
        planned = plan()
        estimates = planned if isinstance(planned, Sequence) else [planned]
        emit({"plan": [each.described() for each in estimates]}, plan_lines(estimates), as_json=as_json)
        return None
    bar = ModelRunBar(unit, asked.max_cost)
    result = run(bar)
    bar.end()
    return result
