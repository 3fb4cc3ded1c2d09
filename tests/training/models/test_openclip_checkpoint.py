"""Checkpoints in OpenCLIP's layout: the same weights, read by the index and by OpenCLIP."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the models are those of transformers")

from safetensors.torch import load_file  # noqa: E402 - behind the guard of torch

from pairwright.datasets.errors import InputError, UsageError  # noqa: E402
from pairwright.indexes.encoders.clip import ClipEncoder  # noqa: E402
from pairwright.indexes.encoders.openclip_checkpoint import check_plain_clip, map_weights  # noqa: E402
from pairwright.training.loading.tokenization import load_tokenizer  # noqa: E402
from pairwright.training.models.clip import Clip  # noqa: E402
from pairwright.training.models.extended_clip import ReactClip  # noqa: E402
from pairwright.training.models.openclip_checkpoint import openclip_config, save_openclip  # noqa: E402
from pairwright.training.tiny_clip import ClipSizes, new_clip, write_word_tokenizer  # noqa: E402
from tests.training import tiny_models  # noqa: E402


def saved(folder: Path) -> tuple[Clip, dict[str, Any]]:
    clip = tiny_models.clip()
    clip.train(mode=False)
    save_openclip(clip, folder)
    return clip, json.loads((folder / "open_clip_config.json").read_text())


def test_the_reader_of_the_index_finds_the_same_weights(tmp_path: Path) -> None:
    clip, config = saved(tmp_path)
    check_plain_clip(config["model_cfg"], "here")
    found = map_weights(load_file(tmp_path / "open_clip_model.safetensors"), "here")
    weights = {name: one for name, one in clip.network.state_dict().items() if not name.endswith("position_ids")}
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], one) for name, one in weights.items())


def test_the_config_describes_both_towers_and_the_pixels(tmp_path: Path) -> None:
    config = saved(tmp_path)[1]
    vision, text = config["model_cfg"]["vision_cfg"], config["model_cfg"]["text_cfg"]
    assert (vision["width"], vision["head_width"], vision["layers"], vision["mlp_ratio"]) == (24, 12, 3, 2.0)
    assert (text["width"], text["heads"], text["context_length"], text["vocab_size"]) == (16, 2, 10, 62)
    assert "pool_type" not in text, "the end token is the highest id, at which OpenCLIP pools"
    assert config["preprocess_cfg"]["resize_mode"] == "shortest"
    assert config["model_cfg"]["quick_gelu"] is True


def test_an_end_token_that_is_not_the_highest_id_is_named(tmp_path: Path) -> None:
    clip = saved(tmp_path)[0]
    clip.network.config.text_config.eos_token_id = 7
    text = openclip_config(clip)["model_cfg"]["text_cfg"]
    assert (text["pool_type"], text["eos_id"]) == ("eos", 7)


def test_a_clip_with_a_tokenizer_of_words_gives_the_same_embeddings(tmp_path: Path) -> None:
    """Its end token is not the highest id, and its tokenizer not CLIP's."""
    texts = ["a red circle", "a blue square left of a red circle", "red"]
    write_word_tokenizer(texts, tmp_path / "words", 12)
    tokenizer = load_tokenizer(str(tmp_path / "words"))
    clip = new_clip(tokenizer, ClipSizes(context=12)).eval()
    save_openclip(clip, tmp_path / "openclip")
    with torch.inference_mode():
        expected = torch.cat([clip.encode_texts(torch.tensor(tokenizer([text])["input_ids"])) for text in texts])
    rows = ClipEncoder(str(tmp_path / "openclip"), device="cpu").encode_texts(texts)
    torch.testing.assert_close(torch.from_numpy(rows), expected, atol=2e-6, rtol=0)


def test_an_end_token_that_is_not_that_of_the_tokenizer_is_refused(tmp_path: Path) -> None:
    write_word_tokenizer(["a red circle"], tmp_path / "words", 12)
    save_openclip(new_clip(load_tokenizer(str(tmp_path / "words")), ClipSizes(context=12)), tmp_path / "openclip")
    path = tmp_path / "openclip" / "open_clip_config.json"
    path.write_text(path.read_text().replace('"eos_id": 3', '"eos_id": 4'))
    with pytest.raises(InputError, match="read at token 4, and end with token 3"):
        ClipEncoder(str(tmp_path / "openclip"), device="cpu")


def test_what_openclip_cannot_express_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not for a react-clip .* Set save_openclip to false"):
        save_openclip(ReactClip(tiny_models.clip(), 1), tmp_path)
    odd = tiny_models.clip()
    odd.network.config.vision_config.hidden_act = "relu"
    with pytest.raises(UsageError, match="relu"):
        save_openclip(odd, tmp_path)
    assert not any(tmp_path.iterdir())


def test_openclip_opens_it_with_the_same_embeddings(tmp_path: Path) -> None:
    open_clip = pytest.importorskip("open_clip", reason="open_clip_torch is not installed (it brings torchvision)")
    clip = saved(tmp_path)[0]
    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{tmp_path}")
    model.eval()
    images, texts = tiny_models.images(), tiny_models.texts()[0]
    padded = torch.nn.functional.pad(texts, (0, tiny_models.CONTEXT - texts.shape[1]))
    with torch.no_grad():
        torch.testing.assert_close(model.encode_image(images, normalize=True), clip.encode_images(images))
        torch.testing.assert_close(model.encode_text(padded, normalize=True), clip.encode_texts(texts))
        torch.testing.assert_close(model.logit_scale.exp(), clip.scale)
    assert f"size={tiny_models.SIZE}" in str(preprocess)
