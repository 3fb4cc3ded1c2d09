"""Options of `pairwright build` that require or exclude each other."""

from pathlib import Path

import pytest

from pairwright.cli.build import build
from pairwright.datasets.errors import UsageError


@pytest.mark.parametrize("finish", [False, True])
def test_waiting_without_a_part_is_refused(tmp_path: Path, finish: bool) -> None:  # noqa: FBT001 - a parameter of the table
    with pytest.raises(UsageError, match="--wait requires --part"):
        build(tmp_path / "build.yaml", wait=5, finish=finish)


def test_an_estimate_of_a_retry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--dry-run does not count the rows that --retry-failed bills again"):
        build(tmp_path / "build.yaml", dry_run=True, retry_failed=True)
