"""Decisions put to work: on candidate rows, and on the samples of a build."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.records import Annotation, Edit, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.shards.sample_source import source_from_records
from pairwright.filters.review.decision_application import (
    ReviewOutcome,
    apply_to_rows,
    apply_to_source,
    count_outcomes,
    decide_outcomes,
)
from pairwright.filters.review.decisions import DECISION_WORDS, Decision, Decisions, combine_decisions
from pairwright.filters.review.fix_checks import CheckedFix, ReviewerText, check_fixes
from pairwright.filters.review.report import build_review_report, format_report_tables
from pairwright.filters.review.rows import ReviewRows, read_rows


def decided(rows: ReviewRows, **said: Mapping[str, str]) -> Decisions:
    """Return decisions, reviewer to id to word; a fix is written ``fix: text``."""
    texts = dict(rows.frame.select("id", "negative").iter_rows())
    found = Decisions()
    for reviewer, words in said.items():
        for id_, written in words.items():
            word, _, text = written.partition(": ")
            found.add(Decision(id_, reviewer, word, texts.get(id_, ""), text, at="2030"))
    return found


def applied(rows: ReviewRows, decisions: Decisions, *, only_reviewed: bool = False) -> dict[str, dict[str, object]]:
    found = decide_outcomes(
        rows, combine_decisions(rows.frame, decisions), only_reviewed=only_reviewed, check=as_written
    )
    return {row["id"]: row for row in apply_to_rows(rows.frame, found).iter_rows(named=True)}


def as_written(written: Sequence[ReviewerText]) -> list[CheckedFix]:
    """Check nothing."""
    return [CheckedFix(each.text, each.type) for each in written]


def test_each_decision_becomes_a_status_with_its_reason(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    made = applied(rows, decided(rows, ann={"a": "keep", "b": "reject", "c": "unsure", "d": "fix: a dog on ice"}))
    assert [(id_, row["status"], row["reason"]) for id_, row in made.items()] == [
        ("a", "kept", ""),
        ("b", "rejected", "reviewer_rejected"),
        ("c", "rejected", "reviewer_unsure"),
        ("d", "kept", ""),
        ("e", "kept", ""),
        ("f", "kept", ""),
        ("g", "rejected", "left_out"),
    ]
    assert made["d"]["negative"] == "a dog on ice"
    assert orjson.loads(str(made["d"]["extra"])) == {"fixed_from": "a dog on sand", "reviewed_by": {"ann": "fix"}}
    assert made["e"]["extra"] == "{}"


def test_only_reviewed_rows_are_kept_when_that_is_asked_for(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    made = applied(rows, decided(rows, ann={"a": "keep"}), only_reviewed=True)
    assert [id_ for id_, row in made.items() if row["status"] == "kept"] == ["a"]
    assert made["b"]["reason"] == "not_reviewed"
    assert made["g"]["reason"] == "left_out"


@given(st.dictionaries(st.sampled_from(["ann", "bob", "cid"]), st.sampled_from(DECISION_WORDS), min_size=1))
def test_of_several_reviewers_the_strongest_decision_counts(said: dict[str, str]) -> None:
    frame = pl.DataFrame({"id": ["a"], "negative": ["x"], "status": ["kept"]})
    found = Decisions()
    for name, word in said.items():
        found.add(Decision("a", name, word, "x", f"by {name}"))
    verdict = combine_decisions(frame, found).verdicts["a"]
    assert verdict.word == min(said.values(), key=["reject", "fix", "keep", "unsure"].index)
    assert verdict.by_reviewer == said
    assert bool(verdict.text) == (verdict.word == "fix")


def test_stale_and_unknown_decisions_are_counted_and_change_nothing(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    found = decided(rows, ann={"a": "reject", "g": "keep", "nowhere": "reject"})
    found.add(Decision("b", "ann", "reject", "a text that is not there any more"))
    judged = combine_decisions(rows.frame, found)
    assert set(judged.verdicts) == {"a"}
    assert judged.uncounted == {"stale": 1, "unknown": 2}


def test_the_decisions_of_one_reviewer_can_be_applied_alone(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    both = decided(rows, ann={"a": "keep"}, bob={"a": "reject", "b": "keep"})
    assert {id_: verdict.word for id_, verdict in combine_decisions(rows.frame, both, ["ann"]).verdicts.items()} == {
        "a": "keep"
    }


def test_counts_add_up(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    judged = combine_decisions(
        rows.frame, decided(rows, ann={"a": "reject", "b": "fix: a lorry by a tree", "c": "keep"})
    )
    counts = count_outcomes(rows.frame, decide_outcomes(rows, judged, check=as_written))
    assert counts == {
        "rows": 7,
        "reviewed": 3,
        "kept": 5,
        "fixed": 1,
        "rejected": {"left_out": 1, "reviewer_rejected": 1},
    }
    assert counts["rows"] == counts["kept"] + sum(counts["rejected"].values())


def test_a_fix_is_checked_against_the_remaining_negatives(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    seen: list[ReviewerText] = []

    def check(written: Sequence[ReviewerText]) -> list[CheckedFix]:
        seen.extend(written)
        return [CheckedFix(each.text, each.type, reason="duplicate") for each in written]

    judged = combine_decisions(rows.frame, decided(rows, ann={"a": "fix: a pink bus", "b": "keep"}))
    found = decide_outcomes(rows, judged, check=check)
    assert seen == [ReviewerText("a red bus", ("a bus by a tree",), "replace-attribute", "a pink bus", ())]
    assert found["a"].reason == "duplicate"


def test_fixes_are_put_into_the_format_of_the_caption_with_their_spans_and_type() -> None:
    (found,) = check_fixes(
        [ReviewerText("A red bus by a tree.", (), "replace-attribute", "a red car by a tree")], ["a red bus"]
    )
    assert found.text == "A red car by a tree."
    assert found.type == "replace-object"
    assert [(edit.before, edit.after) for edit in found.edits] == [("bus", "car")]


def test_fixes_that_may_be_true_are_rejected_and_other_objections_overruled() -> None:
    others = ("a blue bus by a tree",)
    texts = {
        "a red bus by a tree": "identical",
        "a blue bus by a tree": "duplicate",
        "a red car and two men at night": "",
    }
    found = check_fixes(
        [ReviewerText("A red bus by a tree.", others, "replace-object", text) for text in texts], ["a red bus"]
    )
    assert [bool(each.reason) for each in found] == [bool(reason) for reason in texts.values()]
    assert found[2].text == "A red car and two men at night."
    assert found[2].edits == ()


def test_a_reviewer_overrules_a_synonym_of_the_dictionary() -> None:
    (found,) = check_fixes([ReviewerText("A white bus.", (), "replace-attribute", "a grey bus")], ["a white bus"])
    assert (found.text, found.reason) == ("A grey bus.", "")


def test_nothing_is_loaded_without_fixes() -> None:
    assert check_fixes([], iter("x")) == []


MAKER = Origin("rules-negatives", 1)


def annotation(key: str, kind: str, text: str, positive_id: str = "") -> Annotation:
    return Annotation(
        annotation_id(key, kind, MAKER, text, text), key, kind, MAKER, "replace", "object", text, "a red bus",
        positive_id=positive_id, scores={"grammar_gap": 0.1},
    )  # fmt: skip


def test_samples_lose_rejected_negatives_and_positives_without_negatives() -> None:
    key = pair_key("s", "1", "a red bus")
    positive = annotation(key, "hard_positive", "a scarlet bus")
    gone, fixed = annotation(key, "hard_negative", "a car", positive.id), annotation(key, "hard_negative", "a van")
    turns = annotation(key, "conversation", "")
    edits = (Edit("bus", "lorry", (6, 9), (6, 11)),)
    said = {"ann": "fix"}
    found = {
        gone.id: ReviewOutcome("reviewer_rejected"),
        fixed.id: ReviewOutcome("", CheckedFix("a red lorry", "replace-object", edits), said),
    }
    source = source_from_records([Pair(key, "a red bus")], [positive, gone, fixed, turns])
    (sample,) = apply_to_source(source, found).samples()
    assert [(row.kind, row.text) for row in sample.annotations] == [
        ("hard_negative", "a red lorry"),
        ("conversation", ""),
    ]
    assert (sample.annotations[0].edits, sample.annotations[0].scores) == (edits, {})
    assert apply_to_source(source, found).shards == ()


def test_the_report_bounds_the_share_of_unreviewed_rows(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    judged = combine_decisions(rows.frame, decided(rows, ann={"a": "keep", "b": "reject", "c": "keep", "d": "unsure"}))
    bad = build_review_report(rows.entering(), judged)["bad"]
    assert {name: bad[name] for name in ("rows", "seen", "unsure", "found", "rest")} == {
        "rows": 6, "seen": 3, "unsure": 1, "found": 1, "rest": 2,
    }  # fmt: skip
    assert bad["share"] == pytest.approx(1 / 3)
    assert bad["low"] < bad["share"] < bad["high"] < bad["high_with_unsure"]
    assert bad["rest_at_most"] == 2


def test_the_report_has_agreement_and_disagreements_of_two_reviewers(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    ann = {"a": "keep", "b": "reject", "c": "keep", "d": "reject", "e": "keep"}
    found = decided(rows, ann=ann, bob={**ann, "c": "reject", "f": "keep"})
    report = build_review_report(rows.entering(), combine_decisions(rows.frame, found))
    (both,) = report["agreement"]
    assert (both["reviewers"], both["rows"], both["agreed"]) == (["ann", "bob"], 5, 0.8)
    assert both["kappa"] == pytest.approx((0.8 - 0.48) / (1 - 0.48))
    assert both["table"]["keep"] == {"keep": 2, "reject": 1, "unsure": 0, "fix": 0}
    assert report["disagreements"] == {"c": {"ann": "keep", "bob": "reject"}}
    titles = [title for title, _ in format_report_tables(report)]
    assert "ann and bob: 5 rows, 80.0% equal, Cohen's kappa 0.62" in titles


def test_a_report_without_decisions_has_no_shares(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    report = build_review_report(rows.entering(), combine_decisions(rows.frame, Decisions()))
    assert (report["bad"]["share"], report["bad"]["high"], report["bad"]["rest_at_most"]) == (None, 1.0, 6)
    assert orjson.dumps(report)
    assert format_report_tables(report)
