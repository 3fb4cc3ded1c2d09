"""Audits report each step that takes seconds on a large file."""

import json
from pathlib import Path

from pairwright.datasets.progress import Report, listening
from pairwright.flows.auditing import AuditRequest, audit_rows, rows_to_audit


def test_an_audit_reports_reading_and_counting_as_steps(tmp_path: Path) -> None:
    rows = [{"caption": f"a dog beside {n} cats", "negative": f"a cat beside {n} dogs"} for n in range(20)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    heard: list[Report] = []
    with listening(heard.append):
        frame, _ = rows_to_audit(file)
        audit_rows(frame, AuditRequest(), (), lambda _: None)
    ended = {report.name: report.done for report in heard if report.ended}
    assert (
        ended.items() >= {"reading rows": 20, "comparing texts": 20, "counting words": 20, "locating edits": 20}.items()
    )
