"""Mixtures: what goes in comes out as asked, once, in the same bytes, and the rest is counted."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from PIL import Image

from pairwright.datasets.errors import ConfigError, InputError, UsageError
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.records import Annotation, Origin, Turn
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.verification.checks import verify
from pairwright.datasets.verification.llava_json import check_llava
from pairwright.flows.mixtures import survey
from pairwright.flows.mixtures.config import load_mixture
from pairwright.flows.mixtures.mixing import MixtureRequest, mix, rejected_file
from pairwright.flows.mixtures.report import MixtureReport, report_file
from pairwright.generators.conversations.question_templates import SHORT_FORMAT


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (len(path.name) % 255, 0, 0)).save(path)


def llava(number: int, image: str = "") -> dict[str, Any]:
    mark = "<image>\n" if image else ""
    turns = [
        {"from": "human", "value": f"{mark}What is {number}?"},
        {"from": "gpt", "value": f"It is the number {number}."},
    ]
    return {"id": number, **({"image": image} if image else {}), "conversations": turns}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three sources: 40 LLaVA rows with images in a folder of their own, 30 of VQA in .gz, 20 texts."""
    for number in range(10):
        picture(tmp_path / "coco" / "train" / f"{number}.jpg")
        picture(tmp_path / "gqa" / f"{number}.jpg")
    rows = [llava(number, f"train/{number % 10}.jpg") for number in range(40)]
    (tmp_path / "talks.json").write_text(json.dumps(rows, indent=1))
    asked = [{"image": f"{number % 10}.jpg", "q": f"Is it {number}?", "a": "yes"} for number in range(30)]
    with gzip.open(tmp_path / "vqa.jsonl.gz", "wt") as handle:
        handle.writelines(json.dumps(row) + "\n" for row in asked)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(llava(number)) + "\n" for number in range(100, 120)))
    return tmp_path


TALKS = {"path": "talks.json", "image_root": "coco"}
VQA = {"path": "vqa.jsonl.gz", "image_root": "gqa", "columns": {"question": "q", "answer": "a"}, "prompt": "short"}
TEXTS = {"path": "texts.jsonl"}


def mixed(folder: Path, sources: list[dict[str, Any]], out: str = "out.json", **settings: Any) -> MixtureReport:
    config = folder / "mixture.yaml"
    config.write_text(yaml.safe_dump({**settings, "sources": sources}))
    return mix(MixtureRequest(load_mixture(config), folder / out), lambda _what, _done: None)


def read(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return rows


def test_a_mixture_is_a_llava_file_whose_images_are_found_below_one_folder(folder: Path) -> None:
    report = mixed(folder, [TALKS, VQA, TEXTS])
    rows = read(folder / "out.json")
    assert len(rows) == report.rows == 90
    assert check_llava(folder / "out.json", report.image_root) == []
    assert {row.get("image", "").partition("/")[0] for row in rows} == {"coco", "gqa", ""}


def test_a_row_keeps_its_words_and_says_its_source(folder: Path) -> None:
    mixed(folder, [VQA])
    rows = {row["conversations"][0]["value"].replace("<image>", "").strip(): row for row in read(folder / "out.json")}
    row = rows[f"Is it 7?\n{SHORT_FORMAT}"]
    assert (row["source"], row["image"], row["conversations"][1]) == ("vqa", "7.jpg", {"from": "gpt", "value": "yes"})


def test_counts_and_ratios_are_met_to_the_row(folder: Path) -> None:
    report = mixed(folder, [{**TALKS, "ratio": 2}, {**VQA, "ratio": 1}, {**TEXTS, "count": 5}], rows=36)
    assert report.quota == {"talks": 21, "vqa": 10, "texts": 5}
    sources = [row["source"] for row in read(folder / "out.json")]
    assert {name: sources.count(name) for name in report.quota} == report.quota


def test_the_output_does_not_depend_on_the_path_of_the_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere") / "deeper"
    folder_copy = other / "data"
    folder_copy.parent.mkdir()
    shutil.copytree(folder, folder_copy)
    for place in (folder, folder_copy):
        mixed(place, [{**TALKS, "count": 9}, {**VQA, "count": 9}], seed=3)
    for name in ("out.json", "out.mixture.json"):
        assert (folder / name).read_bytes() == (folder_copy / name).read_bytes()


def test_sources_without_a_common_row_may_be_listed_in_any_order(folder: Path) -> None:
    first = mixed(folder, [{**TALKS, "count": 9}, {**VQA, "count": 9}, TEXTS], "one.json")
    mixed(folder, [TEXTS, {**VQA, "count": 9}, {**TALKS, "count": 9}], "two.json")
    assert first.rows == 38
    assert (folder / "one.json").read_bytes() == (folder / "two.json").read_bytes()


def test_another_source_changes_nothing_in_what_one_gives(folder: Path) -> None:
    mixed(folder, [{**TALKS, "count": 9}], "alone.json")
    mixed(folder, [VQA, {**TALKS, "count": 9}], "beside.json")
    alone = [row["id"] for row in read(folder / "alone.json")]
    assert [row["id"] for row in read(folder / "beside.json") if row["source"] == "talks"] == alone


def test_half_of_a_mixture_is_a_part_of_the_whole(folder: Path) -> None:
    mixed(folder, [TALKS, VQA], "whole.json")
    report = mixed(folder, [TALKS, VQA], "half.json", keep=0.5)
    assert report.quota == {"talks": 20, "vqa": 15}
    whole = [row["id"] for row in read(folder / "whole.json")]
    half = [row["id"] for row in read(folder / "half.json")]
    assert half == [id_ for id_ in whole if id_ in set(half)]


def test_a_row_that_two_sources_hold_is_taken_from_the_first_and_counted(folder: Path) -> None:
    again = {**TALKS, "name": "again"}
    rows = [*json.loads((folder / "talks.json").read_text())[:3], llava(1, "train/1.jpg"), llava(77, "train/1.jpg")]
    (folder / "more.json").write_text(json.dumps(rows * 2))
    report = mixed(folder, [TALKS, {**TALKS, "path": "more.json"}, {**again, "count": 0}])
    more, copy = report.sources()[1:]
    assert more["duplicates"] == {"more": 1, "talks": 8}
    assert copy["duplicates"] == {"talks": 40}
    assert [source["taken"] for source in report.sources()] == [40, 1, 0]


def test_a_pair_is_known_by_its_key_whatever_its_image_is_called(folder: Path) -> None:
    for name, image in (("one", "coco/train/1.jpg"), ("two", "gqa/1.jpg")):
        row = {"key": "0" * 32, "image": image, "question": "Q", "answer": "A"}
        (folder / f"{name}.jsonl").write_text(json.dumps(row))
    report = mixed(folder, [{"path": "one.jsonl"}, {"path": "two.jsonl"}])
    assert report.sources()[1]["duplicates"] == {"one": 1}


def test_a_row_with_a_key_and_one_without_are_the_same_by_the_place_of_their_image(folder: Path) -> None:
    row = {"image": "gqa/1.jpg", "question": "Q", "answer": "A"}
    (folder / "keyed.jsonl").write_text(json.dumps({**row, "key": "0" * 32}))
    (folder / "plain.jsonl").write_text(json.dumps(row))
    for first, second in (("keyed", "plain"), ("plain", "keyed")):
        report = mixed(folder, [{"path": f"{first}.jsonl"}, {"path": f"{second}.jsonl"}])
        assert report.sources()[1]["duplicates"] == {first: 1}


def test_an_annotation_table_names_no_images_and_is_refused(folder: Path) -> None:
    turns = (Turn("human", "Q"), Turn("assistant", "A"))
    row = Annotation("0" * 32, "1" * 32, "conversation", Origin("made", 1), turns=turns)
    ANNOTATIONS.write([row], folder / "table.parquet")
    with pytest.raises(InputError, match="missing_image: an annotation without its image"):
        mixed(folder, [{"path": "table.parquet"}])


def test_the_mark_stays_on_the_side_where_the_source_had_it(folder: Path) -> None:
    rows = [llava(number, "train/1.jpg") for number in range(40)]
    for row in rows[:20]:
        row["conversations"][0]["value"] = f"What is {row['id']}?\n<image>"
    (folder / "talks.json").write_text(json.dumps(rows))
    mixed(folder, [TALKS])
    for row in read(folder / "out.json"):
        value = row["conversations"][0]["value"]
        assert value.endswith("<image>") == (int(row["source_id"]) < 20)
        assert value.startswith("<image>") == (int(row["source_id"]) >= 20)


@pytest.mark.parametrize("first", [0, 1], ids=["a row altered", "a row gone"])
def test_a_source_that_changes_between_its_two_readings_is_an_error(folder: Path, first: int) -> None:
    rows = read(folder / "talks.json")
    config = folder / "mixture.yaml"
    config.write_text(yaml.safe_dump({"sources": [TALKS, TEXTS]}))

    def watch(what: str, _done: int) -> None:
        if what == "reading texts":
            (folder / "talks.json").write_text(json.dumps([llava(999, "train/1.jpg"), *rows[1:]][first:]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "EVERY", 10)
        with pytest.raises(InputError, match="changed while it was read"):
            mix(MixtureRequest(load_mixture(config), folder / "out.json"), watch)
    assert not (folder / "out.json").exists()


def test_pictures_of_one_name_in_two_folders_are_two_rows(folder: Path) -> None:
    rows = json.dumps([llava(1, "1.jpg")])
    for name in ("one.json", "two.json"):
        (folder / name).write_text(rows)
    sources = [{"path": "one.json", "image_root": "coco/train"}, {"path": "two.json", "image_root": "gqa"}]
    assert mixed(folder, sources).rows == 2
    assert {row["image"] for row in read(folder / "out.json")} == {"coco/train/1.jpg", "gqa/1.jpg"}
    mixed(folder, sources[::-1], "reversed.json")  # all their chance is the same: their names decide
    assert (folder / "out.json").read_bytes() == (folder / "reversed.json").read_bytes()


def broken(folder: Path) -> dict[str, Any]:
    """A source of five good rows and one of each kind of flaw."""
    swapped = llava(201, "train/1.jpg")
    swapped["conversations"].reverse()
    silent = llava(202, "train/1.jpg")
    silent["conversations"][1]["value"] = " "
    (folder / "coco" / "torn.jpg").write_bytes((folder / "coco" / "train" / "1.jpg").read_bytes()[:50])
    flawed = [llava(203, "gone.jpg"), swapped, silent, {"caption": "no talk"}, llava(204, "torn.jpg")]
    lines = [json.dumps(row) for row in [*flawed, *(llava(number, "train/2.jpg") for number in range(300, 305))]]
    (folder / "broken.jsonl").write_text("\n".join(['{"id": 1, "conv', *lines, "[1]"]))
    return {"path": "broken.jsonl", "image_root": "coco"}


def test_a_broken_row_stops_the_run_and_says_where(folder: Path) -> None:
    with pytest.raises(InputError, match=r"broken\.jsonl:1: broken_json") as told:
        mixed(folder, [broken(folder)])
    assert str(told.value).endswith("To skip such rows: `on_error: skip` of the source.")
    assert not (folder / "out.json").exists()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("listed.jsonl", '[{"id": 1}]', "or give `format: json` of the source."),
        ("table.xml", "<rows/>", "`format` of the source, one of coco | json | "),
    ],
)
def test_a_source_of_another_format_is_refused_with_keys_of_the_config(
    folder: Path, name: str, text: str, told: str
) -> None:
    (folder / name).write_text(text)
    with pytest.raises(InputError) as caught:
        mixed(folder, [{"path": name}])
    assert told in str(caught.value)


def test_broken_rows_are_set_aside_with_their_reasons_when_asked(folder: Path) -> None:
    report = mixed(folder, [{**broken(folder), "on_error": "skip"}, TEXTS])
    source = report.sources()[0]
    assert source["refused"] == {
        **dict.fromkeys(("bad_image", "broken_json", "empty_turn", "missing_image", "no_conversation"), 1),
        "misplaced_image_token": 1,
        "wrong_type": 1,
    }
    assert source["found"] == sum(source["refused"].values()) + source["distinct"] == 12
    told = [json.loads(line) for line in rejected_file(folder / "out.json").read_text().splitlines()]
    assert [row["place"].rpartition(":")[2] for row in told] == ["1", "2", "3", "4", "5", "6", "12"]


def test_a_source_without_a_usable_row_says_what_is_wrong_with_the_first(folder: Path) -> None:
    rows = [{"conversations": [{"from": "system", "value": "Be brief."}]}] * 3
    (folder / "chat.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"none of 3 rows is usable.*item 1: bad_turns: turn 1 is by 'system'"):
        mixed(folder, [{"path": "chat.json", "on_error": "skip"}])


def test_rows_of_other_kinds_and_splits_and_rejected_ones_are_counted(folder: Path) -> None:
    turns = [{"role": "human", "text": "Q"}, {"role": "assistant", "text": "A"}]
    rows: list[dict[str, Any]] = [
        {"kind": "detail", "turns": turns, "status": "kept"},
        {"kind": "detail", "turns": [], "status": "rejected"},
        {"kind": "brief", "turns": turns, "status": "kept"},
        {"kind": "detail", "turns": turns, "split": "validation"},
    ]
    (folder / "ours.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (source,) = mixed(folder, [{"path": "ours.jsonl", "kinds": ["detail"]}]).sources()
    assert (source["taken"], source["left_out"]) == (1, {"not_kept": 1, "other_kind": 1, "other_split": 1})


def test_a_kind_that_there_is_not_is_an_error_that_names_those_there_are(folder: Path) -> None:
    (folder / "ours.jsonl").write_text(json.dumps({"kind": "detail", "question": "Q", "answer": "A"}))
    with pytest.raises(InputError, match="Its rows are of kind 'detail': correct `kinds`"):
        mixed(folder, [{"path": "ours.jsonl", "kinds": ["details"]}])


def test_more_rows_than_there_are_is_an_error_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(UsageError, match="source talks: 41 rows requested, 40 available"):
        mixed(folder, [{**TALKS, "count": 41}, TEXTS])
    assert {path.name for path in folder.iterdir()} == {
        *("coco", "gqa", "mixture.yaml", "talks.json", "texts.jsonl", "vqa.jsonl.gz")
    }


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "shards"])
def test_every_layout_holds_the_same_rows_and_can_be_mixed_again(folder: Path, out: str) -> None:
    mixed(folder, [TALKS, VQA], out)
    if out == "shards":
        assert list(verify(folder / out)) == []
    again = mixed(folder, [{"path": out, "name": "again"}], "again.json")
    texts = {row["conversations"][0]["value"].replace("<image>", "").strip() for row in read(folder / "again.json")}
    assert again.rows == len(texts) == 70
    if out == "shards":
        names = {row["image"] for row in read(folder / "again.json")}
        assert len(names) == 70
        assert all(name.startswith("00000/") for name in names)  # as if the tar were unpacked beside itself


def test_conversations_beside_pictures_inside_a_table_are_mixed_and_packed_with_their_bytes(folder: Path) -> None:
    """Of two that ask the same about two pictures without names neither is a duplicate."""
    pictures = [(folder / "coco" / "train" / f"{number}.jpg").read_bytes() for number in range(3)]
    images = [{"bytes": data, "path": None} for data in [*pictures, b"none"]]
    rows = {"image": images, "conversations": [llava(1, "x")["conversations"]] * 4}
    table = folder / "talks.parquet"
    pl.DataFrame(rows).write_parquet(table, row_group_size=2)
    source = {"path": "talks.parquet", "on_error": "skip"}
    report = mixed(folder, [source], "shards")
    assert report.rows == 3
    assert report.sources()[0]["refused"] == {"bad_image": 1}
    assert report.sources()[0]["images_in_tables"] == 3
    packed = [sample.image or b"" for tar in find_shards(folder / "shards") for sample in read_shard(tar)]
    assert sorted(packed) == sorted(pictures)
    mixed(folder, [source])
    assert {row["image"] for row in read(folder / "out.json")} == {
        f"talks.parquet::image/row-{row:08}" for row in (1, 2, 3)
    }


def test_text_only_rows_get_shards_of_their_own_behind_those_with_images(folder: Path) -> None:
    report = mixed(folder, [TEXTS, TALKS], "shards")
    shards = [list(read_shard(tar)) for tar in find_shards(folder / "shards")]
    assert [{bool(sample.image) for sample in shard} for shard in shards] == [{True}, {False}]
    assert sum(map(len, shards)) == report.rows
    assert not verify(folder / "shards")


def test_shards_recode_pictures_of_two_formats_when_asked(folder: Path) -> None:
    picture(folder / "coco" / "1.png")
    (folder / "png.json").write_text(json.dumps([llava(1, "1.png")]))
    source = {"path": "png.json", "image_root": "coco"}
    with pytest.raises(InputError, match="in one dataset"):
        mixed(folder, [TALKS, source], "first")
    assert mixed(folder, [TALKS, source], "shards", image_format="jpg").rows == 41


def test_the_report_tells_what_was_read_and_written_by_hash(folder: Path) -> None:
    report = mixed(folder, [TALKS, VQA], seed=5)
    assert report.out is not None
    told = json.loads(report_file(report.out).read_text())
    assert told["settings"]["seed"] == 5
    assert [source["files"][0]["path"] for source in told["sources"]] == ["talks.json", "vqa.jsonl.gz"]
    assert [len(file["sha256"]) for source in told["sources"] for file in source["files"]] == [64, 64]
    assert told["output"][0]["bytes"] == (folder / "out.json").stat().st_size
    assert [(source["turns"], source["mean_answer_words"]) for source in told["sources"]] == [(40, 5.0), (30, 1.0)]


def test_a_source_that_is_the_output_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is the input itself"):
        mixed(folder, [TALKS], "talks.json")


def test_images_outside_the_named_folder_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="some images are outside of it"):
        mixed(folder, [TALKS, VQA], image_root="coco")


def test_an_image_folder_may_be_a_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("disk") / "gqa"
    (folder / "gqa").rename(elsewhere)
    (folder / "gqa").symlink_to(elsewhere)
    for out in ("out.json", "out.parquet"):
        assert mixed(folder, [TALKS, VQA], out).image_root == folder
    assert {row["image"].partition("/")[0] for row in read(folder / "out.json")} == {"coco", "gqa"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sources": []}, "`sources`"),
        ({"sources": [{"path": "a.json", "raito": 1}]}, "unknown key `sources.0.raito`. Did you mean `ratio`?"),
        ({"sources": [{"path": "a.json", "ratio": 1, "count": 2}]}, "count and ratio are mutually exclusive"),
        ({"sources": [{"path": "a.json"}, {"path": "b/a.json"}]}, "duplicate source name 'a'"),
        ({"sources": [{"path": "a.json"}], "rows": 10}, "rows requires a ratio"),
        ({"sources": [{"path": "a.json"}], "keep": 0}, "`keep`"),
        ({"sources": [{"path": "a.json", "ratio": float("nan")}]}, "`sources.0.ratio`"),
        ({"sources": ["a.json"]}, "`sources.0`"),
    ],
)
def test_a_config_that_cannot_be_is_refused_with_the_place(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    (tmp_path / "mixture.yaml").write_text(yaml.safe_dump(settings))
    with pytest.raises(ConfigError) as error:
        load_mixture(tmp_path / "mixture.yaml")
    assert message in str(error.value)


def test_a_column_that_is_no_part_of_a_conversation_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="columns: no such name: quest"):
        mixed(folder, [{**VQA, "columns": {"quest": "q"}}])


def several(number: int, images: list[str], question: str = "") -> dict[str, Any]:
    row = llava(number)
    asked = question or "<image>\n" * len(images) + f"Do {number} differ?"
    return {**row, "image": images, "conversations": [{"from": "human", "value": asked}, row["conversations"][1]]}


@pytest.fixture
def pairs_of_images(folder: Path) -> dict[str, Any]:
    """A source of rows with two and three images, among them one image shown twice."""
    rows = [
        several(1, ["1.jpg", "2.jpg"]),
        several(2, ["3.jpg", "3.jpg"], "<image> Same? <image>"),
        several(3, ["1.jpg", "2.jpg", "3.jpg"]),
        llava(4, "4.jpg"),
        llava(5),
    ]
    (folder / "several.json").write_text(json.dumps(rows))
    return {"path": "several.json", "image_root": "gqa"}


def shown(folder: Path, out: str) -> dict[str, tuple[int, str]]:
    """Number of images and question of each row of a LLaVA file, by answer."""
    rows = {}
    for row in read(folder / out):
        images = row.get("image", [])
        asked, answer = (turn["value"] for turn in row["conversations"])
        rows[answer] = (len(images) if isinstance(images, list) else 1, asked)
    return rows


@pytest.mark.parametrize("out", ["out.jsonl", "shards"])
def test_rows_of_several_images_keep_them_and_their_places(
    folder: Path, pairs_of_images: dict[str, Any], out: str
) -> None:
    report = mixed(folder, [pairs_of_images], out)
    assert (report.rows, report.sources()[0]["with_several_images"]) == (5, 3)
    if out == "shards":
        assert verify(folder / out) == []
        kinds = [{len(one.images) for one in read_shard(tar)} for tar in find_shards(folder / out)]
        assert kinds == [{1}, {2}, {3}, {0}]
    root = {} if out == "shards" else {"image_root": "gqa"}
    mixed(folder, [{"path": out, "name": "again", **root}], "again.json")
    rows = shown(folder, "again.json")
    assert rows["It is the number 2."] == (2, "<image> Same? <image>")
    assert rows["It is the number 3."] == (3, "<image>\n<image>\n<image>\nDo 3 differ?")
    assert [rows[f"It is the number {number}."][0] for number in (1, 4, 5)] == [2, 1, 0]


def test_a_written_row_of_several_images_is_a_valid_llava_row(folder: Path, pairs_of_images: dict[str, Any]) -> None:
    report = mixed(folder, [pairs_of_images, TALKS])
    assert check_llava(folder / "out.json", report.image_root) == []
    images = next(
        row["image"] for row in read(folder / "out.json") if (row["source"], row["source_id"]) == ("several", "2")
    )
    assert images == ["gqa/3.jpg", "gqa/3.jpg"]


def test_rows_of_several_images_are_rejected_where_a_row_has_one(folder: Path, pairs_of_images: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="several_images: 2 images, where a row of parquet has one"):
        mixed(folder, [pairs_of_images], "out.parquet")
    report = mixed(folder, [{**pairs_of_images, "on_error": "skip"}], "out.parquet")
    assert (report.rows, report.sources()[0]["refused"]) == (2, {"several_images": 3})


def test_a_row_whose_second_image_is_missing_is_rejected(folder: Path) -> None:
    (folder / "gone.json").write_text(json.dumps([several(1, ["1.jpg", "gone.jpg"]), several(2, ["1.jpg", "2.jpg"])]))
    (source,) = mixed(folder, [{"path": "gone.json", "image_root": "gqa", "on_error": "skip"}]).sources()
    assert (source["taken"], source["refused"]) == (1, {"missing_image": 1})
    assert "gone.jpg" in rejected_file(folder / "out.json").read_text()


def test_lists_of_images_inside_a_table_are_packed_in_order(folder: Path) -> None:
    pictures = [(folder / "coco" / "train" / f"{number}.jpg").read_bytes() for number in range(4)]
    lists = [pictures[:3], pictures[2:], pictures[3:]]
    rows = {
        "images": [[{"bytes": data, "path": None} for data in each] for each in lists],
        "texts": [[{"user": f"Which is {number}?", "assistant": "It."}] for number in range(3)],
    }
    pl.DataFrame(rows).write_parquet(folder / "cauldron.parquet", row_group_size=2)
    report = mixed(folder, [{"path": "cauldron.parquet"}], "shards")
    assert report.sources()[0]["images_in_tables"] == 3
    packed = [sample for tar in find_shards(folder / "shards") for sample in read_shard(tar)]
    of_question = {
        sample.annotations[0].turns[0].text.removeprefix("<image>\n" * len(sample.images)): [
            image.data for image in sample.images
        ]
        for sample in packed
    }
    assert of_question == {
        "Which is 0?": pictures[:3],
        "Which is 1?": pictures[2:],
        "Which is 2?": pictures[3:],
    }
