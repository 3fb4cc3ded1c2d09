"""Shard loader: each sample once, the same batches with any workers, exact resuming."""

import io
import json
import multiprocessing
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer's tokenizers are those of transformers")

import numpy as np  # noqa: E402 - behind the guard of torch
import webdataset  # noqa: E402

from pairwright.datasets.errors import InputError, MissingResourceError, StorageError, UsageError  # noqa: E402
from pairwright.datasets.shards.writing import write_shards  # noqa: E402
from pairwright.training.loading.batches import PairCollator, TripletCollator  # noqa: E402
from pairwright.training.loading.shard_index import StoredSample, index_shards  # noqa: E402
from pairwright.training.models.checkpoints import check_model_limits  # noqa: E402
from tests.datasets.sample_builders import conversation, pair, picture, samples  # noqa: E402
from tests.training.loading_cases import SIDE, loader, shards, tokenizer  # noqa: E402


class Given(NamedTuple):
    """Shards and a tokenizer."""

    data: str
    words: str


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Of 23 samples in five shards."""
    folder = tmp_path_factory.mktemp("loading")
    return Given(shards(folder), tokenizer(folder))


def same(one: Any, other: Any) -> bool:
    """Say whether two batches are equal to the last bit."""
    return all(
        torch.equal(getattr(one, name), getattr(other, name))
        if isinstance(getattr(one, name), torch.Tensor)
        else np.array_equal(getattr(one, name), getattr(other, name))
        for name in one._fields
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_over_all_ranks_sees_every_sample_once_in_as_many_steps_on_each_rank(
    given: Given, workers: int
) -> None:
    ranks = [loader(given.data, PairCollator(), given.words, ranks=3, rank=rank, workers=workers) for rank in range(3)]
    assert {len(one) for one in ranks} == {2}
    keys = Counter(key for one in ranks for batch in one for key in batch.keys)
    assert keys == Counter(sample.pair.key for sample in samples(23))


def test_batches_are_the_same_with_any_number_of_workers_through_several_epochs(given: Given) -> None:
    alone, helped = (loader(given.data, PairCollator(negatives=1), given.words, workers=workers) for workers in (0, 2))
    for _ in range(2):
        pairs = list(zip(alone, helped, strict=True))
        assert len(pairs) == 6
        assert all(same(one, other) for one, other in pairs)


def test_two_ranks_together_have_the_batches_of_one(given: Given) -> None:
    one = loader(given.data, PairCollator(), given.words, batch_size=6, ends="repeat")
    halves = [
        loader(given.data, PairCollator(), given.words, batch_size=3, ends="repeat", ranks=2, rank=rank)
        for rank in (0, 1)
    ]
    for whole, left, right in zip(one, *halves, strict=True):
        assert whole.keys == left.keys + right.keys
        assert torch.equal(whole.images, torch.cat([left.images, right.images]))


@pytest.mark.parametrize(
    ("workers", "stop"),
    [(0, 1), (0, 5), (0, 6), (0, 8), (2, 5), *(pytest.param(2, stop, marks=pytest.mark.slow) for stop in (1, 6, 8))],
)
def test_a_resumed_loader_continues_with_the_next_batch(given: Given, workers: int, stop: int) -> None:
    def run(one: Any, steps: int) -> list[Any]:
        taken: list[Any] = []
        while True:
            for batch in one:
                taken.append(batch)
                if len(taken) == steps:
                    return taken

    undisturbed = run(loader(given.data, PairCollator(negatives=1), given.words), 10)
    first = loader(given.data, PairCollator(negatives=1), given.words, workers=workers)
    run(first, stop)
    state = json.loads(json.dumps(first.state_dict()))
    second = loader(given.data, PairCollator(negatives=1), given.words, workers=workers)
    second.load_state_dict(state)
    assert all(same(*both) for both in zip(run(second, 10 - stop), undisturbed[stop:], strict=True))


def test_an_interrupted_loop_continues_in_the_same_process(given: Given) -> None:
    one = loader(given.data, PairCollator(), given.words, workers=2)
    whole = [batch.keys for batch in loader(given.data, PairCollator(), given.words)]
    first = next(iter(one)).keys
    assert [first, *(batch.keys for batch in one)] == whole
    assert (one.epoch, one.step) == (1, 0)


def test_a_state_of_other_data_or_of_another_order_is_refused(given: Given) -> None:
    state = loader(given.data, PairCollator(), given.words).state_dict()
    for other in ({"seed": 8}, {"batch_size": 5}, {"window": 3}, {"ends": "drop"}):
        with pytest.raises(UsageError, match=next(iter(other)).replace("batch_size", "together")):
            loader(given.data, PairCollator(), given.words, **other).load_state_dict(state)
    halved = loader(given.data, PairCollator(), given.words, batch_size=2, ranks=2)
    halved.load_state_dict(state)


def test_each_row_has_its_own_picture(given: Given) -> None:
    colour = {sample.pair.key: number % 3 for number, sample in enumerate(samples(23))}
    for batch in loader(given.data, PairCollator(), given.words):
        assert batch.images.dtype == torch.float32
        assert batch.images.shape == (len(batch.keys), 3, SIDE, SIDE)
        brightest = batch.images.mean(dim=(2, 3)).argmax(dim=1).tolist()
        assert brightest == [(0, 2, 1)[colour[key]] for key in batch.keys]


def test_webdatasets_own_stream_holds_what_the_loader_reads(given: Given) -> None:
    index = index_shards(given.data)
    found = [sample for sample in index.find(range(23)) if isinstance(sample, StoredSample)]
    ours = [(sample.key, sample.caption, sample.image, dict(sample.body)) for sample in found]
    stream = webdataset.WebDataset(given.data, shardshuffle=False)
    theirs = [(row["__key__"], row["txt"].decode(), row["jpg"], json.loads(row["json"])) for row in stream]
    assert ours == theirs


def test_shards_that_webdataset_wrote_itself_are_read_too(tmp_path: Path, given: Given) -> None:
    rows = [
        {
            "__key__": f"{'a long folder name/' * 8}{n:09d}",
            "jpg": picture(),
            "txt": f"a red circle {n}",
            "json": {"n": n},
        }
        for n in range(5)
    ]
    with webdataset.TarWriter(str(tmp_path / "00000.tar")) as sink:
        for row in rows:
            sink.write(row)
    batches = list(loader(str(tmp_path), PairCollator(), given.words, batch_size=2))
    assert Counter(key for batch in batches for key in batch.keys) == Counter(row["__key__"] for row in rows)
    assert batches[0].texts.shape[1] == 1


def test_one_shard_is_enough_for_many_ranks_and_workers(tmp_path: Path, given: Given) -> None:
    data = shards(tmp_path, count=8, in_each=100)
    ranks = [
        loader(data, PairCollator(), given.words, batch_size=1, ranks=2, rank=rank, workers=2) for rank in range(2)
    ]
    assert len({key for one in ranks for batch in one for key in batch.keys}) == 8


def test_samples_without_what_a_collator_needs_are_skipped_and_counted(given: Given) -> None:
    one = loader(given.data, TripletCollator(), given.words)
    assert one.index.left_out == {"no_triplets": 11}
    assert {key for batch in one for key in batch.keys} == {s.pair.key for s in samples(23)[::2]}


def test_missing_shards_are_reported_at_the_start(tmp_path: Path, given: Given) -> None:
    with pytest.raises(InputError, match=r"no such file|missing"):
        loader(str(tmp_path / "{00000..00004}.tar"), PairCollator(), given.words)


def test_shards_without_usable_samples_are_refused_with_what_is_missing(tmp_path: Path, given: Given) -> None:
    bare = write_shards(samples(4)[1::2], tmp_path).pattern
    with pytest.raises(InputError, match=r"2: no triplets.* section `conversations`"):
        loader(bare, TripletCollator(), given.words)
    for recipe, words in ((PairCollator(negatives=1), "`negatives`"), (PairCollator(positives=1), "`positives`")):
        with pytest.raises(InputError, match=words):
            loader(bare, recipe, given.words)


def test_shards_without_images_are_refused_by_collators_that_need_them(tmp_path: Path, given: Given) -> None:
    from pairwright.datasets.shards.samples import Sample

    data = write_shards([Sample(pair(0), (conversation(pair(0)),))], tmp_path).pattern
    with pytest.raises(InputError, match="shards with images"):
        loader(data, PairCollator(), given.words)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_named_in_one_line_from_any_worker(tmp_path: Path, given: Given, workers: int) -> None:
    from dataclasses import replace

    broken = [replace(sample, image=b"no image") for sample in samples(2)]
    data, before = write_shards(broken, tmp_path).pattern, set(multiprocessing.active_children())
    with pytest.raises(InputError, match=f"{broken[0].pair.key}: bad_image: not an image") as caught:
        list(loader(data, PairCollator(), given.words, workers=workers, window=0, on_error="stop"))
    assert "\n" not in str(caught.value)
    del caught  # with the error its workers go: torch waits seconds for those that the garbage collector finds
    assert set(multiprocessing.active_children()) <= before


def test_damaged_and_empty_shards_are_found_at_the_start(tmp_path: Path, given: Given) -> None:
    path = Path(shards(tmp_path, count=4, in_each=100))
    whole = path.read_bytes()
    for torn in (whole[:-1024], whole[: len(whole) // 2], b"", b"\x1f\x8b" + whole, b"no tar at all" * 100):
        path.write_bytes(torn)
        with pytest.raises(StorageError, match=r"damaged|empty"):
            loader(str(path), PairCollator(), given.words)


def test_a_shard_that_changed_after_indexing_is_reported(tmp_path: Path, given: Given) -> None:
    path = Path(shards(tmp_path, count=4, in_each=100))
    one = loader(str(path), PairCollator(), given.words)
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StorageError, match=r"00000\.tar"):
        list(one)


def test_a_tar_without_samples_is_refused(tmp_path: Path, given: Given) -> None:
    with tarfile.open(fileobj=io.BytesIO(), mode="w") as archive, (tmp_path / "00000.tar").open("wb") as out:
        archive.close()
        out.write(bytes(10240))
    with pytest.raises(InputError, match="no samples"):
        loader(str(tmp_path), PairCollator(), given.words)


def test_a_tokenizer_that_is_not_there_is_reported_in_one_line(tmp_path: Path, given: Given) -> None:
    with pytest.raises(MissingResourceError, match="none: no such folder") as caught:
        loader(given.data, PairCollator(), str(tmp_path / "none"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"workers": -1}, {"ahead": 0}, {"rank": 1}, {"rank": 2, "ranks": 2}, {"batch_size": 0}]
)
def test_options_out_of_range_are_refused(given: Given, wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        loader(given.data, PairCollator(), given.words, **wrong)


def test_image_size_and_text_length_are_checked_against_the_model() -> None:
    from transformers import CLIPConfig

    config = CLIPConfig(vision_config={"image_size": 32, "patch_size": 8}, text_config={"max_position_embeddings": 77})
    check_model_limits(config, size=32, max_tokens=77)
    with pytest.raises(UsageError, match=r"images of 224 pixels, .* tower reads 32"):
        check_model_limits(config, size=224, max_tokens=77)
    with pytest.raises(UsageError, match="up to 80 tokens, but the text tower reads 77"):
        check_model_limits(config, size=32, max_tokens=80)
