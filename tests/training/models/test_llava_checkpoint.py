"""LLaVA checkpoints in transformers' own layout: read, trained, evaluated."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")

from pairwright.datasets.errors import InputError, UsageError  # noqa: E402 - after the skips
from pairwright.training.models.llava import IMAGE_TOKEN, Llava  # noqa: E402
from pairwright.training.models.registry import model_kind, open_model  # noqa: E402
from tests.training import tiny_models  # noqa: E402

P = tiny_models.PATCHES


def folder(path: Path, **changes: object) -> str:
    """Write a checkpoint as llava-hf's look, with a changed config where one is wanted."""
    tiny_models.llava_checkpoint().save_pretrained(path)
    tiny_models.tokenizer().save_pretrained(path)
    images = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]}
    (path / "processor_config.json").write_text(json.dumps({"image_processor": images}))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | changes))
    return str(path)


def test_a_checkpoint_of_transformers_predicts_the_same_words_here(tmp_path: Path) -> None:
    name = folder(tmp_path)
    model = open_model(name)
    assert model_kind(name) == "llava"
    assert isinstance(model, Llava)
    assert list(model.pixels.mean) == [0.5, 0.5, 0.5]
    assert not [one for one, weights in model.named_parameters() if weights.is_meta]
    images, texts = tiny_models.images(1), torch.tensor([[1, 4, IMAGE_TOKEN, 5, 8, 2]])
    theirs = tiny_models.llava_checkpoint()
    spread = torch.tensor([[1, 4, *[3] * P, 5, 8, 2]])
    with torch.no_grad():
        expected = theirs(input_ids=spread, pixel_values=images).logits
        found = model(texts, texts != 0, images).logits
    assert torch.allclose(found, expected, atol=1e-5)


def test_it_is_trained_saved_and_asked_like_any_other(tmp_path: Path) -> None:
    from pairwright.filters.metrics.answer_judging import ImageQuestion
    from pairwright.training.evaluation.evaluated_models import identify_model, open_models
    from pairwright.training.evaluation.llava_answers import generate_answers
    from tests.training.training_cases import run, shards

    data, model = shards(tmp_path / "data", count=12), folder(tmp_path / "llava")
    report = run("llava-instruct", data, model, tmp_path / "run")
    assert report.steps == 2
    trained = Llava.load(report.model)
    before = Llava.load(model)
    assert not torch.equal(trained.projection[0].weight, before.projection[0].weight)  # type: ignore[index]
    assert all(
        torch.equal(one, other)
        for one, other in zip(trained.vision.parameters(), before.vision.parameters(), strict=True)
    )
    picture = tmp_path / "p.png"
    from PIL import Image

    Image.new("RGB", (40, 24), "red").save(picture)
    asked = [ImageQuestion("a", str(picture), "what colour is it ?", "red", "")]
    for name in (model, str(tmp_path / "run")):
        (subject,) = open_models([identify_model(name)], None, "cpu")
        assert len(generate_answers(subject, asked, longest=3)) == 1


def test_what_is_built_otherwise_is_refused_before_its_weights_are_read(tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({"vision_feature_select_strategy": "full"}, "features full, expected default"),
        ({"vision_feature_layer": [-2, -1]}, "layers list, expected int"),
        ({"projector_hidden_act": "relu"}, "a projection with relu"),
        ({"multimodal_projector_bias": False}, "whose bias is False, expected True"),
    )
    for number, (changes, said) in enumerate(cases):
        name = folder(tmp_path / str(number), **changes)
        (tmp_path / str(number) / "model.safetensors").unlink()
        with pytest.raises(InputError, match=said):
            Llava.load(name)


def test_a_llava_and_a_language_model_are_one_too_many(tmp_path: Path) -> None:
    from tests.training.training_cases import run, shards

    with pytest.raises(UsageError, match=r"remove method.language"):
        run("llava-align", shards(tmp_path, count=4), folder(tmp_path / "llava"), tmp_path / "o", "method.language=z")
