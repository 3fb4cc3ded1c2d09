"""Publishing a finished build: the manifest is the commit, what is there is not sent again, and nobody else's is touched."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import StorageError
from pairwright.datasets.mirror import local_copy
from pairwright.datasets.remote import Store, open_store
from pairwright.datasets.shards import sha256_of
from pairwright.datasets.verify import verify
from pairwright.flows.build import build
from pairwright.flows.publishing import publish
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


def manifest_of(root: Path) -> dict[str, Any]:
    files = {
        path.relative_to(root).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted((root / "shards").iterdir())
    }
    return {"name": "birds", "files": files}


def there(url: str = URL) -> dict[str, bytes]:
    store, top = open_store(url)
    return {each.path.removeprefix(top + "/"): store.files.cat_file(each.path) for each in store.find(top)}


def test_the_manifest_names_every_published_file_by_its_content_and_nothing_of_this_machine_is_sent(
    built: tuple[Path, dict[str, Any]],
) -> None:
    done = publish(*built, URL)
    files = json.loads(there()["manifest.json"])["files"]
    assert set(there()) == {*files, "manifest.json", ".pairwright"}
    assert set(files) == {*manifest_of(built[0])["files"], "README.md", "report.html"}
    assert (done.files, done.sent, done.removed) == (len(files), len(files), 0)


def test_what_is_there_is_not_sent_again_what_changed_is_and_what_went_goes(
    built: tuple[Path, dict[str, Any]],
) -> None:
    root, manifest = built
    publish(root, manifest, URL)
    assert publish(root, manifest, URL).sent == 0
    (root / "shards" / "00001.tar").write_text("other content")
    (root / "shards" / "00002.tar").unlink()
    done = publish(root, manifest_of(root), URL)
    assert (done.sent, done.removed) == (1, 1)
    assert there()["shards/00001.tar"] == b"other content"
    assert "shards/00002.tar" not in there()


@pytest.mark.parametrize("ends_at", range(1, 9))
def test_ended_at_any_file_there_is_no_manifest_and_the_next_run_sends_only_what_is_missing(
    built: tuple[Path, dict[str, Any]], ends_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, manifest = built
    publish(root, manifest, URL)
    for path in (root / "shards").iterdir():
        path.write_text(f"new {path.name}")
    (root / "README.md").write_text("new")
    (root / "report.html").write_text("new too")
    whole, put, sent = manifest_of(root), Store.put, 0

    def put_until(store: Store, local: Path, path: str) -> None:
        nonlocal sent
        sent += 1
        if sent >= ends_at:
            raise StorageError("the line is cut")
        put(store, local, path)

    monkeypatch.setattr(Store, "put", put_until)
    with pytest.raises(StorageError, match="cut"):
        publish(root, whole, URL)
    assert "manifest.json" not in there()
    monkeypatch.setattr(Store, "put", put)
    again = publish(root, whole, URL)
    # With eight at a time, one that arrived may be noted or not; none is missing.
    assert again.sent >= 7 - ends_at + 1
    assert json.loads(there()["manifest.json"])["files"].keys() <= there().keys()
    assert all(there()[f"shards/{path.name}"] == path.read_bytes() for path in (root / "shards").iterdir())


def test_without_its_notes_a_build_sends_all_again_rather_than_trust_a_name(
    built: tuple[Path, dict[str, Any]],
) -> None:
    publish(*built, URL)
    (built[0] / "published.json").unlink()
    assert publish(*built, URL).sent == 7


def test_a_place_of_somebody_else_is_refused_and_left_alone(built: tuple[Path, dict[str, Any]]) -> None:
    store, top = open_store(URL)
    store.files.pipe_file(f"{top}/thesis.tex", b"mine")
    with pytest.raises(StorageError, match="holds files, and no dataset of ours"):
        publish(*built, URL)
    assert there() == {"thesis.tex": b"mine"}


def test_a_folder_of_this_machine_is_published_to_as_well(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    publish(*built, f"file://{tmp_path}/out")
    assert (tmp_path / "out" / "shards" / "00000.tar").read_bytes() == b"content of 00000.tar"


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
        assert "to s3://pool/out/birds, " in ran.stderr
        published = Path(local_copy(f"s3://{BUCKET}/out/birds", tmp_path / "back"))
        s3fs.S3FileSystem.clear_instance_cache()
    shards = {path.name: path.read_bytes() for path in (published / "shards").iterdir()}
    assert shards == {path.name: path.read_bytes() for path in (tmp_path / "local" / "shards").iterdir()}
    assert verify(published) == []
    ours = [path for root in (tmp_path / "far", published) for path in root.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in ours)
    assert SECRET not in ran.stderr + ran.stdout
