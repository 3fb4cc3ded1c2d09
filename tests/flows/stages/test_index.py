"""The index stage of a build: its parts are jobs of their own, and no number of workers changes a byte."""

from pathlib import Path

import pytest

from pairwright.flows.build import build
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.stages.index import default_shards
from pairwright.flows.state.layout import read_pair_parts
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.hnsw.metadata import METADATA_FILE
from tests.flows.conftest import checked, settings
from tests.flows.test_build import Heard

PARTS = 3


def indexed(corpus: Path, out: Path, workers: int) -> Path:
    """Build as far as the index, in parts."""
    for stage, processes in (("pairs", 1), ("index", workers)):
        config = checked(settings(corpus, index={"shards": PARTS}, workers=processes))
        build(config, out, prefect=False, selection=StageSelection(only=stage))
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


def test_the_parts_of_a_build_give_the_index_that_all_pairs_at_once_give(alone: Path, tmp_path: Path) -> None:
    names = sorted(path.stem for path in (alone / "pairs").glob("*.parquet"))
    build_index_from_pairs(lambda: read_pair_parts(alone, names), tmp_path / "index", shards=PARTS, keep_pairs=False)
    whole = contents(tmp_path)
    parts = contents(alone)
    assert {name: whole[name] for name in whole if METADATA_FILE not in name} == {
        name: parts[name] for name in parts if METADATA_FILE not in name
    }


def test_a_part_of_the_index_that_is_missing_is_built_again_alone(alone: Path, corpus: Path) -> None:
    before = contents(alone)
    (alone / "index" / "text-00001" / "keys.npy").unlink()
    heard = Heard()
    config = checked(settings(corpus, index={"shards": PARTS}, workers=1))
    build(config, alone, heard, prefect=False, selection=StageSelection(only="index"))
    assert heard.ran["index"] == 1
    assert contents(alone) == before


def test_the_number_of_parts_grows_with_the_root_of_the_pairs() -> None:
    assert [default_shards(pairs) for pairs in (1, 4_000, 20_000, 200_000, 10_000_000)] == [1, 1, 3, 7, 50]
