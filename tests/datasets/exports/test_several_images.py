"""Exports of conversations about several images: every image, at its place, or a counted rejection."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError
from pairwright.datasets.exports.formats import EXPORTS, export
from pairwright.datasets.exports.writing import ExportOptions
from pairwright.datasets.image_marks import split_at_marks
from pairwright.datasets.images.recoding import Recoding
from pairwright.datasets.mixtures.conversation_files import open_conversation_files
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.sources import SourceOptions, find_conversation_source
from pairwright.datasets.records import IMAGE_TOKEN, Pair
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample, SampleImage
from pairwright.datasets.shards.writing import write_shards
from pairwright.datasets.verification.checks import verify
from pairwright.datasets.verification.llava_json import check_llava
from tests.datasets.sample_builders import conversation, pair, picture, sample
from tests.example_counts import examples

COLOURS = ("red", "green", "blue")
ASKED = ("Image 1: <image> Image 2: <image>. Which is <video>?", "The first.", "<image>\nAnd this?", "It is blue.")


@pytest.fixture
def source(tmp_path: Path) -> SampleSource:
    """Return a sample of three images, one shown in the second question, one of one image, and one of none."""
    paths = []
    for colour in COLOURS:
        paths.append(tmp_path / f"{colour}.jpg")
        paths[-1].write_bytes(picture(colour))
    several, single, text = pair(0, "", str(paths[0])), pair(1, "", str(paths[1])), pair(2)
    further = tuple(SampleImage(str(path)) for path in paths[1:])
    samples = [
        Sample(several, (conversation(several, *ASKED),), further_images=further),
        Sample(single, (conversation(single, "What?", "Green."),)),
        Sample(text, (conversation(text, "Hi?", "Hello."),)),
    ]
    return SampleSource(lambda: iter(samples))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_llava_has_a_list_of_images_and_a_token_for_each(source: SampleSource, tmp_path: Path) -> None:
    done = export(source, "llava", tmp_path / "l.json", ExportOptions(image_root=tmp_path))
    several, single, text = json.loads((tmp_path / "l.json").read_text())
    assert several["image"] == [f"{colour}.jpg" for colour in COLOURS]
    assert [turn["value"] for turn in several["conversations"]] == list(ASKED)
    assert (single["image"], "image" in text) == ("green.jpg", False)
    assert done.details["missing_images"] == 0
    assert check_llava(tmp_path / "l.json", tmp_path) == []


def test_a_missing_second_image_of_a_llava_row_is_counted(source: SampleSource, tmp_path: Path) -> None:
    (tmp_path / "blue.jpg").unlink()
    done = export(source, "llava", tmp_path / "l.json", ExportOptions(image_root=tmp_path))
    assert (done.rows, done.details["missing_images"]) == (3, 1)


def test_openai_messages_have_each_image_as_a_part_at_its_place(source: SampleSource, tmp_path: Path) -> None:
    export(source, "openai", tmp_path / "o.jsonl")
    said = [message["content"] for message in lines(tmp_path / "o.jsonl")[0]["messages"]]
    assert [[part["type"] for part in content] for content in said[::2]] == [
        ["text", "image_url", "text", "image_url", "text"],
        ["image_url", "text"],
    ]
    urls = [part["image_url"]["url"] for content in said[::2] for part in content if part["type"] == "image_url"]
    assert len({url for url in urls if url.startswith("data:image/jpeg;base64,")}) == 3


def test_a_url_beside_a_file_is_kept_by_openai_and_refused_where_bytes_are_needed(
    source: SampleSource, tmp_path: Path
) -> None:
    of = next(source.samples())
    mixed = Sample(of.pair, of.annotations, further_images=(SampleImage("https://a.org/x.jpg"), of.images[1]))
    given = SampleSource(lambda: iter([mixed]))
    export(given, "openai", tmp_path / "o.jsonl")
    urls = [part["image_url"]["url"] for part in lines(tmp_path / "o.jsonl")[0]["messages"][0]["content"][1::2]]
    assert [url[:10] for url in urls] == ["data:image", "https://a."]
    with pytest.raises(InputError, match=r"https://a\.org/x\.jpg"):
        export(given, "trl", tmp_path / "trl")


def test_trl_has_all_images_and_a_part_for_each(source: SampleSource, tmp_path: Path) -> None:
    export(source, "trl", tmp_path / "trl")
    several, single, text = pl.read_parquet(tmp_path / "trl/data/train-00000.parquet").to_dicts()
    assert [image["bytes"] for image in several["images"]] == [picture(colour) for colour in COLOURS]
    assert [len(row["images"]) for row in (single, text)] == [1, 0]
    first, _, second, _ = (message["content"] for message in several["messages"])
    assert [part["text"] for part in first] == ["Image 1: ", None, " Image 2: ", None, ". Which is < video >?"]
    assert [part["type"] for part in second] == ["image", "text"]


@pytest.mark.parametrize("to", ["llamafactory", "ms-swift"])
def test_trainer_folders_have_a_file_for_each_image(source: SampleSource, tmp_path: Path, to: str) -> None:
    export(source, to, tmp_path / "out")
    several, single, text = lines(tmp_path / "out/sft.jsonl")
    assert [(tmp_path / "out" / name).read_bytes() for name in several["images"]] == [picture(each) for each in COLOURS]
    assert [len(row["images"]) for row in (single, text)] == [1, 0]
    assert [message["content"].count("<image>") for message in several["messages"]] == [2, 0, 1, 0]


def test_shards_hold_all_images_and_can_be_written_again(source: SampleSource, tmp_path: Path) -> None:
    several = SampleSource(lambda: (one for one in source.samples() if one.further_images))
    export(several, "webdataset", tmp_path / "one")
    assert verify(tmp_path / "one") == []
    (stored,) = read_shard(tmp_path / "one" / "00000.tar")
    assert [image.data for image in stored.images] == [picture(colour) for colour in COLOURS]
    assert stored.locators[2].endswith(f"00000.tar::{stored.pair.key}.2.jpg")
    export(tmp_path / "one", "webdataset", tmp_path / "two", ExportOptions(recoding=Recoding("png")))
    assert verify(tmp_path / "two") == []
    (recoded,) = read_shard(tmp_path / "two" / "00000.tar")
    assert [image.ext for image in recoded.images] == ["png"] * 3
    assert [turn.text for turn in recoded.annotations[0].turns] == list(ASKED)


def test_samples_of_one_and_of_several_images_never_share_a_shard(source: SampleSource, tmp_path: Path) -> None:
    with_images = [one for one in source.samples() if one.images]
    export(SampleSource(lambda: iter(with_images)), "webdataset", tmp_path / "s")
    assert [[len(one.images) for one in read_shard(tmp_path / "s" / f"0000{n}.tar")] for n in (0, 1)] == [[1], [3]]
    assert verify(tmp_path / "s") == []


def test_images_of_two_formats_in_one_sample_are_refused(tmp_path: Path) -> None:
    one = sample(0, image=picture())
    mixed = Sample(one.pair, one.annotations, (), one.image, "jpg", further_images=(SampleImage("x", b"x", "png"),))
    with pytest.raises(InputError, match=r"jpg and png in one dataset.*--image-format"):
        write_shards([mixed], tmp_path)


@pytest.mark.parametrize(
    "to", sorted(name for name, each in EXPORTS.built_in.items() if not each.several_images and name != "rationales")
)
def test_other_formats_omit_and_count_samples_of_several_images(source: SampleSource, tmp_path: Path, to: str) -> None:
    with_images = [one for one in source.samples() if one.images]
    export(SampleSource(lambda: iter(with_images)), "webdataset", tmp_path / "shards")
    format_ = EXPORTS.get(to)
    done = export(tmp_path / "shards", to, tmp_path / f"out{format_.suffixes[0]}")
    assert done.details["several_images"] == 1
    if to in {"hf", "croissant"}:  # whose shards are not copied then
        assert [len(one.images) for one in read_shard(tmp_path / "out" / "data" / "00000.tar")] == [1]


parts = st.sampled_from(["Which is it?", "Image 1: ", " and ", "é", "a\nb"])
questions = st.lists(st.one_of(parts, st.just(IMAGE_TOKEN)), min_size=1, max_size=6).filter(
    lambda found: any(part != IMAGE_TOKEN and part.strip() for part in found)
)


@given(st.lists(questions, min_size=1, max_size=3).filter(lambda each: sum(q.count(IMAGE_TOKEN) for q in each) > 1))
@settings(max_examples=examples(40), deadline=None)
def test_rows_are_read_back_from_every_layout_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, asked: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    marks = sum(question.count(IMAGE_TOKEN) for question in asked)
    said = [text for question in asked for text in ("".join(question).strip(), "Yes.")]
    for to, name, root in (("openai", "o.jsonl", "https://example.org"), ("llava", "l.json", str(folder))):
        images = tuple(f"{root}/{number}.jpg" for number in range(marks))
        of = Pair(key=pair(0).key, caption="", image=images[0])
        row = Sample(of, (conversation(of, *said),), further_images=tuple(map(SampleImage, images[1:])))
        export(SampleSource(partial(iter, [row])), to, folder / name, ExportOptions(image_root=folder))
        ((_, found),) = find_conversation_source(str(folder / name), "", SourceOptions()).conversations()
        assert isinstance(found, Conversation)
        assert found.images == images
        assert list(map(split_at_marks, found.texts)) == list(map(split_at_marks, said))
    read = next(open_conversation_files(folder / "l.json")[0].samples())
    assert (read.locators, [turn.text for turn in read.annotations[0].turns]) == (images, said)


@pytest.mark.parametrize("to", ["ms-swift", "llamafactory"])
def test_preferences_keep_the_places_of_several_images_and_show_all_of_them(tmp_path: Path, to: str) -> None:
    for colour in COLOURS:
        (tmp_path / f"{colour}.jpg").write_bytes(picture(colour))
    asked = pair(0, "", str(tmp_path / "red.jpg"))
    turns = ("<image>\nIs it red?", "Yes.", "<image>\nDo they differ?", "Yes.")
    further = (SampleImage(str(tmp_path / "blue.jpg")),)
    made = Sample(asked, (conversation(asked, *turns),), further_images=further)
    export(SampleSource(lambda: iter([made])), to, tmp_path / "out")
    (preference,) = lines(tmp_path / "out/dpo.jsonl")  # the first question shows one image of two
    said = [message["content"] for message in preference["messages"]]
    assert said[::2] == list(turns[::2])
    assert len(preference["images"]) == 2
