"""Local copies of inputs in an object store."""

import gzip
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.exports import webdataset
from pairwright.datasets.exports.formats import DEFAULT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.remote.local_copies import LocalCopies, fetch_local_copy
from pairwright.datasets.remote.object_store import RemoteStore, open_store
from pairwright.datasets.remote.output import keep_file, upload_on_success
from pairwright.datasets.shards.sample_source import SampleSource
from tests.datasets.sample_builders import samples
from tests.servers.s3 import BUCKET, SECRET, s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    with s3_server():
        yield s3fs.S3FileSystem(use_listings_cache=False)


def captions(urls: str) -> list[str]:
    return [pair.caption for batch in read_pairs(ReadOptions(urls)) for pair in batch.pairs]


def test_a_file_a_pattern_and_a_folder_in_a_bucket_are_read_as_on_the_disk(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path))
    for number in range(3):
        s3.pipe_file(f"{BUCKET}/rows/{number:02d}.jsonl", b'{"caption": "a red cup %d"}\n' % number)
    s3.pipe_file(f"{BUCKET}/rows/.hidden.jsonl", b"no row")
    expected = [f"a red cup {number}" for number in range(3)]
    assert captions(f"s3://{BUCKET}/rows/00.jsonl") == expected[:1]
    assert captions(f"s3://{BUCKET}/rows/{{00..02}}.jsonl") == expected
    assert captions(f"s3://{BUCKET}/rows/") == expected


def test_keys_do_not_depend_on_the_folder_of_the_copy(s3: Any, tmp_path: Path) -> None:
    s3.pipe_file(f"{BUCKET}/one/birds.jsonl", b'{"caption": "a bird"}\n')
    (tmp_path / "birds.jsonl").write_bytes(b'{"caption": "a bird"}\n')
    copies = [fetch_local_copy(f"s3://{BUCKET}/one/birds.jsonl", tmp_path / name) for name in "ab"]
    keys = {
        pair.key
        for path in (*copies, str(tmp_path / "birds.jsonl"))
        for batch in read_pairs(ReadOptions(path))
        for pair in batch.pairs
    }
    assert len(keys) == 1


def test_only_changed_files_are_copied_again(s3: Any, tmp_path: Path) -> None:
    url = f"s3://{BUCKET}/again/a.txt"
    s3.pipe_file(f"{BUCKET}/again/a.txt", b"one")
    path = Path(fetch_local_copy(url, tmp_path))
    first = path.stat()
    fetch_local_copy(url, tmp_path)
    assert path.stat().st_ino == first.st_ino
    s3.pipe_file(f"{BUCKET}/again/a.txt", b"other")
    fetch_local_copy(url, tmp_path)
    assert path.read_bytes() == b"other"
    path.unlink()
    fetch_local_copy(url, tmp_path)
    assert path.stat().st_mtime_ns % 10**9 == 0 or path.stat().st_mtime_ns == first.st_mtime_ns


def test_files_removed_from_a_folder_are_removed_from_its_copy(s3: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        s3.pipe_file(f"{BUCKET}/folder/{name}.txt", b"x")
    fetch_local_copy(f"s3://{BUCKET}/folder", tmp_path)
    s3.rm_file(f"{BUCKET}/folder/a.txt")
    copy = Path(fetch_local_copy(f"s3://{BUCKET}/folder", tmp_path))
    assert [path.name for path in copy.iterdir()] == ["b.txt"]


@pytest.mark.parametrize("url", [f"s3://{BUCKET}/none.jsonl", f"s3://{BUCKET}/rows/{{8..9}}.jsonl"])
def test_a_missing_file_is_named_with_bucket_and_key(s3: Any, url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"s3://{BUCKET}/(none|rows/8)\.jsonl: no such file or folder\. Check bucket"):
        fetch_local_copy(url, tmp_path)


def test_missing_bucket_and_server_are_errors_with_a_fix_and_without_the_key(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    with pytest.raises(StorageError, match=r"s3://nobodys-bucket/a: .*bucket does not exist\. Check bucket and key"):
        fetch_local_copy("s3://nobodys-bucket/a", tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:9/{SECRET}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # between several it waits
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(StorageError, match=rf"s3://{BUCKET}/a: .* Check the network and AWS_ENDPOINT_URL") as caught:
        fetch_local_copy(f"s3://{BUCKET}/a", tmp_path)
    assert SECRET not in str(caught.value)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize("url", ["s3://me:hush@pool/a", "s3://pool/a?token=hush", "s3://pool/../a", "memory://"])
def test_a_url_with_a_secret_or_without_a_bucket_is_refused_without_showing_the_secret(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        fetch_local_copy(url, tmp_path)
    assert "hush" not in str(caught.value)


def test_a_file_url_is_read_where_it_is_and_memory_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"caption": "a cup"}\n'))
    assert fetch_local_copy(f"file://{tmp_path}/a.jsonl.gz") == str(tmp_path / "a.jsonl.gz")
    store, path = open_store("memory://pool/b.jsonl")
    store.put(tmp_path / "a.jsonl.gz", path)
    copy = Path(fetch_local_copy("memory://pool/b.jsonl", tmp_path / "copies"))
    assert copy.read_bytes() == (tmp_path / "a.jsonl.gz").read_bytes()


@pytest.fixture
def pool() -> Iterator[Any]:
    """Three files of 1,000 bytes in a store."""
    store, _ = open_store("memory://pool")
    for name in "abc":
        store.files.pipe_file(f"/pool/{name}.jsonl", name.encode() * 1000)
    yield store
    store.files.store.clear()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.jsonl"))


def test_copies_stay_below_a_limit_and_the_longest_unused_ones_go_first(pool: Any, tmp_path: Path) -> None:
    for name in "ab":
        LocalCopies(tmp_path, 2500, "it").fetch(f"memory://pool/{name}.jsonl")
    for name, used in (("a", 200), ("b", 100)):
        path = next(tmp_path.rglob(f"{name}.jsonl"))
        os.utime(path, ns=(used, path.stat().st_mtime_ns))
    LocalCopies(tmp_path, 2500, "it").fetch("memory://pool/c.jsonl")
    assert names_in(tmp_path) == ["a.jsonl", "c.jsonl"]
    copies = LocalCopies(tmp_path, 2500, "it")
    copies.fetch("memory://pool/a.jsonl")  # used again: it is younger than c now
    copies.fetch("memory://pool/b.jsonl")
    assert names_in(tmp_path) == ["a.jsonl", "b.jsonl"]


def test_copies_that_are_needed_together_and_exceed_the_limit_are_refused(pool: Any, tmp_path: Path) -> None:
    copies = LocalCopies(tmp_path, 2500, "`copies_gib` in the config")
    for name in "ab":
        copies.fetch(f"memory://pool/{name}.jsonl")
    with pytest.raises(StorageError, match=r"3,000 bytes are needed, and 2,500 are allowed\. Raise `copies_gib`"):
        copies.fetch("memory://pool/c.jsonl")
    with pytest.raises(StorageError, match="3,000 bytes are needed"):
        LocalCopies(tmp_path / "other", 2500, "it").fetch("memory://pool/{a,b,c}.jsonl")
    assert names_in(tmp_path) == ["a.jsonl", "b.jsonl"]


def test_copies_in_use_by_another_process_are_kept(pool: Any, tmp_path: Path) -> None:
    other = LocalCopies(tmp_path, 2500, "it")
    for name in "ab":
        other.fetch(f"memory://pool/{name}.jsonl")
    with pytest.raises(StorageError, match="another process uses the existing ones"):
        LocalCopies(tmp_path, 2500, "PAIRWRIGHT_CACHE_GIB").fetch("memory://pool/c.jsonl")
    assert names_in(tmp_path) == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("given", ["much", "0", "-1", "inf", "nan"])
def test_an_invalid_limit_is_refused(given: str, pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE_GIB", given)
    with pytest.raises(UsageError, match=f"PAIRWRIGHT_CACHE_GIB is '{given}'"):
        fetch_local_copy("memory://pool/a.jsonl")


def test_copies_are_not_written_through_a_symbolic_link(pool: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    (tmp_path / "copies" / "memory").mkdir(parents=True)
    (tmp_path / "copies" / "memory" / "pool").symlink_to(tmp_path / "mine")
    with pytest.raises(StorageError, match="is a symbolic link"):
        fetch_local_copy("memory://pool", tmp_path / "copies")
    assert (tmp_path / "mine" / "precious.txt").read_text() == "mine"


def test_an_export_into_a_store_equals_the_local_one_and_sends_metadata_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, order = RemoteStore.put, []

    def noted(store: RemoteStore, local: Path, path: str) -> None:
        order.append(path.rpartition("/")[2])
        put(store, local, path)

    monkeypatch.setattr(RemoteStore, "put", noted)
    for text in ("first", "again"):
        order.clear()
        with upload_on_success(Path("memory://pool/birds")) as output:
            folder, sent = output.path, output.sent
            folder.mkdir()
            for name in ("00000.tar", "00001.tar", "README.md", "sizes.json"):
                (folder / name).write_text(text + name)
        assert order[2:] == ["README.md", "sizes.json"]
        assert sorted(sent) == [f"memory:///pool/birds/{name}" for name in sorted(order)]
    store, _ = open_store("memory://pool")
    assert store.files.cat_file("/pool/birds/sizes.json") == b"againsizes.json"


def test_shards_are_sent_while_the_next_ones_are_written_and_no_more_than_a_few_are_on_disk(
    pool: Any, tmp_path: Path
) -> None:
    source = SampleSource(lambda: iter(samples(12)))
    with upload_on_success(tmp_path / "near") as output:
        webdataset.write(source, output.path, replace(DEFAULT_OPTIONS, max_samples=1))
    on_disk = []
    with upload_on_success(Path("memory://pool/sent")) as output:

        def finish(path: Path, metadata: Sequence[str]) -> None:
            assert output.finish is not None
            output.finish(path, metadata)
            on_disk.append(len(list(path.parent.glob("*.tar"))))

        webdataset.write(source, output.path, replace(DEFAULT_OPTIONS, max_samples=1, finish=finish))
    store, _ = open_store("memory://pool")
    sent = {Path(each.path).name: store.files.cat_file(each.path) for each in store.find("/pool/sent")}
    assert sent == {path.name: path.read_bytes() for path in (tmp_path / "near").iterdir()}
    assert len(output.sent) == len(sent)
    assert max(on_disk) <= 3


def test_an_early_upload_that_fails_fails_the_export_and_leaves_no_sizes(
    pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = open_store("memory://pool")
    store.files.pipe_file("/pool/failed/sizes.json", b"{}")

    def refused(*_: object) -> None:
        raise StorageError("refused")

    monkeypatch.setattr(RemoteStore, "put", refused)

    def export() -> None:
        with upload_on_success(Path("memory://pool/failed")) as output:
            options = replace(DEFAULT_OPTIONS, max_samples=1, finish=output.finish or keep_file)
            webdataset.write(SampleSource(lambda: iter(samples(12))), output.path, options)

    with pytest.raises(StorageError, match="refused"):
        export()
    assert not store.find("/pool/failed")


def test_a_local_path_is_unchanged() -> None:
    assert fetch_local_copy("rows/{0..9}.jsonl") == "rows/{0..9}.jsonl"
    assert not os.path.exists("s3:")  # noqa: PTH110 - the name that a path would make of a URL
