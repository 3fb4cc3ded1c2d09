"""A build whose input is a tar in a bucket: the bytes of one from disk, nothing copied, and changes are noticed."""

import io
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.remote.object_store import open_store
from pairwright.datasets.remote.store_folder import open_dataset
from pairwright.datasets.shards.stored_folder import OWNER_FILE
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build
from tests.datasets.remote.test_reading_in_place import COUNT, write_coco, write_tar
from tests.datasets.sample_builders import picture
from tests.flows.conftest import checked
from tests.servers.gcs import gcs_server
from tests.servers.s3 import BUCKET, s3_server


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_tar_in_a_bucket_is_built_as_from_disk_without_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    write_tar(tmp_path / "00000.tar")
    url = f"s3://{BUCKET}/in/00000.tar"

    def config(path: str) -> Any:
        given = {"path": path, "source": "cups"}
        return checked({"name": "cups", "input": given, "shards": {"samples": 3}, "workers": 1})

    build(config(str(tmp_path / "00000.tar")), tmp_path / "near", prefect=False)
    with s3_server():
        store = s3fs.S3FileSystem(use_listings_cache=False)
        store.put_file(str(tmp_path / "00000.tar"), url)
        build(config(url), tmp_path / "far", prefect=False)
        assert files(tmp_path / "far" / "shards") == files(tmp_path / "near" / "shards")
        assert not (tmp_path / "far" / "remote").exists()
        assert not (tmp_path / "cache" / "remote").exists()
        other = io.BytesIO((tmp_path / "00000.tar").read_bytes().replace(b"a red cup 1", b"a tall cup1"))
        store.pipe_file(url, other.getvalue())  # of the same size, and perhaps within the second that S3 dates to
        manifest = build(config(url), tmp_path / "far", prefect=False)
        s3fs.S3FileSystem.clear_instance_cache()
    assert manifest["shards"]["samples"] == COUNT
    assert b"a tall cup1" in b"".join(files(tmp_path / "far" / "shards").values())


def test_a_build_from_google_cloud_storage_into_it_has_the_bytes_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gcp_storage_emulator", reason="gcp-storage-emulator is not installed")
    gcsfs = pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    write_tar(tmp_path / "00000.tar")

    def config(path: str, to: str) -> Any:
        shards = {"samples": 3, "to": to}
        return checked({"name": "cups", "input": {"path": path, "source": "cups"}, "shards": shards, "workers": 1})

    build(config(str(tmp_path / "00000.tar"), ""), tmp_path / "near", prefect=False)
    with gcs_server():
        store, url = gcsfs.GCSFileSystem(use_listings_cache=False), f"gs://{BUCKET}/out"
        store.put_file(str(tmp_path / "00000.tar"), f"{BUCKET}/in/00000.tar")
        build(config(f"gs://{BUCKET}/in/00000.tar", url), tmp_path / "far", prefect=False)
        names = [path.rpartition("/")[2] for path in store.find(f"{BUCKET}/out")]
        stored = {name: store.cat_file(f"{BUCKET}/out/{name}") for name in names if name != OWNER_FILE}
        assert verify(open_dataset(url)) == verify(tmp_path / "far") == []
    assert stored == files(tmp_path / "near" / "shards")
    assert not (tmp_path / "cache" / "remote").exists()


def test_coco_and_its_images_in_a_store_are_built_as_from_disk_without_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    write_coco(tmp_path / "coco")
    store, top = open_store("memory://pool/coco")
    for path in (tmp_path / "coco").rglob("*.*"):
        store.files.pipe_file(f"{top}/{path.relative_to(tmp_path / 'coco').as_posix()}", path.read_bytes())

    def config(where: str) -> Any:
        given = {"path": f"{where}/annotations/captions.json", "image_root": f"{where}/val", "source": "cups"}
        return checked({"name": "cups", "input": given, "shards": {"samples": 3}, "workers": 1})

    build(config(str(tmp_path / "coco")), tmp_path / "near", prefect=False)
    build(config("memory://pool/coco"), tmp_path / "far", prefect=False)
    assert files(tmp_path / "far" / "shards") == files(tmp_path / "near" / "shards")
    assert not (tmp_path / "far" / "remote").exists()
    store.files.pipe_file(f"{top}/val/0001.jpg", picture("yellow"))
    build(config("memory://pool/coco"), tmp_path / "far", prefect=False)
    changed = [
        name
        for name, data in files(tmp_path / "far" / "shards").items()
        if data != files(tmp_path / "near" / "shards")[name]
    ]
    store.files.store.clear()
    assert set(changed) == {"00000.tar", "00000.tar.index", "SHA256SUMS"}
