"""External sort of rows."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.mixtures import external_sort
from pairwright.datasets.mixtures.external_sort import BUCKET_BYTES, open_buckets


@given(st.permutations(list(range(50))), st.integers(0, 60))
def test_rows_come_back_by_rank_for_any_number_of_buckets(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], number: int
) -> None:
    out = tmp_path_factory.mktemp("drawers") / "out.json"
    with open_buckets(out, 50, number * BUCKET_BYTES) as store:
        for rank in order:
            store.put(rank, b'["row %d"]' % rank)
        assert len(store.files) == max(1, min(number, 50))
        assert list(store.rows()) == [b'["row %d"]' % rank for rank in range(50)]
    assert list(out.parent.iterdir()) == []


def test_the_number_of_buckets_is_limited(tmp_path: Path) -> None:
    with open_buckets(tmp_path / "out", 10**6, 10**15) as store:
        assert len(store.files) == external_sort.MAX_BUCKETS
