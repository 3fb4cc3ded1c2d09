"""``pairwright init``: write a commented build config."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.console import emit, note
from pairwright.cli.reading import columns_option


def init(
    *,
    out: Annotated[Path, typer.Option(help="The YAML file to write.")],
    template: Annotated[str, typer.Option(help="react, negatives, llava or all.")] = "all",
    input_: Annotated[str, typer.Option("--input", help="Your data: file, folder or brace pattern.")] = "",
    columns: Annotated[str, typer.Option(help="Your columns, such as key=image_id,captions=captions.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a commented build config.

    \b
    Examples:
      pairwright init --template negatives --input captions.jsonl --out build.yaml
      pairwright init --input captions.jsonl --columns key=image_id --out build.yaml
    """
    from pairwright.datasets.atomic import write_text
    from pairwright.datasets.errors import UsageError
    from pairwright.flows.config_templates import render_template

    text = render_template(template, input_path=input_, columns=columns_option(columns), beside=out)
    if out.exists() and not force:
        raise UsageError(f"{out}: already there. Choose another --out, or overwrite it with --force.")
    if input_ and "{" not in input_ and not Path(input_).expanduser().exists():
        note(f"{input_}: no such file yet; it has to be there when you build.")
    write_text(out, text)
    emit({"config": str(out)}, [f"Wrote {out}. Next: pairwright build {out}"], as_json=as_json)
