"""Inputs in a bucket: read by ranges, with the rows and bytes of the same files on disk."""

import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from pairwright.datasets.errors import StorageError
from pairwright.datasets.images.loading import (
    ImageRoot,
    UnusableImageError,
    check_image_at,
    open_image,
    publishable_image_name,
    read_stored_size,
)
from pairwright.datasets.readers.formats import locate_input
from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions, read_pairs
from pairwright.datasets.readers.stored_inputs import list_in_place
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import RejectError
from pairwright.datasets.remote.object_store import RemoteStore, StoredFile, open_store
from pairwright.datasets.remote.reading import open_file, read_ranges
from pairwright.datasets.remote.store_path import StoreListings, StorePath, to_path
from pairwright.flows.state.inputs import file_state
from tests.datasets.compression import COMPRESSORS
from tests.datasets.sample_builders import picture
from tests.servers.s3 import BUCKET, s3_server

COLORS = ("red", "green", "blue", "white", "black")
COUNT = len(COLORS)


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    with s3_server():
        yield s3fs.S3FileSystem(use_listings_cache=False)


def rows() -> list[dict[str, Any]]:
    return [{"caption": f"a red cup {number}", "key": f"{number:04d}"} for number in range(COUNT)]


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")


def write_compressed(path: Path) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows())
    path.write_bytes(COMPRESSORS[path.suffix](text.encode()))


def write_csv(path: Path) -> None:
    path.write_text("key,caption\n" + "".join(f"{row['key']},{row['caption']}\n" for row in rows()), encoding="utf-8")


def write_parquet(path: Path) -> None:
    images = [{"bytes": picture(COLORS[number]), "path": f"{number}.jpg"} for number in range(COUNT)]
    parquet.write_table(
        pa.Table.from_pylist([{**row, "image": image} for row, image in zip(rows(), images, strict=True)]), path
    )


def write_tar(path: Path) -> None:
    with tarfile.open(path, "w") as tar:
        for number, row in enumerate(rows()):
            for ext, data in (("jpg", picture(COLORS[number])), ("txt", row["caption"].encode())):
                member = tarfile.TarInfo(f"{row['key']}.{ext}")
                member.size = len(data)
                tar.addfile(member, BytesIO(data))


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.jsonl": write_jsonl,
    **{f"a.jsonl{ending}": write_compressed for ending in COMPRESSORS},
    "a.csv": write_csv,
    "a.parquet": write_parquet,
    "00000.tar": write_tar,
}


def read(where: str) -> list[Pair]:
    return [pair for batch in read_pairs(ReadOptions(where, source="cups")) for pair in batch.pairs]


@pytest.mark.parametrize("name", WRITERS)
def test_pairs_and_images_are_those_of_the_disk_and_nothing_is_copied(
    s3: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in").mkdir()
    WRITERS[name](tmp_path / "in" / name)
    s3.put_file(str(tmp_path / "in" / name), f"{BUCKET}/{name}/{name}")
    near = read(str(tmp_path / "in" / name))
    assert len(near) == COUNT
    for where in (f"s3://{BUCKET}/{name}/{name}", f"s3://{BUCKET}/{name}"):
        far = read(where)
        assert [pair.key for pair in far] == [pair.key for pair in near]
        assert [publishable_image_name(pair.image) for pair in far] == [publishable_image_name(p.image) for p in near]
        images = [[open_image(pair.image) for pair in pairs if pair.image] for pairs in (near, far)]
        assert images[0] == images[1]
    assert not (tmp_path / "cache" / "remote").exists()


def test_a_pattern_is_read_in_order_and_the_tables_of_tars_are_no_input(s3: Any, tmp_path: Path) -> None:
    write_tar(tmp_path / "00000.tar")
    write_parquet(tmp_path / "table.parquet")
    for number in (1, 0):
        s3.put_file(str(tmp_path / "00000.tar"), f"{BUCKET}/many/{number:05d}.tar")
    s3.put_file(str(tmp_path / "table.parquet"), f"{BUCKET}/many/00000.parquet")
    for where in (f"s3://{BUCKET}/many/{{00000..00001}}.tar", f"s3://{BUCKET}/many"):
        located = locate_input(where)
        assert [str(file) for file in located.files] == [f"s3://{BUCKET}/many/{n:05d}.tar" for n in range(2)]
        assert (located.format, located.name) == ("webdataset", "many")


class FlakyFile:
    """A file of a store whose reads fail or come short, once each."""

    def __init__(self, file: Any, faults: list[str]) -> None:
        self.file, self.faults, self.size = file, faults, file.size

    def seek(self, offset: int) -> None:  # noqa: D102 - as of a file
        self.file.seek(offset)

    def read(self, size: int) -> bytes:  # noqa: D102 - as of a file
        fault = self.faults.pop() if self.faults else ""
        if fault == "drop":
            raise ConnectionResetError("the connection was reset")
        data: bytes = self.file.read(size)
        return data[: len(data) // 2] if fault == "short" else data

    def close(self) -> None:  # noqa: D102 - as of a file
        self.file.close()


@pytest.mark.parametrize("faults", [["drop"], ["short"], ["drop", "short", "drop"]])
def test_a_connection_that_drops_is_tried_again(faults: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    store, path = open_store("memory://flaky/rows.jsonl")
    data = b"".join(b'{"caption": "a red cup %d"}\n' % number for number in range(1000))
    store.files.pipe_file(path, data)
    opened = store.files.open
    monkeypatch.setattr(type(store.files), "open", lambda _, *args, **how: FlakyFile(opened(*args, **how), [*faults]))
    with open_file("memory://flaky/rows.jsonl", buffer=4096) as handle:
        assert handle.read() == data


def test_a_connection_that_always_drops_is_an_error_and_no_short_file(monkeypatch: pytest.MonkeyPatch) -> None:
    store, path = open_store("memory://broken/rows.jsonl")
    store.files.pipe_file(path, b'{"caption": "a red cup"}\n' * 1000)
    opened = store.files.open
    monkeypatch.setattr(
        type(store.files), "open", lambda _, *args, **how: FlakyFile(opened(*args, **how), ["short"] * 9)
    )
    with pytest.raises(StorageError, match=r"rows\.jsonl"):
        read("memory://broken/rows.jsonl")


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(s3: Any) -> None:
    s3.pipe_file(f"{BUCKET}/replaced.jsonl", b"one\n" * 5000)
    with open_file(f"s3://{BUCKET}/replaced.jsonl", buffer=4096) as handle:
        assert handle.read(4) == b"one\n"
        s3.pipe_file(f"{BUCKET}/replaced.jsonl", b"two\n" * 5000)
        with pytest.raises(StorageError, match="replaced while it was read"):
            handle.read()


def test_ranges_of_several_files_come_in_order(s3: Any, tmp_path: Path) -> None:
    s3.pipe_file(f"{BUCKET}/ranges/a", b"0123456789")
    s3.pipe_file(f"{BUCKET}/ranges/b", b"abcdefghij")
    (tmp_path / "c").write_bytes(b"local")
    a, b, c = f"s3://{BUCKET}/ranges/a", f"s3://{BUCKET}/ranges/b", str(tmp_path / "c")
    assert read_ranges([(b, 2, 4), (c, 0, 3), (a, 5, 10), (b, 0, 1)]) == [b"cd", b"loc", b"56789", b"a"]
    with pytest.raises(StorageError, match="ranges/a"):
        read_ranges([(a, 5, 11)])


def test_a_store_path_keeps_its_url_and_knows_size_and_time(s3: Any) -> None:
    s3.pipe_file(f"{BUCKET}/one/a.tar", bytes(1024))
    path = StorePath(f"s3://{BUCKET}/one/a.tar")
    assert (str(path), path.name, str(path.parent)) == (f"s3://{BUCKET}/one/a.tar", "a.tar", f"s3://{BUCKET}/one")
    assert str(StorePath("file:///data/a.tar").parent) == "file:///data"
    assert (path.stat().st_size, path.is_file(), path.with_suffix(".parquet").is_file()) == (1024, True, False)
    store, key = open_store(str(path))
    assert isinstance(store, RemoteStore)
    assert path.stat().st_mtime_ns == round(store.find(key)[0].time * 1000) * 1_000_000


def write_coco(folder: Path, *, missing: bool = False) -> None:
    """Write a COCO captions file, and its images in a folder of their own."""
    (folder / "annotations").mkdir(parents=True)
    (folder / "val").mkdir()
    images = [{"id": number, "file_name": f"{number:04d}.jpg"} for number in range(COUNT)]
    captions = [{"id": number, "image_id": number, "caption": row["caption"]} for number, row in enumerate(rows())]
    content = {"images": images, "annotations": captions}
    (folder / "annotations" / "captions.json").write_text(json.dumps(content), encoding="utf-8")
    for number in range(missing, COUNT):
        (folder / "val" / f"{number:04d}.jpg").write_bytes(picture(COLORS[number]))


def upload(s3: Any, folder: Path, name: str) -> str:
    for path in folder.rglob("*"):
        if path.is_file():
            s3.put_file(str(path), f"{BUCKET}/{name}/{path.relative_to(folder).as_posix()}")
    return f"s3://{BUCKET}/{name}"


def read_coco_of(top: str, **changes: Any) -> list[ReadBatch]:
    options = ReadOptions(f"{top}/annotations/captions.json", image_root=f"{top}/val", source="cups", **changes)
    return list(read_pairs(options))


def test_coco_and_its_images_are_read_in_a_bucket_and_nothing_is_copied(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    write_coco(tmp_path / "coco")
    url = upload(s3, tmp_path / "coco", "our coco+1")
    (near,), (far,) = read_coco_of(str(tmp_path / "coco")), read_coco_of(url)
    assert [replace(pair, image="") for pair in far.pairs] == [replace(pair, image="") for pair in near.pairs]
    assert [pair.image for pair in far.pairs] == [f"{url}/val/{number:04d}.jpg" for number in range(COUNT)]
    assert [open_image(pair.image) for pair in far.pairs] == [open_image(pair.image) for pair in near.pairs]
    names = [[publishable_image_name(pair.image) for pair in each.pairs] for each in (near, far)]
    assert names[0] == names[1]
    assert not (tmp_path / "cache").exists()


def test_an_image_that_a_bucket_does_not_have_is_rejected_as_on_disk(s3: Any, tmp_path: Path) -> None:
    write_coco(tmp_path / "coco", missing=True)
    url = upload(s3, tmp_path / "coco", "gaps")
    (near,), (far,) = (read_coco_of(top, on_error="skip") for top in (str(tmp_path / "coco"), url))
    assert [reject.reason for reject in far.rejects] == [reject.reason for reject in near.rejects] == ["missing_image"]
    assert [pair.key for pair in far.pairs] == [pair.key for pair in near.pairs]


@pytest.mark.parametrize("written", ["../secret/0.jpg", f"s3://{BUCKET}/secret/0.jpg", "/etc/passwd", "a/../../0.jpg"])
def test_an_image_outside_of_an_image_root_in_a_bucket_is_rejected(written: str) -> None:
    root = ImageRoot(to_path(f"s3://{BUCKET}/coco/val"), confined=True)
    with pytest.raises(RejectError, match=r"lies outside the image root s3://pool/coco/val"):
        root.locate(written)
    assert root.locate("a/b.jpg") == f"s3://{BUCKET}/coco/val/a/b.jpg"
    assert root.locate(f"s3://{BUCKET}/coco/val/b.jpg") == f"s3://{BUCKET}/coco/val/b.jpg"


def test_an_empty_image_in_a_bucket_is_no_image(s3: Any) -> None:
    s3.pipe_file(f"{BUCKET}/empty.jpg", b"")
    with pytest.raises(UnusableImageError, match="not an image"):
        check_image_at(f"s3://{BUCKET}/empty.jpg")


def test_many_images_of_a_folder_are_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = open_store("memory://listed/a")
    for name in ("a.jpg", "b.jpg"):
        store.files.pipe_file(f"/listed/{name}", name.encode() * 3)
    listed, find = list[str](), RemoteStore.find

    def noted(self: RemoteStore, path: str) -> list[StoredFile]:
        listed.append(path)
        return find(self, path)

    monkeypatch.setattr(RemoteStore, "find", noted)
    listings = StoreListings()
    assert [read_stored_size(f"memory://listed/{name}.jpg", listings) for name in "ab"] == [15, 15]
    assert listed == ["/listed"]
    assert read_stored_size("memory://listed/c.jpg", listings) == 0


def write_folder(folder: Path) -> None:
    """Write a folder of images with captions beside them, some in folders, one without an image, one of img2dataset."""
    folder.mkdir()
    for number, name in enumerate(("b", "a", "deep/er/c", "deep/d", "00000/e")):
        path = folder / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(COLORS[number]))
        path.with_suffix(".txt").write_text(f"a {COLORS[number]} cup", encoding="utf-8")
    (folder / "a.json").write_text(json.dumps({"license": "CC0"}))
    (folder / "deep" / "lost.txt").write_text("a caption without an image")
    (folder / ".hidden.txt").write_text("hidden")
    (folder / "notes.md").write_text("no sample")
    rows = [{"key": "e", "status": "success"}, {"key": "f", "status": "failed", "error_message": "404"}]
    parquet.write_table(pa.Table.from_pylist(rows), folder / "00000.parquet")
    (folder / "00000_stats.json").write_text("{}")


def test_a_folder_of_images_is_read_in_a_bucket_in_the_order_of_the_disk_and_nothing_is_copied(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    write_folder(tmp_path / "cups")
    url = upload(s3, tmp_path / "cups", "in/cups")
    (near,), (far,) = (
        list(read_pairs(ReadOptions(where, on_error="skip"))) for where in (str(tmp_path / "cups"), f"{url}/")
    )
    assert [pair.caption for pair in far.pairs] == [f"a {COLORS[number]} cup" for number in (1, 0, 4, 3, 2)]
    assert [replace(pair, image="") for pair in far.pairs] == [replace(pair, image="") for pair in near.pairs]
    assert [open_image(pair.image) for pair in far.pairs] == [open_image(pair.image) for pair in near.pairs]
    assert [pair.image for pair in far.pairs] == [
        pair.image.replace(str(tmp_path / "cups"), url) for pair in near.pairs
    ]
    reasons = [(reject.reason, reject.detail) for reject in near.rejects]
    assert [(reject.reason, reject.detail) for reject in far.rejects] == reasons
    assert {reason for reason, _ in reasons} == {"missing_image", "download_failed"}
    assert not (tmp_path / "cache").exists()
    before = file_state([to_path(url)])
    s3.pipe_file(f"{BUCKET}/in/cups/deep/er/c.txt", b"a changed caption")
    assert file_state([to_path(url)]) != before


@pytest.mark.parametrize(
    "names",
    [["a.jpg", "data.parquet"], ["metadata/a.parquet", "img_emb/a.npy", "a.jpg"], ["in/a.tar", "a.tar", "b.jpg"]],
)
def test_a_folder_of_something_else_with_images_in_it_is_copied(names: list[str]) -> None:
    store, top = open_store(f"memory://other/{len(names[0])}")
    for name in names:
        store.files.pipe_file(f"{top}/{name}", b"x")
    assert list_in_place(f"memory://{top}") == ()
