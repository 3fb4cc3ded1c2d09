"""The index stage of a build: its parts are built side by side by the build's pool, and no pool changes a byte."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.build import build
from pairwright.flows.config.sections import IndexSection
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.stages.index import IndexStage
from tests.flows.conftest import checked, settings

PARTS = 3


class AllAtOnce(Executor):
    """Starts its jobs when it has `PARTS` of them; a caller that waits for one before the next gets an error."""

    def __init__(self) -> None:
        self._pool, self._together = ThreadPoolExecutor(PARTS), threading.Barrier(PARTS, timeout=60)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":
        """Run a job when there are enough of them."""

        def wait_and_run() -> Any:
            self._together.wait()
            return fn(*args)

        return self._pool.submit(wait_and_run)


def indexed(corpus: Path, out: Path, workers: int) -> Path:
    """Build as far as the index, in parts."""
    config = checked(settings(corpus, index={"shards": PARTS}, workers=workers))
    build(config, out, prefect=False, selection=StageSelection(only="pairs"))
    build(config, out, prefect=False, selection=StageSelection(only="index"))
    return out


def contents(out: Path) -> dict[str, bytes]:
    files = (path for path in sorted((out / "index").rglob("*")) if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def alone(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build directory with the index that one process makes."""
    return indexed(corpus, tmp_path_factory.mktemp("alone"), 1)


def test_an_index_built_by_several_processes_has_the_bytes_of_one(alone: Path, corpus: Path, tmp_path: Path) -> None:
    assert contents(indexed(corpus, tmp_path, 2)) == contents(alone)


def test_the_parts_of_the_index_are_built_side_by_side(alone: Path) -> None:
    before = contents(alone)
    asked: list[int] = []

    def side_by_side(parts: int) -> tuple[Executor, int]:
        asked.append(parts)
        return AllAtOnce(), 1

    stage = IndexStage(side_by_side, threading.Event())
    outcome = stage(alone, ["00000", "00001", "00002"], IndexSection(shards=PARTS), "", 0)
    assert asked == [PARTS]
    assert outcome.counts.kept == 160
    assert contents(alone) == before


def test_a_build_that_is_stopped_does_not_read_all_pairs_for_the_index_first(alone: Path) -> None:
    stop = threading.Event()
    stop.set()
    stage = IndexStage(lambda _: (AllAtOnce(), 1), stop)
    with pytest.raises(PairwrightError, match="stopped"):
        stage(alone, ["00000", "00001", "00002"], IndexSection(shards=PARTS), "", 0)
