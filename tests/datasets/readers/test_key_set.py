"""Set of seen keys."""

from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.readers.key_set import KeySet
from pairwright.datasets.records import pair_key


@given(st.lists(st.lists(st.integers(0, 30))))
def test_a_key_is_seen_from_its_second_time_on(batches: list[list[int]]) -> None:
    seen = KeySet()
    known: set[int] = set()
    for batch in batches:
        expected = []
        for number in batch:
            expected.append(number in known)
            known.add(number)
        assert seen.add([pair_key("a", str(number), "") for number in batch]).tolist() == expected
    assert len(seen) == len(known)


def test_many_keys_take_eight_bytes_each() -> None:
    seen = KeySet()
    keys = [f"{number * 2654435761 % 2**64:016x}" for number in range(50_000)]
    for start in range(0, len(keys), 1_000):
        assert not seen.add(keys[start : start + 1_000]).any()
    assert seen.nbytes == 8 * len(seen) == 8 * len(keys)
    assert seen.add(keys).all()
