"""``pairwright init``: write a commented build config."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.console import emit, note
from pairwright.cli.reading import columns_option


def init(
    *,
    out: Annotated[Path, typer.Option(help="The YAML file to write.")],
    template: Annotated[str, typer.Option(help="react, negatives, llava, rationales or all.")] = "all",
    input_: Annotated[str, typer.Option("--input", help="Your data: file, folder or brace pattern.")] = "",
    columns: Annotated[str, typer.Option(help="Your columns, such as key=image_id,captions=captions.")] = "",
    prefect: Annotated[
        bool, typer.Option("--prefect", help="Also write prefect.yaml beside it, a schedule for `prefect deploy`.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a commented build config.

    \b
    Examples:
      pairwright init --template negatives --input captions.jsonl --out build.yaml
      pairwright init --input captions.jsonl --columns key=image_id --out build.yaml
      pairwright init --input captions.jsonl --out nightly/build.yaml --prefect
    """
    from pairwright.datasets.atomic import write_text
    from pairwright.datasets.errors import UsageError
    from pairwright.flows.config_templates import render_deployment, render_template
    from pairwright.flows.overwriting import refuse_overwriting

    text = render_template(template, input_path=input_, columns=columns_option(columns), beside=out)
    texts = {out: text}
    if prefect:
        texts[out.parent / "prefect.yaml"] = render_deployment(text, out)
    if out.name == "prefect.yaml" and prefect:
        raise UsageError(f"{out}: the schedule gets this name. Choose another --out.")
    for path in texts:
        refuse_overwriting(path, input_)
    there = [] if force else [path for path in texts if path.exists()]
    if there:
        raise UsageError(f"{there[0]}: already there. Choose another --out, or overwrite it with --force.")
    if input_ and "{" not in input_ and not Path(input_).expanduser().exists():
        note(f"{input_}: no such file yet; it has to be there when you build.")
    for path, content in texts.items():
        write_text(path, content)
    lines = [f"Wrote {out}. Next: pairwright build {out}"]
    if prefect:
        lines.append(f"Wrote {out.parent / 'prefect.yaml'}, whose first lines tell what to do with it.")
    emit({"config": str(out), "files": [str(path) for path in texts]}, lines, as_json=as_json)
