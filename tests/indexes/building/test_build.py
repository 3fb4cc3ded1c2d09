"""Build of an index folder: reproducible bytes, every pair found, unfinished builds detected."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.building.pair_vectors import VectorBatch
from pairwright.indexes.encoders.lexical import LexicalEncoder
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.encoders.registry import EncoderOptions
from pairwright.indexes.hnsw.check import check_index
from pairwright.indexes.hnsw.metadata import IndexInfo, Modality, VectorStorage
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import open_index
from tests.example_counts import examples
from tests.indexes.corpus import Given, batches, captions, keys, mixture, numbered, pairs

POOL = pairs()
SMALL = IndexOptions(flat_below=50)


def build(rows: Vectors, folder: Path, options: IndexOptions | None = None, size: int = 500) -> IndexInfo:
    return build_index_from_pairs(
        lambda: batches(numbered(len(rows)), size), folder, vectors=Given(rows), options=options, keep_pairs=False
    )


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    files = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (one, other)
    ]
    return files[0] == files[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("index")
    build_index_from_pairs(lambda: batches(POOL), directory, options=SMALL, shards=2)
    return directory


def test_the_folder_holds_exactly_the_files_of_index_json(folder: Path) -> None:
    info = open_index(folder).info
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*info.files, "index.json"}
    assert found >= {"encoder.npz", "pairs/00000.parquet", "text-00000/vectors.faiss", "text-00001/probes.npz"}
    assert info.bytes == sum((folder / name).stat().st_size for name in info.files)


def test_the_sidecar_tells_how_it_was_built(folder: Path) -> None:
    opened = open_index_with_encoder(folder)
    info = opened.index.info
    assert (info.pairs, info.vectors, info.encoder_name, info.metric) == (
        len(POOL),
        len(POOL),
        "lexical",
        "inner_product",
    )
    assert info.encoder == opened.query_encoder.fingerprint
    assert [(part.name, part.kind, part.m, part.ef_construction) for part in info.parts] == [
        ("text-00000", "hnsw", 32, 200),
        ("text-00001", "hnsw", 32, 200),
    ]
    assert "HNSW graph" in info.why
    assert info.summary().keys() >= {"vectors", "duplicates", "seconds", "bytes", "kind", "parts", "storage"}


def test_the_same_pairs_give_the_same_folder_in_any_batches_and_workers(folder: Path, tmp_path: Path) -> None:
    build_index_from_pairs(lambda: batches(POOL, 7), tmp_path, options=SMALL, shards=2, workers=2)
    assert same_files(folder, tmp_path)


@pytest.mark.parametrize("storage", ["flat", "fp16", "int8"])
def test_the_same_vectors_give_the_same_bytes_with_any_threads(tmp_path: Path, storage: str) -> None:
    for threads in (1, 2):
        options = IndexOptions(flat_below=100, threads=threads, storage=storage)  # type: ignore[arg-type]  # one of them
        build(mixture(800), tmp_path / str(threads), options, 33 * threads)
    assert same_files(tmp_path / "1", tmp_path / "2")


def test_rebuilding_replaces_the_index_and_removes_stale_files(folder: Path, tmp_path: Path) -> None:
    build_index_from_pairs(lambda: batches(POOL[:90]), tmp_path, options=SMALL, shards=3)
    (tmp_path / "notes.txt").write_text("mine")
    build_index_from_pairs(lambda: batches(POOL), tmp_path, options=SMALL, shards=2)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "notes.txt").unlink()
    assert same_files(folder, tmp_path)


def test_a_small_pool_is_searched_exactly(tmp_path: Path) -> None:
    few = IndexOptions(flat_below=1000)
    assert build(mixture(1000), tmp_path).kind == build(mixture(999), tmp_path, few).kind == "flat"
    assert build(mixture(1000), tmp_path, few).kind == "hnsw"


@pytest.mark.parametrize("shards", [1, 2])
def test_identical_vectors_are_stored_once_a_part_and_all_found(tmp_path: Path, shards: int) -> None:
    """Pairs 0, 3, 4 and 6 share a vector: they are adjacent, in the order of the input, and K cuts the list."""
    rows = mixture(3)[[0, 1, 2, 0, 0, 1, 0, 2]]
    build_index_from_pairs(lambda: [numbered(8)], tmp_path, vectors=Given(rows), shards=shards)
    index = open_index(tmp_path)
    assert (index.info.vectors, index.info.duplicates) == ((3, 5) if shards == 1 else (6, 2))
    whole = index.search(rows[:1], 10).frame()["key"].to_list()
    assert whole[:4] == [keys(8)[n] for n in (0, 3, 4, 6)]
    assert sorted(whole) == keys(8)
    assert index.search(rows[:1], 2).frame()["key"].to_list() == whole[:2]


def test_near_copies_are_aliases_too_and_counted_apart(tmp_path: Path) -> None:
    rows = mixture(4)
    nearly = rows[:1] + np.float32(1e-4)
    rows = np.concatenate([rows, rows[:1], nearly / np.linalg.norm(nearly)])
    info = build(rows, tmp_path)
    assert (info.vectors, info.duplicates, info.near_duplicates) == (4, 1, 1)
    assert open_index(tmp_path).search(rows[:1], 3).frame()["key"].to_list() == [keys(6)[n] for n in (0, 4, 5)]
    assert build(rows, tmp_path, IndexOptions(near=1)).vectors == 5


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 40), st.integers(1, 4))
def test_every_pair_is_found_exactly_once(tmp_path: Path, drawn: list[int], k: int, shards: int) -> None:
    rows = mixture(6)[drawn]
    build_index_from_pairs(lambda: [numbered(len(rows))], tmp_path / "any", vectors=Given(rows), shards=shards)
    frame = open_index(tmp_path / "any").search(rows[:2], k).frame()
    for _, hits in frame.group_by("query"):
        assert hits["key"].n_unique() == hits.height == min(k, len(drawn))
        assert hits["rank"].to_list() == list(range(1, hits.height + 1))


def test_captions_that_count_as_the_same_are_aliases(tmp_path: Path) -> None:
    same = pairs(["A dog.", "a dog", "a  DOG ", "a cat"])
    info = build_index_from_pairs(lambda: [same], tmp_path)
    assert (info.kind, info.vectors, info.duplicates) == ("flat", 2, 2)


def test_another_caption_of_the_image_is_the_query_that_recall_is_measured_on(tmp_path: Path) -> None:
    two = [Pair(key, text, captions=("a zebra",)) for key, text in zip(keys(9), captions(), strict=False)]
    build_index_from_pairs(lambda: [two], tmp_path)
    checked = check_index(tmp_path)
    assert (checked.queries, checked.queries_from) == (9, "sample")
    with np.load(tmp_path / "text-00000" / "probes.npz") as stored:
        assert len(np.unique(stored["queries"], axis=0)) == 1


def test_a_pair_without_an_image_vector_is_in_the_text_part_only_and_rejected(tmp_path: Path) -> None:
    text, image = mixture(40), mixture(40, 32, 40, "images")
    image[[3, 8]] = np.nan
    rejects: list[Reject] = []
    info = build_index_from_pairs(
        lambda: [numbered(40)],
        tmp_path,
        vectors=Given(text, image),
        modalities=("image", "text"),
        shards=2,
        rejected=rejects.append,
    )
    assert info.modalities == ("text", "image")
    assert [sum(part.entries for part in info.parts_of(modality)) for modality in info.modalities] == [40, 38]
    assert (info.pairs, info.rejected) == (40, {"not_finite": 2})
    assert [reject.place for reject in rejects] == [keys(40)[3], keys(40)[8]]
    index = open_index(tmp_path)
    assert index.search(image[:1], 1, modality="image").frame()["key"].to_list() == keys(1)
    assert index.search(text[3:4], 1).frame()["key"].to_list() == [keys(4)[3]]


def test_a_modality_without_vectors_is_an_error(tmp_path: Path) -> None:
    none = np.full((5, 32), np.nan, np.float32)
    with pytest.raises(InputError, match=r"no pair has a vector of modality image \(5 not_finite\)"):
        build_index_from_pairs(
            lambda: [numbered(5)], tmp_path, vectors=Given(mixture(5), none), modalities=("text", "image")
        )
    with pytest.raises(StorageError, match="no index or an unfinished one"):
        open_index(tmp_path)


@pytest.mark.parametrize("storage", ["flat", "int8", "ivfpq"])
def test_a_part_without_vectors_is_omitted_with_any_storage(tmp_path: Path, storage: VectorStorage) -> None:
    rows = mixture(1200)
    image = rows.copy()
    image[600:] = np.nan
    info = build_index_from_pairs(
        lambda: [numbered(1200)],
        tmp_path,
        vectors=Given(rows, image),
        modalities=("text", "image"),
        options=IndexOptions(storage=storage),
        shards=2,
    )
    assert [part.name for part in info.parts] == ["text-00000", "text-00001", "image-00000"]
    assert info.rejected == {"not_finite": 600}


def test_kept_pairs_are_found_by_key_in_the_order_asked(folder: Path, tmp_path: Path) -> None:
    wanted = [POOL[7], POOL[150], POOL[3]]
    found = open_index_with_encoder(folder).pairs([pair.key for pair in wanted])
    assert found is not None
    assert found["caption"].to_list() == [pair.caption for pair in wanted]
    build_index_from_pairs(lambda: batches(POOL[:9]), tmp_path, keep_pairs=False)
    assert open_index_with_encoder(tmp_path).pairs([POOL[0].key]) is None
    assert not list(tmp_path.glob("pairs*"))


def test_progress_is_reported_to_the_end(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    build_index_from_pairs(lambda: batches(POOL, 60), tmp_path, shards=2, watch=lambda *now: reports.append(now))
    assert [now for now in reports if now[0] == "pairs"][-1] == ("pairs", len(POOL), 0)
    assert reports[-1] == ("vectors", len(POOL), len(POOL))


def test_an_unfinished_build_is_no_index(tmp_path: Path) -> None:
    """Building again takes the sidecar away first, so that what a kill leaves is never opened."""
    build(mixture(300), tmp_path, SMALL)

    def broken() -> Iterator[list[Pair]]:
        yield numbered(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index_from_pairs(broken, tmp_path)
    with pytest.raises(StorageError, match="no index or an unfinished one"):
        open_index(tmp_path)
    build(mixture(300), tmp_path, SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "text-00000"]


def test_invalid_vectors_and_keys_are_refused(tmp_path: Path) -> None:
    pool = mixture(3)
    with pytest.raises(InputError, match=f"{keys(2)[1]}: .* length 1"):
        build(pool * np.array([[1], [2], [1]], np.float32), tmp_path)
    with pytest.raises(InputError, match="'x' is not a pair key"):
        build_index_from_pairs(lambda: [[Pair("x", "a dog")]], tmp_path)
    for shards in (1, 2):
        with pytest.raises(InputError, match=keys(2)[1]):
            build_index_from_pairs(lambda: [numbered(2), numbered(1, 1)], tmp_path, vectors=Given(pool), shards=shards)
    with pytest.raises(InputError, match="no pairs"):
        build_index_from_pairs(list, tmp_path, vectors=Given(pool))
    with pytest.raises(InputError, match="no captions"):
        build_index_from_pairs(lambda: [[]], tmp_path)


def test_an_invalid_build_is_refused_before_an_index_is_replaced(tmp_path: Path) -> None:
    build(mixture(3), tmp_path)
    with pytest.raises(UsageError, match="no vectors of modality image"):
        build_index_from_pairs(lambda: [POOL], tmp_path, modalities=("image",))
    with pytest.raises(UsageError, match="shards"):
        build_index_from_pairs(lambda: [POOL], tmp_path, shards=0)
    with pytest.raises(UsageError, match="no vectors of modality image"):
        build_index_from_pairs(lambda: [numbered(3)], tmp_path, vectors=Given(mixture(3)), modalities=("image",))

    def unreadable() -> list[list[Pair]]:
        raise InputError("torn", where="input", fix="Fix it.")

    with pytest.raises(InputError, match="torn"):
        build_index_from_pairs(unreadable, tmp_path)
    with pytest.raises((InputError, MissingResourceError), match="checkpoint"):
        build_index_from_pairs(lambda: [POOL], tmp_path, encoder=EncoderOptions("clip", model="/no/such/folder"))
    with pytest.raises(UsageError, match="index without an encoder"):
        build_index_from_pairs(lambda: [POOL], tmp_path, encoder_from=tmp_path / "none")
    assert open_index(tmp_path).info.vectors == 3
    with pytest.raises(UsageError, match="from another encoder"):
        build_index_from_pairs(
            lambda: [numbered(3)], tmp_path, vectors=Given(mixture(3, 64)), encoder=EncoderOptions(dim=64)
        )
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match="not a folder"):
        build(mixture(3), tmp_path / "taken")


def test_an_index_is_built_again_with_its_own_encoder(tmp_path: Path) -> None:
    before = build_index_from_pairs(lambda: [POOL], tmp_path)
    after = build_index_from_pairs(lambda: [POOL[:50]], tmp_path, encoder_from=tmp_path)
    assert (after.encoder, after.pairs) == (before.encoder, 50)
    assert open_index_with_encoder(tmp_path).query_encoder.fingerprint == before.encoder


def test_a_folder_with_other_content_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "00000.parquet").write_text("of a build")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(StorageError, match=r"holds other files \(manifest.json\)"):
        build(mixture(3), tmp_path)
    assert (tmp_path / "pairs" / "00000.parquet").read_text() == "of a build"


@pytest.mark.parametrize("content", ['{"name": "a site"}', "[]", "torn"])
def test_an_index_json_of_another_program_is_not_an_index(tmp_path: Path, content: str) -> None:
    (tmp_path / "index.json").write_text(content)
    (tmp_path / "page.html").write_text("")
    with pytest.raises(StorageError, match=r"holds other files \(index.json\)"):
        build(mixture(3), tmp_path)
    assert (tmp_path / "index.json").read_text() == content


def test_a_torn_sidecar_is_built_over(tmp_path: Path) -> None:
    build(mixture(3), tmp_path)
    (tmp_path / "index.json").write_text('{"format": 2, "pa')
    assert build(mixture(3), tmp_path).vectors == 3


class Deadly(Given):
    """Ends the process that asks it, if that is a worker."""

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """End the process."""
        if multiprocessing.parent_process() is not None:
            os._exit(9)
        return super().rows(pairs, modality)


def test_a_killed_worker_is_an_error_and_leaves_no_index(tmp_path: Path) -> None:
    with pytest.raises(PairwrightError, match="worker process was killed"):
        build_index_from_pairs(lambda: [numbered(40)], tmp_path, vectors=Deadly(mixture(40)), shards=2, workers=2)
    with pytest.raises(StorageError, match="no index or an unfinished one"):
        open_index(tmp_path)


def test_an_encoder_exchanged_is_refused(tmp_path: Path) -> None:
    """It has the right size, but it was fitted on other captions."""
    build_index_from_pairs(lambda: batches(POOL), tmp_path)
    loaded = LexicalEncoder.load(tmp_path / "encoder.npz")
    LexicalEncoder(loaded.document_frequency, loaded.captions + 1).save(tmp_path / "encoder.npz")
    with pytest.raises(StorageError, match="does not match the index"):
        open_index_with_encoder(tmp_path)


def test_an_index_of_vectors_has_no_encoder(tmp_path: Path) -> None:
    build(mixture(5), tmp_path)
    opened = open_index_with_encoder(tmp_path)
    assert (opened.encoder, opened.index.info.encoder) == (None, "")
    with pytest.raises(StorageError, match="has no encoder"):
        _ = opened.query_encoder


@pytest.mark.parametrize("options", [{"m": 1}, {"ef_construction": 8}, {"recall": 0.0}, {"threads": -1}, {"near": 0}])
def test_invalid_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        IndexOptions(**options)  # type: ignore[arg-type]  # one wrong value each


def test_building_leaves_the_number_of_threads_alone(tmp_path: Path) -> None:
    before = faiss.omp_get_max_threads()
    build(mixture(20), tmp_path, IndexOptions(threads=1))
    assert faiss.omp_get_max_threads() == before
