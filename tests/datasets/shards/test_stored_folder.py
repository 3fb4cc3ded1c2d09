"""A folder of shards in a store: claimed by one build, each shard complete or absent, nothing sent twice."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import StorageError
from pairwright.datasets.remote.object_store import RemoteStore, open_store
from pairwright.datasets.shards import stored_folder
from pairwright.datasets.shards.layout import ShardSet
from pairwright.datasets.shards.stored_folder import OWNER_FILE, StoredFolder
from pairwright.datasets.shards.writing import finish_shards, write_shards
from tests.datasets.sample_builders import samples

URL = "memory:///bucket/birds"


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    store, _ = open_store(URL)
    yield
    store.files.store.clear()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are sent and removed, in order."""
    names: list[str] = []
    put, remove = RemoteStore.put, RemoteStore.remove

    def noted_put(store: RemoteStore, local: Path, path: str, pauses: tuple[float, ...] = ()) -> None:
        names.append(local.name)
        put(store, local, path, pauses)

    def noted_remove(store: RemoteStore, path: str) -> None:
        names.append(f"-{path.rpartition('/')[2]}")
        remove(store, path)

    monkeypatch.setattr(RemoteStore, "put", noted_put)
    monkeypatch.setattr(RemoteStore, "remove", noted_remove)
    return names


def shards_in(folder: Path, count: int = 6, size: int = 2) -> ShardSet:
    return write_shards(samples(count), folder, max_samples=size)


def send(folder: Path, shards: ShardSet) -> None:
    for shard in shards.shards:
        StoredFolder(URL).send(folder / shard.name)
    StoredFolder(URL).finish(folder, shards.shards)


def stored() -> dict[str, bytes]:
    store, top = open_store(URL)
    return {each.path.removeprefix(f"{top}/"): store.files.cat_file(each.path) for each in store.find(top)}


def test_a_folder_has_the_local_files_and_is_not_sent_again(tmp_path: Path, sent: list[str]) -> None:
    shards = shards_in(tmp_path)
    send(tmp_path, shards)
    assert stored() == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sent[:3] == ["00000.tar", "00000.tar.index", "00001.tar"]
    assert sent[-2:] == ["SHA256SUMS", "sizes.json"]
    sent.clear()
    send(tmp_path, shards)
    assert sent == []


def test_before_a_shard_changes_all_that_describes_it_is_removed(tmp_path: Path, sent: list[str]) -> None:
    send(tmp_path / "one", shards_in(tmp_path / "one"))
    changed = shards_in(tmp_path / "other", size=3)
    sent.clear()
    StoredFolder(URL).send(tmp_path / "other" / "00001.tar")
    assert sent == ["-sizes.json", "-SHA256SUMS", "-00001.tar.index", "00001.tar", "00001.tar.index"]
    send(tmp_path / "other", changed)
    assert stored() == {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}  # 00002 is gone


def test_shards_of_an_earlier_larger_set_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    send(tmp_path, shards_in(tmp_path))
    store, top = open_store(URL)
    for name in ("notes.txt", "inner/00009.tar"):
        store.files.pipe_file(f"{top}/{name}", b"mine")
    (tmp_path / "00002.tar").unlink()
    (tmp_path / "00002.tar.index").unlink()
    StoredFolder(URL).finish(tmp_path, finish_shards(tmp_path).shards)
    assert stored().keys() == {*(path.name for path in tmp_path.iterdir()), "notes.txt", "inner/00009.tar"}
    assert json.loads(stored()["sizes.json"]) == {"00000.tar": 2, "00001.tar": 2}


def test_files_that_are_gone_or_changed_are_found(tmp_path: Path) -> None:
    send(tmp_path, shards_in(tmp_path))
    files = {path.name: (path.stat().st_size, hash_file(path)) for path in tmp_path.iterdir()}
    assert StoredFolder(URL).changed(files) == set()
    store, top = open_store(URL)
    store.files.rm_file(f"{top}/00001.tar")
    index = stored()["00002.tar.index"]
    store.files.pipe_file(f"{top}/00002.tar.index", index[:-1] + bytes([index[-1] ^ 1]))
    assert StoredFolder(URL).changed(files) == {"00001.tar", "00002.tar.index"}


def test_a_shard_that_is_removed_during_the_build_is_an_error(tmp_path: Path) -> None:
    shards = shards_in(tmp_path)
    send(tmp_path, shards)
    store, top = open_store(URL)
    store.files.rm_file(f"{top}/00001.tar")
    with pytest.raises(StorageError, match=r"birds/00001\.tar: was removed or replaced during the build"):
        StoredFolder(URL).finish(tmp_path, shards.shards)


def test_a_folder_belongs_to_the_build_that_claimed_it_first() -> None:
    StoredFolder(URL).claim("birds", "1234")
    StoredFolder(URL).claim("birds", "1234")
    with pytest.raises(
        StorageError, match=r"shards of another build directory \(birds\).* its id 1234 into the file \.pairwright"
    ):
        StoredFolder(URL).claim("fish", "5678")
    assert json.loads(stored()[OWNER_FILE]) == {"build": "birds", "id": "1234"}


def test_a_folder_with_other_files_is_refused_and_a_sibling_is_no_reason() -> None:
    store, top = open_store(URL)
    store.files.pipe_file(f"{top}2/00000.tar", b"of the neighbour")
    StoredFolder(URL).claim("birds", "1234")
    with pytest.raises(StorageError, match="not empty, and not a folder of a build's shards"):
        StoredFolder(f"{URL}2").claim("birds", "1234")


class Flaky:
    """Sends of a store that fail a number of times."""

    def __init__(self, failures: int, put: object, error: Exception) -> None:
        self.failures, self.put, self.error, self.calls = failures, put, error, 0

    def __call__(self, *args: object) -> object:  # noqa: D102 - as of fsspec
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return self.put(*args)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("failures", "error", "calls"),
    [(3, ConnectionResetError("reset"), 4), (4, ConnectionResetError("reset"), 4), (1, PermissionError("denied"), 1)],
)
def test_a_store_that_cannot_be_reached_is_tried_again_and_a_refusal_is_not(
    tmp_path: Path, failures: int, error: Exception, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards_in(tmp_path)
    monkeypatch.setattr(stored_folder, "_PAUSES", (0.0, 0.0, 0.0))
    store, _ = open_store(URL)
    flaky = Flaky(failures, store.files.put_file, error)
    monkeypatch.setattr(store.files, "put_file", flaky, raising=False)
    if failures == 3:
        StoredFolder(URL).send(tmp_path / "00000.tar")
        assert set(stored()) == {"00000.tar", "00000.tar.index"}
    else:
        with pytest.raises(StorageError, match=r"birds/00000\.tar: .*(start again|permissions)"):
            StoredFolder(URL).send(tmp_path / "00000.tar")
        assert flaky.calls == calls
        assert not stored()
