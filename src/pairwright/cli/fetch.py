"""``pairwright fetch``: download the images of pairs that hold URLs."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.options.exclusion import load_exclusion
from pairwright.cli.options.input import (
    ColumnsOption,
    ExplodeOption,
    FormatOption,
    JsonOption,
    OnErrorOption,
    text_options,
)
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption, headline, share
from pairwright.datasets.progress import report_named_steps


@with_progress
def fetch(
    input_: Annotated[
        str, typer.Argument(metavar="PAIRS", help="Pairs whose images are URLs: .parquet, .jsonl, .csv, .tsv, ...")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder of the downloads; give it again to go on.")],
    image_size: Annotated[int, typer.Option("--image-size", min=16, help="Pixels that --resize-mode aims at.")] = 512,
    resize_mode: Annotated[
        Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "no"],
        typer.Option(help="Size of the shorter side, of the longer one, or a square."),
    ] = "keep_ratio",
    only_if_bigger: Annotated[
        bool, typer.Option("--only-if-bigger/--always-resize", help="Leave smaller pictures at their size.")
    ] = True,
    image_format: Annotated[Literal["jpg", "png", "webp"], typer.Option(help="Of the copies.")] = "jpg",
    quality: Annotated[
        int, typer.Option(help="1-100; for png 0-9, the effort; -1: 95 for jpg, 90 for webp, 6 for png.")
    ] = -1,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for each wait on the network; an image may take 6 times that.")
    ] = 10.0,
    retries: Annotated[
        int, typer.Option(min=0, help="Further tries for what may pass: timeouts, busy servers, lost connections.")
    ] = 1,
    processes: Annotated[int, typer.Option(min=0, help="At most; 0: one a core.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Downloads at a time in each process.")] = 32,
    shard_size: Annotated[int, typer.Option("--shard-size", min=2, help="Images a tar.")] = 1000,
    min_success: Annotated[
        float, typer.Option("--min-success", min=0, max=1, help="Exit 3 when a smaller share of the pairs is fetched.")
    ] = 0.0,
    ignore_opt_outs: Annotated[
        bool, typer.Option("--ignore-opt-outs", help="Fetch what a site keeps from AI training (X-Robots-Tag).")
    ] = False,
    allow_loopback: Annotated[
        bool, typer.Option("--allow-loopback", help="Fetch from this machine's own servers too.")
    ] = False,
    proxy: Annotated[
        str, typer.Option("--proxy", help="http://host:port; else http_proxy, https_proxy and no_proxy count.")
    ] = "",
    user_agent: Annotated[
        str, typer.Option("--user-agent", help="Who asks, such as 'lab/1.0 (mail@example.org)'.")
    ] = "",
    exclude: Annotated[
        list[str],
        typer.Option(
            "--exclude", help="Evaluation data that must not leak: pairs, a folder of images, a .txt. Repeat."
        ),
    ] = [],  # noqa: B006 - Typer copies it
    columns_: ColumnsOption = "",
    format_: FormatOption = "",
    explode: ExplodeOption = False,
    on_error: OnErrorOption = "stop",
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Download the images of pairs with img2dataset, and write the pairs with their local copies.

    In OUT, fetched.parquet holds the pairs whose images came, for `build` and `generate` to read, and rejected.parquet
    the others, each with its reason. The same command again asks only for what is missing.

    Only http and https, and only public addresses, are asked, after redirects too. Through a proxy the proxy
    resolves names and connects, and has to refuse private addresses itself.

    \b
    Examples:
      pairwright fetch pairs.parquet --out images
      pairwright fetch pool.csv --columns image=URL,caption=TEXT --out images --image-size 336 --retries 3
    """
    from pairwright.datasets.readers.pairs import read_pairs
    from pairwright.indexes.fetching.fetch import fetch_images
    from pairwright.indexes.fetching.options import FetchOptions

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
    reading = text_options(input_, columns_, format_, explode=explode, on_error=on_error)
    resumable_on_interrupt()
    with report_named_steps("images") as follow:
        result = fetch_images(read_pairs(reading), out, options, follow, load_exclusion(exclude)).as_json()
    emit(result, _lines(result, details=details), as_json=as_json)
    if not result["fetched"]:
        exit_below_target("No image was fetched: rejected.parquet has the reason of each.")
    if result["fetched"] < min_success * result["pairs"]:
        exit_below_target(f"Fewer than {min_success:.0%} of the pairs were fetched (--min-success).")


_MAIN = 2  # reasons of a summary


def _lines(result: dict[str, Any], *, details: bool) -> list[str]:
    from pairwright.datasets.rejects import REASONS

    fetched, pairs = result["fetched"], result["pairs"]
    kept = f"{fetched:,} of {pairs:,} images fetched ({share(fetched, pairs)})"
    lines: list[str] = [headline(f"{kept}, {result['bytes'] / 1e6:,.1f} MB, {result['seconds']} s")]
    if details:
        lines += columns([[name, result[name]] for name in ("urls", "asked", "reused", "bytes")], indent="")
    if result["rejected"]:
        ordered = sorted(result["rejected"].items(), key=lambda item: (-item[1], item[0]))
        rows = [[reason, count, REASONS[reason]] for reason, count in (ordered if details else ordered[:_MAIN])]
        lines += ["", f"Rejected ({sum(result['rejected'].values()):,}):", *columns(rows)]
        lines += [f"  {len(ordered) - len(rows)} more reasons: --details"] if len(rows) < len(ordered) else []
    return [*lines, "", f"Written to {result['out']}"]
