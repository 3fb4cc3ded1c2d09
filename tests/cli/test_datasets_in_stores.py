"""``pairwright verify`` and ``inspect`` read datasets in a bucket in place: nothing is copied, and each byte is read once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from pairwright.flows.build import build
from tests.flows.conftest import checked
from tests.servers.s3 import BUCKET, Traffic, s3_server

SMALL = 60_000  # bytes of listings, headers and metadata


class Bucket(NamedTuple):
    """A bucket with a build, and the local build."""

    files: Any
    traffic: Traffic
    local: Path

    def run(self, *arguments: str) -> tuple[Any, int]:
        """Run a command; return its result and how many bytes the store sent."""
        self.traffic.sent = 0
        done = CliRunner().invoke(app, [*arguments])
        return done, self.traffic.sent


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    folder = tmp_path_factory.mktemp("bucket")
    write_corpus(folder / "in", CorpusSpec(pairs=40, shard_size=40))
    config = {"name": "birds", "input": {"path": str(folder / "in")}, "shards": {"samples": 10}, "workers": 1}
    with s3_server() as traffic:
        build(checked(config | {"publish": f"s3://{BUCKET}/published"}), folder / "build", prefect=False)
        files = s3fs.S3FileSystem(use_listings_cache=False)
        for path in (folder / "build").rglob("*"):
            if path.is_file():
                files.put_file(str(path), f"{BUCKET}/whole/{path.relative_to(folder / 'build').as_posix()}")
        yield Bucket(files, traffic, folder / "build")
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("place", "described"),
    [
        ("whole/shards", "4 shards"),
        ("whole/shards/{00000..00003}.tar", "4 shards"),
        ("published", "4 shards of version 1 of the build birds"),
        ("whole", "version 1 of the build birds"),
    ],
)
def test_a_dataset_is_verified_and_inspected_in_place(bucket: Bucket, cache: Path, place: str, described: str) -> None:
    url, tars = f"s3://{BUCKET}/{place}", sum(tar.stat().st_size for tar in (bucket.local / "shards").glob("*.tar"))
    files = [path for path in bucket.local.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) if place == "whole" else tars
    done, sent = bucket.run("verify", url)
    assert done.stdout == f"{url}: no problems.\n"
    assert f"{url}: {described}" in done.stderr
    assert tars < sent < size + SMALL
    far, sent = bucket.run("inspect", url, "--json")
    near, _ = bucket.run("inspect", str(bucket.local / "shards"), "--json")
    assert json.loads(far.stdout) == json.loads(near.stdout)
    assert sent < tars + (bucket.local / "shards" / "00000.tar").stat().st_size + SMALL  # the sample it shows
    assert not cache.exists()


def test_a_damaged_shard_in_a_bucket_is_found(bucket: Bucket, cache: Path) -> None:
    data = (bucket.local / "shards" / "00000.tar").read_bytes()
    bucket.files.pipe_file(f"{BUCKET}/cut/00000.tar", data[:-700])
    bucket.files.pipe_file(f"{BUCKET}/other/00000.tar", data.replace(b"the ", b"one "))
    for name in ("00000.tar.index", "sizes.json", "SHA256SUMS"):
        bucket.files.put_file(str(bucket.local / "shards" / name), f"{BUCKET}/other/{name}")
    done, _ = bucket.run("verify", f"s3://{BUCKET}/cut/00000.tar")
    assert (done.exit_code, "ends" in done.stdout) == (1, True)
    done, _ = bucket.run("verify", f"s3://{BUCKET}/other")
    assert "00000.tar.index does not describe 00000.tar" in done.stdout
    assert "00000.tar does not match the checksum in SHA256SUMS" in done.stdout
    assert not cache.exists()


def test_what_is_no_dataset_is_refused_without_reading_it(bucket: Bucket, cache: Path) -> None:
    bucket.files.pipe_file(f"{BUCKET}/table/train.parquet", b"PAR1" + bytes(10 * SMALL) + b"PAR1")
    for place, says in (
        ("table/train.parquet", "not a dataset"),
        ("table", "not a build, and no .tar in it (1 .parquet)"),
        ("nothing", "no such file or folder"),
    ):
        done, sent = bucket.run("verify", f"s3://{BUCKET}/{place}")
        assert done.exit_code == 1
        assert says in str(done.exception)
        assert sent < SMALL
    assert not cache.exists()
