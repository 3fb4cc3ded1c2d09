"""Lexical encoder: any text has a reproducible unit row, close to those of similar texts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.indexes.encoders.hashed_features import MAX_TEXTS, hash_features
from pairwright.indexes.encoders.lexical import LexicalEncoder
from tests.indexes.corpus import captions

ENCODER = LexicalEncoder.fit(captions(), dim=256)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates, too


def cosine(one: str, other: str, encoder: LexicalEncoder = ENCODER) -> float:
    rows = encoder.encode_texts([one, other])
    return float(rows[0] @ rows[1])


@given(st.lists(TEXTS, max_size=8))
def test_any_text_gets_a_unit_row(texts: list[str]) -> None:
    rows = ENCODER.encode_texts(texts)
    assert rows.shape == (len(texts), 256)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


@given(st.lists(TEXTS, min_size=1, max_size=8), st.data())
def test_a_text_has_the_same_row_in_any_batch(texts: list[str], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(texts) - 1))
    assert np.array_equal(ENCODER.encode_texts(texts)[number], ENCODER.encode_texts([texts[number]])[0])


def test_batches_larger_than_a_chunk_keep_their_order() -> None:
    texts = [f"{text} {n}" for n in range(MAX_TEXTS // 100) for text in captions()]
    assert len(texts) > MAX_TEXTS
    rows = ENCODER.encode_texts(texts)
    assert np.array_equal(rows[MAX_TEXTS + 7], ENCODER.encode_texts([texts[MAX_TEXTS + 7]])[0])


@given(TEXTS)
def test_every_feature_of_a_text_occurs_once(text: str) -> None:
    features = hash_features([text])
    found = list(zip(features.kinds.tolist(), features.hashes.tolist(), strict=True))
    assert len(found) == len(set(found)) > 0
    assert (features.counts > 0).all()


@pytest.mark.parametrize("text", ["A DOG on the Beach", "  a dog on the beach ", "a ｄｏｇ on the beach"])
def test_case_width_and_outer_space_do_not_matter(text: str) -> None:
    assert cosine("a dog on the beach", text) == pytest.approx(1, abs=1e-6)


def test_word_order_matters_a_little() -> None:
    assert 0.8 < cosine("a dog beside a cat", "a cat beside a dog") < 0.999


def test_another_form_of_a_word_is_nearer_than_another_word() -> None:
    assert cosine("two elephants", "an elephant") > cosine("two elephants", "an apple") + 0.1


def test_texts_without_words_differ_by_their_characters() -> None:
    rows = ENCODER.encode_texts(["", "   ", "!!!", "???", "🐕"])
    assert np.array_equal(rows[0], rows[1])
    assert np.abs(rows[1:] @ rows[1:].T - np.eye(4)).max() < 0.5


def test_rare_words_weigh_more() -> None:
    """Every caption holds "a", one in eight holds "zebra"."""
    assert cosine("a zebra", "zebra") > cosine("a zebra", "a") + 0.2


def test_another_seed_gives_another_projection_of_the_same_likeness() -> None:
    other = LexicalEncoder.fit(captions(), dim=256, seed=1)
    one, two = "a dog running on the beach", "a dog running near a bus stop"
    assert other.fingerprint != ENCODER.fingerprint
    assert abs(float(other.encode_texts([one])[0] @ ENCODER.encode_texts([one])[0])) < 0.5
    assert cosine(one, two, other) == pytest.approx(cosine(one, two), abs=0.25)


def test_a_saved_encoder_is_the_same_encoder(tmp_path: Path) -> None:
    ENCODER.save(tmp_path / "one.npz")
    ENCODER.save(tmp_path / "two.npz")
    loaded = LexicalEncoder.load(tmp_path / "one.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert loaded.fingerprint == ENCODER.fingerprint
    assert np.array_equal(loaded.encode_texts(captions()[:9]), ENCODER.encode_texts(captions()[:9]))


@pytest.mark.parametrize("keep", [0, 100, -1])
def test_a_truncated_encoder_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "e.npz"
    ENCODER.save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StorageError, match="Build the index again"):
        LexicalEncoder.load(path)


def test_a_changed_encoder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    ENCODER.save(path)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(StorageError):
        LexicalEncoder.load(path)


def test_a_missing_encoder_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        LexicalEncoder.load(tmp_path / "e.npz")


def test_no_captions_cannot_be_fitted() -> None:
    with pytest.raises(InputError, match="no captions"):
        LexicalEncoder.fit([])


@pytest.mark.parametrize("dim", [0, 60, 100, 9000])
def test_an_impossible_length_is_refused(dim: int) -> None:
    with pytest.raises(UsageError, match="multiple of 8"):
        LexicalEncoder.fit(["a dog"], dim=dim)
