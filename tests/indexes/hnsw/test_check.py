"""Check of an index: recall against the true vectors per modality, and checksums."""

from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import UsageError
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.hnsw.check import check_index
from pairwright.indexes.hnsw.metadata import IndexInfo
from pairwright.indexes.hnsw.options import IndexOptions
from tests.indexes.corpus import Given, mixture, numbered

COUNT = 3000
SMALL = IndexOptions(flat_below=100)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, IndexInfo]:
    folder = tmp_path_factory.mktemp("index")
    vectors = Given(mixture(COUNT), mixture(COUNT, 32, 40, "images"))
    info = build_index_from_pairs(
        lambda: [numbered(COUNT)], folder, vectors=vectors, modalities=("text", "image"), shards=2, options=SMALL
    )
    return folder, info


def test_check_measures_recall_and_speed_of_each_modality(built: tuple[Path, IndexInfo]) -> None:
    checked = check_index(built[0])
    assert [(pool.modality, pool.parts) for pool in checked.pools] == [
        ("text", ("text-00000", "text-00001")),
        ("image", ("image-00000", "image-00001")),
    ]
    assert checked.recall == min(pool.recall for pool in checked.pools) >= 0.95
    assert checked.checksum_ok
    assert (checked.queries_from, checked.queries, checked.k) == ("sample", 500, 10)
    assert all(pool.qps > 0 and pool.exact_qps > 0 for pool in checked.pools)
    assert [pool.modality for pool in check_index(built[0], modality="image").pools] == ["image"]


def test_check_raises_ef_search_until_recall_is_reached(built: tuple[Path, IndexInfo]) -> None:
    queries = mixture(100, 32, 1, "elsewhere")
    low, high = (check_index(built[0], queries=queries, modality="text", wanted=wanted) for wanted in (0.01, 1.0))
    assert low.queries_from == "given"
    assert low.ef_search == max(part.ef_search for part in built[1].parts_of("text")) <= high.ef_search
    assert low.recall <= high.recall


def test_recall_is_against_the_vectors_before_they_were_rounded(tmp_path: Path) -> None:
    """Eight bits a dimension swap near neighbours: search is exact among what is stored, and recall says less than 1."""
    options = IndexOptions(flat_below=10_000, storage="int8", near=1)
    build_index_from_pairs(lambda: [numbered(2000)], tmp_path, vectors=Given(mixture(2000, 32, 1)), options=options)
    rounded = check_index(tmp_path, wanted=0.5)
    assert rounded.pools[0].queries_from == "sample"
    assert 0.8 < rounded.recall < 1
    given = check_index(tmp_path, queries=mixture(100, 32, 1, "queries"))
    assert given.recall == 1


def test_more_neighbours_than_the_truth_holds_are_measured_on_stored_vectors(built: tuple[Path, IndexInfo]) -> None:
    checked = check_index(built[0], k=101, modality="text")
    assert (checked.queries_from, checked.k) == ("stored", 101)


def test_a_changed_byte_fails_the_checksum_and_is_named(tmp_path: Path) -> None:
    build_index_from_pairs(lambda: [numbered(50)], tmp_path, vectors=Given(mixture(50)))
    path = tmp_path / "text-00000" / "keys.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    checked = check_index(tmp_path)
    assert not checked.checksum_ok
    assert checked.damaged == ("text-00000/keys.npy",)


def test_invalid_arguments_of_a_check_are_refused(built: tuple[Path, IndexInfo]) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        check_index(built[0], 0)
    with pytest.raises(UsageError, match="length 32"):
        check_index(built[0], queries=np.empty((0, 32), np.float32))
