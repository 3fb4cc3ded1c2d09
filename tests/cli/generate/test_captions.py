"""``pairwright generate captions``: from a folder of photos to pairs that other verbs read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel
from tests.cli.generate.test_annotations import call


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that looks at the colours of the images that it is sent."""
    with serve_in_thread(ServerApp(ServerScript(), answer=PlausibleModel())) as opened:
        yield opened


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three photos without any text, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = Path("photos")
    folder.mkdir()
    for name, (wall, block) in {"a": ("blue", "red"), "b": ("white", "black"), "c": ("yellow", "green")}.items():
        picture = Image.new("RGB", (120, 90), wall)
        picture.paste(Image.new("RGB", (60, 40), block), (30, 25))
        picture.save(folder / f"{name}.png")
    return folder


def rows_of(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def asking(server: Server, *more: str) -> tuple[str, ...]:
    return ("generate", "captions", "photos", "--model", "m", "--base-url", server.url, "--price", "0/0", *more)


def test_photos_without_text_become_pairs_that_every_verb_reads(photos: Path, server: Server) -> None:
    result = json.loads(call(*asking(server, "--out", "captions.jsonl", "--json")))
    assert result["captions"] == 3
    assert result["types"] == {"short-caption": {"made": 3, "kept": 3, "rejected": {}}}
    rows = rows_of("captions.jsonl")
    assert [row["caption"] for row in rows] == [
        "A red block in front of a blue wall.",
        "A black block in front of a white wall.",
        "A green block in front of a yellow wall.",
    ]  # the model saw the images
    assert rows[0]["meta"]["form"] == "short"
    [batch] = read_pairs(ReadOptions("captions.jsonl"))
    assert [pair.key for pair in batch.pairs] == [row["key"] for row in rows]
    assert batch.pairs[0].image == str(photos.absolute() / "a.png")
    negatives = json.loads(call("generate", "negatives", "captions.jsonl", "--out", "negatives.jsonl", "--json"))
    assert negatives["types"]["replace-attribute"]["kept"]


def test_several_captions_of_each_form_are_one_request_and_each_others_siblings(photos: Path, server: Server) -> None:
    more = ("--forms", "short,long,tags", "--per-image", "2", "--out", "captions.jsonl", "--json")
    result = json.loads(call(*asking(server, *more)))
    assert result["llm"]["requests"] == len(list(photos.iterdir()))
    assert {kind: counts["kept"] for kind, counts in result["types"].items()} == {
        "short-caption": 6, "long-caption": 6, "tags": 6,
    }  # fmt: skip
    first = rows_of("captions.jsonl")[0]
    assert len(first["captions"]) == 3
    assert first["caption"] not in first["captions"]


def test_known_captions_are_compared_and_not_shown(photos: Path, server: Server) -> None:
    (photos / "a.txt").write_text("A red block on a blue sky.")
    printed = call(*asking(server, "--forms", "short", "--out", "captions.jsonl"))
    assert "1 text compared with captions and boxes: 1 of 2 things (50%) have no support there." in printed
    assert rows_of("captions.jsonl")[0]["captions"] == ["A red block on a blue sky."]
    assert rows_of("captions.rejected.jsonl") == []
    limited = ("--forms", "short", "--max-hallucination", "0.2", "--out", "strict.jsonl", "--json")
    assert json.loads(call(*asking(server, *limited)))["types"]["short-caption"]["rejected"] == {"unsupported": 1}
    [rejected] = rows_of("strict.rejected.jsonl")
    assert (rejected["reason"], rejected["form"]) == ("unsupported", "short")


def test_an_estimate_names_the_tokens_of_images(photos: Path) -> None:
    printed = call("generate", "captions", "photos", "--model", "gpt-4o-mini", "--dry-run", "--out", "c.jsonl")
    assert "Images: 26,775 of the tokens in, $0.004" in printed
    low = ("--image-detail", "low", "--dry-run", "--out", "c.jsonl", "--json")
    plan = json.loads(call("generate", "captions", "photos", "--model", "gpt-4o-mini", *low))["plan"][0]
    assert plan["image_tokens"]["value"] == pytest.approx(3 * 2833, rel=0.06)


def test_web_addresses_are_sent_only_with_the_option(photos: Path, server: Server) -> None:
    Path("urls.jsonl").write_text('{"id": "1", "url": "https://example.org/a.jpg"}\n')
    command = ("generate", "captions", "urls.jsonl", "--model", "m", "--base-url", server.url, "--price", "0/0")
    assert "image_url" in call(*command, "--out", "captions.jsonl")
    assert rows_of("captions.jsonl") == []
    call(*command, "--image-urls", "--out", "captions.jsonl")
    assert rows_of("captions.jsonl")[0]["caption"].startswith("An empty gray wall")  # the stand-in opens no address


def test_an_unknown_form_and_another_extension_are_refused(photos: Path, server: Server) -> None:
    with pytest.raises(UsageError, match="poem"):
        call(*asking(server, "--forms", "poem", "--out", "captions.jsonl"))
    with pytest.raises(UsageError, match=r"captions\.tsv"):
        call(*asking(server, "--out", "captions.tsv"))


def test_images_of_a_coco_file_without_captions_are_compared_with_its_boxes(photos: Path, server: Server) -> None:
    images = [{"id": n, "file_name": f"photos/{name}.png", "width": 120, "height": 90} for n, name in enumerate("abc")]
    Path("images.json").write_text(json.dumps({"images": images, "annotations": []}))
    boxes = [{"id": 1, "image_id": 0, "category_id": 1, "bbox": [30, 25, 60, 40]}]
    instances = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "block"}]}
    Path("instances.json").write_text(json.dumps(instances))
    command = (
        "generate",
        "captions",
        "images.json",
        "--format",
        "coco",
        "--instances",
        "instances.json",
        "--model",
        "m",
    )
    call(*command, "--base-url", server.url, "--price", "0/0", "--out", "captions.jsonl")
    rows = rows_of("captions.jsonl")
    assert [row["caption"][:5] for row in rows] == ["A red", "A bla", "A gre"]
    assert [box["label"] for box in rows[0]["boxes"]] == ["block"]
    assert (rows[0]["meta"]["things"], rows[0]["meta"]["unsupported_things"]) == (2, 1)
