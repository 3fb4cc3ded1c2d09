"""Pairs read from the files of published datasets, in the layouts in which they are published."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.formats import guess_format
from pairwright.datasets.readers.known_layouts import KNOWN_LAYOUTS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject

DOG, CAT = ("a red dog", "one dog"), ("a cat", "one cat asleep")

Layout = Callable[[Path], Path]
Wanted = tuple[str, str, str, tuple[str, ...]]  # source id, image as written, caption, other captions


def read(path: Path, **options: Any) -> tuple[list[Pair], list[Reject]]:
    given = {"on_error": "skip", "verify_images": "off", **options}
    batches = list(read_pairs(ReadOptions(str(path), **given)))
    return [pair for b in batches for pair in b.pairs], [reject for b in batches for reject in b.rejects]


def summary(pairs: Sequence[Pair], folder: Path) -> list[Wanted]:
    return [(pair.source_id, pair.image.removeprefix(f"{folder}/"), pair.caption, pair.captions) for pair in pairs]


def json_file(name: str, content: Any) -> Layout:
    def make(folder: Path) -> Path:
        (folder / name).write_text(json.dumps(content))
        return folder / name

    return make


def lines(name: str, *rows: str) -> Layout:
    def make(folder: Path) -> Path:
        text = "".join(f"{row}\n" for row in rows).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return folder / name

    return make


def folder(**files: str) -> Layout:
    """Text files of a folder, by their names without ``.txt``."""

    def make(parent: Path) -> Path:
        for name, text in files.items():
            (parent / f"{name}.txt").write_text(text)
        return parent

    return make


def parquet(**columns: Any) -> Layout:
    def make(folder: Path) -> Path:
        pl.DataFrame(columns).write_parquet(folder / "rows.parquet")
        return folder / "rows.parquet"

    return make


def tsv(name: str, *rows: Sequence[str]) -> Layout:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return lines(name, *text.getvalue().splitlines())


def sentences(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"tokens": text.split(), "raw": text, "imgid": 0, "sentid": at} for at, text in enumerate(texts)]


def karpathy(**more: Any) -> dict[str, Any]:
    return {"sentids": [0, 1], "imgid": 5, "split": "val", "sentences": sentences(DOG), **more}


def turns(answer: str) -> list[dict[str, str]]:
    return [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": answer}]


def batch_answer(id_: str, text: str) -> dict[str, Any]:
    choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    return {"custom_id": id_, "response": {"status_code": 200, "body": {"model": "gpt-4o", "choices": choices}}}


URL = "http://x.org/1.jpg"
ONE_OF_EACH: list[Wanted] = [
    ("", "1.jpg", DOG[0], DOG[1:]),
    ("", "1.jpg", DOG[1], DOG[:1]),
    ("", "2.jpg", CAT[0], CAT[1:]),
    ("", "2.jpg", CAT[1], CAT[:1]),
]
LAYOUTS: dict[str, tuple[Layout, dict[str, Any], list[Wanted]]] = {
    "Karpathy's dataset_coco.json": (
        json_file(
            "dataset_coco.json",
            {"images": [karpathy(filepath="val2014", filename="a.jpg", cocoid=73)], "dataset": "coco"},
        ),
        {},
        [("73", "val2014/a.jpg", DOG[0], DOG[1:])],
    ),
    "Karpathy's dataset_coco.json without ids": (
        json_file("coco.json", {"images": [{"filepath": "val2014", "filename": "a.jpg", "sentences": sentences(DOG)}]}),
        {},
        [("", "val2014/a.jpg", DOG[0], DOG[1:])],
    ),
    "Karpathy's dataset_flickr30k.json": (
        json_file("dataset_flickr30k.json", {"images": [karpathy(filename="a.jpg")], "dataset": "flickr30k"}),
        {},
        [("5", "a.jpg", DOG[0], DOG[1:])],
    ),
    "BLIP's coco_karpathy_train.json": (
        json_file(
            "coco_karpathy_train.json", [{"caption": text, "image": "a.jpg", "image_id": "coco_7"} for text in DOG]
        ),
        {},
        [("coco_7", "a.jpg", DOG[0], DOG[1:]), ("coco_7", "a.jpg", DOG[1], DOG[:1])],
    ),
    "BLIP's coco_karpathy_val.json": (
        json_file("coco_karpathy_val.json", [{"image": "a.jpg", "caption": list(DOG)}]),
        {},
        [("", "a.jpg", DOG[0], DOG[1:])],
    ),
    "Flickr30k's results_20130124.token": (
        lines(
            "results_20130124.token",
            f"1.jpg#0\t{DOG[0]}",
            f"1.jpg#1\t{DOG[1]}",
            f"2.jpg#0\t{CAT[0]}",
            f"2.jpg#1\t{CAT[1]}",
        ),
        {},
        ONE_OF_EACH,
    ),
    "SBU's lists of URLs and captions": (
        folder(
            SBU_captioned_photo_dataset_urls=f"{URL}\nhttp://x.org/2.jpg\n",
            SBU_captioned_photo_dataset_captions=f"{DOG[0]}\n{CAT[0]}\n",
            readme="The dataset.\n",
        ),
        {},
        [("", URL, DOG[0], ()), ("", "http://x.org/2.jpg", CAT[0], ())],
    ),
    "yerevann's coco-karpathy, with sentences as texts": (
        parquet(
            filepath=["val2014"], filename=["a.jpg"], imgid=[5], sentids=[[0, 1]], cocoid=[73], sentences=[list(DOG)]
        ),
        {},
        [("73", "val2014/a.jpg", DOG[0], DOG[1:])],
    ),
    "ImageInWords": (
        lines("data.jsonl", json.dumps({"image/key": "a", "image/url": URL, "IIW": DOG[0], "IIW-P5B": DOG[1]})),
        {},
        [("a", URL, DOG[0], ())],
    ),
    "LAION-COCO": (
        parquet(
            URL=[URL], TEXT=["dog.jpg"], top_caption=[DOG[0]], all_captions=[list(DOG)], all_similarities=[[0.3, 0.2]]
        ),
        {},
        [("", URL, DOG[0], DOG[1:])],
    ),
    "OpenAI's batch output": (
        lines("batch_output.jsonl", json.dumps({"id": "batch_req_1", **batch_answer("7", DOG[0]), "error": None})),
        {},
        [("7", "", DOG[0], ())],
    ),
    "captions of an image as lines of one text": (
        lines("rows.jsonl", json.dumps({"image": "1.jpg", "text": f"{DOG[0]}\n\n {DOG[1]}\r\n"})),
        {"columns": {"captions": "text.lines"}},
        [("", "1.jpg", DOG[0], DOG[1:])],
    ),
    "CapsFusion": (
        parquet(image_url=[URL], laion_2b=["dog 2010"], laion_coco=[DOG[1]], capsfusion=[DOG[0]]),
        {},
        [("", URL, DOG[0], ())],
    ),
    "JourneyDB": (
        lines(
            "train_anno.jsonl",
            json.dumps({"img_path": "000/a.jpg", "prompt": "dog --v 4", "Task1": {}, "Task2": {"Caption": DOG[0]}}),
        ),
        {},
        [("", "000/a.jpg", DOG[0], ())],
    ),
    "GBC10M": (
        lines(
            "gbc.jsonl",
            json.dumps(
                {
                    "img_id": 1,
                    "img_url": URL,
                    "original_caption": "dog 2010",
                    "short_caption": {"text": DOG[0], "score": None},
                    "detail_caption": {"text": DOG[1], "score": None},
                }
            ),
        ),
        {},
        [("", URL, DOG[0], ())],
    ),
    "nlphuji's flickr_annotations_30k.csv": (
        lines("flickr_annotations_30k.csv", "caption,split,filename", '"[""a red dog"", ""one dog""]",test,1.jpg'),
        {},
        [("", "1.jpg", DOG[0], DOG[1:])],
    ),
    "a list written as text after a space": (
        lines("rows.csv", "image,caption", f"1.jpg,\" ['{DOG[0]}', '{DOG[1]}']\""),
        {},
        [("", "1.jpg", DOG[0], DOG[1:])],
    ),
    "a NumPy array written as text": (
        lines("rows.csv", "image,caption", f"1.jpg,\"['{DOG[0]}'\n '{DOG[1]}']\""),
        {},
        [("", "1.jpg", DOG[0], DOG[1:])],
    ),
    "NumPy arrays of captions": (
        lines("rows.csv", "image,captions", f"1.jpg,['{DOG[0]}' '{DOG[1]}']"),
        {},
        [("", "1.jpg", DOG[0], DOG[1:])],
    ),
    "lists of captions of numbers": (
        json_file("captions.json", {"391895": list(DOG), "22": list(CAT)}),
        {},
        [("391895", "", DOG[0], DOG[1:]), ("22", "", CAT[0], CAT[1:])],
    ),
    "captions of numbers": (json_file("captions.json", {"391895": DOG[0]}), {}, [("391895", "", DOG[0], ())]),
    "a table of a .txt with bars": (
        lines("captions.txt", "image| caption", f"1.jpg| {DOG[0]}"),
        {},
        [("", "1.jpg", DOG[0], ())],
    ),
    "a table of Spark, with texts as bytes": (
        parquet(url=[URL.encode()], text=[DOG[0].encode()], captions=[[text.encode() for text in DOG]]),
        {},
        [("", URL, DOG[0], DOG[1:])],
    ),
    "Conceptual Captions with image labels": (
        lines(
            "Image_Labels_Subset_Train_GCC-Labels-training.tsv",
            f"{DOG[0]}\t{URL}\tanimal,dog\t/m/0jbk,/m/0bt9lr\t0.96,0.91",
            f'the "one" of {CAT[0]}\thttp://x.org/2.jpg\tcat\t/m/01yrx\t0.9',
        ),
        {},
        [("", URL, DOG[0], ()), ("", "http://x.org/2.jpg", f'the "one" of {CAT[0]}', ())],
    ),
    "Flickr30k's results.csv": (
        lines(
            "results.csv",
            "image_name| comment_number| comment",
            f"1.jpg| 0| {DOG[0]}",
            f"1.jpg| 1| {DOG[1]}",
            f"2.jpg| 0| {CAT[0]}",
            f"2.jpg| 1| {CAT[1]}",
        ),
        {},
        ONE_OF_EACH,
    ),
    "Flickr8k.token.txt": (
        lines(
            "Flickr8k.token.txt",
            f"1.jpg#0\t{DOG[0]}",
            f"1.jpg#1\t{DOG[1]}",
            f"2.jpg#0\t{CAT[0]}",
            f"2.jpg#1\t{CAT[1]}",
        ),
        {},
        ONE_OF_EACH,
    ),
    "Flickr8k's captions.txt": (
        lines(
            "captions.txt",
            "image,caption",
            f"1.jpg,{DOG[0]}",
            f"1.jpg,{DOG[1]}",
            f"2.jpg,{CAT[0]}",
            f"2.jpg,{CAT[1]}",
        ),
        {},
        ONE_OF_EACH,
    ),
    "Conceptual Captions 3M": (
        lines("Train_GCC-training.tsv", f'"a {DOG[0]}\t{URL}?w=1', f"{CAT[0]}\thttp://x.org/2"),
        {},
        [("", f"{URL}?w=1", f'"a {DOG[0]}', ()), ("", "http://x.org/2", CAT[0], ())],
    ),
    "Conceptual Captions 12M": (lines("cc12m.tsv", f"{URL}\t{DOG[0]}"), {}, [("", URL, DOG[0], ())]),
    "SBU": (
        json_file("sbu-captions-all.json", {"image_urls": [URL], "user_ids": ["47@N00"], "captions": [DOG[0]]}),
        {},
        [("", URL, DOG[0], ())],
    ),
    "RedCaps": (
        json_file(
            "cats_2017.json",
            {
                "info": {"version": "1.0"},
                "annotations": [
                    {"image_id": "5lk", "image_url": URL, "raw_caption": "A RED DOG", "caption": DOG[0], "score": 3}
                ],
            },
        ),
        {},
        [("5lk", URL, DOG[0], ())],
    ),
    "WIT": (
        tsv(
            "wit_v1.train.all-1percent_sample.tsv.gz",
            ("language", "page_url", "image_url", "page_title", "caption_reference_description"),
            ("en", "https://en.wikipedia.org/wiki/Dog", URL, "Dog", DOG[0]),
        ),
        {},
        [("", URL, DOG[0], ())],
    ),
    "TextCaps": (
        json_file(
            "TextCaps_0.1_train.json",
            {
                "dataset_name": "textcaps",
                "data": [
                    {
                        "image_id": "0a",
                        "image_path": "train/0a.jpg",
                        "flickr_300k_url": URL,
                        "caption_str": text,
                        "reference_strs": list(DOG),
                    }
                    for text in DOG
                ],
            },
        ),
        {},
        [("0a", "0a.jpg", DOG[0], DOG[1:]), ("0a", "0a.jpg", DOG[1], DOG[:1])],
    ),
    "DOCCI": (
        lines(
            "docci_descriptions.jsonlines",
            json.dumps({"example_id": "train_0", "split": "train", "image_file": "0.jpg", "description": DOG[0]}),
        ),
        {},
        [("train_0", "0.jpg", DOG[0], ())],
    ),
    "Crossmodal-3600": (
        lines(
            "captions.jsonl",
            json.dumps(
                {
                    "de": {"caption": ["ein Hund"]},
                    "en": {"caption": list(DOG), "caption/tokenized": ["A red dog ."]},
                    "image/key": "0a",
                    "image/locale": "de",
                }
            ),
        ),
        {},
        [("0a", "0a.jpg", DOG[0], DOG[1:])],
    ),
    "Recap-DataComp-1B": (
        parquet(url=[URL], re_caption=[DOG[0]], org_caption=["dog.jpg"], key=["7"], re_clip_score=[0.3]),
        {},
        [("7", URL, DOG[0], ())],
    ),
    "PixelProse": (
        parquet(uid=["7"], url=[URL], original_caption=["dog.jpg"], vlm_model=["gemini"], vlm_caption=[DOG[0]]),
        {},
        [("7", URL, DOG[0], ())],
    ),
    "DataComp": (
        parquet(uid=["7"], url=[URL], text=[DOG[0]], original_width=[6], clip_b32_similarity_score=[0.3]),
        {},
        [("7", URL, DOG[0], ())],
    ),
    "COYO": (parquet(id=[7], url=[URL], text=[DOG[0]], num_faces=[0]), {}, [("7", URL, DOG[0], ())]),
    "LLaVA-Pretrain's metadata": (
        json_file(
            "blip_laion_cc_sbu_558k_meta.json", [{"id": "7", "image": "0/7.jpg", "blip_caption": DOG[0], "url": URL}]
        ),
        {},
        [("7", "0/7.jpg", DOG[0], ())],
    ),
    "LLaVA-Pretrain, ShareGPT4V and ALLaVA": (
        json_file("blip_laion_cc_sbu_558k.json", [{"id": "7", "image": "0/7.jpg", "conversations": turns(DOG[0])}]),
        {"columns": {"caption": "conversations.1.value"}},
        [("7", "0/7.jpg", DOG[0], ())],
    ),
    "ShareGPT-4o": (
        lines("gpt-4o.jsonl", json.dumps({"id": 7, "image": "7.jpg", "conversations": turns(DOG[0])})),
        {"columns": {"caption": "conversations.1.value"}},
        [("7", "7.jpg", DOG[0], ())],
    ),
    "The Cauldron": (
        parquet(texts=[[{"user": "What is it?", "assistant": DOG[0], "source": "x"}]]),
        {"columns": {"caption": "texts.0.assistant"}},
        [("", "", DOG[0], ())],
    ),
    "DCI": (
        lines("dci.jsonl", json.dumps({"image": "sa_1.jpg", "short_caption": DOG[0], "extra_caption": "More."})),
        {},
        [("", "sa_1.jpg", DOG[0], ())],
    ),
    "Visual Genome's region_descriptions.json": (
        json_file(
            "region_descriptions.json",
            [{"id": 7, "regions": [{"region_id": at, "phrase": text, "x": 1} for at, text in enumerate(DOG)]}],
        ),
        {},
        [("7", "7.jpg", DOG[0], DOG[1:])],
    ),
    "Visual Genome's region_descriptions.json above its images": (
        json_file(
            "region_descriptions.json",
            [{"id": 7, "regions": [{"region_id": at, "phrase": text, "x": 1} for at, text in enumerate(DOG)]}],
        ),
        {"columns": {"captions": "regions.phrase", "image": "VG_100K/{id}.jpg"}},
        [("7", "VG_100K/7.jpg", DOG[0], DOG[1:])],
    ),
    "Localized Narratives of COCO": (
        lines(
            "coco_val_localized_narratives.jsonl",
            json.dumps({"dataset_id": "mscoco", "image_id": "139", "caption": DOG[0], "traces": [[{"x": 0.1}]]}),
        ),
        {"columns": {"image": "{image_id:012}.jpg"}},
        [("139", "000000000139.jpg", DOG[0], ())],
    ),
}


def test_a_table_with_regions_of_another_kind_is_not_visual_genome(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "text": DOG[0], "regions": ["Berlin", "Rome"]}) + "\n")
    pairs, rejects = read(tmp_path / "a.jsonl")
    assert ([(pair.caption, pair.image) for pair in pairs], rejects) == ([(DOG[0], "")], [])


@pytest.mark.parametrize("dataset", LAYOUTS)
def test_the_files_of_published_datasets_are_read(tmp_path: Path, dataset: str) -> None:
    make, options, wanted = LAYOUTS[dataset]
    pairs, rejects = read(make(tmp_path), **options)
    assert summary(pairs, tmp_path) == wanted
    assert not rejects


def test_a_failed_request_of_a_batch_is_a_row_without_caption(tmp_path: Path) -> None:
    failed = {"custom_id": "8", "response": None, "error": {"code": "batch_expired"}}
    path = lines("out.jsonl", json.dumps(batch_answer("7", DOG[0])), json.dumps(failed))(tmp_path)
    pairs, rejects = read(path)
    assert ([pair.source_id for pair in pairs], [one.reason for one in rejects]) == (["7"], ["empty_caption"])


def test_the_format_of_a_list_is_that_of_its_first_items(tmp_path: Path) -> None:
    """A list of gigabytes was parsed as a whole to find its format."""
    path = json_file("rows.json", [{"caption": f"a red dog {number}"} for number in range(300)])(tmp_path)
    path.write_text(path.read_text()[:-20])
    assert guess_format(path) == "json"
    with pytest.raises(InputError, match="at item 300"):
        read(path)
    path.write_text(json.dumps([{"caption": "a"}] * 99 + [{"conversations": []}]))
    assert guess_format(path) == "llava"


def test_no_known_layout_hides_another() -> None:
    for place, layout in enumerate(KNOWN_LAYOUTS):
        assert not any(earlier.columns <= layout.columns for earlier in KNOWN_LAYOUTS[:place]), layout.about


def test_what_the_user_maps_goes_before_a_known_layout(tmp_path: Path) -> None:
    path = LAYOUTS["Recap-DataComp-1B"][0](tmp_path)
    (pair,), _ = read(path, columns={"caption": "org_caption"})
    assert (pair.caption, pair.source_id) == ("dog.jpg", "7")
    (pair,), _ = read(LAYOUTS["Karpathy's dataset_coco.json"][0](tmp_path), columns={"key": "imgid"})
    assert (pair.source_id, pair.caption) == ("5", DOG[0])


def test_columns_named_as_the_parts_of_a_pair_go_before_a_known_layout(tmp_path: Path) -> None:
    """Hugging Face's copy of TextCaps has images in the table; rows with a caption of their own may have others too."""
    row = {"image_id": "0a", "image_path": "train/0a.jpg", "caption_str": DOG[0], "image": "mine.jpg"}
    (pair,), _ = read(lines("rows.jsonl", json.dumps(row))(tmp_path))
    assert summary([pair], tmp_path) == [("0a", "mine.jpg", DOG[0], ())]
    row = {"blip_caption": DOG[0], "caption": CAT[0]}
    (pair,), _ = read(lines("more.jsonl", json.dumps(row))(tmp_path))
    assert pair.caption == CAT[0]


def test_a_row_that_the_file_breaks_is_rejected_and_the_others_are_read(tmp_path: Path) -> None:
    """Flickr30k's results.csv lacks a separator in one of its lines."""
    rows = ("image_name| comment_number| comment", "1.jpg| 0| a dog", "1.jpg| 4   A dog runs .", "2.jpg| 0| a cat")
    pairs, rejects = read(lines("results.csv", *rows)(tmp_path))
    assert [pair.caption for pair in pairs] == ["a dog", "a cat"]
    assert [(reject.place, reject.reason) for reject in rejects] == [(f"{tmp_path / 'results.csv'}:3", "ragged_row")]


def test_captions_that_vizwiz_flags_are_rejected_and_never_stop_the_reading(tmp_path: Path) -> None:
    def annotation(id_: int, image: int, text: str, **flags: bool) -> dict[str, Any]:
        return {"id": id_, "image_id": image, "caption": text, "is_precanned": False, "is_rejected": False, **flags}

    annotations = [
        annotation(1, 1, "a red dog"),
        annotation(2, 1, "Quality issues are too severe to recognize visual content.", is_precanned=True),
        annotation(3, 2, "buy now", is_rejected=True),
        annotation(4, 2, "buy more", is_rejected=True),
    ]
    images = [{"id": 1, "file_name": "1.jpg"}, {"id": 2, "file_name": "2.jpg"}]
    path = json_file("train.json", {"images": images, "annotations": annotations})(tmp_path)
    pairs, rejects = read(path, on_error="stop")
    assert summary(pairs, tmp_path) == [("1", "1.jpg", "a red dog", ())]
    assert [(reject.place, reject.reason, reject.detail, reject.part) for reject in rejects] == [
        (f"{path}:annotation 2", "flagged_caption", "is_precanned in the dataset", "caption"),
        (f"{path}:image 2", "flagged_caption", "is_rejected in the dataset", "row"),
    ]


def test_failed_downloads_inside_parquet_are_rejected_as_such(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (4, 3)).save(stream, "JPEG")
    path = parquet(
        key=["0", "1"],
        caption=["a dog", "a cat"],
        jpg=[stream.getvalue(), None],
        status=["success", "failed_to_download"],
        error_message=[None, "HTTP Error 404: Not Found"],
    )(tmp_path)
    pairs, rejects = read(path, verify_images="header")
    assert [pair.caption for pair in pairs] == ["a dog"]
    assert [(reject.reason, reject.detail) for reject in rejects] == [
        ("download_failed", "failed_to_download: HTTP Error 404: Not Found")
    ]


OBJECTS: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "a list per split": (
        {"train": [{"id": 1, "caption": "a dog"}], "test": [{"id": 2, "caption": "a cat"}]},
        [("1", "", "a dog"), ("2", "", "a cat")],
    ),
    "a row per image": ({"1.jpg": {"caption": "a dog"}}, [("", "1.jpg", "a dog")]),
    "a row per id": ({"x1": {"caption": "a dog"}}, [("x1", "", "a dog")]),
    "captions per image": ({"1.jpg": ["a dog"], "2.jpg": ["a cat"]}, [("", "1.jpg", "a dog"), ("", "2.jpg", "a cat")]),
    "captions per id": ({"1": ["a dog"], "2": ["a cat", "one cat"]}, [("1", "", "a dog"), ("2", "", "a cat")]),
    "a caption per image": ({"1.jpg": "a dog"}, [("", "1.jpg", "a dog")]),
    "columns": ({"image": ["1.jpg"], "text": ["a dog"]}, [("", "1.jpg", "a dog")]),
}


@pytest.mark.parametrize("form", OBJECTS)
def test_a_json_object_with_rows_is_read(tmp_path: Path, form: str) -> None:
    content, wanted = OBJECTS[form]
    path = json_file("rows.json", content)(tmp_path)
    assert guess_format(path) == "json-object"
    pairs, rejects = read(path)
    assert [found[:3] for found in summary(pairs, tmp_path)] == wanted
    assert not rejects


def test_an_item_that_is_no_row_is_rejected_with_its_place(tmp_path: Path) -> None:
    path = json_file("rows.json", {"data": [{"caption": "a dog"}, "a cat"]})(tmp_path)
    pairs, rejects = read(path)
    assert [pair.caption for pair in pairs] == ["a dog"]
    assert [(reject.place, reject.reason) for reject in rejects] == [(f"{path}:data item 2", "wrong_type")]


@pytest.mark.parametrize("content", [{"a": 1}, {"a": []}, {"a": "b"}, {"a": [1], "b": [1, 2]}, {"a": {"x": 1}, "b": 2}])
def test_a_json_object_without_rows_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(InputError, match="unknown JSON layout"):
        guess_format(json_file("rows.json", content)(tmp_path))


def test_a_path_that_leads_nowhere_is_an_empty_caption_and_a_template_without_value_no_image(tmp_path: Path) -> None:
    rows = (
        {"turns": [{"value": "a dog"}], "id": 1},
        {"turns": [], "id": 2},
        {"turns": [{"value": "a cat"}], "id": None},
    )
    path = lines("rows.jsonl", *map(json.dumps, rows))(tmp_path)
    pairs, rejects = read(path, columns={"caption": "turns.0.value", "image": "{id}.jpg"})
    assert summary(pairs, tmp_path) == [("1", "1.jpg", "a dog", ()), ("", "", "a cat", ())]
    assert [(reject.reason, reject.detail) for reject in rejects] == [("empty_caption", "the caption is null")]


def test_a_column_whose_name_has_a_dot_is_that_column(tmp_path: Path) -> None:
    path = lines("rows.jsonl", json.dumps({"text.en": "a dog", "text": {"en": "a cat"}}))(tmp_path)
    (pair,), _ = read(path, columns={"caption": "text.en"})
    assert pair.caption == "a dog"


@pytest.mark.parametrize("column", ["turn.0.value", "{name}.jpg"])
def test_a_path_or_template_of_a_column_that_no_row_has_is_an_error(tmp_path: Path, column: str) -> None:
    path = lines("rows.jsonl", json.dumps({"caption": "a dog", "id": 1}))(tmp_path)
    with pytest.raises(InputError, match=r"no row has a column .*\. Correct --columns"):
        read(path, columns={"image": column})


def test_rows_of_an_image_know_each_other_but_not_those_that_are_rejected(tmp_path: Path) -> None:
    rows = ("image,caption", "1.jpg,a dog", "1.jpg,", "1.jpg,a dog", "1.jpg,one dog", "2.jpg,a cat", ",a cow", ",a pig")
    pairs, rejects = read(lines("rows.csv", *rows)(tmp_path))
    assert summary(pairs, tmp_path) == [
        ("", "1.jpg", "a dog", ("one dog",)),
        ("", "1.jpg", "one dog", ("a dog",)),
        ("", "2.jpg", "a cat", ()),
        ("", "", "a cow", ()),
        ("", "", "a pig", ()),
    ]
    assert [reject.reason for reject in rejects] == ["empty_caption", "duplicate_key"]


@pytest.mark.parametrize("on_error", ["skip", "stop"])
def test_captions_that_are_equal_after_cleaning_are_no_flaw_and_keys_stay_unique(tmp_path: Path, on_error: str) -> None:
    rows = ["1.jpg,a dog #cute", "1.jpg,a dog", "2.jpg,a dog", "1.jpg,one dog &amp; a cat"]
    path = lines("rows.csv", "image,caption", *rows)(tmp_path)
    pairs, rejects = read(path, clean_captions=True, on_error=on_error)
    assert [pair.caption for pair in pairs] == ["a dog", "a dog", "one dog & a cat"]
    assert len({pair.key for pair in pairs}) == 3
    assert [(reject.reason, reject.place) for reject in rejects] == [("duplicate_caption", f"{path}:3")]
    assert read(path, on_error=on_error)[1] == []


def test_a_row_of_bytes_that_are_no_text_is_rejected_alone(tmp_path: Path) -> None:
    captions = [*(f"a dog {n}".encode() for n in range(9)), b"a caf\xe9"]
    path = parquet(caption=captions, image=[f"{n}.jpg".encode() for n in range(10)])(tmp_path)
    pairs, rejects = read(path)
    assert (len(pairs), [reject.reason for reject in rejects]) == (9, ["not_utf8"])


def test_a_file_whose_lines_belong_to_another_one_names_it(tmp_path: Path) -> None:
    folder(urls=f"{URL}\n", captions=f"{DOG[0]}\n")(tmp_path)
    with pytest.raises(InputError, match=r"captions\.txt: lines that belong to those of urls\.txt\. Give the folder"):
        read(tmp_path / "captions.txt")
    (tmp_path / "captions.txt").write_text("one\ntwo\n")
    with pytest.raises(InputError, match=r"urls\.txt names images in 1 line, and no other \.txt has as many"):
        read(tmp_path, format="parallel-lines")


@pytest.mark.parametrize("options", [{}, {"format": "parallel-lines"}])
def test_files_of_different_lengths_are_refused_with_their_numbers_of_lines(
    tmp_path: Path, options: dict[str, str]
) -> None:
    (tmp_path / "images.txt").write_text("1.jpg\n2.jpg\n3.jpg\n")
    (tmp_path / "captions.txt").write_text("one\ntwo\n")
    with pytest.raises(InputError, match=r"images.txt names images in 3 lines, .* as many \(captions.txt 2\)"):
        read(tmp_path, **options)


def test_lines_blank_in_both_files_are_skipped_and_a_caption_needs_its_image(tmp_path: Path) -> None:
    folder(urls=f"{URL}\n\n\n", captions=f"{DOG[0]}\n{CAT[0]}\n\n")(tmp_path)
    pairs, rejects = read(tmp_path, on_error="skip")
    assert [pair.caption for pair in pairs] == [DOG[0]]
    assert [(reject.reason, reject.place) for reject in rejects] == [("missing_image", f"{tmp_path}/captions.txt:2")]


def test_a_table_of_labels_by_number_is_none_of_captions(tmp_path: Path) -> None:
    path = json_file("labels.json", {"0": "train", "1": "val", "2": "fire engine"})(tmp_path)
    with pytest.raises(InputError):
        read(path)


def test_a_caption_in_brackets_that_is_no_list_of_texts_stays(tmp_path: Path) -> None:
    captions = ["[a red dog] on a lawn", "[1, 2]", "[]", "['a' 'dog', 'a cat']"]
    pairs, _ = read(lines("rows.jsonl", *(json.dumps({"caption": text}) for text in captions))(tmp_path))
    assert [pair.caption for pair in pairs] == captions


def test_objects_one_after_the_other_are_refused_with_how_to_write_lines(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text("".join(json.dumps({"caption": text}, indent=1) for text in DOG))
    with pytest.raises(InputError, match=r"Write a row per line: jq -c \. [^ ]*rows\.json > rows\.jsonl"):
        read(tmp_path / "rows.json")


def test_rows_with_a_placeholder_for_an_image_do_not_know_each_other(tmp_path: Path) -> None:
    rows = [f"none.jpg,a dog {at}" for at in range(100)]
    pairs, _ = read(lines("rows.csv", "image,caption", *rows)(tmp_path))
    assert [pair.caption for pair in pairs] == [f"a dog {at}" for at in range(100)]
    assert not any(pair.captions for pair in pairs)


def test_keys_of_rows_do_not_depend_on_the_other_rows_of_an_image(tmp_path: Path) -> None:
    alone, _ = read(lines("rows.csv", "image,caption", "1.jpg,one dog")(tmp_path))
    both, _ = read(lines("rows.csv", "image,caption", "1.jpg,a dog", "1.jpg,one dog")(tmp_path))
    exploded, rejects = read(tmp_path / "rows.csv", explode=True)
    assert both[1].key == alone[0].key
    assert exploded == both
    assert not rejects


SPLITS = [json.dumps({"caption": f"a dog {at}", "split": split, "n": at}) for at, split in enumerate("aabc")]


def test_rows_that_are_not_selected_are_rejected_and_never_stop_the_reading(tmp_path: Path) -> None:
    path = lines("rows.jsonl", *SPLITS)(tmp_path)
    pairs, rejects = read(path, where={"split": ("b", "c")}, on_error="stop")
    assert [pair.caption for pair in pairs] == ["a dog 2", "a dog 3"]
    assert {(reject.reason, reject.detail) for reject in rejects} == {("not_selected", "split is 'a'")}
    assert len(rejects) == 2
    pairs, rejects = read(path, where={"split": ("a",), "n": ("1",)})
    assert [pair.caption for pair in pairs] == ["a dog 1"]
    assert len(rejects) == 3


@pytest.mark.parametrize(
    ("wanted", "captions"),
    [("1", ["a dog 0"]), ("1.0", ["a dog 0"]), ("1.5", ["a dog 1"]), ("None", []), ("true", ["a dog 3"])],
)
def test_whole_numbers_are_selected_without_a_point_and_null_has_no_value(
    tmp_path: Path, wanted: str, captions: list[str]
) -> None:
    values = [1.0, 1.5, None, True]
    path = lines(
        "rows.jsonl", *(json.dumps({"caption": f"a dog {at}", "n": value}) for at, value in enumerate(values))
    )(tmp_path)
    if captions:
        assert [pair.caption for pair in read(path, where={"n": (wanted,)})[0]] == captions
    else:
        with pytest.raises(InputError, match="not_selected 4"):
            read(path, where={"n": (wanted,)})


def test_rows_of_an_image_do_not_know_captions_that_are_not_selected_but_those_around_them(tmp_path: Path) -> None:
    path = lines("rows.csv", "image,caption,ok", "1.jpg,a dog,yes", "1.jpg,spam,no", "1.jpg,a puppy,yes")(tmp_path)
    pairs, rejects = read(path, where={"ok": ("yes",)}, verify_images="off")
    assert [(pair.caption, pair.captions) for pair in pairs] == [("a dog", ("a puppy",)), ("a puppy", ("a dog",))]
    assert [reject.reason for reject in rejects] == ["not_selected"]


def test_a_template_that_fills_up_to_an_absurd_length_is_no_template(tmp_path: Path) -> None:
    path = lines("rows.jsonl", '{"caption": "a dog", "id": 1}')(tmp_path)
    with pytest.raises(InputError, match="no row has a column"):
        read(path, columns={"image": "{id:099999999999999}.jpg"})


def test_selecting_by_a_column_that_no_row_has_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    path = lines("rows.jsonl", *SPLITS)(tmp_path)
    with pytest.raises(InputError, match=r"no row has a column splt\. Correct --where"):
        read(path, where={"splt": ("a",)})
    with pytest.raises(InputError, match=r"no valid row \(not_selected 4\); the first is not_selected: split is 'a'"):
        read(path, where={"split": ("d",)})


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 3)).save(path)


def image_folder(folder: Path, name: str) -> None:
    """What Hugging Face's `imagefolder` reads."""
    picture(folder / "0.png")
    rows = pl.DataFrame({"file_name": ["0.png"], "text": [f"a dog in {folder.name}"]})
    writers: dict[str, Callable[[Path], Any]] = {
        "csv": rows.write_csv,
        "jsonl": rows.write_ndjson,
        "parquet": rows.write_parquet,
    }
    writers[name](folder / f"metadata.{name}")


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_an_imagefolder_with_metadata_is_read_and_one_per_split_is_named(tmp_path: Path, name: str) -> None:
    for split in ("test", "train"):
        image_folder(tmp_path / split, name)
    (pair,), _ = read(tmp_path / "train", verify_images="header")
    assert (pair.image, pair.caption, pair.width) == (str(tmp_path / "train" / "0.png"), "a dog in train", 4)
    pattern = tmp_path / "{test,train}" / f"metadata.{name}"
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert caught.value.fix == f"Give these files: {pattern}."
    pairs, _ = read(pattern, verify_images="header")
    assert [(pair.image, pair.caption) for pair in pairs] == [
        (str(tmp_path / split / "0.png"), f"a dog in {split}") for split in ("test", "train")
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("state.json", "dataset_info.json", "data-00000-of-00001.arrow"), r"load_from_disk\('[^']*'\)\.to_parquet"),
        (("dataset_dict.json", "train/data-0.arrow"), r"load_from_disk\('[^']*'\)\['train'\]\.to_parquet"),
        (("dataset_info.json", "x-train.arrow"), r"Dataset\.from_file\('[^']*x-train\.arrow'\)\.to_parquet"),
        (("README.md", "data/train-0.parquet"), r"Give the folder with the data: [^ ]*/data\."),
        (("sa_1.json", "sa_2.json"), r"joined by: jq -c \. [^ ]*/\*\.json > rows\.jsonl"),
        (("annotations/a.json", "annotations/b.json"), r"folders 1\)\. .* captions: [^ ]*/annotations/a\.json or "),
    ],
)
def test_a_folder_that_has_to_be_converted_or_named_says_how(
    tmp_path: Path, files: tuple[str, ...], message: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=message):
        guess_format(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.tsv", "image\tcaption\n1.jpg\ta dog\n"), ("a.csv.gz", "caption\na dog\n")]
)
def test_a_folder_of_tables_is_read(tmp_path: Path, name: str, content: str) -> None:
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (pair,), _ = read(tmp_path)
    assert pair.caption == "a dog"


@pytest.mark.parametrize("sign", ["|", ";", "\t"])
def test_a_csv_is_read_by_the_sign_that_separates_its_columns(tmp_path: Path, sign: str) -> None:
    path = lines("a.csv", f"image{sign}caption", f"1.jpg{sign}a dog, asleep")(tmp_path)
    assert summary(read(path)[0], tmp_path) == [("", "1.jpg", "a dog, asleep", ())]
