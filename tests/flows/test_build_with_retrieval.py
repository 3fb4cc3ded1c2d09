"""A build from a pool of embeddings: asked against images, nothing of the evaluation set in it, the images fetched."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pairwright.datasets.colorshape.corpus import make_sample, sample_to_pair
from pairwright.datasets.errors import ConfigError
from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.flows.build import build as build_with_prefect
from tests.flows.conftest import checked
from tests.image_variants import as_jpeg, draw, resize
from tests.indexes.embedding_folder import write_part
from tests.servers.images import ImageServer, image_server

build = partial(build_with_prefect, prefect=False)
POOL, DIM = 24, 24
DRAWN = (3, 12)  # rows whose images are no uniform ones
GONE = 5  # the row whose image is not there any more


@pytest.fixture(scope="module")
def server() -> Iterator[ImageServer]:
    with image_server() as running:
        yield running


@pytest.fixture(scope="module")
def pool(server: ImageServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip-retrieval folder of two parts; the image vector of row n is axis n, its text vector another one."""
    folder = tmp_path_factory.mktemp("pool") / "laion"
    axes = np.eye(DIM, dtype=np.float16)
    captions = [f"{sample_to_pair(make_sample(0, n)).caption}, number {n}" for n in range(POOL)]
    paths = {GONE: "status/404", **{n: f"drawn/{n}" for n in DRAWN}}
    urls = [f"{server.url}/{paths.get(n, f'good/{n}.jpg')}?{n}" for n in range(POOL)]
    for name, rows in (("0", slice(0, 10)), ("1", slice(10, POOL))):
        vectors = {"img_emb": axes[rows], "text_emb": np.roll(axes, 7, axis=1)[rows]}
        write_part(folder, name, captions[rows], vectors, url=urls[rows])
    np.save(folder.parent / "queries.npy", axes[[2, GONE, 11]] + 0.01 * axes[[3, 6, 12]])
    (folder.parent / "queries.txt").write_text("the second\nthe lost\nthe eleventh\n")
    (folder.parent / "val.txt").write_text(f"{captions[11].upper()}\n")
    return folder


def settings(pool: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "react",
        "input": {"path": str(pool)},
        "index": {"encoder": "precomputed", "modalities": ["text", "image"]},
        "retrieve": {
            "queries": str(pool.parent / "queries.txt"),
            "query_vectors": str(pool.parent / "queries.npy"),
            "k": 2,
            "mode": "t2i",
            "exclude": [str(pool.parent / "val.txt")],
        },
        "fetch": {"allow_loopback": True, "retries": 0},
        "negatives": {},
        "workers": 1,
        **changes,
    }


@pytest.fixture(scope="module")
def built(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    pytest.importorskip("img2dataset", reason="img2dataset is not installed (the extra `download`)")
    out = tmp_path_factory.mktemp("built") / "react"
    return out, build(checked(settings(pool)), out)


def rows_of(out: Path) -> list[int]:
    """Return the rows of the pool that came into the shards."""
    numbers = row_numbers(out)
    return sorted(numbers[sample.pair.key] for shard in find_shards(out / "shards") for sample in read_shard(shard))


def row_numbers(out: Path) -> dict[str, int]:
    """Return the row of the pool that each key was read from."""
    pairs = PAIRS.read_frame(out / "pairs" / "00000.parquet")
    return {key: json.loads(meta)["embedding_row"] for key, meta in pairs.select("key", "meta").iter_rows()}


def test_queries_find_the_images_that_their_vectors_point_at(built: tuple[Path, dict[str, Any]]) -> None:
    """The text vectors point elsewhere: only a search among images gives these; the excluded one is replaced."""
    hits = pl.read_parquet(built[0] / "retrieval" / "hits.parquet")
    numbers = row_numbers(built[0])
    found = {text: [numbers[key] for key in part["key"]] for (text,), part in hits.group_by("text")}
    assert found["the second"] == [2, 3]
    assert found["the lost"] == [GONE, 6]
    assert found["the eleventh"][0] == 12
    assert 11 not in found["the eleventh"]
    assert set(hits["mode"]) == {"t2i"}


def test_shards_hold_the_fetched_images_and_every_other_pair_says_why(built: tuple[Path, dict[str, Any]]) -> None:
    out, manifest = built
    stages = manifest["stages"]
    assert stages["retrieve"]["rejected"]["excluded"] == 1
    assert stages["fetch"]["rejected"] == {"not_found": 1}
    for stage in stages.values():
        assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values())
    rows = rows_of(out)
    assert {2, 3, 6, 12} <= set(rows)
    assert GONE not in rows
    assert 11 not in rows
    assert "Not covered" in (out / "retrieval" / "coverage.html").read_text()
    assert (out / "rejected" / "fetch-all.parquet").is_file()


def test_a_second_build_asks_the_server_for_nothing(
    built: tuple[Path, dict[str, Any]], pool: Path, server: ImageServer
) -> None:
    asked = len(server.requests)
    before = {path.name: path.read_bytes() for path in (built[0] / "shards").iterdir()}
    changed = settings(pool, positives={})
    build(checked(changed), built[0])
    assert len(server.requests) == asked
    build(checked(settings(pool)), built[0])
    assert before == {path.name: path.read_bytes() for path in (built[0] / "shards").iterdir()}


def test_an_image_that_joins_the_evaluation_set_leaves_the_next_build(pool: Path, tmp_path: Path) -> None:
    """Its content is known only since it was fetched, so retrieval finds what it found before."""
    pytest.importorskip("img2dataset", reason="img2dataset is not installed (the extra `download`)")
    val, out = tmp_path / "val.txt", tmp_path / "out"
    val.write_text("0" * 64 + "\n")
    data = settings(pool)
    data["retrieve"]["exclude"] = [str(val)]
    build(checked(data), out)
    assert 2 in rows_of(out)
    fetched = PAIRS.read(out / "downloads" / "fetched.parquet")
    numbers = row_numbers(out)
    (known,) = [json.loads(pair.meta)["sha256"] for pair in fetched if numbers[pair.key] == 2]
    val.write_text(f"{val.read_text()}{known}\n")
    manifest = build(checked(data), out)
    assert manifest["stages"]["fetch"]["rejected"]["excluded"] == 1
    assert 2 not in rows_of(out)


def test_one_score_for_two_modes_is_refused_before_anything_runs(pool: Path) -> None:
    data = settings(pool)
    data["retrieve"] = {**data["retrieve"], "mode": "both", "min_score": 0.3}
    with pytest.raises(ConfigError, match=r"t2i: 0\.2"):
        checked(data)


def test_copies_of_evaluation_images_are_excluded_after_the_fetch(
    built: tuple[Path, dict[str, Any]], pool: Path, tmp_path: Path
) -> None:
    shutil.copytree(built[0], tmp_path / "out")  # with the images that it fetched
    (tmp_path / "val").mkdir()
    for row in DRAWN:
        as_jpeg(resize(draw(row), 0.5)).save(tmp_path / "val" / f"{row}.png")
    config = settings(pool)
    config["retrieve"] |= {"exclude_images": [str(tmp_path / "val")]}
    manifest = build(checked(config), tmp_path / "out")
    assert manifest["stages"]["fetch"]["rejected"] == {"copy_of_evaluation_image": 2, "not_found": 1}
    assert not set(DRAWN) & set(rows_of(tmp_path / "out"))
