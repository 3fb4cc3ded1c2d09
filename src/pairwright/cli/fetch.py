"""``pairwright fetch``: download the images of pairs whose images are URLs."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.options.declarations import advanced_option, limit_option, output_option
from pairwright.cli.options.input import (
    DetailsOption,
    ExcludeImagesOption,
    ExcludeOption,
    InputOptions,
    JsonOption,
    load_exclusion,
    with_input_options,
)
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, share
from pairwright.datasets.count_phrases import count_phrase, format_size
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.indexes.fetching.options import FetchOptions

_MAIN = 2  # reasons of a summary


@with_progress
@with_input_options("explode")
def fetch(
    input_: Annotated[
        str, typer.Argument(metavar="PAIRS", help="Pairs whose images are URLs: .parquet, .jsonl, .csv, .tsv, ...")
    ],
    *,
    out: Annotated[Path, output_option(help="Folder of the downloads; the same folder resumes.")],
    image_size: Annotated[int, typer.Option(min=16, help="Pixels for --resize-mode.")] = FetchOptions.image_size,
    resize_mode: Annotated[
        Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "no"],
        typer.Option(help="How to apply --image-size."),
    ] = FetchOptions.resize_mode,
    only_if_bigger: Annotated[
        bool, typer.Option("--only-if-bigger/--always-resize", help="Do not enlarge smaller images.")
    ] = FetchOptions.only_if_bigger,
    image_format: Annotated[
        Literal["jpg", "png", "webp"], output_option(help="Format of the images.")
    ] = FetchOptions.image_format,
    quality: Annotated[
        int, output_option(help="1-100, png 0-9 (-1 = 95 for jpg, 90 webp, 6 png).")
    ] = FetchOptions.quality,
    shard_size: Annotated[int, output_option(min=2, help="Images per tar.")] = FetchOptions.shard_size,
    timeout: Annotated[
        float, limit_option(min=0.1, help="Seconds per wait on the network; 6 times that per image.")
    ] = FetchOptions.timeout,
    retries: Annotated[
        int, limit_option(min=0, help="Retries after timeouts, busy servers, lost connections.")
    ] = FetchOptions.retries,
    processes: Annotated[
        int, limit_option(min=0, help="Processes, at most (0 = one per core).")
    ] = FetchOptions.processes,
    threads: Annotated[int, limit_option(min=1, help="Concurrent downloads per process.")] = FetchOptions.threads,
    min_success: Annotated[
        float, limit_option(min=0, max=1, help="Share of pairs to fetch, at least; else exit with 3.")
    ] = 0.0,
    ignore_opt_outs: Annotated[
        bool, advanced_option("--ignore-opt-outs", help="Ignore X-Robots-Tag opt-outs of AI training.")
    ] = False,
    allow_loopback: Annotated[bool, advanced_option("--allow-loopback", help="Allow servers on localhost.")] = False,
    proxy: Annotated[str, advanced_option(help="http://host:port; else http_proxy, https_proxy and no_proxy.")] = "",
    user_agent: Annotated[str, advanced_option(help="User agent, such as 'lab/1.0 (mail@example.org)'.")] = "",
    exclude: ExcludeOption = [],  # noqa: B006 - Typer copies it
    exclude_images: ExcludeImagesOption = [],  # noqa: B006 - Typer copies it
    reading: InputOptions,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Download the images of pairs with img2dataset.

    In OUT, fetched.parquet holds the pairs with their local images, for `build` and `generate`; rejected.parquet holds
    the others, each with its reason. The same command again requests only what is missing.

    Resize modes: keep_ratio (shorter side), keep_ratio_largest (longer side), center_crop and border (square), no.

    Only http and https URLs with public addresses are requested, after redirects too. Behind a proxy, the proxy
    resolves names and has to refuse private addresses.

    \b
    Examples:
      pairwright fetch pairs.parquet --out images
      pairwright fetch pool.csv --columns image=URL,caption=TEXT --out images --image-size 336 --retries 3
    """
    from pairwright.datasets.readers.pairs import read_pairs
    from pairwright.indexes.fetching.fetch import fetch_images

    options = FetchOptions(
        image_size=image_size,
        resize_mode=resize_mode,
        only_if_bigger=only_if_bigger,
        image_format=image_format,
        quality=quality,
        timeout=timeout,
        processes=processes,
        threads=threads,
        shard_size=shard_size,
        retries=retries,
        ignore_opt_outs=ignore_opt_outs,
        allow_loopback=allow_loopback,
        proxy=proxy,
        user_agent=user_agent,
    )
    pairs = read_pairs(reading.read_options(input_))
    resumable_on_interrupt()
    with report_named_steps("images") as follow:
        result = fetch_images(pairs, out, options, follow, load_exclusion(exclude, images=exclude_images)).as_json()
    emit(result, _lines(result, details=details), as_json=as_json)
    if not result["fetched"]:
        exit_below_target("No image was fetched: rejected.parquet has the reasons.")
    if result["fetched"] < min_success * result["pairs"]:
        exit_below_target(f"Fewer than {min_success:.0%} of the pairs were fetched (--min-success).")


def _lines(result: dict[str, Any], *, details: bool) -> list[str]:
    from pairwright.datasets.rejects import REASONS, rank_reasons

    fetched, pairs = result["fetched"], result["pairs"]
    kept = f"{fetched:,} of {count_phrase(pairs, 'image')} fetched ({share(fetched, pairs)})"
    lines: list[str] = [headline(f"{kept}, {format_size(result['bytes'])}, {result['seconds']} s")]
    if details:
        lines += columns([[name, result[name]] for name in ("urls", "asked", "reused", "bytes")], indent="")
    if result["rejected"]:
        ordered = rank_reasons(result["rejected"])
        rows = [[reason, count, REASONS[reason]] for reason, count in (ordered if details else ordered[:_MAIN])]
        lines += ["", f"Rejected ({sum(result['rejected'].values()):,}):", *columns(rows)]
        lines += [f"  {len(ordered) - len(rows)} more reasons: --details"] if len(rows) < len(ordered) else []
    if skips := SkipCounts.of_kept_rows(result).describe():
        lines += ["", f"Skipped of rows that were read: {skips}"]
    return [*lines, "", f"Written to {result['out']}"]
