"""What a scheduled run leaves behind: a log file, and the user's command where it failed."""

import json
import logging
import sys
import warnings
from pathlib import Path

import pytest
import yaml

from pairwright.datasets.errors import UsageError
from pairwright.flows.prefect.failure_command import parse_failure_command, run_failure_command
from pairwright.flows.prefect.run_log import KEPT_FILES, LOG_FOLDER, log_path, log_to_file
from tests.flows.conftest import Run

TELL = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('PAIRWRIGHT_RUN')}))"
NASTY = "$(touch injected); `touch injected` \" ' \n| touch injected"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}\n')
    settings = {"name": "night", "input": {"path": "in.jsonl"}, "shards": {"images": False}}
    (tmp_path / "build.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "build.yaml"


def test_a_run_that_fails_calls_the_command_and_reports_the_failure_of_that(
    config: Path, tmp_path: Path, through_prefect: Run
) -> None:
    (tmp_path / "in.jsonl").write_text("no JSON\n")
    script = f"{TELL.replace('print(', 'open(sys.argv[1], chr(119)).write(').replace('import ', 'import sys, ')}; sys.exit(5)"
    command = [sys.executable, "-c", script, str(tmp_path / "notified.json")]
    done = through_prefect("tests.flows.prefect.build_flow_run", config, tmp_path / "out", *command)
    notified = json.loads((tmp_path / "notified.json").read_text())
    (log,) = (tmp_path / "out" / LOG_FOLDER).glob("*.log")
    assert notified["PAIRWRIGHT_RUN_STATE"] == "Failed"
    assert f"{tmp_path / 'in.jsonl'}:1: broken_json" in notified["PAIRWRIGHT_RUN_ERROR"]
    assert notified["PAIRWRIGHT_RUN_CONFIG"] == str(config)
    assert notified["PAIRWRIGHT_RUN_OUT"] == str(tmp_path / "out")
    assert notified["PAIRWRIGHT_RUN_LOG"] == str(log)
    assert notified["PAIRWRIGHT_RUN_ID"] in log.name
    assert notified["PAIRWRIGHT_RUN_NAME"] == "night"  # not the file's name, build.yaml
    assert "ended with exit code 5" in done.stderr
    assert "Traceback" not in done.stderr
    written = log.read_text()
    for part in ("Building night", "in.jsonl:1: broken_json", "Traceback (most recent call last)", "exit code 5"):
        assert part in written


def test_a_script_that_runs_the_flow_gets_the_error_without_the_traceback_of_task_runs(
    config: Path, tmp_path: Path, through_prefect: Run
) -> None:
    (tmp_path / "in.jsonl").write_text("no JSON\n")
    done = through_prefect("tests.flows.prefect.build_flow_run", config, tmp_path / "out")
    (log,) = (tmp_path / "out" / LOG_FOLDER).glob("*.log")
    assert "in.jsonl:1: broken_json" in done.stdout.splitlines()[-1]
    assert "Fix the JSON." in done.stdout
    for inside in ("task_engine.py", "pieces.py"):
        assert inside not in done.stdout
        assert inside in log.read_text()


def test_a_run_that_succeeds_logs_its_stages_and_calls_nothing(
    config: Path, tmp_path: Path, through_prefect: Run
) -> None:
    command = [
        sys.executable,
        "-c",
        "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()",
        str(tmp_path / "notified"),
    ]
    done = through_prefect("tests.flows.prefect.build_flow_run", config, tmp_path / "out", *command)
    (log,) = (tmp_path / "out" / LOG_FOLDER).glob("*.log")
    assert "Built night: 1 sample " in done.stderr
    assert done.stderr.count("Built night") == 1
    assert "Built night: 1 sample " in log.read_text()
    assert not (tmp_path / "notified").exists()


def test_no_text_of_an_error_is_taken_for_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrote, wrong = run_failure_command([sys.executable, "-c", TELL], {"error": NASTY, "name": "a\0b"})
    assert not wrong
    assert json.loads(wrote) == {"PAIRWRIGHT_RUN_ERROR": NASTY, "PAIRWRIGHT_RUN_NAME": "ab"}
    assert not list(tmp_path.iterdir())


def test_an_error_of_any_length_fits_into_the_environment() -> None:
    wrote, wrong = run_failure_command([sys.executable, "-c", TELL], {"error": "x" * 10**6})
    assert not wrong
    assert len(json.loads(wrote)["PAIRWRIGHT_RUN_ERROR"]) == 4000


@pytest.mark.parametrize(
    ("script", "wrote", "wrong"),
    [
        ("print('sent')", "sent", ""),
        ("import sys; sys.exit('no mail server')", "no mail server", "ended with exit code 1"),
        ("import time; print('trying', flush=True); time.sleep(600)", "trying", "was killed after 2 s"),
    ],
)
def test_how_the_command_ended_is_reported(script: str, wrote: str, wrong: str) -> None:
    assert run_failure_command([sys.executable, "-c", script], {}, seconds=2) == (wrote, wrong)


def test_a_command_that_is_gone_when_it_is_needed_is_reported(tmp_path: Path) -> None:
    assert run_failure_command([str(tmp_path / "gone")], {}) == ("", "could not be started (No such file or directory)")


def test_a_command_is_split_as_a_shell_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notify.sh").write_text("#!/bin/sh\n")
    (tmp_path / "notify.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert parse_failure_command("./notify.sh 'a b' c") == (str(tmp_path / "notify.sh"), "a b", "c")


@pytest.mark.parametrize(
    ("written", "said"),
    [("notify 'a", "No closing quotation"), ("no-such-program x", "no-such-program not found"), (" ", "empty command")],
)
def test_a_command_that_cannot_run_is_refused_before_anything_starts(written: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_failure_command(written)


def test_a_log_holds_our_messages_and_the_warnings_of_others(tmp_path: Path) -> None:
    path = log_path(tmp_path, "1a2b")
    with log_to_file(path):
        logging.getLogger("pairwright.generators").info("asked")
        logging.getLogger("other").info("too much")
        logging.getLogger("other").warning("careful")
        warnings.warn("deprecated", stacklevel=1)
    logging.getLogger("pairwright.generators").warning("after the run")
    written = path.read_text()
    assert [line.split(" ", 1)[1] for line in written.splitlines()[:2]] == [
        "INFO pairwright.generators: asked",
        "WARNING other: careful",
    ]
    assert "deprecated" in written
    assert "after the run" not in written
    assert log_path(tmp_path, "1a2b") == path, "whoever writes later about the same run finds its file"


def test_the_newest_logs_stay(tmp_path: Path) -> None:
    (tmp_path / LOG_FOLDER).mkdir()
    for day in range(KEPT_FILES + 5):
        (tmp_path / LOG_FOLDER / f"2020-01-{day:02d}T00-00-00Z-{day}.log").touch()
    with log_to_file(log_path(tmp_path, "new")):
        pass
    names = sorted(path.name for path in (tmp_path / LOG_FOLDER).iterdir())
    assert len(names) == KEPT_FILES
    assert names[0].startswith("2020-01-06")
    assert names[-1].endswith("-new.log")
