"""``pairwright export``: the kept rows of a build or shards in the layout of another tool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.declarations import (
    GroupedCommand,
    advanced_option,
    input_option,
    limit_option,
    output_option,
)
from pairwright.cli.options.input import JsonOption, LayoutOption, OnErrorOption, parse_columns
from pairwright.cli.output.console import columns as aligned
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, skipped_lines
from pairwright.cli.review import note_uncounted
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.datasets.exports.writing import ExportFormat, ExportOptions, ExportResult
    from pairwright.datasets.shards.sample_source import SampleSource
    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy

UNCHANGED = "unchanged"
_SHOWN = 5  # files of a summary


class ExportCommand(GroupedCommand):
    """Lists the formats in the help of ``--to``; other commands do not import their table, which is slow."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the options."""
        from pairwright.datasets.exports.formats import EXPORTS

        to: Any = next(param for param in self.params if param.name == "to")
        to.help = f"Format: {', '.join(EXPORTS.built_in)}."
        super().format_options(ctx, formatter)


@with_progress
def export(
    input_: Annotated[
        Path,
        typer.Argument(metavar="INPUT", help="A build, shards, a conversation file, or candidate rows, as of refine."),
    ],
    *,
    to: Annotated[str, output_option("--to", metavar="FORMAT")],
    out: Annotated[Path, output_option("--out", help="File or folder to write, or its URL: s3://...", callback=None)],
    append: Annotated[
        list[Path] | None, input_option("--append", help="Build or shards whose samples follow INPUT's. Repeatable.")
    ] = None,
    rationales: Annotated[
        Path | None, input_option(help="A .parquet of `generate rationales` for samples with its keys.")
    ] = None,
    decisions: Annotated[
        Path | None, input_option(help="Decisions of `review` on INPUT: omit rejected texts, use fixed ones.")
    ] = None,
    columns: Annotated[
        str,
        input_option("--columns", help="Conversation file: column names, such as question=q,answer=a; else detected."),
    ] = "",
    layout: LayoutOption = "",
    on_error: OnErrorOption = "stop",
    image_root: Annotated[
        Path | None,
        input_option(
            help="Folder of relative image paths in a file (default: that of INPUT); of a build, folder that the paths of "
            "images are relative to."
        ),
    ] = None,
    samples: Annotated[int, limit_option(min=0, help="Samples per shard, at most.", show_default=UNCHANGED)] = 0,
    megabytes: Annotated[int, limit_option(min=0, help="MiB per shard, at most.", show_default=UNCHANGED)] = 0,
    image_format: Annotated[
        Literal["jpg", "png", "webp"] | None, output_option(help="Format of written images.", show_default=UNCHANGED)
    ] = None,
    longest_side: Annotated[
        int, limit_option(min=0, help="Pixels of the longest side; larger images are scaled.", show_default=UNCHANGED)
    ] = 0,
    max_tokens: Annotated[
        int | None, limit_option(min=3, help="Triplets: cut outputs to this number of tokens, such as 77.")
    ] = None,
    tokenizer: Annotated[
        Path | None, advanced_option(help="Triplets: folder of a CLIP tokenizer for --max-tokens; else words.")
    ] = None,
    seed: Annotated[int, advanced_option(min=0, help="Seed of random choices, such as the position of <image>.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write the kept rows in the layout of another tool.

    \b
    Examples:
      pairwright export demo --to llava --out demo.json
      pairwright export build/birds --to llava --out birds.json
      pairwright export build/birds --to hf --out birds-hub
      pairwright export build/birds --to webdataset --out s3://datasets/birds
      pairwright export build/birds --append build/fish --to webdataset --samples 5000 --longest-side 384 --out shards
      pairwright export build/birds --to webdataset --rationales itm.parquet --out shards
      pairwright export llava.json --to triplets --out triplets.jsonl
      pairwright export valse/existence.json --to sugarcrepe --out existence.json
      pairwright export build/birds --to triplets --max-tokens 77 --tokenizer clip-vit-base-patch32 --out birds.jsonl
    """
    from pairwright.datasets.exports.formats import DEFAULT_OPTIONS, EXPORTS
    from pairwright.datasets.images.recoding import Recoding
    from pairwright.datasets.readers.skip_counts import SkipCounts
    from pairwright.datasets.remote.local_copies import fetch_local_copy
    from pairwright.datasets.remote.object_store import is_remote
    from pairwright.datasets.remote.output import upload_on_success
    from pairwright.datasets.shards.sample_source import count_unpacked_images
    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy

    input_ = Path(fetch_local_copy(str(input_)))
    _refuse_unused(
        to, tokens=bool(max_tokens or tokenizer), size=samples + megabytes, image=image_format or longest_side
    )
    if append and (decisions or to == "rationales"):
        raise UsageError("--append cannot be combined with --decisions or --to rationales. Omit it.")
    format_ = EXPORTS.get(to)
    options = replace(
        DEFAULT_OPTIONS,
        seed=seed,
        max_tokens=max_tokens or 0,
        tokenizer=tokenizer,
        recoding=Recoding(image_format or "", longest_side),
        max_samples=samples,
        max_bytes=megabytes * 2**20,
    )
    plain = decisions is None and rationales is None
    policy, unusable = InvalidRowPolicy(on_error), SkipCounts()
    source, root = _open_source(
        input_, format_, append or [], RowOptions(layout, image_root, policy, parse_columns(columns)), plain=plain
    )
    options = replace(options, image_root=root, skipped=unusable if on_error == "skip" else None)
    if decisions is not None:
        source = _apply_decisions(input_, decisions)
    read = (input_, *(append or []), *filter(None, (decisions, rationales)))
    check_outputs(None if is_remote(out) else out, reads=tuple(map(str, read)))
    with upload_on_success(out) as output:
        options = replace(options, finish=output.finish or options.finish)
        written, unmatched = _write(source, to, output.path, options, rationales)
    files = output.sent or [str(path) for path in written.files]
    counts = dict(written.details)
    if unpacked := sum(map(count_unpacked_images, (input_, *(append or [])))):
        counts["unpacked_images"] = unpacked
    rows = [[name.replace("_", " "), count] for name, count in counts.items() if count]
    more = f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else ""
    lines = [
        headline(f"{count_phrase(written.rows, 'row')} in {to}'s layout"),
        *aligned(rows, indent=""),
        f"Written to {', '.join(files[:_SHOWN])}{more}",
    ]
    _note_counts(to, counts)
    if unmatched:
        note(f"{count_phrase(unmatched, 'rationale')} {verb_form(unmatched, 'match')} no sample of {input_}.")
    skipped = (policy.skipped + unusable).as_json()
    omitted = _describe_omitted(to, written.omitted)
    result = {
        "rows": written.rows,
        "files": files,
        **counts,
        "omitted": omitted,
        "rationales_left": unmatched,
        **skipped,
    }
    emit(result, [*lines, *skipped_lines(skipped)], as_json=as_json)
    if not written.rows:
        exit_below_target(f"No row was written: {input_} has no rows for --to {to}.")


def _write(
    source: "SampleSource | Path", to: str, out: Path, options: "ExportOptions", rationales: Path | None
) -> "tuple[ExportResult, int]":
    """Write the samples, with the rationales of a file; return the result, and how many rationales match no sample."""
    from pairwright.datasets.errors import InputError
    from pairwright.datasets.exports.formats import export as write
    from pairwright.datasets.images.loading import UnusableImageError
    from pairwright.datasets.record_tables import EXAMPLES
    from pairwright.datasets.shards.sample_source import add_examples, open_sample_source

    examples, matched = EXAMPLES.read(rationales) if rationales else [], set[str]()
    if rationales is not None:
        source = add_examples(open_sample_source(source) if isinstance(source, Path) else source, examples, matched)
    try:
        written = write(source, to, out, options)
    except UnusableImageError as error:
        how = f"{error.fix} To skip such samples: --on-error skip."
        raise InputError(f"{error.reason}: {error.what}", where=error.where, fix=how) from None
    return written, sum(1 for each in examples if each.status == "kept" and each.key not in matched)


def _note_counts(to: str, counts: Mapping[str, Any]) -> None:
    """Say what the counts of an export mean and what can be done."""
    if packed := counts.get("packed_images"):
        what = f"The rows name {count_phrase(packed, 'image')} that tars or tables hold, so there are no such files"
        note(f"{what}. Unpack the tars into the trainer's folder of images; of tables, export the build's shards.")
    if missing := counts.get("missing_images"):
        what = f"Not found: {count_phrase(missing, 'image')} that the rows name. Give their folder with --image-root"
        note(
            f"{what}; where they are ids, name the files when the texts are made: --columns image='{{image_id:012}}.jpg'."
        )
    if texts := counts.get("without_images"):
        what = f"{count_phrase(texts, 'pair')} without an image: the rows have an id in place of its file"
        note(f"{what}. If INPUT was made of a table with images, name their column there: --columns image=NAME.")
    if unpacked := counts.get("unpacked_images"):
        note(
            f"Pairs of {count_phrase(unpacked, 'image')} omitted that the build could not pack (its rejected/ says why)."
        )
    if several := counts.get("several_images"):
        note(f"{count_phrase(several, 'sample')} of several images omitted: a row of {to} has one.")


def _describe_omitted(to: str, omitted: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Return for each kind of text that the format omitted their number and the formats that have it, and say so."""
    from pairwright.datasets.exports.formats import formats_with

    described: dict[str, dict[str, Any]] = {}
    for kind, count in omitted.items():
        carrying = formats_with(kind)
        described[kind] = {"texts": count, "carried_by": carrying}
        texts = count_phrase(count, kind.removesuffix("s").replace("_", " "))
        note(f"{texts} omitted, which the layout of {to} has no place for. --to writes them: {', '.join(carrying)}.")
    return described


def _refuse_unused(to: str, *, tokens: bool, size: int, image: str | int) -> None:
    """Refuse an unknown format, and options that the format does not use."""
    from pairwright.datasets.exports.formats import EXPORTS

    format_ = EXPORTS.get(to)
    if to != "triplets" and tokens:
        raise UsageError(f"--max-tokens and --tokenizer require --to triplets. Omit them for {to}.")
    if size and not format_.writes_shards:
        sharded = " or ".join(name for name, each in EXPORTS.built_in.items() if each.writes_shards)
        raise UsageError(f"--samples and --megabytes require --to {sharded}. Omit them for {to}.")
    if image and not format_.writes_images:
        raise UsageError(f"--to {to} writes no images. Omit --image-format and --longest-side.")


@dataclass(frozen=True)
class RowOptions:
    """How a file of rows is read.

    Attributes:
        layout: name of the layout of candidate rows; empty: detected.
        image_root: folder of the images; None: that of the file.
        policy: for broken rows.
        columns: of a conversation file, part to column.
    """

    layout: str
    image_root: Path | None
    policy: "InvalidRowPolicy"
    columns: Mapping[str, str]


def _open_source(
    input_: Path, format_: "ExportFormat", append: Sequence[Path], rows: RowOptions, *, plain: bool
) -> "tuple[SampleSource | Path, Path | None]":
    """Return the samples of INPUT, and the folder of their images if a file names them.

    Args:
        input_: a build, shards, or a file of rows or conversations.
        format_: of the export.
        append: builds and shards that follow.
        rows: how rows are read.
        plain: whether neither decisions nor rationales are added.
    """
    from pairwright.datasets.exports.formats import formats_with
    from pairwright.datasets.exports.omitted_texts import CONVERSATIONS
    from pairwright.datasets.mixtures.conversation_files import CONVERSATION_SUFFIXES, open_conversation_files
    from pairwright.datasets.readers.text_files import strip_compression
    from pairwright.datasets.remote.local_copies import fetch_local_copy
    from pairwright.datasets.shards.sample_source import join_sources, open_sample_source
    from pairwright.filters.candidates.samples import candidate_source, holds_candidates

    if not rows.columns and plain and not append and holds_candidates(input_, rows.layout):
        return candidate_source(input_, rows.layout, rows.image_root, rows.policy)
    suffix = Path(strip_compression(input_.name)).suffix.lower()
    takes_conversations = CONVERSATIONS in format_.texts
    of_conversations = plain and suffix in CONVERSATION_SUFFIXES and input_.is_file()
    if append and (files := [path for path in (input_, *append) if _is_file_of_rows(path)]):
        fix = f"Write its shards first and give these: `pairwright export {files[0]} --to webdataset --out SHARDS`."
        raise UsageError(f"--append joins builds and shards, and {files[0]} is a file of rows. {fix}")
    from_file = of_conversations and takes_conversations and not append
    if rows.layout:
        raise UsageError("--format requires rows with negatives as INPUT. Omit it.")
    if rows.image_root and not (from_file or format_.names_images):
        what = "rows with negatives, or a file of conversations, as INPUT, or a format that names image files"
        raise UsageError(f"--image-root requires {what}. Omit it.")
    if rows.columns and not from_file:
        raise UsageError("--columns requires a file of conversations as INPUT, and a format of conversations. Omit it.")
    if rows.policy.on_error == "skip" and not (from_file or format_.writes_images):
        what = "rows with negatives, or a file of conversations, as INPUT, or a format that embeds images"
        raise UsageError(f"--on-error requires {what}. Omit it.")
    if of_conversations and not takes_conversations and suffix != ".parquet":
        taking = ", ".join(sorted(formats_with(CONVERSATIONS)))
        raise UsageError(f"{input_}: a conversation file can be exported --to {taking}, not {format_.name}.")
    if append:
        sources = [open_sample_source(Path(fetch_local_copy(str(path)))) for path in (input_, *append)]
        return join_sources(sources), rows.image_root
    if from_file:
        return open_conversation_files(
            input_,
            rows.image_root,
            rows.policy.skipped if rows.policy.on_error == "skip" else None,
            one_image="" if format_.several_images else format_.name,
            columns=rows.columns,
        )
    return input_, rows.image_root


def _is_file_of_rows(path: Path) -> bool:
    from pairwright.datasets.mixtures.conversation_files import CONVERSATION_SUFFIXES
    from pairwright.datasets.readers.text_files import strip_compression

    return path.is_file() and Path(strip_compression(path.name)).suffix.lower() in CONVERSATION_SUFFIXES - {".parquet"}


def _apply_decisions(input_: Path, decisions: Path) -> "SampleSource":
    """Return the samples of INPUT with the decisions of a review applied."""
    from pairwright.datasets.shards.sample_source import open_sample_source
    from pairwright.filters.review.decision_application import apply_to_source, decide_outcomes
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.rows import read_rows

    rows = read_rows(input_)
    judged = combine_decisions(rows.frame, read_decisions(decisions))
    note_uncounted(judged.uncounted)
    return apply_to_source(open_sample_source(input_), decide_outcomes(rows, judged))
