"""``pairwright init``: a commented build config for your data."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.options.declarations import input_option, output_option
from pairwright.cli.options.input import JsonOption, parse_columns
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.summary import next_step


def init(
    *,
    out: Annotated[Path, output_option(help="YAML file to write.")],
    template: Annotated[str, typer.Option(help="Template: react, negatives, llava, rationales or all.")] = "all",
    input_: Annotated[str, input_option("--input", help="Your data: file, folder or brace pattern.")] = "",
    columns: Annotated[str, input_option(help="Column names, such as key=image_id,captions=captions.")] = "",
    prefect: Annotated[
        bool, output_option("--prefect", help="Also write prefect.yaml, a schedule for `prefect deploy`.")
    ] = False,
    force: Annotated[bool, output_option("--force", help="Overwrite existing files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a commented build config for your data.

    A sample of the input is read to detect columns, the folder of images, boxes and the image format.

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

    require_known("--template: no template named", [template], template_names())
    survey = InputSettings(parse_columns(columns))
    if _exists_locally(input_):
        survey = survey_input(str(Path(input_).expanduser()), survey.columns)
    elif input_ and not is_remote(input_):
        note(f"{input_}: no such file yet. Nothing was detected; create it before the build.")
    text = render_template(template, input_path=survey.path or input_, survey=survey, config=out)
    texts = {out: text}
    if prefect:
        texts[out.parent / "prefect.yaml"] = render_deployment(text, out)
    if out.name == "prefect.yaml" and prefect:
        raise UsageError(f"{out}: --prefect writes the schedule to this file. Choose another --out.")
    for path in texts:
        _check_writable(path, survey.path or input_, force=force)
    for path, content in texts.items():
        write_text(path, content)
    for line in survey.notes:
        note(line)
    lines = [f"Wrote {out}." + (f" Detected: {'; '.join(survey.found)}." if survey.found else "")]
    if prefect:
        lines.append(f"Wrote {out.parent / 'prefect.yaml'}, whose first lines say how to deploy it.")
    lines += next_step("build", out)
    result = {
        "config": str(out),
        "files": [str(path) for path in texts],
        "detected": survey.found,
        "notes": survey.notes,
    }
    emit(result, lines, as_json=as_json)


def _check_writable(path: Path, input_: str, *, force: bool) -> None:
    """Refuse to write over the input, a folder, or without ``force`` any file."""
    from pairwright.datasets.errors import UsageError
    from pairwright.flows.state.overwrite_checks import refuse_overwriting

    refuse_overwriting(path, input_)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder. Name a file in it, such as {path / 'build.yaml'}.")
    if path.exists() and not force:
        raise UsageError(f"{path}: exists. Choose another --out, or overwrite it with --force.")


def _exists_locally(text: str) -> bool:
    """Return whether an input exists: a file or folder, or the first file of a brace pattern."""
    from pairwright.datasets.brace_patterns import expand_braces

    path = Path(text).expanduser()
    return bool(text) and (path.exists() or ("{" in text and Path(next(expand_braces(str(path)))).exists()))
