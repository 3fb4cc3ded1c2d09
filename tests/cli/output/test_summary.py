"""Summaries of commands."""

from pathlib import Path

from pairwright.cli.output.summary import next_step, rejected_line, type_table


def test_a_table_of_types_gives_a_share_of_captions_or_a_number_per_caption() -> None:
    share = type_table([("add-object", 3, {"no_edit": 9}), ("swap-object", 0, {})], 12, "captions")
    assert [line.split() for line in share] == [
        ["type", "kept", "of", "captions", "mainly", "rejected"],
        ["add-object", "3", "25.0%", "no_edit", "9"],
        ["swap-object", "0", "0.0%"],
    ]
    number = type_table([("add-object", 23, {})], 12, "captions")
    assert [line.split() for line in number] == [
        ["type", "kept", "per", "caption", "mainly", "rejected"],
        ["add-object", "23", "1.92"],
    ]


def test_a_line_of_reasons_says_when_it_shows_only_some() -> None:
    rejected = {"a": 1, "b": 3, "c": 2, "d": 0}
    assert rejected_line(rejected, details=False) == ["rejected: b 3, c 2, ..."]
    assert rejected_line(rejected, details=True) == ["rejected: b 3, c 2, a 1"]
    assert rejected_line({"d": 0}, details=False) == []


def test_a_suggested_command_can_be_pasted_whatever_its_paths_are() -> None:
    assert next_step("refine", Path("my rows.jsonl"), "--k", 5) == ["Next: pairwright refine 'my rows.jsonl' --k 5"]
