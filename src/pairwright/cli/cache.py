"""``pairwright cache``: look at the answers that were paid for, carry them elsewhere, drop what is not wanted."""

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.datasets.errors import UsageError

app = typer.Typer(
    help="Look at kept answers of models; export, import and prune them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

CacheArgument = Annotated[Path, typer.Argument(metavar="CACHE", help="The cache's file, or a build directory.")]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@app.command("info", short_help="Tell how many answers there are, of which models.")
def info(cache: CacheArgument, *, as_json: JsonOption = False) -> None:
    """Tell how many answers a cache holds, of which models, with their tokens and bytes.

    \b
    Example:
      pairwright cache info build/mine
    """
    from pairwright.generators.llm.cache.contents import read_contents

    summary = read_contents(_file(cache)).summary()
    head = ["model", "endpoint", "answers", "tokens in", "tokens out", "bytes", "from", "to"]
    rows = [
        [
            share["model"],
            share["endpoint"],
            *(share[name] for name in ("answers", "prompt_tokens", "completion_tokens", "bytes")),
            _parse_age(share["first"]),
            _parse_age(share["last"]),
        ]
        for share in summary["models"]
    ]
    totals = f"{summary['answers']:,} answers, {summary['file_bytes']:,} bytes on disk."
    emit(summary, [*(columns([head, *rows], indent="") if rows else []), totals], as_json=as_json)


@app.command("export", short_help="Write the answers as JSONL.")
def export(
    cache: CacheArgument,
    *,
    out: Annotated[Path, typer.Option("--out", help="The JSONL file.")],
    as_json: JsonOption = False,
) -> None:
    """Write a cache as JSONL, one answer a line, sorted by key: the same answers give the same file.

    \b
    Example:
      pairwright cache export build/mine --out answers.jsonl
    """
    from pairwright.generators.llm.cache.json_lines import export_cache

    source = _file(cache)
    check_outputs(out, reads=(str(source),))
    answers = export_cache(source, out)
    emit({"answers": answers, "out": str(out)}, [f"{answers:,} answers written to {out}."], as_json=as_json)


@app.command("import", short_help="Add the answers of an export.")
def import_(
    cache: CacheArgument,
    lines: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL as `cache export` writes it.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Add the answers of an export to a cache, which is made when missing. Answers that it has stay as they are.

    \b
    Example:
      pairwright cache import llm-cache.sqlite answers.jsonl
    """
    from pairwright.generators.llm.cache.json_lines import import_cache

    found = import_cache(lines, _file(cache))
    result = {"added": found.added, "known": found.known}
    emit(result, [f"{found.added:,} answers added; {found.known:,} were there already."], as_json=as_json)


@app.command("prune", short_help="Drop answers by age, model or size.")
def prune(
    cache: CacheArgument,
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Drop answers that came before, such as 90d or 12h.")
    ] = "",
    model: Annotated[str, typer.Option("--model", help="Drop answers of this model.")] = "",
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Then drop the oldest until the rest fits, such as 2GB.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Drop answers by age, model or size. With --older-than and --model, those that both fit.

    What is dropped is paid for again when it is asked for again; `cache export` first keeps a copy.

    \b
    Examples:
      pairwright cache prune build/mine --older-than 90d --dry-run
      pairwright cache prune build/mine --max-size 2GB
    """
    from pairwright.generators.llm.cache.contents import PruneOptions
    from pairwright.generators.llm.cache.contents import prune_cache as drop

    if not (older_than or model or max_size):
        raise UsageError("cache prune: say what to drop, with --older-than, --model or --max-size.")
    pruning = PruneOptions(
        model=model,
        older_than=_parse_measure(older_than, _SECONDS, "--older-than", "90d, 12h or 30m") if older_than else None,
        most_bytes=int(_parse_measure(max_size, _BYTES, "--max-size", "500MB or 2GB")) if max_size else None,
    )
    done = drop(_file(cache), pruning, dry_run=dry_run)
    if dry_run:
        note("Nothing was dropped (--dry-run).")
    result = {"dropped": done.dropped, "bytes": done.bytes, "kept": done.kept, "dry_run": dry_run}
    verb = "would go" if dry_run else "dropped"
    emit(result, [f"{done.dropped:,} answers {verb} ({done.bytes:,} bytes), {done.kept:,} kept."], as_json=as_json)


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    from pairwright.flows.llm.model_access import build_cache_path

    return build_cache_path(path)


def _parse_age(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _parse_measure(written: str, units: dict[str, int], option: str, examples: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]?)b?", written.strip().lower())
    if not match or match[2] not in units:
        raise UsageError(f"{option} {written!r}: write for example {examples}.")
    return float(match[1]) * units[match[2]]
