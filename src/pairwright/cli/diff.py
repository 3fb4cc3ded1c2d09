"""``pairwright diff``: the differences between two builds, or between two files of candidate rows."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.options.declarations import output_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.files import check_outputs, write_table

_SHOWN = 40  # characters of a setting's value


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A build directory, or a file of candidate rows.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    *,
    out: Annotated[Path | None, output_option(help="File of all differing rows: .parquet, .jsonl or .csv.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two builds (settings, counts, pairs, texts, shards), or two files of candidate rows.

    \b
    Examples:
      pairwright diff build/birds-monday build/birds
      pairwright diff build/birds-monday build/birds --out changes.jsonl
      pairwright diff swap_att.json swap_att_v2.json
    """
    from pairwright.datasets.build_manifest import is_build
    from pairwright.filters.candidates.files import find_row_files
    from pairwright.flows.commands.build_diff import changed_rows, compare

    check_outputs(out)
    if not any(map(is_build, (a, b))) and all(path.is_file() or find_row_files(path) for path in (a, b)):
        _compare_candidates(a, b, out, as_json=as_json)
        return
    result = compare(a, b)
    if out:
        write_table(changed_rows(a, b), out)
    equal = result["same"] and not (result["config"] or result["environment"])
    lines = [f"{a} and {b}: no differences."] if equal else _lines(result)
    emit({**result, "out": str(out) if out else ""}, lines + ([f"Rows: {out}"] if out else []), as_json=as_json)


def _compare_candidates(a: Path, b: Path, out: Path | None, *, as_json: bool) -> None:
    from pairwright.flows.commands.candidate_diff import compare_candidates

    found = compare_candidates(a, b)
    if out:
        write_table(found.differing_rows(), out)
    result = found.as_json()
    lines = [f"{a} and {b}: no differences."]
    if not result["same"]:
        heads: list[object] = ["", "A", "B", "added", "removed", "changed"]
        types = [_counted(name, counts) for name, counts in result["types"].items()]
        rows = types if len(types) == 1 else [_counted("all rows", result["rows"]), *types]
        fields = ", ".join(f"{name} {count:,}" for name, count in result["rows"]["fields"].items())
        lines = [*_right_aligned([heads, *rows]), *([f"Changed: {fields}"] if fields else [])]
    paths = {"a": str(a), "b": str(b), "out": str(out) if out else ""}
    emit({**paths, **result}, lines + ([f"Rows: {out}"] if out else []), as_json=as_json)


def _lines(result: dict[str, Any]) -> list[str]:
    lines = ["Pairs, texts and shards are equal."] if result["same"] else []
    for title in ("config", "environment"):
        if values := result[title]:
            rows = [["name", "A", "B"], *([each["name"], _short(each["a"]), _short(each["b"])] for each in values)]
            lines += ["", f"{title}", *columns(rows)]
    if result["same"]:
        return lines
    heads = ["", "A", "B", "added", "removed", "changed"]
    rows = [heads, _counted("pairs", result["pairs"])]
    if any(result["chosen"][side] != result["pairs"][side] for side in ("a", "b")):
        rows.append(_counted("chosen pairs", result["chosen"]))
    rows += [_counted(name, counts) for name, counts in result["annotations"].items()]
    rows.append(_counted("shards", result["shards"]))
    lines += ["", *_right_aligned(rows)]
    texts = sum((Counter(counts["fields"]) for counts in result["annotations"].values()), Counter[str]())
    for what, fields in (("pairs", result["pairs"]["fields"]), ("texts", texts)):
        if fields:
            lines.append(f"Changed in {what}: " + ", ".join(f"{name} {count:,}" for name, count in fields.items()))
    lines += ["", "kept by each stage", *_right_aligned([["stage", "A", "B", "B - A"], *_stage_rows(result["stages"])])]
    return lines[1:]  # without the empty line above the first title


def _counted(name: str, counts: dict[str, Any]) -> list[object]:
    return [name, *(counts.get(column, "") for column in ("a", "b", "added", "removed", "changed"))]


def _stage_rows(stages: dict[str, Any]) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, stage in stages.items():
        kept = [stage[side]["kept"] if side in stage else "-" for side in ("a", "b")]
        both = "a" in stage and "b" in stage
        rows.append([name, *kept, f"{stage['b']['kept'] - stage['a']['kept']:+,}" if both else ""])
    return rows


def _right_aligned(rows: list[list[object]]) -> list[str]:
    """Return rows as aligned lines, all columns but the first to the right."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in texts) for place in range(len(texts[0]))]
    return [
        "  "
        + "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in texts
    ]


def _short(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
