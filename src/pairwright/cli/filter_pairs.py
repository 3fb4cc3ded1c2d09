"""``pairwright filter``: remove pairs by caption, image, similarity or concept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.declarations import advanced_option, output_option
from pairwright.cli.options.input import (
    ExcludeImagesOption,
    InputArgument,
    InputOptions,
    JsonOption,
    SeedOption,
    with_input_options,
)
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, share
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.rejects import list_reasons

DISABLED = "off"


@with_progress
@with_input_options("explode", "image_root", "clean_captions")
def filter_pairs(
    input_: InputArgument,
    *,
    out: Annotated[Path, output_option(help="Parquet file of the kept pairs.")],
    min_words: Annotated[int, typer.Option(min=0, help="Words of a caption, at least.", show_default=DISABLED)] = 0,
    max_words: Annotated[int, typer.Option(min=0, help="Words of a caption, at most.", show_default=DISABLED)] = 0,
    min_side: Annotated[
        int, typer.Option(min=0, help="Pixels of an image's shorter side, at least.", show_default=DISABLED)
    ] = 0,
    max_aspect: Annotated[
        float, typer.Option(min=0, help="Longer side divided by shorter side, at most.", show_default=DISABLED)
    ] = 0.0,
    language: Annotated[
        str, typer.Option(help="Language of the captions, such as en; others are removed.", show_default=DISABLED)
    ] = "",
    near_duplicates: Annotated[
        float, typer.Option(min=0, max=1, help="Similarity to an earlier caption, such as 0.8.", show_default=DISABLED)
    ] = 0.0,
    exclude_images: ExcludeImagesOption = [],  # noqa: B006 - Typer copies it
    near_duplicate_images: Annotated[
        int,
        typer.Option(
            min=0, max=63, help="Hash bits that differ from an earlier image, such as 31.", show_default=DISABLED
        ),
    ] = 0,
    image_similarity: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Cosine of embeddings with an earlier image, such as 0.95.", show_default=DISABLED
        ),
    ] = 0,
    min_clip_score: Annotated[
        float, typer.Option(min=0, max=1, help="Cosine of image and caption, such as 0.25.", show_default=DISABLED)
    ] = 0,
    concept_floor: Annotated[
        int, typer.Option(min=0, help="Captions in which a noun phrase must occur, such as 3.", show_default=DISABLED)
    ] = 0,
    concept_cap: Annotated[
        int, typer.Option(min=0, help="Captions to keep of a noun phrase, such as 100.", show_default=DISABLED)
    ] = 0,
    clip_model: Annotated[
        str, advanced_option(help="Model that sees images: folder, hub name or ARCH::pretrained.")
    ] = "",
    device: Annotated[str, advanced_option(help="Device of the model: cpu, cuda; else detected.")] = "",
    seed: SeedOption = 0,
    reading: InputOptions,
    as_json: JsonOption = False,
) -> None:
    """Remove pairs by length, language, image size, similarity or concept.

    A filter that is not named is off. OUT's .rejected.parquet holds the removed pairs, each with its reason.

    \b
    Examples:
      pairwright filter captions.jsonl --min-words 3 --near-duplicates 0.8 --out pairs.parquet
      pairwright filter laion.parquet --language en --min-words 3 --out english.parquet
      pairwright filter '{00000..00099}.tar' --min-side 224 --max-aspect 3 --out pairs.parquet
      pairwright filter pairs.parquet --exclude-images val2017 --near-duplicate-images 31 --out clean.parquet
      pairwright filter pairs.parquet --exclude-images val2017 --image-similarity 0.95 --clip-model clip --out clean.parquet
      pairwright filter cc3m.parquet --concept-floor 3 --concept-cap 100 --out covered.parquet
    """
    from pairwright.filters.pairs.size_limits import SizeLimits
    from pairwright.flows.commands.filter_pairs import FilterRequest, run_filters

    request = FilterRequest(
        reading.read_options(input_, verify_images="header" if min_side or max_aspect else "off"),
        out,
        SizeLimits(min_words, max_words, min_side, max_aspect),
        language,
        near_duplicates,
        tuple(exclude_images),
        near_duplicate_images,
        image_similarity,
        min_clip_score,
        clip_model,
        device,
        concept_floor,
        concept_cap,
        seed,
    )
    request.check()
    check_outputs(out, request.rejected, reads=exclude_images)
    nothing_written_on_interrupt()
    with report_named_steps("pairs") as follow:
        result = run_filters(request, follow)
    emit(result, _lines(result), as_json=as_json)
    if result.get("unknown_size"):
        note(f"{count_phrase(result['unknown_size'], 'image')} of unknown size kept.")
    if result.get("featureless"):
        note(f"{count_phrase(result['featureless'], 'image')} kept without a hash: nearly uniform or a gradient.")
    if result.get("uncompared"):
        note(f"{count_phrase(result['uncompared'], 'image')} kept that cannot be read, so not compared.")
    if not result["kept"]:
        exit_below_target("No pair was kept. Relax the filters; the reasons are in the .rejected.parquet.")


def _lines(result: dict[str, Any]) -> list[str]:
    kept = f"{result['kept']:,} of {count_phrase(result['in'], 'pair')} kept ({share(result['kept'], result['in'])})"
    lines: list[str] = [headline(f"{kept}, {result['seconds']} s")]
    if result["rejected"]:
        lines.append(f"rejected: {list_reasons(result['rejected'])}")
    if concepts := result.get("concepts"):
        phrases = f"{concepts['phrases']:,} noun phrases; {concepts['counted']:,} are frequent enough"
        lines += ["", f"{phrases}, each kept in some caption. {concepts['capped']:,} were capped."]
    if skips := SkipCounts.of_kept_rows(result).describe():
        lines += ["", f"Skipped of rows that were read: {skips}"]
    return [*lines, "", f"Written to {result['out']}; rejected pairs: {result['rejected_out']}"]
