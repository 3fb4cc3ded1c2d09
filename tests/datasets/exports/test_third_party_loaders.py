"""Exports opened by the libraries of their formats, each in a separate process with separate caches."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pairwright.datasets.exports.formats import export
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.shards.sample_source import source_from_records
from tests.datasets.sample_builders import image_files

CROISSANT = """
import json, sys
import mlcroissant
def plain(value):
    if isinstance(value, dict):
        return {name.rpartition("/")[2]: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode()
    return list(value.size) if hasattr(value, "getpixel") else int(value) if hasattr(value, "dtype") else value
def read(path):
    dataset = mlcroissant.Dataset(jsonld=path)
    names = [record_set.uuid for record_set in dataset.metadata.record_sets]
    records = {name: [plain(row) for row in dataset.records(name)] for name in names}
    about = dataset.metadata
    return {
        "errors": sorted(about.issues.errors),
        "conforms": [about.conforms_to] if isinstance(about.conforms_to, str) else list(map(str, about.conforms_to)),
        "limits": about.data_limitations,
        "collection": about.data_collection,
        **records,
    }
print(json.dumps([read(path) for path in sys.argv[1:]]))
"""

HUGGING_FACE = """
import json, sys
from datasets import load_dataset
def plain(value):
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return list(value.size) if hasattr(value, "getpixel") else value
print(json.dumps([[plain(row) for row in load_dataset(path, split="train")] for path in sys.argv[1:]]))
"""

# The result is printed by then. Threads of these libraries that still run when Python takes itself apart end a busy machine's
# process by "terminate called without an active exception", which is no matter of ours.
AND_END = "\nimport os\nsys.stdout.flush()\nos._exit(0)\n"


def needed(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed (`make full`)")


def read_by(program: str, paths: Sequence[Path], cache: Path) -> Any:
    """Run a program in an empty folder, where the name `datasets` is Hugging Face's."""
    cache.mkdir()
    env = {
        **os.environ,
        "CROISSANT_CACHE": str(cache / "croissant"),
        "HF_HOME": str(cache),
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, "-c", program + AND_END, *map(str, paths)]
    done = subprocess.run(command, cwd=cache, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needed("mlcroissant")
def test_mlcroissant_validates_descriptions_and_reads_texts_and_images_by_them(tmp_path: Path) -> None:
    pairs, annotations = image_files(tmp_path / "pool", 12)
    alone = [replace(pair, image="") for pair in pairs[:3]]
    export(source_from_records(pairs, annotations), "croissant", tmp_path / "out")
    export(source_from_records(alone, annotations), "croissant", tmp_path / "texts")
    export(source_from_records([*alone, *pairs[3:]], annotations), "croissant", tmp_path / "mixed")
    described = [tmp_path / name / "croissant.json" for name in ("out", "texts")]
    read, texts_alone = read_by(CROISSANT, described, tmp_path / "cache")
    (mixed,) = read_by(CROISSANT, [tmp_path / "mixed" / "croissant.json"], tmp_path / "another")
    assert read["errors"] == []
    assert read["conforms"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
    assert read["limits"][0].startswith("English only")
    assert read["collection"] == "Captions and images of: test (CC BY 4.0, 12 samples)."
    rows = {row["key"]: row for row in read["samples"]}
    assert [row["key"] for row in read["samples"]] == [pair.key for pair in pairs]
    for pair in pairs:
        texts = [one.text for one in annotations if one.key == pair.key and one.kind == "hard_negative"]
        assert rows[pair.key]["caption"] == pair.caption
        assert [one["text"] for one in rows[pair.key]["hard_negatives"]] == texts
        assert rows[pair.key]["provenance"]["license"] == pair.license
    assert {row["key"] for row in read["images"]} == set(rows)
    assert all(row["image"] == [32, 24] for row in read["images"])
    assert texts_alone["errors"] == []
    assert [row["caption"] for row in texts_alone["samples"]] == [pair.caption for pair in alone]
    assert "images" not in texts_alone
    assert mixed["errors"] == []
    assert [row["key"] for row in mixed["samples"]] == [pair.key for pair in [*pairs[3:], *alone]]
    assert {row["key"] for row in mixed["images"]} == {pair.key for pair in pairs[3:]}


class Loaded(NamedTuple):
    """Exported pairs, of which every third is without an image in `mixed`, and the rows of each export."""

    pairs: list[Pair]
    mixed: list[Pair]
    annotations: list[Annotation]
    rows: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """All exports read by one process: `datasets` takes longer to import than to read them."""
    folder = tmp_path_factory.mktemp("exports")
    pairs, annotations = image_files(folder / "pool", 12)
    mixed = [replace(pair, image="") if number % 3 == 0 else pair for number, pair in enumerate(pairs)]
    exports = {name: (name, pairs) for name in ("hf", "croissant", "hf-parquet", "trl")}
    exports |= {f"mixed {name}": (name, mixed) for name in ("hf", "hf-parquet")}
    for name, (to, given) in exports.items():
        export(source_from_records(given, annotations), to, folder / name)
    read = read_by(HUGGING_FACE, [folder / name for name in exports], folder / "cache")
    return Loaded(pairs, mixed, annotations, dict(zip(exports, read, strict=True)))


@needed("datasets")
@pytest.mark.parametrize("to", ["hf", "croissant"])
def test_load_dataset_opens_folders_of_shards_with_a_card(loaded: Loaded, to: str) -> None:
    rows = loaded.rows[to]
    assert len(rows) == 12
    assert rows[0]["jpg"] == [32, 24]
    assert [row["json"]["caption"] for row in rows] == [pair.caption for pair in loaded.pairs]
    assert rows[0]["json"]["hard_negatives"][0]["text"] == loaded.annotations[0].text


@needed("datasets")
def test_load_dataset_has_no_image_for_text_only_samples(loaded: Loaded) -> None:
    assert [row["jpg"] is not None for row in loaded.rows["mixed hf"]] == [True] * 8 + [False] * 4
    table = [row["image"] is not None for row in loaded.rows["mixed hf-parquet"]]
    assert table == [bool(pair.image) for pair in loaded.mixed]


@needed("datasets")
def test_load_dataset_opens_parquet_folders_and_decodes_their_images(loaded: Loaded) -> None:
    rows, chats = loaded.rows["hf-parquet"], loaded.rows["trl"]
    assert [row["caption"] for row in rows] == [pair.caption for pair in loaded.pairs]
    assert rows[0]["image"] == [32, 24]
    assert rows[0]["hard_negatives"][0]["text"] == loaded.annotations[0].text
    assert (len(chats), chats[0]["images"]) == (12, [[32, 24]])
    assert [part["type"] for part in chats[0]["messages"][0]["content"]] == ["image", "text"]
