"""Trained and frozen parameters, LoRA, and saved models."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")
pytest.importorskip("peft", reason="LoRA is peft's")

from torch import Tensor, nn  # noqa: E402

from pairwright.datasets.errors import StorageError, UsageError  # noqa: E402
from pairwright.training.models.checkpoints import (  # noqa: E402
    copy_weights,
    read_weights,
    save_weights,
    trained_parameters,
)
from pairwright.training.models.extended_clip import ReactClip  # noqa: E402
from pairwright.training.models.generative import EncoderDecoder  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.models.trainable_parameters import add_lora, count_parameters, merge_lora, train_only  # noqa: E402  # noqa: E402
from pairwright.training.objectives.contrastive import clip_loss  # noqa: E402
from tests.training import tiny_models  # noqa: E402


def _loss(model: nn.Module) -> Tensor:
    out = model(tiny_models.images(), *tiny_models.texts())
    return clip_loss(out.images, out.texts, out.scale)


@pytest.mark.parametrize(
    ("what", "still"), [("clip", ()), ("clip-locked-text", ("network.text_model.", "network.text_projection."))]
)
def test_a_step_changes_what_the_table_says_and_nothing_else(what: str, still: tuple[str, ...]) -> None:
    model = tiny_models.clip()
    found = train_only(model, what)
    assert found == count_parameters(model)
    changed = tiny_models.step(model, _loss(model))
    assert changed == {name for name, _ in model.named_parameters() if not name.startswith(still or "none")}


def test_what_is_unknown_or_not_in_the_model_is_refused() -> None:
    with pytest.raises(UsageError, match=r"clippy. Did you mean clip\?"):
        train_only(tiny_models.clip(), "clippy")
    with pytest.raises(UsageError, match=r"Clip has no parameter blocks\.\*"):
        train_only(tiny_models.clip(), "react")
    assert train_only(tiny_models.clip(), ("network.logit_scale",)).trained == 1


def test_lora_begins_as_no_change_and_then_trains_its_matrices_alone() -> None:
    model, images, texts = tiny_models.clip(), tiny_models.images(), tiny_models.texts()[0]
    before = model(images, texts)
    add_lora(model)
    after = model(images, texts)
    assert torch.equal(before.images, after.images)
    assert torch.equal(before.texts, after.texts)
    again = train_only(model, "lora")
    assert again == count_parameters(model)
    names = [name for name, one in model.named_parameters() if one.requires_grad]
    assert len(names) == 2 * (2 * tiny_models.LAYERS * 6 + 1)  # A and B of six matrices a layer, and of the patches
    _loss(model).backward()  # type: ignore[no-untyped-call]
    assert {name for name, one in model.named_parameters() if one.grad is not None} == set(names)
    model.zero_grad()
    for name, one in model.named_parameters():
        if ".lora_B." in name:
            torch.nn.init.normal_(one, std=0.1)
    assert tiny_models.step(model, _loss(model)) == set(names)


def test_lora_of_rank_four_adds_a_quarter_of_the_product_of_two_narrow_matrices() -> None:
    model = tiny_models.clip()
    plain = model.network.vision_model.encoder.layers[0].mlp.fc1
    add_lora(model)
    layer = model.network.vision_model.encoder.layers[0].mlp.fc1
    first, second = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert (first.shape, second.shape) == ((4, 24), (48, 4))
    torch.nn.init.normal_(second)
    states = torch.randn(2, 24)
    assert torch.allclose(layer(states), plain(states) + 0.25 * states @ first.T @ second.T, atol=1e-5)


def test_lora_freezes_parameters_outside_the_towers_too() -> None:
    model = ReactClip(tiny_models.clip(), 1)
    add_lora(model)
    assert not any(one.requires_grad for one in model.blocks.parameters())


def test_merged_lora_is_a_plain_model_that_computes_the_same(tmp_path: Path) -> None:
    model, images, texts = tiny_models.clip(), tiny_models.images(), tiny_models.texts()[0]
    names = set(model.state_dict())
    add_lora(model)
    for name, one in model.named_parameters():
        if ".lora_B." in name:
            torch.nn.init.normal_(one, std=0.2)
    before = model(images, texts)
    with pytest.raises(UsageError, match="merge_lora"):
        model.save(tmp_path)
    merge_lora(model)
    after = model(images, texts)
    assert set(model.state_dict()) == names
    assert torch.allclose(before.images, after.images, atol=1e-5)
    assert torch.allclose(before.texts, after.texts, atol=1e-5)
    assert not torch.allclose(after.images, tiny_models.clip()(images, texts).images, atol=1e-3)
    with pytest.raises(UsageError, match="no LoRA"):
        merge_lora(model)


def test_lora_is_refused_twice_and_with_no_rank() -> None:
    model = tiny_models.clip()
    with pytest.raises(UsageError, match=r"LoRA: .*positive"):
        add_lora(model, 0)
    add_lora(model)
    with pytest.raises(UsageError, match="already"):
        add_lora(model)


def test_what_is_trained_can_be_kept_alone_and_put_into_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "trained.safetensors"
    model = ReactClip(tiny_models.clip(), 1)
    train_only(model, "react")
    for one in model.added_weights().values():
        torch.nn.init.normal_(one, std=0.2)
    save_weights(trained_parameters(model), path)
    assert path.stat().st_size < 4 * count_parameters(model).trained + 4096
    again = ReactClip(tiny_models.clip(), 1)
    train_only(again, "react")
    copy_weights(trained_parameters(again), read_weights(path), path)
    for name, one in trained_parameters(model).items():
        assert torch.equal(one, trained_parameters(again)[name])
    images = tiny_models.images()
    assert torch.equal(model.encode_images(images), again.encode_images(images))
    other = ReactClip(tiny_models.clip(), 2)
    train_only(other, "react")
    with pytest.raises(UsageError, match=r"blocks\.1\.\S+ is missing there"):
        copy_weights(trained_parameters(other), read_weights(path), path)
    save_weights(trained_parameters(other), path)
    with pytest.raises(UsageError, match=r"blocks\.1\.\S+ is \(.*\) there and unknown here"):
        copy_weights(trained_parameters(again), read_weights(path), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StorageError, match="cannot be read"):
        copy_weights(trained_parameters(again), read_weights(path), path)


def test_a_saved_student_answers_the_same(tmp_path: Path) -> None:
    model = EncoderDecoder(tiny_models.student(), tiny_models.tokenizer())
    model.save(tmp_path)
    again = open_model(str(tmp_path))
    assert isinstance(again, EncoderDecoder)
    ids = torch.tensor([[4, 5, 6, 2], [4, 2, 0, 0]])
    inputs = {"input_ids": ids, "attention_mask": (ids != 0).long()}
    assert torch.equal(model.answer(inputs, most=5), again.answer(inputs, most=5))
