"""Options of commands that read pairs: the input, its format and columns, and what to do about broken rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pairwright.cli.options.declarations import Command, input_option, output_option, with_options
from pairwright.cli.options.standard_input import copy_standard_input
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import MAX_EDITABLE_CAPTION

if TYPE_CHECKING:
    from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions
    from pairwright.indexes.retrieval.exclusion import Exclusion, MatchField

InputArgument = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        callback=copy_standard_input,
        help="COCO .json, .jsonl, .csv, .tsv, .parquet, a folder, {00000..00009}.tar, or - for JSON Lines from stdin.",
    ),
]
RowsArgument = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        callback=copy_standard_input,
        help="Candidate rows: .jsonl, .parquet, a benchmark's .json, .csv, .tsv, or - for JSON Lines from stdin.",
    ),
]
OnErrorOption = Annotated[
    Literal["stop", "skip"], input_option("--on-error", help="Stop at a broken row, or skip and count it.")
]
LayoutOption = Annotated[str, input_option("--format", help="Layout of rows, such as valse or aro; else detected.")]
ExcludeOption = Annotated[
    list[str], input_option("--exclude", help="Evaluation data to exclude: pairs, images or a .txt. Repeatable.")
]
ExcludeImagesOption = Annotated[
    list[str],
    input_option("--exclude-images", help="Evaluation images whose copies to exclude, found by hash. Repeatable."),
]
DetailsOption = Annotated[bool, output_option("--details", help="Print all tables and reasons.")]
JsonOption = Annotated[bool, output_option("--json", help="Print one JSON object.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]


@dataclass(frozen=True)
class InputOptions:
    """Options that say how INPUT is read. A command has the first five, and those that it names."""

    columns: Annotated[str, input_option(help="Column names, such as key=image_id; else detected.")] = ""
    format: Annotated[str, input_option(help="Format of INPUT; else detected.")] = ""
    on_error: OnErrorOption = "stop"
    where: Annotated[str, input_option(help="Read rows with these values only, such as split=train,split=val.")] = ""
    encoding: Annotated[str, input_option(help="Encoding of rows that are not UTF-8, such as cp1252.")] = ""
    explode: Annotated[bool, input_option("--explode", help="Make one pair per caption, not per image.")] = False
    max_caption: int = 0  # characters; 0: the limit of the reader
    image_root: Annotated[str, input_option(help="Folder of relative image paths; images outside it are rejected.")] = (
        ""
    )
    instances: Annotated[str, input_option(help="COCO instances JSON of the same images, for boxes.")] = ""

    clean_captions: Annotated[
        bool, input_option("--clean-captions", help="Remove HTML, addresses, hashtags, emoji and 'stock photo'.")
    ] = False

    def read_options(self, input_: str, *, verify_images: Literal["off", "header"] = "off") -> "ReadOptions":
        """Return the options of the reader; images are not opened by default."""
        from pairwright.datasets.readers.normaliser import MAX_CAPTION_LENGTH
        from pairwright.datasets.readers.pairs import ReadOptions

        return ReadOptions(
            input=input_,
            format=self.format,
            columns=parse_columns(self.columns),
            where=parse_where(self.where),
            explode=self.explode,
            on_error=self.on_error,
            image_root=self.image_root,
            instances=self.instances,
            verify_images=verify_images,
            max_caption=self.max_caption or MAX_CAPTION_LENGTH,
            clean_captions=self.clean_captions,
            encoding=self.encoding,
        )


@dataclass(frozen=True)
class EditInputOptions(InputOptions):
    """Options of commands that edit captions, which have to be short."""

    max_caption: Annotated[int, input_option(min=1, help="Reject captions of more characters.")] = MAX_EDITABLE_CAPTION


def with_input_options(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds `InputOptions` to a command as its keyword ``reading``."""
    options = EditInputOptions if "max_caption" in names else InputOptions
    return with_options(options, "reading", ("columns", "format", "on_error", "where", "encoding", *names))


def parse_columns(text: str) -> dict[str, str]:
    """Return ``key=image_id,captions=texts`` as a mapping.

    Raises:
        UsageError: for an item without a name on both sides.
    """
    mapping: dict[str, str] = {}
    for item in split_list(text):
        ours, sign, theirs = (part.strip() for part in item.partition("="))
        if not (sign and ours and theirs):
            raise UsageError(f"--columns {text!r}: write it as key=image_id,captions=captions.")
        mapping[ours] = theirs
    return mapping


def parse_where(text: str) -> dict[str, tuple[str, ...]]:
    """Return ``split=train,split=val`` as a mapping of column to values.

    Raises:
        UsageError: for an item without a name or a value.
    """
    mapping: dict[str, tuple[str, ...]] = {}
    for item in split_list(text):
        column, sign, value = (part.strip() for part in item.partition("="))
        if not (sign and column and value):
            raise UsageError(f"--where {text!r}: write it as split=train, or split=train,split=val.")
        mapping[column] = (*mapping.get(column, ()), value)
    return mapping


def split_list(text: str) -> tuple[str, ...]:
    """Return the items of a list with commas."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def read_batches(options: "ReadOptions") -> Iterator["ReadBatch"]:
    """Yield the batches of an input."""
    from pairwright.datasets.readers.pairs import read_pairs

    yield from read_pairs(options)


def load_exclusion(
    paths: Sequence[str], by: "Sequence[MatchField]" = (), images: Sequence[str] = ()
) -> "Exclusion | None":
    """Return the evaluation data of ``--exclude`` and ``--exclude-images`` as one exclusion; None without any.

    Args:
        paths: pairs, folders of images, or ``.txt`` lists.
        by: fields that identify a pair; empty: the default ones.
        images: folders of images, or pairs with images, whose copies are excluded.
    """
    from pairwright.cli.output.console import note
    from pairwright.datasets.suggestions import require_known
    from pairwright.indexes.retrieval.exclusion import DEFAULT_MATCH_FIELDS, LISTED_FIELDS, read_exclusions

    require_known("--exclude-by: unknown field", by, LISTED_FIELDS)
    exclusion = read_exclusions(paths, by or DEFAULT_MATCH_FIELDS, images)
    if exclusion is None:
        return None
    counts = ", ".join(f"{count:,} by {name}" for name, count in exclusion.sizes.items())
    skipped = f"; skipped {skips}" if (skips := exclusion.skipped.describe()) else ""
    unread = f"; {count_phrase(exclusion.unread, 'image')} not compared, as unreadable" if exclusion.unread else ""
    note(f"Excluding {' and '.join([*paths, *images])}: {counts}{skipped}{unread}")
    return exclusion
