"""Commands that ask a model: the choice of a run, an estimate or a cancellation, and how each is printed."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pairwright.cli.options.model import ModelOptions
from pairwright.cli.output.console import columns, duration, emit, note
from pairwright.cli.output.progress import display, model_run_figures
from pairwright.datasets.count_phrases import count_phrase, verb_form

if TYPE_CHECKING:
    from pairwright.flows.llm.model_access import ModelAccess
    from pairwright.generators.llm.cost_estimate import EstimatedRange, StagePlan
    from pairwright.generators.llm.session import Snapshot

Result = TypeVar("Result")


class ModelRunBar:
    """Draws a bar for a run that asks a model: rows, rate, answers billed, tokens, cost, failures, time left.

    Args:
        what: name of the bar.
        max_cost: USD that the run may cost; None: unlimited.
    """

    def __init__(self, what: str, max_cost: float | None) -> None:
        self._display, self._what, self._most = display(), what, max_cost

    def __call__(self, snapshot: "Snapshot") -> None:
        """Draw a snapshot."""
        self._display.show(self, self._what, **model_run_figures(snapshot, self._most))

    def end(self) -> None:
        """Remove the bar."""
        self._display.end(self)


def cancel_plan_or_run(
    model_options: ModelOptions,
    access: "ModelAccess",
    unit: str,
    *,
    plan: "Callable[[], StagePlan | Sequence[StagePlan]]",
    run: Callable[[ModelRunBar], Result],
    as_json: bool,
) -> Result | None:
    """Return the result of a run; None where the options want a plan or a cancellation, which is printed.

    Args:
        model_options: options of the model.
        access: how the model is reached.
        unit: what is sent, as the name of the bar.
        plan: estimates the run: one stage, or several that run one after another.
        run: performs it.
        as_json: how a plan is printed.
    """
    if model_options.batch_cancel:
        ids = access.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
        return None
    if unused := access.describe_unused_cache():
        note(unused)
    if model_options.dry_run:
        planned = plan()
        estimates = planned if isinstance(planned, Sequence) else [planned]
        emit({"plan": [each.described() for each in estimates]}, plan_lines(estimates), as_json=as_json)
        return None
    bar = ModelRunBar(unit, model_options.max_cost)
    result = run(bar)
    bar.end()
    return result


def plan_lines(plans: Sequence["StagePlan"]) -> list[str]:
    """Return plans as a table, their sum below where there are several."""
    from pairwright.generators.llm.budget import format_usd
    from pairwright.generators.llm.cost_estimate import sum_plans

    table: list[list[object]] = [
        ["stage", "rows", "requests", "not billed", "tokens in", "tokens out", "per kept row", "cost", "time"]
    ]
    for plan in [*plans, *([sum_plans(plans)] if len(plans) > 1 else [])]:
        cost = (
            "unknown"
            if plan.cost is None
            else f"{format_usd(plan.cost.value)} ({format_usd(plan.cost.low)} to {format_usd(plan.cost.high)})"
            if plan.cost.high or not plan.requests.value
            else "none"
        )
        time = duration(plan.seconds.value) if plan.seconds.value or not plan.requests.value else "unknown"
        numbers = [round(each.value) for each in (plan.cached, plan.tokens_in, plan.tokens_out)]
        kept = "" if plan.tokens_per_kept_row is None else round(plan.tokens_per_kept_row)
        table.append([plan.stage, plan.rows, _with_range(plan.requests), *numbers, kept, cost, time])
    lines = columns(table, indent="")
    models = sorted({model for plan in plans for model in plan.unpriced})
    if models:
        lines += [
            "",
            f"No price is known for {', '.join(models)}: give --price IN/OUT (of --model only), or --prices FILE.",
        ]
    lines += [
        f"{plan.stage}: no row leads to a request. Check the captions (are they in English?), the images and the options."
        for plan in plans
        if plan.rows and not (plan.requests.value or plan.cached.value)
    ]
    *others, last = (f"{count:,}" for count in sorted({plan.sampled for plan in plans}))
    sampled = " and ".join(filter(None, (", ".join(others), last)))
    lines += ["", f"Estimated from {sampled} sampled rows and expected answers; no requests were sent."]
    if images := sum(plan.image_tokens.value for plan in plans):
        lines.append(_image_line(images, [plan.image_cost for plan in plans]))
    if any(plan.kept_rows for plan in plans):
        lines.append("Tokens per kept row assume that 72% of the requested texts are kept, as of recorded answers.")
    if any(plan.repairs.high for plan in plans):
        repairs = sum(plan.repairs.value for plan in plans)
        lines.append(
            f"Requests include about {repairs:,.0f} for first answers that are not usable (5%, or the share in the cache)."
        )
        lines.append(
            "The upper bounds assume that no first answer is valid: each row of a shared request is then requested alone, "
            "and each answer repaired once."
        )
    return lines


def _image_line(tokens: float, costs: Sequence["EstimatedRange | None"]) -> str:
    from pairwright.generators.llm.budget import format_usd

    known = [cost.value for cost in costs if cost is not None]
    cost = f", {format_usd(sum(known))}" if len(known) == len(costs) and any(known) else ""
    return f"Images: {round(tokens):,} of the tokens in{cost}; --image-edge and --image-detail low send fewer."


def _with_range(found: "EstimatedRange") -> str:
    """Return a number of requests, with its bounds where they differ from it."""
    value, low, high = round(found.value), math.floor(found.low), math.ceil(found.high)
    return f"{value:,}" if low == value == high else f"{value:,} ({low:,} to {high:,})"


def cancelled_lines(ids: Sequence[str]) -> list[str]:
    """Return what was cancelled at the server."""
    if not ids:
        return ["No batch was running."]
    return [f"{count_phrase(len(ids), 'batch')} cancelled:", *ids]


def bill_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the requests, tokens and cost of a run."""
    from pairwright.generators.llm.budget import format_usd

    bill = result["llm"]
    tokens = f"{bill['prompt_tokens']:,} tokens in, {bill['completion_tokens']:,} out"
    if bill["model"].startswith("local:"):
        return [f"{bill['model']}: {count_phrase(bill['requests'], 'answer')} written, {tokens}"]
    cost = "price unknown" if bill["cost"] is None else format_usd(bill["cost"])
    lines = [f"{bill['model']}: {count_phrase(bill['requests'], 'answer')} billed, {tokens}, {cost}"]
    if bill.get("estimated"):
        lines.append(
            f"The server did not count the tokens of {bill['estimated']:,} of these answers: they are estimated."
        )
    if shared := bill["in_all"].get("shared"):
        lines.append(f"{count_phrase(shared, 'request')} had the texts of another row and its answer: billed once.")
    if alone := bill.get("alone"):
        again = f"{count_phrase(alone, 'caption')} {verb_form(alone, 'were')} requested again alone"
        lines.append(f"{again}: no usable part of a shared answer was theirs.")
    return lines
