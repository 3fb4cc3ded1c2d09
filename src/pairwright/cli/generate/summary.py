"""Summary of ``pairwright generate``: kept rows of each type; with --details, most used words and edit positions.

Tables of details are at most 80 columns wide. Words and positions are shown for types with at least `_ENOUGH` kept
rows; ``--json`` has all.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pairwright.cli.output.console import columns
from pairwright.cli.output.summary import (
    headline,
    next_step,
    quota_lines,
    skipped_lines,
    type_table,
    warning,
    wrapped_table,
)
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.rejects import list_reasons

_ENOUGH = 20  # rows of a type, and captions to judge by
_LACKS = ("no_edit", "no_candidate")  # nothing to edit, and nothing to put in
# Kept, and lacking, of all rows; captions of photographs: 37% and 55%, with a pool of the web 11% and 84%.
_FEW, _MOST = 1 / 8, 2 / 3


def result_lines(
    result: Mapping[str, Any],
    *,
    details: bool = False,
    bill: Sequence[str] = (),
    next_command: Sequence[object] = (),
    unit: str = "caption",
) -> list[str]:
    """Return the result of a generator as lines.

    Args:
        result: of `flows.commands.generate.GenerateCounts.result`.
        details: also print all reasons, the most used words and the positions of edits.
        bill: lines about the cost of a model.
        next_command: words of the command that reads OUT.
        unit: what the texts are made of.
    """
    if details:
        account = {kind: each for kind, each in result["account"].items() if each["kept"] >= _ENOUGH}
        tables = [*_type_rows(result["types"], result["account"]), "", *_word_lines(account), *_position_lines(account)]
    else:
        types = [(kind, counts["kept"], counts["rejected"]) for kind, counts in result["types"].items()]
        tables = [*type_table(types, result["captions"], f"{unit}s"), ""]
    kept = sum(counts["kept"] for counts in result["types"].values())
    return [
        headline(f"{count_phrase(kept, 'text')} for {count_phrase(result['captions'], unit)}, {result['seconds']} s"),
        *tables,
        *_length_lines(result),
        *map(warning, _lack_lines(result)),
        *map(warning, quota_lines(result["limits"])),
        *skipped_lines(result),
        *_support_lines(result.get("support", {})),
        *bill,
        f"Written to {result['out']}",
        *(next_step(*next_command) if kept and next_command else []),
    ]


def _length_lines(result: Mapping[str, Any]) -> list[str]:
    """Return how often a negative is longer than its true text, as additions always are: a text-only model would use it."""
    lengths, types = result.get("lengths", {}), result["types"]
    if not (pairs := sum(lengths.values())):
        return []
    shares = ", ".join(f"{lengths[name] / pairs:.0%} {name}" for name in ("longer", "equal", "shorter"))
    added = sum(counts["kept"] for kind, counts in types.items() if kind.startswith("add-"))
    one_sided = added and not any(kind.startswith("beside: ") for kind in types)
    fix = f"refine rejects {count_phrase(added, 'addition')}, as all are longer. Make them with --both-sides."
    return [f"Negatives against their true texts: {shares}.", *([fix] if one_sided else [])]


def _lack_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield why nearly nothing was kept where most captions lack what is edited, or the pool what replaces it.

    Swaps do not count: most captions have no two phrases to exchange, whatever the pool.
    """
    counts = [each for kind, each in result["types"].items() if not kind.startswith("swap-")]
    rows, kept = sum(each["made"] for each in counts), sum(each["kept"] for each in counts)
    lacks = {code: sum(each["rejected"].get(code, 0) for each in counts) for code in _LACKS}
    if rows and result["captions"] >= _ENOUGH and kept <= _FEW * rows and sum(lacks.values()) >= _MOST * rows:
        why = "the captions are another kind of text than the pool, or do not describe images"
        yield f"Nearly nothing was kept ({list_reasons(lacks)}): {why}. Set --pool to captions of their kind."


def _support_lines(support: Mapping[str, int]) -> Iterator[str]:
    if things := support.get("things", 0):
        unsupported = support["unsupported"]
        yield (
            f"{count_phrase(support['texts'], 'text')} compared with captions and boxes: {unsupported:,} of {things:,} things "
            f"({unsupported / things:.0%}) have no support there."
        )


def nothing_kept(result: Mapping[str, Any]) -> str:
    """Return why a generator kept no text; empty where it kept one.

    Args:
        result: of `flows.commands.generate.GenerateCounts.result`, with ``failed`` where a model was asked.
    """
    types = result["types"].values()
    if any(counts["kept"] for counts in types):
        return ""
    start = f"No text was kept of {count_phrase(result['captions'], 'caption')}"
    failed = result.get("failed", {"rows": 0})
    if failed["rows"] and failed["rows"] >= result["captions"]:
        return f"{start}. Reasons by row: {list_reasons(failed['reasons'])}."
    rejected: Counter[str] = Counter()
    for counts in types:
        rejected.update(counts["rejected"])
    return (
        f"{start}. Reasons by candidate: {list_reasons(rejected) or 'there was no candidate'}.{_only_reason(rejected)}"
    )


def _only_reason(rejected: Mapping[str, int]) -> str:
    """Return what a reason means if it is that of all rows: then no caption, but the command or its input is to change."""
    from pairwright.generators.edits.written.reasons import REASONS

    code = next(iter(rejected), "") if len(rejected) == 1 else ""
    return f" {code}: {REASONS[code]}." if code in REASONS else ""


def _type_rows(types: Mapping[str, Any], account: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of each type: tried, made (with a text), kept, and rejected by reason."""
    head = ["type", "tried", "made", "kept"] if account else ["type", "made", "kept"]
    rows: list[list[object]] = [[*head]]
    for kind, counts in types.items():
        with_text = account[kind]["made"] if kind in account else counts["made"]
        rows.append([kind, *([counts["made"]] if account else []), with_text, counts["kept"]])
    reasons = ["rejected", *(list_reasons(counts["rejected"]) for counts in types.values())]
    return wrapped_table(rows, reasons)


def _word_lines(account: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of distinct inserted words, and the most used ones with their share of the kept rows."""
    with_words = {kind: each for kind, each in account.items() if each["words"]}
    if not with_words:
        return
    rows: list[list[object]] = [["type", "words"], *([kind, each["words"]] for kind, each in with_words.items())]
    most = [", ".join(_shares(each)) for each in with_words.values()]
    yield from wrapped_table(rows, ["most used", *most], lines=1)
    yield ""


def _shares(each: Mapping[str, Any]) -> Iterator[str]:
    for word, uses in each["most_used"]:
        yield f"{word} {uses / each['kept']:.1%}"


def _position_lines(account: Mapping[str, Any]) -> Iterator[str]:
    """Yield the positions of edits: the share of each type in each tenth of the caption."""
    if not account:
        return
    yield "Position of edits, % of a type's edits in each tenth of the caption:"
    bins = range(len(next(iter(account.values()))["positions"]))
    rows: list[list[object]] = [["type", *(f"{at + 1}." for at in bins)]]
    for kind, each in account.items():
        total = max(sum(each["positions"]), 1)
        rows.append([kind, *(round(100 * count / total) for count in each["positions"])])
    yield from columns(rows, indent="")
    yield ""
