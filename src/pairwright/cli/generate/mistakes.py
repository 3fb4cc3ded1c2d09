"""``pairwright generate mistakes``: hard negatives that a vision-language model mistakes for the caption."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.generate.type_lists import parse_types
from pairwright.cli.options.declarations import advanced_option, output_option
from pairwright.cli.options.input import DetailsOption, InputOptions, JsonOption, SeedOption, with_input_options
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import cancel_plan_or_run
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.refine import OnlyKeptOption
from pairwright.cli.validate import exit_if_none_kept, validation_lines
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError


@with_progress
@with_model_options
@with_input_options("explode", "max_caption", "image_root", "clean_captions")
def mistakes(
    input_: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="Candidate rows: .jsonl, SugarCrepe .json, .tsv, .parquet; or pairs."),
    ],
    *,
    out: Annotated[Path, output_option(help="File for all rows with status and reason; format by extension.")],
    judge_model: Annotated[
        str, typer.Option(help="Model that sees the image and confirms that the mistakes are false.")
    ] = "",
    judge_base_url: Annotated[str, typer.Option(help="Base URL of --judge-model; else that of --model.")] = "",
    keep_undecided: Annotated[
        bool, typer.Option("--keep-undecided", help="Keep rows on which the two answers of the judge differ.")
    ] = False,
    types: Annotated[str | None, typer.Option(help="Pairs: types of candidates, separated by commas.")] = None,
    per_type: Annotated[int, typer.Option(min=1, help="Pairs: candidates per caption and type.")] = 1,
    pool: Annotated[str, typer.Option(help="Pairs: reference captions for word statistics; else INPUT's.")] = "",
    only_kept: OnlyKeptOption = False,
    seed: SeedOption = 0,
    workers: Annotated[int, advanced_option(min=0, help="Processes for candidates (0 = one per core).")] = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    reading: InputOptions,
    model_options: ModelOptions,
) -> None:
    """Find hard negatives that a vision-language model mistakes for the caption (ConMe).

    The model sees the image and chooses between caption and negative; a negative that it chooses in both orders is kept.
    With --judge-model, only if the judge finds it false; without, confirm the rows with `review`. INPUT holds candidate
    rows; for pairs, candidates are made by rules and written to OUT's .candidates.jsonl.

    \b
    Examples:
      pairwright generate mistakes negatives.jsonl --model qwen2.5-vl-7b --base-url http://localhost:8000/v1 --out hard.jsonl
      pairwright generate mistakes captions.jsonl --per-type 3 --model local:models/vlm --judge-model gpt-4o --out hard.jsonl
      pairwright generate mistakes swap_att.json --image-root val2017 --model gpt-4o-mini --dry-run --out hard.jsonl
    """
    from pairwright.flows.commands.find_mistakes import MistakeRequest, find_mistakes, plan_mistakes
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.flows.commands.validate import ValidationRequest
    from pairwright.generators.edit_types import BENCHMARK_TYPES

    if not judge_model and (judge_base_url or keep_undecided):
        raise UsageError("--judge-base-url and --keep-undecided require --judge-model.")
    read = reading.read_options(input_)
    options = {"per_type": per_type, **parse_types("negative", types, BENCHMARK_TYPES)}
    candidates = out.with_name(f"{out.stem}.candidates.jsonl")
    rows = ValidationRequest(
        Path(input_), out, image_root=Path(reading.image_root) if reading.image_root else None,
        keep_undecided=keep_undecided, only_kept=only_kept, seed=seed, on_error=reading.on_error,
    )  # fmt: skip
    making = GenerateRequest("rules-negatives", options, seed, read, pool, candidates, workers=workers)
    request = MistakeRequest(making, rows)
    access = model_options.access(out, seed)
    judge = None
    if judge_model:  # one bill, so that limits apply to both
        judge = replace(_judge_options(model_options, judge_model, judge_base_url).access(out, seed), bill=access.bill)

    def plan() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            trial = replace(request, candidates=replace(making, out=Path(folder) / candidates.name))
            return plan_mistakes(trial, access, judge, lambda _: None)

    if not model_options.sends_nothing:
        check_outputs(out, reads=(input_, pool))
    result = cancel_plan_or_run(
        model_options,
        access,
        "rows",
        plan=plan,
        run=lambda bar: find_mistakes(request, access, judge, note, bar),
        as_json=as_json,
    )
    if result is None:
        return
    confirm = ["audit" if judge else "review", out]
    lines = validation_lines(result, confirm, details=details, facts=_facts(result["by"]))
    emit(result, lines, as_json=as_json)
    exit_if_none_kept(result)


def _judge_options(model_options: ModelOptions, model: str, base_url: str) -> ModelOptions:
    """Return the options of the judge: those of the model, except its server and price; none of a server if it is local."""
    from pairwright.flows.config.llm_options import SERVER_ONLY_KEYS

    given = replace(model_options, model=model, base_url=base_url or model_options.base_url, price="")
    if not model.startswith("local:"):
        return given
    unset = ModelOptions()
    return replace(given, **{name: getattr(unset, name) for name in SERVER_ONLY_KEYS})


def _facts(by: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines about the model and the judge."""
    found = by["mistakes"]
    model, answered = found["model"], found["answered"]
    lines = [f"{model}: {found['kept']:,} of {count_phrase(found['rows'], 'negative')} chosen in both orders"]
    if answered:
        lines[0] += f"; first answers {found['accuracy']:.1%} right, {found['chose_first']:.1%} choose (1)"
    if "judge" in by:
        lines.append(f"{by['judge']['model']}: {by['judge']['kept']:,} of {by['judge']['rows']:,} confirmed as false")
    return lines
