"""Reporters of the training log, each without a network; those that are not installed are skipped."""

import sqlite3
from pathlib import Path

import pytest

from pairwright.datasets.errors import MissingResourceError, PluginError, UsageError

pytest.importorskip("torch", reason="torch is an extra")

from accelerate import Accelerator  # type: ignore[import-untyped]

from pairwright.training.recipes.reading import read_recipe
from pairwright.training.reporters import check_reporters, open_reporters
from pairwright.training.run_folder import Run


def row(step: int) -> dict[str, float]:
    return {"loss": 5.0 - step, "lr": 1e-3, "loss_image": 0.5}


def report(names: str, out: Path, *steps: int, first: int = 0) -> None:
    out.mkdir(exist_ok=True)
    run = Run(read_recipe("clip"), "shards", "model", out, report_to=tuple(names.split()))
    with open_reporters(Accelerator(), run, first) as add:
        for step in steps:
            add(row(step), step)


def test_an_unknown_reporter_and_a_missing_package_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="Did you mean wandb"):
        check_reporters(["wandbb"])
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingResourceError, match="pip install mlflow trackio"):
        check_reporters(["mlflow", "trackio"])


def test_without_reporters_nothing_is_written(tmp_path: Path) -> None:
    report("", tmp_path / "run", 1)
    assert list((tmp_path / "run").iterdir()) == []


def test_tensorboard_has_the_values_and_a_resumed_run_replaces_later_steps(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    report("tensorboard", tmp_path / "run", 1, 2, 3)
    report("tensorboard", tmp_path / "run", 2, first=1)
    events = EventAccumulator(str(tmp_path / "run/reports/pairwright"))
    events.Reload()
    assert [(each.step, each.value) for each in events.Scalars("loss")] == [(1, 4.0), (2, 3.0)]
    assert "loss_image" in events.Tags()["scalars"]


def test_a_reporter_that_cannot_start_ends_the_run_with_its_own_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    for name, value in {"WANDB_MODE": "offline", "WANDB_PROJECT": "red/blue?", "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PluginError, match=r"--report-to wandb: .*Fix it and continue with --resume"):
        report("wandb", tmp_path / "run", 1)


def test_a_reporter_that_cannot_finish_ends_the_run_with_its_own_reason(tmp_path: Path) -> None:
    class Unreachable:
        def finish(self) -> None:
            raise ConnectionError("no route to the server")

    accelerator = Accelerator()
    run = Run(read_recipe("clip"), "shards", "model", tmp_path)
    with pytest.raises(PluginError, match="no route to the server"), open_reporters(accelerator, run, 0):
        accelerator.trackers = [Unreachable()]


@pytest.mark.slow
def test_wandb_writes_offline_runs_of_one_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    report("wandb", tmp_path / "run", 1, 2)
    report("wandb", tmp_path / "run", 3, first=2)
    found = list((tmp_path / "run/wandb").glob("offline-run-*"))
    assert len(found) == 2
    number = (tmp_path / "run/reporting_id").read_text().strip()
    assert all(f"-{number}" in folder.name for folder in found)  # two runs of one second: ID and ID-1
    assert all(any(folder.glob("*.wandb")) for folder in found)


@pytest.mark.slow
def test_mlflow_has_values_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    report("mlflow", tmp_path / "run", 1, 2)
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        values = base.execute("select step, value from metrics where key = 'loss' order by step").fetchall()
        assert values == [(1, 4.0), (2, 3.0)]
        assert base.execute("select value from params where key = 'optimizer.lr'").fetchall() == [("5e-06",)]


class Tracker:
    """A tracker that knows whether it was closed."""

    name = "tracker"
    finished = False

    def finish(self) -> None:
        """Note that it was closed."""
        self.finished = True


def fail(out: Path, names: tuple[str, ...] = (), trackers: tuple[Tracker, ...] = ()) -> None:
    """Report one step of a run that then fails."""
    accelerator, run = Accelerator(), Run(read_recipe("clip"), "shards", "model", out, report_to=names)
    with open_reporters(accelerator, run, 0) as add:
        add(row(1), 1)
        accelerator.trackers += trackers
        raise RuntimeError("no memory")


def test_trackers_of_a_run_that_fails_are_closed_and_its_own_error_is_raised(tmp_path: Path) -> None:
    tracker = Tracker()
    with pytest.raises(RuntimeError, match="no memory"):
        fail(tmp_path, trackers=(tracker,))
    assert tracker.finished


@pytest.mark.slow
def test_mlflow_has_a_run_that_fails_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    with pytest.raises(RuntimeError, match="no memory"):
        fail(tmp_path, names=("mlflow",))
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        assert base.execute("select status from runs").fetchall() == [("FAILED",)]


@pytest.mark.slow
def test_a_project_of_any_name_keeps_its_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.setenv("WANDB_PROJECT", "model")
    report("tensorboard", tmp_path, 1)
    assert not (tmp_path / "model").exists()
    assert any((tmp_path / "reports/model").rglob("events.*"))


@pytest.mark.slow
def test_trackio_writes_its_database_and_a_resumed_run_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    report("trackio", tmp_path / "run", 1, 2)
    report("trackio", tmp_path / "run", 3, first=2)
    with sqlite3.connect(tmp_path / "trackio/pairwright.db") as base:
        assert base.execute("select distinct run_name from metrics").fetchall() == [
            (f"run-{(tmp_path / 'run/reporting_id').read_text().strip()}",)
        ]
        assert base.execute("select step from metrics order by step").fetchall() == [(1,), (2,), (3,)]
