"""``pairwright inspect``: counts of a dataset, samples in full, and a contact sheet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.options.declarations import output_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.files import check_extension, check_outputs
from pairwright.datasets.errors import InputError, UsageError

if TYPE_CHECKING:
    from pairwright.datasets.shards.samples import Sample


def inspect(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A build directory, a folder of shards, or a .tar.")],
    *,
    samples: Annotated[int, typer.Option(min=0, help="Samples to print.")] = 1,
    key: Annotated[str, typer.Option(help="Key of the one sample to print.")] = "",
    sheet: Annotated[Path | None, output_option(help="Contact sheet to write, .png.")] = None,
    cells: Annotated[int, output_option(min=1, max=400, help="Samples on the contact sheet.")] = 24,
    as_json: JsonOption = False,
) -> None:
    """Print counts and samples of a dataset, or draw a contact sheet.

    \b
    Examples:
      pairwright inspect demo --sheet demo.png
      pairwright inspect build/birds
      pairwright inspect build/birds --sheet birds.png --cells 60
    """
    from pairwright.datasets.atomic_files import write_bytes
    from pairwright.datasets.remote.store_folder import open_dataset
    from pairwright.datasets.reports.contact_sheet import draw_contact_sheet, read_first_samples, summarize_dataset
    from pairwright.datasets.shards.samples import encode_sample_json

    if path.is_file() and path.suffix != ".tar":
        rows = f"`pairwright review {path}` shows candidate rows, `pairwright audit {path} --details` measures them"
        raise InputError("not a .tar", where=str(path), fix=f"Give a build, shards or a .tar; {rows}.")
    path = open_dataset(str(path))
    check_extension(sheet, ".png")
    check_outputs(sheet)
    counts = summarize_dataset(path)
    shown = _find_sample(path, key) if key else read_first_samples(path, samples)
    if sheet:
        write_bytes(sheet, draw_contact_sheet(read_first_samples(path, cells)))
    result = {**counts, "shown": [encode_sample_json(sample) for sample in shown], "sheet": str(sheet) if sheet else ""}
    lines = _count_lines(counts)
    for sample in shown:
        lines += ["", *_sample_lines(sample)]
    emit(result, lines + ([f"Contact sheet: {sheet}"] if sheet else []), as_json=as_json)


def _find_sample(path: Path, key: str) -> "list[Sample]":
    from pairwright.datasets.shards.sample_source import open_sample_source

    for sample in open_sample_source(path).samples():
        if sample.pair.key == key:
            return [sample]
    raise UsageError(f"{path}: no sample has the --key {key}.")


def _count_lines(counts: dict[str, Any]) -> list[str]:
    rows: list[list[object]] = [["samples", counts["samples"]], ["with an image", counts["with_image"]]]
    rows += [["shards", counts["shards"]], ["bytes", counts["bytes"]]]
    for group, count in counts.get("samples_with", {}).items():
        rows += [[f"with {group.replace('_', ' ')}", count]] if count else []
    for group, types in counts["types"].items():
        rows += [[f"{group.replace('_', ' ')}: {name}", count] for name, count in types.items()]
    return columns(rows, indent="")


def _sample_lines(sample: "Sample") -> list[str]:
    pair = sample.pair
    lines = [f"key       {pair.key}", f"image     {pair.image or '(text only)'}", f"caption   {pair.caption}"]
    lines += [f"also      {other}" for other in pair.captions]
    for annotation in sample.annotations:
        if annotation.turns:
            lines.append(annotation.kind)
            lines += [f"  {'Q' if turn.role == 'human' else 'A'}  {turn.text}" for turn in annotation.turns]
        else:
            name = annotation.kind.removeprefix("hard_")
            kind = "-".join(part for part in (annotation.form, annotation.target) if part)
            lines.append(f"{name:<9} {annotation.text}   ({kind})")
    return lines
