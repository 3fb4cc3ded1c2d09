"""ColorShape scenes, images, captions and corpus files."""

import io
import json
import re
import tarfile
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from pairwright.datasets.colorshape.captions import generate_captions
from pairwright.datasets.colorshape.corpus import (
    CorpusSpec,
    list_box_labels,
    make_sample,
    read_scene,
    sample_to_pair,
    write_corpus,
)
from pairwright.datasets.colorshape.rendering import encode_jpeg, render_scene
from pairwright.datasets.colorshape.scenes import (
    COLOURS,
    SHAPES,
    box_distance,
    make_scene,
    mirror_scene,
    scene_from_dict,
    scene_to_dict,
)
from pairwright.datasets.colorshape.toy_set import TOY_COLOURS, TOY_SHAPES, generate_toy_set, write_toy_set
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.progress import ProgressReport, use_listener

seeds = st.integers(0, 2**32)
indexes = st.integers(0, 10**7)


@settings(deadline=None)
@given(seeds, indexes)
def test_a_scene_is_a_function_of_seed_and_index(seed: int, index: int) -> None:
    assert make_scene(seed, index) == make_scene(seed, index)
    assert make_scene(seed, index) != make_scene(seed, index + 1)


@settings(deadline=None)
@given(seeds, indexes)
def test_objects_lie_in_the_picture_and_never_overlap(seed: int, index: int) -> None:
    scene = make_scene(seed, index)
    assert 2 <= len(scene.objects) <= 4
    for item in scene.objects:
        x1, y1, x2, y2 = item.box
        assert 0 <= x1 < x2 <= 1
        assert 0 <= y1 < y2 <= 1
        assert x2 - x1 == pytest.approx(y2 - y1)
    assert all(box_distance(a, b) > 0 for a, b in combinations(scene.objects, 2))


@settings(deadline=None)
@given(seeds, indexes)
def test_a_scene_survives_json(seed: int, index: int) -> None:
    scene = make_scene(seed, index)
    assert scene_from_dict(json.loads(json.dumps(scene_to_dict(scene)))) == scene


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("box", [0.5, 0.5, 0.4, 0.6]),
        ("shape", "blob"),
        ("size", "vast"),
        ("colour", "puce"),
        ("rgb", [1, 2]),
        ("rgb", [1, 2, 999]),
    ],
)
def test_an_impossible_scene_is_refused_in_one_line(member: str, value: object) -> None:
    wrong = scene_to_dict(make_scene(0, 0))
    wrong["objects"][0][member] = value
    with pytest.raises(InputError, match="not a ColorShape scene") as caught:
        scene_from_dict(wrong)
    assert "\n" not in str(caught.value)


def test_a_mirror_turns_twice_into_the_same_scene() -> None:
    for index in range(50):
        scene = make_scene(1, index)
        assert mirror_scene(mirror_scene(scene)) == scene
        assert mirror_scene(scene).objects[0].centre[0] == pytest.approx(1 - scene.objects[0].centre[0])


def test_sizes_are_far_apart_and_colours_and_shapes_all_occur() -> None:
    scenes = [make_scene(2, index) for index in range(400)]
    objects = [item for scene in scenes for item in scene.objects]
    sides = {size: [o.box[2] - o.box[0] for o in objects if o.size == size] for size in ("small", "large")}
    assert min(sides["large"]) > 1.9 * max(sides["small"])
    assert {item.colour for item in objects} == set(COLOURS)
    assert {item.shape for item in objects} == set(SHAPES)


def test_some_scenes_have_twins_and_none_has_only_twins() -> None:
    kinds = [Counter((o.colour, o.shape, o.size) for o in make_scene(3, i).objects) for i in range(400)]
    assert sum(max(kind.values()) > 1 for kind in kinds) > 40
    assert all(len(kind) > 1 for kind in kinds)


def test_the_pixel_at_each_centre_has_the_object_colour_also_after_jpeg() -> None:
    for index in range(40):
        scene = make_scene(4, index)
        picture = Image.open(io.BytesIO(encode_jpeg(scene))).convert("RGB")
        assert picture.size == (scene.width, scene.height)
        for item in scene.objects:
            x, y = (round(part * 224) for part in item.centre)
            pixel = picture.getpixel((x, y))
            assert isinstance(pixel, tuple)
            assert all(abs(seen - meant) < 25 for seen, meant in zip(pixel, item.rgb, strict=True)), (index, item)


def test_a_drawn_shape_fills_its_box_and_nothing_else() -> None:
    for index in range(40):
        scene = make_scene(5, index)
        item = scene.objects[0]
        picture = render_scene(replace(scene, objects=(item,)))
        drawn = ImageChops.difference(picture, Image.new("RGB", picture.size, scene.background)).getbbox()
        assert drawn is not None
        assert all(abs(edge - 224 * part) <= 1.5 for edge, part in zip(drawn, item.box, strict=True)), item


def test_captions_are_several_different_and_one_names_everything() -> None:
    for index in range(300):
        scene = make_scene(6, index)
        captions = generate_captions(scene, 6, index)
        assert len(captions) == 4
        assert len(set(captions)) == 4
        attributes = sorted(word for o in scene.objects for word in {(o.colour, o.shape, o.size)})
        assert any(all(_names(caption, kind) for kind in attributes) for caption in captions)


def _names(caption: str, kind: tuple[str, str, str]) -> bool:
    colour, shape, size = kind
    words = {"large": "large|big", "small": "small|little"}[size]
    return re.search(rf"(?i)\b(?:{words}) {colour} {shape}(?:e?s)?\b", caption) is not None


def test_captions_vary_in_frame_case_relation_and_number() -> None:
    text = "\n".join(caption for index in range(300) for caption in generate_captions(make_scene(7, index), 7, index))
    for part in (
        "There is",
        "there are two",
        "a picture of",
        "An image showing",
        "to the left of",
        "next to",
        "beneath",
    ):
        assert part in text
    for part in (" and ", ", and ", "larger than", "little", "big", "an orange", "two ", "the red"):
        assert part in text


def test_the_corpus_has_the_layout_of_downloaded_shards(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, CorpusSpec(pairs=7, shard_size=3))
    assert [path.name for path in corpus.files] == ["00000.tar", "00001.tar", "00002.tar"]
    with tarfile.open(corpus.files[1]) as tar:
        assert tar.getnames() == [f"00000000{i}.{ext}" for i in (3, 4, 5) for ext in ("jpg", "txt", "json")]
        row = json.loads(tar.extractfile("000000004.json").read())  # type: ignore[union-attr]
        text = tar.extractfile("000000004.txt").read().decode()  # type: ignore[union-attr]
    sample = make_sample(0, 4)
    assert row["key"] == "000000004"
    assert (row["caption"], tuple(row["captions"])) == (text, sample.captions) == (sample.caption, sample.captions)
    assert [box["label"] for box in row["boxes"]] == [item.shape for item in sample.scene.objects]
    assert scene_from_dict(row["scene"]) == sample.scene


def test_the_same_corpus_has_the_same_bytes_and_a_longer_one_begins_with_it(tmp_path: Path) -> None:
    first = write_corpus(tmp_path / "a", CorpusSpec(pairs=4, seed=9, shard_size=2))
    second = write_corpus(tmp_path / "b", CorpusSpec(pairs=6, seed=9, shard_size=2))
    assert [p.read_bytes() for p in first.files] == [p.read_bytes() for p in second.files[:2]]
    again = write_corpus(tmp_path / "a", CorpusSpec(pairs=4, seed=9, shard_size=2))
    assert [p.read_bytes() for p in again.files] == [p.read_bytes() for p in second.files[:2]]


def test_a_text_only_corpus_is_json_lines_with_the_same_rows(tmp_path: Path) -> None:
    reports: list[ProgressReport] = []
    with use_listener(reports.append):
        corpus = write_corpus(tmp_path, CorpusSpec(pairs=150, images=False))
    rows = [json.loads(line) for line in corpus.files[0].read_text().splitlines()]
    assert [row["key"] for row in rows] == [f"{i:09d}" for i in range(150)]
    assert rows[5]["caption"] == make_sample(0, 5).caption
    assert [(last.name, last.done, last.total) for last in reports if last.ended] == [("drawing scenes", 150, 150)]


def test_leftover_shards_of_another_corpus_are_not_mixed_in(tmp_path: Path) -> None:
    write_corpus(tmp_path, CorpusSpec(pairs=4, shard_size=1))
    with pytest.raises(UsageError, match=r"already holds 00002\.tar, 00003\.tar"):
        write_corpus(tmp_path, CorpusSpec(pairs=2, shard_size=1))


@pytest.mark.parametrize("wrong", [{"pairs": 0}, {"pairs": 1, "shard_size": 0}, {"pairs": 1, "captions": 0}])
def test_a_corpus_of_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="give at least 1"):
        CorpusSpec(**wrong)  # type: ignore[arg-type]


def test_a_pair_of_the_corpus_carries_its_scene() -> None:
    sample = make_sample(0, 12)
    pair = sample_to_pair(sample)
    assert read_scene(pair) == sample.scene
    assert {box.label for box in pair.boxes} <= set(list_box_labels())
    with pytest.raises(InputError, match="no ColorShape scene"):
        read_scene(replace(pair, meta="{}"))


def test_the_toy_set_has_each_combination_equally_often() -> None:
    samples = list(generate_toy_set(0, per_combination=5))
    both = Counter(sample.conditions["both"] for sample in samples)
    assert both == {f"{colour} {shape}": 5 for colour in TOY_COLOURS for shape in TOY_SHAPES}
    for sample in samples:
        (item,) = sample.scene.objects
        assert (item.colour, item.shape) == (sample.conditions["colour"], sample.conditions["shape"])
    assert len({sample.scene.objects[0].box for sample in samples}) == len(samples)
    assert {sample.scene.objects[0].size for sample in samples} == {"small", "medium", "large"}


def test_the_continuous_variant_names_no_colour_and_keeps_the_rgb() -> None:
    samples = list(generate_toy_set(0, per_combination=5, continuous=True))
    assert len({sample.rgb for sample in samples}) == len(samples) == 80
    for sample in samples:
        assert set(sample.conditions) == {"shape"}
        assert sample.scene.objects[0].colour == ""
        assert sample.scene.objects[0].rgb == sample.rgb


def test_the_toy_set_is_written_with_its_conditions(tmp_path: Path) -> None:
    corpus = write_toy_set(tmp_path, per_combination=1)
    with tarfile.open(corpus.files[0]) as tar:
        row = json.loads(tar.extractfile("t000000006.json").read())  # type: ignore[union-attr]
    assert row["caption"] == "a blue square"
    assert row["conditions"] == {"shape": "square", "colour": "blue", "both": "blue square"}
    assert len(row["rgb"]) == 3
