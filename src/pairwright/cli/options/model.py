"""What commands that may ask a model have in common: one set of options, added by `with_model_options`.

The options are the keys of a config's section ``llm`` (a test holds them to it), and what belongs to one run: where
answers are kept, what to do about rows that failed, and whether only to plan.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.output.console import columns, duration, note
from pairwright.cli.output.progress import display, model_run_figures
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.flows.config.sections import LLMSection
    from pairwright.flows.llm.model_access import ModelAccess
    from pairwright.generators.llm.cost_estimate import EstimatedRange, StagePlan
    from pairwright.generators.llm.session import Snapshot


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command about its model, as they were given."""

    model: Annotated[str, typer.Option(help="Its name at the server, or local:FOLDER.")] = ""
    base_url: Annotated[
        str, typer.Option(help="Of an OpenAI-compatible server; else OPENAI_BASE_URL, else OpenAI.")
    ] = ""
    cache: Annotated[str, typer.Option(help="File of kept answers; beside OUT when left out.")] = ""
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell requests, tokens, cost and time; send nothing.")] = (
        False
    )
    max_cost: Annotated[float | None, typer.Option(help="Stop at so many USD; what is done is kept.")] = None
    max_requests: Annotated[int | None, typer.Option(help="Stop at so many answers; what is done is kept.")] = None
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="Ask anew, and pay, for all rows in OUT's .failed.jsonl; others come from the cache."
        ),
    ] = False
    batch: Annotated[bool, typer.Option("--batch", help="OpenAI's Batch API: half the price, within a day.")] = False
    batch_cancel: Annotated[
        bool, typer.Option("--batch-cancel", help="Cancel the batches that still run, and do nothing else.")
    ] = False
    prompts: Annotated[str, typer.Option(help="Folder of prompt files that replace ours by name.")] = ""
    structured: Annotated[
        Literal["auto", "json_schema", "tool", "json"],
        typer.Option(help="How JSON is asked for; auto: what the server can."),
    ] = "auto"
    transport: Annotated[
        Literal["auto", "direct", "sdk"], typer.Option(help="auto: the SDK for Azure, else direct.")
    ] = "auto"
    endpoint: Annotated[str, typer.Option(help="Name for the server in cache keys, in place of its URL.")] = ""
    max_concurrency: Annotated[int, typer.Option(min=1, help="Requests at once, at most.")] = 64
    requests_per_minute: Annotated[int, typer.Option(min=0, help="At most; 0: no ceiling.")] = 0
    tokens_per_minute: Annotated[int, typer.Option(min=0, help="At most; 0: no ceiling.")] = 0
    timeout: Annotated[float, typer.Option(help="Seconds until an answer has to be whole.")] = 120.0
    max_retries: Annotated[int, typer.Option(min=0, help="Further tries after a fault that may pass.")] = 6
    patience: Annotated[
        float, typer.Option(help="Seconds to wait for a server that has answered before and is away.")
    ] = 300.0
    parameter: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Sent in place of the prompt's own; NAME= leaves it out.")
    ] = field(default_factory=list)
    price: Annotated[str, typer.Option(metavar="IN/OUT", help="USD per million tokens; 0/0: your own server.")] = ""
    prices: Annotated[str, typer.Option(help="YAML file of prices that add to ours.")] = ""

    def section(self) -> "LLMSection":
        """Return the options as a config's section.

        Raises:
            UsageError: when no model is named, or a value cannot be.
        """
        from pydantic import ValidationError

        from pairwright.flows.config.sections import LLMSection

        if not self.model:
            raise UsageError("a model is to be asked, and none is named. Name it with --model.")
        given = {name: getattr(self, name) for name in LLMSection.model_fields if name != "parameters"}
        try:
            return LLMSection(**given, parameters=dict(map(_parse_parameter, self.parameter)))
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"]:  # it concerns several options
                raise UsageError(f"{first['ctx']['error']}.") from None
            option = f"--{str(first['loc'][0]).replace('_', '-')}"
            if first["type"] == "value_error":  # said by us, in whole; the value may be a secret
                raise UsageError(f"{option}: {first['ctx']['error']}.") from None
            raise UsageError(f"{option} {first['input']!r}: {first['msg']}.") from None

    def asking(self, out: Path, seed: int = 0) -> "ModelAccess":
        """Return how a run with this seed, that writes OUT, asks its model.

        Raises:
            UsageError: when no model is named, or a value cannot be.
        """
        from pairwright.flows.llm.model_access import ModelAccess, cache_path

        resumable_on_interrupt()
        section = self.section()
        return ModelAccess(section, cache_path(section, out.parent), self.retry_failed, seed)

    @property
    def sends_nothing(self) -> bool:
        """Whether no model is asked now and nothing is written: a plan is told, or batches are cancelled."""
        return self.dry_run or self.batch_cancel

    def warn_unused_prompts(self) -> None:
        """Say which files of --prompts replace nothing though they are hardly meant for anything else.

        Raises:
            PairwrightError: the folder, or a file in it, cannot be used.
        """
        if self.prompts:
            from pairwright.generators.prompts.book import PromptBook

            for name, hint in PromptBook(Path(self.prompts)).misnamed().items():
                note(f"{Path(self.prompts) / name}.yaml replaces no prompt of ours. {hint}")

    def refuse(self, why: str) -> None:
        """Refuse options that would do nothing.

        Raises:
            UsageError: when one was given.
        """
        for name, default in _defaults().items():
            if getattr(self, name) != default:
                raise UsageError(f"--{name.replace('_', '-')} does nothing {why}.")


def _defaults() -> dict[str, Any]:
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(ModelOptions)
    }


def _parse_parameter(written: str) -> tuple[str, Any]:
    """Return ``temperature=0`` as a name and a JSON value; what is no JSON is a text, and nothing is None."""
    import json

    name, sign, value = written.partition("=")
    if not (sign and name.strip()):
        raise UsageError(f"--parameter {written!r}: write NAME=VALUE, such as temperature=0.")
    try:
        return name.strip(), json.loads(value) if value.strip() else None
    except json.JSONDecodeError:
        return name.strip(), value


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


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Asked`; it takes them as its keyword parameter ``asked``."""
    names = [field.name for field in fields(ModelOptions)]

    @functools.wraps(command)
    def with_options(*args: Any, **given: Any) -> None:
        asked = ModelOptions(**{name: given.pop(name) for name in names})
        command(*args, **given, asked=asked)

    with_options.__signature__ = _signature(command)  # type: ignore[attr-defined]  # what Typer reads
    return with_options


def _signature(command: Callable[..., None]) -> inspect.Signature:
    hints = get_type_hints(ModelOptions, include_extras=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in _defaults().items()
    ]
    own = [each for name, each in inspect.signature(command).parameters.items() if name != "asked"]
    return inspect.Signature([*own, *added])


def plan_lines(plans: Sequence["StagePlan"]) -> list[str]:
    """Return plans as a table, their sum below where there are several."""
    from pairwright.generators.llm.budget import format_usd
    from pairwright.generators.llm.cost_estimate import sum_plans

    table: list[list[object]] = [["stage", "rows", "requests", "from cache", "tokens in", "tokens out", "cost", "time"]]
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
        table.append([plan.stage, plan.rows, _with_range(plan.requests), *numbers, cost, time])
    lines = columns(table, indent="")
    models = sorted({model for plan in plans for model in plan.unpriced})
    if models:
        lines += ["", f"No price is known for {', '.join(models)}: give --price IN/OUT, or --prices FILE."]
    sampled = " and ".join(f"{count:,}" for count in sorted({plan.sampled for plan in plans}))
    lines += ["", f"Estimated from {sampled} sampled rows and expected answers; no requests were sent."]
    if any(plan.repairs.high for plan in plans):
        lines.append(
            "The upper bounds hold one repair for every answer: a second request where the first answer does not fit."
        )
    return lines


def _with_range(found: "EstimatedRange") -> str:
    """Return a number of requests, with its bounds where they differ from it."""
    value, low, high = round(found.value), math.floor(found.low), math.ceil(found.high)
    return f"{value:,}" if low == value == high else f"{value:,} ({low:,} to {high:,})"


def cancelled_lines(ids: Sequence[str]) -> list[str]:
    """Return what was cancelled at the server."""
    if not ids:
        return ["No batch was running."]
    return [f"{len(ids)} {'batch' if len(ids) == 1 else 'batches'} cancelled:", *ids]


def bill_lines(result: Mapping[str, Any]) -> list[str]:
    """Return what a run has asked and paid."""
    from pairwright.generators.llm.budget import format_usd

    bill = result["llm"]
    tokens = f"{bill['prompt_tokens']:,} tokens in, {bill['completion_tokens']:,} out"
    if bill["model"].startswith("local:"):
        return [f"{bill['model']}: {bill['requests']:,} answers written, {tokens}"]
    cost = "price unknown" if bill["cost"] is None else format_usd(bill["cost"])
    lines = [f"{bill['model']}: {bill['requests']:,} answers paid, {tokens}, {cost}"]
    if bill.get("estimated"):
        lines.append(
            f"The server did not count the tokens of {bill['estimated']:,} of these answers: they are estimated."
        )
    if shared := bill["in_all"].get("shared"):
        lines.append(f"{shared:,} requests were those of another row (equal texts) and share its answer: paid once.")
    return lines
