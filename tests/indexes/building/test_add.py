"""Addition of pairs: old and new pairs are found, and an interrupted addition leaves a valid index."""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.records import Pair
from pairwright.indexes.building import add as adding
from pairwright.indexes.building.add import add_pairs
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.hnsw import index_folder
from pairwright.indexes.hnsw.check import check_index
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import open_index
from tests.indexes.corpus import Given, batches, keys, mixture, numbered, pairs

COUNT = 900
OLD = 600
ROWS = mixture(COUNT)
SMALL = IndexOptions(flat_below=100)


def base(folder: Path, options: IndexOptions = SMALL, count: int = OLD, shards: int = 2) -> Path:
    build_index_from_pairs(lambda: [numbered(count)], folder, vectors=Given(ROWS), options=options, shards=shards)
    return folder


def add(folder: Path, first: int, count: int, *, as_part: bool = False) -> adding.AdditionReport:
    return add_pairs(batches(numbered(count, first), 70), folder, vectors=Given(ROWS), as_part=as_part)


def first_hits(folder: Path) -> list[str]:
    frame = open_index(folder).exact(ROWS, 1).frame()
    return frame["key"].to_list()


@pytest.mark.parametrize("storage", ["flat", "fp16", "int8", "ivfpq"])
@pytest.mark.parametrize("as_part", [False, True])
def test_old_and_new_pairs_are_found(tmp_path: Path, storage: str, *, as_part: bool) -> None:
    base(tmp_path, IndexOptions(flat_below=100, storage=storage), shards=1)  # type: ignore[arg-type]  # one of them
    added = add(tmp_path, OLD, 300, as_part=as_part)
    assert (added.added, added.known, added.info.pairs, added.info.vectors) == (300, 0, COUNT, COUNT)
    assert [part.name for part in added.info.parts] == (["text-00000", "text-00001"] if as_part else ["text-00000-1"])
    assert np.mean([found == key for found, key in zip(first_hits(tmp_path), keys(COUNT), strict=True)]) > 0.99
    checked = check_index(tmp_path, wanted=0.95)
    assert checked.checksum_ok
    assert checked.recall >= 0.95


def test_the_folder_holds_the_new_part_and_no_old_one(tmp_path: Path) -> None:
    base(tmp_path)
    add(tmp_path, OLD, 100)
    add(tmp_path, OLD + 100, 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "pairs", "text-00000", "text-00001-2"]
    found = open_index_with_encoder(tmp_path).pairs(keys(800)[::100])
    assert found is not None
    assert found["key"].to_list() == keys(800)[::100]


def test_an_index_without_pairs_stores_none_of_an_addition(tmp_path: Path) -> None:
    build_index_from_pairs(lambda: [numbered(OLD)], tmp_path, vectors=Given(ROWS), options=SMALL, keep_pairs=False)
    assert add(tmp_path, 500, 200).info.pairs == 700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "text-00000-1"]


def test_a_graph_extended_is_the_graph_built_of_the_same_blocks(tmp_path: Path) -> None:
    """Adding 300 once, or to a copy of the same index, gives the same bytes."""
    for name in ("a", "b"):
        base(tmp_path / name)
        add(tmp_path / name, OLD, 300)
    for path in (tmp_path / "a").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes(), path.name


def test_known_pairs_are_skipped_and_counted(tmp_path: Path) -> None:
    base(tmp_path)
    added = add(tmp_path, 500, 200)
    assert (added.added, added.known, added.info.pairs) == (100, 100, 700)
    again = add(tmp_path, 0, 700)
    assert (again.added, again.known, again.info.parts) == (0, 700, added.info.parts)
    assert first_hits(tmp_path)[:700] == keys(700)


def test_duplicates_of_stored_vectors_become_aliases(tmp_path: Path) -> None:
    base(tmp_path, shards=1)
    rows = np.concatenate([ROWS[:OLD], ROWS[[5, 5, 700]]])
    info = add_pairs([numbered(3, OLD)], tmp_path, vectors=Given(rows)).info
    assert (info.vectors, info.duplicates) == (OLD + 1, 2)
    found = open_index(tmp_path).search(ROWS[5:6], 3).frame()["key"].to_list()
    assert found == [keys(COUNT)[number] for number in (5, OLD, OLD + 1)]


def test_a_growing_flat_part_becomes_a_graph(tmp_path: Path) -> None:
    base(tmp_path, count=60, shards=1)
    assert open_index(tmp_path).info.kind == "flat"
    assert add(tmp_path, 60, 30).info.kind == "flat"
    assert add(tmp_path, 90, 30).info.kind == "hnsw"
    assert first_hits(tmp_path)[:120] == keys(120)


@pytest.mark.parametrize("step", ["commit", "clear"])
def test_a_kill_leaves_the_old_index_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Before the sidecar is replaced the old one is whole, after it the new one; the next addition clears up."""
    base(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    if step == "commit":
        monkeypatch.setattr(adding, "commit_index", killed)
    else:
        clear, calls = index_folder.remove_stale_files, iter([False, True])
        monkeypatch.setattr(adding, "remove_stale_files", lambda *of: killed() if next(calls) else clear(*of))
    with pytest.raises(KeyboardInterrupt):
        add(tmp_path, OLD, 100)
    monkeypatch.undo()
    there = OLD if step == "commit" else OLD + 100
    assert open_index(tmp_path).info.pairs == there
    assert check_index(tmp_path).checksum_ok
    add(tmp_path, OLD + 100, 100)
    assert first_hits(tmp_path)[:OLD] == keys(OLD)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[:3] == ["index.json", "pairs", "text-00000"]
    assert len(names) == 4
    assert open_index(tmp_path).info.pairs == there + 100


def test_captions_are_added_with_the_encoder_of_the_index(tmp_path: Path) -> None:
    pool = pairs()
    build_index_from_pairs(lambda: batches(pool[:150]), tmp_path)
    before = open_index(tmp_path).info.encoder
    info = add_pairs(batches(pool[150:]), tmp_path).info
    assert (info.encoder, info.pairs) == (before, len(pool))
    opened = open_index_with_encoder(tmp_path)
    hits = opened.index.search(opened.query_encoder.encode_texts([pair.caption for pair in pool]), 1)
    assert hits.frame()["key"].to_list() == [pair.key for pair in pool]
    with pytest.raises(UsageError, match="from another encoder"):
        add_pairs([numbered(3)], tmp_path, vectors=Given(mixture(3, 512)))


def test_an_invalid_addition_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    base(tmp_path)
    before = (tmp_path / "index.json").read_bytes()

    def twice() -> Iterator[list[Pair]]:
        yield numbered(5, OLD)
        yield numbered(1, OLD)

    with pytest.raises(UsageError, match="has no encoder"):
        add_pairs([numbered(1, OLD)], tmp_path)
    with pytest.raises(UsageError, match="length 16"):
        add_pairs([numbered(1, OLD)], tmp_path, vectors=Given(mixture(COUNT, 16)))
    with pytest.raises(InputError, match="no pairs"):
        add_pairs([], tmp_path, vectors=Given(ROWS))
    with pytest.raises(InputError, match=keys(COUNT)[OLD]):
        add_pairs(twice(), tmp_path, vectors=Given(ROWS))
    assert (tmp_path / "index.json").read_bytes() == before
    assert first_hits(tmp_path)[:OLD] == keys(OLD)


def test_a_known_pair_given_twice_counts_twice(tmp_path: Path) -> None:
    base(tmp_path)
    added = add_pairs([[*numbered(1), *numbered(1), *numbered(1, OLD)]], tmp_path, vectors=Given(ROWS))
    assert (added.added, added.known) == (1, 2)


def test_a_rejected_pair_added_again_is_stored_in_its_last_form(tmp_path: Path) -> None:
    """Its vector was missing at first: an image that was not there yet, say."""
    rows = ROWS.copy()
    rows[OLD] = np.nan
    base(tmp_path)
    first = add_pairs([numbered(2, OLD)], tmp_path, vectors=Given(rows))
    assert first.rejected == {"not_finite": 1}
    add_pairs([[replace(numbered(1, OLD)[0], caption="now with an image")]], tmp_path, vectors=Given(ROWS))
    found = open_index_with_encoder(tmp_path).pairs([f"{OLD:032x}"])
    assert found is not None
    assert found["caption"].to_list() == ["now with an image"]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """The lock is the folder's: who holds it is the only one to write, and it is free again afterwards."""
    folder = tmp_path / "index"
    build_index_from_pairs(lambda: batches(pairs()), folder)
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(StorageError, match="another process is writing"):
        add_pairs(batches(pairs(["a new one"])), folder)
    os.close(handle)
    assert add_pairs(batches(pairs(["a new one"])), folder).added == 1
