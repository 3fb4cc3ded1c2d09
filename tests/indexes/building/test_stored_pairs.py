"""Stored pairs: any range and selection is read back in order, across files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairwright.indexes.building import stored_pairs
from pairwright.indexes.building.stored_pairs import NO_SIBLINGS, StoredPairs, StoredPairsWriter, look_up_pairs
from tests.example_counts import examples
from tests.indexes.corpus import numbered

COUNT = 50
POOL = numbered(COUNT)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> StoredPairs:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_pairs, "_PAIRS_PER_FILE", 12)
        writer = StoredPairsWriter(tmp_path_factory.mktemp("pairs"), 3)
        for start in range(0, COUNT, 7):
            writer.add(POOL[start : start + 7])
        return writer.finish(COUNT, NO_SIBLINGS)


def test_files_are_of_one_size_and_numbered_on(files: StoredPairs) -> None:
    assert files.names == ("00003.parquet", "00004.parquet", "00005.parquet", "00006.parquet", "00007.parquet")
    assert files.ends == (12, 24, 36, 48, 50)
    assert files.count == COUNT


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, COUNT), st.integers(0, COUNT))
def test_a_range_is_read_in_order(files: StoredPairs, first: int, end: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_pairs, "BATCH_PAIRS", 5)
        batches = list(files.batches(first, end))
    assert [pair for batch in batches for pair in batch] == POOL[first:end]
    assert all(0 < len(batch) <= 5 for batch in batches)


@given(st.sets(st.integers(0, COUNT - 1)))
def test_chosen_pairs_are_read_in_order(files: StoredPairs, numbers: set[int]) -> None:
    wanted = np.array(sorted(numbers), np.int64)
    assert [pair for batch in files.select(wanted) for pair in batch] == [POOL[number] for number in wanted]


def test_pairs_are_found_by_key_in_the_order_asked_and_each_once(files: StoredPairs, tmp_path: Path) -> None:
    paths = [files.folder / name for name in files.names]
    asked = [POOL[number].key for number in (40, 3, 25, 3)]
    assert look_up_pairs(paths, [*asked, "f" * 32])["caption"].to_list() == ["caption 40", "caption 3", "caption 25"]
    assert StoredPairsWriter(tmp_path / "none").finish(0, NO_SIBLINGS).count == 0
    assert not (tmp_path / "none").exists()
