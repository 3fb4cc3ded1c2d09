"""Triplets export: order, duplicates, token limits."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, MissingResourceError, UsageError
from pairwright.datasets.exports.clip_tokens import make_approximate_counter, make_exact_counter
from pairwright.datasets.exports.formats import export, export_records
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.mixtures.conversation_files import open_conversation_files
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.verification.checks import verify
from pairwright.datasets.verification.llava_json import check_llava
from tests.datasets.sample_builders import conversation, pair
from tests.indexes.tiny_clip import write_tokenizer

LONG = " ".join(["a man, a plan and 20 canals"] * 20)


def written(
    folder: Path, conversation_pairs: list[tuple[Pair, Annotation]], **options: Any
) -> tuple[ExportResult, list[dict[str, str]]]:
    pairs, annotations = zip(*conversation_pairs, strict=True)
    done = export_records(pairs, annotations, "triplets", folder / "t.jsonl", ExportOptions(**options))
    return done, [json.loads(line) for line in (folder / "t.jsonl").read_text().splitlines()]


def conversation_pair(number: int, image: str, *texts: str) -> tuple[Pair, Annotation]:
    of = pair(number, image=image)
    return of, conversation(of, *texts)


def test_lines_of_one_image_are_adjacent_even_if_its_pairs_are_not(tmp_path: Path) -> None:
    conversation_pairs = [
        conversation_pair(number, f"{number % 3}.jpg", f"What? {number}", "A thing.") for number in range(9)
    ]
    done, rows = written(tmp_path, conversation_pairs)
    assert [row["image"] for row in rows] == ["0.jpg"] * 3 + ["1.jpg"] * 3 + ["2.jpg"] * 3
    assert (done.rows, done.details["images"]) == (9, 3)


def test_texts_without_an_image_do_not_count_as_one_image(tmp_path: Path) -> None:
    done, _ = written(tmp_path, [conversation_pair(number, "", "What?", "A thing.") for number in range(3)])
    assert (done.rows, done.details["images"], done.details["repeated"]) == (3, 3, 0)


def test_a_line_that_an_image_has_already_is_counted_and_not_written_again(tmp_path: Path) -> None:
    conversation_pairs = [
        conversation_pair(number, "one.jpg", "Is there a dog?", "Yes.", "Where?", f"Place {number}.")
        for number in range(3)
    ]
    done, rows = written(tmp_path, conversation_pairs)
    assert (done.rows, done.details["repeated"]) == (4, 2)
    assert len({tuple(row.values()) for row in rows}) == 4


def test_outputs_over_the_clip_limit_are_counted_and_not_truncated(tmp_path: Path) -> None:
    done, rows = written(tmp_path, [conversation_pair(0, "0.jpg", "What?", LONG, "And?", "Nothing.")])
    assert (done.details["over_77"], done.details["longest"], done.details["cut"]) == (1, 9 * 20 + 2, 0)
    assert done.details["counted_by"] == "words, at least"
    assert rows[0]["output"] == LONG


def test_outputs_are_cut_to_the_tokens_asked_for(tmp_path: Path) -> None:
    done, rows = written(tmp_path, [conversation_pair(0, "0.jpg", "What?", LONG, "And?", "Nothing.")], max_tokens=11)
    assert (done.details["over_77"], done.details["cut"]) == (1, 1)
    assert rows[0]["output"] == "a man, a plan and 20 canals"
    assert rows[1]["output"] == "Nothing."


def test_a_tokenizer_counts_exactly(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    write_tokenizer(tmp_path / "clip")
    exact = make_exact_counter(tmp_path / "clip")
    tokenizer = transformers.CLIPTokenizerFast.from_pretrained(tmp_path / "clip")
    for text in ("a red dog", LONG, "Ünïcode — “quotes”, 3½ cups\n\tand  tabs", ""):
        assert exact.count(text) == len(tokenizer(text)["input_ids"])
        for most in (3, 11, 77):
            cut = exact.cut(text, most)
            assert len(tokenizer(cut)["input_ids"]) <= most
            assert text.startswith(cut)
    done, _ = written(tmp_path, [conversation_pair(0, "0.jpg", "What?", "a red dog")], tokenizer=tmp_path / "clip")
    assert done.details["longest"] == exact.count("a red dog")


@given(text=st.text(max_size=60), most=st.integers(3, 20))
def test_a_cut_text_begins_the_whole_one_and_has_the_tokens_asked_for(text: str, most: int) -> None:
    length = make_approximate_counter()
    cut = length.cut(text, most)
    assert text.startswith(cut)
    assert length.count(cut) <= most
    assert cut == text or length.count(text) > most


def test_triplets_are_made_of_any_file_of_conversations(tmp_path: Path) -> None:
    said = [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": "A dog."}]
    rows = [{"id": number, "image": f"coco/{number % 2}.jpg", "conversations": said} for number in range(3)]
    (tmp_path / "llava.json").write_text(json.dumps(rows))
    source, root = open_conversation_files(tmp_path / "llava.json")
    done = export(source, "triplets", tmp_path / "t.jsonl", ExportOptions(image_root=root))
    assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()] == [
        {"image": "coco/1.jpg", "instruction": "What is it?", "output": "A dog."},
        {"image": "coco/0.jpg", "instruction": "What is it?", "output": "A dog."},
    ]
    assert done.details["repeated"] == 1


def test_a_file_of_conversations_goes_to_parquet_and_back(tmp_path: Path) -> None:
    said = [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": 'A dög, "Rex".'}]
    alone = [{"from": "human", "value": "Is it day?"}, {"from": "gpt", "value": "Yes."}] * 2
    rows: list[dict[str, Any]] = [
        {"id": "1", "image": "coco/1.jpg", "conversations": said},
        {"id": "2", "conversations": alone},
    ]
    (tmp_path / "llava.json").write_text(json.dumps(rows))
    source, root = open_conversation_files(tmp_path / "llava.json")
    export(source, "parquet", tmp_path / "t.parquet", ExportOptions(image_root=root))
    source, root = open_conversation_files(tmp_path / "t.parquet")
    export(source, "llava", tmp_path / "back.json", ExportOptions(image_root=root))
    back = json.loads((tmp_path / "back.json").read_text())
    assert [row.get("image") for row in back] == ["coco/1.jpg", None]
    assert [turn["value"].replace("<image>", "").strip() for row in back for turn in row["conversations"]] == [
        turn["value"].replace("<image>", "").strip() for row in rows for turn in row["conversations"]
    ]
    assert verify(tmp_path / "back.json") == []
    (tmp_path / "coco").mkdir()
    assert len(verify(tmp_path / "back.json", tmp_path)) == 1
    (tmp_path / "coco" / "1.jpg").touch()
    assert verify(tmp_path / "back.json", tmp_path) == []
    with pytest.raises(UsageError, match="--images"):
        verify(tmp_path, tmp_path)


def test_rows_of_one_image_have_ids_of_their_own_in_llava_json(tmp_path: Path) -> None:
    turns = [{"role": "human", "text": "What?"}, {"role": "assistant", "text": "A dog."}]
    rows = [{"key": "k", "image": "0.jpg", "caption": "A dog.", "kind": kind, "turns": turns} for kind in ("a", "b")]
    (tmp_path / "conversations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source, root = open_conversation_files(tmp_path / "conversations.jsonl")
    done = export(source, "llava", tmp_path / "l.json", ExportOptions(image_root=root))
    assert check_llava(tmp_path / "l.json") == []
    assert (done.rows, done.details["missing_images"]) == (2, 1)
    (tmp_path / "0.jpg").write_bytes(b"a picture")
    assert export(source, "llava", tmp_path / "l.json", ExportOptions(image_root=root)).details["missing_images"] == 0


def test_images_elsewhere_are_named_below_their_common_folder(tmp_path: Path) -> None:
    turns = [{"role": "human", "text": "What?"}, {"role": "assistant", "text": "A dog."}]
    rows = [{"key": str(n), "image": f"/pool/part{n}/0.jpg", "kind": "short", "turns": turns} for n in range(2)]
    (tmp_path / "conversations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source, root = open_conversation_files(tmp_path / "conversations.jsonl")
    export(source, "triplets", tmp_path / "t.jsonl", ExportOptions(image_root=root))
    named = [json.loads(line)["image"] for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert named == ["part0/0.jpg", "part1/0.jpg"]


def test_a_broken_row_of_a_file_of_conversations_is_named(tmp_path: Path) -> None:
    rows = [{"image": "0.jpg", "conversations": [{"from": "human", "value": "What?"}]}]
    (tmp_path / "llava.json").write_text(json.dumps(rows))
    source, root = open_conversation_files(tmp_path / "llava.json")
    with pytest.raises(InputError, match=r"llava\.json"):
        export(source, "triplets", tmp_path / "t.jsonl", ExportOptions(image_root=root))
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize("name", ["missing", "empty", "broken"])
def test_a_tokenizer_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tokenizer.json").write_text("{")
    with pytest.raises(MissingResourceError, match="tokenizer"):
        make_exact_counter(tmp_path / name)
