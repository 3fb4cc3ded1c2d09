"""What Prefect shows of the jobs of a build: about 200 task runs, each with its final state."""

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pairwright.flows.graph import STAGES
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.prefect.task_runs import MAX_TASK_RUNS, job_batches, runs_per_pass
from tests.flows.conftest import Run
from tests.flows.prefect.task_runs_flow import jobs


@given(parts=st.integers(1, 5000), stages=st.integers(3, 20), passes=st.integers(2, 30))
def test_a_build_of_any_number_of_parts_has_about_200_task_runs(parts: int, stages: int, passes: int) -> None:
    names = [f"{number:05d}" for number in range(parts)]
    found = job_batches(jobs("tag", *names), runs_per_pass(stages, passes))
    assert [job.part for batch in found for job in batch] == names
    assert passes * len(found) + 2 * stages <= MAX_TASK_RUNS


def test_the_passes_of_a_build_with_every_stage_leave_each_a_handful_of_task_runs() -> None:
    passes = sum(stage.passes for stage in STAGES if stage.full and stage.scope != "set")
    assert runs_per_pass(len(STAGES), passes) >= 5


@pytest.mark.parametrize(
    ("parts", "batches"),
    [pytest.param(18, [18], id="few"), pytest.param(40, [20, 20], id="more"), pytest.param(900, [180] * 5, id="many")],
)
def test_a_task_run_has_at_least_16_jobs_and_a_stage_a_handful_of_task_runs(parts: int, batches: list[int]) -> None:
    found = job_batches(jobs("tag", *(f"{number:05d}" for number in range(parts))), 5)
    assert [len(batch) for batch in found] == batches


def test_parts_that_ask_a_model_have_a_task_run_each_while_they_are_few() -> None:
    asking = [
        replace(job, asks=ModelAccess.__new__(ModelAccess)) for job in jobs("negatives", "00000", "00001", "00002")
    ]
    assert [len(batch) for batch in job_batches(asking, runs_per_pass(8, 3))] == [1, 1, 1]


def test_jobs_of_a_group_that_are_shown_as_one_have_one_task_run() -> None:
    group = [replace(job, shown_as_one=True) for job in jobs("refine", "round-0-words", "round-0-letters")]
    assert job_batches(group, runs_per_pass(8, 3)) == [group]
    assert job_batches([], runs_per_pass(8, 3)) == []


def test_a_build_begins_before_its_flow_and_prefect_records_the_final_state_of_each_task_run(
    through_prefect: Run,
) -> None:
    told = through_prefect("tests.flows.prefect.task_runs_flow")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout.splitlines()[-1]) == {
        "notes": [],
        "events": ["done", "done", "flow", "disk", "disk", "asked in a task run"],
        "states": {
            "tag 00000-00001": "Completed",
            "tag 00002": "Cached",
            "words counts": "Completed",
            "negatives 00000": "Completed",
            "words all": "Failed",
        },
    }


@pytest.mark.slow
def test_the_temporary_server_of_a_build_of_400_parts_records_the_states_of_all_of_them(tmp_path: Path) -> None:
    """Twice: the second build makes nothing, and each of its task runs is cached."""
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"caption": f"a dog and {n} cats"}) + "\n" for n in range(400))
    )
    settings = {"name": "many", "input": {"path": "in.jsonl"}, "shards": {"images": False}, "part_size": 1}
    (tmp_path / "build.yaml").write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "pairwright", "build", "build.yaml", "--out", "out"]
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path / "prefect")}
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    with closing(sqlite3.connect(tmp_path / "prefect" / "prefect.db")) as database:
        rows = database.execute("SELECT flow_run_id, state_name FROM task_run").fetchall()
        order = [row[0] for row in database.execute("SELECT id FROM flow_run ORDER BY start_time")]
    first, second = (Counter(state for run, state in rows if run == each) for each in order)
    assert set(first) == {"Completed"}
    assert second == {"Cached": first["Completed"]}
    assert first["Completed"] <= MAX_TASK_RUNS
