"""Folders with symbolic links."""

from pathlib import Path

import pytest
from PIL import Image

from pairwright.datasets.directories import walk_files
from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.flows.state.inputs import file_state
from pairwright.indexes.retrieval.exclusion import read_exclusion


def sample(folder: Path, name: str) -> None:
    """Put an image with a caption into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), {"a": "red", "b": "blue"}[name]).save(folder / f"{name}.png")
    (folder / f"{name}.txt").write_text(f"a picture {name}")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with a link to another disk's, a link to itself, and one through the other disk back."""
    sample(tmp_path / "photos", "a")
    sample(tmp_path / "disk" / "inner", "b")
    (tmp_path / "photos" / "far").symlink_to(tmp_path / "disk")
    (tmp_path / "photos" / "here").symlink_to(tmp_path / "photos")
    (tmp_path / "disk" / "back").symlink_to(tmp_path / "photos")
    return tmp_path / "photos"


def read(folder: Path) -> tuple[list[str], list[str]]:
    """Return the captions of a folder, and the reasons of what was rejected."""
    batches = list(read_pairs(ReadOptions(str(folder), on_error="skip")))
    captions = [pair.caption for batch in batches for pair in batch.pairs]
    return captions, [reject.reason for batch in batches for reject in batch.rejects]


def test_a_folder_that_links_to_itself_is_read_once(photos: Path) -> None:
    assert read(photos) == (["a picture a", "a picture b"], [])
    assert [path.name for path in walk_files(photos)] == ["a.png", "a.txt", "b.png", "b.txt"]


def test_a_folder_of_links_alone_is_one_of_images(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "all").symlink_to(photos)
    assert read(tmp_path / "links")[0] == ["a picture a", "a picture b"]


def test_a_broken_link_is_one_missing_image(photos: Path) -> None:
    """The state of the input is asked for before its reader could say so."""
    (photos / "gone.jpg").symlink_to(photos / "nowhere.jpg")
    (photos / "gone.txt").write_text("a dog")
    assert read(photos) == (["a picture a", "a picture b"], ["missing_image"])
    assert "gone.jpg" in file_state([photos])


def test_a_changed_file_behind_a_link_is_detected(tmp_path: Path, photos: Path) -> None:
    """Else a build would take over what it made of the older file."""
    before = file_state([photos])
    (tmp_path / "disk" / "inner" / "b.txt").write_text("another caption")
    assert file_state([photos]) != before


def test_evaluation_images_behind_a_link_are_excluded(tmp_path: Path, photos: Path) -> None:
    """An image kept in a training set because a link was not followed is a leak."""
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "all").symlink_to(photos)
    found = read_exclusion(str(tmp_path / "evaluation"), by=["image"])
    assert found.sizes == {"image": 2}


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be listed"):
        list(walk_files(tmp_path / "file"))
