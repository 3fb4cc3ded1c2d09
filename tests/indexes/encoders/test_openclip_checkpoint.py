"""OpenCLIP checkpoints: the mapped weights give the rows of OpenCLIP."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="the 'clip' extra is not installed")
pytest.importorskip("transformers", reason="the 'clip' extra is not installed")

import torch

from pairwright.datasets.errors import InputError, MissingResourceError
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.encoders.openclip_checkpoint import check_plain_clip, map_weights
from tests.indexes import tiny_clip

TEXTS = ["a photo of a cat", "dog", "", "a dog and a cat and a dog and a cat and a dog", "Ünï"]


@pytest.mark.parametrize("quick_gelu", [False, True])
@pytest.mark.parametrize("weights_name", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"])
def test_rows_are_those_of_the_same_weights_computed_as_openclip_does(
    tmp_path: Path, weights_name: str, *, quick_gelu: bool
) -> None:
    weights = tiny_clip.state()
    tiny_clip.native_folder(tmp_path, weights, quick_gelu=quick_gelu, weights_name=weights_name)
    encoder = ClipEncoder(str(tmp_path), device="cpu")
    ids = [_cut(tokens) for tokens in encoder._parts.tokens.ids(TEXTS)]
    rng = np.random.default_rng(3)
    images = [Image.fromarray(rng.integers(0, 256, (high, 40, 3), np.uint8)) for high in (32, 45, 90)]
    pixels = np.stack([encoder._parts.pixels.of(image) for image in images])
    texts_expected = tiny_clip.text_rows(weights, ids, quick_gelu=quick_gelu)
    images_expected = tiny_clip.image_rows(weights, pixels, quick_gelu=quick_gelu)
    assert np.allclose(encoder.encode_texts(TEXTS), texts_expected, atol=2e-6)
    assert np.allclose(encoder.encode_images(images), images_expected, atol=2e-6)
    other = tiny_clip.text_rows(weights, ids, quick_gelu=not quick_gelu)
    assert not np.allclose(texts_expected, other, atol=1e-4), "the test would not see the wrong activation"


def _cut(tokens: list[int]) -> list[int]:
    return tokens if len(tokens) <= tiny_clip.CONTEXT else [*tokens[: tiny_clip.CONTEXT - 1], tokens[-1]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"vision_cfg": {"timm_model_name": "vit_base_patch16_siglip_224"}},
            "timm_model_name is 'vit_base_patch16_siglip",
        ),
        ({"vision_cfg": {"layers": [3, 4, 6, 3]}}, "a ResNet"),
        ({"vision_cfg": {"pool_type": "avg"}}, "vision_cfg.pool_type is 'avg'"),
        ({"vision_cfg": {"no_ln_pre": True}}, "vision_cfg.no_ln_pre is True"),
        ({"text_cfg": {"hf_model_name": "roberta-base"}}, "text_cfg.hf_model_name is 'roberta-base'"),
        ({"text_cfg": {"no_causal_mask": True}}, "text_cfg.no_causal_mask is True"),
        ({"multimodal_cfg": {"width": 32}}, "multimodal_cfg is"),
        ({"init_logit_bias": -10}, "init_logit_bias is -10"),
        ({"custom_text": True}, "custom_text is True"),
        ({"vision_cfg": {"a_setting_of_tomorrow": 1}}, "vision_cfg.a_setting_of_tomorrow is 1"),
    ],
)
def test_an_unsupported_architecture_is_refused_with_the_setting(change: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_plain_clip(_merged(tiny_clip.architecture(), change), "checkpoint x")


def test_settings_that_are_written_out_but_off_are_plain() -> None:
    off: dict[str, object] = {
        "ls_init_value": None,
        "pool_type": "tok",
        "attentional_pool": False,
        "norm_kwargs": {},
        "timm_drop": 0.0,
    }
    check_plain_clip(_merged(tiny_clip.architecture(), {"vision_cfg": off, "custom_text": False}), "checkpoint x")


def _merged(architecture: dict[str, object], change: dict[str, object]) -> dict[str, object]:
    for key, value in change.items():
        before = architecture.get(key)
        architecture[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return architecture


def test_a_weight_that_a_plain_clip_has_not_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"visual\.transformer\.resblocks\.0\.ls_1\.gamma"):
        map_weights({"visual.transformer.resblocks.0.ls_1.gamma": torch.ones(2)}, "checkpoint x")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    tiny_clip.native_folder(tmp_path, tiny_clip.state())
    (tmp_path / "vocab.json").unlink()
    with pytest.raises(InputError, match="no tokenizer"):
        ClipEncoder(str(tmp_path), device="cpu")


def test_weights_of_another_size_than_the_configuration_says_are_refused(tmp_path: Path) -> None:
    tiny_clip.native_folder(tmp_path, tiny_clip.state())
    path = tmp_path / "open_clip_config.json"
    config = json.loads(path.read_text())
    config["model_cfg"]["text_cfg"]["vocab_size"] += 1
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"cannot be loaded|another shape"):
        ClipEncoder(str(tmp_path), device="cpu")


@pytest.mark.skipif(importlib.util.find_spec("open_clip") is not None, reason="needs a machine without open_clip_torch")
def test_a_name_of_openclip_asks_for_its_package() -> None:
    with pytest.raises(MissingResourceError, match="pip install open_clip_torch"):
        ClipEncoder("ViT-B-32::laion2b_s34b_b79k", device="cpu")


def test_a_name_of_openclip_is_read_by_its_package(tmp_path: Path) -> None:
    open_clip = pytest.importorskip("open_clip", reason="open_clip_torch is not installed (it brings torchvision)")
    config = tiny_clip.architecture()
    config["text_cfg"] = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 4, "layers": 2}
    (tmp_path / "tiny.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "tiny.json")
    network = open_clip.create_model("tiny").eval()
    torch.save(network.state_dict(), tmp_path / "tiny.pt")
    encoder = ClipEncoder(f"tiny::{tmp_path / 'tiny.pt'}", device="cpu")
    with torch.inference_mode():
        rows = network.encode_text(open_clip.get_tokenizer("tiny")(TEXTS), normalize=True).numpy()
    assert np.allclose(encoder.encode_texts(TEXTS), rows, atol=2e-6)
