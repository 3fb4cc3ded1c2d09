"""A build removes and overwrites its own files only, and packs images of its input's folder only."""

import json
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.state.layout import OWNED_FOLDERS, pairs_path, rejected_path
from tests.flows.conftest import checked

build = partial(build_with_prefect, prefect=False)


@pytest.mark.parametrize("name", [*OWNED_FOLDERS, ".next", "receipts/pairs", "index/text-00000"])
def test_a_build_refuses_a_linked_subfolder_and_leaves_its_files_alone(tmp_path: Path, name: str) -> None:
    corpus = tmp_path / "captions.jsonl"
    corpus.write_text('{"caption": "a dog in a park"}\n')
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious.parquet").write_text("precious")
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / ".pairwright").touch()
    (out / name).symlink_to(theirs)
    with pytest.raises(StorageError, match=rf"{name}: is a symbolic link to {theirs}"):
        build(checked({"name": "test", "input": {"path": str(corpus)}, "workers": 1}), out)
    assert (theirs / "precious.parquet").read_text() == "precious"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A captions file over a folder of images, two of them behind links to elsewhere, and an image outside of it."""
    for place in ("photos/in.jpg", "private.jpg", "elsewhere/far.jpg"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8)).save(tmp_path / place)
    (tmp_path / "photos" / "link.jpg").symlink_to(tmp_path / "private.jpg")
    (tmp_path / "photos" / "far").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos" / "near.jpg").symlink_to("in.jpg")
    names = ["in.jpg", "near.jpg", "../private.jpg", str(tmp_path / "private.jpg"), "link.jpg", "far/far.jpg"]
    names.append(str(tmp_path / "photos" / "in.jpg"))
    rows = [{"image": name, "caption": f"a dog in park {number}"} for number, name in enumerate(names)]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_images_outside_the_image_root_are_rejected_and_not_packed(photos: Path) -> None:
    given = {"path": str(photos / "captions.jsonl"), "image_root": str(photos / "photos"), "on_error": "skip"}
    out = photos / "out"
    build(checked({"name": "test", "input": given, "workers": 1}), out)
    assert [pair.caption[-1] for pair in PAIRS.read(pairs_path(out, "00000"))] == ["0", "1", "4", "5", "6"]
    rejected = REJECTS.read(rejected_path(out, "pairs", "00000"))
    assert [row.reason for row in rejected] == ["image_outside_root"] * 2


def test_an_image_outside_the_image_root_stops_a_build_that_stops_on_errors(photos: Path) -> None:
    given = {"path": str(photos / "captions.jsonl"), "image_root": str(photos / "photos")}
    with pytest.raises(InputError, match=r"captions.jsonl:3: .*private.jpg lies outside the image root .*photos"):
        build(checked({"name": "test", "input": given, "workers": 1}), photos / "out")


def test_without_an_image_root_images_may_lie_anywhere(photos: Path) -> None:
    out = photos / "out"
    (photos / "photos" / "captions.jsonl").write_bytes((photos / "captions.jsonl").read_bytes())
    build(checked({"name": "test", "input": {"path": str(photos / "photos" / "captions.jsonl")}, "workers": 1}), out)
    assert len(PAIRS.read(pairs_path(out, "00000"))) == 7
