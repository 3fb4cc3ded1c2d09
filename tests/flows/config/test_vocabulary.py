"""Where the answer "no" comes from: a vocabulary that is named, or that a COCO file has, or a hint that there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.flows.commands.generate import GenerateRequest, run_generator
from pairwright.flows.config.build import parse_config
from pairwright.flows.config.vocabulary import coco_vocabulary, config_with_vocabulary
from pairwright.generators.lexicon.label_sets import COCO


def coco(folder: Path, *, of_image: dict[str, Any] | None = None) -> Path:
    image = {"id": 1, "file_name": "1.jpg", "width": 100, "height": 100, **(of_image or {})}
    categories = [{"id": 1, "name": "Dog"}, {"id": 2, "name": "cat"}, {"id": 3, "name": "cat"}]
    boxes = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 30, 30]}]
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": [image], "categories": categories, "annotations": boxes}))
    return path


def notes_of(folder: Path, row: dict[str, Any], **options: Any) -> list[str]:
    (folder / "in.jsonl").write_text(json.dumps(row) + "\n")
    read = ReadOptions(input=str(folder / "in.jsonl"), verify_images="off")
    notes: list[str] = []
    run_generator(GenerateRequest("template-conversations", options, 0, read, "", folder / "out.jsonl"), notes.append)
    return notes


def test_the_categories_of_coco_instances_are_the_vocabulary_of_a_build(tmp_path: Path) -> None:
    config = {"name": "x", "input": {"path": "captions.json", "instances": str(coco(tmp_path))}, "conversations": {}}
    checked, told = config_with_vocabulary(parse_config(config, where="t"))
    assert checked.conversations is not None
    assert checked.conversations.vocabulary == ("dog", "cat")
    assert "the 2 categories" in told


def test_a_vocabulary_that_is_named_stays(tmp_path: Path) -> None:
    given = {"vocabulary": ["bus"]}
    config = {"name": "x", "input": {"path": "captions.json", "instances": str(coco(tmp_path))}, "conversations": given}
    before = parse_config(config, where="t")
    assert config_with_vocabulary(before) == (before, "")


def test_a_file_that_is_not_exhaustive_gives_no_vocabulary(tmp_path: Path) -> None:
    path = coco(tmp_path, of_image={"not_exhaustive_category_ids": []})
    assert coco_vocabulary(str(path))[0] == ()
    config = {"name": "x", "input": {"path": "captions.json", "instances": str(path)}, "conversations": {}}
    before = parse_config(config, where="t")
    after, told = config_with_vocabulary(before)
    assert after == before
    assert "conversations.vocabulary" in told


def test_without_a_vocabulary_it_is_said_how_to_name_one(tmp_path: Path) -> None:
    boxes = [{"label": label, "bbox": [0.1, 0.1, 0.3, 0.3]} for label in COCO[:30]]
    [told] = notes_of(tmp_path, {"caption": "A dog sits.", "boxes": boxes})
    assert told.endswith("--vocabulary coco.")
    [told] = notes_of(tmp_path, {"caption": "A dog sits.", "boxes": [{"label": "gnu", "bbox": [0.1, 0.1, 0.3, 0.3]}]})
    assert "--vocabulary" in told
    assert not told.endswith("--vocabulary coco.")


@pytest.mark.parametrize("options", [{"vocabulary": ("coco",)}, {"types": ("brief",)}])
def test_nothing_is_said_where_a_vocabulary_is_named_or_not_wanted(tmp_path: Path, options: dict[str, Any]) -> None:
    assert notes_of(tmp_path, {"caption": "A dog sits."}, **options) == []
