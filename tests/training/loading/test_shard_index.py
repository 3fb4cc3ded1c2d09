"""Indexes beside shards, and shards in a store: the same batches, whatever is read."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from typer.testing import CliRunner  # noqa: E402 - behind the guard of torch

from pairwright.cli.main import app  # noqa: E402
from pairwright.datasets.errors import InputError, StorageError  # noqa: E402
from pairwright.datasets.shards.index import decode_index, index_path, scan_samples  # noqa: E402
from pairwright.training.loading.batches import PairCollator, TripletCollator  # noqa: E402
from pairwright.training.loading.shard_index import SampleSelection, index_shards  # noqa: E402
from tests.servers.s3 import BUCKET, s3_server  # noqa: E402
from tests.training import training_cases  # noqa: E402
from tests.training.loading.test_loader import same  # noqa: E402
from tests.training.loading_cases import loader, shards, tokenizer  # noqa: E402
from tests.training.training_cases import SMALL  # noqa: E402

COLLATORS = [
    PairCollator(negatives=1, positives=1),
    TripletCollator(),
]


class Given(NamedTuple):
    """Shards, a copy of them without indexes, and a tokenizer."""

    data: str
    bare: str
    words: str


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Of 23 samples in five shards."""
    folder, other = tmp_path_factory.mktemp("indexed"), tmp_path_factory.mktemp("bare")
    data, bare = shards(folder), shards(other)
    for path in (other / "shards").glob("*.index"):
        path.unlink()
    return Given(data, bare, tokenizer(folder))


@pytest.fixture(scope="module")
def s3(given: Given) -> Iterator[Any]:
    """A bucket with the shards: ``shards/``, ``bare/`` without indexes, and ``published/`` as a build publishes them."""
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    with s3_server():
        files = s3fs.S3FileSystem(use_listings_cache=False)
        for source, to in ((given.data, "shards"), (given.bare, "bare"), (given.data, "published/versions/1/shards")):
            for path in Path(source).parent.iterdir():
                files.put_file(str(path), f"{BUCKET}/{to}/{path.name}")
        files.pipe_file(f"{BUCKET}/published/current.json", json.dumps({"versions": ["1"]}).encode())
        yield files


def test_each_shard_has_an_index_of_its_samples(given: Given) -> None:
    for tar in sorted(Path(given.data).parent.glob("*.tar")):
        written = decode_index(index_path(tar).read_bytes())
        scanned = scan_samples(tar)
        assert written is not None
        assert written.samples() == scanned.samples()
        assert (written.size, len(written.sha256)) == (tar.stat().st_size, 64)


@pytest.mark.parametrize("recipe", COLLATORS, ids=lambda recipe: type(recipe).__name__)
def test_batches_are_the_same_with_and_without_indexes(given: Given, recipe: Any) -> None:
    indexed, scanned = (loader(data, recipe, given.words) for data in (given.data, given.bare))
    assert indexed.index.left_out == scanned.index.left_out
    assert indexed.lacking == scanned.lacking
    assert indexed.state_dict() == scanned.state_dict()
    assert all(same(*both) for both in zip(indexed, scanned, strict=True))


@pytest.mark.parametrize("required", [True, False])
def test_samples_and_their_units_are_selected_alike_with_and_without_indexes(given: Given, *, required: bool) -> None:
    selection = SampleSelection(
        lambda body: "" if body.get("conversations") else "no_conversations",
        required,
        lambda body: 2 * len(body.get("conversations", ())),
    )
    indexed, scanned = (index_shards(data, selection) for data in (given.data, given.bare))
    assert indexed.places() == scanned.places()
    assert sum(indexed.counts) > 0
    assert (indexed.left_out, indexed.lacking) == (scanned.left_out, scanned.lacking)
    assert bool(indexed.left_out) == required


def test_with_an_index_no_header_of_the_tar_is_read_at_the_start(tmp_path: Path, given: Given) -> None:
    path = Path(shards(tmp_path, count=4, in_each=100))
    path.write_bytes(bytes(path.stat().st_size))
    one = loader(str(path), PairCollator(), given.words)
    assert one.index.counts == (4,)
    with pytest.raises(StorageError, match="damaged, or was changed"):
        list(one)


def test_an_index_that_does_not_fit_its_shard_is_ignored(tmp_path: Path, given: Given) -> None:
    few, many = Path(shards(tmp_path / "few", 4, 100)), Path(shards(tmp_path / "many", 9, 100))
    index_path(many).write_bytes(index_path(few).read_bytes())
    assert loader(str(many), PairCollator(), given.words).index.counts == (9,)
    index_path(many).write_bytes(b"no index")
    assert loader(str(many), PairCollator(), given.words).index.counts == (9,)


def test_an_index_with_another_checksum_than_its_folder_lists_is_ignored(tmp_path: Path, given: Given) -> None:
    path = Path(shards(tmp_path, 4, 100))
    sums = path.parent / "SHA256SUMS"
    sums.write_text("0" * 64 + "  00000.tar\n")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(InputError, match="no samples"):
        loader(str(path), PairCollator(), given.words)


def test_a_scanned_shard_is_scanned_once(tmp_path: Path, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIRWRIGHT_CACHE", str(tmp_path / "cache"))
    first = loader(given.bare, PairCollator(), given.words).state_dict()
    kept = sorted((tmp_path / "cache" / "shard-index").iterdir())
    assert len(kept) == 5
    before = [path.stat().st_mtime_ns for path in kept]
    assert loader(given.bare, PairCollator(), given.words).state_dict() == first
    assert [path.stat().st_mtime_ns for path in kept] == before


@pytest.mark.parametrize(
    ("place", "workers"), [("shards", 2), ("shards/{00000..00004}.tar", 0), ("bare", 0), ("published", 0)]
)
def test_shards_in_a_bucket_give_the_batches_of_the_disk(s3: Any, given: Given, place: str, workers: int) -> None:
    recipe = PairCollator(negatives=1)
    near = loader(given.data, recipe, given.words)
    far = loader(f"s3://{BUCKET}/{place}", recipe, given.words, workers=workers)
    assert far.state_dict() == near.state_dict()
    assert all(same(*both) for both in zip(far, near, strict=True))


def test_a_run_that_began_on_disk_resumes_from_the_bucket(s3: Any, given: Given) -> None:
    near = loader(given.data, PairCollator(), given.words)
    batches = list(near)
    far = loader(f"s3://{BUCKET}/shards", PairCollator(), given.words)
    far.load_state_dict({**near.state_dict(), "epoch": 0, "step": 3})
    assert all(same(*both) for both in zip(far, batches[3:], strict=True))


def test_a_run_from_a_bucket_ends_with_the_weights_of_one_from_disk(s3: Any, tmp_path: Path) -> None:
    near, model = training_cases.shards(tmp_path / "shards", count=20), training_cases.clip(tmp_path, count=20)
    for path in (tmp_path / "shards").iterdir():
        s3.put_file(str(path), f"{BUCKET}/scenes/{path.name}")
    asked = ["train", "negclip", "--model", model, "--json", *(part for each in SMALL for part in ("--set", each))]
    for data, out in ((near, "near"), (f"s3://{BUCKET}/scenes", "far")):
        ran = CliRunner().invoke(app, [*asked, "--data", data, "--out", str(tmp_path / out)])
        assert ran.exit_code == 0, ran.stderr
    weights = [next((tmp_path / out).rglob("model.safetensors")).read_bytes() for out in ("near", "far")]
    assert weights[0] == weights[1]


def test_a_shard_that_is_replaced_in_the_bucket_is_reported(s3: Any, tmp_path: Path, given: Given) -> None:
    path = Path(shards(tmp_path, 6, 100))
    s3.put_file(str(path), f"{BUCKET}/replaced/00000.tar")
    one = loader(f"s3://{BUCKET}/replaced", PairCollator(), given.words)
    s3.pipe_file(f"{BUCKET}/replaced/00000.tar", path.read_bytes()[:5000])
    with pytest.raises(StorageError, match=r"replaced/00000\.tar"):
        list(one)


@pytest.mark.parametrize("place", ["nothing", "shards/{00000..00009}.tar", "empty"])
def test_missing_shards_of_a_bucket_are_reported_at_the_start(s3: Any, given: Given, place: str) -> None:
    s3.pipe_file(f"{BUCKET}/empty/notes.txt", b"no shard")
    with pytest.raises(InputError, match=r"no such file|no \.tar"):
        loader(f"s3://{BUCKET}/{place}", PairCollator(), given.words)


def test_tars_of_other_writers_are_read_from_a_bucket(s3: Any, tmp_path: Path, given: Given) -> None:
    deep = "a/very/" + "long/" * 30
    with (
        tarfile.open(Path(given.data).parent / "00000.tar") as ours,
        tarfile.open(tmp_path / "00000.tar", "w", format=tarfile.PAX_FORMAT) as theirs,
    ):
        for member in ours:
            data = ours.extractfile(member)
            member.name = deep + member.name
            theirs.addfile(member, data)
    s3.put_file(str(tmp_path / "00000.tar"), f"{BUCKET}/pax/00000.tar")
    near, far = (loader(data, PairCollator(), given.words) for data in (str(tmp_path), f"s3://{BUCKET}/pax"))
    assert [batch.keys for batch in near] == [batch.keys for batch in far]
    assert all(key.startswith(deep) for batch in near for key in batch.keys)
