"""Summary of ``pairwright generate``: what was kept of each type; with --details the most used words and edit positions.

Tables of details are at most 80 columns wide. Words and positions are shown for edited texts, of types with enough rows for
shares to mean something; ``--json`` has all.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pairwright.cli.options.input import skipped_lines
from pairwright.cli.output.console import columns
from pairwright.cli.output.summary import headline, next_step, type_table, warning, wrapped_table

_ENOUGH = 20  # rows of a type


def result_lines(
    result: Mapping[str, Any], *, details: bool = False, bill: Sequence[str] = (), then: str = ""
) -> list[str]:
    """Return the result of a generator (`flows.generating.Work.result`) as lines.

    Args:
        result: see there.
        details: print all reasons, the most used words and where edits begin, too.
        bill: lines on what a model was asked.
        then: command that takes what was written.
    """
    if details:
        account = {kind: each for kind, each in result["account"].items() if each["kept"] >= _ENOUGH}
        tables = [*_type_rows(result["types"], result["account"]), "", *_word_lines(account), *_position_lines(account)]
    else:
        types = [(kind, counts["kept"], counts["rejected"]) for kind, counts in result["types"].items()]
        tables = [*type_table(types, result["captions"], "captions"), ""]
    kept = sum(counts["kept"] for counts in result["types"].values())
    return [
        headline(
            f"{count_phrase(kept, 'text')} for {count_phrase(result['captions'], 'caption')}, {result['seconds']} s"
        ),
        *tables,
        *map(warning, quota_lines(result["limits"])),
        *skipped_lines(result),
        *bill,
        f"Written to {result['out']}",
        *(next_step(f"pairwright {then}") if kept and then else []),
    ]


def nothing_kept(result: Mapping[str, Any]) -> str:
    """Return why a generator kept no text; empty where it kept one.

    Args:
        result: of `flows.generating.Work.result`; ``failed`` where a model was asked.
    """
    types = result["types"].values()
    if any(counts["kept"] for counts in types):
        return ""
    start = f"No text was kept of {count_phrase(result['captions'], 'caption')}"
    failed = result.get("failed", {"rows": 0})
    if failed["rows"] and failed["rows"] >= result["captions"]:
        return f"{start}. Reasons by row: {_reasons(failed['reasons'])}."
    rejected: Counter[str] = Counter()
    for counts in types:
        rejected.update(counts["rejected"])
    return f"{start}. Reasons by candidate: {_reasons(rejected) or 'there was no candidate'}."


def nothing_kept_in_build(stages: Mapping[str, Any]) -> list[str]:
    """Return why stages of a build kept no text: one that asks a model and kept none, or all if none kept any.

    Args:
        stages: of the manifest.
    """
    making = {
        name: each for name, each in stages.items() if each["candidates"] and each["facts"].keys() & {"by_type", "llm"}
    }
    empty = {name: each for name, each in making.items() if not each["kept"]}
    if len(empty) < len(making):
        empty = {name: each for name, each in empty.items() if "llm" in each["facts"]}
    return [
        f"{name}: no text was kept of {count_phrase(each['candidates'], each['unit'])} ({_reasons(each['rejected'])})."
        for name, each in empty.items()
    ]


def count_phrase(number: int, what: str) -> str:
    """Return ``1 caption``, ``2,000 captions``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _type_rows(types: Mapping[str, Any], account: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was tried of each type, made (has a text), kept, and rejected for which reasons."""
    head = ["type", "tried", "made", "kept"] if account else ["type", "made", "kept"]
    rows: list[list[object]] = [[*head]]
    for kind, counts in types.items():
        with_text = account[kind]["made"] if kind in account else counts["made"]
        rows.append([kind, *([counts["made"]] if account else []), with_text, counts["kept"]])
    reasons = ["rejected", *(_reasons(counts["rejected"]) for counts in types.values())]
    return wrapped_table(rows, reasons)


def quota_lines(limits: Mapping[str, Any], of: str = "") -> list[str]:
    """Return a line for each quota that was not met, and for each type that the cap made smaller.

    Args:
        limits: as `balance.Verdict.as_json` tells them.
        of: what stands before each line.
    """
    lines = [_quota_line(kind, told) for kind, told in limits.items()]
    return [of + line for line in lines if line]


def _quota_line(kind: str, told: Mapping[str, Any]) -> str:
    asked, available, given, most = (told[name] for name in ("asked", "available", "given", "most"))
    if given == available if asked is None else given == asked:
        return ""
    quota = "" if asked is None else f"{asked:,} asked, "
    cap = "" if given == available or most is None else f" (cap: {most:,} a word)"
    return f"{kind}: {quota}{available:,} available, {given:,} given{cap}"


def _word_lines(account: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of different words that were put in, and the most used ones with their share of the kept rows."""
    told = {kind: each for kind, each in account.items() if each["words"]}
    if not told:
        return
    rows: list[list[object]] = [["type", "words"], *([kind, each["words"]] for kind, each in told.items())]
    most = [", ".join(_shares(each)) for each in told.values()]
    yield from wrapped_table(rows, ["most used", *most], lines=1)
    yield ""


def _shares(each: Mapping[str, Any]) -> Iterator[str]:
    for word, uses in each["most_used"]:
        yield f"{word} {uses / each['kept']:.1%}"


def _position_lines(account: Mapping[str, Any]) -> Iterator[str]:
    """Yield where in the caption edits begin: of each type, the share in each tenth."""
    if not account:
        return
    yield "Where edits begin, % of a type's edits in each tenth of the caption:"
    bins = range(len(next(iter(account.values()))["positions"]))
    rows: list[list[object]] = [["type", *(f"{at + 1}." for at in bins)]]
    for kind, each in account.items():
        total = max(sum(each["positions"]), 1)
        rows.append([kind, *(round(100 * count / total) for count in each["positions"])])
    yield from columns(rows, indent="")
    yield ""


def _reasons(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {n:,}" for reason, n in sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
