"""Broken and incomplete samples: skipped and counted, the same with any workers and after a restart."""

import json
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from safetensors.torch import load_file  # noqa: E402 - behind the guard of torch

from pairwright.datasets.errors import InputError  # noqa: E402
from pairwright.datasets.shards.reading import read_shard  # noqa: E402
from pairwright.filters.evaluation.readers import read_hard_negatives  # noqa: E402
from pairwright.training.loading.batches import PairCollator, TripletCollator  # noqa: E402
from pairwright.training.metrics_log import LogRow  # noqa: E402
from tests.datasets.sample_builders import picture, samples  # noqa: E402
from tests.training.loading_cases import loader, tokenizer  # noqa: E402
from tests.training.training_cases import clip, run  # noqa: E402
from tests.training.training_cases import shards as scenes  # noqa: E402

Members = dict[str, bytes]


class Killed(Exception):  # noqa: N818 - it is what happens
    """The run is interrupted."""


class Given(NamedTuple):
    """A tokenizer of the trial's words, and scenes with a CLIP that knows theirs."""

    words: str
    scenes: str
    model: str


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Of 24 scenes."""
    folder = tmp_path_factory.mktemp("broken")
    return Given(tokenizer(folder), scenes(folder / "shards", count=24), clip(folder, count=24))


def write_tar(path: Path, rows: Iterable[tuple[str, Iterable[tuple[str, bytes]]]]) -> str:
    """Write samples (key, members in order) as a tar by Python's own writer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, members in rows:
            for ext, data in members:
                header = tarfile.TarInfo(f"{key}.{ext}")
                header.size = len(data)
                tar.addfile(header, BytesIO(data))
    return str(path)


def plain(count: int, change: Callable[[int, Members], Members] = lambda _, members: members) -> list[Any]:
    """Return samples of a foreign writer, changed one by one."""
    colours = ("red", "blue", "green")
    return [
        (f"{n:04d}", change(n, {"jpg": picture(colours[n % 3]), "txt": b"a red circle"}).items()) for n in range(count)
    ]


def changed(data: str, folder: Path, change: Callable[[int, Members], Members]) -> str:
    """Return a copy of shards whose samples went through ``change``, numbered through."""
    folder.mkdir()
    number = 0
    for path in sorted(Path(data).parent.glob("*.tar")):
        rows: dict[str, Members] = {}
        with tarfile.open(path) as tar:
            for member in tar:
                key, _, ext = member.name.partition(".")
                found = tar.extractfile(member)
                assert found is not None
                rows.setdefault(key, {})[ext] = found.read()
        made = []
        for key, members in rows.items():
            made.append((key, change(number, members).items()))
            number += 1
        write_tar(folder / path.name, made)
    return str(folder)


def broken(*numbers: int) -> Callable[[int, Members], Members]:
    """Return a change that cuts the images of these samples off."""
    return lambda number, members: members | {"jpg": members["jpg"][:200]} if number in numbers else members


def keys(batches: Iterable[Any]) -> list[str]:
    return [key for batch in batches for key in batch.keys]


def test_the_image_is_selected_by_its_extension_whatever_precedes_it(tmp_path: Path, given: Given) -> None:
    def labelled(number: int, members: Members) -> Members:
        return {"cls": str(number).encode(), "JPEG": members["jpg"], "seg.png": picture(), "txt": members["txt"]}

    data = write_tar(tmp_path / "00000.tar", plain(6, labelled))
    (batch,) = loader(data, PairCollator(), given.words, batch_size=6, window=0)
    assert batch.images.mean(dim=(2, 3)).argmax(dim=1).tolist() == [0, 2, 1, 0, 2, 1]


def test_a_label_member_does_not_hide_the_image(tmp_path: Path, given: Given) -> None:
    data = changed(given.scenes, tmp_path / "labelled", lambda number, members: {"cls": b"%d" % number, **members})
    for one, other in zip(
        read_shard(Path(data) / "00000.tar"), read_shard(Path(given.scenes).parent / "00000.tar"), strict=True
    ):
        assert (one.image, one.image_ext) == (other.image, "jpg")
    assert read_hard_negatives([data]).rows[0].image.endswith(".jpg")
    assert run("clip", data, given.model, tmp_path / "run").samples == 24


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_that_does_not_decode_is_skipped_in_its_batch_only(tmp_path: Path, given: Given, workers: int) -> None:
    bad = {3, 7, 8}
    data = write_tar(tmp_path / "00000.tar", plain(12, broken(*bad)))
    one = loader(data, PairCollator(), given.words, workers=workers, window=0)
    assert [batch.keys for batch in one] == [
        ["0000", "0001", "0002"],
        ["0004", "0005", "0006"],
        ["0009", "0010", "0011"],
    ]
    assert {place.rpartition("::")[2]: found.reason for place, found in one.skipped.items()} == {
        f"{number:04d}": "bad_image" for number in bad
    }


def test_other_rows_are_the_same_as_without_a_broken_sample(tmp_path: Path, given: Given) -> None:
    whole = loader(write_tar(tmp_path / "a" / "0.tar", plain(8)), PairCollator(), given.words)
    torn = loader(write_tar(tmp_path / "b" / "0.tar", plain(8, broken(5))), PairCollator(), given.words)
    for one, other in zip(whole, torn, strict=True):
        kept = [place for place, key in enumerate(one.keys) if key != "0005"]
        assert [one.keys[place] for place in kept] == other.keys
        assert torch.equal(one.images[kept], other.images)


def test_a_batch_of_broken_samples_alone_takes_those_of_the_next_step(tmp_path: Path, given: Given) -> None:
    data = write_tar(tmp_path / "00000.tar", plain(4, broken(1)))
    batches = [batch.keys for batch in loader(data, PairCollator(), given.words, batch_size=1, window=0)]
    assert batches == [["0000"], ["0002"], ["0002"], ["0003"]]


def test_data_of_broken_images_alone_is_refused(tmp_path: Path, given: Given) -> None:
    data = write_tar(tmp_path / "00000.tar", plain(8, broken(*range(8))))
    with pytest.raises(InputError, match=r"0000: no usable sample .* the first: does not decode"):
        list(loader(data, PairCollator(), given.words, window=0))


FLAWS: dict[str, Callable[[Members], Members]] = {
    "missing_image": lambda members: {"txt": members["txt"]},
    "missing_caption": lambda members: {"jpg": members["jpg"]},
    "several_images": lambda members: {**members, "1.jpg": picture()},
    "duplicate_member": lambda members: {**members, "png": picture(image_format="PNG")},
}


@pytest.mark.parametrize("reason", FLAWS)
def test_incomplete_samples_are_found_before_the_first_step(tmp_path: Path, given: Given, reason: str) -> None:
    data = write_tar(
        tmp_path / "00000.tar",
        plain(9, lambda number, members: FLAWS[reason](members) if number in {2, 6} else members),
    )
    one = loader(data, PairCollator(), given.words)
    assert one.index.left_out == {reason: 2}
    assert one.notes()[0] == f"2 samples skipped: {reason.replace('_', ' ')}."
    assert sorted(keys(one)) == [f"{number:04d}" for number in range(9) if number not in {2, 6}]
    with pytest.raises(
        InputError, match=rf"00000\.tar::0002: 2 of 9 samples are rejected as {reason}.*--on-error skip"
    ) as caught:
        loader(data, PairCollator(), given.words, on_error="stop")
    assert "--image-root" not in str(caught.value)  # which `train` has not


@pytest.mark.parametrize(
    "broken",
    [
        b'{"conversations": [',
        b"[]",
        b'"text"',
        b"null",
        b'{"hard_negatives": "a dog"}',
        b'{"hard_negatives": [5]}',
        b'{"hard_negatives": [{"text": "a dog"}]}',
        b'{"conversations": [{"from": "human", "value": "what ?"}]}',
        b'{"conversations": [{"type": "brief", "turns": [{"from": "human", "value": "what ?"}]}]}',
    ],
)
def test_broken_json_is_skipped_whether_it_is_read_at_the_start_or_later(
    tmp_path: Path, given: Given, broken: bytes
) -> None:
    def torn(number: int, members: Members) -> Members:
        body = json.dumps(
            {
                "conversations": [
                    {
                        "type": "brief",
                        "turns": [{"role": "human", "text": "what ?"}, {"role": "assistant", "text": "a circle"}],
                    }
                ]
            }
        ).encode()
        return {**members, "json": broken if number == 3 else body}

    data = write_tar(tmp_path / "00000.tar", plain(8, torn))
    later = loader(data, PairCollator(), given.words, window=0)
    assert len(keys(later)) == 7
    assert [found.reason for found in later.skipped.values()] == ["broken_json"]
    early = loader(data, TripletCollator(), given.words)
    assert early.index.left_out == {"broken_json": 1}
    assert len(keys(early)) == 7
    with pytest.raises(InputError, match=r"::0003: broken_json"):
        list(loader(data, PairCollator(), given.words, on_error="stop"))


def test_files_that_belong_to_no_sample_are_ignored(tmp_path: Path, given: Given) -> None:
    rows = plain(3)
    data = write_tar(tmp_path / "00000.tar", rows)
    with tarfile.open(data, "a") as tar:
        tar.addfile(tarfile.TarInfo("README"), BytesIO())
    assert len(keys(loader(data, PairCollator(), given.words))) == 3


def weights(out: Path) -> dict[str, Any]:
    return load_file(out / "model" / "model.safetensors")


def test_a_resumed_run_with_broken_images_ends_with_the_same_weights_and_lists_them(
    tmp_path: Path, given: Given
) -> None:
    data = changed(given.scenes, tmp_path / "shards", broken(2, 11, 17))
    changes = ("schedule.steps=8", "save_every=3", "log_every=1")
    said = list[str]()
    whole = run("clip", data, given.model, tmp_path / "whole", *changes, on_message=said.append)
    assert whole.skipped == {"bad_image": 3}
    assert sum(line.startswith("skipped ") and "does not decode" in line for line in said) == 3
    listed = [json.loads(line) for line in (tmp_path / "whole" / "skipped.jsonl").read_text().splitlines()]
    assert len(listed) == 3
    assert all(row["sample"].startswith("0000") and row["why"].startswith("bad_image: ") for row in listed)

    def kill(row: LogRow) -> None:
        if row["step"] == 5:
            raise Killed

    with pytest.raises(Killed):
        run("clip", data, given.model, tmp_path / "parts", *changes, on_row=kill)
    parts = run("clip", data, given.model, tmp_path / "parts", *changes, "batches.workers=1", resume=True)
    assert parts.skipped == whole.skipped
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_that_stopped_at_a_broken_image_resumes_with_on_error_skip(tmp_path: Path, given: Given) -> None:
    data = changed(given.scenes, tmp_path / "shards", broken(20))
    changes = ("schedule.steps=6", "save_every=1", "batches.window=0")
    with pytest.raises(InputError, match=r"bad_image: does not decode .* skip such rows: --on-error skip"):
        run("clip", data, given.model, tmp_path / "run", *changes, on_error="stop")
    report = run("clip", data, given.model, tmp_path / "run", *changes, resume=True)
    assert (report.steps, report.skipped) == (6, {"bad_image": 1})


def test_a_text_only_sample_among_those_with_images_is_reported_before_a_run(tmp_path: Path, given: Given) -> None:
    bare = {4, 5}
    data = changed(
        given.scenes,
        tmp_path / "mixed",
        lambda number, members: {ext: data for ext, data in members.items() if ext != "jpg" or number not in bare},
    )
    said = list[str]()
    report = run("clip", data, given.model, tmp_path / "run", on_message=said.append)
    assert (report.samples, report.left_out) == (22, {"missing_image": 2})
    assert said[0] == "2 samples skipped: missing image."
    with pytest.raises(InputError, match=r"2 of 24 samples are rejected as missing_image"):
        run("clip", data, given.model, tmp_path / "other", on_error="stop")
    assert not (tmp_path / "other").exists()


def test_an_empty_image_is_a_broken_one(tmp_path: Path, given: Given) -> None:
    from pairwright.datasets.shards.writing import write_shards

    rows = [replace(sample, image=b"") if number == 1 else sample for number, sample in enumerate(samples(4))]
    one = loader(write_shards(rows, tmp_path).pattern, PairCollator(), given.words)
    assert len(keys(one)) == 3
    assert [found.reason for found in one.skipped.values()] == ["bad_image"]
