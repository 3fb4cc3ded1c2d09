"""What commands that read pairs have in common: --columns, --on-error, and a pool of captions."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions

InputArgument = Annotated[
    str,
    typer.Argument(metavar="INPUT", help="COCO .json, .jsonl, .csv, .tsv, .parquet, a folder, or {00000..00009}.tar."),
]
ColumnsOption = Annotated[
    str, typer.Option("--columns", help="Your columns, such as key=image_id,captions=captions; usually guessed.")
]
FormatOption = Annotated[str, typer.Option("--format", help="Of INPUT; guessed when left out.")]
ExplodeOption = Annotated[bool, typer.Option("--explode", help="One pair per caption, not one per image.")]
ImageRootOption = Annotated[
    str,
    typer.Option("--image-root", help="Folder that relative image paths start from; images outside it are rejected."),
]
InstancesOption = Annotated[
    str, typer.Option("--instances", help="Of COCO captions: the instances JSON of the same images, for boxes.")
]
OnErrorOption = Annotated[
    Literal["stop", "skip"], typer.Option("--on-error", help="Broken rows: stop at the first, or skip and count them.")
]
MaxCaptionOption = Annotated[
    int, typer.Option("--max-caption", min=1, help="Characters of a caption; longer ones are rejected and counted.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Same seed and input: same output.")]


def parse_columns(written: str) -> dict[str, str]:
    """Return ``key=image_id,captions=captions`` as a mapping.

    Raises:
        UsageError: when it is not written so.
    """
    mapping: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in written.split(","))):
        ours, sign, theirs = item.partition("=")
        if not (sign and ours.strip() and theirs.strip()):
            raise UsageError(f"--columns {written!r}: write it as key=image_id,captions=captions.")
        mapping[ours.strip()] = theirs.strip()
    return mapping


def text_options(
    input_: str,
    columns: str,
    format_: str,
    *,
    explode: bool,
    on_error: Literal["stop", "skip"],
    image_root: str = "",
    instances: str = "",
    max_caption: int = 0,
) -> "ReadOptions":
    """Return reader options for a command that works on texts alone: images are not looked at.

    ``max_caption`` 0 stands for the reader's own limit.
    """
    from pairwright.datasets.readers.normaliser import MAX_CAPTION_LENGTH
    from pairwright.datasets.readers.pairs import ReadOptions

    return ReadOptions(
        input=input_,
        format=format_,
        columns=parse_columns(columns),
        explode=explode,
        on_error=on_error,
        image_root=image_root,
        instances=instances,
        verify_images="off",
        max_caption=max_caption or MAX_CAPTION_LENGTH,
    )


def skipped_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a line about what was skipped of the input, if anything: rows, and single captions of rows."""
    from pairwright.datasets.readers.skip_counts import describe_skip_counts

    told = describe_skip_counts(result)
    return [f"Skipped: {told}"] if told else []


def read_batches(options: "ReadOptions") -> Iterator["ReadBatch"]:
    """Yield the batches of the input."""
    from pairwright.datasets.readers.pairs import read_pairs

    yield from read_pairs(options)
