"""Vector stores: accuracy, memory-mapped opening, extension, and damage detection of each form."""

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import limit_faiss_threads
from pairwright.indexes.hnsw.float16_rows import extend_float16_rows, new_float16_rows, open_float16_rows
from pairwright.indexes.hnsw.graph import SearchResult
from pairwright.indexes.hnsw.metadata import FLOAT16_ROWS_FILE, VECTORS_FILE
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.storage import (
    VECTOR_STORAGES,
    StorageChoice,
    VectorStore,
    choose_storage,
    new_store,
    open_store,
    training_row_count,
)
from pairwright.indexes.hnsw.top_k import TopK
from tests.example_counts import THOROUGH
from tests.indexes.corpus import mixture

DIM, COUNT = 32, 2000
FORMS = [("flat", 10**6), ("flat", 0), ("fp16", 0), ("fp16", 10**6), ("int8", 0), ("int8", 10**6), ("ivfpq", 0)]
LOSS = {"flat": 1e-6, "fp16": 1e-3, "int8": 1e-2, "ivfpq": 1e-3}  # of a cosine, at 32 dimensions


@pytest.fixture(scope="module")
def pool() -> Vectors:
    return mixture(COUNT)


@pytest.fixture(scope="module")
def queries() -> Vectors:
    return mixture(100, DIM, 40, "queries")


def options_of(storage: str, flat_below: int = 0) -> IndexOptions:
    return IndexOptions(storage=storage, flat_below=flat_below)  # type: ignore[arg-type]  # from FORMS


def build(rows: Vectors, directory: Path, options: IndexOptions, block: int = 512) -> tuple[StorageChoice, VectorStore]:
    choice = choose_storage(len(rows), rows.shape[1], options)
    sample = rows[: training_row_count(choice.storage, len(rows))]
    index = new_store(choice, directory, count=len(rows), options=options, sample=sample)
    for start in range(0, len(rows), block):
        index.add(rows[start : start + block])
    return choice, index


class Made(NamedTuple):
    """An index of the pool in a form, not yet written, and what it answers."""

    choice: StorageChoice
    folder: Path
    stored: VectorStore
    answers: SearchResult


@pytest.fixture(scope="module")
def made(pool: Vectors, queries: Vectors, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Made]:
    """Give the index of the pool in a form, made once."""

    @cache
    def make(storage: str, flat_below: int) -> Made:
        folder = tmp_path_factory.mktemp("form")
        choice, index = build(pool, folder, options_of(storage, flat_below))
        return Made(choice, folder, index, index.search(queries, 10))

    return make


@pytest.fixture(scope="module")
def standing(made: Callable[[str, int], Made]) -> Callable[[str, int], VectorStore]:
    """Give that index; it is asked only."""
    return lambda storage, flat_below: made(storage, flat_below).stored


@pytest.fixture(scope="module")
def written(made: Callable[[str, int], Made]) -> Callable[[str, int], tuple[StorageChoice, Path, tuple[str, ...]]]:
    """Give its folder, written once, and its files; to be copied and spoilt."""

    @cache
    def write(storage: str, flat_below: int) -> tuple[StorageChoice, Path, tuple[str, ...]]:
        choice, folder, index, _ = made(storage, flat_below)
        return choice, folder, tuple(index.write())

    return write


@pytest.mark.parametrize(("storage", "flat_below"), FORMS)
def test_each_form_answers_the_same_before_it_is_written_and_when_opened(
    storage: str,
    flat_below: int,
    made: Callable[[str, int], Made],
    written: Callable[[str, int], tuple[StorageChoice, Path, tuple[str, ...]]],
    queries: Vectors,
) -> None:
    before = made(storage, flat_below).answers
    choice, folder, names = written(storage, flat_below)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    opened = open_store(folder, choice.kind, choice.storage)
    assert (opened.kind, opened.storage, opened.dim, opened.vectors) == (choice.kind, choice.storage, DIM, COUNT)
    after = opened.search(queries, 10)
    assert np.array_equal(before[0], after[0])
    assert np.array_equal(before[1], after[1])


@pytest.mark.parametrize(("storage", "flat_below"), FORMS)
def test_each_form_finds_the_true_neighbours(
    storage: str, flat_below: int, pool: Vectors, queries: Vectors, standing: Callable[[str, int], VectorStore]
) -> None:
    index = standing(storage, flat_below)
    true = queries @ pool.T
    tenth = -np.partition(-true, 9, axis=1)[:, 9:10]
    scores, numbers = index.search(queries, 10)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (np.take_along_axis(true, numbers, 1) >= tenth - LOSS[storage]).mean() >= 0.95
    exact, best = index.exact(queries, 10)
    assert np.take_along_axis(true, best, 1) == pytest.approx(exact, abs=LOSS[storage])
    assert (exact[:, -1:] >= tenth - LOSS[storage]).all()


@pytest.mark.parametrize(("storage", "flat_below"), FORMS)
def test_decoded_rows_equal_as_stored_and_are_near_the_original(
    storage: str, flat_below: int, pool: Vectors, standing: Callable[[str, int], VectorStore]
) -> None:
    index = standing(storage, flat_below)
    numbers = np.array([7, 0, COUNT - 1])
    assert np.array_equal(index.stored(numbers), index.as_stored(pool[numbers]))
    assert (np.abs((index.stored(numbers) * pool[numbers]).sum(axis=1) - 1) < LOSS[storage]).all()


@pytest.mark.parametrize(("storage", "flat_below"), FORMS)
def test_the_bytes_are_the_same_for_any_number_of_threads(
    storage: str, flat_below: int, pool: Vectors, tmp_path: Path
) -> None:
    found = []
    for threads in (1, 2, 3) if THOROUGH else (1, 3):
        folder = tmp_path / str(threads)
        with limit_faiss_threads(threads):
            _, index = build(pool, folder, options_of(storage, flat_below))
            found.append([(folder / name).read_bytes() for name in index.write()])
    assert all(each == found[0] for each in found[1:])


@pytest.mark.parametrize(("storage", "flat_below"), FORMS)
def test_an_index_that_is_extended_equals_one_that_was_built_at_once(
    storage: str, flat_below: int, pool: Vectors, tmp_path: Path
) -> None:
    options = options_of(storage, flat_below)
    choice, whole = build(pool, tmp_path / "whole", options)
    sample = pool[: training_row_count(choice.storage, COUNT)]
    first = new_store(choice, tmp_path / "first", count=COUNT, options=options, sample=sample)
    for start in (0, 512):
        first.add(pool[start : start + 512])
    first.write()
    second = open_store(tmp_path / "first", choice.kind, choice.storage, into=tmp_path / "second", count=COUNT)
    for start in (1024, 1536):
        second.add(pool[start : start + 512])
    for name in whole.write():
        second.write()
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert open_store(tmp_path / "first", choice.kind, choice.storage).vectors == 1024


@pytest.mark.parametrize("storage", VECTOR_STORAGES)
def test_fewer_than_k_results_are_padded(storage: str, pool: Vectors, tmp_path: Path) -> None:
    choice = choose_storage(300, DIM, options_of(storage))
    index = new_store(choice, tmp_path, count=300, options=options_of(storage), sample=pool)
    index.add(pool[:3])
    for scores, numbers in (index.search(pool[:2], 5), index.exact(pool[:2], 5)):
        assert (numbers[:, 3:] == -1).all()
        assert np.isneginf(scores[:, 3:]).all()
        assert numbers[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize("storage", VECTOR_STORAGES)
def test_more_effort_misses_fewer(storage: str, queries: Vectors, standing: Callable[[str, int], VectorStore]) -> None:
    index = standing(storage, 0)
    exact = index.exact(queries, 10)[0]
    reached = [
        (index.search(queries, 10, effort)[0] >= exact[:, -1:] - 1e-6).mean()
        for effort in (index.efforts[0], index.efforts[-1])
    ]
    assert reached[0] < reached[1]
    assert reached[1] >= 0.99


def test_length_need_not_be_a_multiple_of_the_code(tmp_path: Path) -> None:
    rows = mixture(1000, 30)
    choice, index = build(rows, tmp_path, options_of("ivfpq"))
    index.write()
    opened = open_store(tmp_path, choice.kind, choice.storage)
    assert opened.search(rows[:50], 1, 16)[1][:, 0].tolist() == list(range(50))


def test_every_storage_uses_the_inner_product(pool: Vectors, tmp_path: Path) -> None:
    for storage, flat_below in FORMS:
        _, index = build(pool[:600], tmp_path, options_of(storage, flat_below))
        index.write()
        assert faiss.read_index(str(tmp_path / VECTORS_FILE)).metric_type == faiss.METRIC_INNER_PRODUCT


@pytest.mark.parametrize(("gib", "storage"), [(16, "flat"), (1.5, "fp16"), (1.0, "int8"), (0.1, "ivfpq")])
def test_auto_takes_the_form_that_loses_least_within_the_budget(gib: float, storage: str) -> None:
    choice = choose_storage(10**6, 512, IndexOptions(memory_gib=gib))
    assert choice.storage == storage
    assert choice.total_bytes <= gib * 2**30
    assert f"storage {storage}" in choice.why
    assert f"{gib:g} GiB" in choice.why


@pytest.mark.parametrize(("storage", "size"), [("flat", 2320), ("fp16", 1296), ("int8", 784)])
def test_a_vector_takes_the_estimated_bytes(storage: str, size: int, tmp_path: Path) -> None:
    assert choose_storage(10**6, 512, options_of(storage)).bytes_per_vector == size
    rows = mixture(2000, 512)
    choice, index = build(rows, tmp_path, options_of(storage))
    index.write()
    assert (tmp_path / VECTORS_FILE).stat().st_size / 2000 == pytest.approx(choice.bytes_per_vector, rel=0.02)


def test_nothing_fits_a_budget_that_is_too_small() -> None:
    with pytest.raises(UsageError, match=r"0\.1 GiB"):
        choose_storage(10**8, 512, IndexOptions(memory_gib=0.1))


def test_a_small_pool_has_no_graph() -> None:
    assert choose_storage(199_999, 512, IndexOptions()).kind == "flat"
    assert choose_storage(200_000, 512, IndexOptions()).kind == "hnsw"


@pytest.mark.parametrize("storage", ["int8", "ivfpq"])
def test_a_form_that_learns_says_when_it_has_nothing_to_learn_from(storage: str, tmp_path: Path) -> None:
    choice = choose_storage(5000, DIM, options_of(storage))
    with pytest.raises(InputError, match="to train"):
        new_store(choice, tmp_path, count=5000, options=options_of(storage))


@pytest.mark.parametrize(("storage", "flat_below"), FORMS)
@pytest.mark.parametrize("into", [None, "more"])
def test_a_torn_file_is_refused(
    storage: str,
    flat_below: int,
    into: str | None,
    written: Callable[[str, int], tuple[StorageChoice, Path, tuple[str, ...]]],
    tmp_path: Path,
) -> None:
    choice, folder, names = written(storage, flat_below)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for name in names:
        whole = (tmp_path / name).read_bytes()
        for length in (0, 50, len(whole) // 2, len(whole) - 100):
            (tmp_path / name).write_bytes(whole[:length])
            with pytest.raises(StorageError, match=r"damaged"):
                open_store(tmp_path, choice.kind, choice.storage, into=(tmp_path / into) if into else None)
        (tmp_path / name).unlink()
        with pytest.raises(StorageError, match=r"missing|No such file"):
            open_store(tmp_path, choice.kind, choice.storage)
        (tmp_path / name).write_bytes(whole)


def test_a_file_of_another_form_is_refused(
    written: Callable[[str, int], tuple[StorageChoice, Path, tuple[str, ...]]],
) -> None:
    _, folder, _ = written("fp16", 0)
    with pytest.raises(StorageError, match="not an inner-product index of kind ivfpq"):
        open_store(folder, "ivfpq", "ivfpq")
    with pytest.raises(StorageError, match="not an inner-product index of kind flat"):
        open_store(folder, "flat", "flat")
    with pytest.raises(StorageError, match="not stored as flat"):
        open_store(folder, "hnsw", "flat")


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size``, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("storage", VECTOR_STORAGES)
def test_a_full_disk_is_said_and_leaves_no_half_file(storage: str, pool: Vectors, tmp_path: Path) -> None:
    _, index = build(pool, tmp_path, options_of(storage))
    with files_up_to(50_000), pytest.raises(StorageError, match="Is the disk full"):
        index.write()
    assert not (tmp_path / VECTORS_FILE).exists()


def test_a_full_disk_is_said_while_rows_are_streamed(tmp_path: Path) -> None:
    raw = new_float16_rows(tmp_path / FLOAT16_ROWS_FILE, 64)
    with files_up_to(50_000), pytest.raises(StorageError, match="Is the disk full"):
        raw.append(np.ones((1000, 64), np.float32))


def test_raw_rows_are_a_plain_npy_file_that_was_readable_all_along(pool: Vectors, tmp_path: Path) -> None:
    raw = new_float16_rows(tmp_path / FLOAT16_ROWS_FILE, DIM)
    for end in (1, 10, 300):
        raw.append(pool[raw.count : end])
        assert np.array_equal(raw.rows(slice(None)), pool[:end].astype(np.float16).astype(np.float32))
    assert not (tmp_path / FLOAT16_ROWS_FILE).exists()
    raw.finish()
    assert np.array_equal(np.load(tmp_path / FLOAT16_ROWS_FILE), pool[:300].astype(np.float16))
    more = extend_float16_rows(tmp_path / FLOAT16_ROWS_FILE, tmp_path / "more" / FLOAT16_ROWS_FILE, 300)
    more.append(pool[300:400])
    more.finish()
    assert np.array_equal(np.load(tmp_path / "more" / FLOAT16_ROWS_FILE, mmap_mode="r"), pool[:400].astype(np.float16))
    assert open_float16_rows(tmp_path / FLOAT16_ROWS_FILE, 300).rows(np.array([5])).dtype == np.float32


@given(
    arrays.arrays(np.int8, st.tuples(st.integers(1, 3), st.integers(0, 40)), elements=st.integers(-3, 3)),
    st.integers(1, 6),
    st.integers(1, 12),
)
def test_the_best_of_parts_are_the_best_of_all(values: np.ndarray, k: int, step: int) -> None:
    scores = values.astype(np.float32)
    numbers = np.arange(scores.shape[1])
    best = TopK(len(scores), k)
    for start in range(0, scores.shape[1], step):
        best.add(scores[:, start : start + step], numbers[start : start + step])
    order = np.lexsort((np.broadcast_to(numbers, scores.shape), -scores), axis=1)[:, :k]
    found = order.shape[1]
    assert np.array_equal(best.numbers[:, :found], order)
    assert np.array_equal(best.scores[:, :found], np.take_along_axis(scores, order, 1))
    assert (best.numbers[:, found:] == -1).all()
