"""Review report: decisions by reviewer, the share of bad negatives with its interval, and Cohen's kappa.

A negative is *bad* when its verdict is reject or fix: it was true of the image, or no sentence. The share of bad
negatives among the reviewed rows bounds that of the others (Wilson, 95%) if the reviewed rows are a fair sample: those
of `--sample`, or any prefix of the order of review. Unsure rows count in no share; the bound is also given with all of
them counted as bad. The interval takes rows as independent; rows of one image are not quite.

Kappa (Cohen 1960) is the agreement beyond what two reviewers reach by chance with the same frequencies of decisions:
(observed - expected) / (1 - expected). 1 is full agreement, 0 chance level, below 0 less than that. SciPy has no kappa;
scikit-learn and statsmodels, which have, are no dependencies.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from pairwright.filters.metrics.confidence_intervals import wilson_interval
from pairwright.filters.review.decisions import DECISION_WORDS, ReviewVerdicts, RowVerdict, was_bad


def build_review_report(entering: pl.DataFrame, judged: ReviewVerdicts) -> dict[str, Any]:
    """Return the report, JSON-ready.

    Args:
        entering: the rows that could be reviewed, with ``id`` and ``type`` (`rows.ReviewRows.entering`).
        judged: the verdicts on them.

    Returns:
        ``rows``, ``reviewed``, ``reviewers`` (name to decision to number), ``bad`` and ``by_type`` (see `_share`),
        ``agreement`` (one entry per pair of reviewers: ``reviewers``, ``rows``, ``agreed``, ``kappa``, ``table``; null
        where undefined), ``disagreements`` (id to reviewer to decision), ``uncounted`` (reason to number).
    """
    kinds: dict[str, list[str]] = {}
    for id_, kind in entering.select("id", "type").iter_rows():
        kinds.setdefault(kind, []).append(id_)
    verdicts = judged.verdicts
    names = sorted({name for by_reviewer in judged.decisions.values() for name in by_reviewer})
    return {
        "rows": len(entering),
        "reviewed": len(verdicts),
        "reviewers": {name: _count_decisions(judged, name) for name in names},
        "bad": _measure_share(len(entering), list(verdicts.values())),
        "by_type": {
            kind: _measure_share(len(ids), [verdicts[id_] for id_ in ids if id_ in verdicts])
            for kind, ids in sorted(kinds.items())
        },
        "agreement": [_compare_reviewers(judged, *two) for two in combinations(names, 2)],
        "disagreements": {
            id_: dict(verdict.by_reviewer)
            for id_, verdict in sorted(verdicts.items())
            if len(set(verdict.by_reviewer.values())) > 1
        },
        "uncounted": judged.uncounted,
    }


def _count_decisions(judged: ReviewVerdicts, name: str) -> dict[str, int]:
    counts = Counter(by_reviewer[name].decision for by_reviewer in judged.decisions.values() if name in by_reviewer)
    return {word: counts[word] for word in DECISION_WORDS}


def _measure_share(rows: int, verdicts: Sequence[RowVerdict]) -> dict[str, Any]:
    """Return rows, seen (decided), unsure, found (bad), share, low, high, high_with_unsure, rest, rest_at_most."""
    words = Counter(verdict.word for verdict in verdicts)
    found, unsure = sum(map(was_bad, verdicts)), words["unsure"]
    seen, rest = len(verdicts) - unsure, rows - len(verdicts)
    low, high = wilson_interval(found, seen)
    worst = wilson_interval(found + unsure, seen + unsure)[1]
    return {
        "rows": rows,
        "seen": seen,
        "unsure": unsure,
        "found": found,
        "share": found / seen if seen else None,
        "low": low,
        "high": high,
        "high_with_unsure": worst,
        "rest": rest,
        "rest_at_most": math.ceil(rest * worst),
    }


def _compare_reviewers(judged: ReviewVerdicts, one: str, other: str) -> dict[str, Any]:
    both = [
        (by_reviewer[one].decision, by_reviewer[other].decision)
        for by_reviewer in judged.decisions.values()
        if {one, other} <= {*by_reviewer}
    ]
    found = measure_agreement(both)
    return {
        "reviewers": [one, other],
        "rows": found.rows,
        "agreed": _replace_nan(found.agreed),
        "kappa": _replace_nan(found.kappa),
        "table": {first: {second: found.table[first, second] for second in DECISION_WORDS} for first in DECISION_WORDS},
    }


def _replace_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def format_report_tables(report: Mapping[str, Any]) -> list[tuple[str, list[list[object]]]]:
    """Return the report as titled tables, each with a header row."""
    tables: list[tuple[str, list[list[object]]]] = []
    reviewers = report["reviewers"]
    if reviewers:
        rows: list[list[object]] = [
            [name, *by_reviewer.values(), sum(by_reviewer.values())] for name, by_reviewer in reviewers.items()
        ]
        tables.append(("Decisions", [["reviewer", *DECISION_WORDS, "decided"], *rows]))
    head: list[object] = ["type", "rows", "seen", "unsure", "bad", "share", "95% interval", "unsure as bad", "rest"]
    sets = {"all": report["bad"], **report["by_type"]}
    tables.append(
        ("Bad negatives (rejected or fixed)", [head, *(_format_line(name, one) for name, one in sets.items())])
    )
    tables += [_format_agreement(each) for each in report["agreement"] if each["rows"]]
    return tables


def _format_line(name: str, one: Mapping[str, Any]) -> list[object]:
    share = "-" if one["share"] is None else f"{one['share']:.1%}"
    interval = f"{one['low']:.1%} - {one['high']:.1%}"
    ending = [share, interval, f"at most {one['high_with_unsure']:.1%}", f"{one['rest']:,}"]
    return [name, one["rows"], one["seen"], one["unsure"], one["found"], *ending]


def _format_agreement(each: Mapping[str, Any]) -> tuple[str, list[list[object]]]:
    one, other = each["reviewers"]
    kappa = "undefined (one decision throughout)" if each["kappa"] is None else f"{each['kappa']:.2f}"
    title = f"{one} and {other}: {each['rows']:,} rows, {each['agreed']:.1%} equal, Cohen's kappa {kappa}"
    rows: list[list[object]] = [[f"{one}: {first}", *second.values()] for first, second in each["table"].items()]
    return title, [["", *(f"{other}: {word}" for word in DECISION_WORDS)], *rows]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Decisions of two reviewers on the same rows.

    Attributes:
        rows: number of rows that both decided on.
        agreed: share with equal decisions, 0-1; NaN without rows.
        kappa: -1 to 1; NaN without rows, and when both gave one and the same decision throughout.
        table: (decision of the first, of the second) to number of rows.
    """

    rows: int
    agreed: float
    kappa: float
    table: Counter[tuple[str, str]]


def measure_agreement(pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Return the agreement of two reviewers.

    Args:
        pairs: decisions of the first and of the second, by row.
    """
    rows, table = len(pairs), Counter(pairs)
    if not rows:
        return Agreement(0, math.nan, math.nan, table)
    first, second = (Counter(words) for words in zip(*pairs, strict=True))
    same = sum(count for (one, other), count in table.items() if one == other)
    expected = sum(count * second[word] for word, count in first.items())  # of rows * rows
    kappa = (same * rows - expected) / (rows * rows - expected) if expected < rows * rows else math.nan
    return Agreement(rows, same / rows, kappa, table)
