"""``pairwright export``: write a build or shards in another tool's layout."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline
from pairwright.cli.review import note_uncounted
from pairwright.datasets.errors import UsageError

UNCHANGED = "as they are"

if TYPE_CHECKING:
    from pairwright.datasets.shards.sample_source import SampleSource


@with_progress
def export(
    input_: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="A build directory, a folder of shards, a .tar, or a file of conversations."
        ),
    ],
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to", help="llava, sugarcrepe, negclip, openai, triplets, rationales, parquet, hf, croissant, webdataset."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="File or folder to write, or a URL of one: s3://...")],
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of what is random in a layout, such as <image> first or last.")
    ] = 0,
    rationales: Annotated[
        Path | None,
        typer.Option("--rationales", help="A .parquet of `generate rationales`, to go with the samples of its keys."),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            "--decisions", help="Decisions of `review` on INPUT: leave out what was rejected, take what was fixed."
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=3, help="Of triplets: cut outputs to so many tokens, such as CLIP's 77."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", help="Of triplets: folder of a CLIP tokenizer, to count tokens by; else words."),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option("--also", help="Another build or folder of shards whose samples follow INPUT's; may be repeated."),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=0, help="Of shards: samples in each, at most.", show_default=UNCHANGED)
    ] = 0,
    megabytes: Annotated[
        int, typer.Option("--megabytes", min=0, help="Of shards: MiB of each, at most.", show_default=UNCHANGED)
    ] = 0,
    image_format: Annotated[
        Literal["jpg", "png", "webp"] | None,
        typer.Option("--image-format", help="Of images that are written.", show_default=UNCHANGED),
    ] = None,
    longest_side: Annotated[
        int,
        typer.Option(
            "--longest-side",
            min=0,
            help="Pixels, to which larger images that are written are scaled.",
            show_default=UNCHANGED,
        ),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write the kept rows of INPUT in the layout that another tool reads.

    \b
    Examples:
      pairwright export build/birds --to llava --out birds.json
      pairwright export build/birds --to hf --out birds-hub
      pairwright export build/birds --to webdataset --out s3://datasets/birds
      pairwright export build/birds --also build/fish --to webdataset --samples 5000 --longest-side 384 --out shards
      pairwright export build/birds --to webdataset --rationales itm.parquet --out shards
      pairwright export llava.json --to triplets --out triplets.jsonl
      pairwright export build/birds --to triplets --max-tokens 77 --tokenizer clip-vit-base-patch32 --out birds.jsonl
    """
    from dataclasses import replace

    from pairwright.datasets.exports.formats import DEFAULT_OPTIONS, EXPORTS
    from pairwright.datasets.exports.formats import export as write
    from pairwright.datasets.images.recoding import Recoding
    from pairwright.datasets.mixtures.conversation_files import (
        CONVERSATION_SUFFIXES,
        open_conversation_files,
    )
    from pairwright.datasets.record_tables import EXAMPLES
    from pairwright.datasets.remote.local_copies import fetch_local_copy
    from pairwright.datasets.remote.object_store import is_remote
    from pairwright.datasets.remote.output import upload_on_success
    from pairwright.datasets.shards.sample_source import add_examples, join_sources, open_sample_source

    input_ = Path(fetch_local_copy(str(input_)))
    _refuse_unused(
        to, tokens=bool(max_tokens or tokenizer), size=samples + megabytes, image=image_format or longest_side
    )
    if also and (decisions or to == "rationales"):
        raise UsageError("--also goes neither with --decisions nor with --to rationales. Leave it out.")
    options = replace(
        DEFAULT_OPTIONS,
        seed=seed,
        max_tokens=max_tokens or 0,
        tokenizer=tokenizer,
        recoding=Recoding(image_format or "", longest_side),
        max_samples=samples,
        max_bytes=megabytes * 2**20,
    )
    of_talks = (
        input_.suffix.lower() in CONVERSATION_SUFFIXES and input_.is_file() and decisions is None and rationales is None
    )
    if of_talks and not EXPORTS.get(to).takes_conversations and input_.suffix.lower() != ".parquet":
        raise UsageError(
            f"{input_}: a file of conversations goes to {', '.join(sorted(one.name for one in EXPORTS.built_in.values() if one.takes_conversations))}, not to {to}."
        )
    source = input_ if decisions is None else _apply_decisions(input_, decisions)
    if also:
        source = join_sources([open_sample_source(Path(fetch_local_copy(str(path)))) for path in (input_, *also)])
    elif of_talks and EXPORTS.get(to).takes_conversations:
        source, root = open_conversation_files(input_)
        options = replace(options, image_root=root)
    read = (input_, *(also or []), *filter(None, (decisions, rationales)))
    check_outputs(None if is_remote(out) else out, reads=tuple(map(str, read)))
    left = 0
    with upload_on_success(out) as (place, sent):
        if rationales is None:
            written = write(source, to, place, options)
        else:
            examples, matched = EXAMPLES.read(rationales), set[str]()
            given = open_sample_source(source) if isinstance(source, Path) else source
            written = write(add_examples(given, examples, matched), to, place, options)
            left = sum(1 for each in examples if each.status == "kept" and each.key not in matched)
    files = sent or [str(path) for path in written.files]
    counts = {**({"for_training": written.training_only_rows} if written.training_only_rows else {}), **written.details}
    told = [[name.replace("_", " "), count] for name, count in counts.items() if count]
    lines = [
        headline(f"{written.rows:,} rows in {to}'s layout"),
        *(columns(told, indent="") if told else []),
        f"Written to {', '.join(files[:_SHOWN])}"
        + (f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else ""),
    ]
    if left:
        note(f"{left:,} rationales belong to no sample of {input_}.")
    emit({"rows": written.rows, "files": files, **counts, "rationales_left": left}, lines, as_json=as_json)
    if not written.rows:
        exit_below_target(f"No row was written: {input_} holds nothing that {to} takes.")


_SHOWN = 5  # files of a summary


def _refuse_unused(to: str, *, tokens: bool, size: int, image: str | int) -> None:
    """Refuse a format that there is not, and options that the format ``to`` would not heed."""
    from pairwright.datasets.exports.formats import EXPORTS

    format_ = EXPORTS.get(to)
    if to != "triplets" and tokens:
        raise UsageError(f"--max-tokens and --tokenizer are for --to triplets. Leave them out for {to}.")
    if size and not format_.writes_shards:
        sharded = ", ".join(one.name for one in EXPORTS.built_in.values() if one.writes_shards)
        raise UsageError(f"--samples and --megabytes are for {sharded}. Leave them out for {to}.")
    if image and not format_.writes_images:
        raise UsageError(f"{to} names images and writes none. Leave --image-format and --longest-side out.")


def _apply_decisions(input_: Path, decisions: Path) -> "SampleSource":
    """Return the samples of INPUT as reviewers want them."""
    from pairwright.datasets.shards.sample_source import open_sample_source
    from pairwright.filters.review.decision_application import apply_to_source, decide_outcomes
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.rows import read_rows

    rows = read_rows(input_)
    judged = combine_decisions(rows.frame, read_decisions(decisions))
    note_uncounted(judged.uncounted)
    return apply_to_source(open_sample_source(input_), decide_outcomes(rows, judged))
