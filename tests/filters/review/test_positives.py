"""Hard positives reviewed on their own: what is shown, what is decided, what is written back."""

import json
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import InputError, UsageError
from pairwright.filters.review.decision_application import apply_to_rows, decide_outcomes
from pairwright.filters.review.decisions import DecisionLog, combine_decisions, read_decisions
from pairwright.filters.review.positives import check_positive_fixes, read_positives, write_positives
from pairwright.filters.review.session import ReviewSession

ROWS: list[dict[str, Any]] = [
    {"id": "a", "image": "1.jpg", "caption": "A man on a bike.", "positive": "A man on a bicycle.", "mine": 7},
    {"id": "b", "image": "2.jpg", "caption": "A red bus.", "positive": "A crimson bus.", "negative": "A blue bus."},
    {"id": "c", "image": "3.jpg", "caption": "A dog.", "positive": "A hound.", "form": "replace", "target": "object"},
    {"id": "d", "image": "4.jpg", "caption": "A cat.", "positive": "", "status": "rejected", "reason": "no_edit"},
    {"id": "e", "image": "5.jpg", "caption": "A cow.", "negative": "A pig."},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "positives.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def test_the_candidate_is_the_positive_and_rows_without_one_are_not_shown(path: Path, tmp_path: Path) -> None:
    session = ReviewSession(read_positives(path), DecisionLog(tmp_path / "d.jsonl"), "ann")
    shown = {"".join(part for part, _ in session.row(at)["candidate"]) for at in range(len(session))}
    assert shown == {"A man on a bicycle.", "A crimson bus.", "A hound."}
    assert session.progress()["positives"] is True


def test_decisions_are_applied_and_other_columns_written_back(path: Path, tmp_path: Path) -> None:
    rows, log, out = read_positives(path), tmp_path / "d.jsonl", tmp_path / "out.jsonl"
    session = ReviewSession(rows, DecisionLog(log), "ann")
    wanted = {"A man on a bicycle.": ("keep", ""), "A crimson bus.": ("reject", ""), "A hound.": ("fix", "a puppy")}
    for at in range(len(session)):
        session.decide(at, *wanted["".join(part for part, _ in session.row(at)["candidate"])])
    judged = combine_decisions(rows.frame, read_decisions(log), None)
    found = decide_outcomes(rows, judged, check=check_positive_fixes)
    assert write_positives(apply_to_rows(rows.frame, found), out) == len(ROWS)
    written = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    states = {name: (row["positive"], row["status"], row["reason"]) for name, row in written.items()}
    assert states == {
        "a": ("A man on a bicycle.", "kept", ""),
        "b": ("A crimson bus.", "rejected", "reviewer_rejected"),
        "c": ("A puppy.", "kept", ""),
        "d": ("", "rejected", "no_edit"),
        "e": ("", "kept", ""),
    }
    assert (written["a"]["mine"], "negative" in written["a"]) == (7, False)
    assert (written["b"]["negative"], written["e"]["negative"]) == ("A blue bus.", "A pig.")
    assert written["c"]["fixed_from"] == "A hound."
    assert write_positives(apply_to_rows(rows.frame, found), out, only_kept=True) == 3


def test_another_caption_of_the_image_may_be_written_as_a_positive(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROWS[0] | {"captions": ["A cyclist."]}) + "\n")
    session = ReviewSession(read_positives(file), DecisionLog(tmp_path / "d.jsonl"), "ann")
    session.decide(0, "fix", "A cyclist.")
    with pytest.raises(UsageError, match="equals the caption"):
        session.decide(0, "fix", "a man on a bike")


def test_a_file_without_positives_is_refused_and_only_jsonl_is_written(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "negatives.jsonl"
    file.write_text(json.dumps(ROWS[4]) + "\n")
    with pytest.raises(InputError, match="positive"):
        read_positives(file)
    with pytest.raises(UsageError, match="jsonl"):
        write_positives(read_positives(path).frame, tmp_path / "out.tsv")
