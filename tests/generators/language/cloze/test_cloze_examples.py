"""Samples of slots: the same for any order and division of the captions, and limited."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.language.cloze.context import HEADS, MAX_BAG, REACH, SLOT_KINDS, ClozeContext, ClozeExample
from pairwright.generators.language.cloze.examples import ClozeSample, ClozeSampler

words = st.text("abé\ud800", max_size=2)
contexts = st.builds(
    ClozeContext,
    st.lists(words, max_size=REACH).map(tuple),
    st.lists(words, max_size=REACH).map(tuple),
    st.lists(words, max_size=HEADS).map(tuple),
    st.lists(words, max_size=MAX_BAG).map(tuple),
)
examples = st.builds(ClozeExample, st.sampled_from(SLOT_KINDS), words, contexts)
captions = st.lists(st.tuples(words, st.lists(examples, max_size=4)), max_size=12)
Captions = list[tuple[str, list[ClozeExample]]]


def sample_of(pool: Captions, limit: int = 5) -> ClozeSample:
    sampler = ClozeSampler(limit)
    for key, found in pool:
        sampler.add(key, found)
    return sampler.sample()


def content(sample: ClozeSample) -> object:
    return sample.words, {
        kind: (part.captions.tolist(), part.rows.tolist(), part.bound) for kind, part in sample.kinds.items()
    }


@given(captions, st.integers(1, 5), st.randoms())
def test_order_and_division_of_the_captions_do_not_matter(pool: Captions, size: int, rng: object) -> None:
    whole = content(sample_of(pool))
    parts = [sample_of(pool[start : start + size]) for start in range(0, len(pool), size)] or [sample_of([])]
    assert content(ClozeSample.merged(parts)) == whole
    assert content(ClozeSample.merged(parts[::-1])) == whole
    assert content(sample_of(pool[::-1])) == whole


@given(captions)
def test_a_kind_has_at_most_the_limit_and_a_caption_is_kept_whole(pool: Captions) -> None:
    complete, limited = sample_of(pool, 1_000), sample_of(pool, 5)
    for kind in SLOT_KINDS:
        everything, kept = complete.kinds[kind].captions, limited.kinds[kind].captions
        assert len(kept) <= 5
        assert kept.tolist() == [each for each in everything.tolist() if each in set(kept.tolist())]
        assert len(kept) == len(everything) or len(everything) > 5


@given(captions)
def test_what_was_added_can_be_read_back(pool: Captions) -> None:
    sample = sample_of(pool, 1_000)
    table = [None, *sample.words]
    found = sorted(
        (kind, *(table[number] or "" for number in row))
        for kind in SLOT_KINDS
        for row in sample.kinds[kind].rows.tolist()
    )
    added = [example for _, several in pool for example in several]
    assert found == sorted((kind, target, *_fill_up(context)) for kind, target, context in added)


def _fill_up(context: ClozeContext) -> tuple[str, ...]:
    widths = (REACH, REACH, HEADS, MAX_BAG)
    return tuple(
        word for part, width in zip(context, widths, strict=True) for word in (*part, *[""] * (width - len(part)))
    )


def test_a_saved_sample_is_read_back_and_has_the_same_bytes(tmp_path: Path) -> None:
    context = ClozeContext(("a",), ("",), (), ("dog", "\ud800"))
    sample = sample_of([("x", [ClozeExample("noun", "dog house", context)])])
    for name in ("a.npz", "b.npz"):
        sample.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = ClozeSample.load(tmp_path / "a.npz")
    assert content(loaded) == content(sample)
    assert loaded.limit == sample.limit
    assert all(part.rows.dtype == np.uint16 for part in loaded.kinds.values())


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(StorageError, match=r"part\.npz"):
        ClozeSample.load(path)
