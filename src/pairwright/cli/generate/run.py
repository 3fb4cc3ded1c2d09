"""``pairwright generate run``: any generator of ``pairwright plugins``, third-party ones included."""

from typing import Annotated, Any

import typer

from pairwright.cli.generate.common import GenerateOptions, run_request
from pairwright.cli.options.declarations import with_options
from pairwright.cli.options.input import InputArgument, InputOptions, with_input_options
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError


@with_progress
@with_model_options
@with_input_options("explode", "image_root", "max_caption", "clean_captions")
@with_options(GenerateOptions, "common", ("out", "pool", "seed", "workers", "details", "as_json"))
def run(
    input_: InputArgument,
    *,
    generator: Annotated[str, typer.Option("--generator", metavar="NAME", help="Generator of `pairwright plugins`.")],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Option of the generator, its value as YAML. Repeatable."),
    ] = None,
    reading: InputOptions,
    common: GenerateOptions,
    model_options: ModelOptions,
) -> None:
    """Run a generator by its name, third-party ones included.

    `pairwright generate --generator NAME ...` is the same command. OUT: .jsonl or .parquet; every attempt with status
    and reason.

    \b
    Examples:
      pairwright generate run --generator miscount captions.jsonl --out miscount.jsonl
      pairwright generate run --generator rules-negatives captions.jsonl --option per_type=2 --out negatives.jsonl
    """
    from pairwright.datasets.suggestions import require_known
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.registry import GENERATORS, needs_model

    require_known("--generator: no generator named", [generator], GENERATORS.names())
    read = reading.read_options(input_)
    options = _parse_options(option or ())
    request = GenerateRequest(generator, options, common.seed, read, common.pool, common.out, workers=common.workers)
    if not needs_model(generator):
        model_options.refuse(f"with --generator {generator}, which asks no model")
    run_request(request, "llm" if needs_model(generator) else "rules", common, model_options)


def _parse_options(assignments: "list[str] | tuple[()]") -> dict[str, Any]:
    """Return ``KEY=VALUE`` items as options.

    Raises:
        UsageError: for an item without a key, a repeated key, or a value that is no YAML.
    """
    import yaml

    options: dict[str, Any] = {}
    for text in assignments:
        key, sign, value = text.partition("=")
        if not (sign and key.strip()):
            raise UsageError(f"--option {text!r}: write KEY=VALUE, such as per_type=2.")
        if key.strip() in options:
            raise UsageError(f"--option: {key.strip()} is repeated. Give each key once.")
        try:
            options[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--option {text!r}: the value is not valid YAML. Write counts='[two, three]'.") from None
    return options
