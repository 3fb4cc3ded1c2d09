"""Evaluation of models that are encoded but not trained: OpenCLIP's own format, SigLIP and SigLIP 2."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the extra `train` is not installed")

from pairwright.cli.main import app  # noqa: E402
from pairwright.datasets.errors import InputError  # noqa: E402
from pairwright.indexes.encoders.clip import ClipEncoder  # noqa: E402
from pairwright.training.evaluation.embedding import Embedder  # noqa: E402
from pairwright.training.evaluation.evaluated_models import identify_model, open_models  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from tests.indexes import tiny_clip  # noqa: E402
from tests.indexes.encoders.test_siglip import write_checkpoint  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP in OpenCLIP's format, a SigLIP, a NaFlex, and an image."""
    folder = tmp_path_factory.mktemp("encoders")
    (folder / "native").mkdir()
    tiny_clip.native_folder(folder / "native", tiny_clip.state())
    write_checkpoint(folder / "siglip", "siglip")
    write_checkpoint(folder / "naflex", "siglip2")
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    Image.fromarray(noise).save(folder / "a.png")
    return folder


@pytest.mark.parametrize(("name", "size"), [("native", 32), ("siglip", 32), ("naflex", 0)])
def test_it_is_evaluated_by_the_encoder(folder: Path, name: str, size: int) -> None:
    """Which is compared with transformers and OpenCLIP in its own tests."""
    named, image = identify_model(str(folder / name)), str(folder / "a.png")
    assert named.kind == "encoder"
    (opened,) = open_models([named], "cpu")
    embedder, encoder = Embedder(opened), ClipEncoder(str(folder / name), device="cpu")
    texts = ["a photo", "a cat " * 40, "a photo"]
    np.testing.assert_allclose(embedder.texts(texts), encoder.encode_texts(texts), atol=1e-5)
    (expected,) = encoder.encode_images([Image.open(image)])
    np.testing.assert_allclose(embedder.images([image, image]), [expected, expected], atol=1e-5)
    assert (embedder.size, embedder.context, embedder.cut) == (size, encoder.context, 1)


def test_training_refuses_a_siglip(folder: Path) -> None:
    with pytest.raises(InputError, match=r"kind siglip, which is not trained.*Pass a CLIP"):
        open_model(str(folder / "siglip"))


def test_the_command_evaluates_it(folder: Path) -> None:
    rows = [{"image": "a.png", "caption": "a cat", "negative": "a dog"}]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call = ["evaluate", "negatives", str(folder / "native"), "--data", str(folder / "rows.jsonl"), "--device", "cpu"]
    done = CliRunner().invoke(app, [*call, "--json"])
    assert done.exit_code == 0, done.output or done.exception
    assert json.loads(done.stdout)["models"][0]["figures"][0]["n"] == 1
