"""Parts of a command's summary: headline, table of types, main reasons of rejection, next step.

A summary is short: the rows kept of each type and the two main reasons of rejection. ``--details`` adds tables;
``--json`` always has everything. Lines have a tone, which `console.emit` shows as a colour on terminals.
"""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pairwright.cli.output.console import StyledLine, columns
from pairwright.datasets.rejects import list_reasons

TypeCounts = tuple[str, int, Mapping[str, int]]
_MAIN = 2
_WIDTH = 80
_GAP = "  "


def headline(text: str) -> StyledLine:
    """Return the first line of a summary."""
    return StyledLine(text, "bold")


def warning(text: str) -> StyledLine:
    """Return a line about a shortfall."""
    return StyledLine(text, "yellow")


def next_step(*words: object) -> list[str]:
    """Return the line that suggests the next command, quoted so that a shell reads paths with spaces as one word.

    Args:
        words: of the command, without ``pairwright``.
    """
    return [StyledLine(f"Next: pairwright {shlex.join(map(str, words))}", "cyan")]


def table(rows: Sequence[Sequence[object]]) -> list[str]:
    """Return rows as aligned columns; the first row is the head."""
    head, *lines = columns(rows, indent="")
    return [StyledLine(head, "faint"), *lines]


def type_table(types: Sequence[TypeCounts], whole: int, unit: str) -> list[str]:
    """Return a table of the rows kept of each type, with the main reasons of rejection.

    Beside the number is its share of ``unit``, or the number per unit where a type has more rows than there are units.

    Args:
        types: name, number of kept rows and rejected rows by reason of each type.
        whole: number of ``unit``.
        unit: plural noun, such as "captions".
    """
    several = any(kept > whole for _, kept, _ in types)
    head, form = (f"per {unit.removesuffix('s')}", ".2f") if several else (f"of {unit}", ".1%")
    rows: list[list[object]] = [["type", "kept", head]]
    rows += [[kind, kept, format(kept / whole if whole else 0, form).rjust(len(head))] for kind, kept, _ in types]
    first, *lines = wrapped_table(rows, ["mainly rejected", *(main_reasons(rejected) for _, _, rejected in types)])
    return [StyledLine(first, "faint"), *lines]


def main_reasons(rejected: Mapping[str, int]) -> str:
    """Return the two most frequent reasons with their counts."""
    return list_reasons(rejected, _MAIN)


def shown_reasons(rejected: Mapping[str, int], *, details: bool) -> str:
    """Return the two most frequent reasons, all with ``details``; "..." stands for reasons that are not shown."""
    shown = list_reasons(rejected) if details else main_reasons(rejected)
    return shown if shown == list_reasons(rejected) else f"{shown}, ..."


def rejected_line(rejected: Mapping[str, int], *, details: bool) -> list[str]:
    """Return the line of rejected rows by reason, none if there are none."""
    reasons = shown_reasons(rejected, details=details)
    return [f"rejected: {reasons}"] if reasons else []


def share(part: int, whole: int) -> str:
    """Return ``78.7%``."""
    return f"{part / whole if whole else 0:.1%}"


def share_of(part: int, whole: int) -> str:
    """Return ``236 (78.7%)``."""
    return f"{part:,} ({share(part, whole)})"


def wrapped_table(rows: Sequence[Sequence[object]], last: Sequence[str], *, lines: int | None = None) -> Iterator[str]:
    """Yield a table of at most 80 columns whose last column is wrapped at commas.

    Args:
        rows: all columns but the last; the first row is the head.
        last: cells of the last column.
        lines: lines of a cell; the rest is cut. None: unlimited.
    """
    texts = columns(rows, indent="")
    start = max(map(len, texts)) + len(_GAP)
    for text, cell in zip(texts, last, strict=True):
        wrapped = textwrap.wrap(cell.replace(" ", "\0").replace(",\0", ", "), _WIDTH - start) or [""]
        for number, line in enumerate(wrapped[:lines]):
            end = line.rstrip(",") if lines == number + 1 else line
            yield ((text if not number else "").ljust(start) + end.replace("\0", " ")).rstrip()


def skipped_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a line about skipped rows and captions of the input, if there are any."""
    from pairwright.datasets.readers.skip_counts import describe_skip_counts

    skips = describe_skip_counts(result)
    return [f"Skipped: {skips}"] if skips else []


def quota_lines(limits: Mapping[str, Any], of: str = "") -> list[str]:
    """Return a line for each quota that was not met, and for each type that the share of a word reduced.

    Args:
        limits: of `generators.balance.BalanceResult.as_json`.
        of: prefix of each line.
    """
    lines = [_quota_line(kind, facts) for kind, facts in limits.items()]
    return [of + line for line in lines if line]


def _quota_line(kind: str, facts: Mapping[str, Any]) -> str:
    wanted, available, kept, most = (facts[name] for name in ("asked", "available", "given", "most"))
    if kept == available if wanted is None else kept == wanted:
        return ""
    quota = "" if wanted is None else f"{wanted:,} requested, "
    cap = "" if kept == available or most is None else f" (at most {most:,} per word)"
    return f"{kind}: {quota}{available:,} available, {kept:,} kept{cap}"
