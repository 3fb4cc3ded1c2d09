"""``pairwright generate negatives`` and ``positives``: limits, layouts and output."""

import ast
import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import InputError, UsageError
from tests.cli.conftest import Run

THINGS = ("dog", "cat", "horse", "boy", "girl", "man", "woman", "cow")
PLACES = ("bed", "bench", "table", "chair", "boat")


def call(*arguments: object) -> str:
    """Run ``pairwright`` in this process and return what it prints; its errors are raised."""
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False).stdout


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Forty captions, each of an image that is known by its id alone."""
    path = tmp_path / "pool.jsonl"
    texts = [f"A {thing} sits on a {place} beside a small tree." for thing in THINGS for place in PLACES]
    path.write_text("".join(json.dumps({"image_id": 700 + n, "caption": text}) + "\n" for n, text in enumerate(texts)))
    return path


def test_positives_have_quota_cap_and_account(pool: Path, tmp_path: Path) -> None:
    limits = ("--quota", 5, "--max-word-share", 0.4)
    printed = json.loads(call("generate", "positives", pool, "--out", "p.jsonl", *limits, "--json"))
    kept = [row for row in map(json.loads, (tmp_path / "p.jsonl").open()) if row["status"] == "kept"]
    for kind, each in printed["limits"].items():
        rows = [row for row in kept if f"{row['form']}-{row['target']}" == kind]
        assert len(rows) == each["given"] == printed["account"][kind]["kept"] <= 5
        assert all(uses <= 0.4 * len(rows) for _, uses in printed["account"][kind]["most_used"] if uses > 1)
    assert sum(printed["account"]["replace-object"]["positions"]) == printed["account"]["replace-object"]["kept"] > 0
    reasons = Counter(row["reason"] for row in map(json.loads, (tmp_path / "p.jsonl").open()))
    assert reasons["over_quota"] == sum(each["rejected"].get("over_quota", 0) for each in printed["account"].values())


def test_a_quota_that_is_not_met_is_reported_in_one_line(pool: Path) -> None:
    given = ("--types", "replace-relation", "--quota", 1000, "--max-word-share", 0.01)
    message = call("generate", "negatives", pool, "--out", "n.jsonl", *given)
    (line,) = [line for line in message.splitlines() if line.startswith("replace-relation: ")]
    assert line.startswith("replace-relation: 1,000 requested, ")
    assert line.endswith(" kept (at most 1 per word)")


def test_one_type_of_a_quota_is_named_before_all(pool: Path) -> None:
    given = ("--types", "replace-object,replace-relation", "--quota", "replace-object=2,6", "--json")
    printed = json.loads(call("generate", "negatives", pool, "--out", "n.jsonl", *given))
    assert {kind: each["kept"] for kind, each in printed["types"].items()} == {
        "replace-object": 2,
        "replace-relation": 6,
    }


@pytest.mark.parametrize("quota", ["many", "replace-thing=3", "replace-object=", "=3"])
def test_a_quota_that_is_none_is_refused(pool: Path, quota: str) -> None:
    with pytest.raises(UsageError, match="--quota"):
        call("generate", "positives", pool, "--out", "p.jsonl", "--quota", quota)


@pytest.mark.parametrize(
    ("kind", "given", "printed"),
    [
        ("negatives", ("--types", "replace-object", "--quota", "swap-object=5"), "swap-object is not in --types"),
        ("negatives", ("--quota", "shuffle=5"), "shuffle is not in --types"),
        ("negatives", ("--quota", "swap-object=5,swap-object=6"), "swap-object is repeated"),
        ("positives", ("--quota", "5,6"), "the number for all types is repeated"),
        ("positives", ("--types", "swap-object,swap-object"), "swap-object is repeated"),
        ("conversations", ("--types", "brief,brief"), "brief is repeated"),
        ("conversations", ("--method", "llm", "--ratios", "detail=1,detail=2"), "detail is repeated"),
        ("negatives", ("--types", "shuffle", "--both-sides"), "--both-sides makes no positives for shuffle"),
        ("negatives", ("--types", "negation"), "--types negation and --vocabulary require each other"),
        ("negatives", ("--vocabulary", "coco"), "--types negation and --vocabulary require each other"),
        ("negatives", ("--floor", "2"), "floor must be above 0 and at most 1"),
        ("negatives", ("--floor", "0", "--method", "llm"), "--floor requires --method rules"),
    ],
)
def test_what_is_asked_twice_or_of_what_is_not_made_is_refused(
    pool: Path, tmp_path: Path, kind: str, given: tuple[str, ...], printed: str
) -> None:
    with pytest.raises(UsageError, match=printed):
        call("generate", kind, pool, *given, "--out", "n.jsonl")
    assert not (tmp_path / "n.jsonl").exists()


@pytest.mark.parametrize("kind", ["negatives", "positives", "conversations"])
def test_types_that_name_none_are_refused(pool: Path, tmp_path: Path, kind: str) -> None:
    with pytest.raises(UsageError, match="--types"):
        call("generate", kind, pool, "--types", " ,", "--out", tmp_path / "n.jsonl")


@pytest.mark.parametrize("types", ["shuffle", "replace-object,shuffle"])
def test_what_is_for_training_only_goes_into_no_benchmark(pool: Path, tmp_path: Path, types: str) -> None:
    with pytest.raises(UsageError, match="for training only"):
        call("generate", "negatives", pool, "--types", types, "--out", "n.json")
    assert not (tmp_path / "n.json").exists()


def test_a_negclip_table_names_images_that_are_known_by_id(pool: Path, tmp_path: Path) -> None:
    call("generate", "negatives", pool, "--types", "replace-object,shuffle", "--out", "n.tsv")
    with (tmp_path / "n.tsv").open(newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert len({row["filepath"] for row in rows}) == len(rows) > 30
    assert all(int(row["filepath"]) >= 700 for row in rows)
    assert any(len(ast.literal_eval(row["neg_caption"])) == 2 for row in rows)


def test_one_sugarcrepe_file_of_several_types_names_them_and_refine_reads_them(pool: Path, tmp_path: Path) -> None:
    call("generate", "negatives", pool, "--types", "replace-object,replace-relation", "--out", "n.json")
    rows = json.loads((tmp_path / "n.json").read_text()).values()
    assert {(row["form"], row["target"]) for row in rows} == {("replace", "object"), ("replace", "relation")}
    printed = json.loads(call("refine", "n.json", "--out", "r.jsonl", "--cells", 2, "--json"))
    assert set(printed["by_type"]) == {"replace-object", "replace-relation"}


def test_skipped_rows_are_counted(tmp_path: Path) -> None:
    rows = ['{"captions": ["A dog on a bed.", "", null]}', '{"caption": ""}', '{"capt']
    (tmp_path / "some.jsonl").write_text("\n".join(rows))
    command = ("generate", "positives", "some.jsonl", "--out", "p.jsonl", "--on-error", "skip")
    message = call(*command)
    assert "Skipped: 2 rows (broken_json 1, empty_caption 1) and 2 captions (empty_caption 2)\n" in message
    assert "for 1 caption, " in message
    printed = json.loads(call(*command, "--json"))
    assert printed["broken"] == {"broken_json": 1, "empty_caption": 3}
    assert printed["broken_captions"] == {"empty_caption": 2}


def test_an_output_is_not_lost_to_an_input_of_broken_rows_alone(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"caption": ""}\n{"capt\n{"caption": " "}\n')
    (tmp_path / "n.jsonl").write_text("of an earlier run")
    message = r"bad\.jsonl:1: no valid row \(empty_caption 2, broken_json 1\); the first is empty_caption: .* Fill in"
    for what in ("negatives", "conversations"):
        with pytest.raises(InputError, match=message):
            call("generate", what, "bad.jsonl", "--out", "n.jsonl", "--on-error", "skip")
    assert {path.name for path in tmp_path.iterdir()} == {"bad.jsonl", "n.jsonl"}
    assert (tmp_path / "n.jsonl").read_text() == "of an earlier run"


def test_negatives_given_as_captions_are_refused_with_the_right_verb(pool: Path) -> None:
    call("generate", "negatives", pool, "--out", "n.jsonl")
    with pytest.raises(InputError, match=r"n\.jsonl:2: candidate_row: .* refine, audit, validate and generate triples"):
        call("generate", "negatives", "n.jsonl", "--out", "again.jsonl")


def test_captions_may_be_one_plain_text(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"image_id": 1, "captions": "A dog sits on a bed."}\n')
    (tmp_path / "one.csv").write_text("image_id,text\n1,A dog sits on a bed.\n")
    for name, columns in (("one.jsonl", ""), ("one.csv", "captions=text")):
        printed = json.loads(call("generate", "negatives", name, "--columns", columns, "--out", "n.jsonl", "--json"))
        assert printed["captions"] == 1
        assert '"caption":"A dog sits on a bed."' in (tmp_path / "n.jsonl").read_text()


def test_what_is_printed_fits_a_terminal_of_eighty_columns(scenes: Path) -> None:
    limits = ("--quota", 100, "--max-word-share", 0.3)
    for what, given in (("negatives", ("--both-sides",)), ("positives", limits)):
        for details in ((), ("--details",)):
            message = call("generate", what, scenes, "--out", "o.jsonl", *given, *details).splitlines()
            assert max(map(len, message)) <= 80, message
            assert any(line.startswith("Position of edits") for line in message) == bool(details)
            assert any("most used" in line for line in message) == bool(details)


def test_a_summary_has_a_line_a_type_with_its_share_and_two_reasons_and_then_what_to_do(few_scenes: Path) -> None:
    printed = json.loads(call("generate", "negatives", few_scenes, "--out", "n.jsonl", "--json"))
    message = call("generate", "negatives", few_scenes, "--out", "n.jsonl").splitlines()
    kept = sum(counts["kept"] for counts in printed["types"].values())
    assert re.fullmatch(rf"{kept:,} texts for 48 captions, [\d.]+ s", message[0])
    assert message[1].split() == ["type", "kept", "of", "captions", "mainly", "rejected"]
    for kind, counts in printed["types"].items():
        (line,) = [line for line in message if line.startswith(f"{kind} ")]
        assert line.split()[1:3] == [f"{counts['kept']:,}", f"{counts['kept'] / 48:.1%}"]
        reasons = sorted(counts["rejected"].items(), key=lambda item: (-item[1], item[0]))
        assert all(f"{reason} {count:,}" in " ".join(message) for reason, count in reasons[:2])
        assert len(re.findall(r"[a-z]+_[a-z_]+ \d", line)) <= 2
    assert message[-2:] == ["Written to n.jsonl", "Next: pairwright refine n.jsonl --out n-refined.jsonl"]
    assert not any(line.startswith("Nearly nothing") for line in message)


@pytest.mark.parametrize("types", [(), ("--types", "swap-object")])
def test_texts_of_another_kind_than_the_pool_are_told_in_one_line(tmp_path: Path, types: tuple[str, ...]) -> None:
    """Swaps alone do not show it: few captions have two phrases to exchange."""
    texts = (f"Why he earns so much in {year}, and how it is going, is unclear to us." for year in range(1990, 2020))
    (tmp_path / "web.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in texts))
    message = call("generate", "negatives", "web.jsonl", "--out", "n.jsonl", *types).splitlines()
    told = [line for line in message if line.startswith("Nearly nothing was kept (no_")]
    assert len(told) == (not types)
    assert all(line.endswith("Set --pool to captions of their kind.") for line in told)


def test_a_file_is_no_label_of_a_vocabulary(run: Run, captions: Path, tmp_path: Path) -> None:
    """Labels that name nothing are skipped, so a file of labels had no effect."""
    (tmp_path / "labels.txt").write_text("dog\ncat\n")
    command = ("generate", "conversations", captions.name, "--vocabulary", "dog,labels.txt", "--out", "c.jsonl")
    done = run(*command, ok=False)
    assert (done.returncode, "--vocabulary labels.txt: a file." in done.stderr) == (2, True)


@pytest.mark.parametrize("what", ["negatives", "positives", "conversations"])
def test_captions_over_the_limit_are_rejected_and_counted(what: str, tmp_path: Path) -> None:
    """A caption of 100 KB takes no time, stops no run and is counted; the other captions of its image are used."""
    long = "a man riding a horse on a street " * 3000
    rows = [{"id": 1, "caption": long}, {"id": 2, "captions": ["a dog on a bed", long]}, {"id": 3, "caption": "a cat"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = json.loads(call("generate", what, "in.jsonl", "--out", "out.jsonl", "--json"))
    assert printed["captions"] == 2
    assert printed["broken"] == {"caption_too_long": 2}
    assert printed["broken_captions"] == {"caption_too_long": 1}
    assert "Skipped: 1 row (caption_too_long 1) and 1 caption" in call("generate", what, "in.jsonl", "--out", "o.jsonl")


def test_the_limit_of_captions_can_be_set(pool: Path) -> None:
    printed = json.loads(call("generate", "negatives", pool, "--out", "n.jsonl", "--max-caption", 42, "--json"))
    assert 0 < printed["broken"]["caption_too_long"] == 40 - printed["captions"]


def test_remains_of_web_pages_are_counted_and_removed_on_request(tmp_path: Path) -> None:
    texts = [
        "A cat &amp; a dog on a red sofa",
        "A white dog on a blue bed #cute",
        "A man on a brown horse",
        "IMG_1.jpg",
    ]
    rows = "".join(json.dumps({"id": n, "caption": text}) + "\n" for n, text in enumerate(texts))
    (tmp_path / "web.jsonl").write_text(rows)
    written = CliRunner().invoke(app, ["generate", "negatives", "web.jsonl", "--out", "n.jsonl"])
    assert "2 captions have HTML, addresses, hashtags, emoji or notes of agencies" in written.stderr
    assert "To remove them: --clean-captions." in written.stderr
    printed = json.loads(call("generate", "negatives", "web.jsonl", "--clean-captions", "--out", "c.jsonl", "--json"))
    assert (printed["captions"], printed["broken"]) == (3, {"no_content": 1})
    texts = [row["negative"] for row in map(json.loads, (tmp_path / "c.jsonl").open()) if row["status"] == "kept"]
    assert texts
    assert not [text for text in texts if "&amp;" in text or "#" in text]
