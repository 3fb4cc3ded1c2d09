"""``pairwright mix``: one instruction set from several sources of conversations."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.declarations import limit_option, output_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import emit, list_counts
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, next_step, table
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.progress import report_named_steps

if TYPE_CHECKING:
    from pairwright.flows.mixtures.report import MixtureReport

_LONGEST_NAME = 18  # so that the table fits 80 columns


@with_progress
def mix(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file with `sources:`.")],
    *,
    out: Annotated[Path | None, output_option(help="LLaVA .json, .jsonl, .parquet, or a folder of shards.")] = None,
    to: Annotated[
        Literal["llava", "openai", "parquet", "webdataset"] | None,
        output_option(help="Layout; else by extension."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed.", show_default="of CONFIG")] = None,
    keep: Annotated[
        float | None, limit_option(min=0, max=1, help="Share of the mixture to keep.", show_default="of CONFIG")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the table; write nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Mix conversations of several sources.

    Rows are sampled, shuffled and deduplicated.
    A report next to OUT (.mixture.json) holds the table, the seed, and checksums of all files.

    \b
    Example of a CONFIG:
      sources:
        - path: llava_instruct.json
          image_root: coco/train2017
        - path: vqa.jsonl
          columns: {question: q, answer: a}
          prompt: short
          count: 2000

    \b
    Examples:
      pairwright mix mixture.yaml --out instructions.json
      pairwright mix mixture.yaml --keep 0.5 --out half.json
    """
    from pairwright.datasets.errors import UsageError
    from pairwright.flows.mixtures.config import load_mixture
    from pairwright.flows.mixtures.mixing import MixtureRequest
    from pairwright.flows.mixtures.mixing import mix as run
    from pairwright.flows.mixtures.report import report_file

    if out is None and not dry_run:
        raise UsageError("--out is required: a file or folder to write. Or give --dry-run.")
    if keep == 0:
        raise UsageError("--keep 0 keeps nothing. Give a share above 0.")
    changes = {name: value for name, value in (("seed", seed), ("keep", keep)) if value is not None}
    settings = load_mixture(config).model_copy(update=changes)
    check_outputs(None if dry_run else out)
    with report_named_steps() as follow:
        report = run(MixtureRequest(settings, out, to or "", dry_run), lambda what, done: follow(what, done, 0))
    result: dict[str, Any] = {
        "rows": report.rows,
        "image_root": str(report.image_root or ""),
        "sources": report.sources(),
        "files": [str(path) for path in report.files],
        "report": str(report_file(out)) if out and not dry_run else "",
    }
    emit(result, list(_lines(report, result["report"])), as_json=as_json)
    if not report.rows:
        exit_below_target("No row was taken: all sources are empty, or all their rows were rejected.")


def _lines(report: "MixtureReport", written: str) -> Iterator[str]:
    sources = report.sources()
    yield headline(f"{count_phrase(report.rows, 'row')} of {count_phrase(len(sources), 'source')}")
    yield from _table(sources, report.rows)
    yield ""
    for source in sources:
        yield from _rejection_lines(source)
    if report.image_root and (report.out is None or report.out.suffix):  # shards contain images
        yield f"image paths are relative to {report.image_root}"
        if tars := [source["name"] for source in sources if source["images_in_tars"]]:
            yield f"{', '.join(tars)}: images are in tars; unpack each NAME.tar into NAME/ next to it"
        if tables := [source["name"] for source in sources if source["images_in_tables"]]:
            yield f"{', '.join(tables)}: images are in tables, which trainers cannot read; with a folder as --out they are packed"
    if written:
        yield f"Written to {report.out}; report: {written}"
        if report.rows and report.out is not None and not report.out.suffix:  # a folder of shards
            yield from next_step("inspect", report.out)


def _table(sources: list[dict[str, Any]], rows: int) -> list[str]:
    written = "turns" in sources[0]
    head = ["source", "found", "asked", "taken", "share", "duplicates", *(("turns", "words") if written else ())]
    rows_: list[list[object]] = [list(head)]
    for source in sources:
        name = source["name"]
        short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        numbers = [short, source["found"], source["asked"], source["taken"], f"{source['share']:6.1%}"]
        held = (source["turns"], f"{source['mean_answer_words']:5.1f}") if written else ()
        rows_.append([*numbers, sum(source["duplicates"].values()), *held])
    totals = [sum(source[name] for source in sources) for name in ("found", "asked")]
    twice = sum(sum(source["duplicates"].values()) for source in sources)
    rows_.append(["all", *totals, rows, f"{1:6.1%}", twice, *_contents_line(sources, written=written)])
    return table(rows_)


def _contents_line(sources: list[dict[str, Any]], *, written: bool) -> tuple[object, ...]:
    if not written:
        return ()
    turns = sum(source["turns"] for source in sources)
    words = sum(source["mean_answer_words"] * source["turns"] for source in sources)
    return turns, f"{words / turns if turns else 0:5.1f}"


def _rejection_lines(source: dict[str, Any]) -> Iterator[str]:
    """Yield the rejected, omitted and duplicate rows of a source."""
    for outcome, reasons in (("rejected", source["refused"]), ("omitted", source["left_out"])):
        if reasons:
            yield f"{source['name']}: {sum(reasons.values()):,} {outcome} ({list_counts(reasons)})"
    for other, number in source["duplicates"].items():
        owner = "itself" if other == source["name"] else other
        yield f"{source['name']}: {count_phrase(number, 'duplicate')} of rows in {owner}"
