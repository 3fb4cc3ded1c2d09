"""Exports for trainers and evaluation harnesses: rows, image marks, contradictions."""

import base64
import csv
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError
from pairwright.datasets.exports.chats import require_marks
from pairwright.datasets.exports.contradictions import CaptionEdit, contradict_answer
from pairwright.datasets.exports.embedded_tables import write_tables
from pairwright.datasets.exports.formats import export_records
from pairwright.datasets.exports.writing import ExportOptions
from pairwright.datasets.images.recoding import Recoding
from pairwright.datasets.records import Annotation, Edit, Pair
from tests.datasets.sample_builders import conversation, negative, pair, picture
from tests.example_counts import examples

RED_TO_BLUE = CaptionEdit(Edit("red", "blue", (2, 5), (2, 6)), "A red circle above a star.", "attribute")
texts = st.lists(
    st.sampled_from(["<image>", "<video>", "<audio>", "a red dog", "\n", "\t", '"', "é"]), min_size=1, max_size=4
).map(" ".join)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    path.write_bytes(picture())
    return path


@pytest.fixture
def records(photo: Path) -> tuple[list[Pair], list[Annotation]]:
    """Return a pair with an image, a negative and a conversation, and a text-only pair with a conversation."""
    shown, text_only = pair(0, image=str(photo)), pair(1)
    asked = "How many shapes?", "A red circle and others.", "Is there a star?", "No, there is no star."
    return [shown, text_only], [negative(shown), conversation(shown, *asked), conversation(text_only)]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_trl_rows_have_one_image_part_for_each_image(
    records: tuple[list[Pair], list[Annotation]], tmp_path: Path
) -> None:
    done = export_records(*records, "trl", tmp_path / "t")
    shown, text_only = pl.read_parquet(tmp_path / "t/data/train-00000.parquet").to_dicts()
    assert done.rows == 2
    assert [part["type"] for part in shown["messages"][0]["content"]] == ["image", "text"]
    assert shown["images"][0]["bytes"].startswith(b"\xff\xd8")
    assert shown["images"][0]["path"].endswith(".jpg")
    assert (text_only["images"], text_only["messages"][0]["content"][0]["type"]) == ([], "text")
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"] * 2


def test_preferences_are_caption_against_negative_and_answer_against_contradiction(
    records: tuple[list[Pair], list[Annotation]], tmp_path: Path
) -> None:
    done = export_records(*records, "trl-dpo", tmp_path / "t")
    rows = pl.read_parquet(tmp_path / "t/data/train-00000.parquet").to_dicts()
    said = [[row[side][0]["content"][0]["text"] for side in ("chosen", "rejected")] for row in rows]
    assert said == [
        ["a red circle above 0 squares", "a blue circle above 0 squares"],
        ["A red circle and others.", "A blue circle and others."],
        ["No, there is no star.", "Yes, there is a star."],
        ["No, there is no star.", "Yes, there is a star."],  # of the text-only pair
    ]
    # Of the text-only pair, whose negative says nothing of a circle, the other answer.
    assert done.details == {"without_preferences": 0, "answers_without_counterpart": 1}
    assert [len(row["prompt"]) for row in rows] == [1, 1, 3, 3]
    assert [len(row["images"]) for row in rows] == [1, 1, 1, 0]


def test_shuffled_negatives_give_no_preference_and_no_question(photo: Path, tmp_path: Path) -> None:
    of = pair(0, image=str(photo))
    shuffled = Annotation(
        id="s", key=of.key, kind="hard_negative", origin=negative(of).origin, form="shuffle", text="squares 0 red a"
    )
    assert export_records([of], [shuffled], "trl-dpo", tmp_path / "t").rows == 0
    done = export_records([of], [shuffled], "vlmevalkit", tmp_path / "v.tsv")
    assert (done.rows, done.omitted) == (0, {"shuffled_negatives": 1})


def test_llamafactory_folder_describes_both_files(records: tuple[list[Pair], list[Annotation]], tmp_path: Path) -> None:
    done = export_records(*records, "llamafactory", tmp_path / "my set")
    out = tmp_path / "my set"
    info = json.loads((out / "dataset_info.json").read_text())
    assert {name: about["file_name"] for name, about in info.items()} == {
        "my-set": "sft.jsonl",
        "my-set_dpo": "dpo.jsonl",
    }
    sft, dpo = lines(out / "sft.jsonl"), lines(out / "dpo.jsonl")
    assert done.details == {"conversations": 2, "preferences": 4, "without_rows": 0}
    assert sft[0]["messages"][0]["content"] == "<image>\nHow many shapes?"
    assert (out / sft[0]["images"][0]).read_bytes() == picture()
    assert (dpo[0]["chosen"]["content"], dpo[0]["rejected"]["content"]) == (
        "a red circle above 0 squares",
        "a blue circle above 0 squares",
    )
    assert [len(row["messages"]) % 2 for row in dpo] == [1, 1, 1, 1]


def test_ms_swift_names_the_rejected_response(records: tuple[list[Pair], list[Annotation]], tmp_path: Path) -> None:
    export_records(*records, "ms-swift", tmp_path / "s")
    row = lines(tmp_path / "s/dpo.jsonl")[0]
    assert row["messages"][-1] == {"role": "assistant", "content": "a red circle above 0 squares"}
    assert row["rejected_response"] == "a blue circle above 0 squares"


def test_a_file_without_rows_is_not_written(tmp_path: Path) -> None:
    of = pair(1)
    export_records([of], [conversation(of, "Why?", "Because.")], "llamafactory", tmp_path / "l")
    assert not (tmp_path / "l/dpo.jsonl").exists()
    assert list(json.loads((tmp_path / "l/dataset_info.json").read_text())) == ["l"]


@settings(max_examples=examples(40), deadline=None)
@given(exchanges=st.lists(st.tuples(texts, texts), min_size=1, max_size=3), wrong=texts, has_image=st.booleans())
def test_any_text_gives_as_many_marks_as_images(
    exchanges: list[tuple[str, str]],
    wrong: str,
    has_image: bool,  # noqa: FBT001
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("marks")
    (folder / "p.jpg").write_bytes(picture())
    of = pair(0, image=str(folder / "p.jpg") if has_image else "")
    texts_ = [negative(of, wrong), conversation(of, *(text for both in exchanges for text in both))]
    export_records([of], texts_, "ms-swift", folder / "s")
    for path in (folder / "s").glob("*.jsonl"):
        for row in lines(path):
            said = " ".join([*(turn["content"] for turn in row["messages"]), row.get("rejected_response", "")])
            assert said.count("<image>") == len(row["images"]) == has_image
            assert "<video>" not in said
            assert "<audio>" not in said


def test_a_row_with_another_number_of_marks_is_refused() -> None:
    with pytest.raises(InputError, match="2 image marks for 1 image"):
        require_marks("k-0", 2, 1)


@pytest.mark.parametrize(
    ("question", "answer", "contradiction"),
    [
        ("Is there a star?", "Yes, there is a star.", ["No, there is no star."]),
        ("Is there an owl?", "No, there is no owl.", ["Yes, there is an owl."]),
        ("Are there stars?", "No, there are no stars.", ["Yes, there are stars."]),
        ("Is it red?", "Yes.", ["No."]),
        ("Is it red?", "No", ["Yes"]),
        ("What color is the circle?", "It is red.", ["It is blue."]),
        ("What is its color?", "The circle is red.", ["The circle is blue."]),
        ("What color is the circle?", "red", ["blue"]),
        ("What do you see?", "A small red circle.", ["A small blue circle."]),
        ("What color is the star?", "The star is red.", []),  # the caption calls something else red
        ("What is the circle?", "The circle is a red.", []),
        ("What color is it?", "It is not red.", []),  # a denial of another word can be true
        ("What color is it?", "It isn't red.", []),
        ("What is red?", "The red circle.", []),  # the question names the word
        ("What do you see?", "A red and a red circle.", []),
        ("What do you see?", "Redness and reddish tones.", []),
    ],
)
def test_contradictions(question: str, answer: str, contradiction: list[str]) -> None:
    assert list(contradict_answer(question, answer, [RED_TO_BLUE])) == contradiction


def test_a_contradiction_keeps_its_article_right() -> None:
    orange = CaptionEdit(Edit("red", "orange", (2, 5), (2, 8)), "A red circle.", "attribute")
    assert list(contradict_answer("What is it?", "It is a red circle.", [orange])) == []
    heart = CaptionEdit(Edit("heart", "star", (4, 9), (4, 8)), "One heart.", "object")
    assert list(contradict_answer("How many hearts are there?", "One heart.", [heart])) == []


@pytest.mark.parametrize(
    ("edited", "target", "question", "answer", "contradiction"),
    [
        ("A bundle in a [glass=wooden] vase.", "attribute", "Which material?", "The vase is made of glass.", ""),
        ("A [red=blue] fire hydrant.", "attribute", "What?", "The hydrant is red.", "The hydrant is blue."),
        ("Two men [cutting=holding] a ribbon.", "relation", "What is it?", "A ribbon cutting event.", ""),
        ("A man [sitting on=standing by] a bed.", "relation", "What is he doing?", "The man is sitting on a bed.",
         "The man is standing by a bed."),
        ("A girl [on=standing by] a bike.", "relation", "What is she doing?", "The girl is sitting on a bike.", ""),
        ("A man rides a [horse=bike].", "object", "What is on the road?", "There is a horse.", "There is a bike."),
        ("Sand with [beach=kitchen] chairs.", "object", "Where is it?", "It is the beach.", ""),
    ],
)  # fmt: skip
def test_a_word_is_replaced_where_the_answer_uses_it_as_the_caption_does(
    edited: str, target: str, question: str, answer: str, contradiction: str
) -> None:
    start, before, after, end = re.split(r"[\[=\]]", edited)
    span = (len(start), len(start) + len(before))
    known = CaptionEdit(Edit(before, after, span, span), f"{start}{before}{end}", target)
    assert list(contradict_answer(question, answer, [known])) == ([contradiction] if contradiction else [])


def test_hf_parquet_declares_its_features_and_has_the_texts(
    records: tuple[list[Pair], list[Annotation]], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    export_records(*records, "hf-parquet", tmp_path / "h")
    schema = pq.read_schema(tmp_path / "h/data/train-00000.parquet")
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"}
    assert list(features) == schema.names
    shown, text_only = pl.read_parquet(tmp_path / "h/data/train-00000.parquet")["image"].to_list()
    assert (shown["bytes"], text_only) == (picture(), None)
    assert "path: data/train-*.parquet" in (tmp_path / "h/README.md").read_text()


def test_tables_are_split_by_size_and_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    rows = [{"text": "x" * 1000, "number": n} for n in range(10)]
    shape = {"text": "string", "number": "int64"}
    many = write_tables(iter(rows), shape, tmp_path, ExportOptions(max_bytes=3_100))
    assert [len(pl.read_parquet(path)) for path in many.files] == [3, 3, 3, 1]
    few = write_tables(iter(rows), shape, tmp_path, ExportOptions(max_samples=5))
    assert (few.rows, sorted(tmp_path.iterdir())) == (10, list(few.files))
    assert len(few.files) == 2
    assert pl.concat(map(pl.read_parquet, few.files))["number"].to_list() == list(range(10))


def test_images_are_recoded_as_asked(records: tuple[list[Pair], list[Annotation]], tmp_path: Path) -> None:
    export_records(*records, "trl", tmp_path / "t", ExportOptions(recoding=Recoding("png", 8)))
    image = pl.read_parquet(tmp_path / "t/data/train-00000.parquet")["images"][0][0]
    assert image["bytes"].startswith(b"\x89PNG")
    assert image["path"].endswith(".png")


def test_vlmevalkit_writes_an_image_once_and_asks_in_both_orders(photo: Path, tmp_path: Path) -> None:
    of = pair(0, "a red\tcircle", str(photo))
    export_records([of], [negative(of), negative(of, "a green\tcircle")], "vlmevalkit", tmp_path / "v.tsv")
    csv.field_size_limit(sys.maxsize)
    with (tmp_path / "v.tsv").open(newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert [row["image"] for row in rows[1:]] == ["0", "0", "0"]
    assert base64.b64decode(rows[0]["image"]) == picture()
    assert [row["answer"] for row in rows] == ["A", "B", "A", "B"]
    assert [row[row["answer"]] for row in rows] == ["a red\tcircle"] * 4
    assert [row["category"] for row in rows] == ["replace-attribute"] * 4
    assert len({row["pair"] for row in rows}) == 2


def test_the_functions_of_an_lmms_eval_task_score_both_orders(
    records: tuple[list[Pair], list[Annotation]], tmp_path: Path
) -> None:
    done = export_records(*records, "lmms-eval", tmp_path / "my-task")
    spec = importlib.util.spec_from_file_location("task_functions", tmp_path / "my-task/utils.py")
    assert spec is not None
    assert spec.loader is not None
    functions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(functions)
    rows = pl.read_parquet(tmp_path / "my-task/data/test-00000.parquet").to_dicts()
    assert done.rows == len(rows) == 2
    assert "A. a red circle above 0 squares\nB. a blue" in functions.doc_to_text(rows[0])
    items = [functions.process_results(row, ["A."])["accuracy"] for row in rows]
    assert (functions.accuracy(items), functions.both_orders(items), functions.answered_a(items)) == (0.5, 0, 1)
    right = [functions.process_results(row, [f"The answer is {row['answer']}"])["accuracy"] for row in rows]
    assert functions.both_orders(right) == 1
    task = (tmp_path / "my-task/my_task.yaml").read_text()
    assert task.startswith("task: my_task\n")
    assert '    test: ["data/test-00000.parquet"]\n' in task  # the folder can be moved


def test_equal_records_give_equal_bytes(records: tuple[list[Pair], list[Annotation]], tmp_path: Path) -> None:
    for name in ("trl", "trl-dpo", "hf-parquet"):
        found = []
        for turn in ("a", "b"):
            export_records(*records, name, tmp_path / turn / name)
            found.append((tmp_path / turn / name / "data/train-00000.parquet").read_bytes())
        assert found[0] == found[1]
