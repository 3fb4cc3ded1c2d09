"""FocalLens-MLLM: embeddings of image and instruction by a LLaVA of transformers."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")

from torch import nn  # noqa: E402 - after the skips

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.training.models.anyres import Grid  # noqa: E402
from pairwright.training.models.focallens_mllm import FocalLensMllm  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.models.trainable_parameters import train_only  # noqa: E402
from pairwright.training.objectives.contrastive import clip_loss  # noqa: E402
from tests.training import tiny_models  # noqa: E402

P = tiny_models.PATCHES


def mllm() -> FocalLensMllm:
    llava = tiny_models.llava_checkpoint()
    torch.manual_seed(1)
    return FocalLensMllm(llava, tiny_models.clip(), processor=tiny_models.llava_processor())


def test_the_embedding_is_the_state_of_the_end_token_after_image_and_instruction() -> None:
    """Against transformers' own forward pass, each text alone."""
    model = mllm()
    images = tiny_models.images(2)
    texts = torch.tensor([[1, 4, 5], [1, 6, 0]])
    rows = model.encode_images(images, texts, texts != 0)
    for row, (first, said) in enumerate((([1], [4, 5, 2]), ([1], [6, 2]))):
        ids = torch.tensor([[*first, *[3] * P, *said]])
        states = model.llava.model(input_ids=ids, pixel_values=images[row : row + 1]).last_hidden_state
        expected = nn.functional.normalize(model.head(states[0, -1]), dim=0)
        assert torch.allclose(rows[row], expected, atol=1e-5)


def test_without_a_start_token_the_image_comes_first() -> None:
    model = mllm()
    images, texts = tiny_models.images(1), torch.tensor([[4, 5]])
    ids = torch.tensor([[*[3] * P, 4, 5, 2]])
    states = model.llava.model(input_ids=ids, pixel_values=images).last_hidden_state
    expected = nn.functional.normalize(model.head(states[0, -1]), dim=0)
    assert torch.allclose(model.encode_images(images, texts, texts != 0)[0], expected, atol=1e-5)


def test_an_image_in_parts_is_one_image() -> None:
    model = mllm()
    texts = torch.tensor([[1, 4], [1, 5]])
    parts, grids = tiny_models.images(3 + 5), [Grid(1, 2), Grid(2, 2)]
    both = model.encode_images(parts, texts, texts != 0, grids=grids)
    alone = model.encode_images(parts[:3], texts[:1], texts[:1] != 0, grids=grids[:1])
    assert torch.allclose(both[:1], alone, atol=1e-5)
    with pytest.raises(UsageError, match=r"8 image parts, .* 6"):
        model.encode_images(parts, texts, texts != 0, grids=[Grid(1, 2), Grid(1, 2)])
    with pytest.raises(UsageError, match=r"8 images for 2 texts"):
        model.encode_images(parts, texts, texts != 0)


def test_the_mllm_is_trained_towards_a_target_that_stays(tmp_path: Path) -> None:
    model, (outputs, _) = mllm(), tiny_models.texts()
    train_only(model, "focallens-mllm")
    texts = torch.tensor([[1, 4, 5], [1, 6, 0], [1, 7, 8]])
    out = model(tiny_models.images(), texts, texts != 0, outputs)
    assert torch.equal(out.texts, tiny_models.clip().encode_texts(outputs))
    assert torch.allclose(out.images.norm(dim=1), torch.ones(3), atol=1e-6)
    assert out.scale.item() == pytest.approx(tiny_models.clip().scale.item())
    changed = tiny_models.step(model, clip_loss(out.images, out.texts, out.scale))
    # What makes words of states has no part in an embedding, and gets no gradient.
    still = ("llava.model.vision_tower.", "target.", "llava.lm_head.")
    assert changed == {name for name, _ in model.named_parameters() if not name.startswith(still)}
    model.save(tmp_path)
    again = open_model(str(tmp_path))
    assert isinstance(again, FocalLensMllm)
    images = tiny_models.images()
    found, expected = (one.encode_images(images, texts, texts != 0) for one in (again, model))
    assert torch.equal(found, expected)
    assert torch.equal(again.logit_scale, model.logit_scale)


def test_a_language_model_without_an_end_token_needs_one_named() -> None:
    llava = tiny_models.llava_checkpoint()
    with pytest.raises(UsageError, match="no end token"):
        FocalLensMllm(llava, tiny_models.clip())
    assert FocalLensMllm(llava, tiny_models.clip(), end=2).end == 2
