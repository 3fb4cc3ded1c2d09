"""Decisions: a file that only grows, of which the last line about a row holds."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, StorageError
from pairwright.filters.review.decisions import (
    DECISION_WORDS,
    UNDO,
    Decision,
    DecisionLog,
    Decisions,
    read_decisions,
)


def said(path: Path, reviewer: str = "ann") -> dict[str, str]:
    return {id_: each.decision for id_, each in read_decisions(path).of(reviewer).items()}


def test_appended_decisions_are_read_when_the_file_is_opened_again(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "deep" / "decisions.jsonl")
    log.append(Decision("a", "ann", "keep", "a blue bus"))
    log.append(Decision("b", "ann", "fix", "a car", "a lorry"))
    log.append(Decision("a", "bob", "reject", "a blue bus"))
    log.close()
    again = DecisionLog(log.path)
    assert again.decisions.reviewers == ["ann", "bob"]
    assert again.decisions.of("ann")["b"].text == "a lorry"
    assert again.decisions.by_row()["a"]["bob"].decision == "reject"
    again.close()


def test_a_line_is_in_the_file_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    log = DecisionLog(tmp_path / "d.jsonl")
    log.append(Decision("a", "ann", "keep"))
    assert synced[-1] == log.path.stat().st_size > 0
    log.close()


def test_later_lines_win_and_undo_restores_the_previous_decision(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "d.jsonl")
    for word in ("keep", "reject", UNDO):
        log.append(Decision("a", "ann", word))
    assert said(log.path) == {"a": "keep"}
    log.append(Decision("a", "ann", UNDO))
    assert said(log.path) == {}
    assert len(log.path.read_text().splitlines()) == 4
    log.close()


def test_an_undo_affects_one_reviewer_only(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "d.jsonl")
    log.append(Decision("a", "ann", "keep"))
    log.append(Decision("a", "bob", UNDO))
    assert said(log.path) == {"a": "keep"}
    log.close()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([*DECISION_WORDS, UNDO])), max_size=30),
    st.integers(min_value=0, max_value=40),
)
def test_decisions_are_the_same_whether_read_from_the_file_or_appended(lines: list[tuple[str, str]], cut: int) -> None:
    whole, stack = Decisions(), list[tuple[str, str]]()
    for id_, word in lines:
        whole.add(Decision(id_, "ann", word))
        if word != UNDO:
            stack.append((id_, word))
        elif mine := [at for at, (other, _) in enumerate(stack) if other == id_]:
            del stack[mine[-1]]
    assert {id_: each.decision for id_, each in whole.of("ann").items()} == dict(stack)


def test_a_truncated_line_is_skipped_counted_and_separated_from_the_next(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    log = DecisionLog(path)
    log.append(Decision("a", "ann", "keep"))
    log.append(Decision("b", "ann", "keep"))
    log.close()
    path.write_bytes(path.read_bytes()[:-20])
    log = DecisionLog(path)
    log.append(Decision("c", "ann", "reject"))
    log.close()
    assert said(path) == {"a": "keep", "c": "reject"}
    assert read_decisions(path).truncated == 1


def test_a_last_line_without_its_line_end_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "a", "reviewer": "ann", "decision": "keep"}')
    log = DecisionLog(path)
    log.append(Decision("b", "ann", "keep"))
    log.close()
    assert said(path) == {"a": "keep", "b": "keep"}


def test_two_reviewers_write_into_one_file_at_the_same_time(tmp_path: Path) -> None:
    one, other = DecisionLog(tmp_path / "d.jsonl"), DecisionLog(tmp_path / "d.jsonl")
    for number in range(50):
        one.append(Decision(str(number), "ann", "keep"))
        other.append(Decision(str(number), "bob", "reject"))
    one.close()
    other.close()
    found = read_decisions(tmp_path / "d.jsonl")
    assert (len(found.of("ann")), len(found.of("bob")), found.truncated) == (50, 50, 0)


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"id": "a", "caption": "x"}',
        '{"id": "a", "reviewer": "ann", "decision": "maybe"}',
        '{"id": 3, "reviewer": "ann", "decision": "keep"}',
    ],
)
def test_a_file_with_other_content_is_an_error_and_unchanged(tmp_path: Path, line: str) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=r"captions\.jsonl:1: not a decision"):
        DecisionLog(path)
    assert path.read_text() == line + "\n"


def test_missing_and_unwritable_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_decisions(tmp_path / "nothing.jsonl")
    with pytest.raises(StorageError, match="cannot be written"):
        DecisionLog(tmp_path)


def test_a_line_has_the_time_the_reviewer_and_the_text(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "d.jsonl")
    log.append(Decision("a", "ann", "keep", "ein blaues Büßchen"))
    log.close()
    line = json.loads(log.path.read_text(encoding="utf-8"))
    assert line["candidate"] == "ein blaues Büßchen"
    assert line["at"].endswith("Z")
