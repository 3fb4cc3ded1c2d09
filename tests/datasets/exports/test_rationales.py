"""Export of student rows, and rationales in shards."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.exports.formats import export
from pairwright.datasets.exports.rationales import StudentRows
from pairwright.datasets.record_tables import EXAMPLES
from pairwright.datasets.records import Annotation, Example, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import add_examples, open_sample_source, source_from_records
from pairwright.datasets.verification.checks import verify

MAKER = Origin("rationales", 1, 0, "m", "rationale-itm@0", "r")
PAIR = Pair(pair_key("s", "1", "A dog."), "A dog.")


def example(number: int, **changes: object) -> Example:
    made = Example(
        id=annotation_id(PAIR.key, "itm", MAKER, str(number), ""),
        task="itm",
        input=f"Does this caption fit the image? A cat {number}.",
        origin=MAKER,
        label="no",
        label_source="gold",
        rationale="It is a dog.",
        key=PAIR.key,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


EXAMPLES_OF_ALL_KINDS = [
    example(0),
    example(1, split="validation"),
    example(2, status="rejected", reason="wrong_label"),
    example(3, key=""),
    example(4, key="f" * 32),
]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_kept_example_is_two_tasks_distinguished_by_prefix() -> None:
    label, rationale = StudentRows().make_rows(example(0), "a.jpg")
    assert label["input"] == "[label] Does this caption fit the image? A cat 0."
    assert label["output"] == "no"
    assert rationale["input"] == "[rationale] Does this caption fit the image? A cat 0."
    assert rationale["output"] == "It is a dog."
    assert (label["id"], label["split"], label["image"]) == (rationale["id"], "train", "a.jpg")


def test_prefixes_can_be_set_and_single_task_has_none() -> None:
    rows = StudentRows(label_prefix="predict: ", rationale_prefix="explain: ").make_rows(example(0))
    assert [str(row["input"]).partition(":")[0] for row in rows] == ["predict", "explain"]
    [row] = StudentRows("single-task").make_rows(example(0))
    assert (row["input"], row["output"]) == (example(0).input, "It is a dog. So the answer is no.")


def test_a_table_of_examples_is_exported_to_one_file_or_to_one_a_split(tmp_path: Path) -> None:
    EXAMPLES.write(EXAMPLES_OF_ALL_KINDS, tmp_path / "e.parquet")
    written = export(tmp_path / "e.parquet", "rationales", tmp_path / "rows.jsonl")
    assert written.rows == 8
    assert [row["split"] for row in lines(tmp_path / "rows.jsonl")] == ["train"] * 2 + ["validation"] * 2 + [
        "train"
    ] * 4
    folder = export(tmp_path / "e.parquet", "rationales", tmp_path / "rows")
    assert [path.name for path in folder.files] == ["train.jsonl", "validation.jsonl"]
    assert [len(lines(path)) for path in folder.files] == [6, 2]


def test_a_table_of_examples_is_nothing_that_other_formats_could_write(tmp_path: Path) -> None:
    EXAMPLES.write(EXAMPLES_OF_ALL_KINDS, tmp_path / "e.parquet")
    with pytest.raises(UsageError, match="exported to rationales, not to llava"):
        export(tmp_path / "e.parquet", "llava", tmp_path / "x.json")
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    with pytest.raises(StorageError):
        export(tmp_path / "other.parquet", "rationales", tmp_path / "x.jsonl")


def test_shards_take_the_rationales_of_their_keys_and_give_them_back(tmp_path: Path) -> None:
    negative = Annotation(
        annotation_id(PAIR.key, "hard_negative", Origin("x", 1), "0", ""),
        PAIR.key,
        "hard_negative",
        Origin("x", 1),
        text="A cat.",
    )
    export(source_from_records([PAIR], [negative]), "webdataset", tmp_path / "bare")
    matched: set[str] = set()
    source = add_examples(open_sample_source(tmp_path / "bare"), EXAMPLES_OF_ALL_KINDS, matched)
    export(source, "webdataset", tmp_path / "shards")
    assert matched == {PAIR.key}
    assert verify(tmp_path / "shards") == []
    [sample] = read_shard(tmp_path / "shards" / "00000.tar")
    assert [each.input for each in sample.examples] == [example(0).input, example(1).input]
    assert {maker.generator for maker in sample.makers} == {"x", "rationales"}
    assert export(tmp_path / "shards", "rationales", tmp_path / "rows.jsonl").rows == 4
