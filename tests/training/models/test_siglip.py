"""SigLIP for training: embeddings of transformers, recipes, checkpoints that other tools read."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="the trainer needs torch")

import transformers  # noqa: E402

from pairwright.datasets.errors import InputError, UsageError  # noqa: E402
from pairwright.indexes.encoders.clip import ClipEncoder  # noqa: E402
from pairwright.training.evaluation.embedding import Embedder  # noqa: E402
from pairwright.training.evaluation.evaluated_models import identify_model, open_models  # noqa: E402
from pairwright.training.loading.tokenization import load_tokenizer  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.models.siglip import Siglip  # noqa: E402
from tests.training.training_cases import clip, run, shards  # noqa: E402

CONTEXT, SIZE, DIM = 40, 32, 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards, a CLIP, and a SigLIP with the tokenizer of the CLIP."""
    folder = tmp_path_factory.mktemp("siglip")
    shards(folder / "shards")
    words = load_tokenizer(str(Path(clip(folder)).parent / "words"))
    shared = {"hidden_size": DIM, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = shared | {"vocab_size": len(words), "max_position_embeddings": CONTEXT, "projection_size": DIM}
    text |= {"bos_token_id": words.bos_token_id, "eos_token_id": words.eos_token_id}
    config = transformers.SiglipConfig(text_config=text, vision_config=shared | {"image_size": SIZE, "patch_size": 8})
    torch.manual_seed(0)
    network = transformers.SiglipModel(config)
    with torch.no_grad():
        network.logit_scale.fill_(2.0)
        network.logit_bias.fill_(-3.0)
        for name, parameter in network.named_parameters():
            if parameter.dim() > 1 and "logit" not in name:
                parameter.copy_(torch.randn(parameter.shape) * 0.2)
    Siglip(network, words).save(folder / "siglip")
    return folder


def data(folder: Path) -> str:
    return str(folder / "shards" / "{00000..00002}.tar")


def test_evaluation_embeds_as_the_encoder_does(folder: Path, tmp_path: Path) -> None:
    """Both against each other: the encoder is compared with transformers in its own tests."""
    noise = np.random.default_rng(0).integers(0, 256, (20, 50, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    named = identify_model(str(folder / "siglip"))
    assert named.kind == "siglip"
    (opened,) = open_models([named], "cpu")
    embedder, encoder = Embedder(opened), ClipEncoder(str(folder / "siglip"), device="cpu")
    texts = ["a red circle", "blue", "a green star is above a red square"]
    np.testing.assert_allclose(embedder.texts(texts), encoder.encode_texts(texts), atol=1e-4)
    pictures = [str(tmp_path / "a.png")]
    np.testing.assert_allclose(embedder.images(pictures), encoder.encode_images([Image.open(pictures[0])]), atol=1e-4)


def test_naflex_is_refused_with_what_to_use(folder: Path, tmp_path: Path) -> None:
    transformers.Siglip2Config().save_pretrained(tmp_path / "naflex")
    refusal = r"variable resolution \(NaFlex\).*siglip2-base-patch16-224.*filter. and .validate. read NaFlex"
    with pytest.raises(InputError, match=refusal):
        open_model(str(tmp_path / "naflex"))
    with pytest.raises(InputError, match=refusal):
        run("siglip", data(folder), str(tmp_path / "naflex"), tmp_path / "run")


@pytest.mark.parametrize("recipe", ["siglip", "siglip-hn"])
def test_a_recipe_runs_and_leaves_a_siglip_that_transformers_reads(folder: Path, tmp_path: Path, recipe: str) -> None:
    report = run(recipe, data(folder), str(folder / "siglip"), tmp_path / "run")
    assert report.steps == 2
    assert type(open_model(report.model)) is Siglip
    before = transformers.SiglipModel.from_pretrained(folder / "siglip")
    after = transformers.SiglipModel.from_pretrained(report.model)
    assert not torch.equal(before.logit_bias, after.logit_bias)
    assert transformers.AutoImageProcessor.from_pretrained(report.model).size == {"height": SIZE, "width": SIZE}


def test_a_locked_text_tower_stays_as_it_was(folder: Path, tmp_path: Path) -> None:
    report = run("siglip", data(folder), str(folder / "siglip"), tmp_path / "run", "method.locked_text=true")
    before = transformers.SiglipModel.from_pretrained(folder / "siglip").state_dict()
    after = transformers.SiglipModel.from_pretrained(report.model).state_dict()
    changed = {name.split(".")[0] for name, tensor in after.items() if not torch.equal(before[name], tensor)}
    assert changed == {"vision_model", "logit_scale", "logit_bias"}


def test_each_recipe_refuses_the_model_of_the_other(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is of kind clip; this recipe requires siglip"):
        run("siglip", data(folder), str(folder / "clip"), tmp_path / "one")
    with pytest.raises(UsageError, match="is of kind siglip; this recipe requires clip"):
        run("clip", data(folder), str(folder / "siglip"), tmp_path / "two")
