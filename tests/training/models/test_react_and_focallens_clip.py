"""REACT's gated blocks and FocalLens-CLIP's instruction token."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")

from torch import Tensor  # noqa: E402 - after the skips
from transformers import CLIPConfig, CLIPModel  # noqa: E402

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.training.models.clip import Clip, vision_states  # noqa: E402
from pairwright.training.models.extended_clip import (  # noqa: E402
    FocalLensClip,
    GatedBlock,
    ReactClip,
)
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.models.trainable_parameters import ParameterCounts, train_only  # noqa: E402
from pairwright.training.objectives.contrastive import clip_loss  # noqa: E402
from tests.training import tiny_models  # noqa: E402


def test_the_tower_s_states_are_those_of_transformers() -> None:
    tower, images = tiny_models.vision(), tiny_models.images()
    expected = tower(images, output_hidden_states=True).hidden_states
    assert torch.equal(vision_states(tower, images), expected[-1])


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_with_gates_shut_the_first_forward_pass_is_the_frozen_model_s_to_the_last_bit(blocks: int) -> None:
    images, (texts, mask) = tiny_models.images(), tiny_models.texts()
    before = tiny_models.clip()(images, texts, mask, local=True)
    after = ReactClip(tiny_models.clip(), blocks)(images, texts, mask, local=True)
    for one, other in zip(_tensors(before), _tensors(after), strict=True):
        assert torch.equal(one, other)


def test_blocks_are_before_the_last_layers_and_open_gates_change_images_but_no_text() -> None:
    model, images, (texts, _) = ReactClip(tiny_models.clip(), 2), tiny_models.images(), tiny_models.texts()
    assert list(model.blocks) == ["1", "2"]
    before = model(images, texts)
    block = model.blocks["1"]
    assert isinstance(block, GatedBlock)
    block.gate_dense.data.fill_(0.5)
    after = model(images, texts)
    assert not torch.allclose(before.images, after.images, atol=1e-4)
    assert torch.equal(before.texts, after.texts)


def test_a_block_adds_attention_and_then_its_dense_layer_each_through_its_gate() -> None:
    """Against the block's definition, written out."""
    config = tiny_models.vision().config
    block, states = GatedBlock(config), torch.randn(2, 5, config.hidden_size)
    block.gate_attention.data.fill_(0.3)
    block.gate_dense.data.fill_(-0.7)
    normal = block.norm1(states)
    q, k, v = (
        (normal @ block.attention.in_proj_weight.T + block.attention.in_proj_bias)
        .unflatten(2, (3, config.num_attention_heads, -1))
        .permute(2, 0, 3, 1, 4)
    )
    shares = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(dim=-1)
    attended = block.attention.out_proj((shares @ v).transpose(1, 2).flatten(2))
    middle = states + torch.tanh(torch.tensor(0.3)) * attended
    first, _, last = block.dense
    hidden = first(block.norm2(middle))
    expected = middle + torch.tanh(torch.tensor(-0.7)) * last(hidden * torch.sigmoid(1.702 * hidden))
    assert torch.allclose(block(states), expected, atol=1e-5)


def test_react_trains_its_blocks_alone_and_a_shut_gate_is_what_opens_first() -> None:
    model = ReactClip(tiny_models.clip(), 2)
    share = train_only(model, "react")
    assert share.trained == sum(one.numel() for one in model.added_weights().values())
    assert share.trained + share.frozen == sum(one.numel() for one in model.parameters())
    out = model(tiny_models.images(), tiny_models.texts()[0])
    clip_loss(out.images, out.texts, out.scale).backward()  # type: ignore[no-untyped-call]
    moved = {name for name, one in model.named_parameters() if one.grad is not None and one.grad.abs().sum() > 0}
    assert moved == {f"blocks.{number}.gate_{part}" for number in (1, 2) for part in ("attention", "dense")}
    model.zero_grad()
    for block in model.blocks.values():
        assert isinstance(block, GatedBlock)
        block.gate_attention.data.fill_(0.1)
        block.gate_dense.data.fill_(0.1)
    out = model(tiny_models.images(), tiny_models.texts()[0])
    changed = tiny_models.step(model, clip_loss(out.images, out.texts, out.scale))
    assert changed == set(model.added_weights())


def test_as_many_blocks_as_there_are_layers_at_most() -> None:
    for blocks in (0, 4):
        with pytest.raises(UsageError, match=f"{blocks} gated blocks for an image tower of 3 layers"):
            ReactClip(tiny_models.clip(), blocks)


def test_six_blocks_in_vit_b_32_are_the_paper_s_42_and_a_half_million() -> None:
    """003, table 2.6; CLIP itself has 151.3 million there."""
    with torch.device("meta"):
        model = ReactClip(Clip(CLIPModel(CLIPConfig())))
    assert train_only(model, "react") == ParameterCounts(trained=42_527_244, frozen=151_277_313)


def test_an_instruction_changes_the_image_s_row_and_its_absence_leaves_clip_s() -> None:
    model, images, (texts, _) = FocalLensClip(tiny_models.clip()), tiny_models.images(), tiny_models.texts()
    plain = tiny_models.clip().encode_images(images)
    assert torch.equal(model.encode_images(images), plain)
    rows = model.encode_images(images[:1].expand(3, -1, -1, -1), texts)
    assert torch.allclose(rows.norm(dim=1), torch.ones(3), atol=1e-6)
    assert (torch.cdist(rows, torch.cat([rows, plain[:1]])) > 1e-3).sum() == 9  # all but each with itself


def test_the_instruction_is_one_token_behind_the_patches_through_the_copy_of_the_text_tower() -> None:
    model, images, (texts, _) = FocalLensClip(tiny_models.clip()), tiny_models.images(), tiny_models.texts()
    states = model.image_states(images, texts)
    assert states.shape[1] == 1 + tiny_models.PATCHES + 1
    tower = model.instructions
    embedded = tower["text_projection"](tower["text_model"](input_ids=texts).pooler_output)
    expected = vision_states(model.network.vision_model, images, extra=model.condition(embedded)[:, None])
    assert torch.equal(states, expected)
    assert torch.equal(torch.nn.functional.normalize(embedded, dim=-1), model.encode_texts(texts))
    local = model(images, texts, local=True, instructions=texts)
    assert local.patches.shape == (3, tiny_models.PATCHES, model.dim)


def test_focallens_trains_both_towers_of_the_image_and_never_the_target_s() -> None:
    model = FocalLensClip(tiny_models.clip())
    train_only(model, "focallens-clip")
    images, (texts, _) = tiny_models.images(), tiny_models.texts()
    out = model(images, texts.roll(1, dims=0), instructions=texts)
    changed = tiny_models.step(model, clip_loss(out.images, out.texts, out.scale))
    frozen = {name for name, _ in model.named_parameters()} - changed
    assert frozen == {name for name, _ in model.named_parameters() if name.startswith("network.text_")}
    target = tiny_models.clip()
    assert torch.equal(model.encode_texts(texts), target.encode_texts(texts))


@pytest.mark.parametrize("kind", ["react", "focallens"])
def test_what_was_saved_computes_the_same(kind: str, tmp_path: Path) -> None:
    from tests.indexes import tiny_clip

    base = open_model(str(tiny_clip.transformers_folder(tmp_path / "base")))
    model = ReactClip(base, 1) if kind == "react" else FocalLensClip(base)  # type: ignore[arg-type]
    for one in model.added_weights().values():
        torch.nn.init.normal_(one, std=0.2)
    model.save(tmp_path / "saved")
    again = open_model(str(tmp_path / "saved"))
    assert type(again) is type(model)
    images = torch.randn(2, 3, tiny_clip.SIZE, tiny_clip.SIZE)
    texts = torch.tensor([model.tokenizer("a cat").input_ids] * 2)  # type: ignore[misc]
    more = {"instructions": texts} if kind == "focallens" else {}
    for one, other in zip(_tensors(model(images, texts, **more)), _tensors(again(images, texts, **more)), strict=True):
        assert torch.equal(one, other)


def test_a_plain_checkpoint_is_refused_as_a_gated_model(tmp_path: Path) -> None:
    tiny_models.clip().save(tmp_path)
    for kind in (ReactClip, FocalLensClip):
        with pytest.raises(UsageError, match=r"is not a saved .*"):
            kind.load(str(tmp_path))


def _tensors(out: object) -> list[Tensor]:
    return [one for name in out.__slots__ if isinstance(one := getattr(out, name), Tensor)]  # type: ignore[attr-defined]
