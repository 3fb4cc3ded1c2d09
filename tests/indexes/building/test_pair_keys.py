"""Duplicate keys are found in one round or several; known keys are found among new ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError
from pairwright.indexes.building import pair_keys as module
from pairwright.indexes.building.pair_keys import PartKeys, check_unique_keys, encode_keys, find_known_keys

KEYS = st.lists(
    st.binary(min_size=16, max_size=16).map(bytes.hex) | st.integers(0, 9).map("{:032x}".format), min_size=1
)


def split(keys: list[str]) -> list[PartKeys]:
    half = len(keys) // 2
    return [PartKeys(Path("a"), encode_keys(keys[:half])), PartKeys(Path("b"), encode_keys(keys[half:]))]


@pytest.mark.parametrize("at_once", [2**24, 3])
@given(keys=KEYS)
def test_a_duplicate_key_is_reported_with_its_parts(at_once: int, keys: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_SORTED_KEYS", at_once)
        patch.setattr(module, "_CHUNK", 4)
        if len(set(keys)) == len(keys):
            check_unique_keys(split(keys))
            return
        with pytest.raises(InputError) as caught:
            check_unique_keys(split(keys))
        key = caught.value.where.removeprefix("pair ")
        half = len(keys) // 2
        assert keys.count(key) > 1
        assert ("duplicate" in caught.value.what) == (keys[:half].count(key) != 1 or keys[half:].count(key) == 0)


@given(known=KEYS, asked=KEYS)
def test_known_keys_are_found_among_new_ones(known: list[str], asked: list[str]) -> None:
    asked = [*asked, asked[0]]  # a key that is asked for twice, too
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 4)
        assert find_known_keys(split(known), encode_keys(asked)).tolist() == [key in known for key in asked]


@pytest.mark.parametrize("wrong", ["x", "", "0" * 31, "0" * 33, "g" * 32, "00 " + "0" * 29])
def test_an_invalid_key_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="is not a pair key"):
        encode_keys(["0" * 32, wrong])


def test_keys_become_bytes() -> None:
    assert encode_keys([]).shape == (0, 16)
    assert encode_keys(["00ff" + "0" * 28]).tolist() == [[0, 255] + [0] * 14]
