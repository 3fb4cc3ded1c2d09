"""``pairwright init``: write a commented build config for given data."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.options.input import parse_columns
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.summary import next_step


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
    """Write a commented build config for your data.

    A sample of the input is read: what it calls for (columns, folder of the images, boxes, image format) stands in the config.

    \b
    Examples:
      pairwright init --template negatives --input captions.jsonl --out build.yaml
      pairwright init --input captions.jsonl --columns key=image_id --out build.yaml
      pairwright init --input captions.jsonl --out nightly/build.yaml --prefect
    """
    from pairwright.datasets.atomic_files import write_text
    from pairwright.datasets.errors import UsageError
    from pairwright.datasets.remote.object_store import is_remote
    from pairwright.datasets.suggestions import require_known
    from pairwright.flows.commands.config_templates import render_deployment, render_template, template_names
    from pairwright.flows.commands.input_survey import InputSettings, survey_input
    from pairwright.flows.state.overwrite_checks import refuse_overwriting

    require_known("no template named", [template], template_names())
    survey = InputSettings(parse_columns(columns))
    if _exists_locally(input_):
        survey = survey_input(str(Path(input_).expanduser()), survey.columns)
    elif input_ and not is_remote(input_):
        note(f"{input_}: no such file yet. Nothing was detected; it has to be there when you build.")
    text = render_template(template, input_path=input_, survey=survey, config=out)
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
    for path, content in texts.items():
        write_text(path, content)
    for line in survey.notes:
        note(line)
    lines = [f"Wrote {out}." + (f" Detected: {'; '.join(survey.found)}." if survey.found else "")]
    if prefect:
        lines.append(f"Wrote {out.parent / 'prefect.yaml'}, whose first lines tell what to do with it.")
    lines += next_step(f"pairwright build {out}")
    result = {
        "config": str(out),
        "files": [str(path) for path in texts],
        "detected": survey.found,
        "notes": survey.notes,
    }
    emit(result, lines, as_json=as_json)


def _exists_locally(written: str) -> bool:
    """Say whether an input can be looked at: a file or folder, or a pattern whose first file is there."""
    from pairwright.datasets.brace_patterns import expand_braces

    path = Path(written).expanduser()
    return bool(written) and (path.exists() or ("{" in written and Path(next(expand_braces(str(path)))).exists()))
