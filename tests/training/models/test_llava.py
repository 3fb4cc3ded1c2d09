"""LLaVA and FocalLens-MLLM: images in place of their tokens, and embeddings."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")

from torch import Tensor, nn  # noqa: E402 - after the skips

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.training.models.anyres import Grid, merge_features  # noqa: E402
from pairwright.training.models.focallens_mllm import FocalLensMllm  # noqa: E402
from pairwright.training.models.llava import IMAGE_TOKEN, Llava, ProjectionSettings, mark_images  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.models.trainable_parameters import train_only  # noqa: E402
from pairwright.training.objectives.contrastive import clip_loss  # noqa: E402
from pairwright.training.objectives.next_token import IGNORE_INDEX  # noqa: E402
from tests.training import tiny_models  # noqa: E402

P = tiny_models.PATCHES


def llava(connection: ProjectionSettings | None = None, kind: str = "llama") -> Llava:
    torch.manual_seed(0)
    language = tiny_models.language(kind=kind)
    return Llava(tiny_models.vision(), language, connection, tokenizer=tiny_models.tokenizer())


def conversation() -> tuple[Tensor, Tensor, Tensor]:
    """Return two texts of different lengths with their marks, mask and targets on the answers."""
    texts = torch.tensor([[1, 4, IMAGE_TOKEN, 5, 8, 2], [1, IMAGE_TOKEN, 9, 2, 0, 0]])
    targets = torch.tensor([[-100, -100, -100, -100, 8, 2], [-100, -100, 9, 2, -100, -100]])
    return texts, texts != 0, targets


def test_image_features_replace_the_image_token_and_have_no_loss() -> None:
    model, (texts, mask, targets) = llava(), conversation()
    images = tiny_models.images(2)
    joined = model.join(texts, mask, images, targets=targets)
    words, seen = model.language.get_input_embeddings()(texts.clamp(min=0)), model.image_tokens(images)
    assert joined.states.shape == (2, 5 + P, model.width)
    assert torch.equal(joined.states[0], torch.cat([words[0, :2], seen[0], words[0, 3:]]))
    assert torch.equal(joined.states[1, : 3 + P], torch.cat([words[1, :1], seen[1], words[1, 2:4]]))
    assert joined.mask.tolist() == [[True] * (5 + P), [True] * (3 + P) + [False] * 2]
    none = [IGNORE_INDEX] * P
    assert joined.targets.tolist() == [[-100, -100, *none, -100, 8, 2], [-100, *none, 9, 2, -100, -100]]


def test_without_targets_every_word_is_one_and_no_place_of_an_image() -> None:
    texts, mask, _ = conversation()
    joined = llava().join(texts, mask, tiny_models.images(2))
    assert sorted(joined.targets[0].tolist()) == sorted([1, 4, 5, 8, 2] + [IGNORE_INDEX] * P)
    assert IMAGE_TOKEN not in joined.targets


@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_a_row_s_logits_do_not_depend_on_its_neighbours_or_its_padding(kind: str) -> None:
    model, (texts, mask, targets) = llava(kind=kind), conversation()
    images = tiny_models.images(2)
    together = model(texts, mask, images, targets)
    alone = model(texts[1:, :4], mask[1:, :4], images[1:], targets[1:, :4])
    assert torch.allclose(together.logits[1, : 3 + P], alone.logits[0], atol=1e-5)
    assert torch.equal(together.targets[1, : 3 + P], alone.targets[0])
    assert together.logits.shape[:2] == together.targets.shape


def test_text_alone_is_read_as_the_language_model_reads_it() -> None:
    model = llava()
    texts = torch.tensor([[1, 4, 5, 6]])
    found = model(texts, texts > 0, tiny_models.images(0))
    assert torch.allclose(found.logits, model.language(input_ids=texts).logits, atol=1e-6)


@pytest.mark.parametrize("layer", [-2, -1])
def test_the_features_are_the_patches_of_the_chosen_layer_through_the_projection(layer: int) -> None:
    images = tiny_models.images()
    model = llava(ProjectionSettings("linear", layer))
    hidden = model.vision(images, output_hidden_states=True).hidden_states[layer][:, 1:]
    assert isinstance(model.projection, nn.Linear)
    expected = hidden @ model.projection.weight.T + model.projection.bias
    assert torch.allclose(model.image_tokens(images), expected, atol=1e-5)


def test_the_two_layer_projection_has_gelu_between() -> None:
    images = tiny_models.images()
    model = llava()
    hidden = model.vision(images, output_hidden_states=True).hidden_states[-2][:, 1:]
    assert isinstance(model.projection, nn.Sequential)
    first, _, second = model.projection
    expected = second(nn.functional.gelu(first(hidden)))
    assert torch.allclose(model.image_tokens(images), expected, atol=1e-6)
    assert [tuple(one.shape) for one in model.projection.parameters()] == [(20, 24), (20,), (20, 20), (20,)]


def test_an_image_in_parts_takes_one_mark_and_the_tokens_of_all_its_parts() -> None:
    model = llava()
    texts = torch.tensor([[1, IMAGE_TOKEN, 4], [1, 5, IMAGE_TOKEN]])
    parts, grids = tiny_models.images(3 + 5), [Grid(1, 2), Grid(2, 2)]
    joined = model.join(texts, texts != 0, parts, grids=grids)
    seen = model.image_tokens(parts)
    assert torch.equal(joined.states[0, 1 : 1 + 3 * P], merge_features(seen[:3], grids[0]))
    assert torch.equal(joined.states[1, 2 : 2 + 5 * P], merge_features(seen[3:], grids[1]))
    assert joined.mask.sum(dim=1).tolist() == [2 + 3 * P, 2 + 5 * P]
    with pytest.raises(UsageError, match=r"8 image parts, .* 6"):
        model.join(texts, texts != 0, parts, grids=[Grid(1, 2), Grid(1, 2)])


def test_marks_and_images_must_be_as_many() -> None:
    texts, mask, _ = conversation()
    with pytest.raises(UsageError, match="3 images for 2 image tokens"):
        llava().join(texts, mask, tiny_models.images(3))
    mask[0, 2] = False
    with pytest.raises(UsageError, match="2 images for 1 image tokens"):
        llava().join(texts, mask, tiny_models.images(2))


def test_a_text_s_marks_become_numbers_outside_the_vocabulary() -> None:
    tokenizer = tiny_models.tokenizer()
    assert mark_images(tokenizer, "<image> what colour") == [IMAGE_TOKEN, 4, 5]
    assert mark_images(tokenizer, "what <image> is <image>") == [4, IMAGE_TOKEN, 6, IMAGE_TOKEN]
    assert mark_images(tokenizer, "red") == [8]


@pytest.mark.parametrize(
    ("stage", "still"), [("llava-align", ("vision.", "language.")), ("llava-instruct", ("vision.",))]
)
def test_the_stages_train_what_the_paper_says(stage: str, still: tuple[str, ...]) -> None:
    model, (texts, mask, targets) = llava(), conversation()
    train_only(model, stage)
    found = model(texts, mask, tiny_models.images(2), targets)
    loss = nn.functional.cross_entropy(found.logits[:, :-1].flatten(0, 1), found.targets[:, 1:].flatten())
    changed = tiny_models.step(model, loss)
    assert changed == {name for name, _ in model.named_parameters() if not name.startswith(still)}


def test_a_vision_tower_that_is_trained_gets_its_gradient() -> None:
    model, (texts, mask, targets) = llava(), conversation()
    train_only(model, ("vision.*",))
    found = model(texts, mask, tiny_models.images(2), targets)
    (slope,) = torch.autograd.grad(found.logits.square().mean(), model.vision.embeddings.patch_embedding.weight)
    assert slope.abs().sum() > 0


def test_answers_follow_the_last_word_whatever_the_padding() -> None:
    """Against the likeliest next token, one by one, from the logits of each row alone."""
    model, (texts, mask, _) = llava(), conversation()
    images = tiny_models.images(2)
    mask[1, 3:] = False
    for one in model.language.parameters():
        if one.dim() == 2:  # enough to make answers differ
            nn.init.normal_(one, std=0.7)
    found = model.answer(texts, mask, images, most=4)
    for row in range(2):
        said, expected = texts[row][mask[row]], []
        for _ in range(found.shape[1]):
            logits = model(said[None], torch.ones_like(said[None]).bool(), images[row : row + 1]).logits
            expected.append(int(logits[0, -1].argmax()))
            said = torch.cat([said, torch.tensor(expected[-1:])])
            if expected[-1] == 2:
                break
        assert found[row, : len(expected)].tolist() == expected


@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_a_saved_model_computes_the_same(kind: str, tmp_path: Path) -> None:
    model, (texts, mask, targets) = llava(ProjectionSettings("linear", -1), kind), conversation()
    model.save(tmp_path)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors"}
    again = open_model(str(tmp_path))
    assert isinstance(again, Llava)
    assert (again.connection, again.pixels) == (model.connection, model.pixels)
    images = tiny_models.images(2)
    assert torch.equal(again(texts, mask, images, targets).logits, model(texts, mask, images, targets).logits)
    if kind == "llama":  # transformers reads any tokenizer of a Qwen as Qwen's own
        assert again.tokenizer is not None
        assert mark_images(again.tokenizer, "<image> red") == [IMAGE_TOKEN, 8]


def test_a_model_begins_with_any_clip_and_any_language_model_by_path(tmp_path: Path) -> None:
    from tests.indexes import tiny_clip

    source = tiny_clip.transformers_folder(tmp_path / "clip")
    tiny_models.language(kind="qwen").save_pretrained(tmp_path / "language")
    tiny_models.tokenizer().save_pretrained(tmp_path / "language")
    model = Llava.begin(str(source), str(tmp_path / "language"))
    assert model.patches == (tiny_clip.SIZE // tiny_clip.PATCH) ** 2
    assert list(model.pixels.mean) == tiny_clip.MEAN
    with pytest.raises(UsageError, match=r"Llava\.begin"):
        Llava.load(str(source))


def mllm() -> FocalLensMllm:
    model = llava()
    torch.manual_seed(1)
    return FocalLensMllm(model, tiny_models.clip())


def test_the_embedding_is_read_at_the_end_mark_behind_each_text() -> None:
    model = mllm()
    images = tiny_models.images(2)
    texts = torch.tensor([[1, IMAGE_TOKEN, 4, 5], [1, IMAGE_TOKEN, 6, 0]])
    rows = model.encode_images(images, texts, texts != 0)
    for row, said in enumerate(([1, IMAGE_TOKEN, 4, 5, 2], [1, IMAGE_TOKEN, 6, 2])):
        one = torch.tensor([said])
        joined = model.llava.join(one, torch.ones_like(one).bool(), images[row : row + 1])
        states = model.llava.language(inputs_embeds=joined.states, output_hidden_states=True).hidden_states[-1]
        expected = nn.functional.normalize(model.head(states[0, -1]), dim=0)
        assert torch.allclose(rows[row], expected, atol=1e-5)


def test_instructions_without_a_mark_get_the_image_behind_the_mark_of_the_beginning() -> None:
    model, images = mllm(), tiny_models.images(2)
    for begin in ([1], []):
        bare = torch.tensor([[*begin, 4, 5], [*begin, 6, 0]])
        marked = torch.tensor([[*begin, IMAGE_TOKEN, 4, 5], [*begin, IMAGE_TOKEN, 6, 0]])
        found, expected = (model.encode_images(images, texts, texts != 0) for texts in (bare, marked))
        assert torch.allclose(found, expected, atol=1e-6)


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
    still = ("llava.vision.", "target.", "llava.language.lm_head.")
    assert changed == {name for name, _ in model.named_parameters() if not name.startswith(still)}
    model.save(tmp_path)
    again = open_model(str(tmp_path))
    assert isinstance(again, FocalLensMllm)
    images = tiny_models.images()
    found, expected = (one.encode_images(images, texts, texts != 0) for one in (again, model))
    assert torch.equal(found, expected)
    assert torch.equal(again.logit_scale, model.logit_scale)


def test_a_language_model_without_an_end_mark_needs_one_named() -> None:
    bare = Llava(tiny_models.vision(), tiny_models.language())
    with pytest.raises(UsageError, match="no end token"):
        FocalLensMllm(bare, tiny_models.clip())
    assert FocalLensMllm(bare, tiny_models.clip(), end=2).end == 2
