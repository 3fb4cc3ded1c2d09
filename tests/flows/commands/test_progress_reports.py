"""Commands report each step that takes seconds on a large input."""

import json
from pathlib import Path

from pairwright.datasets.progress import ProgressReport, report_named_steps, use_listener
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.filters.pairs.size_limits import SizeLimits
from pairwright.flows.build import build
from pairwright.flows.commands.audit import AuditRequest, audit_rows, rows_to_audit
from pairwright.flows.commands.filter_pairs import FilterRequest, run_filters
from pairwright.flows.commands.pair_inputs import total_for_progress
from pairwright.flows.config.build import parse_config
from pairwright.flows.progress import BuildProgress


def test_an_audit_reports_reading_and_counting_as_steps(tmp_path: Path) -> None:
    rows = [{"caption": f"a dog beside {n} cats", "negative": f"a cat beside {n} dogs"} for n in range(20)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    heard: list[ProgressReport] = []
    with use_listener(heard.append):
        frame, _ = rows_to_audit(file)
        audit_rows(frame, AuditRequest(), (), lambda _: None)
    assert any(report.name == "describing rows" for report in heard)
    ended = {report.name: report.done for report in heard if report.ended}
    assert (
        ended.items() >= {"reading rows": 20, "comparing texts": 20, "counting words": 20, "locating edits": 20}.items()
    )


def _pairs(folder: Path, count: int) -> Path:
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps({"caption": f"a dog beside {n} cats"}) + "\n" for n in range(count)))
    return file


def test_filters_report_the_total_from_their_first_pair_on(tmp_path: Path) -> None:
    request = FilterRequest(
        ReadOptions(input=str(_pairs(tmp_path, 1_200))), tmp_path / "out.parquet", SizeLimits(min_words=2)
    )
    heard: list[ProgressReport] = []
    with use_listener(heard.append), report_named_steps("pairs") as follow:
        run_filters(request, follow)
    judging = [report for report in heard if report.name == "judging"]
    assert (judging[0].done, judging[0].total) == (0, 1_200)
    assert (judging[-1].done, judging[-1].ended) == (1_200, True)


def test_pairs_are_counted_for_a_progress_bar_only_with_a_listener_and_if_counting_is_cheap(tmp_path: Path) -> None:
    file = str(_pairs(tmp_path, 3))
    assert total_for_progress(ReadOptions(input=file)) is None
    with use_listener(lambda _: None):
        assert total_for_progress(ReadOptions(input=file)) == 3
        assert total_for_progress(ReadOptions(input="{00000..00009}.tar")) is None


def test_the_end_of_a_build_is_reported(tmp_path: Path) -> None:
    settings = {"name": "t", "input": {"path": str(_pairs(tmp_path, 5))}, "shards": {"images": False}, "workers": 1}
    heard: list[ProgressReport] = []

    class Watching(BuildProgress):
        def report_step(self, report: ProgressReport) -> None:
            heard.append(report)

    build(parse_config(settings, where="test"), tmp_path / "out", Watching(), prefect=False)
    ended = {report.name: report.done for report in heard if report.ended}
    assert "writing the report" in ended
