"""Registry of encoders: creation by name, saving to an index folder, loading from it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.encoders.registry import (
    BUILT_IN,
    EncoderOptions,
    encoder_file_name,
    fit_encoder,
    load_encoder,
    require_image_encoder,
)
from tests.indexes import corpus


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the 'clip' extra is not installed")
    pytest.importorskip("transformers", reason="the 'clip' extra is not installed")
    from tests.indexes import tiny_clip

    return tiny_clip.transformers_folder(tmp_path_factory.mktemp("clip"))


def test_importing_the_registry_loads_no_model_library() -> None:
    code = "import sys, pairwright.indexes.encoders.registry; print({'torch', 'transformers', 'sentence_transformers'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["lexical", "clip"])
def test_a_saved_encoder_is_loaded_from_its_folder(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model = str(request.getfixturevalue("clip_folder")) if name == "clip" else ""
    encoder = fit_encoder(EncoderOptions(name, model=model), corpus.captions())
    encoder.save(tmp_path / encoder_file_name(encoder))
    loaded = load_encoder(tmp_path)
    assert loaded is not None
    assert (loaded.name, loaded.dim, loaded.fingerprint) == (name, encoder.dim, encoder.fingerprint)
    assert np.array_equal(loaded.encode_texts(["a cat"]), encoder.encode_texts(["a cat"]))


def test_models_consume_all_captions_too(clip_folder: Path) -> None:
    seen: list[str] = []

    def watched() -> Iterator[str]:
        for caption in ("one", "two"):
            seen.append(caption)
            yield caption

    fit_encoder(EncoderOptions("clip", model=str(clip_folder)), watched())
    assert seen == ["one", "two"]


def test_a_folder_of_precomputed_vectors_has_no_encoder(tmp_path: Path) -> None:
    assert load_encoder(tmp_path) is None


def test_only_clip_encodes_images(clip_folder: Path) -> None:
    clip = fit_encoder(EncoderOptions("clip", model=str(clip_folder)), [])
    assert require_image_encoder(clip).encode_images([]).shape == (0, clip.dim)
    assert [name for name in BUILT_IN if EncoderOptions(name).encodes_images] == ["clip"]
    with pytest.raises(UsageError, match="encodes texts only"):
        require_image_encoder(fit_encoder(EncoderOptions(), ["a caption"]))


@pytest.mark.parametrize(
    "options",
    [{"name": "word2vec"}, {"name": "clip", "batch_size": 0}, {"model": "x"}, {"device": "cpu"}, {"half": True}],
)
def test_invalid_options_are_refused_before_a_model_is_loaded(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        EncoderOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"name": "word2vec"}', '{"name": "clip"}', '{"name": "minilm", "x": 1}']
)
def test_a_damaged_encoder_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "encoder.json").write_text(content)
    with pytest.raises(StorageError, match=r"encoder\.json"):
        load_encoder(tmp_path)
