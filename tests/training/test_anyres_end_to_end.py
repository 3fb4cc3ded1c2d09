"""AnyRes end to end: training and evaluation use the same tiles."""

import io
import random
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer needs transformers")

import numpy as np  # noqa: E402 - after the skips
from PIL import Image  # noqa: E402

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.training.evaluation.embedding import Embedder, image_batches  # noqa: E402
from pairwright.training.evaluation.evaluated_models import identify_model, open_models  # noqa: E402
from pairwright.training.loading.image_transforms import ImageOptions, load_pixels, load_tiles  # noqa: E402
from pairwright.training.models.anyres import Grid, split_image  # noqa: E402
from pairwright.training.models.focallens_mllm import FocalLensMllm  # noqa: E402
from tests.training.training_cases import clip, llava, run, shards  # noqa: E402


def picture(width: int, height: int) -> bytes:
    shown = np.random.default_rng(0).integers(0, 256, (height // 4, width // 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(shown).resize((width, height)).save(out, "png")
    return out.getvalue()


@pytest.mark.parametrize(
    ("width", "height", "grid"), [(64, 32, Grid(1, 2)), (32, 96, Grid(3, 1)), (64, 60, Grid(2, 2))]
)
def test_bytes_in_tiles_are_the_cut_picture_but_for_rounding(width: int, height: int, grid: Grid) -> None:
    data, options = picture(width, height), ImageOptions(32, tiles=True)
    found, chosen = load_tiles(data, options, "here")
    assert chosen == grid
    assert found.shape == (1 + grid.tiles, 3, 32, 32)
    plain = torch.from_numpy(np.asarray(Image.open(io.BytesIO(data))).transpose(2, 0, 1).copy()).float() / 255
    middle, spread = (torch.tensor(of).view(3, 1, 1) for of in (options.mean, options.std))
    expected = split_image((plain - middle) / spread, 32, grid)
    ours = (torch.from_numpy(found).float() / 255 - middle) / spread
    inside = (expected * spread + middle).clamp(0, 1)  # bicubic weights reach beyond what a byte holds
    assert torch.allclose(ours * spread + middle, inside, atol=0.6 / 255)


def test_an_image_of_the_tower_s_size_is_its_own_first_part() -> None:
    data, options = picture(32, 32), ImageOptions(32, tiles=True)
    found, _ = load_tiles(data, options, "here")
    assert np.abs(found[0].astype(int) - load_pixels(data, options, random.Random(0), "here")).max() <= 1


def test_evaluation_shows_the_parts_that_training_shows(tmp_path: Path) -> None:
    names = [tmp_path / "wide.png", tmp_path / "high.png"]
    for name, size in zip(names, ((64, 32), (32, 96)), strict=True):
        name.write_bytes(picture(*size))
    ((parts, grids),) = image_batches(
        [str(name) for name in names], ImageOptions(32, tiles=True), 4, torch.device("cpu")
    )
    assert grids == [Grid(1, 2), Grid(3, 1)]
    assert len(parts) == 3 + 4
    options = ImageOptions(32, tiles=True)
    shown = torch.from_numpy(load_tiles(names[1].read_bytes(), options, "here")[0]).float() / 255
    middle, spread = (torch.tensor(of).view(3, 1, 1) for of in (options.mean, options.std))
    assert torch.allclose(parts[3:], (shown - middle) / spread, atol=1e-5)


def test_a_model_trained_in_tiles_keeps_them_and_embeds_by_them(tmp_path: Path) -> None:
    data, seeing = shards(tmp_path / "data", count=12), clip(tmp_path, count=12)
    model = llava(tmp_path / "llava")
    lens = run("focallens-mllm", data, model, tmp_path / "lens", f"method.target={seeing}", "method.tiles=true")
    assert lens.steps == 2
    (subject,) = open_models([identify_model(lens.model)], "cpu")
    name = tmp_path / "wide.png"
    name.write_bytes(picture(64, 32))
    assert isinstance(subject.model, FocalLensMllm)
    assert subject.model.pixels.tiles
    row = Embedder(subject).images([str(name)], "what is it ?")
    subject.model.pixels = replace(subject.model.pixels, tiles=False)
    assert not np.allclose(row, Embedder(subject).images([str(name)], "what is it ?"), atol=1e-4)


def test_random_crops_of_tiles_are_refused_with_the_setting_that_helps(tmp_path: Path) -> None:
    data, seeing = shards(tmp_path / "data", count=4), clip(tmp_path, count=4)
    changes = (f"method.target={seeing}", "method.tiles=true", "batches.crop=0.9")
    with pytest.raises(UsageError, match=r"set batches.crop to 1"):
        run("focallens-mllm", data, llava(tmp_path / "llava"), tmp_path / "run", *changes)
