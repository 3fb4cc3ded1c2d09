"""Each command: output, files, exit code."""

import gzip
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.shards.reading import read_members
from pairwright.datasets.verification.llava_json import check_llava
from pairwright.flows.config.build import load_config
from tests.cli.conftest import Run
from tests.servers.warm_command_line import WarmCommandLine

VERBS = [
    "demo",
    "init",
    "build",
    "index",
    "retrieve",
    "fetch",
    "generate",
    "refine",
    "export",
    "inspect",
    "verify",
    "plugins",
    "doctor",
]
HEAVY = ("spacy", "polars", "numpy", "faiss", "prefect", "PIL", "nltk", "openai", "pyarrow", "pydantic", "yaml")


def loaded_by(code: str) -> set[str]:
    code = f"import sys; {code}; print(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_help_imports_nothing_heavy() -> None:
    """Keeps ``pairwright --help`` fast."""
    assert not loaded_by("import pairwright.cli.main") & set(HEAVY)


def test_a_build_without_prefect_does_not_import_it(warm: WarmCommandLine, tmp_path: Path) -> None:
    """Keeps the start of ``pairwright build --no-prefect`` fast."""
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    (tmp_path / "b.yaml").write_text("name: t\ninput: {path: in.jsonl}\nworkers: 1\n")
    done = warm.run(["build", "b.yaml", "--no-prefect"], tmp_path, "tests.cli.loaded_packages")
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.splitlines()[-1].split()
    assert "polars" in loaded
    assert "prefect" not in loaded


def test_help_names_every_verb(run_apart: Run) -> None:
    text = run_apart("--help").stdout
    assert all(f"  {verb} " in text for verb in VERBS)


def test_the_version_is_printed(run_apart: Run) -> None:
    assert run_apart("--version").stdout.startswith("pairwright 0.")


@pytest.mark.parametrize("arguments", [["frob"], ["build"], ["demo"], ["generate", "negatives", "x.jsonl"]])
def test_wrong_usage_exits_2(run: Run, arguments: list[str]) -> None:
    assert run(*arguments, ok=False).returncode == 2


def test_an_option_of_one_value_is_given_once(run: Run, tmp_path: Path) -> None:
    """`train --data a --data b` trained on b alone."""
    done = run("train", "clip", "--data", "a", "--data=b", "--model", "c", "--out", str(tmp_path / "d"), ok=False)
    assert done.returncode == 2
    assert "Option '--data' is given twice and takes one value." in done.stderr
    done = run("train", "clip", "--data", "a", "--model", "c", "--set", "a=1", "--set", "b=2", "--out", "d", ok=False)
    assert "twice" not in done.stderr


def test_commands_end_alike_in_this_process_in_a_warm_one_and_in_one_of_their_own(
    run: Run, warm: WarmCommandLine, run_apart: Run, tmp_path: Path
) -> None:
    here, forked, apart = (
        (done.returncode, done.stdout, done.stderr.replace("python -m pairwright", "pairwright"))
        for done in (run("build", ok=False), warm.run(["build"], tmp_path), run_apart("build", ok=False))
    )
    assert here == forked == apart


def test_negatives_are_made_for_a_few_captions(run: Run, captions: Path, tmp_path: Path) -> None:
    printed = json.loads(run("generate", "negatives", captions, "--out", "n.jsonl", "--json").stdout)
    rows = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert printed["captions"] == 5
    for counts in printed["types"].values():
        assert counts["made"] == counts["kept"] + sum(counts["rejected"].values()) == 5
    assert len(rows) == sum(counts["made"] for counts in printed["types"].values())
    kept = [row for row in rows if row["status"] == "kept"]
    assert printed["types"]["replace-object"]["kept"] >= 4
    for row in kept:
        assert row["negative"] != row["caption"]
        for edit in row["edit"]:
            assert row["caption"][slice(*edit["from_span"])] == edit["from"]
            assert row["negative"][slice(*edit["to_span"])] == edit["to"]
    assert all(row["reason"] for row in rows if row["status"] == "rejected")


def test_the_same_seed_gives_the_same_file_and_another_seed_another(
    run: Run, run_apart: Run, few_scenes: Path, tmp_path: Path
) -> None:
    for name, seed, start in (("a", 1, run), ("b", 1, run_apart), ("c", 2, run)):
        start(
            "generate", "negatives", few_scenes, "--out", f"{name}.jsonl", "--seed", seed, "--types", "replace-object"
        )
    a, b, c = ((tmp_path / f"{name}.jsonl").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_negatives_go_into_sugarcrepe_negclip_and_parquet_files(run: Run, few_scenes: Path, tmp_path: Path) -> None:
    for ending in ("json", "tsv", "parquet"):
        run("generate", "negatives", few_scenes, "--out", f"n.{ending}", "--types", "replace-attribute")
    rows = json.loads((tmp_path / "n.json").read_text())
    assert set(rows["0"]) == {"filename", "caption", "negative_caption"}
    assert (tmp_path / "n.tsv").read_text().splitlines()[0].split("\t")[0]
    table = pl.read_parquet(tmp_path / "n.parquet")
    assert set(table["status"]) == {"kept", "rejected"}
    assert len(rows) == table.filter(pl.col("status") == "kept").height


def test_positives_and_conversations_are_made(run: Run, few_scenes: Path, tmp_path: Path) -> None:
    printed = json.loads(run("generate", "positives", few_scenes, "--out", "p.jsonl", "--json").stdout)
    assert printed["types"]["replace-attribute"]["kept"] > 16
    printed = json.loads(
        run(
            "generate", "conversations", few_scenes, "--out", "c.json", "--vocabulary", "circle,square,star", "--json"
        ).stdout
    )
    assert printed["turns"] > 160
    assert check_llava(tmp_path / "c.json") == []


def test_what_generate_writes_refine_reads(run: Run, scenes: Path, tmp_path: Path) -> None:
    run("generate", "negatives", scenes, "--out", "n.jsonl")
    done = run("refine", "n.jsonl", "--out", "r.jsonl", "--corpus", scenes, "--reference", "--cells", 10, "--json")
    printed = json.loads(done.stdout)
    assert 0 < printed["kept"] <= printed["in"]
    assert all(attack["after"] == pytest.approx(0.5) for attack in printed["attacks"].values())
    before, after = ((tmp_path / f"{name}.jsonl").read_text().splitlines() for name in "nr")
    assert len(before) == len(after)


def test_refine_exits_3_when_nothing_can_be_balanced(run: Run, tmp_path: Path) -> None:
    row = {"caption": "a man riding a horse", "negative": "horse a a man riding", "image": "1.jpg"}
    other = {"caption": "a man riding a wave", "negative": "wave riding a man a", "image": "2.jpg"}
    (tmp_path / "n.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(other) + "\n")
    done = run("refine", "n.jsonl", "--out", "r.jsonl", ok=False)
    assert done.returncode == 3
    assert "upper bound for any balanced subset: " in done.stderr


def test_an_index_is_built_checked_and_searched(run: Run, scenes: Path, tmp_path: Path) -> None:
    built = json.loads(run("index", "build", scenes, "--out", "index", "--json").stdout)
    assert (built["pairs"], built["captions"]) == (80, 320)
    assert built["vectors"] + built["duplicates"] + built["near_duplicates"] == built["captions"]
    assert {"seconds", "bytes", "kind"} <= set(built)
    checked = json.loads(run("index", "check", "index", "--json").stdout)
    assert checked["recall"] >= 0.95
    assert checked["checksum_ok"] is True
    (tmp_path / "q.txt").write_text("a red circle\nan electron microscope\n")
    found = json.loads(
        run("retrieve", "--index", "index", "--queries", "q.txt", "--k", 4, "--out", "h.parquet", "--json").stdout
    )
    assert (found["queries"], found["hits"]) == (2, 8)
    assert found["uncovered"] == ["an electron microscope"]
    asked = ("retrieve", "--index", "index", "--queries", "q.txt", "--out", "none.parquet")
    nothing = run(*asked, "--min-score", "1", ok=False)
    assert nothing.returncode == 3
    assert "No query found a pair: lower --min-score" in nothing.stderr
    assert pl.read_parquet(tmp_path / "h.parquet").columns == [
        *("query", "text", "concept", "template", "mode", "rank", "key", "caption_index", "score")
    ]


def test_an_index_whose_bytes_changed_fails_the_check(run: Run, scenes: Path, tmp_path: Path) -> None:
    run("index", "build", scenes, "--out", "index")
    file = tmp_path / "index" / "text-00000" / "vectors.faiss"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    done = run("index", "check", "index", "--json", ok=False)
    assert done.returncode == 1


def test_init_build_inspect_verify_export_work_one_after_the_other(run: Run, few_scenes: Path, tmp_path: Path) -> None:
    run("init", "--template", "negatives", "--input", few_scenes, "--out", "build.yaml")
    planned = json.loads(run("build", "build.yaml", "--out", "out", "--dry-run", "--json").stdout)["work"]
    assert (planned["pairs"], planned["shards"], (tmp_path / "out").exists()) == (48, 1, False)
    refused = run("build", "build.yaml", "--dry-run", "--only", "nope", ok=False)
    assert "this build has no such stage" in refused.stderr
    built = json.loads(run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1, "--json").stdout)
    assert planned["stages"] == list(built["stages"])
    for stage in built["stages"].values():
        assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values())
    assert Path(built["shards"][0]).name == "00000.tar"
    assert json.loads(run("verify", "out", "--json").stdout) == {"ok": True, "problems": [], "kind": "build"}
    looked = json.loads(run("inspect", "out", "--json", "--sheet", "sheet.png").stdout)
    assert looked["samples"] == 48
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")
    key = looked["shown"][0]["key"]
    assert json.loads(run("inspect", "out", "--key", key, "--json").stdout)["shown"][0]["key"] == key
    printed = json.loads(run("export", "out", "--to", "sugarcrepe", "--out", "s.json", "--json").stdout)
    assert printed["rows"] == built["stages"]["refine"]["kept"]
    run("export", "out", "--to", "webdataset", "--samples", 20, "--out", "smaller")
    assert run("verify", "smaller", "--readers", 3).stdout == "smaller: no problems.\n"
    few = run("verify", "smaller", "--readers", 4, ok=False)
    assert (few.returncode, few.stdout[:20]) == (1, "3 shards for 4 reade")


def test_a_build_says_which_rows_of_the_input_it_rejected(run: Run, tmp_path: Path) -> None:
    rows = [{"key": "1", "caption": "A dog on a mat."}, {"key": "2", "caption": ""}, {"key": "3", "caption": None}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"name": "x", "input": {"path": "in.jsonl", "on_error": "skip"}, "shards": {"images": False}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    shown = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1).stdout
    assert "2 of 3 rows of the input rejected: empty_caption 2. They are in rejected/pairs-*.parquet." in shown


def test_a_build_counts_captions_apart_from_the_rows_that_it_rejected(run: Run, tmp_path: Path) -> None:
    rows = [
        {"key": "1", "captions": ["A dog on a mat.", "A <image> dog."]},
        {"key": "2", "captions": ["A <image> cat.", "<image>", "A cat <image>."]},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"name": "x", "input": {"path": "in.jsonl", "on_error": "skip"}, "shards": {"images": False}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    shown = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1).stdout
    assert "1 of 2 rows of the input rejected: image_token 1." in shown
    assert "Rejected alone, as their rows have others: 1 caption (image_token 1)." in shown
    assert "of kept rows: 1 caption (image\\_token 1) |" in (tmp_path / "out" / "README.md").read_text()
    made = run("generate", "negatives", "in.jsonl", "--on-error", "skip", "--out", "n.jsonl").stdout
    assert "Skipped: 1 row (image_token 1) and 1 caption (image_token 1)" in made


def test_an_increment_counts_the_new_rows_that_it_cannot_read(run: Run, tmp_path: Path) -> None:
    """Not those that lost a caption or their boxes."""
    first = {"key": "1", "caption": "A dog on a mat."}
    (tmp_path / "in.jsonl").write_text(json.dumps(first) + "\n")
    config = {"name": "x", "input": {"path": "in.jsonl", "on_error": "skip"}, "shards": {"images": False}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    build = ("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    run(*build)
    rows = [
        first,
        {"key": "2", "captions": ["A cat on a bed.", ""]},
        {"key": "3", "caption": "A bird in a tree.", "boxes": [{"label": "bird", "bbox": [0.5, 0, 0.1, 1]}]},
        {"key": "4", "caption": ""},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(*build, "--incremental", "--json")
    assert "2 new pairs in 1 new shard; 1 new row cannot be read" in done.stderr
    pairs = json.loads(done.stdout)["stages"]["pairs"]
    assert (pairs["candidates"], pairs["kept"], pairs["rejected"]) == (4, 3, {"empty_caption": 1})
    assert (pairs["rejected_captions"], pairs["rejected_boxes"]) == ({"empty_caption": 1}, {"bad_box": 1})
    again = run(*build, "--incremental")
    assert again.stdout == "\nUnchanged: version 2 in out, 3 samples\n"  # not the summary of a build, nor files written


def test_a_name_that_is_not_utf8_is_one_rejected_row_of_a_folder(run: Run, tmp_path: Path) -> None:
    """The state of the input has the names of all files."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in (b"good", b"caf\xe9"):
        Image.new("RGB", (40, 40), "red").save(photos / os.fsdecode(name + b".jpg"))
        (photos / os.fsdecode(name + b".txt")).write_text("A dog on a mat.")
    config = {"name": "x", "input": {"path": "photos", "on_error": "skip"}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    shown = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1).stdout
    assert "1 of 2 rows of the input rejected: not_utf8 1." in shown


def test_an_export_of_a_build_embeds_the_images_of_its_shards(run: Run, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (40, 40), "red").save(photos / "1.gif")
    (photos / "1.txt").write_text("A dog on a mat.")
    config = {"name": "x", "input": {"path": "photos"}, "shards": {"image_format": "jpg"}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    (photos / "1.gif").unlink()
    assert "1 row in hf-parquet's layout" in run("export", "out", "--to", "hf-parquet", "--out", "hub").stdout
    ((key, members),) = read_members(tmp_path / "out" / "shards" / "00000.tar")
    (row,) = pl.read_parquet(tmp_path / "hub" / "data" / "train-00000.parquet").to_dicts()
    assert row["image"] == {"bytes": members["jpg"], "path": f"{key}.jpg"}
    named = run("export", "out/shards", "--to", "parquet", "--out", "p.parquet").stderr
    assert "The rows name 1 image that tars or tables hold" in named


def test_an_export_of_a_build_has_its_samples_alone(run: Run, tmp_path: Path) -> None:
    """Pairs whose image could not be packed were in the tables of all layouts that name image files."""
    Image.new("RGB", (40, 40), "red").save(tmp_path / "1.jpg")
    rows = [{"image": name, "caption": f"a {name} dog"} for name in ("1.jpg", "https://x.org/2.jpg")]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "build.yaml").write_text(json.dumps({"name": "x", "input": {"path": "in.jsonl"}}))
    built = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    assert "1 of 2 pairs kept; rejected: not_fetched 1" in built.stderr
    assert "1 row in parquet's layout" in run("export", "out", "--to", "parquet", "--out", "p.parquet").stdout


def test_a_build_says_how_many_fields_it_could_not_read(run: Run, tmp_path: Path) -> None:
    """The rows were rejected."""
    rows = [{"key": "1", "caption": "A dog on a mat.", "width": "n/a"}, {"key": "2", "caption": "A cat.", "width": 640}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"name": "x", "input": {"path": "in.jsonl", "on_error": "skip"}, "shards": {"images": False}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    built = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    assert "Read as unknown, since it is not usable: 1 optional field (wrong_type 1)." in built.stdout
    pairs = json.loads((tmp_path / "out" / "manifest.json").read_text())["stages"]["pairs"]
    assert (pairs["kept"], pairs["rejected"], pairs["facts"]["rejected_fields"]) == (2, {}, {"wrong_type": 1})
    assert "of kept rows: 1 field (wrong_type 1)" in (tmp_path / "out" / "report.html").read_text()
    found = json.loads(run("init", "--input", "in.jsonl", "--out", "b.yaml", "--json").stdout)
    assert found["notes"] == ["Optional fields, such as width, that are read as unknown: wrong_type 1."]
    made = json.loads(
        run("generate", "negatives", "in.jsonl", "--out", "n.jsonl", "--on-error", "skip", "--json").stdout
    )
    assert (made["broken"], made["broken_fields"]) == ({"wrong_type": 1}, {"wrong_type": 1})


def test_a_build_says_how_many_rows_it_reads_without_boxes(run: Run, tmp_path: Path) -> None:
    boxes = [{"label": "dog", "bbox": [0, 0, 0.5, 0.5]}, {"label": "cat", "bbox": [0.5, 0, 7, 1]}]
    rows = [{"key": "1", "caption": "A dog on a mat."}, {"key": "2", "caption": "A dog.", "boxes": boxes}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"name": "x", "input": {"path": "in.jsonl", "on_error": "skip"}, "shards": {"images": False}}
    (tmp_path / "build.yaml").write_text(json.dumps(config))
    built = run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    assert "Read without boxes, since one of them is bad: 1 row (bad_box 1)." in built.stdout
    assert "rows of the input rejected" not in built.stdout
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    pairs = manifest["stages"]["pairs"]
    assert (pairs["candidates"], pairs["kept"], pairs["rejected"]) == (2, 2, {})
    assert pairs["facts"]["rejected_boxes"] == {"bad_box": 1}
    assert "of kept rows: the boxes of 1 image (bad_box 1)" in (tmp_path / "out" / "report.html").read_text()
    run("verify", "out")
    found = json.loads(run("init", "--input", "in.jsonl", "--out", "b.yaml", "--json").stdout)
    assert found["notes"] == ["Bad boxes: 1 of the first 2 pairs is read without boxes."]
    work = json.loads(run("plan", "build.yaml", "--json").stdout)["work"]
    assert (work["pairs"], work["refused"]) == (2, 0)


def test_verify_finds_a_shard_that_was_cut_off(run: Run, few_scenes: Path, tmp_path: Path) -> None:
    run("init", "--template", "react", "--input", few_scenes, "--out", "build.yaml")
    (tmp_path / "queries.txt").write_text("a red circle\n")
    run("build", "build.yaml", "--out", "out", "--no-prefect", "--workers", 1)
    shard = tmp_path / "out" / "shards" / "00000.tar"
    shard.write_bytes(shard.read_bytes()[:-2000])
    done = run("verify", "out", ok=False)
    assert done.returncode == 1
    assert "00000.tar" in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_database")
def test_the_demo_builds_through_prefect_and_agrees_with_the_truth(run_apart: Run, tmp_path: Path) -> None:
    """With a server that it starts; the next one shows the same but for Prefect, `test_build` a build through Prefect."""
    told_by_demo(run_apart, tmp_path)


def test_the_demo_agrees_with_the_truth(run: Run, tmp_path: Path) -> None:
    told_by_demo(run, tmp_path, "--no-prefect")


def told_by_demo(run: Run, tmp_path: Path, *options: str) -> None:
    printed = json.loads(run("demo", "--out", "demo", "--pairs", 60, "--workers", 1, "--json", *options).stdout)
    assert {"shards", "pairs", "card", "report", "oracle"} <= set(printed)
    for name in ("negatives", "positives", "turns"):
        assert printed["oracle"][name]["kept"] > 0
        assert printed["oracle"][name]["true_share"] >= 0.995
    assert "Checked against the truth" in (tmp_path / printed["report"]).read_text(encoding="utf-8")


def test_doctor_lists_packages_and_settings(run: Run) -> None:
    printed = json.loads(run("doctor", "--json").stdout)
    states = {check["name"]: check["state"] for check in printed["checks"]}
    assert printed["ok"]
    assert {states[name] for name in ("tagger", "wordnet", "encoder", "prefect start")} == {"ok"}


def test_doctor_names_extras_that_bring_what_it_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    printed = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    named = {
        check["name"]: found[1]
        for check in printed["checks"]
        if (found := re.search(r"pip install 'pairwright\[(\w+)\]'", check["detail"]))
    }
    assert named
    assert all(any(re.match(rf"{name}\b", wanted) for wanted in extras[extra]) for name, extra in named.items())


def test_plugins_lists_what_there_is(run: Run) -> None:
    rows = json.loads(run("plugins", "--json").stdout)["plugins"]
    kinds = {row["kind"] for row in rows}
    assert kinds == {"attack", "generator", "encoder", "reader", "export", "layout"}
    assert all(row["about"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["generate", "negatives", "none.jsonl", "--out", "n.jsonl"], "none.jsonl"),
        (["generate", "negatives", "bad.jsonl", "--out", "n.jsonl"], "bad.jsonl:2: broken_json"),
        (["generate", "negatives", "good.jsonl", "--out", "n.docx"], "ends in .jsonl"),
        (["generate", "negatives", "good.jsonl", "--out", "n.jsonl", "--types", "replace-thing"], "replace-thing"),
        (["generate", "negatives", "good.jsonl", "--out", "n.jsonl", "--columns", "caption"], "--columns"),
        (["build", "none.yaml"], "pairwright init"),
        (["index", "build", "bad.jsonl", "--out", "i", "--half"], "takes no model, device or half"),
        (["index", "check", "nowhere"], "nowhere"),
        (["verify", "nowhere"], "nowhere"),
        (["inspect", "nowhere"], "nowhere"),
        (["inspect", "good.jsonl"], "`pairwright review good.jsonl` shows candidate rows"),
        (["generate", "negatives", "good.jsonl", "--out", "n.jsonl", "--model", "m"], "or add --method llm"),
        (["export", "nowhere", "--to", "llava", "--out", "x.json"], "nowhere"),
        (["export", "good.jsonl", "--to", "docx", "--out", "x.docx"], "docx"),
        (["refine", "good.jsonl", "--out", "x.jsonl"], "good.jsonl:1: no negative"),
        (["init", "--template", "nope", "--out", "b.yaml"], "There are: all"),
        (
            ["export", "x", "--to", "llava", "--samples", "5", "--out", "l.json"],
            "--samples and --megabytes require --to",
        ),
        (["export", "x", "--to", "llava", "--longest-side", "5", "--out", "l.json"], "--to llava writes no images"),
        (["export", "x", "--append", "y", "--to", "rationales", "--out", "r.jsonl"], "--append cannot be combined"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(run: Run, tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "good.jsonl").write_text('{"caption": "a dog on a bench"}\n')
    (tmp_path / "bad.jsonl").write_text('{"caption": "a dog"}\n{broken\n')
    done = run(*arguments, ok=False)
    assert done.returncode in {1, 2}
    errors = [line for line in done.stderr.splitlines() if line.startswith("pairwright: ")]
    assert len(errors) == 1
    assert says in errors[0]
    assert "internal error" not in errors[0]
    assert not (tmp_path / "n.jsonl").exists()


@pytest.mark.parametrize("verb", [["validate"], ["refine"], ["audit"], ["generate", "triples"]])
def test_a_file_of_no_candidate_rows_fails_whatever_it_is_read_for(run: Run, tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    out = [] if verb == ["audit"] else ["--out", "out.jsonl"]
    done = run(*verb, "empty.jsonl", *out, ok=False)
    assert done.returncode == 1
    assert "empty.jsonl: there are no rows" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_the_input_is_never_overwritten(run: Run, captions: Path) -> None:
    before = captions.read_bytes()
    done = run("generate", "negatives", captions, "--out", captions, ok=False)
    assert done.returncode == 2
    assert "is the input itself" in done.stderr
    assert captions.read_bytes() == before


@pytest.mark.parametrize("name", ["00000.jsonl", "2017.jsonl", "null.jsonl", "true.jsonl", "1e5.jsonl"])
def test_init_takes_any_file_name(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"caption": "a dog"}\n')
    run("init", "--input", name, "--out", "b.yaml")
    assert load_config(tmp_path / "b.yaml").name == name.removesuffix(".jsonl")


def test_a_password_in_the_base_url_is_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:hush@host/v1")
    shown = run("doctor").stdout
    assert "host/v1" in shown
    assert "hush" not in shown
    assert "sk-secret" not in shown


def test_broken_rows_of_a_file_are_skipped_and_counted_by_export(run: Run, tmp_path: Path) -> None:
    message = [{"role": "user", "content": "<image>What is it?"}, {"role": "assistant", "content": "A dog."}]
    rows = [{"messages": message, "images": images} for images in (["1.jpg"], ["1.jpg", "2.jpg"], ["2.jpg"])]
    (tmp_path / "c.json").write_text(json.dumps(rows))
    stopped = run("export", "c.json", "--to", "llava", "--out", "l.json", ok=False)
    assert "c.json:item 2: image_count_mismatch: <image> occurs 1 time, for 2 images." in stopped.stderr
    assert "--on-error skip" in stopped.stderr
    done = json.loads(
        run("export", "c.json", "--to", "llava", "--out", "l.json", "--on-error", "skip", "--json").stdout
    )
    assert (done["rows"], done["broken"]) == (2, {"image_count_mismatch": 1})
    (tmp_path / "n.jsonl").write_text('{"caption": "a dog", "negatives": ["a cat", 3]}\n')
    assert (
        "Skipped: 1 row" in run("export", "n.jsonl", "--to", "negclip", "--out", "n.csv", "--on-error", "skip").stdout
    )
    assert (
        "--on-error requires"
        in run("export", str(tmp_path), "--to", "llava", "--out", "b.json", "--on-error", "skip", ok=False).stderr
    )


def test_files_of_conversations_are_exported_and_verified(run: Run, tmp_path: Path) -> None:
    message = [{"from": "human", "value": "What is it?"}, {"from": "gpt", "value": "A dog."}]
    (tmp_path / "c.json").write_text(json.dumps([{"id": "1", "conversations": message}]))
    run("export", "c.json", "--to", "parquet", "--out", "c.parquet")
    run("export", "c.parquet", "--to", "llava", "--out", "back.json")
    assert json.loads(run("verify", "back.json", "--json").stdout)["ok"]
    (tmp_path / "c.json.gz").write_bytes(gzip.compress((tmp_path / "c.json").read_bytes()))
    run("export", "c.json.gz", "--to", "llava", "--out", "unpacked.json")
    assert (tmp_path / "unpacked.json").read_bytes() == (tmp_path / "back.json").read_bytes()
    (tmp_path / "bad.json").write_text(json.dumps([{"id": "1", "conversations": message[:1]}]))
    assert run("verify", "bad.json", ok=False).returncode == 1
    assert "input itself" in run("export", "c.json", "--to", "llava", "--out", "c.json", ok=False).stderr
    assert "not negclip" in run("export", "c.json", "--to", "negclip", "--out", "n.csv", ok=False).stderr
