"""``pairwright generate captions``."""

from dataclasses import replace
from typing import Annotated

import typer

from pairwright.cli.generate.common import GenerateOptions, run_request
from pairwright.cli.generate.type_lists import parse_list
from pairwright.cli.options.declarations import limit_option, with_options
from pairwright.cli.options.input import InputArgument, InputOptions, with_input_options
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.suggestions import require_known


@with_progress
@with_model_options
@with_input_options("image_root", "instances")
@with_options(GenerateOptions, "common", ("out", "seed", "details", "as_json"))
def captions(
    input_: InputArgument,
    *,
    forms: Annotated[str, typer.Option(help="Forms, separated by commas: short, long, tags.")] = "short",
    per_image: Annotated[int, typer.Option(min=1, help="Captions per image and form.")] = 1,
    max_hallucination: Annotated[
        float,
        limit_option(
            min=0, max=1, help="Share of things without support in known captions and boxes; above: rejected."
        ),
    ] = 1.0,
    reading: InputOptions,
    common: GenerateOptions,
    model_options: ModelOptions,
) -> None:
    """Generate captions by a model that sees the image.

    INPUT may be a folder of images without any text. OUT (.jsonl) has one pair per kept caption, which every other verb
    reads; OUT.rejected.jsonl has the rejected ones with their reasons. Captions and boxes that INPUT has are not shown to the model but compared with its captions.

    \b
    Examples:
      pairwright generate captions photos --model gpt-4o-mini --dry-run --out captions.jsonl
      pairwright generate captions photos --model gpt-4o-mini --out captions.jsonl
      pairwright generate captions photos --forms short,long,tags --per-image 2 --model local:qwen2-vl --out captions.jsonl
    """
    from pairwright.flows.commands.caption_files import check_captions_path
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.llm_captions import FORMS

    check_captions_path(common.out)
    named = parse_list("forms", forms)
    require_known("--forms:", named.get("forms", ()), FORMS)
    options = {**named, "per_image": per_image, "max_hallucination": max_hallucination}
    read = replace(reading.read_options(input_, verify_images="header"), without_caption=True)
    request = GenerateRequest("llm-captions", options, common.seed, read, "", common.out)
    next_command = ["generate", "negatives", common.out, "--out", "negatives.jsonl"]
    run_request(request, "llm", common, model_options, next_command=next_command, unit="image")
