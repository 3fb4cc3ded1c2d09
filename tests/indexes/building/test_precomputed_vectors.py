"""Vectors of an embedding folder: matched to their pairs, validated, read in batches."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import REASONS
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.building.precomputed_vectors import EMBEDDING_FOLDERS, PrecomputedVectors
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.retrieval.batched_search import Mode
from pairwright.indexes.retrieval.queries import Query
from pairwright.indexes.retrieval.results import RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve
from tests.example_counts import examples
from tests.indexes.embedding_folder import write_part

DIM = 8
KINDS = ("img_emb", "text_emb")


def pairs_of(folder: Path) -> list[Pair]:
    options = ReadOptions(str(folder), on_error="skip", batch_size=5)
    return [pair for batch in read_pairs(options) for pair in batch.pairs]


def vector(caption: str, kind: str) -> np.ndarray:
    """A direction that depends on caption and kind, far from length 1."""
    seed = int.from_bytes(f"{kind} {caption}".encode(), "little") % 2**63
    return np.random.default_rng(seed).normal(size=DIM).astype(np.float32) * 3


def vectors_of(captions: list[str | None], dtype: str = "<f4") -> dict[str, np.ndarray]:
    return {
        kind: np.array([vector(caption or "", kind) for caption in captions], dtype).reshape(-1, DIM) for kind in KINDS
    }


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def simple(folder: Path, rows: int = 3, parts: int = 2) -> Path:
    for part in range(parts):
        captions: list[str | None] = [f"caption {part} {row}" for row in range(rows)]
        write_part(folder, str(part), captions, vectors_of(captions))
    return folder


def assert_matched(folder: Path, pairs: list[Pair], tolerance: float) -> None:
    source = PrecomputedVectors(folder)
    for modality, kind in EMBEDDING_FOLDERS.items():
        found = source.rows(pairs, modality)
        assert found.has.all()
        assert found.vectors.dtype == np.float32
        np.testing.assert_allclose(
            found.vectors, unit(np.array([vector(p.caption, kind) for p in pairs])), atol=tolerance
        )


@pytest.mark.parametrize("dtype", ["<f2", "<f4"])
def test_each_pair_has_its_own_vectors_in_a_folder_whose_twelve_parts_are_not_padded(
    tmp_path: Path, dtype: str
) -> None:
    for part in range(12):
        captions: list[str | None] = [f"caption {part} {row}" for row in range(3 + part % 2)]
        write_part(tmp_path, str(part), captions, vectors_of(captions, dtype))
    pairs = pairs_of(tmp_path)
    assert [pair.caption.split()[1] for pair in pairs[::4]][:3] == ["0", "1", "10"]  # as text sorts
    assert_matched(tmp_path, pairs, 2e-3 if dtype == "<f2" else 1e-6)


@settings(max_examples=examples(25), deadline=None)
@given(
    parts=st.dictionaries(
        st.sampled_from(["0", "1", "2", "9", "10", "11", "100", "007", "0001", "a"]),
        st.lists(st.booleans(), max_size=6),
        min_size=1,
        max_size=6,
    ).filter(lambda parts: any(any(rows) for rows in parts.values())),
    data=st.data(),
)
def test_pairs_and_vectors_stay_matched_under_any_names_gaps_and_order(
    parts: dict[str, list[bool]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as name:
        for part, good in parts.items():
            captions = [f"caption {part} {row}" if kept else None for row, kept in enumerate(good)]
            write_part(Path(name), part, captions, vectors_of(captions))
        pairs = pairs_of(Path(name))
        assert len(pairs) == sum(map(sum, parts.values()))
        assert_matched(Path(name), data.draw(st.permutations(pairs)), 1e-6)


@settings(max_examples=examples(20), deadline=None)
@given(size=st.integers(1, 9), dim=st.sampled_from([1, 3, 8, 33]))
def test_a_vector_is_the_same_bytes_in_any_batch(size: int, dim: int) -> None:
    rows = np.random.default_rng(dim).normal(size=(17, dim)).astype(np.float32)
    with TemporaryDirectory() as name:
        write_part(Path(name), "0", [f"a {row}" for row in range(17)], {"img_emb": rows})
        source, pairs = PrecomputedVectors(Path(name)), pairs_of(Path(name))
        whole = source.rows(pairs, "image").vectors
        split = [source.rows(pairs[start : start + size], "image").vectors for start in range(0, 17, size)]
        assert np.concatenate(split).tobytes() == whole.tobytes()


def test_rows_without_a_direction_are_rejected_with_their_reason(tmp_path: Path) -> None:
    rows = np.ones((6, DIM), np.float32)
    rows[1], rows[2, 3], rows[4, 0] = 0, np.nan, -np.inf
    write_part(tmp_path, "00", ["b"], {"img_emb": rows[:1]})
    write_part(tmp_path, "1", [f"a {row}" for row in range(6)], {"img_emb": rows})
    found = PrecomputedVectors(tmp_path).rows(pairs_of(tmp_path), "image")
    assert found.has.tolist() == [True, True, False, False, True, False, True]
    np.testing.assert_allclose(found.vectors, np.full((4, DIM), DIM**-0.5), rtol=1e-6)
    path = f"{tmp_path}/img_emb/img_emb_1.npy"
    assert [(one.place, one.reason, one.excerpt) for one in found.rejects] == [
        (f"{path}:row 2", "zero_vector", "a 1"),
        (f"{path}:row 3", "not_finite", "a 2"),
        (f"{path}:row 5", "not_finite", "a 4"),
    ]
    assert {one.reason for one in found.rejects} < set(REASONS)


@pytest.mark.parametrize("scale", [1e-30, 1e-42, 1e30, 3e38])
def test_the_direction_of_very_short_and_very_long_rows_is_kept(tmp_path: Path, scale: float) -> None:
    rows = np.array([[1, -1, 1, -1, 1, -1, 1, -1]] * 2, np.float32) * np.float32(scale)
    write_part(tmp_path, "0", ["a", "b"], {"img_emb": rows})
    found = PrecomputedVectors(tmp_path).rows(pairs_of(tmp_path), "image")
    assert found.has.all()
    np.testing.assert_allclose(found.vectors, np.sign(rows) * DIM**-0.5, rtol=1e-6)


def test_half_precision_rows_are_unit_vectors(tmp_path: Path) -> None:
    rows = unit(np.random.default_rng(0).normal(size=(50, 64))).astype(np.float16)
    assert np.abs(np.linalg.norm(rows.astype(np.float64), axis=1) - 1).max() > 1e-5
    write_part(tmp_path, "0", [f"a {row}" for row in range(50)], {"img_emb": rows})
    found = PrecomputedVectors(tmp_path).rows(pairs_of(tmp_path), "image").vectors
    np.testing.assert_allclose(np.linalg.norm(found.astype(np.float64), axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("kind", "there"), [("img_emb", "image"), ("text_emb", "text")])
def test_the_folder_says_which_modalities_it_has(tmp_path: Path, kind: str, there: str) -> None:
    write_part(tmp_path, "0", ["a"], {kind: np.ones((1, DIM))})
    source = PrecomputedVectors(tmp_path)
    assert (source.modalities, source.dim, source.count) == ((there,), DIM, 1)
    with pytest.raises(UsageError, match=r"so no (image|text) vectors"):
        source.rows(pairs_of(tmp_path), "text" if there == "image" else "image")


def test_a_part_of_no_rows_is_passed_over(tmp_path: Path) -> None:
    simple(tmp_path)
    write_part(tmp_path, "00", [], vectors_of([]))
    assert_matched(tmp_path, pairs_of(tmp_path), 1e-6)


def test_other_processes_get_paths_and_not_the_vectors(tmp_path: Path) -> None:
    source, pairs = PrecomputedVectors(simple(tmp_path, rows=2000)), pairs_of(tmp_path)
    sent = pickle.dumps(source)
    assert len(sent) < 4000
    np.testing.assert_array_equal(pickle.loads(sent).rows(pairs, "text").vectors, source.rows(pairs, "text").vectors)  # noqa: S301


def save(name: str, rows: np.ndarray) -> Callable[[Path], object]:
    return lambda folder: np.save(folder / name, rows)


def cut(name: str, to: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:to])


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


IMAGE, TEXT, METADATA = "img_emb/img_emb_1.npy", "text_emb/text_emb_1.npy", "metadata/metadata_1.parquet"
DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (cut(IMAGE, -7), r"img_emb_1\.npy: not a complete \.npy file"),
    (cut(TEXT, 40), r"text_emb_1\.npy: not a complete \.npy file"),
    (cut(METADATA, 4), r"metadata_1\.parquet: not a whole Parquet file"),
    (save(TEXT, np.ones((2, DIM))), r"text_emb_1\.npy: 2 vectors where metadata_1\.parquet has 3 rows"),
    (save(IMAGE, np.ones((3, 9))), r"img_emb_1\.npy: vectors of length 9 where those of img_emb_0\.npy have 8"),
    (save(TEXT, np.ones((3, 4))), r"text_emb_1\.npy: vectors of length 4 where those of img_emb_0\.npy have 8"),
    (save(IMAGE, np.ones((3, DIM), np.int8)), r"img_emb_1\.npy: values of type int8"),
    (save(IMAGE, np.ones(DIM)), r"img_emb_1\.npy: an array of shape \(8,\)"),
    (remove(TEXT), r"text_emb_1\.npy: no such file for metadata_1\.parquet"),
    (remove(METADATA), r"img_emb_1\.npy: 1 without metadata"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=[said.replace("\\", "") for _, said in DAMAGE])
def test_a_folder_that_does_not_fit_together_is_refused_before_anything_is_read(
    tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(simple(tmp_path))
    with pytest.raises(InputError, match=said):
        PrecomputedVectors(tmp_path)
    with pytest.raises(InputError, match=said):
        next(read_pairs(ReadOptions(str(tmp_path), on_error="skip", batch_size=1)))


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    source, pairs = PrecomputedVectors(simple(tmp_path)), pairs_of(tmp_path)
    np.save(tmp_path / "img_emb" / "img_emb_0.npy", np.ones((4, DIM), np.float32))
    with pytest.raises(InputError, match=r"img_emb_0\.npy: the file has changed"):
        source.rows(pairs, "image")


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({}, "has no embedding_row in its meta"),
        ({"embedding_row": "1"}, "has no embedding_row in its meta"),
        ({"embedding_row": -1}, "has no embedding_row in its meta"),
        ({"embedding_row": 6}, "row number 6"),
    ],
)
def test_a_pair_of_another_origin_is_refused(tmp_path: Path, meta: dict[str, object], said: str) -> None:
    source = PrecomputedVectors(simple(tmp_path))
    pairs = pairs_of(tmp_path)
    with pytest.raises(InputError, match=said):
        source.rows([pairs[0], replace(pairs[1], meta=json.dumps(meta))], "text")


CLASSES, ROWS, PARTS, WIDTH = 12, 45, 12, 64


def geometry(folder: Path) -> np.ndarray:
    """Write an embedding folder of known geometry and return the direction of each class.

    A class has a direction. Vectors of its captions lie around it; those of its images, too, but all images share an
    offset at right angles to every caption, several times as long: the gap between CLIP's modalities.
    """
    rng = np.random.default_rng(5)
    basis, _ = np.linalg.qr(rng.normal(size=(WIDTH, CLASSES + 1)))
    directions, gap = basis.T[:CLASSES], basis.T[CLASSES]
    for part in range(PARTS):
        of = rng.integers(0, CLASSES - 1, ROWS)  # the pool has nothing of the last class
        noise = rng.normal(size=(2, ROWS, WIDTH)) * 0.06
        rows = {"text_emb": directions[of] + noise[0], "img_emb": directions[of] + 3 * gap + noise[1]}
        captions = [f"class {number}, part {part}, row {row}" for row, number in enumerate(of)]
        write_part(folder, str(part), captions, {kind: unit(these).astype(np.float16) for kind, these in rows.items()})
    return np.asarray(directions)


@pytest.mark.parametrize("flat_below", [10_000, 100])
def test_queries_of_a_class_find_its_images_across_the_gap_between_modalities(tmp_path: Path, flat_below: int) -> None:
    """The right answer is known by construction, and that of exact search is computed from the files."""
    directions = geometry(tmp_path / "laion")
    pairs, source = pairs_of(tmp_path / "laion"), PrecomputedVectors(tmp_path / "laion")
    build_index_from_pairs(
        lambda: [pairs],
        tmp_path / "index",
        vectors=source,
        modalities=("text", "image"),
        options=IndexOptions(flat_below=flat_below),
    )
    folder = open_index_with_encoder(tmp_path / "index")
    rng = np.random.default_rng(6)
    queries = [Query(f"query {n} of class {c}", f"class {c}", f"class {c}") for c in range(CLASSES) for n in range(3)]
    asked = directions[[int(query.concept.split()[1]) for query in queries]]
    vectors = unit(asked + rng.normal(size=asked.shape) * 0.03).astype(np.float32)
    floors: dict[Mode, float] = {"t2t": 0.6, "t2i": 0.2}
    found = retrieve(folder.index, vectors, queries, RetrieveOptions(k=10, mode="both", floor=floors))

    captions = {pair.key: pair.caption for pair in pairs}
    for concept, key in found.hits.select("concept", "key").iter_rows():
        assert concept == f"class {CLASSES - 1}" or captions[key].startswith(f"{concept},")
    assert found.uncovered == [f"class {CLASSES - 1}"]
    stored = np.concatenate(
        [np.load(tmp_path / "laion" / "img_emb" / f"img_emb_{part}.npy") for part in sorted(map(str, range(PARTS)))]
    ).astype(np.float32)
    true = np.argsort(-(vectors @ unit(stored).T), axis=1)[:, :10]
    hits = found.hits.filter(mode="t2i")
    right = sum(
        len({pairs[row].key for row in true[query]} & set(hits.filter(query=query)["key"]))
        for query in range(len(queries))
    )
    assert right == true.size if flat_below > len(pairs) else right >= 0.95 * true.size
