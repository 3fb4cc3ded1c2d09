"""Merging of index folders: parts and search results are combined exactly."""

import os
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import InputError, UsageError
from pairwright.indexes.building.add import add_pairs
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.merge import merge_indexes
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.encoders.registry import EncoderOptions
from pairwright.indexes.hnsw.check import check_index
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import open_index
from tests.indexes.corpus import Given, batches, keys, mixture, numbered, pairs

ROWS = mixture(700)
SMALL = IndexOptions(flat_below=100)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three indexes of 0-299 (two parts), 300-599 and 600-639 (flat)."""
    made = []
    for first, count, shards in ((0, 300, 2), (300, 300, 1), (600, 40, 1)):
        made.append(tmp_path_factory.mktemp("one"))
        found = numbered(count, first)
        build_index_from_pairs(lambda found=found: [found], made[-1], vectors=Given(ROWS), options=SMALL, shards=shards)  # type: ignore[misc]  # bound now
    return made


def test_a_merged_index_finds_what_its_parts_find(folders: list[Path], tmp_path: Path) -> None:
    info = merge_indexes(folders, tmp_path / "all")
    assert [part.name for part in info.parts] == [f"text-0000{n}" for n in range(4)]
    assert (info.pairs, info.vectors) == (640, 640)
    queries = mixture(30, 32, 40, "queries")
    merged = open_index(tmp_path / "all").search(queries, 10)
    alone = [open_index(folder).search(queries, 10).scores.reshape(-1, 10) for folder in folders]
    best = -np.sort(-np.concatenate(alone, axis=1), axis=1)[:, :10]
    assert (merged.scores.reshape(-1, 10) == best).all()
    found = open_index_with_encoder(tmp_path / "all").pairs(keys(640)[::50])
    assert found is not None
    assert found["key"].to_list() == keys(640)[::50]


def test_files_are_shared_and_sums_hold(folders: list[Path], tmp_path: Path) -> None:
    merge_indexes(folders, tmp_path / "all")
    shared = tmp_path / "all" / "text-00002" / "keys.npy"
    assert shared.samefile(folders[1] / "text-00000" / "keys.npy")
    checked = check_index(tmp_path / "all")
    assert checked.checksum_ok
    assert [pool.parts for pool in checked.pools] == [("text-00000", "text-00001"), ("text-00002",), ("text-00003",)]
    assert checked.recall >= 0.95


def test_files_are_copied_without_hard_links(
    folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refused)
    merge_indexes(folders, tmp_path / "all")
    assert check_index(tmp_path / "all").checksum_ok


def test_adding_to_a_merged_index_leaves_the_others_alone(folders: list[Path], tmp_path: Path) -> None:
    merge_indexes(folders, tmp_path / "all")
    add_pairs([numbered(60, 640)], tmp_path / "all", vectors=Given(ROWS))
    assert open_index(tmp_path / "all").exact(ROWS, 1).frame()["key"].to_list() == keys(700)
    assert all(check_index(folder).checksum_ok for folder in folders)


def test_a_pair_in_two_indexes_is_an_error(folders: list[Path], tmp_path: Path) -> None:
    build_index_from_pairs(lambda: [numbered(2, 299)], tmp_path / "b", vectors=Given(ROWS))
    with pytest.raises(InputError, match=keys(300)[299]):
        merge_indexes([folders[0], tmp_path / "b"], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_indexes_of_one_encoder_merge_and_of_two_do_not(tmp_path: Path) -> None:
    pool = pairs()
    build_index_from_pairs(lambda: batches(pool[:100]), tmp_path / "a")
    build_index_from_pairs(lambda: batches(pool[100:]), tmp_path / "b", encoder_from=tmp_path / "a")
    build_index_from_pairs(lambda: batches(pool[100:]), tmp_path / "c", encoder=EncoderOptions(seed=1))
    merge_indexes([tmp_path / "a", tmp_path / "b"], tmp_path / "ab")
    opened = open_index_with_encoder(tmp_path / "ab")
    hits = opened.index.search(opened.query_encoder.encode_texts([pair.caption for pair in pool]), 1)
    assert hits.frame()["key"].to_list() == [pair.key for pair in pool]
    with pytest.raises(UsageError, match="its encoder differs from"):
        merge_indexes([tmp_path / "a", tmp_path / "c"], tmp_path / "ac")


def test_incompatible_indexes_are_refused(folders: list[Path], tmp_path: Path) -> None:
    build_index_from_pairs(lambda: [numbered(50, 640)], tmp_path / "b", vectors=Given(ROWS), keep_pairs=False)
    build_index_from_pairs(
        lambda: [numbered(50, 640)], tmp_path / "c", vectors=Given(ROWS, ROWS), modalities=("text", "image")
    )
    build_index_from_pairs(
        lambda: [numbered(300, 300)], tmp_path / "d", vectors=Given(ROWS), options=IndexOptions(storage="ivfpq")
    )
    with pytest.raises(UsageError, match="keeping of pairs"):
        merge_indexes([folders[0], tmp_path / "b"], tmp_path / "all")
    with pytest.raises(UsageError, match="modalities"):
        merge_indexes([folders[0], tmp_path / "c"], tmp_path / "all")
    with pytest.raises(UsageError, match="graphs and ivfpq"):
        merge_indexes([folders[0], tmp_path / "d"], tmp_path / "all")
    with pytest.raises(UsageError, match="one of the indexes to merge"):
        merge_indexes(folders, folders[0])
    with pytest.raises(UsageError, match="no index"):
        merge_indexes([], tmp_path / "all")
