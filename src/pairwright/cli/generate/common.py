"""What the commands of ``pairwright generate`` for pairs share: options, limits, and the run by rules or by a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.generate.summary import nothing_kept, result_lines
from pairwright.cli.options.context import ContextOptions, add_context
from pairwright.cli.options.declarations import advanced_option, limit_option, output_option
from pairwright.cli.options.input import DetailsOption, JsonOption, SeedOption
from pairwright.cli.options.model import ModelOptions
from pairwright.cli.options.model_runs import bill_lines, cancel_plan_or_run
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.files import check_outputs

if TYPE_CHECKING:
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.balance import BalanceLimits

MethodOption = Annotated[Literal["rules", "llm"], typer.Option(help="Rules, or the model of --model.")]


@dataclass(frozen=True)
class GenerateOptions:
    """Options of a generator that reads pairs and writes annotations."""

    out: Annotated[Path, output_option(help="File to write; its extension is the format.")]
    pool: Annotated[
        str, typer.Option(help="Captions to learn words from; else INPUT's. Rules learn nothing from photographs.")
    ] = ""
    quota: Annotated[str, limit_option(metavar="N or TYPE=N,...", help="Rows to keep of each type, at most.")] = ""
    max_word_share: Annotated[float, limit_option(min=0, max=1, help="Share of kept rows with the same new word.")] = (
        1.0
    )
    seed: SeedOption = 0
    workers: Annotated[int, advanced_option(min=0, help="Processes (0 = one per core).")] = 0
    details: DetailsOption = False
    as_json: JsonOption = False

    def limits(self, types: Sequence[str], made: Sequence[str]) -> "BalanceLimits":
        """Return the limits of a set.

        Args:
            types: all types.
            made: types that the run makes.
        """
        from pairwright.cli.generate.type_lists import parse_quota
        from pairwright.generators.balance import BalanceLimits

        return BalanceLimits(parse_quota(self.quota, types, made), self.max_word_share)

    def print_result(
        self,
        result: Mapping[str, Any],
        method: str,
        bill: Sequence[str] = (),
        next_command: Sequence[object] = (),
        unit: str = "caption",
    ) -> None:
        """Print the result of a generator; exit with 3 where no text was kept."""
        lines = result_lines(result, details=self.details, bill=bill, next_command=next_command, unit=unit)
        emit({**result, "method": method}, lines, as_json=self.as_json)
        if reason := nothing_kept(result):
            exit_below_target(reason)


def run_request(
    request: "GenerateRequest",
    method: str,
    common: GenerateOptions,
    model_options: ModelOptions,
    *,
    context: ContextOptions | None = None,
    next_command: Sequence[object] = (),
    unit: str = "caption",
) -> None:
    """Run a generator and print its result, or the plan of what it would ask a model.

    Args:
        request: the generator, its options, input and output.
        method: ``llm``, or one that asks no model.
        common: the shared options.
        model_options: options of the model, which have to be unused without ``llm``.
        context: captions of an index that the model reads.
        next_command: words of the command for the next step.
        unit: what the texts are made of.
    """
    reads = (request.read.input, request.pool)
    if method != "llm":
        model_options.refuse("without --method llm")
        nothing_written_on_interrupt()
        from pairwright.flows.commands.generate import run_generator

        check_outputs(request.out, reads=reads)
        common.print_result(run_generator(request, note), method, next_command=next_command)
        return
    if request.options.get("see_image") is False:  # captions always send images, and have no such option
        model_options.refuse("without --see-image", "image_")
    model_options.warn_unused_prompts()
    access = add_context(model_options.access(request.out, request.seed), context or ContextOptions(), request.out)
    if not model_options.sends_nothing:
        check_outputs(request.out, reads=reads)
    from pairwright.flows.commands.generate_with_model import plan_llm_generator, run_llm_generator

    result = cancel_plan_or_run(
        model_options,
        access,
        f"{unit}s",
        plan=lambda: plan_llm_generator(request, access, note),
        run=lambda bar: run_llm_generator(request, access, note, bar),
        as_json=common.as_json,
    )
    if result is not None:
        common.print_result(result, "llm", bill_lines(result), next_command, unit)
