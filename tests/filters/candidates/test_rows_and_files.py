"""Candidate rows in files: what is read, what is refused, and that nothing is lost on the way."""

import ast
import datetime as dt
import gzip
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, UsageError
from pairwright.filters.candidates.files import read_candidates, read_raw_rows, write_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import SCHEMA, candidate_frame, edit_type_name
from pairwright.filters.candidates.samples import candidate_source, holds_candidates
from pairwright.filters.candidates.source_rows import NEGATIVE_COLUMNS
from tests.datasets.compression import COMPRESSORS
from tests.example_counts import examples

ENDINGS = ["jsonl", "json", "tsv", "parquet"]
FOREIGN = {"json", "tsv"}  # layouts of other tools

text = st.text(st.characters(codec="utf-8"), max_size=20)
filled = text.filter(str.strip)
edit = st.fixed_dictionaries(
    {
        "from": text,
        "to": text,
        "from_span": st.lists(st.integers(0, 99), min_size=2, max_size=2),
        "to_span": st.just([]),
    }
)
row = st.fixed_dictionaries(
    {"caption": filled, "negative": filled},
    optional={
        "image": text,
        "key": text,
        "positive": text,
        "form": text,
        "target": text,
        "edit": st.lists(edit, max_size=2),
        "scores": st.dictionaries(filled, st.floats(-1, 1), max_size=2),
        "status": st.sampled_from(["kept", "rejected"]),
        "reason": text,
        "my column": filled,
    },
)


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return candidate_frame((f"row {number}", given_row) for number, given_row in enumerate(rows))


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_survive_a_round_trip_except_rejected_ones_in_foreign_layouts(
    ending: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("candidates")

    @settings(max_examples=examples(50))  # it writes files: no time limit on an example
    @given(st.lists(row, max_size=5))
    def check(rows: list[dict[str, Any]]) -> None:
        frame, path = frame_of(rows), folder / f"rows.{ending}"
        held = frame.filter(pl.col("status") == "kept") if ending in FOREIGN else frame
        assert write_candidates(frame, path) == held.height
        assert (
            list(read_raw_rows(path)) == [] if held.is_empty() else read_candidates(path).to_dicts() == held.to_dicts()
        )

    check()


@pytest.mark.parametrize("ending", ENDINGS)
def test_equal_rows_give_equal_bytes_and_only_kept_rows_on_request(ending: str, tmp_path: Path) -> None:
    frame = frame_of([{"caption": "a", "negative": str(n), "status": ["kept", "rejected"][n % 2]} for n in range(6)])
    one, two, kept = (tmp_path / f"{name}.{ending}" for name in ("one", "two", "kept"))
    assert write_candidates(frame, one) == write_candidates(frame, two) == (3 if ending in FOREIGN else 6)
    assert one.read_bytes() == two.read_bytes()
    assert write_candidates(frame, kept, only_kept=True) == 3
    assert set(read_candidates(kept)["status"]) == {"kept"}


@pytest.mark.parametrize("ending", ["jsonl", "json", "tsv"])
@pytest.mark.parametrize("named", ["", ".gz"])
def test_gzipped_candidate_rows_are_read_whatever_the_name(ending: str, named: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / f"swap_att.{ending}", tmp_path / f"packed.{ending}{named}"
    write_candidates(frame_of([{"caption": "a", "negative": "b", "form": "swap", "target": "object"}]), plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_candidates(packed)["negative"].to_list() == ["b"]


def test_only_caption_and_negative_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"caption": "a dog", "negative_caption": "a cat"}\n\n{"caption": "a dog", "negative": "a cow"}\n')
    frame = read_candidates(path)
    assert frame.schema == SCHEMA
    assert frame["negative"].to_list() == ["a cat", "a cow"]
    assert frame["status"].to_list() == ["kept", "kept"]


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("jsonl", '{"caption": "a", "negative": "b"}'),
        ("json", '{"0": {"caption": "a", "negative_caption": "b"}}'),
        ("tsv", "title\tneg_caption\na\t['b']"),
    ],
)
def test_a_byte_order_mark_is_ignored(tmp_path: Path, ending: str, content: str) -> None:
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(b"\xef\xbb\xbf" + content.encode())
    assert read_candidates(path).select("caption", "negative").rows() == [("a", "b")]


def test_rows_without_the_texts_are_an_error_that_lists_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"image_id": 1, "captions": ["a"]}')
    with pytest.raises(InputError, match=r"no caption.* it has: captions, image_id"):
        read_candidates(path)


def test_missing_ids_depend_on_the_content_and_not_on_the_position() -> None:
    rows = [{"caption": "a dog", "negative": negative} for negative in ("a cat", "a cow", "a cat")]
    ids = frame_of(rows)["id"]
    assert ids.n_unique() == 3
    assert set(ids) == set(frame_of(rows[::-1])["id"])


def test_the_sugarcrepe_layout_keeps_its_indices_and_gets_the_type_from_the_file_name(tmp_path: Path) -> None:
    path = tmp_path / "swap_att.json"
    path.write_text('{"3": {"filename": "7.jpg", "caption": "a", "negative_caption": "b"}}')
    (got,) = read_candidates(path).to_dicts()
    assert [got[name] for name in ("id", "image", "form", "target")] == ["3", "7.jpg", "swap", "attribute"]
    write_candidates(read_candidates(path), tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["3"] == {
        "filename": "7.jpg", "caption": "a", "negative_caption": "b", "form": "swap", "target": "attribute", "status": "kept",
    }  # fmt: skip


def test_a_folder_of_sugarcrepe_files_is_read_with_ids_that_name_the_file(tmp_path: Path) -> None:
    for name, negative in (("swap_att", "b"), ("replace_obj", "c"), ("other", "d")):
        rows = {"0": {"filename": "7.jpg", "caption": "a", "negative_caption": negative}}
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    got = read_candidates(tmp_path)
    assert got["id"].to_list() == ["other-0", "replace_obj-0", "swap_att-0"]
    assert got["negative"].to_list() == ["d", "c", "b"]
    assert got["target"].to_list() == ["", "object", "attribute"]


def test_a_folder_of_other_json_files_is_no_set_of_rows(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UsageError, match="candidate rows are in"):
        read_candidates(tmp_path)


def test_in_the_negclip_layout_each_negative_of_a_line_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("\ttitle\tfilepath\tneg_caption\tneg_image\n0\ta dog\tx.jpg\t['a cat', \"a dog's cow\"]\t[4, 5]\n")
    frame = read_candidates(path)
    assert frame.select("image", "caption", "negative").rows() == [
        ("x.jpg", "a dog", "a cat"),
        ("x.jpg", "a dog", "a dog's cow"),
    ]
    write_candidates(frame, tmp_path / "out.tsv")
    lines = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    first = dict(zip(lines[0], lines[2], strict=True))
    assert ast.literal_eval(first["neg_caption"].strip('"').replace('""', '"')) == ["a dog's cow"]
    assert [first["title"], first["filepath"], first["neg_image"]] == ["a dog", "x.jpg", "[4, 5]"]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.jsonl", b'{"caption":"a","negative":"b"}\n{"caption":1}', r"a\.jsonl:2: caption is int"),
        ("b.jsonl", b'{"caption":"a"}', "1: no negative"),
        ("c.jsonl", b'{"caption":"  ","negative":"b"}', "1: no caption"),
        ("d.jsonl", b"{oops", "1: invalid JSON"),
        ("e.jsonl", b'{"caption":"\xff"}', "1: invalid JSON.*UTF-8"),
        ("f.jsonl", b"5", "1: int instead of an object"),
        (
            "g.jsonl",
            b'{"id":1,"caption":"a","negative":"b"}\n{"id":"1","caption":"a","negative":"c"}',
            r"jsonl:2: id '1'",
        ),
        ("h.jsonl", b'{"caption":"a","negative":"b","scores":{"x":"y"}}', "scores is not"),
        ("i.jsonl", b'{"caption":"a","negative":"b","scores":[1]}', "scores is not"),
        ("t.jsonl", b'{"id":123456789012345678901234,"caption":"a","negative":"b"}', "the id .* too many digits"),
        ("u.jsonl", b'{"caption":"a","negative":"b","image":true}', "image is bool, not text"),
        ("v.jsonl", b'{"caption":"a","negative":"b","image":["a","b"]}', "image is list, not text"),
        ("j.jsonl", b'{"caption":"a","negative":"b","edit":[1]}', "edit is not"),
        ("k.jsonl", b'{"caption":"a","negative":"b","status":"dropped"}', "status 'dropped'"),
        ("l.json", b"[1]", "row 0: int instead of an object"),
        ("m.json", b'{"0":{"caption":"a","negative_caption":"b"},"accuracy":0.5}', "row 'accuracy': float"),
        ("n.tsv", b"title\tx\n", "no column neg_caption"),
        ("o.tsv", b"", "no column neg_caption, title"),
        ("p.tsv", b"title\tneg_caption\nabc\tx\n", r"p\.tsv:2: neg_caption is not a list"),
        ("q.tsv", b'title\tneg_caption\nabc\t"[\n', "invalid TSV"),
        ("q2.tsv", b"title\tneg_caption\na\t['b']\n\"a\"c\t['b']\n", r"q2\.tsv:3: invalid TSV"),
        (
            "q3.tsv",
            b"filepath\ttitle\tneg_caption\n1\t\"a dog\t['b']\n2\ta cat\t['c']\n3\ta bird\"\t['d']\n",
            r"q3\.tsv:4: a quoted field contains line breaks and tabs",
        ),
        ("r.tsv", b"title\tneg_caption\nabc\t['x']\tmore\n", r"r\.tsv:2: more fields"),
        ("s.tsv", b"title\tneg_caption\n\xff\n", "not UTF-8 at byte 18"),
        ("t.parquet", b"PAR1", "invalid Parquet file"),
    ],
)
def test_bad_input_is_one_line_with_file_and_place(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_candidates(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_unknown_extension_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_candidates(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match=r"\.jsonl, \.json, \.tsv, \.parquet"):
        write_candidates(frame_of([]), tmp_path / "rows.xlsx")


def test_a_foreign_table_is_read_if_it_has_the_two_texts(tmp_path: Path) -> None:
    pl.DataFrame({"caption": ["a"], "negative_caption": ["b"], "votes": [3]}).write_parquet(tmp_path / "rows.parquet")
    frame = read_candidates(tmp_path / "rows.parquet")
    assert json.loads(frame["extra"][0]) == {"votes": 3}


@pytest.mark.parametrize(
    ("form", "target", "name"),
    [("swap", "object", "swap-object"), ("shuffle", "", "shuffle"), ("", "", "other")],
)
def test_a_type_is_named_by_form_and_target(form: str, target: str, name: str) -> None:
    assert edit_type_name(form, target) == name


@pytest.mark.parametrize("ending", ENDINGS)
def test_shuffled_rows_are_read_as_rejected_for_training(tmp_path: Path, ending: str) -> None:
    rows = [
        {"caption": "a dog", "negative": "dog a", "form": "shuffle"},
        {"caption": "a dog", "negative": "a cat", "form": "replace", "target": "object"},
    ]
    kept = frame_of(rows).with_columns(status=pl.lit("kept"), reason=pl.lit(""))
    write_candidates(kept, tmp_path / f"rows.{ending}")
    found = read_candidates(tmp_path / f"rows.{ending}")
    assert found["status"].to_list() == ["rejected", "kept"]
    assert found["reason"].to_list() == ["for_training", ""]


@pytest.mark.parametrize("column", NEGATIVE_COLUMNS)
@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_each_negative_of_a_list_is_a_row_in_every_layout(tmp_path: Path, ending: str, column: str) -> None:
    path = tmp_path / f"n.{ending}"
    rows = [
        {"filename": "a.jpg", "caption": "a dog", column: ["a cat", "a cow"]},
        {"filename": "b.jpg", "caption": "a bus", column: ["a car"]},
        {"filename": "c.jpg", "caption": "a hat", column: []},
    ]
    if ending == "jsonl":
        path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    elif ending == "json":
        path.write_text(json.dumps({str(7 * at): each for at, each in enumerate(rows)}))
    else:
        pl.DataFrame(rows).write_parquet(path)
    frame = read_candidates(path)
    assert frame["negative"].to_list() == ["a cat", "a cow", "a car", ""]
    assert frame["image"].to_list() == ["a.jpg", "a.jpg", "b.jpg", "c.jpg"]
    assert frame["reason"].to_list() == ["", "", "", "no_candidate"]
    assert frame["id"].n_unique() == 4
    if ending == "json":
        assert frame["id"].to_list() == ["0-0", "0-1", "7", "14"]
    source, _ = candidate_source(path)
    texts = [annotation.text for sample in source.samples() for annotation in sample.annotations]
    assert sorted(texts) == ["a car", "a cat", "a cow"]


def test_a_list_of_negatives_in_a_table_may_be_its_text(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("caption,negatives\na dog,\"['a cat', 'a cow']\"\na bus,a car\n")
    assert read_candidates(path)["negative"].to_list() == ["a cat", "a cow", "a car"]
    path.write_text("caption,negatives\na dog,['a cat\n")
    with pytest.raises(InputError, match=r"n\.csv:2: negatives is not a list of texts"):
        read_candidates(path)


def test_the_negatives_of_a_list_have_ids_of_their_own_even_for_the_number_zero(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    rows = [{"id": at, "caption": f"a dog {at}", "negatives": ["a cat", "a cow"]} for at in range(2)]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert read_candidates(path)["id"].to_list() == ["0-0", "0-1", "1-0", "1-1"]


def test_an_empty_negative_does_not_hide_one_in_another_column(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    rows = [
        {"caption": "a dog", "negative": "", "negative_caption": "a cow"},
        {"caption": "a bus", "negative": "", "negative_caption": None, "negatives": ["a car", "a van"]},
        {"caption": "a hat", "negative": "a cap", "negatives": ["a wig"]},
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    frame = read_candidates(path)
    assert frame["negative"].to_list() == ["a cow", "a car", "a van", "a cap"]
    assert frame["extra"].to_list() == ["{}", "{}", "{}", '{"negatives":["a wig"]}']


def test_an_invalid_negative_of_a_list_is_named_and_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    path.write_text(json.dumps({"caption": "a dog", "negatives": ["a cat", 3, "a cow"]}) + "\n")
    with pytest.raises(InputError, match=r"n\.jsonl:1, negative 2: negative is int, not text"):
        read_candidates(path)
    assert read_candidates(path, InvalidRowPolicy("skip"))["negative"].to_list() == ["a cat", "a cow"]


def test_lists_of_negatives_are_read_from_a_compressed_file(tmp_path: Path) -> None:
    line = json.dumps({"caption": "a dog", "negatives": ["a cat", "a cow"]}).encode() + b"\n"
    for ending, compress in COMPRESSORS.items():
        path = tmp_path / f"n.jsonl{ending}"
        path.write_bytes(compress(line))
        assert read_candidates(path)["negative"].to_list() == ["a cat", "a cow"]
        assert holds_candidates(path)


def test_a_line_of_the_negclip_layout_without_negatives_is_a_rejected_row(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("title\tfilepath\tneg_caption\na dog\tx.jpg\t['a cat']\na bus\ty.jpg\t[]\n")
    frame = read_candidates(path)
    assert frame.select("caption", "negative", "status", "reason").rows() == [
        ("a dog", "a cat", "kept", ""),
        ("a bus", "", "rejected", "no_candidate"),
    ]
    write_candidates(frame, tmp_path / "out.tsv")
    assert read_candidates(tmp_path / "out.tsv")["negative"].to_list() == ["a cat"]


def test_a_folder_that_is_no_benchmark_is_refused_with_the_way_to_rows(tmp_path: Path) -> None:
    (tmp_path / "build" / "shards").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"`pairwright export .*build --to sugarcrepe --out rows`"):
        read_candidates(tmp_path / "build")


def test_a_score_that_is_null_is_none_and_an_image_may_be_a_number_or_an_object(tmp_path: Path) -> None:
    """Each was a broken row; the file was refused by its ending."""
    images: list[Any] = [17, 17.0, ["a.jpg"], [], {"path": "a.jpg"}, {"bytes": None, "path": "a.jpg"}]
    row = {"caption": "a", "scores": {"one": None, "two": float("nan"), "three": 0.5}}
    rows = [{**row, "negative": f"b {number}", "image": image} for number, image in enumerate(images)]
    (tmp_path / "rows.ndjson").write_text("".join(json.dumps(each) + "\n" for each in rows))
    frame = read_candidates(tmp_path / "rows.ndjson")
    assert frame["image"].to_list() == ["17", "17", "a.jpg", "", "a.jpg", "a.jpg"]
    assert frame["scores"].to_list() == [[{"name": "three", "value": 0.5}]] * len(images)


ROWS = [
    {"image": "a.jpg", "caption": "a dog", "negative": "a cat"},
    {"image": "b.jpg", "caption": "a bus", "negative": "a car"},
]


@pytest.mark.parametrize(
    "data",
    [
        {"data": ROWS, "version": 1},
        {"train": ROWS[:1], "test": ROWS[1:]},
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
        {name: {str(at): row[name] for at, row in enumerate(ROWS)} for name in ROWS[0]},
    ],
    ids=["list under a name", "splits", "lists of columns", "numbered columns"],
)
def test_a_json_object_is_read_as_one_of_pairs_is(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "n.json"
    path.write_text(json.dumps(data))
    frame = read_candidates(path)
    assert frame.select(list(ROWS[0])).to_dicts() == ROWS
    assert frame["id"].to_list() == ["0", "1"]


def test_several_lists_of_rows_that_are_no_splits_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "n.json"
    path.write_text(json.dumps({"old": ROWS, "new": ROWS}))
    with pytest.raises(InputError, match=r"n\.json: several lists of rows \(old, new\)"):
        read_candidates(path)


def test_values_of_a_table_that_json_lacks_are_written_as_json(tmp_path: Path) -> None:
    day = dt.date(2026, 11, 30)
    row = {"caption": "a dog", "negative": "a cat", "n": [math.nan, 1.0], "when": {"days": [day]}, "votes": [1, 2]}
    pl.DataFrame([row]).write_parquet(tmp_path / "n.parquet")
    extra = json.loads(read_candidates(tmp_path / "n.parquet")["extra"][0])
    assert extra == {"n": [None, 1.0], "when": {"days": ["2026-11-30"]}, "votes": [1, 2]}
