"""The two known breaks of Prefect are found before Prefect is imported."""

import os
from importlib import metadata
from pathlib import Path

import pytest

from pairwright.datasets.errors import MissingResourceError
from pairwright.flows.prefect import preflight


def versions(monkeypatch: pytest.MonkeyPatch, **installed: str) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)


def test_nothing_is_said_when_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, prefect="3.8.8", fastapi="0.150.0")
    assert preflight.prefect_problems() == []


@pytest.mark.parametrize("version", ["0.155.0", "0.160.1", "1.0"])
def test_a_fastapi_that_is_too_new_is_found(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    versions(monkeypatch, prefect="3.8.8", fastapi=version)
    (problem,) = preflight.prefect_problems()
    assert "pip install 'fastapi<0.151'" in problem


def test_the_dataclasses_backport_is_found_and_stops_a_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, prefect="3.8.8", fastapi="0.150.0", dataclasses="0.6")
    with pytest.raises(MissingResourceError, match="pip uninstall dataclasses"):
        preflight.refuse_broken_prefect()


def test_telemetry_is_off_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "true")
    preflight.prepare_prefect()
    assert os.environ["DO_NOT_TRACK"] == "1"
    assert os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] == "true"


def test_a_prefect_home_that_cannot_be_written_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    versions(monkeypatch, prefect="3.8.8", fastapi="0.150.0")
    (tmp_path / "file").touch()
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    (problem,) = preflight.prefect_problems()
    assert "PREFECT_HOME" in problem


def test_the_folder_that_prefect_needs_is_made_with_all_above_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    versions(monkeypatch, prefect="3.8.8", fastapi="0.150.0")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "not" / "there"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    preflight.refuse_broken_prefect()
    assert (tmp_path / "not" / "there").is_dir()
