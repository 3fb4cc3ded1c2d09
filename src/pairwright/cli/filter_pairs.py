"""``pairwright filter``: leave out pairs by caption, image, likeness or concept."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.input import (
    ColumnsOption,
    ExplodeOption,
    FormatOption,
    ImageRootOption,
    InputArgument,
    JsonOption,
    OnErrorOption,
    SeedOption,
    parse_columns,
)
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import all_reasons, headline, share
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.readers.skip_counts import SkipCounts

DISABLED = "off"


@with_progress
def filter_pairs(
    input_: InputArgument,
    *,
    out: Annotated[Path, typer.Option("--out", help="Parquet file of the pairs that are left.")],
    min_words: Annotated[int, typer.Option(min=0, help="Of a caption.", show_default=DISABLED)] = 0,
    max_words: Annotated[int, typer.Option(min=0, help="Of a caption.", show_default=DISABLED)] = 0,
    min_side: Annotated[int, typer.Option(min=0, help="Pixels of an image's shorter side.", show_default=DISABLED)] = 0,
    max_aspect: Annotated[float, typer.Option(min=0, help="Longer side by shorter side.", show_default=DISABLED)] = 0.0,
    near_duplicates: Annotated[
        float, typer.Option(min=0, max=1, help="Likeness to an earlier caption, such as 0.8.", show_default=DISABLED)
    ] = 0.0,
    min_clip_score: Annotated[
        float, typer.Option(min=0, max=1, help="Cosine of image and caption, such as 0.25.", show_default=DISABLED)
    ] = 0,
    clip_model: Annotated[str, typer.Option(help="Folder, hub name or ARCH::pretrained.")] = "",
    device: Annotated[str, typer.Option(help="Of the model: cpu, cuda; guessed when left out.")] = "",
    concept_floor: Annotated[
        int, typer.Option(min=0, help="Captions that a noun phrase needs to count, such as 3.", show_default=DISABLED)
    ] = 0,
    concept_cap: Annotated[
        int, typer.Option(min=0, help="Captions taken for a noun phrase, such as 100.", show_default=DISABLED)
    ] = 0,
    mapping: ColumnsOption = "",
    format_: FormatOption = "",
    explode: ExplodeOption = False,
    image_root: ImageRootOption = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Leave out pairs: short or long captions, small images, near-duplicates, unfitting or too common ones.

    A filter that is not named does nothing. What went is in OUT's .rejected.parquet, each pair with its reason.

    \b
    Examples:
      pairwright filter captions.jsonl --min-words 3 --near-duplicates 0.8 --out pairs.parquet
      pairwright filter '{00000..00099}.tar' --min-side 224 --max-aspect 3 --out pairs.parquet
      pairwright filter cc3m.parquet --concept-floor 3 --concept-cap 100 --out covered.parquet
    """
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.filters.pairs.size_limits import SizeLimits
    from pairwright.flows.commands.filter_pairs import FilterRequest, run_filters

    looks = bool(min_side or max_aspect)
    read = ReadOptions(
        input=input_,
        format=format_,
        columns=parse_columns(mapping),
        explode=explode,
        image_root=image_root,
        on_error=on_error,
        verify_images="header" if looks else "off",
    )
    request = FilterRequest(
        read,
        out,
        SizeLimits(min_words, max_words, min_side, max_aspect),
        near_duplicates,
        min_clip_score,
        clip_model,
        device,
        concept_floor,
        concept_cap,
        seed,
    )
    request.check()
    check_outputs(out, request.rejected)
    nothing_written_on_interrupt()
    with report_named_steps("pairs") as follow:
        result = run_filters(request, follow)
    emit(result, _lines(result), as_json=as_json)
    if result.get("unknown_size"):
        images = "image" if result["unknown_size"] == 1 else "images"
        note(f"{result['unknown_size']:,} {images} of unknown size passed.")
    if not result["kept"]:
        exit_below_target("No pair was kept.")


def _lines(result: dict[str, Any]) -> list[str]:
    lines: list[str] = [
        headline(
            f"{result['kept']:,} of {result['in']:,} pairs kept ({share(result['kept'], result['in'])}), {result['seconds']} s"
        )
    ]
    if result["rejected"]:
        lines.append(f"rejected: {all_reasons(result['rejected'])}")
    if concepts := result.get("concepts"):
        told = f"{concepts['phrases']:,} noun phrases; {concepts['counted']:,} are frequent enough, and each of these is kept"
        lines += ["", f"{told} in some caption. {concepts['capped']:,} were capped."]
    if told := SkipCounts(captions=Counter(result["broken_captions"])).describe():
        lines += ["", f"Skipped of rows that were read: {told}"]
    return [*lines, "", f"Written to {result['out']}; rejected pairs: {result['rejected_out']}"]
