"""``pairwright diff`` of two files of candidate rows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run

ROWS = [
    {"id": str(n), "filename": f"{n}.jpg", "caption": f"a dog on bed {n}", "negative_caption": f"a cat on bed {n}"}
    for n in range(6)
]


def save(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_command_compares_status_and_writes_the_rows(run: Run, tmp_path: Path) -> None:
    save(tmp_path / "a.jsonl", ROWS)
    rejected = {**ROWS[0], "status": "rejected", "reason": "true_of_image"}
    save(tmp_path / "b.jsonl", [rejected, *ROWS[1:5]])
    done = run("diff", "a.jsonl", "b.jsonl", "--out", "changes.jsonl")
    assert "row  6  5      0        1        1" in done.stdout
    assert "Changed: reason 1, status 1" in done.stdout
    changes = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert changes == [
        {
            "what": "row",
            "change": "changed",
            "id": "0",
            "a": "status: kept; reason: ",
            "b": "status: rejected; reason: true_of_image",
        },
        {"what": "row", "change": "removed", "id": "5", "a": "a cat on bed 5", "b": ""},
    ]
    assert "no differences" in run("diff", "a.jsonl", "a.jsonl").stdout
    assert "two files of candidate rows" in run("diff", "a.jsonl", ".", ok=False).stderr
