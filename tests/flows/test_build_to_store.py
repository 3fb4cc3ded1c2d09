"""A build whose shards go to a store: the bytes of a local one, complete or absent, resumed, and read by all readers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import ConfigError, InputError, PairwrightError, StorageError
from pairwright.datasets.remote.object_store import RemoteStore, open_store
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.stored_folder import OWNER_FILE
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build
from pairwright.training.loading.shard_index import StoredSample, index_shards
from tests.flows.conftest import checked
from tests.flows.test_build import Heard
from tests.servers.s3 import BUCKET, SECRET, s3_server

MEMORY = "memory:///bucket/birds"
COUNT = 60


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    store, _ = open_store(MEMORY)
    yield
    store.files.store.clear()


def settings(corpus: Path, to: str = "", samples: int = 16, **changes: Any) -> dict[str, Any]:
    """Return the settings of a fast build: the images of the corpus and their captions."""
    given = {"path": str(corpus / "pictures"), "source": "scenes"}
    return {"name": "birds", "input": given, "workers": 1, "shards": {"samples": samples, "to": to}, **changes}


def run(out: Path, config: dict[str, Any]) -> dict[str, Any]:
    return build(checked(config), out, prefect=False)


@pytest.fixture(scope="module")
def local(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same build with its shards on disk."""
    folder = tmp_path_factory.mktemp("local")
    run(folder / "build", settings(corpus))
    return folder / "build" / "shards"


@pytest.fixture
def tars_sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tars that are sent."""
    names: list[str] = []
    put = RemoteStore.put

    def noted(store: RemoteStore, path: Path, to: str, pauses: tuple[float, ...] = ()) -> None:
        names.extend([path.name] if path.suffix == ".tar" else [])
        put(store, path, to, pauses)

    monkeypatch.setattr(RemoteStore, "put", noted)
    return names


def on_disk(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stored(url: str = MEMORY) -> dict[str, bytes]:
    store, top = open_store(url)
    files = {each.path.removeprefix(f"{top}/"): store.files.cat_file(each.path) for each in store.find(top)}
    return {name: data for name, data in files.items() if name != OWNER_FILE}


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments])


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_in_a_bucket_the_shards_are_those_of_the_disk_and_every_reader_reads_them(
    corpus: Path, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    url = f"s3://{BUCKET}/our birds+1/ä"
    (tmp_path / "build.yaml").write_text(yaml.safe_dump(settings(corpus, f"{url}/", workers=workers)))
    with s3_server():
        made = command("build", "build.yaml", "--out", "far", "--no-prefect", "--json")
        assert made.exit_code == 0, made.stderr
        assert json.loads(made.stdout)["shards"] == [f"{url}/0000{number}.tar" for number in range(4)]
        assert stored(url) == on_disk(local)
        assert not (tmp_path / "far" / "shards").exists()
        files = json.loads((tmp_path / "far" / "manifest.json").read_text())["files"]
        size = (local / "00001.tar").stat().st_size
        assert files["shards/00001.tar"].items() >= {"bytes": size, "url": f"{url}/00001.tar"}.items()
        for place in ("far", url):
            assert command("verify", place).stdout.endswith(f"{place}: no problems.\n")
            assert json.loads(command("inspect", place, "--json").stdout)["samples"] == COUNT
        loaded = index_shards(url)
        assert sum(loaded.counts) == COUNT
        assert [sample.key for sample in loaded.find(range(COUNT)) if isinstance(sample, StoredSample)] == [
            sample.pair.key for tar in find_shards(local) for sample in read_shard(tar)
        ]
        assert not (tmp_path / "cache" / "shard-index").exists()
        exported = command("export", "far", "--to", "webdataset", "--out", "again")
        assert exported.exit_code == 0, exported.stderr
        assert on_disk(tmp_path / "again") == on_disk(local)
        store, top = open_store(url)
        store.files.pipe_file(f"{top}/00001.tar", b"x" * size)
        assert any("00001.tar does not match the checksum" in problem for problem in verify(tmp_path / "far"))
        for wrong, message in (
            (f"s3://no-{BUCKET}/x", "bucket does not exist"),
            (f"s3://{BUCKET}/our birds+1", "not em"),
        ):
            with pytest.raises(StorageError, match=message):
                run(tmp_path / "other", settings(corpus, wrong))
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        s3fs.S3FileSystem.clear_instance_cache()
        with pytest.raises(StorageError, match="Check the credentials") as refused:
            run(tmp_path / "far", settings(corpus, url))
        assert SECRET not in str(refused.value)
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize("ends_at", range(1, 11))
def test_ended_at_any_file_the_store_has_whole_shards_and_the_next_run_sends_the_others(
    corpus: Path, local: Path, tmp_path: Path, ends_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a run: marker, four times shard and index, checksums, sizes."""
    put, names = RemoteStore.put, list[str]()

    def put_until(store: RemoteStore, path: Path, to: str, pauses: tuple[float, ...] = ()) -> None:
        if len(names) == ends_at:
            raise StorageError("the line is cut")
        names.append(path.name)
        put(store, path, to, pauses)

    with monkeypatch.context() as patched:
        patched.setattr(RemoteStore, "put", put_until)
        with pytest.raises(StorageError, match="cut"):
            run(tmp_path / "build", settings(corpus, MEMORY))
    wanted, before = on_disk(local), stored()
    assert before.items() <= wanted.items()
    assert "sizes.json" not in before
    with monkeypatch.context() as patched:
        names.clear()
        patched.setattr(RemoteStore, "put", put_until)
        ends_at = -1
        run(tmp_path / "build", settings(corpus, MEMORY))
    proven = {name.removesuffix(".index") for name in before if name.endswith(".index")}
    assert not proven & set(names)
    assert stored() == wanted
    assert not (tmp_path / "build" / "shards").exists()


def test_a_finished_build_sends_nothing_again_and_what_was_removed_comes_back(
    corpus: Path, local: Path, tmp_path: Path, tars_sent: list[str]
) -> None:
    config = settings(corpus, MEMORY)
    run(tmp_path / "build", config)
    assert sorted(tars_sent) == [f"0000{number}.tar" for number in range(4)]
    tars_sent.clear()
    run(tmp_path / "build", config)
    assert tars_sent == []
    store, top = open_store(MEMORY)
    for name in ("00002.tar", "sizes.json"):
        store.files.rm_file(f"{top}/{name}")
    run(tmp_path / "build", config)
    assert tars_sent == ["00002.tar"]
    assert stored() == on_disk(local)
    with pytest.raises(InputError, match=r"no \.tar in it\. Give its shards: memory:///bucket/birds"):
        index_shards(tmp_path / "build")
    assert f"{MEMORY}/{{00000..00003}}.tar" in (tmp_path / "build" / "README.md").read_text()


def test_a_changed_build_replaces_what_differs_and_removes_the_shards_that_are_too_many(
    corpus: Path, local: Path, tmp_path: Path, tars_sent: list[str]
) -> None:
    run(tmp_path / "build", settings(corpus, MEMORY, samples=10))
    assert len(stored()) == 14
    run(tmp_path / "build", settings(corpus, MEMORY))
    assert stored() == on_disk(local)
    tars_sent.clear()
    run(tmp_path / "build", settings(corpus, MEMORY, samples=16, seed=1))  # the seed shapes no text of this build
    assert tars_sent == []


def test_the_shards_of_an_unfinished_version_are_not_taken_for_those_of_the_one_before(
    corpus: Path, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captions of the same length make tars of the same size."""
    config = settings(corpus, MEMORY)
    run(tmp_path / "build", config)
    other = {**config, "input": {**config["input"], "source": "sceneX"}}
    finish = "pairwright.datasets.shards.stored_folder.StoredFolder.finish"
    with monkeypatch.context() as patched:
        patched.setattr(finish, lambda *_: (_ for _ in ()).throw(StorageError("the line is cut")))
        with pytest.raises(StorageError, match="cut"):
            run(tmp_path / "build", other)
    assert {name: len(data) for name, data in stored().items() if name.endswith(".tar")} == {
        path.name: path.stat().st_size for path in local.glob("*.tar")
    }
    run(tmp_path / "build", config)
    assert stored() == on_disk(local)


def test_a_build_that_had_its_shards_on_disk_moves_to_the_store_and_back(
    corpus: Path, local: Path, tmp_path: Path
) -> None:
    run(tmp_path / "build", settings(corpus))
    run(tmp_path / "build", settings(corpus, MEMORY))
    assert not (tmp_path / "build" / "shards").exists()
    assert stored() == on_disk(local)
    run(tmp_path / "build", settings(corpus))
    assert on_disk(tmp_path / "build" / "shards") == stored()
    assert verify(tmp_path / "build") == []


def test_an_increment_adds_its_shards_and_sends_no_old_one(corpus: Path, tmp_path: Path, tars_sent: list[str]) -> None:
    lines = (corpus / "text" / "captions.jsonl").read_text().splitlines(keepends=True)
    texts = tmp_path / "in.jsonl"
    for name, to in (("near", ""), ("far", MEMORY)):
        config = settings(corpus, to, incremental=True, input={"path": str(texts), "source": "scenes"})
        texts.write_text("".join(lines[:40]))
        run(tmp_path / name, config)
        tars_sent.clear()
        texts.write_text("".join(lines[:60]))
        manifest = run(tmp_path / name, config)
        assert manifest["shards"]["samples"] == COUNT
    assert tars_sent == ["00003.tar", "00004.tar"]
    assert stored() == on_disk(tmp_path / "near" / "shards")
    assert verify(tmp_path / "far") == []


def test_the_shards_of_an_increment_that_was_never_finished_are_replaced_or_removed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (corpus / "text" / "captions.jsonl").read_text().splitlines(keepends=True)
    texts = tmp_path / "in.jsonl"
    for name, to in (("near", ""), ("far", MEMORY)):
        config = settings(corpus, to, incremental=True, input={"path": str(texts), "source": "scenes"})
        texts.write_text("".join(lines[:40]))
        run(tmp_path / name, config)
        if to:
            texts.write_text("".join(lines[50:]))
            with monkeypatch.context() as patched:
                patched.setattr("pairwright.flows.build.finish_increment", lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    run(tmp_path / name, config)
            assert len(json.loads(stored()["sizes.json"])) == 5
        texts.write_text("".join(lines[:50]))
        run(tmp_path / name, config)
    assert stored() == on_disk(tmp_path / "near" / "shards")
    assert verify(tmp_path / "far") == []


def test_parts_send_each_shard_once(corpus: Path, local: Path, tmp_path: Path, tars_sent: list[str]) -> None:
    (tmp_path / "build.yaml").write_text(yaml.safe_dump(settings(corpus, MEMORY)))
    arguments = ["build", str(tmp_path / "build.yaml"), "--out", str(tmp_path / "build")]
    codes = [command(*arguments, "--part", part).exit_code for part in ("1/2", "2/2") * 6]
    assert codes[-1] == 0
    assert command(*arguments, "--finish").exit_code == 0
    assert len(tars_sent) == 4
    assert stored() == on_disk(local)


def test_two_builds_do_not_share_a_folder_unless_one_takes_the_place_of_the_other(
    corpus: Path, tmp_path: Path, tars_sent: list[str]
) -> None:
    run(tmp_path / "one", settings(corpus, MEMORY))
    before = stored()
    with pytest.raises(StorageError, match="another build directory"):
        run(tmp_path / "other", settings(corpus, f"{MEMORY}/", samples=3))
    assert stored() == before
    tars_sent.clear()
    (tmp_path / "other" / ".pairwright").write_text((tmp_path / "one" / ".pairwright").read_text())
    run(tmp_path / "other", settings(corpus, MEMORY))
    assert (stored(), tars_sent) == (before, [])


def test_a_store_that_cannot_be_opened_is_reported_before_the_work_begins(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fsspec.filesystem", lambda *_, **__: (_ for _ in ()).throw(ImportError("no s3fs")))
    heard = Heard()
    with pytest.raises(PairwrightError, match=r"s3:// needs s3fs\. Run: pip install 'pairwright\[remote\]'"):
        build(checked(settings(corpus, "s3://bucket/birds")), tmp_path / "build", heard, prefect=False)
    assert not heard.ran


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"to": "birds"}, r"shards\.to.*give a URL of s3://"),
        ({"to": "s3://bucket/{a,b}"}, "braces name several files"),
        ({"to": "s3://key:secret@bucket/a"}, "must have no user"),
        ({"to": "hf://owner/birds"}, r"shards\.to.*give a URL of s3://"),
    ],
)
def test_a_place_that_cannot_be_is_refused(corpus: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        checked(settings(corpus, changes["to"]))


def test_shards_in_a_store_are_not_published_as_well(corpus: Path) -> None:
    with pytest.raises(ConfigError, match="`to` under shards keeps none there"):
        checked(settings(corpus, MEMORY, publish="s3://bucket/birds"))
