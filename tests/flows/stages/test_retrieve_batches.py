"""Stage ``retrieve`` with its queries searched in batches, each by a job of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.flows.stages import retrieve

COLOURS, THINGS = ("red", "blue", "grey", "green", "white"), ("dog", "cat", "bus", "chair", "horse", "kite")
CAPTIONS = [f"a {colour} {thing} near a wall" for colour in COLOURS for thing in THINGS]


def built(folder: Path, excluded: Path) -> dict[str, Any]:
    config = {
        "name": "x",
        "input": {"path": str(folder.parent / "captions.jsonl")},
        "index": {"encoder": "lexical"},
        "retrieve": {"queries": str(folder.parent / "queries.txt"), "k": 3, "exclude": [str(excluded)]},
        "part_size": 12,
        "workers": 1,
    }
    return build(parse_config(config, where="test"), folder, prefect=False)


def test_queries_in_batches_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    # Two are equal, so that there are fewer query vectors than queries and the last batch is empty.
    (tmp_path / "queries.txt").write_text("dog\na red bus\ndog\nwhite horse\n")
    excluded = tmp_path / "tested.jsonl"
    excluded.write_text(json.dumps({"caption": CAPTIONS[2]}) + "\n")
    whole = built(tmp_path / "whole", excluded)
    monkeypatch.setattr(retrieve, "QUERIES_PER_JOB", 1)
    batches = built(tmp_path / "batches", excluded)
    facts = [manifest["stages"]["retrieve"]["facts"] for manifest in (whole, batches)]
    assert facts[0] == facts[1]
    assert sum(facts[0]["excluded"].values()) == 1
    found = sorted((tmp_path / "batches" / "retrieval").glob("found-*"))
    assert len(found) == 4
    for name, entry in whole["files"].items():
        assert batches["files"][name] == entry, name
