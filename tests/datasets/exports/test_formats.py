"""Export formats from records, builds and shards."""

import ast
import csv
import io
import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.exports.formats import EXPORTS, export, export_records
from pairwright.datasets.exports.writing import ExportOptions
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import load_image, open_sample_source, source_from_records
from pairwright.datasets.shards.writing import write_shards
from pairwright.datasets.verification.checks import verify
from pairwright.datasets.verification.llava_json import check_llava
from tests.datasets.sample_builders import conversation, image_files, negative, pair, picture
from tests.example_counts import examples

OUT = {"llava": "x.json", "openai": "x.jsonl", "triplets": "x.jsonl", "negclip": "x.tsv", "parquet": "x.parquet"}
utf8 = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@pytest.fixture
def records(tmp_path: Path) -> tuple[list[Pair], list[Annotation]]:
    return image_files(tmp_path / "pool", 12)


@pytest.fixture
def build(records: tuple[list[Pair], list[Annotation]], tmp_path: Path) -> Path:
    """Return a build directory with two parts of pairs, a rejected row, and shards."""
    pairs, annotations = records
    folder = tmp_path / "build"
    for number in range(2):
        part = pairs[number * 6 : number * 6 + 6]
        keys = {one.key for one in part}
        rejected = replace(negative(part[0], "bad"), status="rejected", reason="not_grammatical")
        PAIRS.write(part, folder / "pairs" / f"{number:05d}.parquet")
        ANNOTATIONS.write(
            [a for a in annotations if a.key in keys] + [rejected], folder / "annotations" / f"{number:05d}.parquet"
        )
    write_shards(map(load_image, source_from_records(pairs, annotations).samples()), folder / "shards", max_samples=5)
    return folder


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_llava_rows_have_the_image_token_once_on_either_side(build: Path, tmp_path: Path) -> None:
    done = export(build, "llava", tmp_path / "l.json")
    rows = json.loads((tmp_path / "l.json").read_text())
    assert done.rows == len(rows) == 12
    assert check_llava(tmp_path / "l.json", tmp_path / "pool") == []
    first = [row["conversations"][0]["value"] for row in rows]
    assert {value.startswith("<image>\n") for value in first} == {True, False}
    assert rows[0]["image"] == "000000000000.jpg"
    assert [turn["from"] for turn in rows[0]["conversations"]] == ["human", "gpt", "human", "gpt"]


said = utf8.filter(lambda text: bool(text.strip()))


@settings(max_examples=examples(40))
@given(
    exchanges=st.lists(
        st.tuples(said | st.just("look: <image> here"), said | st.just("<image>")), min_size=1, max_size=4
    )
)
def test_any_turns_give_valid_llava(exchanges: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    of = pair(0, image="pool/0.jpg")
    out = tmp_path_factory.mktemp("llava") / "l.json"
    export_records([of], [conversation(of, *(text for both in exchanges for text in both))], "llava", out)
    assert check_llava(out) == []


def test_check_llava_finds_what_is_wrong(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "<image>\nq"}, {"from": "gpt", "value": "a <image>"}]
    rows = [
        {"id": "1", "image": "a.jpg", "conversations": turns},
        {"id": "1", "conversations": turns[:1]},
        {"id": "", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
        {"id": "2", "conversations": [{"from": "human", "value": " "}, {"from": "gpt", "value": "a"}]},
        {"id": "3", "conversations": [{"from": "human", "value": 3}, "a"]},
        17,
    ]
    (tmp_path / "l.json").write_text(json.dumps(rows))
    problems = " ".join(check_llava(tmp_path / "l.json", tmp_path))
    for fault in ("[1, 1] times", "no image a.jpg", "instead of human, gpt", "repeated", "id is empty",
                  "a turn is empty", "not a list of turns", "not an object, but int"):  # fmt: skip
        assert fault in problems


def test_text_only_conversations_have_neither_image_nor_token(tmp_path: Path) -> None:
    export_records([pair(0)], [conversation(pair(0))], "llava", tmp_path / "l.json")
    assert "image" not in json.loads((tmp_path / "l.json").read_text())[0]
    assert check_llava(tmp_path / "l.json") == []


def test_openai_messages_carry_the_picture_in_the_first_user_message(build: Path, tmp_path: Path) -> None:
    export(build, "openai", tmp_path / "o.jsonl")
    messages = rows_of(tmp_path / "o.jsonl")[0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    image, text = messages[0]["content"]
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")
    assert text == {"type": "text", "text": "What color is the circle?"}
    assert isinstance(messages[2]["content"], str)


def test_openai_urls_stay_urls(tmp_path: Path) -> None:
    of = pair(0, image="https://example.org/a.jpg")
    export_records([of], [conversation(of)], "openai", tmp_path / "o.jsonl")
    content = rows_of(tmp_path / "o.jsonl")[0]["messages"][0]["content"]
    assert content[0]["image_url"]["url"] == "https://example.org/a.jpg"


def test_sugarcrepe_has_one_file_a_type_or_one_in_all(build: Path, tmp_path: Path) -> None:
    done = export(build, "sugarcrepe", tmp_path / "sc")
    assert [file.name for file in done.files] == ["replace_att.json", "replace_obj.json"]
    assert done.rows == 24
    rows = json.loads(done.files[0].read_text())
    assert list(rows) == [str(number) for number in range(12)]
    assert rows["1"] == {
        "filename": "000000000001.jpg",
        "caption": "a red circle above 1 squares",
        "negative_caption": "a blue circle above 1 squares",
    }
    assert export(build, "sugarcrepe", tmp_path / "all.json").rows == 24
    rows = json.loads((tmp_path / "all.json").read_text())
    assert list(rows) == [str(number) for number in range(24)]
    assert {(row["form"], row["target"]) for row in rows.values()} == {("replace", "object"), ("replace", "attribute")}


def test_sugarcrepe_bytes_equal_those_of_the_benchmark(real_data: Path, tmp_path: Path) -> None:
    """A real file's rows, exported again, give the real file (which numbers its rows with holes)."""
    real = real_data / "sugarcrepe_unrefined" / "swap_att.json"
    rows = list(json.loads(real.read_text()).values())[:200]
    pairs = [replace(pair(number, row["caption"]), source_id=row["filename"]) for number, row in enumerate(rows)]
    texts = [negative(of, row["negative_caption"]) for of, row in zip(pairs, rows, strict=True)]
    export_records(pairs, texts, "sugarcrepe", tmp_path / "swap_att.json")
    expected = json.dumps({str(number): row for number, row in enumerate(rows)}, indent=4, ensure_ascii=False)
    assert (tmp_path / "swap_att.json").read_text() == expected
    lines = real.read_text().splitlines()
    assert (tmp_path / "swap_att.json").read_text().splitlines()[:6] == lines[:6]


def test_a_benchmark_omits_training_only_rows(tmp_path: Path) -> None:
    one = pair(0)
    texts = [negative(one, "a cat"), replace(negative(one, "dog a"), id="0" * 32, form="shuffle", target="")]
    done = export_records([one], texts, "sugarcrepe", tmp_path / "x.json")
    assert (done.rows, done.omitted) == (1, {"shuffled_negatives": 1})
    assert "dog a" not in (tmp_path / "x.json").read_text()


def test_sugarcrepe_without_negatives_is_an_empty_object(tmp_path: Path) -> None:
    assert export_records([pair(0)], [], "sugarcrepe", tmp_path / "x.json").rows == 0
    assert json.loads((tmp_path / "x.json").read_text()) == {}


@settings(max_examples=examples(30))
@given(texts=st.lists(st.tuples(utf8, utf8), min_size=1, max_size=4))
def test_negclip_reads_back_by_its_loader_s_rules(
    texts: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("negclip") / "n.tsv"
    pairs = [replace(pair(number), caption=caption) for number, (caption, _) in enumerate(texts)]
    export_records(pairs, [negative(of, text) for of, (_, text) in zip(pairs, texts, strict=True)], "negclip", out)
    with out.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert [row["title"] for row in rows] == [caption for caption, _ in texts]
    assert [ast.literal_eval(row["neg_caption"]) for row in rows] == [[text] for _, text in texts]
    assert all(0 <= ast.literal_eval(row["neg_image"])[0] < len(rows) for row in rows)


def test_negclip_names_a_text_only_pair_by_its_source_id(tmp_path: Path) -> None:
    pairs = [replace(pair(number), image="") for number in range(2)]
    export_records(pairs, [negative(of, "a cat") for of in pairs], "negclip", tmp_path / "n.tsv")
    with (tmp_path / "n.tsv").open(newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert [row["filepath"] for row in rows] == [of.source_id for of in pairs]
    assert [row["neg_image"] for row in rows] == ["[1]", "[0]"]


def test_negclip_counts_omitted_pairs(tmp_path: Path) -> None:
    pairs = [pair(number) for number in range(2)]
    written = export_records(pairs, [negative(pairs[0], "a cat")], "negclip", tmp_path / "n.tsv")
    assert (written.rows, written.details) == (1, {"without_negatives": 1, "packed_images": 0, "without_images": 1})


def test_without_a_rationale_nothing_is_exported_and_no_file_is_left(build: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no kept rationale"):
        export(build, "rationales", tmp_path / "r")
    assert [path for path in (tmp_path / "r").glob("*") if path.is_file()] == []


def test_an_image_of_a_missing_tar_is_counted_once(tmp_path: Path) -> None:
    pairs = [pair(at, image=f"{tmp_path}/{name}.tar::1.jpg") for at, name in enumerate(("here", "gone"))]
    (tmp_path / "here.tar").touch()
    source = source_from_records(pairs, [conversation(one) for one in pairs])
    written = export(source, "llava", tmp_path / "l.json", ExportOptions(image_root=tmp_path))
    assert (written.rows, written.details["missing_images"], written.details["packed_images"]) == (2, 1, 1)


@pytest.mark.parametrize("to", ["negclip", "sugarcrepe", "parquet"])
def test_images_inside_tars_are_counted_where_rows_name_them(build: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / {"negclip": "n.csv", "sugarcrepe": "s.json", "parquet": "p.parquet"}[to]
    images = len({sample.pair.image for sample in open_sample_source(build / "shards").samples()})
    assert export(build / "shards", to, out).details["packed_images"] == images
    assert export(build, to, out).details["packed_images"] == 0


def test_negclip_names_another_image(build: Path, tmp_path: Path) -> None:
    assert export(build, "negclip", tmp_path / "n.csv").rows == 12
    with (tmp_path / "n.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert all(ast.literal_eval(row["neg_image"]) != [number] for number, row in enumerate(rows))
    assert len(ast.literal_eval(rows[0]["neg_caption"])) == 2


def test_triplets_of_one_image_are_adjacent(build: Path, tmp_path: Path) -> None:
    assert export(build, "triplets", tmp_path / "t.jsonl").rows == 24
    rows = rows_of(tmp_path / "t.jsonl")
    assert [row["image"] for row in rows[::2]] == [row["image"] for row in rows[1::2]]
    assert rows[1] == {
        "image": "000000000000.jpg",
        "instruction": "Is there a star?",
        "output": "No, there is no star.",
    }


def test_parquet_has_a_row_a_pair_with_nested_texts(build: Path, tmp_path: Path) -> None:
    assert export(build, "parquet", tmp_path / "p.parquet").rows == 12
    frame = pl.read_parquet(tmp_path / "p.parquet")
    assert frame["hard_negatives"].list.len().to_list() == [2] * 12
    assert frame.columns[:3] == ["image", "key", "caption"]


def test_the_hugging_face_folder_says_where_shards_are_and_what_they_hold(build: Path, tmp_path: Path) -> None:
    done = export(build, "hf", tmp_path / "hub")
    readme = (tmp_path / "hub" / "README.md").read_text()
    front = yaml.safe_load(readme.split("---\n")[1])
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": "data/*.tar"}]
    assert [feature["name"] for feature in front["dataset_info"]["features"]][:3] == ["jpg", "txt", "json"]
    assert done.rows == 12
    assert verify(tmp_path / "hub" / "data") == []


def test_webdataset_copies_finished_shards_and_recodes_when_asked(build: Path, tmp_path: Path) -> None:
    from pairwright.datasets.images.recoding import Recoding

    export(build, "webdataset", tmp_path / "same")
    for shard in (build / "shards").iterdir():
        assert (tmp_path / "same" / shard.name).read_bytes() == shard.read_bytes()
    export(build, "webdataset", tmp_path / "png", ExportOptions(recoding=Recoding(format="png")))
    assert {one.image_ext for one in read_shard(tmp_path / "png" / "00000.tar")} == {"png"}
    assert verify(tmp_path / "png") == []


@pytest.mark.parametrize("to", sorted(OUT))
def test_shards_and_records_export_alike_and_twice_the_same(to: str, build: Path, tmp_path: Path) -> None:
    """Names of images aside, which shards replace by members of their own."""
    options = ExportOptions(images=tmp_path / "images", seed=3)
    outs = [tmp_path / name / OUT[to] for name in ("one", "two", "three")]
    for out, source in zip(outs, (build, build, build / "shards"), strict=True):
        assert export(source, to, out, options).rows > 0
    assert outs[0].read_bytes() == outs[1].read_bytes()
    if to != "parquet":  # where it names the image that a pair came from, a shard names its own
        assert outs[0].read_bytes() == outs[2].read_bytes()
    assert len(list((tmp_path / "images").iterdir())) == 12


def test_croissant_takes_rows_whose_images_are_below_a_root(tmp_path: Path, records: Any) -> None:
    pairs, annotations = records
    out = tmp_path / "croissant"
    export_records(pairs, annotations, "croissant", out, ExportOptions(image_root=tmp_path))
    assert all("/" not in (name or "") for name in pl.read_parquet(out / "samples.parquet")["image"])


def test_images_with_one_name_are_an_error_without_an_image_root(tmp_path: Path) -> None:
    pairs: list[Pair] = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.jpg").write_bytes(picture())
        pairs.append(pair(len(pairs), image=str(tmp_path / folder / "1.jpg")))
    texts = [negative(of) for of in pairs]
    with pytest.raises(InputError, match="--image-root"):
        export_records(pairs, texts, "negclip", tmp_path / "n.tsv")
    export_records(pairs, texts, "negclip", tmp_path / "n.tsv", ExportOptions(image_root=tmp_path))
    assert "a/1.jpg\t" in (tmp_path / "n.tsv").read_text()
    with pytest.raises(InputError, match="outside image_root"):
        export_records(pairs, texts, "negclip", tmp_path / "n.tsv", ExportOptions(image_root=tmp_path / "a"))


def test_turns_out_of_order_are_an_error(tmp_path: Path) -> None:
    of = pair(0)
    bad = replace(conversation(of), turns=conversation(of).turns[:1])
    with pytest.raises(InputError, match="alternate"):
        export_records([of], [bad], "llava", tmp_path / "l.json")
    assert not (tmp_path / "l.json").exists()


def test_a_missing_image_is_one_clear_error(tmp_path: Path) -> None:
    of = pair(0, image=str(tmp_path / "gone.jpg"))
    with pytest.raises(InputError, match=r"gone\.jpg"):
        export_records([of], [], "webdataset", tmp_path / "w")


def test_unknown_formats_and_endings_are_refused(build: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There are: llava"):
        export(build, "coco", tmp_path / "x.json")
    with pytest.raises(UsageError, match=r"ends in \.tsv or \.csv"):
        export(build, "negclip", tmp_path / "x.json")
    with pytest.raises(UsageError, match=r"trl writes a folder\. Name it without \.jsonl: .*x\.$"):
        export(build, "trl", tmp_path / "x.jsonl")
    with pytest.raises(UsageError, match=r"sugarcrepe writes a folder, or a file that ends in \.json\."):
        export(build, "sugarcrepe", tmp_path / "x.tsv")
    assert export(build, "webdataset", tmp_path / "birds.v1").files
    with pytest.raises(InputError, match=r"no \.tar"):
        open_sample_source(tmp_path)
    assert all(row.about for row in EXPORTS.rows())


def test_an_unfinished_build_is_refused_whatever_is_there_already(build: Path) -> None:
    (build / "receipts").mkdir()
    with pytest.raises(StorageError, match=r"unfinished build \(.*run `pairwright build`"):
        open_sample_source(build)
    shutil.rmtree(build / "pairs")
    with pytest.raises(StorageError, match="unfinished build"):
        open_sample_source(build)
    (build / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match="not a JSON object"):
        open_sample_source(build)


def test_an_output_that_cannot_be_written_is_one_clear_error(build: Path, tmp_path: Path) -> None:
    (tmp_path / "l.json").mkdir()
    (tmp_path / "file").write_text("")
    for to, out in (("llava", tmp_path / "l.json"), ("hf", tmp_path / "file")):
        with pytest.raises(StorageError, match="cannot be written"):
            export(build, to, out)


def test_foreign_shards_are_an_error(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "00000.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in (("0001.jpg", picture()), ("0001.txt", b"a cat"), ("0001.json", b'{"key": "0001"}')):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    with pytest.raises(StorageError, match="Use other shards as the input of a build"):
        export(tmp_path, "llava", tmp_path / "l.json")


def test_the_captions_of_images_come_back_from_negbench_retrieval_table(
    records: tuple[list[Pair], list[Annotation]], tmp_path: Path
) -> None:
    pairs = [replace(records[0][0], captions=("two 'quotes'", 'and "more"')), *records[0][1:], pair(99)]
    out, images = tmp_path / "retrieval.csv", tmp_path / "images"
    result = export_records(pairs, [], "negbench-retrieval", out, ExportOptions(images=images))
    assert (result.rows, result.details["without_image"]) == (len(pairs) - 1, 1)
    again = [one for batch in read_pairs(ReadOptions(input=str(out), image_root=str(images))) for one in batch.pairs]
    assert [(one.caption, one.captions) for one in again] == [(one.caption, one.captions) for one in pairs[:-1]]
    assert all(Path(one.image).is_file() for one in again)
