"""SigLIP and SigLIP 2 as checkpoints of the CLIP encoder: features are those of transformers' own processor and model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

pytest.importorskip("torch", reason="the 'clip' extra is not installed")
pytest.importorskip("transformers", reason="the 'clip' extra is not installed")

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from pairwright.indexes.encoders.clip import ClipEncoder

TEXTS = ["a photo of a cat", "dog", "", "a dog and a cat"]
CONTEXT, SIZE, PATCH, DIM = 8, 32, 8, 32
WORDS = ["<pad>", "</s>", "<unk>", "a", "photo", "of", "cat", "dog", "and"]
SHARED = {"hidden_size": DIM, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer with SigLIP's ending: each text ends with </s>, and is padded on the right."""
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token=WORDS[2]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": WORDS[2]}
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=CONTEXT, **names).save_pretrained(
        folder
    )


def write_checkpoint(folder: Path, kind: str) -> Path:
    text = SHARED | {"vocab_size": len(WORDS), "max_position_embeddings": CONTEXT, "projection_size": DIM}
    if kind == "siglip":
        vision: dict[str, Any] = SHARED | {"image_size": SIZE, "patch_size": PATCH}
        config = transformers.SiglipConfig(text_config=text, vision_config=vision)
        network: Any = transformers.SiglipModel(config)
        settings = {"size": {"height": SIZE, "width": SIZE}, "resample": 3, "do_convert_rgb": None}
    else:
        config = transformers.Siglip2Config(
            text_config=text, vision_config=SHARED | {"num_patches": 16, "patch_size": PATCH}
        )
        network = transformers.Siglip2Model(config)
        settings = {"max_num_patches": 16, "patch_size": PATCH, "image_processor_type": "Siglip2ImageProcessor"}
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps(settings | {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255})
    )
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module", params=["siglip", "siglip2"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, write_checkpoint(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def encoder(checkpoint: tuple[str, Path]) -> ClipEncoder:
    return ClipEncoder(str(checkpoint[1]), device="cpu")


def images() -> list[Image.Image]:
    rng = np.random.default_rng(5)
    sizes = [(40, 32), (32, 47), (90, 31), (33, 33)]
    return [Image.fromarray(rng.integers(0, 256, (high, wide, 3), np.uint8)) for wide, high in sizes]


def unit(rows: Any) -> NDArray[np.float32]:
    tensor = rows if isinstance(rows, torch.Tensor) else rows.pooler_output
    found: NDArray[np.float32] = torch.nn.functional.normalize(tensor, dim=-1).numpy()
    return found


def test_features_are_those_of_transformers(checkpoint: tuple[str, Path], encoder: ClipEncoder) -> None:
    """The processor pads to the full context: the text tower reads a text at its last position."""
    kind, folder = checkpoint
    network = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    made = transformers.SiglipImageProcessorPil if kind == "siglip" else transformers.Siglip2ImageProcessorPil
    processor = made.from_pretrained(folder)
    with torch.inference_mode():
        ids = tokenizer(TEXTS, padding="max_length", max_length=CONTEXT, truncation=True, return_tensors="pt").input_ids
        texts = unit(network.get_text_features(input_ids=ids))
        pictures = unit(network.get_image_features(**processor(images=images(), return_tensors="pt")))
    assert ids.shape == (len(TEXTS), CONTEXT)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), texts, atol=1e-4)
    np.testing.assert_allclose(encoder.encode_images(images()), pictures, atol=1e-4)
    assert (texts @ texts.T < 0.99).sum() > len(TEXTS)  # not all alike, or anything would agree


def test_rows_do_not_depend_on_their_batch_and_long_texts_are_counted(
    checkpoint: tuple[str, Path], encoder: ClipEncoder
) -> None:
    alone = ClipEncoder(str(checkpoint[1]), device="cpu", batch_size=1)
    assert np.allclose(alone.encode_texts(TEXTS), encoder.encode_texts(TEXTS), atol=1e-5)
    assert np.allclose(alone.encode_images(images()), encoder.encode_images(images()), atol=1e-5)
    before = encoder.truncated
    encoder.encode_texts(["cat " * CONTEXT, "cat"])
    assert encoder.truncated == before + 1


def test_a_saved_encoder_loads_again(encoder: ClipEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path / "encoder.json")
    assert ClipEncoder.load(tmp_path / "encoder.json", device="cpu").fingerprint == encoder.fingerprint
