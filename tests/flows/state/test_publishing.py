"""Publishing a finished build: the manifest is the commit, what is there is not sent again, and nobody else's is touched."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.remote.local_copies import fetch_local_copy
from pairwright.datasets.remote.object_store import RemoteStore, open_store
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build
from pairwright.flows.state.publishing import publish
from tests.flows.conftest import checked, settings
from tests.servers.s3 import BUCKET, SECRET, s3_server

URL = "memory://published/birds"


@pytest.fixture
def built(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A folder with all that publishing looks at of a build: three shards, their tables, pages, a manifest."""
    root = tmp_path / "build"
    (root / "shards").mkdir(parents=True)
    for name in ("00000.tar", "00001.tar", "00002.tar", "sizes.json", "SHA256SUMS"):
        (root / "shards" / name).write_text(f"content of {name}")
    for name in ("README.md", "report.html", "build.yaml"):
        (root / name).write_text(name)
    return root, manifest_of(root)


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    store, _ = open_store(URL)
    yield
    store.files.store.clear()


def manifest_of(root: Path, number: int = 1) -> dict[str, Any]:
    files = {
        path.relative_to(root).as_posix(): {"bytes": path.stat().st_size, "sha256": hash_file(path)}
        for path in sorted((root / "shards").iterdir())
    }
    return {"name": "birds", "files": files, "build": {"number": number}}


def there(url: str = URL) -> dict[str, bytes]:
    store, top = open_store(url)
    return {each.path.removeprefix(top + "/"): store.files.cat_file(each.path) for each in store.find(top)}


def newest(url: str = URL) -> tuple[str, dict[str, bytes]]:
    """Return the name of the version that the pointer names, and its files."""
    files = there(url)
    told = json.loads(files["current.json"])
    assert told["path"] == f"versions/{told['version']}"
    folder = f"{told['path']}/"
    return told["version"], {name.removeprefix(folder): data for name, data in files.items() if name.startswith(folder)}


def changed(root: Path, number: int = 2) -> dict[str, Any]:
    """Change a build as a new version would, and return its manifest."""
    (root / "shards" / "00001.tar").write_text("other content")
    (root / "shards" / "00002.tar").unlink()
    return manifest_of(root, number)


def test_the_manifest_names_every_published_file_by_its_content_and_nothing_of_this_machine_is_sent(
    built: tuple[Path, dict[str, Any]],
) -> None:
    done = publish(*built, URL)
    version, files = newest()
    named = json.loads(files["manifest.json"])["files"]
    assert set(files) == {*named, "manifest.json"}
    assert set(named) == {*built[1]["files"], "README.md", "report.html"}
    assert {name.partition("/")[0] for name in there()} == {"versions", "current.json", ".pairwright"}
    assert (done.version, done.url) == (version, f"memory:///published/birds/versions/{version}")
    assert (done.files, done.sent, done.copied, done.removed) == (len(named), len(named), 0, 0)


def test_what_a_version_has_is_not_sent_again_and_what_the_version_before_has_is_copied_in_the_store(
    built: tuple[Path, dict[str, Any]],
) -> None:
    root, manifest = built
    publish(root, manifest, URL)
    assert publish(root, manifest, URL).sent == 0
    done = publish(root, changed(root), URL)
    assert (done.sent, done.copied, done.removed) == (1, 5, 0)
    _, files = newest()
    assert {path.name: path.read_bytes() for path in (root / "shards").iterdir()} == {
        name.removeprefix("shards/"): data for name, data in files.items() if name.startswith("shards/")
    }


def test_a_reader_of_the_version_before_keeps_it_whole(built: tuple[Path, dict[str, Any]]) -> None:
    root, manifest = built
    publish(root, manifest, URL)
    version, before = newest()
    publish(root, changed(root), URL)
    assert newest()[0] != version
    after = there()
    assert {name: after[f"versions/{version}/{name}"] for name in before} == before


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_older_versions_than_those_to_keep_are_removed(built: tuple[Path, dict[str, Any]], keep: int) -> None:
    root, names = built[0], []
    for number in range(1, 5):
        (root / "shards" / "00000.tar").write_text(f"of version {number}")
        names.append(publish(root, manifest_of(root, number), URL, keep).version)
    stay = names[::-1][:keep]
    assert json.loads(there()["current.json"])["versions"] == stay
    assert {name.split("/")[1] for name in there() if name.startswith("versions/")} == set(stay)


def test_a_pointer_that_was_set_back_is_followed_until_the_next_publication(
    built: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/out"
    first = publish(*built, url)
    second = publish(built[0], changed(built[0]), url)
    pointer = tmp_path / "out" / "current.json"
    pointer.write_text(pointer.read_text().replace(f'"versions/{second.version}"', f'"versions/{first.version}"'))
    assert fetch_local_copy(url) == f"{tmp_path}/out/versions/{first.version}"
    publish(built[0], manifest_of(built[0], 2), url)
    assert fetch_local_copy(url) == f"{tmp_path}/out/versions/{second.version}"
    pointer.write_text(pointer.read_text().replace(f'"versions/{second.version}"', '"versions/0009-gone"'))
    with pytest.raises(StorageError, match="not a pointer to one of its versions"):
        fetch_local_copy(url)


@pytest.mark.parametrize("ends_at", range(1, 9))
def test_ended_at_any_file_the_pointer_names_the_version_before_and_the_next_run_sends_what_is_missing(
    built: tuple[Path, dict[str, Any]], ends_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, manifest = built
    publish(root, manifest, URL)
    before = newest()
    for path in (root / "shards").iterdir():
        path.write_text(f"new {path.name}")
    (root / "README.md").write_text("new")
    (root / "report.html").write_text("new too")
    whole, put, sent = manifest_of(root, 2), RemoteStore.put, 0

    def put_until(store: RemoteStore, local: Path, path: str) -> None:
        nonlocal sent
        sent += 1
        if sent >= ends_at:
            raise StorageError("the line is cut")
        put(store, local, path)

    monkeypatch.setattr(RemoteStore, "put", put_until)
    with pytest.raises(StorageError, match="cut"):
        publish(root, whole, URL)
    assert newest() == before
    monkeypatch.setattr(RemoteStore, "put", put)
    again = publish(root, whole, URL)
    assert again.sent == max(0, 7 - ends_at + 1)
    version, files = newest()
    assert version == again.version != before[0]
    assert json.loads(files["manifest.json"])["files"].keys() <= files.keys()
    assert all(files[f"shards/{path.name}"] == path.read_bytes() for path in (root / "shards").iterdir())


def test_a_rebuilt_folder_never_writes_into_a_published_version(built: tuple[Path, dict[str, Any]]) -> None:
    """It counts its versions from 1 again."""
    root, manifest = built
    first = publish(root, manifest, URL).version
    second = publish(root, changed(root, number=1), URL).version
    assert first.startswith("0001-")
    assert second.startswith("0001-")
    assert first != second


def test_what_an_earlier_release_laid_at_the_top_goes_when_the_first_version_is_complete(
    built: tuple[Path, dict[str, Any]],
) -> None:
    store, top = open_store(URL)
    for name, data in ((".pairwright", b""), ("shards/00000.tar", b"old"), ("notes.txt", b"theirs")):
        store.files.pipe_file(f"{top}/{name}", data)
    store.files.pipe_file(f"{top}/manifest.json", json.dumps({"files": {"shards/00000.tar": {}}}).encode())
    assert publish(*built, URL).removed == 2
    assert {name for name in there() if not name.startswith("versions/")} == {
        ".pairwright",
        "current.json",
        "notes.txt",
    }


def test_a_published_dataset_is_read_by_its_pointer(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    root, manifest = built
    publish(root, manifest, URL)
    first = Path(fetch_local_copy(URL, tmp_path / "copies"))
    publish(root, changed(root), URL)
    second = Path(fetch_local_copy(URL, tmp_path / "copies"))
    shard = Path(fetch_local_copy(f"{URL}/shards/{{00000..00001}}.tar", tmp_path / "copies"))
    assert (first / "shards" / "00001.tar").read_text() == "content of 00001.tar"
    assert (second / "shards" / "00001.tar").read_text() == "other content"
    assert shard.parent == second / "shards"
    with pytest.raises(InputError, match=r"shards/00002\.tar: no such file"):
        fetch_local_copy(f"{URL}/shards/00002.tar", tmp_path / "copies")


def test_a_folder_with_other_files_is_refused_and_not_changed(built: tuple[Path, dict[str, Any]]) -> None:
    store, top = open_store(URL)
    store.files.pipe_file(f"{top}/thesis.tex", b"mine")
    with pytest.raises(StorageError, match="not empty, and not a published dataset"):
        publish(*built, URL)
    assert there() == {"thesis.tex": b"mine"}


def test_a_folder_of_this_machine_is_published_to_as_well(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    done = publish(*built, f"file://{tmp_path}/out")
    assert (tmp_path / "out" / "versions" / done.version / "shards" / "00000.tar").is_file()
    again = publish(built[0], changed(built[0]), f"file://{tmp_path}/out")
    assert again.copied == 5
    assert fetch_local_copy(f"file://{tmp_path}/out") == f"{tmp_path}/out/versions/{again.version}"


def test_from_bucket_to_bucket_the_shards_are_those_of_local_files_and_no_key_is_written(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    plain = settings(corpus, shards={"samples": 100}, positives=None, conversations=None, refine=None)
    build(checked(plain), tmp_path / "local", prefect=False)
    with s3_server():
        store = s3fs.S3FileSystem(use_listings_cache=False)
        store.put_file(str(corpus / "text" / "captions.jsonl"), f"{BUCKET}/in/captions.jsonl")
        store.put_file(str(corpus / "queries.txt"), f"{BUCKET}/in/queries.txt")
        far = {**plain, "input": {"path": f"s3://{BUCKET}/in/captions.jsonl"}, "publish": f"s3://{BUCKET}/out/birds"}
        far["retrieve"] = {**plain["retrieve"], "queries": f"s3://{BUCKET}/in/queries.txt"}
        (tmp_path / "far.yaml").write_text(yaml.safe_dump(far))
        monkeypatch.chdir(tmp_path)
        ran = CliRunner().invoke(app, ["build", "far.yaml", "--out", "far", "--no-prefect"])
        assert ran.exit_code == 0, ran.stderr
        assert "files to s3://pool/out/birds/versions/0001-" in ran.stderr
        published = Path(fetch_local_copy(f"s3://{BUCKET}/out/birds", tmp_path / "back"))
        (tmp_path / "far" / "README.md").write_text("another card")
        manifest = json.loads((tmp_path / "far" / "manifest.json").read_text())
        again = publish(tmp_path / "far", manifest, far["publish"])
        assert (again.sent, again.copied) == (1, again.files - 1)
        assert Path(fetch_local_copy(far["publish"], tmp_path / "back")) != published
        s3fs.S3FileSystem.clear_instance_cache()
    shards = {path.name: path.read_bytes() for path in (published / "shards").iterdir()}
    assert shards == {path.name: path.read_bytes() for path in (tmp_path / "local" / "shards").iterdir()}
    assert verify(published) == []
    read = CliRunner().invoke(app, ["inspect", str(published), "--json"])
    assert read.exit_code == 0, read.stderr
    assert json.loads(read.stdout)["samples"] == manifest["shards"]["samples"]
    ours = [path for root in (tmp_path / "far", published) for path in root.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in ours)
    assert SECRET not in ran.stderr + ran.stdout
