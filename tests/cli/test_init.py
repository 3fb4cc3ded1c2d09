"""``pairwright init``: a config that builds as written, for every layout of the input."""

import base64
import csv
import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from PIL import Image

from tests.cli.conftest import CAPTIONS, Run


def picture(number: int, kind: str = "JPEG") -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (48, 32), (20 * number, 90, 200 - 20 * number)).save(data, kind)
    return data.getvalue()


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def coco(folder: Path) -> str:
    """COCO's own layout: captions and instances in annotations/, images next to it."""
    images = [{"id": n, "file_name": f"COCO_{n}.jpg", "width": 48, "height": 32} for n in range(5)]
    captions = [{"id": n, "image_id": n, "caption": text} for n, text in enumerate(CAPTIONS)]
    boxes = [{"id": 1, "image_id": 0, "category_id": 1, "bbox": [1, 1, 20, 20]}]
    for n in range(5):
        write(folder / "val2014" / f"COCO_{n}.jpg", picture(n))
    instances = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "bus"}]}
    write(folder / "annotations" / "instances_val2014.json", json.dumps(instances))
    write(folder / "annotations" / "captions_val2014.json", json.dumps({"images": images, "annotations": captions}))
    return "annotations/captions_val2014.json"


def odd_csv(folder: Path) -> str:
    """Columns with other names, images in a folder next to the table."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["photo_id", "foto", "human_words", "split"])
    for n, caption in enumerate(CAPTIONS):
        table.writerow([f"p{n}", f"{n}.jpg", caption, "train"])
        write(folder / "pics" / f"{n}.jpg", picture(n))
    write(folder / "table.csv", text.getvalue())
    return "table.csv"


def odd_jsonl(folder: Path) -> str:
    """Lists of captions under a name of one's own, gzipped."""
    rows = [{"number": n, "sents": [text, f"{text} too"], "score": 0.5} for n, text in enumerate(CAPTIONS)]
    write(folder / "rows.jsonl", gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return "rows.jsonl"


def folder_of_images(folder: Path) -> str:
    """Images of two formats, each with a .txt."""
    for n, caption in enumerate(CAPTIONS):
        write(folder / "photos" / f"{n}.{'png' if n % 2 else 'jpg'}", picture(n, "PNG" if n % 2 else "JPEG"))
        write(folder / "photos" / f"{n}.txt", caption)
    return "photos"


def tars(folder: Path) -> str:
    """What img2dataset writes."""
    rows: list[dict[str, Any]] = []
    (folder / "pool").mkdir()
    with tarfile.open(folder / "pool" / "00000.tar", "w") as tar:
        for n, caption in enumerate(CAPTIONS):
            about = {"caption": caption, "url": f"http://x.org/{n}.jpg", "key": f"{n:09d}", "status": "success"}
            rows.append(about)
            for ending, data in (("jpg", picture(n)), ("txt", caption.encode()), ("json", json.dumps(about).encode())):
                member = tarfile.TarInfo(f"{n:09d}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    pl.DataFrame(rows).write_parquet(folder / "pool" / "00000.parquet")
    return "pool/{00000..00000}.tar"


def pictures_in_parquet(folder: Path) -> str:
    """What Hugging Face's datasets write, of two formats, under names of one's own."""
    foto = [{"bytes": picture(n, "PNG" if n % 2 else "JPEG"), "path": f"{n}"} for n in range(5)]
    pl.DataFrame({"foto": foto, "alt_words": CAPTIONS}).write_parquet(folder / "train-00000.parquet")
    return "train-00000.parquet"


def urls_in_parquet(folder: Path) -> str:
    """LAION's metadata."""
    urls = [f"https://x.org/{n}.jpg?w=1" for n in range(5)]
    pl.DataFrame({"link": urls, "TEXT": CAPTIONS, "similarity": [0.3] * 5}).write_parquet(folder / "p.parquet")
    return "p.parquet"


def no_images(folder: Path) -> str:
    """Rows that name images which are not here."""
    rows = [{"image": f"{n}.jpg", "caption": text} for n, text in enumerate(CAPTIONS)]
    write(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return "rows.jsonl"


def karpathy_split(folder: Path) -> str:
    """Karpathy's split of COCO, its images in folders next to it."""
    images = []
    for n, caption in enumerate(CAPTIONS):
        write(folder / "val2014" / f"{n}.jpg", picture(n))
        sentences = [{"tokens": caption.split(), "raw": caption, "imgid": n, "sentid": n}]
        images.append(
            {"filepath": "val2014", "filename": f"{n}.jpg", "cocoid": n, "split": "val", "sentences": sentences}
        )
    write(folder / "dataset_coco.json", json.dumps({"images": images, "dataset": "coco"}))
    return "dataset_coco.json"


def token_file(folder: Path) -> str:
    """Flickr30k's captions without a header, its images in a folder next to them."""
    for n in range(len(CAPTIONS)):
        write(folder / "flickr30k-images" / f"{n}.jpg", picture(n))
    rows = [f"{n}.jpg#0\t{caption}\n" for n, caption in enumerate(CAPTIONS)]
    write(folder / "results_20130124.token", "".join(rows))
    return "results_20130124.token"


def texts_in_lists(folder: Path) -> str:
    """Several texts for each image, in objects of no known layout."""
    rows = [{"id": n, "areas": [{"area_id": n, "words": text}]} for n, text in enumerate(CAPTIONS)]
    write(folder / "areas.json", json.dumps(rows))
    return "areas.json"


def region_descriptions(folder: Path) -> str:
    """Visual Genome's descriptions of regions."""
    rows = [{"id": n, "regions": [{"region_id": n, "phrase": text}]} for n, text in enumerate(CAPTIONS)]
    write(folder / "region_descriptions.json", json.dumps(rows))
    return "region_descriptions.json"


TEXTS = {"verify_images": "off", "images": False}
INPUTS: list[tuple[Callable[[Path], str], dict[str, Any], int]] = [
    (coco, {"instances": "annotations/instances_val2014.json", "image_root": "val2014", "image_format": ""}, 5),
    (odd_csv, {"columns": {"caption": "human_words", "image": "foto"}, "image_root": "pics"}, 5),
    (odd_jsonl, {"columns": {"captions": "sents"}}, 0),
    (folder_of_images, {"image_format": "jpg"}, 5),
    (tars, {"columns": {}, "images": True}, 5),
    (pictures_in_parquet, {"columns": {"caption": "alt_words", "image": "foto"}, "image_format": "jpg"}, 5),
    (urls_in_parquet, {"columns": {"image": "link"}, **TEXTS}, 0),
    (no_images, {"columns": {}, **TEXTS}, 0),
    (karpathy_split, {"columns": {}, "images": True}, 5),
    (token_file, {"columns": {}, "image_root": "flickr30k-images"}, 5),
    (texts_in_lists, {"columns": {"captions": "areas.words"}}, 0),
    (region_descriptions, {"columns": {}}, 0),
]


@pytest.mark.parametrize(("make", "wanted", "packed"), INPUTS, ids=[make.__name__ for make, _, _ in INPUTS])
def test_init_and_then_build_work_at_once(
    run: Run, tmp_path: Path, make: Callable[[Path], str], wanted: dict[str, Any], packed: int
) -> None:
    run("init", "--input", make(tmp_path), "--template", "llava", "--out", "build.yaml")
    config = yaml.safe_load((tmp_path / "build.yaml").read_text())
    settings = {**config["input"], **config["shards"]}
    assert {name: settings[name] for name in wanted} == wanted
    built = json.loads(run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json").stdout)
    assert built["stages"]["sizes"]["kept"] == 5
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["contents"]["with_image"] == packed


@pytest.mark.parametrize(
    ("name", "content", "way_out"),
    [
        ("a.json", '[{"image": "a.jpg", "conversations": [{"from": "human", "value": "hi"}]}]', "pairwright mix"),
        ("a.jsonl", '{"image": "a.jpg", "conversations": [{"from": "human", "value": "hi"}]}', "pairwright mix"),
        (
            "a.json",
            '{"0": {"filename": "a.jpg", "caption": "a dog", "negative_caption": "a cat"}}',
            "pairwright refine",
        ),
        ("a.json", '{"images": [], "annotations": [{"bbox": [1, 2, 3, 4]}]}', "Give the captions file"),
        ("a.csv", "x,y\n1,2\n", "no column of captions among: x, y. Set it: --columns caption=NAME"),
        ("a.csv", "x,y\na red dog,a blue dog\n", "may each be the caption: x, y. Set it: --columns caption=x"),
        ("a.jsonl", '{"caption": "a', "broken_json"),
        ("a.txt", "1\ta dog\n", "rename the file to .tsv"),
        ("a.csv", "7,0.jpg,a red dog\n", "a.csv:1: the first line is a row, not a header: 0.jpg"),
        (
            "a.jsonl",
            '{"images": [], "texts": [{"user": "What is it?", "assistant": "A red dog."}]}',
            "if the first answers are captions: --columns caption=texts.0.assistant",
        ),
    ],
)
def test_what_no_build_can_read_is_refused_with_the_way_out(
    run: Run, tmp_path: Path, name: str, content: str, way_out: str
) -> None:
    write(tmp_path / name, content)
    done = run("init", "--input", name, "--out", "build.yaml", ok=False)
    assert done.returncode == 1
    assert way_out in done.stderr
    assert not (tmp_path / "build.yaml").exists()


def test_what_the_user_maps_goes_before_what_is_detected(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x,y\na red dog,a blue dog\n")
    run("init", "--input", "a.csv", "--columns", "caption=y", "--out", "build.yaml")
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]["columns"] == {"caption": "y"}
    done = run("init", "--input", "a.csv", "--columns", "caption=z", "--out", "other.yaml", ok=False)
    assert (done.returncode, "no column 'z'; there are: x, y" in done.stderr) == (1, True)


def test_a_model_writes_captions_only_where_most_images_have_none(run: Run, tmp_path: Path) -> None:
    for n, caption in enumerate(CAPTIONS):
        write(tmp_path / "photos" / f"{n}.jpg", picture(n))
        if n:
            write(tmp_path / "photos" / f"{n}.txt", caption)
    init = ("init", "--input", "photos", "--template", "llava", "--force", "--out", "build.yaml")
    done = run(*init)
    assert "1 of 5 images without a caption" in done.stdout
    assert (
        "Images without a caption are rejected. For captions by a model that sees them, add `captions:" in done.stderr
    )
    assert "captions" not in yaml.safe_load((tmp_path / "build.yaml").read_text())
    built = json.loads(run("build", "build.yaml", "--out", "out", "--no-prefect", "--json").stdout)
    assert (built["samples"], built["stages"]["pairs"]["rejected"]) == (4, {"missing_caption": 1})
    for n in (1, 2):
        (tmp_path / "photos" / f"{n}.txt").unlink()
    assert "A model that sees the images writes their captions" in run(*init).stderr
    assert "captions" in yaml.safe_load((tmp_path / "build.yaml").read_text())


def test_images_of_another_folder_are_taken_only_when_most_are_there(run: Run, tmp_path: Path) -> None:
    """Names such as 0.jpg are common: another folder next to the input may belong to something else."""
    rows = "".join(json.dumps({"image": f"{n}.jpg", "caption": text}) + "\n" for n, text in enumerate(CAPTIONS))
    write(tmp_path / "mine" / "rows.jsonl", rows)
    for n in range(4):
        write(tmp_path / "others" / f"{n}.jpg", picture(n))
    done = run("init", "--input", "mine/rows.jsonl", "--out", "build.yaml")
    assert "No image file found" in done.stderr
    assert "Set image_root to the folder of the images; others has 4 of the 5 that were checked." in done.stderr
    write(tmp_path / "others" / "4.jpg", picture(4))
    run("init", "--input", "mine/rows.jsonl", "--out", "build.yaml", "--force")
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]["image_root"] == "others"


def test_single_captions_are_not_counted_among_the_rejected_rows(run: Run, tmp_path: Path) -> None:
    rows = [
        {"captions": ["A dog on a mat.", "<image> a dog", ""]},
        {"captions": ["A cat on a bed."]},
        {"captions": [""]},
    ]
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("init", "--input", "rows.jsonl", "--out", "build.yaml")
    assert "1 of the first 3 rows is rejected: empty_caption 1." in done.stderr
    assert "Captions rejected of rows that have others: empty_caption 1, image_token 1." in done.stderr


def test_a_missing_image_does_not_cost_those_of_a_folder_next_to_the_input(run: Run, tmp_path: Path) -> None:
    rows = [{"image": f"{n}.jpg", "caption": CAPTIONS[n % len(CAPTIONS)]} for n in range(12)]
    write(tmp_path / "mine" / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for n in range(11):
        write(tmp_path / "photos" / f"{n}.jpg", picture(n))
    done = run("init", "--input", "mine/rows.jsonl", "--out", "build.yaml")
    config = yaml.safe_load((tmp_path / "build.yaml").read_text())
    assert (config["input"]["image_root"], config["shards"]["images"]) == ("photos", True)
    assert "Missing images: 1 of 12 that were checked. They are rejected." in done.stderr


@pytest.mark.parametrize("files", [True, False])
def test_numbers_in_a_column_named_image_are_ids_of_the_images(run: Run, tmp_path: Path, *, files: bool) -> None:
    """They were files of that name: `No image file found (3)`."""
    rows = [{"image": n, "caption": text} for n, text in enumerate(CAPTIONS)]
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    if files:
        folder_of_a_dataset(tmp_path)
    done = run("init", "--input", "rows.jsonl", "--out", "build.yaml", "--json")
    columns = yaml.safe_load((tmp_path / "build.yaml").read_text())["input"].get("columns") or {}
    assert columns.get("image") == ("{image}.jpg" if files else None)
    assert ("no images" in json.loads(done.stdout)["detected"]) is not files
    assert not done.stderr


def test_a_few_urls_do_not_cost_the_other_images(run: Run, tmp_path: Path) -> None:
    """Samples of img2dataset whose image is lost name a URL, and all images were omitted because of them."""
    images = ["0.jpg", "1.jpg", "2.jpg", "https://x.org/3.jpg", ""]
    rows = [{"image": image, "caption": text} for image, text in zip(images, CAPTIONS, strict=True)]
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for n in range(3):
        write(tmp_path / f"{n}.jpg", picture(n))
    done = run("init", "--input", "rows.jsonl", "--out", "build.yaml")
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["shards"]["images"] is True
    assert "1 of 4 images given by URL: rejected." in done.stderr
    assert "Pairs without an image: 1 of 5. They are rejected." in done.stderr


def test_a_column_of_lists_of_bytes_is_named(run: Run, tmp_path: Path) -> None:
    """It was called "no images"."""
    rows = [{"caption": text, "images": [picture(n)]} for n, text in enumerate(CAPTIONS)]
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    done = run("init", "--input", "rows.parquet", "--out", "build.yaml")
    assert "lists of bytes and other nested bytes are not read (column images). Write one image per row" in done.stderr


def test_lists_of_one_image_are_read(run: Run, tmp_path: Path) -> None:
    rows = [{"caption": text, "images": [{"bytes": picture(n), "path": "a.jpg"}]} for n, text in enumerate(CAPTIONS)]
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    done = run("init", "--input", "rows.parquet", "--out", "build.yaml")
    assert "Detected: image from column images." in done.stdout
    assert not done.stderr


def test_rejected_rows_are_counted(run: Run, tmp_path: Path) -> None:
    """A common name may be that of a column without captions."""
    rows = [{"text": text if n == 0 else None, "name": text} for n, text in enumerate(CAPTIONS)]
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("init", "--input", "rows.jsonl", "--out", "build.yaml")
    assert "4 of the first 5 rows are rejected: empty_caption 4." in done.stderr


def test_boxes_in_pixels_of_images_whose_files_tell_the_size_are_not_called_bad(run: Run, tmp_path: Path) -> None:
    rows = [
        {"image": f"images/{number}.jpg", "caption": text, "boxes": [{"label": "dog", "bbox": [0, 0, 5, right]}]}
        for number, (text, right) in enumerate(zip(CAPTIONS, (5, 5, 500, 5, 5), strict=True))
    ]
    for number in range(len(rows)):
        write(tmp_path / "data" / "images" / f"{number}.jpg", picture(number))
    write(tmp_path / "in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = json.loads(run("init", "--input", "in.jsonl", "--out", "build.yaml", "--json").stdout)
    assert found["notes"] == ["Bad boxes: 1 of the first 5 pairs is read without boxes."]


def test_the_columns_that_are_read_are_named_and_other_texts_too(run: Run, tmp_path: Path) -> None:
    """A constant title was taken for the caption, and nothing said so."""
    write(
        tmp_path / "a.csv",
        "URL,blurb,title\n" + "".join(f"https://x.org/{n}.jpg,{c},a title\n" for n, c in enumerate(CAPTIONS)),
    )
    done = run("init", "--input", "a.csv", "--out", "build.yaml")
    assert "Detected: caption from column title; image from column URL." in done.stdout
    assert "read from title, not from the column blurb. To use it instead: --columns caption=blurb." in done.stderr
    done = run("init", "--input", "a.csv", "--columns", "caption=blurb", "--out", "other.yaml")
    assert "title" not in done.stdout + done.stderr


def test_a_title_and_an_alternative_text_are_ambiguous(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "alt_text,title\na red dog,some title\n")
    for verb in (("init", "--out", "a.yaml", "--input"), ("generate", "negatives", "--out", "a.jsonl")):
        done = run(*verb, "a.csv", ok=False)
        assert "title" in done.stderr
        assert "--columns caption=" in done.stderr


def test_images_are_found_and_names_stay_readable_from_another_folder(run: Run, tmp_path: Path) -> None:
    """The way to the input held `..`: no image was found. Letters beyond ASCII were escaped."""
    write(tmp_path / "Köln" / "rows.jsonl", json.dumps({"image": "0.jpg", "caption": CAPTIONS[0]}) + "\n")
    write(tmp_path / "Köln" / "photos" / "0.jpg", picture(0))
    (tmp_path / "work").mkdir()
    run("init", "--input", "work/../Köln/rows.jsonl", "--out", "work/build.yaml")
    text = (tmp_path / "work" / "build.yaml").read_text(encoding="utf-8")
    assert "path: ../Köln/rows.jsonl" in text
    assert yaml.safe_load(text)["input"]["image_root"] == "../Köln/photos"


def test_a_plan_gives_the_reasons_of_rejected_rows(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "caption\na red dog\n\na blue dog\na red dog\n")
    run("init", "--input", "a.csv", "--out", "build.yaml")
    shown = run("plan", "build.yaml").stdout
    assert "1 row rejected: duplicate_key 1" in shown
    assert re.search(r"shards +1, about [1-9][\d.]* (bytes|kB)", shown)
    work = json.loads(run("plan", "build.yaml", "--json").stdout)["work"]
    assert work["refused"] == sum(work["rejected"].values()) > 0


def test_captions_of_the_web_that_are_no_plain_english_are_counted(run: Run, tmp_path: Path) -> None:
    odd = [
        "a &quot;red&quot; dog",
        "<b>a cat</b>",
        "IMG_1.jpg",
        "https://x.org/a",
        "一只猫坐在椅子上",
        "ein Hund im Café",
        "salt & pepper",
    ]
    write(tmp_path / "a.jsonl", "".join(json.dumps({"caption": text}) + "\n" for text in [*CAPTIONS, *odd]))
    done = run("init", "--input", "a.jsonl", "--out", "build.yaml")
    number = len(CAPTIONS) + len(odd)
    what = "HTML 2, a file name, address or placeholder 2, another language than English 2."
    assert f"Of the first {number} captions: {what}" in done.stderr
    write(tmp_path / "b.jsonl", "".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    assert not run("init", "--input", "b.jsonl", "--out", "other.yaml").stderr


@pytest.mark.parametrize(("file", "name"), [("odd 猫 name", "odd-name"), ("ünï cödé", "uni-code")])
def test_a_name_of_a_dataset_loses_accents_and_has_one_dash_for_other_letters(
    run: Run, tmp_path: Path, file: str, name: str
) -> None:
    write(tmp_path / f"{file}.jsonl", json.dumps({"caption": CAPTIONS[0]}) + "\n")
    done = run("init", "--input", f"{file}.jsonl", "--out", "my build.yaml")
    assert yaml.safe_load((tmp_path / "my build.yaml").read_text(encoding="utf-8"))["name"] == name
    assert "Next: pairwright build 'my build.yaml'" in done.stdout


def test_a_folder_in_the_place_of_the_config_is_named_as_one(run: Run, captions: Path) -> None:
    done = run("init", "--input", captions.name, "--out", ".", "--force", ok=False)
    assert done.returncode == 2
    assert ".: is a folder. Name a file in it, such as build.yaml." in done.stderr


def test_splits_are_named_and_chosen_in_the_config(run: Run, tmp_path: Path) -> None:
    rows = [{"caption": text, "split": "test" if n else "train"} for n, text in enumerate(CAPTIONS)]
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("init", "--input", "rows.jsonl", "--template", "llava", "--out", "build.yaml")
    assert "All splits are read (train, test): `where` in the config chooses among them." in done.stderr
    config = (tmp_path / "build.yaml").read_text()
    write(tmp_path / "build.yaml", config.replace("# where: {split: [train]}", "where: {split: [test]}"))
    built = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json")
    scan = json.loads(built.stdout)["stages"]["pairs"]
    assert (scan["kept"], scan["rejected"]) == (4, {"not_selected": 1})


def test_answers_of_conversations_are_captions_when_the_user_says_so(run: Run, tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "<image>\nDescribe it."}, {"from": "gpt", "value": CAPTIONS[0]}]
    write(tmp_path / "chat.json", json.dumps([{"id": "1", "image": "1.jpg", "conversations": turns}]))
    refused = run("init", "--input", "chat.json", "--out", "build.yaml", ok=False)
    assert "If the first answer of each row is one: --columns caption=conversations.1.value" in refused.stderr
    run("init", "--input", "chat.json", "--columns", "caption=conversations.1.value", "--out", "build.yaml")
    config = yaml.safe_load((tmp_path / "build.yaml").read_text())
    assert config["input"]["columns"] == {"caption": "conversations.1.value"}
    columns = ("--columns", "caption=conversations.1.value")
    made = run("generate", "negatives", "chat.json", *columns, "--out", "n.jsonl", "--json")
    assert json.loads(made.stdout)["captions"] == 1


def test_addresses_of_images_that_are_missing_are_pointed_out(run: Run, tmp_path: Path) -> None:
    row = {"image": "0/1.jpg", "blip_caption": CAPTIONS[0], "url": "http://x.org/1.jpg"}
    write(tmp_path / "meta.json", json.dumps([row]))
    done = run("init", "--input", "meta.json", "--out", "build.yaml")
    assert "Or download them: --columns image=url, and `pairwright fetch`." in done.stderr


def test_files_of_several_splits_are_named_with_the_pattern_of_one(run: Run, tmp_path: Path) -> None:
    names = [*(f"train-0000{n}-of-00003.parquet" for n in range(3)), "test-00000-of-00001.parquet"]
    for n, name in enumerate(names):
        (tmp_path / "data").mkdir(exist_ok=True)
        pl.DataFrame({"caption": [f"{text} {n}" for text in CAPTIONS]}).write_parquet(tmp_path / "data" / name)
    done = run("init", "--input", "data", "--out", "build.yaml")
    one = "data/train-0000{0..2}-of-00003.parquet"
    assert f"Files of all splits are read (test, train). To read train only: --input '{one}'." in done.stderr
    done = run("init", "--input", one, "--template", "negatives", "--out", "build.yaml", "--force")
    assert "splits" not in done.stderr


def test_the_caption_of_a_tar_may_be_any_text_of_its_json(run: Run, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for n, text in enumerate(CAPTIONS):
            for name, data in (
                (f"{n}.jpg", picture(n)),
                (f"{n}.json", json.dumps({"prompt": text, "seed": n}).encode()),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    run("init", "--input", "a.tar", "--out", "build.yaml")
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]["columns"] == {"caption": "prompt"}


def test_folders_of_a_partitioned_table_are_read_by_the_pattern_that_the_message_names(
    run: Run, tmp_path: Path
) -> None:
    for split in ("train", "val"):
        (tmp_path / "t" / f"split={split}").mkdir(parents=True)
        rows = pl.DataFrame({"caption": [f"{text} {split}" for text in CAPTIONS]})
        rows.write_parquet(tmp_path / "t" / f"split={split}" / "part-0.parquet")
    refused = run("init", "--input", "t", "--out", "build.yaml", ok=False)
    assert "All: t/{split=train,split=val}" in refused.stderr
    run("init", "--input", "t/{split=train,split=val}", "--out", "build.yaml")
    listed = run("generate", "negatives", "t/{split=train,split=val}", "--out", "n.jsonl", "--json")
    assert json.loads(listed.stdout)["captions"] == 2 * len(CAPTIONS)


def test_a_question_that_all_rows_have_is_not_their_caption(run: Run, tmp_path: Path) -> None:
    rows = [
        {"image": f"{n}.jpg", "question": "What is in the image?", "answer": [text]} for n, text in enumerate(CAPTIONS)
    ]
    write(tmp_path / "vqa.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("init", "--input", "vqa.jsonl", "--out", "build.yaml")
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]["columns"] == {"captions": "answer"}
    assert "not from the column" not in done.stderr


@pytest.mark.parametrize(
    "row",
    [
        {"url": "https://a.org", "text_list": ["A red dog."], "image_info": [{"raw_url": "https://a.org/1.jpg"}]},
        {"images": [None, "https://a.org/1.jpg"], "texts": ["A red dog.", None], "metadata": "[]"},
    ],
)
def test_documents_of_texts_with_images_are_refused(run: Run, tmp_path: Path, row: dict[str, Any]) -> None:
    write(tmp_path / "docs.jsonl", json.dumps(row) + "\n")
    done = run("init", "--input", "docs.jsonl", "--out", "build.yaml", ok=False)
    assert (done.returncode, (tmp_path / "build.yaml").exists()) == (1, False)
    assert "docs.jsonl: documents of texts with images between them, not pairs." in done.stderr


def test_names_and_messages_of_errors_are_not_offered_as_captions(run: Run, tmp_path: Path) -> None:
    rows = [
        {"caption": text, "mime_type": "image/jpeg", "error": "not found" if n else None}
        for n, text in enumerate(CAPTIONS)
    ]
    rows[2]["error"] = rows[3]["error"] = None
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert "not from" not in run("init", "--input", "rows.jsonl", "--out", "build.yaml").stderr


def folder_of_a_dataset(folder: Path, *, template: str = "{}.jpg", images: str = "photos") -> list[str]:
    """Write images without captions beside them; return their names."""
    names = [template.format(n) for n in range(5)]
    for n, name in enumerate(names):
        write(folder / images / name, picture(n))
    return names


DATASET_FOLDERS: dict[str, tuple[str, str, Callable[[str, str], str]]] = {
    # name of the file, template of the images, and a row of it
    "results_20130124.token": ("{}.jpg", "", lambda image, text: f"{image}#0\t{text}\n"),
    "results.csv": ("{}.jpg", "image_name| comment_number| comment\n", lambda image, text: f"{image}| 0| {text}\n"),
    "captions.txt": ("{}.jpg", "image,caption\n", lambda image, text: f"{image},{text}\n"),
    "train.csv": ("{}.jpg", "\ufeffImage Name;Image Caption\r\n", lambda image, text: f"{image};{text}\r\n"),
    "narratives/val.jsonl": (
        "ab{}.jpg",
        "",
        lambda image, text: json.dumps({"image_id": image[:-4], "caption": text, "traces": []}) + "\n",
    ),
    "narratives/coco.jsonl": (
        "{:012}.jpg",
        "",
        lambda image, text: json.dumps({"image_id": str(int(image[:-4])), "caption": text}) + "\n",
    ),
}


@pytest.mark.parametrize("name", DATASET_FOLDERS)
def test_init_finds_the_captions_of_a_folder_of_images_in_a_file(run: Run, tmp_path: Path, name: str) -> None:
    template, header, row = DATASET_FOLDERS[name]
    images = folder_of_a_dataset(tmp_path / "data", template=template)
    rows = "".join(row(image, text) for image, text in zip(images, CAPTIONS, strict=True))
    write(tmp_path / "data" / name, header + rows)
    done = run("init", "--input", "data", "--template", "llava", "--out", "build.yaml", "--json")
    assert f"captions in data/{name}" in json.loads(done.stdout)["detected"]
    config = yaml.safe_load((tmp_path / "build.yaml").read_text())
    assert (config["input"]["path"], config["input"]["image_root"]) == (f"data/{name}", "data/photos")
    assert "captions" not in config
    built = json.loads(run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json").stdout)
    assert built["samples"] == 5


@pytest.mark.parametrize("images", ["val2014", "images/val2014"])
def test_init_reads_cocos_folder_and_says_which_captions_it_does_not_read(
    run: Run, tmp_path: Path, images: str
) -> None:
    coco(tmp_path)
    if images != "val2014":
        (tmp_path / "images").mkdir()
        (tmp_path / "val2014").rename(tmp_path / images)
    captions = json.loads((tmp_path / "annotations" / "captions_val2014.json").read_text())
    few = {"images": captions["images"][:2], "annotations": captions["annotations"][:2]}
    write(tmp_path / "annotations" / "captions_mini.json", json.dumps(few))
    done = run("init", "--input", ".", "--template", "negatives", "--out", "build.yaml")
    names = ("annotations/captions_val2014.json", "annotations/captions_mini.json")
    assert f"2 files have captions of these images: {names[0]} is read, not {names[1]}." in done.stderr
    section = yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]
    assert section["path"] == names[0]
    assert (section["instances"], section["image_root"]) == ("annotations/instances_val2014.json", images)


def test_captions_of_two_splits_are_read_together_by_the_pattern_that_init_names(run: Run, tmp_path: Path) -> None:
    for first, split in ((0, "train2017"), (5, "val2017")):
        images = [{"id": first + n, "file_name": f"{first + n}.jpg", "width": 48, "height": 32} for n in range(5)]
        for n, image in enumerate(images):
            write(tmp_path / "coco" / split / str(image["file_name"]), picture(n))
        rows = [{"id": n, "image_id": first + n, "caption": f"{text} {split}"} for n, text in enumerate(CAPTIONS)]
        boxes = [{"id": 1, "image_id": first, "category_id": 1, "bbox": [1, 1, 20, 20]}]
        instances = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "bus"}]}
        folder = tmp_path / "coco" / "annotations"
        write(folder / f"captions_{split}.json", json.dumps({"images": images, "annotations": rows}))
        write(folder / f"instances_{split}.json", json.dumps(instances))
    done = run("init", "--input", "coco", "--template", "negatives", "--out", "build.yaml")
    pattern = "coco/annotations/captions_{train,val}2017.json"
    assert f"To use all: --input '{pattern}'." in done.stderr
    run("init", "--input", pattern, "--template", "negatives", "--out", "build.yaml", "--force")
    section = yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]
    assert section["instances"] == "coco/annotations/instances_{train,val}2017.json"
    assert section["image_root"] == "coco/{train2017,val2017}"
    config = yaml.safe_load((tmp_path / "build.yaml").read_text())
    (tmp_path / "few.yaml").write_text(yaml.safe_dump({name: config[name] for name in ("name", "input", "shards")}))
    built = json.loads(run("build", "few.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json").stdout)
    assert built["samples"] == 10
    pairs = pl.read_parquet(tmp_path / "out" / "pairs" / "*.parquet")
    assert sorted(pairs.filter(pl.col("boxes").list.len() == 1)["source_id"]) == ["0", "5"]
    refused = run("init", "--input", "coco/annotations", "--out", "other.yaml", ok=False)
    assert "Give the file that has the captions: coco/annotations/captions_train2017.json" in refused.stderr


def test_files_about_the_images_without_captions_are_named(run: Run, tmp_path: Path) -> None:
    images = folder_of_a_dataset(tmp_path / "data")
    turns = [{"from": "human", "value": "<image> What?"}, {"from": "gpt", "value": "A dog."}]
    write(tmp_path / "data" / "chat.json", json.dumps([{"id": "1", "image": images[0], "conversations": turns}]))
    boxes = {"images": [{"id": 1, "file_name": images[0]}], "annotations": [{"image_id": 1, "bbox": [1, 1, 2, 2]}]}
    write(tmp_path / "data" / "_annotations.coco.json", json.dumps(boxes))
    done = run("init", "--input", "data", "--out", "build.yaml")
    assert "data/chat.json is not read: LLaVA conversations." in done.stderr
    assert "--columns caption=conversations.1.value" in done.stderr
    assert "data/_annotations.coco.json is not read: COCO instances (boxes)." in done.stderr


def test_images_in_two_folders_side_by_side_are_found(run: Run, tmp_path: Path) -> None:
    rows = [{"id": n, "regions": [{"phrase": text}]} for n, text in enumerate(CAPTIONS)]
    write(tmp_path / "vg" / "region_descriptions.json", json.dumps(rows))
    for n in range(5):
        write(tmp_path / "vg" / ("VG_100K_2" if n % 2 else "VG_100K") / f"{n}.jpg", picture(n))
    run("init", "--input", "vg", "--template", "llava", "--out", "build.yaml")
    section = yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]
    assert section["image_root"] == "vg/{VG_100K,VG_100K_2}"
    built = json.loads(run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json").stdout)
    assert built["samples"] == 5


@pytest.mark.parametrize("given", ["two", "two/captions.csv"])
def test_images_of_the_input_go_before_those_of_another_dataset_beside_it(run: Run, tmp_path: Path, given: str) -> None:
    write(
        tmp_path / "two/captions.csv",
        "image,caption\n" + "".join(f"{n}.jpg,{text}\n" for n, text in enumerate(CAPTIONS)),
    )
    for n in range(len(CAPTIONS)):
        write(tmp_path / "two" / "ab"[n % 2] / f"{n}.jpg", picture(n))
        write(tmp_path / "other" / f"{n}.jpg", picture(n))
    run("init", "--input", given, "--out", "build.yaml")
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]["image_root"] == "two/{a,b}"


def test_captions_of_the_web_are_cleaned_by_the_proposed_config(run: Run, tmp_path: Path) -> None:
    texts = [f"{text} | Etsy" for text in CAPTIONS] + ["IMG_1.jpg"]
    write(tmp_path / "a.jsonl", "".join(json.dumps({"caption": text}) + "\n" for text in texts))
    done = run("init", "--input", "a.jsonl", "--template", "llava", "--out", "build.yaml")
    assert (
        "an address, mention, hashtag, emoji or note of an agency 5, a file name, address or placeholder 1"
        in done.stderr
    )
    assert yaml.safe_load((tmp_path / "build.yaml").read_text())["input"]["clean_captions"] is True
    built = json.loads(run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json").stdout)
    assert built["stages"]["pairs"]["rejected"] == {"no_content": 1}
    stored = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "out" / "pairs").glob("*.parquet"))])
    assert sorted(stored["caption"]) == sorted(text.rstrip(",") for text in CAPTIONS)


@pytest.mark.parametrize("given", ["data/a.csv", "data"])
def test_a_header_in_another_encoding_is_read_in_the_likely_one_which_is_named(
    run: Run, tmp_path: Path, given: str
) -> None:
    images = folder_of_a_dataset(tmp_path / "data")
    text = "Größe;image;caption\n" + "".join(
        f"1;{name};{text} café\n" for name, text in zip(images, CAPTIONS, strict=True)
    )
    write(tmp_path / "data" / "a.csv", text.encode("cp1252"))
    done = run("init", "--input", given, "--template", "llava", "--out", "build.yaml")
    assert "In cp1252, which the config names, it reads 'Größe;image;caption'." in done.stderr
    section = yaml.safe_load((tmp_path / "build.yaml").read_text(encoding="utf-8"))["input"]
    assert (section["path"], section["encoding"]) == ("data/a.csv", "cp1252")
    run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    pairs = pl.read_parquet(tmp_path / "out" / "pairs" / "*.parquet")
    assert pairs["caption"].to_list() == [f"{text} café" for text in CAPTIONS]


def test_rows_in_another_encoding_are_counted_with_the_way_out(run: Run, tmp_path: Path) -> None:
    text = "a cat at a café".encode("cp1252")
    write(tmp_path / "a.csv", b"caption\na dog on a mat\n" + text + b"\n" + b"dog " * 600)
    done = run("init", "--input", "a.csv", "--out", "build.yaml")
    assert "2 of the first 3 rows are rejected: caption_too_long 1, not_utf8 1." in done.stderr
    assert "name it: `encoding` under input" in done.stderr
    with tarfile.open(tmp_path / "00000.tar", "w") as tar:
        for name, data in (("1.txt", b"a dog on a mat"), ("2.txt", text)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    done = run("init", "--input", "00000.tar", "--out", "tar.yaml")
    assert "not_utf8 1." in done.stderr
    assert "encoding" not in done.stderr  # tars have no such setting


@pytest.mark.parametrize("first", ["caption", "caption_1"])
def test_numbered_columns_of_captions_are_read_together(run: Run, tmp_path: Path, first: str) -> None:
    rows = "".join(f"{text}|one {text}|two {text}\n" for text in CAPTIONS)
    write(tmp_path / "a.csv", f"{first}|caption_2|caption_3\n{rows}")
    done = run("init", "--input", "a.csv", "--template", "llava", "--out", "build.yaml")
    assert "captions from column caption_*" in done.stdout
    assert "Captions are read from" not in done.stderr
    run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    stored = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "out" / "pairs").glob("*.parquet"))])
    assert set(stored["captions"].list.len()) == {2}


def in_base64(folder: Path) -> str:
    rows = [{"image": base64.b64encode(picture(n)).decode(), "caption": text} for n, text in enumerate(CAPTIONS)]
    write(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return "rows.jsonl"


def in_lists_of_bytes(folder: Path) -> str:
    pl.DataFrame({"images": [[picture(0), picture(1)]] * 5, "caption": CAPTIONS}).write_parquet(folder / "rows.parquet")
    return "rows.parquet"


@pytest.mark.parametrize("layout", [in_base64, in_lists_of_bytes])
def test_images_inside_rows_that_are_not_read_give_a_build_of_texts(
    run: Run, tmp_path: Path, layout: Callable[[Path], str]
) -> None:
    """The message said so, but the build ended with `image_in_table`, or with the text of an image as its path."""
    found = json.loads(run("init", "--input", layout(tmp_path), "--out", "b.yaml", "--json").stdout)
    assert found["notes"][0].startswith("The build packs texts only: images in base64, lists of bytes")
    built = run("build", "b.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    assert "5 samples, text only" in built.stdout
    stored = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "out" / "pairs").glob("*.parquet"))])
    assert set(stored["image"]) == {""}


def test_formats_of_images_are_those_of_their_bytes(run: Run, tmp_path: Path) -> None:
    """By its name a PNG called .jpg was a JPEG: the config did not recode it, and the build refused it."""
    rows = []
    for number, caption in enumerate(CAPTIONS):
        write(tmp_path / "photos" / f"{number}.jpg", picture(number, "PNG" if number == 3 else "JPEG"))
        rows.append({"image": f"{number}.jpg", "caption": caption})
    write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("init", "--input", "rows.jsonl", "--out", "b.yaml")
    assert "images in photos; image formats jpg 4, png 1, recoded to jpg" in done.stdout
    assert yaml.safe_load((tmp_path / "b.yaml").read_text())["shards"]["image_format"] == "jpg"


WINOGROUND = {
    "id": 0,
    "image_0": "ex_0_img_0",
    "image_1": "ex_0_img_1",
    "caption_0": CAPTIONS[0],
    "caption_1": CAPTIONS[1],
}


@pytest.mark.parametrize(
    ("row", "way_out"),
    [
        (
            WINOGROUND,
            "may each be the caption: caption_0, caption_1. Set it: --columns caption=caption_0. To use the nega",
        ),
        ({"true_caption": "a red dog", "false_caption": "a red cat"}, "`pairwright audit` and `refine` read this file"),
        ({"qas": [{"question": "What is on the table?"}]}, "no column of captions among: qas. Set it"),
        ({"image_id": 1, "objects": [{"names": ["tree"]}]}, "If another file has the captions, give that file."),
    ],
)
def test_negatives_and_questions_are_not_proposed_as_captions(
    run: Run, tmp_path: Path, row: dict[str, Any], way_out: str
) -> None:
    write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    done = run("init", "--input", "a.jsonl", "--out", "build.yaml", ok=False)
    assert done.returncode == 1
    assert way_out in done.stderr


@pytest.mark.parametrize(
    ("name", "row", "about"),
    [
        ("a.csv", {"caption": CAPTIONS[0], "hard_negs": "['a red cat', 'a red bus']"}, "captions with negatives"),
        ("a.jsonl", {"caption": CAPTIONS[0], "negative": "a red cat"}, "captions with negatives"),
        ("a.json", {"caption": CAPTIONS[0], "caption2": CAPTIONS[1], "negative_caption": "a cat sits"}, "SugarCrepe++"),
    ],
)
def test_negatives_beside_captions_are_named_as_such(
    run: Run, tmp_path: Path, name: str, row: dict[str, Any], about: str
) -> None:
    """It was proposed to use them as captions."""
    table = ",".join(row) + "\n" + ",".join(f'"{value}"' for value in row.values()) + "\n"
    write(tmp_path / name, {"a.csv": table, "a.json": json.dumps([row]), "a.jsonl": json.dumps(row) + "\n"}[name])
    done = run("init", "--input", name, "--out", "build.yaml")
    assert f"A build reads the captions alone, from caption. To use the negatives ({about}" in done.stderr
    assert "instead" not in done.stderr


def test_a_benchmark_without_rows_of_captions_is_named_with_its_commands(run: Run, tmp_path: Path) -> None:
    rows = [[f"{n}.jpg", {"POS": ["a red car"], "NEG": ["a blue car"]}] for n in range(3)]
    write(tmp_path / "a.json", json.dumps(rows))
    done = run("init", "--input", "a.json", "--out", "build.yaml", ok=False)
    assert done.returncode == 1
    assert "To use the negatives (VL-CheckList: images with captions and negatives): `pairwright audit`" in done.stderr


@pytest.mark.parametrize(
    ("name", "questions", "returncode"), [("title_text", 20, 0), ("title_text", 40, 1), ("question", 20, 1)]
)
def test_a_caption_column_may_hold_some_questions(
    run: Run, tmp_path: Path, name: str, questions: int, returncode: int
) -> None:
    texts = [f"A red car {n} on a street{'. Whose is it?' if n < questions else ''}" for n in range(40)]
    write(
        tmp_path / "a.jsonl",
        "".join(json.dumps({"image": f"{n}.jpg", name: text}) + "\n" for n, text in enumerate(texts)),
    )
    done = run("init", "--input", "a.jsonl", "--out", "build.yaml", ok=False)
    assert done.returncode == returncode
    assert (tmp_path / "build.yaml").exists() == (returncode == 0)


def test_a_model_writes_the_captions_of_images_in_tars_that_have_none(run: Run, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in (("0.jpg", picture(0)), ("0.cls", b"7"), ("0.json", b'{"label": 7}')):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    done = run("init", "--input", "a.tar", "--out", "build.yaml")
    assert "Detected: 1 of 1 image without a caption." in done.stdout
    assert "captions" in yaml.safe_load((tmp_path / "build.yaml").read_text())


def test_a_table_of_a_folder_of_images_may_have_any_names(run: Run, tmp_path: Path) -> None:
    """A model was to write the captions, as no name said that a column has them."""
    rows = "".join(f"{n}.jpg;{text}\n" for n, text in enumerate(CAPTIONS))
    for n in range(len(CAPTIONS)):
        write(tmp_path / "set" / "bilder" / f"{n}.jpg", picture(n))
    write(tmp_path / "set" / "tabelle.csv", f"Bild;Beschreibung\n{rows}".encode("utf-8-sig"))
    done = run("init", "--input", "set", "--out", "build.yaml")
    assert "captions in set/tabelle.csv; caption from column Beschreibung; image from column Bild" in done.stdout
    more = "".join(f"{n}.jpg;{text};by the river {n}\n" for n, text in enumerate(CAPTIONS))
    write(tmp_path / "set" / "tabelle.csv", f"Bild;Beschreibung;Ort\n{more}")
    done = run("init", "--input", "set", "--out", "other.yaml")
    assert "A table of these images is not read: set/tabelle.csv: columns that may each be the caption" in done.stderr
    assert f"{len(CAPTIONS)} of {len(CAPTIONS)} images without a caption" in done.stdout


def test_captions_of_several_lines_may_be_a_caption_a_line(run: Run, tmp_path: Path) -> None:
    for n, text in enumerate(CAPTIONS):
        write(tmp_path / "set" / f"{n}.jpg", picture(n))
        write(tmp_path / "set" / f"{n}.txt", f"{text}\nThe same in other words.\n")
    done = run("init", "--input", "set", "--out", "build.yaml")
    assert "If each line is a caption of its own: --columns captions=caption.lines." in done.stderr
    run("init", "--input", "set", "--columns", "captions=caption.lines", "--out", "lines.yaml")
    assert yaml.safe_load((tmp_path / "lines.yaml").read_text())["input"]["columns"] == {"captions": "caption.lines"}
