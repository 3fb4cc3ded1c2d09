"""Search of an index folder: near-exact results, merged parts, damage detected."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import Index, open_index, score_recall
from tests.indexes.corpus import Given, keys, mixture, numbered

COUNT = 3000


@pytest.fixture(scope="module")
def pool() -> Vectors:
    return mixture(COUNT)


@pytest.fixture(scope="module")
def folder(pool: Vectors, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("index")
    build_index_from_pairs(
        lambda: [numbered(COUNT)], directory, vectors=Given(pool), shards=3, options=IndexOptions(flat_below=100)
    )
    return directory


@pytest.fixture(scope="module")
def index(folder: Path) -> Index:
    return open_index(folder)


def test_recall_at_ten_reaches_the_goal_on_new_queries(index: Index) -> None:
    queries = mixture(200, 32, 40, "queries")
    found, exact = index.search(queries, 10), index.exact(queries, 10)
    assert score_recall(found.scores.reshape(-1, 10), exact.scores.reshape(-1, 10)) >= 0.95


def test_scores_are_cosines_and_descend(index: Index, pool: Vectors) -> None:
    frame = index.search(pool[:3], 5).frame()
    assert frame["rank"].to_list() == [1, 2, 3, 4, 5] * 3
    assert frame.filter(frame["rank"] == 1)["key"].to_list() == keys(3)
    for query, key, score in frame.select("query", "key", "score").iter_rows():
        assert score == pytest.approx(float(pool[query] @ pool[int(key, 16)]), abs=1e-5)
    assert (np.diff(frame["score"].to_numpy().reshape(3, 5)) <= 0).all()


def test_exact_search_over_parts_is_that_over_all_vectors(index: Index, pool: Vectors) -> None:
    queries = mixture(20, 32, 40, "queries")
    order = np.argsort(-(queries @ pool.T), axis=1)[:, :7]
    found = index.exact(queries, 7).frame()["key"].to_list()
    assert found == [keys(COUNT)[number] for number in order.ravel()]


@given(st.integers(1, 60), st.integers(0, 99))
def test_merged_results_are_the_best_of_all_parts(index: Index, k: int, query: int) -> None:
    vectors = mixture(100, 32, 40, "queries")[query : query + 1]
    alone = [Index(index.directory, index.info, (part,)).search(vectors, k).frame() for part in index.parts]
    scored = sorted((-score, key) for frame in alone for key, score in frame.select("key", "score").iter_rows())
    merged = index.search(vectors, k).frame()
    assert sorted(zip((-merged["score"]).to_list(), merged["key"].to_list(), strict=True)) == scored[:k]


def test_equal_scores_are_ordered_by_part(tmp_path: Path) -> None:
    rows = np.repeat(mixture(1), 4, axis=0)
    build_index_from_pairs(lambda: [numbered(4)], tmp_path, vectors=Given(rows), shards=4)
    assert open_index(tmp_path).search(rows[:1], 3).frame()["key"].to_list() == keys(3)


def test_tuning_takes_the_least_effort_that_reaches_the_recall(index: Index) -> None:
    queries = mixture(100, 32, 40, "queries")
    low, high = (index.tune(queries, 10, wanted) for wanted in (0.01, 1.0))
    assert (low.ef_search, len(low.ladder)) == (16, 1)
    assert high.ef_search >= low.ef_search
    assert all(reached < 1 for _, reached, _ in high.ladder[:-1])
    exact = index.exact(queries, 10).scores.reshape(-1, 10)
    found = index.search(queries, 10, ef_search=high.ef_search).scores.reshape(-1, 10)
    assert score_recall(found, exact) == high.recall


def test_invalid_searches_are_refused(index: Index, pool: Vectors) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        index.search(pool[:1], 0)
    with pytest.raises(UsageError, match="length 32"):
        index.search(pool[:1, :16], 5)
    with pytest.raises(UsageError, match="no image vectors in this index, only text"):
        index.search(pool[:1], 5, modality="image")
    for wrong in (3 * pool[:2], np.full((2, 32), np.nan, np.float32)):
        with pytest.raises(UsageError, match="vector 0 does not have length 1"):
            index.search(wrong, 5)
    with pytest.raises(UsageError, match="at least one query"):
        index.tune(pool[:0], 5, 0.9)


def copied(folder: Path, to: Path) -> Path:
    for path in folder.rglob("*"):
        if path.is_file():
            (to / path.relative_to(folder)).parent.mkdir(exist_ok=True)
            (to / path.relative_to(folder)).write_bytes(path.read_bytes())
    return to


@pytest.mark.parametrize("name", ["vectors.faiss", "keys.npy", "aliases.npy", "probes.npz"])
def test_a_truncated_file_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    path = copied(folder, tmp_path) / "text-00001" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=f"{name}: has .* bytes instead of"):
        open_index(tmp_path)
    path.unlink()
    with pytest.raises(StorageError, match=f"{name}: is missing"):
        open_index(tmp_path)


@pytest.mark.parametrize("name", ["vectors.faiss", "keys.npy", "aliases.npy"])
def test_a_file_of_the_same_size_with_another_header_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    path = copied(folder, tmp_path) / "text-00001" / name
    raw = bytearray(path.read_bytes())
    raw[:8] = b"XXXXXXXX"
    path.write_bytes(raw)
    with pytest.raises(StorageError, match="Build"):
        open_index(tmp_path)


def test_files_of_two_indexes_mixed_are_refused(folder: Path, tmp_path: Path) -> None:
    """Its size is right, but it was built of pairs in another number."""
    path = copied(folder, tmp_path) / "text-00001" / "keys.npy"
    rows = np.load(path)
    np.save(path, rows.reshape(-1, 32))
    with pytest.raises(StorageError, match="do not match"):
        open_index(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 99}', '{"format": 2, "parts": []}', '{"format": 2}'])
def test_a_damaged_sidecar_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(StorageError, match=r"index\.json"):
        open_index(tmp_path)


def test_the_reported_effort_is_never_below_k(tmp_path: Path) -> None:
    """A graph keeps K candidates for any effort, so a lower effort would be reported as cheaper than it is."""
    build_index_from_pairs(
        lambda: [numbered(2000)], tmp_path, vectors=Given(mixture(2000)), options=IndexOptions(flat_below=100)
    )
    tuned = open_index(tmp_path).tune(mixture(50, 32, 40, "queries"), 100, 0.01)
    assert tuned.ef_search == 100
