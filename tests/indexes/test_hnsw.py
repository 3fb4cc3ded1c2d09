"""Building and searching an index folder: near-exact answers, the same bytes, every pair found, damage refused."""

from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.indexes.checking import check_index
from pairwright.indexes.encoders import Vectors
from pairwright.indexes.hnsw import Batch, build_index
from pairwright.indexes.search import open_index, recall
from pairwright.indexes.sidecar import IndexInfo, IndexOptions
from tests.indexes.corpus import keys, mixture

SMALL = IndexOptions(flat_below=100)


def batched(vectors: Vectors, size: int = 500, names: list[str] | None = None) -> Iterator[Batch]:
    names = names or keys(len(vectors))
    for start in range(0, len(vectors), size):
        yield names[start : start + size], vectors[start : start + size]


@pytest.fixture(scope="module")
def pool() -> Vectors:
    return mixture(3000)


@pytest.fixture(scope="module")
def built(pool: Vectors, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, IndexInfo]:
    folder = tmp_path_factory.mktemp("index")
    return folder, build_index(batched(pool), folder, probes=mixture(200, 32, 40, "probes"))


def test_recall_at_ten_reaches_the_goal_on_new_queries(built: tuple[Path, IndexInfo]) -> None:
    index = open_index(built[0])
    queries = mixture(200, 32, 40, "queries")
    found, exact = index.search(queries, 10), index.exact(queries, 10)
    assert recall(found.scores.reshape(-1, 10), exact.scores.reshape(-1, 10)) >= 0.95


def test_scores_are_cosines_and_descend(built: tuple[Path, IndexInfo], pool: Vectors) -> None:
    frame = open_index(built[0]).search(pool[:3], 5).frame()
    assert frame["rank"].to_list() == [1, 2, 3, 4, 5] * 3
    assert frame.filter(frame["rank"] == 1)["key"].to_list() == keys(3)
    for query, key, score in frame.select("query", "key", "score").iter_rows():
        assert score == pytest.approx(float(pool[query] @ pool[int(key, 16)]), abs=1e-5)
    assert (np.diff(frame["score"].to_numpy().reshape(3, 5)) <= 0).all()


def test_the_sidecar_tells_how_it_was_built(built: tuple[Path, IndexInfo]) -> None:
    info = open_index(built[0]).info
    assert (info.kind, info.vectors, info.duplicates, info.dim) == ("hnsw", 3000, 0, 32)
    assert (info.m, info.ef_construction, info.metric) == (32, 200, "inner_product")
    assert info.bytes == sum(path.stat().st_size for path in built[0].iterdir() if path.name != "index.json")
    assert built[1].summary().keys() >= {"vectors", "duplicates", "seconds", "bytes", "kind"}


def test_check_measures_recall_and_speed(built: tuple[Path, IndexInfo]) -> None:
    checked = check_index(built[0])
    assert checked.recall >= 0.95
    assert checked.checksum_ok
    assert checked.queries_from == "probes"
    assert checked.qps > 0
    assert checked.exact_qps > 0


def test_check_raises_ef_search_until_recall_is_reached(built: tuple[Path, IndexInfo]) -> None:
    queries = mixture(100, 32, 1, "elsewhere")
    low, high = (check_index(built[0], queries=queries, wanted=wanted) for wanted in (0.01, 1.0))
    assert low.ef_search == built[1].ef_search <= high.ef_search
    assert low.recall <= high.recall


def test_the_same_vectors_give_the_same_bytes_in_any_batches_and_threads(pool: Vectors, tmp_path: Path) -> None:
    build_index(batched(pool[:800]), tmp_path / "a", options=IndexOptions(flat_below=100, threads=0))
    build_index(batched(pool[:800], 33), tmp_path / "b", options=IndexOptions(flat_below=100, threads=1))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_small_pool_is_searched_exactly(pool: Vectors, tmp_path: Path) -> None:
    info = build_index(batched(pool[:999]), tmp_path)
    assert info.kind == "flat"
    assert build_index(batched(pool[:1000]), tmp_path).kind == "hnsw"
    assert check_index(tmp_path, k=5).queries_from == "stored"


def test_identical_vectors_are_stored_once_and_all_found(pool: Vectors, tmp_path: Path) -> None:
    """Pairs 0, 3 and 4 share a vector: they stand together, in the order of the input, and K cuts the list."""
    rows = pool[[0, 1, 2, 0, 0, 1]]
    info = build_index(batched(rows, 2), tmp_path)
    assert (info.vectors, info.duplicates) == (3, 3)
    index = open_index(tmp_path)
    whole = index.search(pool[:1], 10).frame()["key"].to_list()
    assert whole[:3] == [keys(6)[n] for n in (0, 3, 4)]
    assert sorted(whole) == keys(6)
    assert index.search(pool[:1], 2).frame()["key"].to_list() == whole[:2]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 40), st.integers(1, 7))
def test_every_pair_is_found_exactly_once(tmp_path: Path, drawn: list[int], k: int, size: int) -> None:
    rows = mixture(6)[drawn]
    build_index(batched(rows, size), tmp_path / "any")
    frame = open_index(tmp_path / "any").search(rows[:2], k).frame()
    for _, hits in frame.group_by("query"):
        assert hits["key"].n_unique() == hits.height == min(k, len(drawn))
        assert hits["rank"].to_list() == list(range(1, hits.height + 1))


@pytest.mark.parametrize("name", ["vectors.faiss", "keys.npy", "aliases.npy"])
def test_a_truncated_file_is_refused(pool: Vectors, tmp_path: Path, name: str) -> None:
    build_index(batched(pool[:300]), tmp_path, options=SMALL)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1])
    with pytest.raises(StorageError, match=f"{name}: has .* bytes instead of"):
        open_index(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(StorageError, match=f"{name}: is missing"):
        open_index(tmp_path)


def test_a_file_of_another_index_is_refused(pool: Vectors, tmp_path: Path) -> None:
    """Same size, other content: the header betrays it."""
    build_index(batched(pool[:300]), tmp_path, options=SMALL)
    raw = bytearray((tmp_path / "vectors.faiss").read_bytes())
    raw[:4] = b"XXXX"
    (tmp_path / "vectors.faiss").write_bytes(raw)
    with pytest.raises(StorageError, match="Build it again"):
        open_index(tmp_path)


def test_a_changed_byte_fails_the_checksum(pool: Vectors, tmp_path: Path) -> None:
    build_index(batched(pool[:300]), tmp_path, options=SMALL)
    raw = bytearray((tmp_path / "keys.npy").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "keys.npy").write_bytes(raw)
    assert not check_index(tmp_path).checksum_ok


def test_an_unfinished_build_is_no_index(pool: Vectors, tmp_path: Path) -> None:
    """Building again takes the sidecar away first, so that what a kill leaves is never opened."""
    build_index(batched(pool[:300]), tmp_path, options=SMALL)

    def broken() -> Iterator[Batch]:
        yield from batched(pool[:10])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(broken(), tmp_path, options=SMALL)
    with pytest.raises(StorageError, match="no index here"):
        open_index(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 99}', '{"format": 1, "colour": 2}'])
def test_a_damaged_sidecar_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(StorageError, match=r"index\.json"):
        open_index(tmp_path)


def test_wrong_vectors_and_keys_are_told(pool: Vectors, tmp_path: Path) -> None:
    wrong = pool[:3].copy()
    wrong[1] = np.nan
    with pytest.raises(InputError, match=f"{keys(2)[1]}: its vector has not length 1"):
        build_index(batched(wrong), tmp_path)
    with pytest.raises(InputError, match="2 keys with vectors of shape"):
        build_index([(keys(2), pool[:3])], tmp_path)
    with pytest.raises(InputError, match="'x' is not a pair key"):
        build_index([(["x"], pool[:1])], tmp_path)
    with pytest.raises(InputError, match="a pair key comes twice"):
        build_index([([keys(1)[0]] * 2, pool[:2])], tmp_path)
    with pytest.raises(InputError, match="no vectors"):
        build_index([], tmp_path)


def test_impossible_searches_are_told(built: tuple[Path, IndexInfo], pool: Vectors) -> None:
    index = open_index(built[0])
    with pytest.raises(UsageError, match="at least 1"):
        index.search(pool[:1], 0)
    with pytest.raises(UsageError, match="length 32"):
        index.search(pool[:1, :16], 5)


@pytest.mark.parametrize("options", [{"m": 1}, {"ef_construction": 8}, {"recall": 0.0}, {"threads": -1}])
def test_impossible_options_are_told(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        IndexOptions(**options)  # type: ignore[arg-type]  # one wrong value each


def test_building_leaves_the_number_of_threads_alone(pool: Vectors, tmp_path: Path) -> None:
    before = faiss.omp_get_max_threads()
    build_index(batched(pool[:20]), tmp_path, options=IndexOptions(threads=1))
    assert faiss.omp_get_max_threads() == before


def test_a_file_in_the_place_of_the_folder_is_told(pool: Vectors, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        build_index(batched(pool[:20]), tmp_path / "taken")
