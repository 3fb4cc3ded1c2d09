"""Builds from images without captions, which a model captions first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pairwright.datasets.errors import InputError
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel
from tests.cli.generate.test_annotations import call

COLOURS = ("red", "green", "black", "white", "purple")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that looks at the colours of the images that it is sent."""
    with serve_in_thread(ServerApp(ServerScript(), answer=PlausibleModel())) as opened:
        yield opened


def draw(folder: Path, colour: str) -> None:
    picture = Image.new("RGB", (90, 60), "blue")
    picture.paste(Image.new("RGB", (40, 30), colour), (25, 15))
    picture.save(folder / f"{colour}.png")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Path:
    """Four photos without text and one with a caption, and the config of a build of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for colour in COLOURS:
        draw(tmp_path / "photos", colour)
    (tmp_path / "photos" / "purple.txt").write_text("A purple kite in the sky.")
    settings = {
        "name": "photos",
        "input": {"path": "photos"},
        "llm": {"model": "m", "base_url": server.url, "price": "0/0"},
        "captions": {"forms": ["short"], "max_hallucination": 0.5},
        "negatives": {"types": ["replace-attribute"]},
        "workers": 1,
    }
    path = tmp_path / "photos.yaml"
    path.write_text(json.dumps(settings))
    return path


def build(config: Path, *more: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(call("build", config, "--no-prefect", "--json", *more))
    return result


def captions(root: str) -> dict[str, str]:
    pairs = (pair for path in sorted(Path(root).glob("pairs/*.parquet")) for pair in PAIRS.read(path))
    return {Path(pair.image).stem: pair.caption for pair in pairs}


def test_images_without_a_caption_get_one_and_the_others_keep_theirs(config: Path, server: Server) -> None:
    before = server.stats()["requests"]
    result = build(config)
    assert server.stats()["requests"] - before == 4
    assert captions(result["out"]) == {
        **{colour: f"A {colour} block in front of a blue wall." for colour in COLOURS[:4]},
        "purple": "A purple kite in the sky.",
    }
    assert result["stages"]["captions"] | {"seconds": 0} == {
        "unit": "attempt", "candidates": 4, "kept": 4, "rejected": {}, "seconds": 0,
    }  # fmt: skip
    assert result["stages"]["pairs"]["kept"] == 5
    assert result["stages"]["negatives"]["kept"] >= 4
    assert list(ANNOTATIONS.read(Path(result["out"]) / "rejected/captions-00000.parquet")) == []
    first = Path(result["shards"][0]).read_bytes()
    assert Path(build(config, "--full")["shards"][0]).read_bytes() == first
    assert server.stats()["requests"] - before == 4


def test_an_increment_captions_new_images(config: Path, server: Server) -> None:
    build(config)
    before = server.stats()["requests"]
    draw(Path("photos"), "yellow")
    result = build(config, "--incremental")
    assert server.stats()["requests"] - before == 1
    assert captions(result["out"])["yellow"] == "A yellow block in front of a blue wall."
    assert len(captions(result["out"])) == 6


def test_a_plan_counts_the_captions(config: Path) -> None:
    plan = json.loads(call("plan", config, "--json"))
    assert plan["work"]["stages"][:2] == ["captions", "pairs"]
    assert plan["work"]["pairs"] == 5
    [captions] = [each for each in plan["stages"] if each["stage"] == "captions"]
    assert captions["rows"] == 4
    assert captions["image_tokens"]["value"] > 0


def test_without_the_section_a_missing_caption_stops_the_build_and_names_the_section(config: Path) -> None:
    settings = json.loads(config.read_text())
    del settings["captions"]
    config.write_text(json.dumps(settings))
    with pytest.raises(InputError, match=r"missing_caption.*`captions` in a build"):
        build(config)


@pytest.mark.usefixtures("config")
def test_init_finds_photos_without_text_and_its_config_builds(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = call("init", "--input", "photos", "--template", "negatives", "--out", "own.yaml")
    assert "4 of 5 images without a caption" in printed
    assert "# llm:" not in Path("own.yaml").read_text()  # uncommented, it would be a duplicate of the section
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert build(Path("own.yaml"), "--out", "own", "--workers", "1")["stages"]["pairs"]["kept"] == 5
