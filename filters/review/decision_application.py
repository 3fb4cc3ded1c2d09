"""Application of decisions: candidate rows with their verdicts, and samples of a build without rejected texts.

Rejected rows get the reason ``reviewer_rejected``, unsure ones ``reviewer_unsure``. A fix replaces the text and is
checked (`fix_checks.py`); scores of the old text are removed. Rows without decisions are unchanged, unless only
reviewed rows are requested (``not_reviewed``).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.record_tables import make_column
from pairwright.datasets.records import Annotation, compact_json, edit_to_dict
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample
from pairwright.filters.candidates.rows import SCHEMA
from pairwright.filters.review.decisions import ReviewVerdicts, RowVerdict
from pairwright.filters.review.fix_checks import CheckedFix, CheckFixes, ReviewerText, check_fixes
from pairwright.filters.review.rows import ReviewRows
from pairwright.generators.balance import reject_excess_rows

REASONS: Mapping[str, str] = {
    "reviewer_rejected": "a reviewer found it true of the image, or no sentence",
    "reviewer_unsure": "reviewers were unsure, and none kept it",
    "not_reviewed": "not reviewed, and only reviewed rows were requested",
}
_REASON_OF_DECISION = {"reject": "reviewer_rejected", "unsure": "reviewer_unsure"}


@dataclass(frozen=True, slots=True)
class ReviewOutcome:
    """Result for a row.

    Attributes:
        reason: of the rejection; empty when it is kept.
        fixed: replacement text; None when its own text is kept.
        by_reviewer: reviewer to decision.
    """

    reason: str = ""
    fixed: CheckedFix | None = None
    by_reviewer: Mapping[str, str] | None = None


def decide_outcomes(
    rows: ReviewRows, judged: ReviewVerdicts, *, only_reviewed: bool = False, check: CheckFixes | None = None
) -> dict[str, ReviewOutcome]:
    """Return the results for the rows that were not rejected before, by id; unchanged rows are not in it.

    Args:
        rows: the reviewed rows.
        judged: the verdicts on them.
        only_reviewed: reject rows without a verdict.
        check: checks the texts that reviewers wrote; by default `check_fixes` over the captions of the rows.
    """
    check = check or (lambda written: check_fixes(written, rows.frame["caption"]))
    entering = rows.entering()
    texts: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for id_, key, image, caption, negative in entering.select("id", "key", "image", "caption", "negative").iter_rows():
        texts[image or key, caption][id_] = negative
    found: dict[str, ReviewOutcome] = {}
    written: dict[str, ReviewerText] = {}
    for id_, key, image, caption, kind in entering.select("id", "key", "image", "caption", "type").iter_rows():
        verdict = judged.verdicts.get(id_)
        if verdict is None:
            if only_reviewed:
                found[id_] = ReviewOutcome("not_reviewed")
        elif verdict.word == "fix":
            taken = _find_remaining_negatives(texts[image or key, caption], id_, judged.verdicts)
            written[id_] = ReviewerText(caption, rows.others.get(id_, ()), kind, verdict.text, taken)
        else:
            found[id_] = ReviewOutcome(_REASON_OF_DECISION.get(verdict.word, ""), by_reviewer=verdict.by_reviewer)
    for id_, fixed in zip(written, check(list(written.values())), strict=True):
        found[id_] = ReviewOutcome(fixed.reason, fixed, judged.verdicts[id_].by_reviewer)
    return found


def _find_remaining_negatives(
    texts: Mapping[str, str], own: str, verdicts: Mapping[str, RowVerdict]
) -> tuple[str, ...]:
    """Return the other negatives of the caption that are neither rejected nor fixed."""
    going = {id_ for id_ in texts if id_ == own or (id_ in verdicts and verdicts[id_].word != "keep")}
    return tuple(text for id_, text in texts.items() if id_ not in going)


def apply_to_rows(frame: pl.DataFrame, found: Mapping[str, ReviewOutcome]) -> pl.DataFrame:
    """Return all rows in their order, with the results applied.

    Reviewed rows get ``reviewed_by`` (reviewer to decision), fixed ones ``fixed_from`` (the former text).
    """
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA}
    for row in frame.iter_rows(named=True):
        outcome = found.get(row["id"])
        changed = row if outcome is None else row | _apply_outcome(row, outcome)
        for name, values in columns.items():
            values.append(changed[name])
    return pl.DataFrame([make_column(name, values, SCHEMA[name]) for name, values in columns.items()])


def _apply_outcome(row: Mapping[str, Any], outcome: ReviewOutcome) -> dict[str, Any]:
    changed: dict[str, Any] = {"status": "rejected" if outcome.reason else "kept", "reason": outcome.reason}
    extra = orjson.loads(row["extra"])
    if outcome.by_reviewer is not None:
        extra["reviewed_by"] = dict(outcome.by_reviewer)
    if outcome.fixed is not None:
        extra["fixed_from"] = row["negative"]
        form, _, target = outcome.fixed.type.partition("-")
        edits = [edit_to_dict(edit) for edit in outcome.fixed.edits]
        changed |= {"negative": outcome.fixed.text, "edit": edits, "scores": []}
        if outcome.fixed.edits:  # otherwise the type is unchanged
            changed |= {"form": form, "target": target}
    return {**changed, "extra": compact_json(extra)}


def count_outcomes(frame: pl.DataFrame, found: Mapping[str, ReviewOutcome]) -> dict[str, Any]:
    """Return numbers for the rows of an input: rows, reviewed, kept, fixed, rejected (reason to number)."""
    current = {
        id_: found[id_].reason if id_ in found else reason for id_, reason in frame.select("id", "reason").iter_rows()
    }
    came_rejected = set(frame.filter(pl.col("status") == "rejected")["id"])
    reasons = Counter(reason or "rejected_before" for id_, reason in current.items() if reason or id_ in came_rejected)
    return {
        "rows": len(frame),
        "reviewed": sum(outcome.by_reviewer is not None for outcome in found.values()),
        "kept": len(frame) - reasons.total(),
        "fixed": sum(outcome.fixed is not None and not outcome.reason for outcome in found.values()),
        "rejected": dict(sorted(reasons.items())),
    }


def apply_to_source(source: SampleSource, found: Mapping[str, ReviewOutcome]) -> SampleSource:
    """Return the samples of a build or shards without rejected negatives, and with the fixed texts.

    A hard positive whose negatives are all rejected is removed with them. Existing shards are not reused, as samples
    change.
    """

    def samples() -> Iterator[Sample]:
        for sample in source.samples():
            rows = [_apply_fix(row, found[row.id]) if row.id in found else row for row in sample.annotations]
            dropped = {row.id: found[row.id].reason for row in rows if row.id in found and found[row.id].reason}
            kept = tuple(row for row in reject_excess_rows(rows, dropped) if row.status == "kept")
            yield replace(sample, annotations=kept)

    return SampleSource(samples, manifest=source.manifest, examples=source.examples)


def _apply_fix(row: Annotation, outcome: ReviewOutcome) -> Annotation:
    fixed = outcome.fixed
    if fixed is None:
        return row
    form, _, target = fixed.type.partition("-") if fixed.edits else (row.form, "", row.target)
    return replace(row, text=fixed.text, edits=fixed.edits, scores={}, form=form, target=target)
