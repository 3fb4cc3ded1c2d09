"""``pairwright cache``: contents, export, import and pruning of the cache of model answers."""

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.options.declarations import App, limit_option, output_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.files import check_outputs
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import UsageError

app = App("Describe, export, import and prune the cache of model answers.")

CacheArgument = Annotated[Path, typer.Argument(metavar="CACHE", help="A cache file, or a build directory.")]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@app.command("info")
def info(cache: CacheArgument, *, as_json: JsonOption = False) -> None:
    """Print answers, tokens and bytes in a cache by model.

    \b
    Example:
      pairwright cache info build/mine
    """
    from pairwright.generators.llm.cache.contents import summarize_cache

    summary = summarize_cache(_file(cache))
    head = ["model", "endpoint", "answers", "tokens in", "tokens out", "bytes", "from", "to"]
    rows = [
        [
            share["model"],
            share["endpoint"],
            *(share[name] for name in ("answers", "prompt_tokens", "completion_tokens", "bytes")),
            _date(share["first"]),
            _date(share["last"]),
        ]
        for share in summary["models"]
    ]
    totals = f"{count_phrase(summary['answers'], 'answer')}, {count_phrase(summary['file_bytes'], 'byte')} on disk."
    emit(summary, [*(columns([head, *rows], indent="") if rows else []), totals], as_json=as_json)


@app.command("export")
def export(
    cache: CacheArgument,
    *,
    out: Annotated[Path, output_option(help="JSONL file to write.")],
    as_json: JsonOption = False,
) -> None:
    """Write a cache as JSONL, one answer per line, sorted by key.

    \b
    Example:
      pairwright cache export build/mine --out answers.jsonl
    """
    from pairwright.generators.llm.cache.json_lines import export_cache

    source = _file(cache)
    check_outputs(out, reads=(str(source),))
    answers = export_cache(source, out)
    emit(
        {"answers": answers, "out": str(out)}, [f"{count_phrase(answers, 'answer')} written to {out}."], as_json=as_json
    )


@app.command("import")
def import_(
    cache: CacheArgument,
    lines: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL as `cache export` writes it.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Add the answers of an export to a cache.

    A missing cache is created; existing answers are not changed.

    \b
    Example:
      pairwright cache import llm-cache.sqlite answers.jsonl
    """
    from pairwright.generators.llm.cache.json_lines import import_cache

    found = import_cache(lines, _file(cache))
    result = {"added": found.added, "known": found.known}
    emit(
        result,
        [f"{count_phrase(found.added, 'answer')} added; {found.known:,} {verb_form(found.known, 'exist')} already."],
        as_json=as_json,
    )


@app.command("prune")
def prune(
    cache: CacheArgument,
    *,
    older_than: Annotated[str, limit_option(metavar="AGE", help="Remove older answers, such as 90d or 12h.")] = "",
    model: Annotated[str, limit_option(help="Remove answers of this model.")] = "",
    max_size: Annotated[
        str, limit_option(metavar="SIZE", help="Then remove the oldest until the rest fits, such as 2GB.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the answers; remove nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove answers by age, model or size.

    With --older-than and --model, answers that match both. A removed answer is billed again when it is needed again;
    `cache export` makes a copy.

    \b
    Examples:
      pairwright cache prune build/mine --older-than 90d --dry-run
      pairwright cache prune build/mine --max-size 2GB
    """
    from pairwright.generators.llm.cache.contents import PruneOptions, prune_cache

    if not (older_than or model or max_size):
        raise UsageError("cache prune requires --older-than, --model or --max-size.")
    pruning = PruneOptions(
        model=model,
        older_than=_parse_measure(older_than, _SECONDS, "--older-than", "90d, 12h or 30m") if older_than else None,
        most_bytes=int(_parse_measure(max_size, _BYTES, "--max-size", "500MB or 2GB")) if max_size else None,
    )
    done = prune_cache(_file(cache), pruning, dry_run=dry_run)
    if dry_run:
        note("Nothing was removed (--dry-run).")
    result = {"dropped": done.dropped, "bytes": done.bytes, "kept": done.kept, "dry_run": dry_run}
    verb = "would be removed" if dry_run else "removed"
    emit(
        result,
        [f"{count_phrase(done.dropped, 'answer')} {verb} ({count_phrase(done.bytes, 'byte')}), {done.kept:,} kept."],
        as_json=as_json,
    )


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    from pairwright.flows.llm.model_access import build_cache_path

    return build_cache_path(path)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _parse_measure(text: str, units: dict[str, int], option: str, examples: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]?)b?", text.strip().lower())
    if not match or match[2] not in units:
        raise UsageError(f"{option} {text!r}: write for example {examples}.")
    return float(match[1]) * units[match[2]]
