"""Layouts of benchmarks: recognised by content, read as candidate rows, written back, and flaws counted."""

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.exports.formats import export_records
from pairwright.datasets.exports.writing import find_positive, list_negatives
from pairwright.filters.candidates.files import layout_of, read_candidates, write_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.layouts import LAYOUTS
from pairwright.filters.candidates.samples import candidate_source, holds_candidates
from pairwright.filters.scorers.image_groups import image_group
from tests.datasets.sample_builders import image_files

PLUS = {
    "id": 4,
    "filename": "7.jpg",
    "caption": "a red cup",
    "caption2": "one cup, red",
    "negative_caption": "a blue cup",
}
VALSE = {
    "image_file": "7.jpg",
    "dataset": "coco",
    "caption": "a cup is on a table",
    "foil": "a cup is under a table",
    "linguistic_phenomena": "relations",
    "classes": "on",
    "mturk": {"foil": 0, "caption": 3, "other": 0},
}
ARO = {
    "image_path": "7.jpg",
    "bbox_x": 1,
    "bbox_y": 2,
    "bbox_w": 30,
    "bbox_h": 40,
    "true_caption": "the cup is on the table",
    "false_caption": "the table is on the cup",
    "relation_name": "on",
}
WHATSUP = {
    "image_path": "data/controlled_images/mug_left_of_plate.jpeg",
    "caption_options": [f"A mug {where} a plate" for where in ("to the left of", "to the right of", "on", "under")],
}
NEGBENCH = {
    "image_path": "/home/user/coco/val2017/7.jpg",
    **{f"caption_{number}": text for number, text in enumerate(("a dog", "no dog", "a cat", "no cat, a dog"))},
    "correct_answer": "3",
    "correct_answer_template": "hybrid",
}
WINOGROUND = {
    "id": 5,
    "image_0": "a.png",
    "image_1": "b.png",
    "caption_0": "a dog on a cat",
    "caption_1": "a cat on a dog",
    "tag": "Object",
}
COLORSWAP = {
    "id": 5,
    "image_1": "a.png",
    "image_2": "b.png",
    "caption_1": "a red dog, a blue cat",
    "caption_2": "a blue dog, a red cat",
}
BIVLC = {
    "image": "a.png",
    "negative_image": "b.png",
    "caption": "a dog",
    "negative_caption": "a cat",
    "type": "replace",
}
PREFERENCE = {
    "images": ["a.jpg"],
    "prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is this?"}]}],
    "chosen": [{"role": "assistant", "content": [{"type": "text", "text": "A dog."}]}],
    "rejected": [{"role": "assistant", "content": "A dog and a cat."}],
    "id": 7,
    "scores": "0.9",
}
CONTENTS: dict[str, tuple[str, Any]] = {
    "sugarcrepe++": ("swap_att.json", [PLUS]),
    "valse": ("relations.json", {"x:1": VALSE}),
    "aro": ("visual_genome_relation.json", [ARO]),
    "whatsup": ("controlled_clevr_dataset.json", [WHATSUP]),
    "whatsup-qa": ("coco_qa_one_obj.json", [[397133, "a cup on the left", "a cup on the right"]]),
    "winoground": ("examples.jsonl", [WINOGROUND]),
    "negbench": ("mcq.csv", [NEGBENCH]),
    "preferences": ("dpo.jsonl", [PREFERENCE]),
    "mmvp": (
        "Questions.csv",
        [
            {"Question ID": "1", "Type": "Color", "Statement": "A red cup"},
            {"Question ID": "2", "Type": "Color", "Statement": "A blue cup"},
        ],
    ),
}


def save(folder: Path, name: str, content: Any) -> Path:
    """Write rows as JSON, JSON Lines or CSV, by the ending of ``name``."""
    path = folder / name
    if path.suffix == ".csv":
        with path.open("w", newline="") as handle:
            table = csv.DictWriter(handle, list(content[0]))
            table.writeheader()
            table.writerows(content)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    else:
        path.write_text(json.dumps(content))
    return path


def texts(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    return frame.select("image", "caption", "negative").rows()


@pytest.mark.parametrize("name", CONTENTS)
def test_a_layout_is_recognised_by_its_content_whatever_the_file_is_called(name: str, tmp_path: Path) -> None:
    file, content = CONTENTS[name]
    assert layout_of(save(tmp_path, f"renamed{Path(file).suffix}", content)).name == name
    assert layout_of(tmp_path / f"renamed{Path(file).suffix}", "sugarcrepe").name == "sugarcrepe"


def test_own_rows_stay_in_their_layouts(tmp_path: Path) -> None:
    row = {"caption": "a", "negative_caption": "b"}
    assert layout_of(save(tmp_path, "a.jsonl", [row])).name == "jsonl"
    assert layout_of(save(tmp_path, "a.json", {"0": row})).name == "sugarcrepe"


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t")])
def test_a_plain_table_of_captions_and_negatives_is_read(suffix: str, separator: str, tmp_path: Path) -> None:
    """It was refused as a NegCLIP table without its columns."""
    path = tmp_path / f"mine{suffix}"
    path.write_text(
        "".join(separator.join(row) + "\n" for row in (["image", "caption", "negative"], ["1.jpg", "a", "b"]))
    )
    (row,) = read_candidates(path).iter_rows(named=True)
    assert (row["image"], row["caption"], row["negative"]) == ("1.jpg", "a", "b")
    path.write_text(separator.join(["caption", "foil"]) + "\n")
    with pytest.raises(InputError, match=r"it has caption, foil\)\. Name the columns caption and negative"):
        read_candidates(path)


def test_an_unknown_layout_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no layout named.*valze.*valse"):
        read_candidates(save(tmp_path, "a.json", {}), layout="valze")


def test_sugarcrepe_plus_plus_has_a_second_caption_as_positive(tmp_path: Path) -> None:
    (row,) = read_candidates(save(tmp_path, *CONTENTS["sugarcrepe++"])).to_dicts()
    assert [row[name] for name in ("id", "image", "positive", "form", "target")] == [
        "4", "7.jpg", "one cup, red", "swap", "attribute",
    ]  # fmt: skip


def test_valse_rows_that_annotators_refused_are_rejected(tmp_path: Path) -> None:
    refused = {**VALSE, "mturk": {"foil": 1, "caption": 1, "other": 1}}
    several = {**VALSE, "foil": None, "foils": ["a cup is off a table", "a cup is in a table"]}
    unasked = {name: value for name, value in VALSE.items() if name != "mturk"} | {"foil": "a cup is near a table"}
    frame = read_candidates(save(tmp_path, "rows.json", {"1": VALSE, "2": refused, "3": several, "4": unasked}))
    assert frame["id"].to_list() == ["1", "2", "3-0", "3-1", "4"]
    assert frame["reason"].to_list() == ["", "not_accepted", "", "", ""]
    assert set(frame["form"]) == {"relations"}


def test_a_folder_of_valse_files_has_the_file_as_the_type(tmp_path: Path) -> None:
    for name in ("counting-hard", "counting-small-quant"):
        save(tmp_path, f"{name}.json", {"1": VALSE})
    frame = read_candidates(tmp_path)
    assert frame["id"].to_list() == ["counting-hard-1", "counting-small-quant-1"]
    assert frame["form"].to_list() == ["counting-hard", "counting-small-quant"]


def test_aro_keeps_the_box_and_the_class(tmp_path: Path) -> None:
    attribution = {**ARO, "attributes": ["red", "wooden"], "false_caption": "the wooden cup"}
    frame = read_candidates(save(tmp_path, "vg.json", [ARO, attribution]))
    assert frame["form"].to_list() == ["relation", "attribution"]
    extras = [json.loads(extra) for extra in frame["extra"]]
    assert [extra["question"]["class"] for extra in extras] == ["on", "red_wooden"]
    assert extras[0]["bbox_w"] == 30


def test_whatsup_gives_a_row_per_wrong_option_with_its_pair_and_set(tmp_path: Path) -> None:
    rows = [
        {**WHATSUP, "image_path": f"mug_{where}_plate.jpeg"}
        for where in ("left_of", "right_of", "on", "under", "behind")
    ]
    frame = read_candidates(save(tmp_path, "controlled.json", rows))
    assert frame.height == 15
    questions = [json.loads(extra)["question"] for extra in frame["extra"]][::3]
    assert {question["set"] for question in questions} == {"mug|plate"}
    assert [question["pair"].split("|")[2] for question in questions] == ["side", "side", "height", "height", "depth"]


@pytest.mark.parametrize(("stem", "image"), [("coco_qa_two_obj", "000000397133.jpg"), ("vg_qa_two_obj", "397133.jpg")])
def test_whatsup_qa_names_the_image_by_its_number(stem: str, image: str, tmp_path: Path) -> None:
    path = save(tmp_path, f"{stem}.json", [[397133, "left", "right"]])
    assert texts(read_candidates(path)) == [(image, "left", "right")]


def test_negbench_compares_the_right_answer_with_each_other_one(tmp_path: Path) -> None:
    frame = read_candidates(save(tmp_path, *CONTENTS["negbench"]))
    assert set(frame["caption"]) == {"no cat, a dog"}
    assert frame["negative"].to_list() == ["a dog", "no dog", "a cat"]
    assert set(frame["form"]) == {"hybrid"}


def test_negbench_counts_its_answer_by_column_where_a_caption_before_it_is_empty(tmp_path: Path) -> None:
    row = {**NEGBENCH, "caption_1": ""}  # the answer is caption_3
    frame = read_candidates(save(tmp_path, "gap.csv", [row]))
    assert set(frame["caption"]) == {NEGBENCH["caption_3"]}
    assert frame["negative"].to_list() == [NEGBENCH["caption_0"], NEGBENCH["caption_2"]]
    with pytest.raises(InputError, match="correct_answer is '1', not an index"):
        read_candidates(save(tmp_path, "empty.csv", [{**row, "correct_answer": "1"}]))


@pytest.mark.parametrize("row", [WINOGROUND, COLORSWAP, BIVLC])
def test_two_images_and_two_captions_give_a_row_per_image(row: dict[str, Any], tmp_path: Path) -> None:
    frame = read_candidates(save(tmp_path, "groups.jsonl", [row]))
    one, two = texts(frame)
    assert [one[0], two[0]] == ["a.png", "b.png"]
    assert one[1:] == two[:0:-1]
    assert len({json.loads(extra)["question"]["group"] for extra in frame["extra"]}) == 1


def test_images_in_a_parquet_table_of_the_hub_are_located_in_it(tmp_path: Path) -> None:
    images = {name: {"bytes": name.encode(), "path": f"{name}.png"} for name in ("image_1", "image_2")}
    pl.DataFrame([{**COLORSWAP, **images}]).write_parquet(tmp_path / "test.parquet")
    one, two = read_candidates(tmp_path / "test.parquet")["image"]
    from pairwright.datasets.images.loading import open_image

    assert (open_image(one), open_image(two)) == (b"image_1", b"image_2")


def test_preferences_in_a_table_of_the_hub_are_refined_and_written_with_all_columns(tmp_path: Path) -> None:
    """They were refused: ``image is dict, not text``."""
    path, out = tmp_path / "rows.parquet", tmp_path / "kept.jsonl"
    answers = {"question": "What is this?", "chosen": "A dog.", "rejected": "A dog and a cat.", "idx": "3"}
    pl.DataFrame([{"image": {"bytes": b"x", "path": "a.jpg"}, **answers}] * 2).write_parquet(path)
    frame = read_candidates(path)
    locator = f"{path}::image/row-00000001/a.jpg"
    assert texts(frame)[0] == (locator, "A dog.", "A dog and a cat.")
    assert write_candidates(frame, out, like=layout_of(path)) == 2
    assert json.loads(out.read_text().splitlines()[0]) == {"image": locator, **answers}
    pl.DataFrame([{"image": {"bytes": b"x", "path": "a.jpg"}, "caption": "a", "negative": "b"}]).write_parquet(path)
    assert texts(read_candidates(path)) == [(locator, "a", "b")]


RLHF_V = {
    "ds_name": "RLHF-V",
    "text": json.dumps({"question": "What is this?", "chosen": "A dog.", "rejected": "A dog and a cat."}),
    "origin_split": json.dumps({"type": "question answering", "model": "muffin"}),
    "idx": 3,
    "image_path": "images/3.jpg",
}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_preferences_of_rlhf_v_are_in_the_json_of_their_text(tmp_path: Path, name: str) -> None:
    path, out = tmp_path / name, tmp_path / "kept.jsonl"
    if name == "rows.jsonl":
        row = RLHF_V | {"image": "images/3.jpg"}
        save(tmp_path, name, [row])
    else:
        # The other columns, of bytes such as a hash and of decimals, made each row a broken one.
        cell = {"image": {"bytes": b"x", "path": "3.jpg"}, "digest": b"\xff\0", "price": Decimal("1.5")}
        pl.DataFrame([RLHF_V | cell]).write_parquet(path)
        places = {column: f"{path}::{column}/row-00000001" for column in ("image", "digest")}
        row = RLHF_V | places | {"image": f"{places['image']}/3.jpg", "price": "1.5"}
    frame = read_candidates(path)
    assert layout_of(path).name == "preferences"
    assert texts(frame) == [(row["image"], "A dog.", "A dog and a cat.")]
    assert write_candidates(frame, out, like=layout_of(path)) == 1
    assert json.loads(out.read_text()) == row
    assert texts(read_candidates(out)) == texts(frame)


def completion(response: str, *ratings: str) -> dict[str, Any]:
    aspects = ("Helpfulness", "Ethical Considerations", "Visual Faithfulness")
    rated = {name: {"Rating": each, "Rationale": "so"} for name, each in zip(aspects, ratings, strict=True)}
    return {"annotations": rated, "model": "m", "response": response}


@pytest.mark.parametrize("form", ["jsonl", "lists", "parquet"])
def test_each_two_ranked_answers_of_vlfeedback_are_a_preference(tmp_path: Path, form: str) -> None:
    answers = [
        completion("A cat.", "3", "5", "1"),
        completion("A dog.", "5", "5", "5"),
        completion("A pet.", "5", "2", "2"),
        completion("A cow.", "1", "N/A", "1"),
    ]
    row: dict[str, Any] = {"id": "svit-1", "prompt": "What is this?", "img_path": "a.jpg", "models": ["m"] * 4}
    stored = answers if form == "jsonl" else {name: [each[name] for each in answers] for name in answers[0]}
    row["completions"] = stored
    path = tmp_path / f"rows.{'parquet' if form == 'parquet' else 'jsonl'}"
    if form == "parquet":
        pl.DataFrame([row]).write_parquet(path)
    else:
        save(tmp_path, path.name, [row])
    frame = read_candidates(path)
    assert texts(frame.filter(status="kept")) == [("a.jpg", "A dog.", "A cat."), ("a.jpg", "A dog.", "A pet.")]
    assert frame.filter(status="rejected")["reason"].to_list() == ["no_preference"] * 4  # equal, or not rated
    out = tmp_path / "kept.jsonl"
    assert write_candidates(frame, out, like=layout_of(path)) == 2
    written = json.loads(out.read_text().splitlines()[1])
    assert (written["id"], written["rejected"], written["rejected_completion"]) == ("svit-1", "A pet.", 3)
    assert texts(read_candidates(out)) == texts(frame.filter(status="kept"))


def test_ranked_answers_need_two_that_are_texts(tmp_path: Path) -> None:
    one, two = completion("A cat.", "3", "5", "1"), completion("", "1", "1", "1")
    rows = [
        {"prompt": "What?", "completions": each}
        for each in ([one, completion("A dog.", "1", "1", "1")], [one], [one, two])
    ]
    path = save(tmp_path, "rows.jsonl", rows)
    screening = InvalidRowPolicy("skip")
    assert texts(read_candidates(path, screening)) == [("", "A cat.", "A dog.")]
    assert screening.skipped.rows == {"missing_column": 2}


@pytest.mark.parametrize("as_object", [False, True])
def test_an_image_in_json_is_its_path_and_a_text_for_its_bytes_is_refused(tmp_path: Path, *, as_object: bool) -> None:
    """An object of rows was an internal error, and JSON Lines had the place of a table that is none."""
    image = {"bytes": "iVBORw0KGgo=", "path": "a.jpg"}
    rows = [PREFERENCE | {"image": image}, PREFERENCE | {"image": image | {"path": None}}]
    content = {"one": rows[0], "two": rows[1]} if as_object else rows
    path = save(tmp_path, "dpo.json" if as_object else "dpo.jsonl", content)
    with pytest.raises(InputError, match="image is dict, not text"):
        read_candidates(path)
    assert read_candidates(path, InvalidRowPolicy("skip"))["image"].to_list() == ["a.jpg"]


@pytest.mark.parametrize("to", ["trl-dpo", "llamafactory", "ms-swift"])
def test_the_preferences_of_an_export_are_read_from_its_folder(tmp_path: Path, to: str) -> None:
    """The folders were refused, and so were the files of LLaMA-Factory and ms-swift."""
    export_records(*image_files(tmp_path / "pool", 3), to, tmp_path / "dpo")
    frame = read_candidates(tmp_path / "dpo")
    answers = ("No, there is no star.", "Yes, there is a star.")
    edited = [(f"a red circle above {n} squares", f"a blue circle above {n} squares") for n in range(3)]
    assert {*edited, answers} <= set(frame.select("caption", "negative").rows())
    assert len({image_group(image) for image in frame["image"]}) == 3, "rows of one image are one group"
    assert write_candidates(frame, tmp_path / "kept.jsonl", like=layout_of(tmp_path / "dpo")) == len(frame) == 12
    again = read_candidates(tmp_path / "kept.jsonl")
    assert texts(again) == texts(frame)
    audited = CliRunner().invoke(app, ["audit", str(tmp_path / "dpo"), "--json"])
    assert json.loads(audited.stdout)["rows"] == len(frame)


def test_preferences_are_not_exported_without_their_questions(tmp_path: Path) -> None:
    """Each question became "Describe the image in one sentence."."""
    path = save(tmp_path, "dpo.jsonl", [PREFERENCE])
    with pytest.raises(UsageError, match="preferences answer questions"):
        candidate_source(path)


@pytest.mark.parametrize("more", [{"conversations": []}, {"question": "What is this?", "answer": "A dog."}])
def test_conversations_with_a_preference_stay_conversations(tmp_path: Path, more: dict[str, Any]) -> None:
    """`export` took them for candidate rows, and wrote none of their turns."""
    path = save(tmp_path, "dpo.jsonl", [PREFERENCE | more])
    assert not holds_candidates(path)
    assert holds_candidates(save(tmp_path, "plain.jsonl", [PREFERENCE]))


def test_mmvp_questions_are_paired_in_succession(tmp_path: Path) -> None:
    _, content = CONTENTS["mmvp"]
    path = save(tmp_path, "Questions.csv", [*content, {"Question ID": "3", "Type": "Color", "Statement": "A cup"}])
    with pytest.raises(InputError, match="question 3 has no partner"):
        read_candidates(path)
    frame = read_candidates(path, InvalidRowPolicy("skip"))
    assert texts(frame) == [("Color/1.jpg", "A red cup", "A blue cup"), ("Color/2.jpg", "A blue cup", "A red cup")]


def test_a_broken_line_of_mmvp_costs_its_group_and_no_other(tmp_path: Path) -> None:
    lines = [{"Question ID": str(at), "Type": "Color", "Statement": f"A cup {at}"} for at in range(1, 7)]
    lines[0]["Statement"] = lines[5]["Statement"] = ""
    screening = InvalidRowPolicy("skip")
    frame = read_candidates(save(tmp_path, "Questions.csv", lines), screening)
    assert texts(frame) == [("Color/3.jpg", "A cup 3", "A cup 4"), ("Color/4.jpg", "A cup 4", "A cup 3")]
    assert sum(screening.skipped.rows.values()) == 4


def test_equal_texts_and_repeated_rows_are_rejected_and_counted(tmp_path: Path) -> None:
    flaws = [
        PLUS,
        {**PLUS, "id": 5},
        {**PLUS, "id": 6, "negative_caption": PLUS["caption"]},
        {**PLUS, "id": 7, "negative_caption": PLUS["caption2"]},
        {**PLUS, "id": 8, "caption2": PLUS["caption"]},
    ]
    frame = read_candidates(save(tmp_path, "swap_att.json", flaws))
    assert frame["reason"].to_list() == ["", "repeated_row", "identical", "identical", "repeated_caption"]


@pytest.mark.parametrize(
    ("name", "file", "content", "complaint"),
    [
        ("", "a.json", [{**PLUS, "caption2": 5}], "row 0: caption2 is int, not a text"),
        ("sugarcrepe++", "b.json", [{"caption": "a", "negative_caption": "b"}], "row 0: no caption2"),
        ("", "c.json", {"1": VALSE, "2": 5}, "row '2': int instead of an object"),
        ("valse", "d.json", {"1": {"caption": "a", "foil": "b"}}, "no image_file"),
        ("", "q.json", [{**COLORSWAP, "image_2": ""}], "row 0: image_2 is empty, not a path"),
        ("", "m.json", [PLUS, {**PLUS, "caption2": None}], r"row 1: no caption2 \(caption2 is empty\)"),
        (
            "",
            "n.json",
            [ARO, {**ARO, "bbox_x": "x"}],
            "row 1: bbox_x, bbox_y, bbox_w, bbox_h is list, not four numbers",
        ),
        ("", "o.json", [[1, "a", "b"], [None, "a", "b"]], "row 1: the row is list, not"),
        (
            "",
            "p.csv",
            [NEGBENCH, {**NEGBENCH, "image_path": ""}],
            r":3: no image_path or filepath \(image_path is empty\)",
        ),
        ("aro", "e.json", [{"image_path": "x", "true_caption": "a"}], "no false_caption"),
        ("", "f.json", [{**WHATSUP, "caption_options": "a"}], "caption_options is str, not a list of texts"),
        ("", "g.json", [{**WHATSUP, "caption_options": ["a"]}], "fewer than two captions"),
        ("", "h.json", [[1, "a", "b"], [1, "a"]], "row 1: the row is list"),
        ("", "i.csv", [{**NEGBENCH, "correct_answer": "7"}], "correct_answer is '7', not an index of the 4"),
        ("", "j.jsonl", [WINOGROUND, {**WINOGROUND, "caption_1": None}], ":2: not two images and two captions"),
        ("", "l.json", {"0": [1]}, "row '0': list instead of an object"),
    ],
)
def test_a_broken_row_is_one_line_or_is_skipped_and_counted(
    name: str, file: str, content: Any, complaint: str, tmp_path: Path
) -> None:
    path = save(tmp_path, file, content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_candidates(path, layout=name)
    assert "\n" not in str(caught.value)
    if len(content) > 1:
        screening = InvalidRowPolicy("skip")
        assert read_candidates(path, screening, name).height
        assert sum(screening.skipped.rows.values()) == 1


@pytest.mark.parametrize("name", CONTENTS)
def test_kept_rows_are_written_in_the_layout_of_the_input(name: str, tmp_path: Path) -> None:
    path = save(tmp_path, *CONTENTS[name])
    layout, frame = layout_of(path), read_candidates(path)
    out = tmp_path / "out" / Path(CONTENTS[name][0]).with_suffix(layout.suffix)
    out.parent.mkdir()
    assert write_candidates(frame, out, like=layout) == frame.height
    assert layout_of(out).name == name
    again = read_candidates(out)
    assert again.drop("extra").to_dicts() == frame.drop("extra").to_dicts()
    assert [json.loads(extra) for extra in again["extra"]] == [json.loads(extra) for extra in frame["extra"]]


def test_a_written_choice_keeps_its_answer_and_the_place_of_every_option(tmp_path: Path) -> None:
    texts_of_two = {"caption_0": "a, 'b'", "caption_1": 'c "d"', "caption_2": "", "caption_3": ""}
    rows = [NEGBENCH, {**NEGBENCH, **texts_of_two, "correct_answer": "0", "correct_answer_template": ""}]
    path = save(tmp_path, "mcq.csv", rows)
    out = tmp_path / "out.csv"
    write_candidates(read_candidates(path), out, like=layout_of(path))
    with out.open(newline="") as handle:
        assert list(csv.DictReader(handle)) == rows


def test_a_question_that_lost_an_option_is_not_written_and_its_rows_are_counted(tmp_path: Path) -> None:
    path = save(tmp_path, "whatsup.json", [WHATSUP, {**WHATSUP, "image_path": "b_on_c.jpg"}])
    frame = read_candidates(path).with_columns(status=pl.Series(["kept", "rejected", "kept", *["kept"] * 3]))
    notes: list[str] = []
    out = tmp_path / "out.json"
    assert write_candidates(frame, out, like=layout_of(path), note=notes.append) == 3
    assert [row["image_path"] for row in json.loads(out.read_text())] == ["b_on_c.jpg"]
    assert notes == [
        "2 kept rows are not written: other rows of their question or group are rejected. A .jsonl file keeps them."
    ]


@pytest.mark.parametrize(
    ("name", "out", "complaint"),
    [
        ("whatsup-qa", "vg_qa.json", "Name a file of Visual Genome vg_qa_"),
        ("aro", "out.csv", r"rows of the layout aro are not written as \.csv"),
        ("negbench", "out.txt", "candidate rows are in .*files"),
    ],
)
def test_what_a_layout_cannot_hold_is_one_line(name: str, out: str, complaint: str, tmp_path: Path) -> None:
    path = save(tmp_path, *CONTENTS[name])
    with pytest.raises(UsageError, match=complaint):
        write_candidates(read_candidates(path), tmp_path / out, like=layout_of(path))


def test_images_with_other_names_are_no_mmvp(tmp_path: Path) -> None:
    path = save(tmp_path, *CONTENTS["mmvp"])
    frame = read_candidates(path).with_columns(image=pl.lit("photo.jpg"))
    with pytest.raises(UsageError, match=r"not photo.jpg. Write .json"):
        write_candidates(frame, tmp_path / "Questions.csv", like=layout_of(path))


def test_refine_writes_a_table_of_choices(tmp_path: Path) -> None:
    rows = [{**NEGBENCH, "image_path": f"{number}.jpg"} for number in range(6)]
    path, out = save(tmp_path, "mcq.csv", rows), tmp_path / "out.csv"
    done = CliRunner().invoke(app, ["refine", str(path), "--out", str(out), "--min-keep", "1"])
    assert done.exit_code in {0, 3}, done.output or done.exception
    assert out.read_text().startswith("image_path,caption_0,caption_1")
    assert "kept rows are not written" in done.stderr


def test_a_group_that_lost_a_row_is_not_written(tmp_path: Path) -> None:
    path = save(tmp_path, "groups.jsonl", [WINOGROUND, {**WINOGROUND, "id": 6, "image_0": "c.png"}])
    frame = read_candidates(path).with_columns(status=pl.Series(["rejected", "kept", "kept", "kept"]))
    write_candidates(frame, tmp_path / "out.json", like=layout_of(path))
    assert [row["id"] for row in json.loads((tmp_path / "out.json").read_text())] == ["6"]


def test_every_layout_says_what_it_is() -> None:
    assert all(layout.about and layout.scores for layout in LAYOUTS.built_in.values())


def test_real_sets_are_recognised(real_data: Path) -> None:
    expected = {"sugarcrepe_unrefined": "sugarcrepe", "sugarcrepe_plusplus": "sugarcrepe++", "valse": "valse"}
    for folder, name in expected.items():
        assert layout_of(real_data / folder).name == name
    valse = read_candidates(real_data / "valse" / "existence.json")
    assert valse.filter(status="kept").height == 505  # as in the paper


def test_rows_of_a_benchmark_are_exported_with_both_captions(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "7.jpg").write_bytes(b"")
    same_caption = {**PLUS, "id": 5, "caption2": "a cup that is red", "negative_caption": "a green cup"}
    path = save(tmp_path, "swap_att.json", [PLUS, same_caption, {**PLUS, "id": 6, "caption2": PLUS["caption"]}])
    source, root = candidate_source(path, image_root=tmp_path / "images")
    (sample,) = source.samples()
    assert sample.pair.image == str(root / "7.jpg")
    assert [(find_positive(sample, each), each.text) for each in list_negatives(sample)] == [
        ("one cup, red", "a blue cup"), ("a cup that is red", "a green cup"),
    ]  # fmt: skip


def test_export_takes_files_of_benchmarks(tmp_path: Path) -> None:
    path = save(tmp_path, *CONTENTS["valse"])
    out = tmp_path / "out.json"
    done = CliRunner().invoke(app, ["export", str(path), "--to", "sugarcrepe", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text()) == {
        "0": {"filename": "7.jpg", "caption": VALSE["caption"], "negative_caption": VALSE["foil"]}
    }
    assert not holds_candidates(save(tmp_path, "llava.json", [{"id": 1, "conversations": []}]))
    assert not holds_candidates(tmp_path)


def test_vl_checklist_has_a_row_for_each_caption_and_negative(tmp_path: Path) -> None:
    rows = [["vg/1.jpg", {"POS": ["a red dog"], "NEG": ["a blue dog", "a green dog"]}]]
    path = save(tmp_path, "color.json", [*rows, ["vg/2.jpg", {"POS": ["a cat"], "NEG": []}]])
    frame = read_candidates(path, InvalidRowPolicy("skip"))
    assert layout_of(path).name == "vl-checklist"
    assert texts(frame) == [("vg/1.jpg", "a red dog", "a blue dog"), ("vg/1.jpg", "a red dog", "a green dog")]
    assert (frame["id"].to_list(), set(frame["form"])) == (["0", "0-1"], {"color"})
    with pytest.raises(InputError, match="no caption or no negative"):
        read_candidates(path)


def test_crepe_has_lists_of_negatives_in_a_table(tmp_path: Path) -> None:
    row = {"": 0, "image_id": 7, "x": 1, "caption": "a red dog", "hard_negs": "['a blue dog', 'a red cat']"}
    frame = read_candidates(save(tmp_path, "prod_vg_hard_negs_swap_all.csv", [row]))
    assert [line[1:] for line in texts(frame)] == [("a red dog", "a blue dog"), ("a red dog", "a red cat")]


@pytest.mark.parametrize("inner", ["", "data"])
def test_a_folder_of_tables_of_a_benchmark_is_read_as_the_hub_has_it(tmp_path: Path, inner: str) -> None:
    """Its message asked for tars."""
    (tmp_path / inner).mkdir(exist_ok=True)
    for part in ("00000", "00001"):
        pl.DataFrame([WINOGROUND]).write_parquet(tmp_path / inner / f"test-{part}-of-00002.parquet")
    done = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "sugarcrepe", "--out", str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    assert len(json.loads((tmp_path / "out.json").read_text())) == 4
    pl.DataFrame({"caption": ["a dog"], "url": ["x"]}).write_parquet(tmp_path / inner / "a.parquet")
    assert not holds_candidates(tmp_path)
