"""Readers of evaluation data: a build is read as its shards, by every task."""

import json
from pathlib import Path

from pairwright.datasets.shards.sample_source import load_image, source_from_records
from pairwright.datasets.shards.writing import write_shards
from pairwright.filters.evaluation.readers import read_captioned_images, read_hard_negatives, read_labelled_images
from tests.datasets.sample_builders import image_files


def test_a_build_is_read_as_its_shards(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    pairs, annotations = image_files(tmp_path / "files", 3)
    shards = tmp_path / "build" / "shards"
    write_shards(map(load_image, source_from_records(pairs, annotations).samples()), shards)
    (tmp_path / "build" / "manifest.json").write_text("{}")
    build, labels = str(tmp_path / "build"), tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps({"key": pair.key, "label": "x"}) + "\n" for pair in pairs))
    assert read_captioned_images([build]) == read_captioned_images([str(shards)])
    assert read_hard_negatives([build]) == read_hard_negatives([str(shards)])
    assert read_labelled_images([build], labels).images == read_labelled_images([str(shards)], labels).images
