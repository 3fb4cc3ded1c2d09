"""``pairwright diff``: what differs between two builds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.overwrite_checks import check_outputs

_SHOWN = 40  # characters of a setting's value


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A finished build directory.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another, which is held against it.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write every row that differs to this .parquet, .jsonl or .csv.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what B has that A has not, and the other way round: settings, counts, pairs, texts, shards.

    \b
    Examples:
      pairwright diff build/birds-monday build/birds
      pairwright diff build/birds-monday build/birds --out changes.jsonl
    """
    from pairwright.flows.commands.diff import changed_rows, compare

    check_outputs(out)
    told = compare(a, b)
    if out:
        from pairwright.cli.output.tables import write_table

        write_table(changed_rows(a, b), out)
    lines = _lines(told) if _has_differences(told) else [f"{a} and {b}: nothing differs."]
    emit({**told, "out": str(out) if out else ""}, lines + ([f"Rows: {out}"] if out else []), as_json=as_json)


def _has_differences(told: dict[str, Any]) -> bool:
    return not told["same"] or bool(told["config"] or told["environment"])


def _lines(told: dict[str, Any]) -> list[str]:
    lines = ["Pairs, texts and shards are the same."] if told["same"] else []
    for title in ("config", "environment"):
        if told[title]:
            rows = [["name", "A", "B"], *([each["name"], _short(each["a"]), _short(each["b"])] for each in told[title])]
            lines += ["", f"{title}", *columns(rows)]
    if told["same"]:
        return lines
    heads = ["", "A", "B", "added", "removed", "changed"]
    rows = [heads, _counted("pairs", told["pairs"]), _counted("pairs that went on", told["chosen"])]
    rows += [_counted(name, counts) for name, counts in told["annotations"].items()]
    rows.append(_counted("shards", told["shards"]))
    lines += ["", *_right_aligned(rows)]
    fields = told["pairs"]["fields"]
    if fields:
        lines += ["", "Changed in pairs: " + ", ".join(f"{name} {count:,}" for name, count in fields.items())]
    lines += ["", "kept by each stage", *_right_aligned([["stage", "A", "B", "B - A"], *_stage_rows(told["stages"])])]
    return lines[1:]  # nothing stands above the first title


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
    """Return rows as aligned lines, all but the first column set right."""
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
