"""CLIP: embeddings against transformers', local features, errors, saved models."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")

from pairwright.datasets.errors import InputError, MissingResourceError  # noqa: E402 - after the skips
from pairwright.training.models.clip import Clip, ClipOutput  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from tests.indexes import tiny_clip  # noqa: E402
from tests.training import tiny_models  # noqa: E402


def test_its_rows_are_those_of_transformers() -> None:
    model = tiny_models.clip()
    images, (texts, mask) = tiny_models.images(), tiny_models.texts()
    found: ClipOutput = model(images, texts, mask)
    expected = model.network(input_ids=texts, pixel_values=images)
    assert torch.allclose(found.images, expected.image_embeds, atol=1e-6)
    assert torch.allclose(found.texts, expected.text_embeds, atol=1e-6)
    assert torch.allclose(found.scale * found.images @ found.texts.T, expected.logits_per_image, atol=1e-5)
    assert torch.equal(model.encode_images(images), found.images)
    assert torch.equal(model.encode_texts(texts), found.texts)
    assert found.patches is found.tokens is found.token_mask is None


def test_its_rows_have_unit_length_in_half_precision_too() -> None:
    model = tiny_models.clip().to(torch.bfloat16)
    found = model(tiny_models.images(), *tiny_models.texts(), local=True)
    assert found.patches.dtype == found.tokens.dtype == torch.float32
    for rows in (found.images, found.texts):
        assert rows.dtype == torch.float32
        assert torch.allclose(rows.norm(dim=-1), torch.ones(rows.shape[:-1]), atol=1e-5)


def test_padding_enters_no_row() -> None:
    model, (texts, mask) = tiny_models.clip(), tiny_models.texts()
    alone = torch.cat([model.encode_texts(row[said][None]) for row, said in zip(texts, mask, strict=True)])
    assert torch.allclose(model.encode_texts(texts), alone, atol=1e-6)


def test_the_end_mark_s_token_feature_is_the_text_s_own_row() -> None:
    model, (texts, mask) = tiny_models.clip(), tiny_models.texts()
    found = model(tiny_models.images(), texts, mask, local=True)
    assert found.tokens.shape == (3, texts.shape[1], model.dim)
    for row, end in enumerate(mask.sum(dim=1) - 1):
        assert torch.allclose(torch.nn.functional.normalize(found.tokens[row, end], dim=0), found.texts[row], atol=1e-6)


def test_patches_lie_row_by_row_in_the_shared_space() -> None:
    """With the layers' outputs muted, a patch's feature is a function of its own pixels and place alone."""
    model = tiny_models.clip()
    for layer in model.network.vision_model.encoder.layers:
        for last in (layer.self_attn.out_proj, layer.mlp.fc2):
            torch.nn.init.zeros_(last.weight)
            torch.nn.init.zeros_(last.bias)
    images = tiny_models.images(1)
    changed = images.clone()
    changed[..., : tiny_models.PATCH, tiny_models.PATCH :] += 1  # the patch at the top right: the second
    texts = tiny_models.texts()[0]
    before, after = (model(one, texts, local=True).patches for one in (images, changed))
    assert before.shape == (1, tiny_models.PATCHES, model.dim)
    same = [torch.equal(before[0, number], after[0, number]) for number in range(tiny_models.PATCHES)]
    assert same == [True, False, True, True]


@pytest.mark.parametrize("old", [False, True], ids=["end mark known", "old config with end mark 2"])
def test_words_and_the_end_mark_count_as_tokens_and_nothing_else(*, old: bool) -> None:
    model, (texts, mask) = tiny_models.clip(), tiny_models.texts()
    if old:
        model.network.text_model.eos_token_id = 2
    expected = mask.clone()
    expected[:, 0] = False
    assert torch.equal(model.token_mask(texts), expected)
    assert torch.equal(model.token_mask(texts, mask), expected)
    nothing = torch.zeros_like(mask)
    assert not model.token_mask(texts, nothing).any()


def test_the_scale_is_held_between_one_and_a_hundred_without_losing_its_gradient() -> None:
    model = tiny_models.clip()
    for start, held in ((9.0, 100.0), (-3.0, 1.0), (2.0, 7.389056)):
        model.network.logit_scale.data.fill_(start)
        model.limit_scale()
        assert model.scale.item() == pytest.approx(held, rel=1e-5)
        (slope,) = torch.autograd.grad(model.scale, model.network.logit_scale)
        assert slope.item() == pytest.approx(held, rel=1e-5)


def test_a_saved_model_is_the_same_again_and_a_checkpoint_for_others(tmp_path: Path) -> None:
    from transformers import CLIPModel

    from pairwright.indexes.encoders.clip import ClipEncoder

    source = tiny_clip.transformers_folder(tmp_path / "source")
    model = Clip.load(str(source))
    assert list(model.pixels.mean) == tiny_clip.MEAN
    model.network.logit_scale.data.fill_(1.5)
    model.save(tmp_path / "saved")
    again = open_model(str(tmp_path / "saved"))
    assert type(again) is Clip
    assert again.pixels == model.pixels
    for name, one in model.state_dict().items():
        assert torch.equal(one, again.state_dict()[name]), name
    assert again.tokenizer is not None
    assert again.tokenizer("a cat").input_ids == model.tokenizer("a cat").input_ids  # type: ignore[misc]
    assert CLIPModel.from_pretrained(tmp_path / "saved").logit_scale.item() == 1.5
    assert not list((tmp_path / "saved").glob("*.bin"))
    rows = ClipEncoder(str(tmp_path / "saved")).encode_texts(["a cat"])
    ids = torch.tensor([again.tokenizer("a cat").input_ids])
    assert torch.allclose(torch.from_numpy(rows), again.encode_texts(ids), atol=1e-6)


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    model, (texts, _) = tiny_models.clip(), tiny_models.texts()
    with pytest.raises(ValueError, match=r"image size \(32\*32\) doesn't match model \(16\*16\)"):
        model.encode_images(torch.zeros(1, 3, 32, 32))
    with pytest.raises(ValueError, match=r"12 and max_position_embeddings: 10"):
        model(tiny_models.images(), torch.cat([texts, texts], dim=1))


def test_checkpoints_that_are_missing_damaged_or_of_another_kind_have_different_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingResourceError, match=r"checkpoint .*nowhere"):
        Clip.load(str(tmp_path / "nowhere"))
    source = tiny_clip.transformers_folder(tmp_path / "torn")
    (source / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"checkpoint .*torn"):
        Clip.load(str(source))
    tiny_models.language().save_pretrained(tmp_path / "language")
    with pytest.raises(InputError, match=r"checkpoint of CLIPModel|of this kind"):
        Clip.load(str(tmp_path / "language"))
