"""CLIP encoder: texts and images in one space, from a folder or a hub name."""

import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="the 'clip' extra is not installed")
pytest.importorskip("transformers", reason="the 'clip' extra is not installed")

import torch
from transformers import CLIPModel

from pairwright.datasets.errors import InputError, MissingResourceError, StorageError, UsageError
from pairwright.indexes.encoders.clip import ClipEncoder
from tests.indexes import tiny_clip

TEXTS = ["a photo of a cat", "dog", "", "a dog and a cat", "Ünï", "photo", "x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_clip.transformers_folder(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> ClipEncoder:
    return ClipEncoder(str(folder), device="cpu")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def images() -> list[Image.Image]:
    rng = np.random.default_rng(5)
    sizes = [(40, 32), (32, 47), (90, 31), (200, 10), (1, 1), (33, 33)]
    return [Image.fromarray(rng.integers(0, 256, (high, wide, 3), np.uint8)) for wide, high in sizes]


def test_rows_are_those_of_the_model_alone(encoder: ClipEncoder, folder: Path) -> None:
    """The reference is transformers' own forward pass, one text and one image at a time, without padding."""
    network = CLIPModel.from_pretrained(folder)
    with torch.inference_mode():
        for text in TEXTS[:3]:
            ids = torch.tensor(encoder._parts.tokens.ids([text]))
            row = network.text_projection(network.text_model(input_ids=ids).pooler_output)[0].numpy()
            assert np.allclose(encoder.encode_texts([text])[0], row / np.linalg.norm(row), atol=1e-6)
        for image in images()[:3]:
            pixels = torch.from_numpy(encoder._parts.pixels.of(image))[None]
            row = network.visual_projection(network.vision_model(pixel_values=pixels).pooler_output)[0].numpy()
            assert np.allclose(encoder.encode_images([image])[0], row / np.linalg.norm(row), atol=1e-6)


def test_every_text_and_image_has_a_unit_row(encoder: ClipEncoder) -> None:
    odd = [*TEXTS, "\ud800 half a pair", "\0", " \n ", "word " * 100]
    pictures = [images()[0].convert(mode) for mode in ("L", "RGBA", "P", "CMYK", "1", "I", "F")]
    for rows, count in [(encoder.encode_texts(odd), len(odd)), (encoder.encode_images(pictures), len(pictures))]:
        assert rows.shape == (count, encoder.dim)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_nothing_gives_no_rows(encoder: ClipEncoder) -> None:
    assert encoder.encode_texts([]).shape == encoder.encode_images([]).shape == (0, tiny_clip.DIM)


def test_an_undecoded_image_given_twice_has_two_equal_rows(encoder: ClipEncoder, tmp_path: Path) -> None:
    images()[2].save(tmp_path / "a.png")
    lazy = Image.open(tmp_path / "a.png")
    rows = encoder.encode_images([lazy] * 50 + images()[:1])
    assert np.allclose(rows[:50], rows[:1], atol=1e-6)
    assert np.allclose(rows[[0, 50]], encoder.encode_images([images()[2], images()[0]]), atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_a_row_does_not_depend_on_its_batch(folder: Path, encoder: ClipEncoder, batch_size: int) -> None:
    other = ClipEncoder(str(folder), device="cpu", batch_size=batch_size)
    assert np.allclose(other.encode_texts(TEXTS), encoder.encode_texts(TEXTS), atol=1e-6)
    assert np.allclose(other.encode_texts(TEXTS[::-1])[::-1], encoder.encode_texts(TEXTS), atol=1e-6)
    assert np.allclose(other.encode_images(images()), encoder.encode_images(images()), atol=1e-6)


def test_the_same_call_gives_the_same_bytes(folder: Path, encoder: ClipEncoder) -> None:
    again = ClipEncoder(str(folder), device="cpu")
    assert again.encode_texts(TEXTS).tobytes() == encoder.encode_texts(TEXTS).tobytes()
    assert again.encode_images(images()).tobytes() == encoder.encode_images(images()).tobytes()


def test_a_text_that_is_too_long_keeps_its_beginning_and_is_counted(folder: Path) -> None:
    encoder = ClipEncoder(str(folder), device="cpu")
    fitting = " ".join(["cat"] * (tiny_clip.CONTEXT - 2))
    rows = encoder.encode_texts([fitting, fitting + " dog", "cat"])
    assert encoder.truncated == 1
    assert np.allclose(rows[0], rows[1], atol=1e-6)
    assert not np.allclose(rows[0], rows[2], atol=1e-3)


def test_half_precision_rounds_the_weights_and_is_another_encoder(folder: Path, encoder: ClipEncoder) -> None:
    half = ClipEncoder(str(folder), device="cpu", half=True)
    full_rows, half_rows = encoder.encode_texts(TEXTS), half.encode_texts(TEXTS)
    assert not np.array_equal(full_rows, half_rows)
    assert (full_rows * half_rows).sum(axis=1).min() > 0.9999
    assert half.fingerprint != encoder.fingerprint


def test_a_saved_encoder_is_loaded_from_any_working_directory(
    folder: Path, encoder: ClipEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    ClipEncoder(folder.name, device="cpu", half=True).save(tmp_path / "encoder.json")
    monkeypatch.chdir(tmp_path)
    loaded = ClipEncoder.load(tmp_path / "encoder.json", device="cpu")
    assert loaded.half
    assert loaded.model == str(folder)
    assert loaded.fingerprint != encoder.fingerprint


def test_a_moved_checkpoint_is_found_when_it_is_named_anew(copy: Path, encoder: ClipEncoder, tmp_path: Path) -> None:
    ClipEncoder(str(copy), device="cpu").save(tmp_path / "encoder.json")
    moved = copy.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="no such folder"):
        ClipEncoder.load(tmp_path / "encoder.json", device="cpu")
    loaded = ClipEncoder.load(tmp_path / "encoder.json", device="cpu", model=str(moved))
    assert loaded.fingerprint == encoder.fingerprint


def _other_weight(folder: Path) -> None:
    network = CLIPModel.from_pretrained(folder)
    with torch.no_grad():
        network.visual_projection.weight[0, 0] += 0.001
    network.save_pretrained(folder)


def _other_merges(folder: Path) -> None:
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(tiny_clip.MERGES[2:]) + "\n")


def _other_mean(folder: Path) -> None:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_mean": [0.1, 0.1, 0.1]}))


def _other_activation(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(path.read_text().replace("quick_gelu", "gelu"))


@pytest.mark.parametrize("change", [_other_weight, _other_merges, _other_mean, _other_activation])
def test_a_checkpoint_that_changed_is_refused(copy: Path, tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    ClipEncoder(str(copy), device="cpu").save(tmp_path / "encoder.json")
    change(copy)
    with pytest.raises(StorageError, match="another checkpoint"):
        ClipEncoder.load(tmp_path / "encoder.json", device="cpu")


def test_the_fingerprint_depends_on_loaded_weights_not_on_files(copy: Path, encoder: ClipEncoder) -> None:
    weights = CLIPModel.from_pretrained(copy).state_dict()
    torch.save(weights, copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    (copy / "README.md").write_text("another file")
    assert ClipEncoder(str(copy), device="cpu").fingerprint == encoder.fingerprint


def test_a_folder_never_leads_to_the_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    ClipEncoder(str(folder), device="cpu")


def test_an_unavailable_hub_name_is_a_missing_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        MissingResourceError, match="owner/no-such-clip: no such folder, and not available on the Hugging Face hub"
    ):
        ClipEncoder("owner/no-such-clip", device="cpu")


def test_a_model_of_another_kind_is_refused_by_its_kind(copy: Path) -> None:
    path = copy / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "blip"}))
    with pytest.raises(InputError, match="kind 'blip', not clip"):
        ClipEncoder(str(copy), device="cpu")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"", "cannot be loaded"),
        ("model.safetensors", None, "no weights"),
        ("vocab.json", b"{", "cannot be loaded"),
        ("preprocessor_config.json", None, "cannot be read"),
        ("preprocessor_config.json", b"[1, 2]", "cannot be read"),
        ("config.json", b"{", "cannot be read"),
        ("config.json", None, "contains neither"),
    ],
)
def test_a_damaged_checkpoint_is_refused(copy: Path, name: str, content: bytes | None, message: str) -> None:
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        ClipEncoder(str(copy), device="cpu")


def test_a_checkpoint_that_lacks_a_weight_is_refused_not_filled_with_chance(copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    del weights["text_projection.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"1 weights are missing .*text_projection\.weight"):
        ClipEncoder(str(copy), device="cpu")


def test_weights_that_are_not_numbers_are_refused_when_they_show(copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights["text_projection.weight"][:] = float("nan")
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="not finite or all zero"):
        ClipEncoder(str(copy), device="cpu").encode_texts(["cat"])


def test_an_unavailable_device_is_a_usage_error(folder: Path) -> None:
    for device in ("nonsense", "cuda:99"):
        with pytest.raises(UsageError, match=f"device '{device}'"):
            ClipEncoder(str(folder), device=device)


def test_loading_prints_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ClipEncoder(str(folder), device="cpu").encode_texts(["word " * 100])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("prefix", ["", "hf-hub:"])
def test_a_hub_name_is_read_from_the_files_that_were_downloaded(
    folder: Path, encoder: ClipEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    stored, commit = tmp_path / "models--owner--tiny-clip", "0" * 40
    shutil.copytree(folder, stored / "snapshots" / commit)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(commit)
    named = ClipEncoder(f"{prefix}owner/tiny-clip", device="cpu")
    assert named.fingerprint == encoder.fingerprint
    named.save(tmp_path / "encoder.json")
    assert ClipEncoder.load(tmp_path / "encoder.json", device="cpu").model == f"{prefix}owner/tiny-clip"
