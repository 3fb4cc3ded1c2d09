"""Vectors of captions and images by an encoder: unusable images are rejected, and both modalities are in one index."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="the 'clip' extra is not installed")
pytest.importorskip("transformers", reason="the 'clip' extra is not installed")

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.building.pair_vectors import EncodedVectors
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.encoders.lexical import LexicalEncoder
from pairwright.indexes.encoders.registry import EncoderOptions
from pairwright.indexes.hnsw.options import IndexOptions
from tests.indexes import tiny_clip
from tests.indexes.corpus import keys

GOOD = 12
UNUSABLE = ["missing_image", "missing_image", "not_fetched", "bad_image", "bad_image"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_clip.transformers_folder(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """Twelve good images, and one of each kind that cannot be used among them."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(3)
    for number in range(GOOD):
        pixels = rng.integers(0, 256, (40, 30 + number, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    whole = (folder / "0.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "text.jpg").write_text("no image")
    good = [str(folder / f"{number}.png") for number in range(GOOD)]
    bad = ["", str(folder / "none.png"), "https://example.org/a.jpg", str(folder / "cut.png"), str(folder / "text.jpg")]
    places = [*good[:5], *bad, *good[5:]]
    return [
        Pair(key, f"a photo of a dog {n}", image=image)
        for n, (key, image) in enumerate(zip(keys(17), places, strict=True))
    ]


def test_unusable_images_are_rejected_with_their_reason(checkpoint: Path, pool: list[Pair]) -> None:
    encoder = ClipEncoder(str(checkpoint), device="cpu")
    rows = EncodedVectors(encoder).rows(pool, "image")
    assert rows.has.tolist() == [True] * 5 + [False] * 5 + [True] * 7
    assert [reject.reason for reject in rows.rejects] == UNUSABLE
    assert [reject.place for reject in rows.rejects] == [f"pair {key}" for key in keys(17)[5:10]]
    good = [pair for pair, has in zip(pool, rows.has.tolist(), strict=True) if has]
    with Image.open(good[6].image) as image:
        assert np.allclose(rows.vectors[6], encoder.encode_images([image])[0], atol=1e-6)
    assert EncodedVectors(encoder).rows(pool[5:7], "image").vectors.shape == (0, encoder.dim)


def test_texts_and_images_are_indexed_and_found_and_a_worker_gets_the_same_rows(
    checkpoint: Path, pool: list[Pair], tmp_path: Path
) -> None:
    rejects: list[Reject] = []
    info = build_index_from_pairs(
        lambda: [pool],
        tmp_path,
        encoder=EncoderOptions("clip", model=str(checkpoint), device="cpu"),
        modalities=("text", "image"),
        options=IndexOptions(near=1),
        shards=2,
        rejected=rejects.append,
    )
    assert info.rejected == {"bad_image": 2, "missing_image": 2, "not_fetched": 1}
    assert [reject.reason for reject in rejects] == UNUSABLE
    assert [sum(part.entries for part in info.parts_of(name)) for name in info.modalities] == [17, 12]
    opened = open_index_with_encoder(tmp_path)
    assert isinstance(opened.encoder, ClipEncoder)
    with Image.open(pool[2].image) as image:
        hits = opened.index.search(opened.encoder.encode_images([image]), 1, modality="image")
    assert hits.frame()["key"].to_list() == [pool[2].key]
    texts = opened.index.search(opened.encoder.encode_texts([pool[7].caption]), 1)
    assert texts.scores[0] == pytest.approx(1, abs=1e-5)
    arrived = pickle.loads(pickle.dumps(EncodedVectors(opened.encoder, tmp_path, device="cpu")))  # noqa: S301 - our own
    assert (arrived.rows(pool, "image").vectors == EncodedVectors(opened.encoder).rows(pool, "image").vectors).all()


def test_an_encoder_travels_by_the_folder_that_it_is_saved_in(tmp_path: Path) -> None:
    encoder = LexicalEncoder.fit(["a dog", "a cat"])
    with pytest.raises(UsageError, match="not saved in an index folder"):
        pickle.dumps(EncodedVectors(encoder))
    encoder.save(tmp_path / "encoder.npz")
    arrived = pickle.loads(pickle.dumps(EncodedVectors(encoder, tmp_path)))  # noqa: S301 - our own bytes
    assert arrived.encoder.fingerprint == encoder.fingerprint


def test_an_encoder_of_texts_takes_no_images(pool: list[Pair]) -> None:
    encoded = EncodedVectors(LexicalEncoder.fit(["a dog"]))
    assert encoded.modalities == ("text",)
    with pytest.raises(UsageError, match="encodes texts only"):
        encoded.rows(pool, "image")
