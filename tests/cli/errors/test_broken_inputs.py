"""Partly broken inputs of the smaller commands: each broken row is counted or reported."""

import json
import re
import shutil
import tarfile
from pathlib import Path

import polars as pl
import pytest

from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.shards.indexed_shards import find_indexed_shards
from pairwright.datasets.shards.sample_source import source_from_records
from pairwright.datasets.shards.writing import write_shards
from tests.cli.conftest import Run

MIXED = [{"caption": "a dog on a bed"}, {"caption": {"en": "a cat"}}, {"caption": None}, {"key": "only"}]


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def index(run: Run, tmp_path: Path) -> Path:
    lines(tmp_path / "pool.jsonl", *({"caption": f"a {thing} on a bed"} for thing in ("dog", "cat", "hat")))
    run("index", "build", "pool.jsonl", "--out", "index")
    return tmp_path / "index"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build of two parts and two shards, with its manifest."""
    folder, maker = tmp_path / "build", Origin("trial", 1)
    pairs = [Pair(pair_key("trial", str(n), f"a dog {n}"), f"a dog {n}", source="trial") for n in range(2)]
    rows = [
        Annotation(annotation_id(p.key, "hard_negative", maker, "0", f"a cat {n}"), p.key, "hard_negative", maker,
                   "replace", "object", f"a cat {n}", p.caption)
        for n, p in enumerate(pairs)
    ]  # fmt: skip
    for number, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        PAIRS.write([pair], folder / "pairs" / f"{number:05d}.parquet")
        ANNOTATIONS.write([row], folder / "annotations" / f"negatives-{number:05d}.parquet")
    shards = folder / "shards"
    write_shards(source_from_records(pairs, rows).samples(), shards, max_samples=1)
    named = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / "manifest.json").write_text(json.dumps({"files": {name: {} for name in named}}))
    return folder


def test_rows_of_evaluation_data_that_exclude_nothing_are_counted(run: Run, index: Path, tmp_path: Path) -> None:
    lines(tmp_path / "val.jsonl", *MIXED)
    (tmp_path / "q.txt").write_text("a dog\n")
    done = run("retrieve", "--index", index, "--queries", "q.txt", "--out", "h.jsonl", "--exclude", "val.jsonl")
    assert "skipped 3 rows (empty_caption 1, missing_column 1, wrong_type 1)" in done.stderr


NEGATIVE = {"caption": "a dog on a bed", "negative": "a cat on a bed", "form": "replace", "target": "object"}


@pytest.mark.parametrize(
    "verb",
    [
        ("audit",),
        ("refine", "--out", "o.jsonl"),
        ("validate", "--out", "o.jsonl"),
        ("generate", "triples", "--out", "o.jsonl"),
    ],
)
def test_a_null_among_negatives_stops_no_run_that_skips_such_rows(
    run: Run, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    """One null or broken negative among 100,000 stopped them, and only editing the file helped."""
    rows = [{**NEGATIVE, "image": f"{n}.jpg"} for n in range(30)]
    path = lines(tmp_path / "n.jsonl", *rows, {**NEGATIVE, "negative": None}, 7)
    stopped = run(*verb, path, ok=False)
    assert stopped.returncode == 1
    assert "n.jsonl:31: no negative (negative is empty)" in stopped.stderr
    assert stopped.stderr.endswith("To skip such rows: --on-error skip.\n")
    assert not (tmp_path / "o.jsonl").exists()
    printed = run(*verb, path, "--on-error", "skip", ok=False)
    assert printed.returncode in {0, 3}  # 3: of so few rows refine holds none
    assert "Skipped: 2 rows (empty_negative 1, wrong_type 1)" in printed.stdout
    counted = json.loads(run(*verb, path, "--on-error", "skip", "--json", ok=False).stdout)
    assert (counted["broken"], counted["broken_captions"]) == ({"empty_negative": 1, "wrong_type": 1}, {})
    if "--out" in verb:
        assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 30


def test_decisions_of_reviewers_count_a_broken_row_once(run: Run, tmp_path: Path) -> None:
    lines(tmp_path / "n.jsonl", *({**NEGATIVE, "id": str(n), "image": f"{n}.jpg"} for n in range(30)), 7)
    (tmp_path / "d.jsonl").write_text("")
    asked = ("refine", "n.jsonl", "--out", "o.jsonl", "--decisions", "d.jsonl", "--on-error", "skip", "--json")
    assert json.loads(run(*asked, ok=False).stdout)["broken"] == {"wrong_type": 1}


@pytest.mark.parametrize("verb", [("retrieve", "--index", "index", "--out", "h.jsonl"), ("index", "check", "index")])
def test_no_option_is_named_that_the_command_does_not_have(
    run: Run, index: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    lines(tmp_path / "q.jsonl", *MIXED)
    done = run(*verb, "--queries", "q.jsonl", ok=False)
    assert (done.returncode, "q.jsonl:2: wrong_type" in done.stderr) == (1, True)
    assert "--on-error" not in done.stderr


def test_pairs_do_not_replace_the_hits(run: Run, index: Path, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("a dog\n")
    asked = ("retrieve", "--index", index, "--queries", "q.txt", "--out", "h.parquet")
    done = run(*asked, "--pairs", "./h.parquet", ok=False)
    assert (done.returncode, "Use two files" in done.stderr) == (2, True)
    assert not (tmp_path / "h.parquet").exists()
    done = run(*asked, "--exclude-by", "foo", ok=False)
    assert (done.returncode, "--exclude-by: unknown field foo" in done.stderr) == (2, True)


def test_a_file_without_an_array_is_refused_without_advice_to_trust_it(run: Run, index: Path, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("a dog\n")
    lines(tmp_path / "labels.jsonl", {"kind": "a"})
    searched = ("retrieve", "--index", index, "--queries", "q.txt", "--out", "h.jsonl", "--query-vectors", "q.txt")
    for arguments in (searched, ("evaluate", "embeddings", "q.txt", "--labels", "labels.jsonl", "--by", "kind")):
        done = run(*arguments, ok=False)
        assert done.returncode == 1
        assert "Save it with numpy.save." in done.stderr
        assert "pickle" not in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"images": [{"id": 1}]}, "it has images, but no list annotations"),
        ({"annotations": [{"image_id": 1, "caption": "a dog"}]}, "it has annotations, but no list images"),
        ({"info": {}, "rows": []}, "an object with info, rows"),
        (5, "neither a list nor an object"),
    ],
)
def test_json_of_unknown_kind_is_described_by_its_keys(run: Run, tmp_path: Path, content: object, message: str) -> None:
    (tmp_path / "val.json").write_text(json.dumps(content))
    done = run("index", "build", "val.json", "--out", "index", ok=False)
    assert (done.returncode, message in done.stderr) == (1, True)


def test_a_list_in_place_of_the_object_of_sugarcrepe_is_read_and_its_broken_rows_are_counted(
    run: Run, tmp_path: Path
) -> None:
    good = {"filename": "1.jpg", "caption": "a dog on a bed", "negative_caption": "a cat on a bed"}
    (tmp_path / "replace_obj.json").write_text(
        json.dumps([good, None, "text", {**good, "caption": None}, {"caption": "a"}])
    )
    done = run("validate", "replace_obj.json", "--on-error", "skip", "--out", "out.jsonl")
    assert "wrong_type 2" in done.stderr + done.stdout
    (row,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (row["id"], row["image"], row["form"], row["target"]) == ("0", "1.jpg", "replace", "object")


def test_a_row_without_a_caption_is_named_by_its_line(run: Run, tmp_path: Path) -> None:
    lines(tmp_path / "rows.jsonl", {"caption": None, "negative": "a cat"})
    assert "no caption (caption is empty)" in run("validate", "rows.jsonl", "--out", "out.jsonl", ok=False).stderr


@pytest.mark.parametrize(
    "verb", [("review", "none.jsonl", "--apply", "none.jsonl", "--out", "out.json"),
             ("export", "none.jsonl", "--to", "llava", "--out", "out.json")]
)  # fmt: skip
def test_of_no_rows_nothing_is_written(run: Run, tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "none.jsonl").touch()
    (tmp_path / "out.json").write_text("earlier")
    done = run(*verb, ok=False)
    assert (done.returncode, "none.jsonl: no rows" in done.stderr) == (1, True)
    assert (tmp_path / "out.json").read_text() == "earlier"


@pytest.mark.parametrize("part", ["pairs/00001.parquet", "annotations", "shards/00001.tar"])
def test_a_build_that_lacks_files_is_not_taken_for_whole(run: Run, build: Path, part: str) -> None:
    assert json.loads(run("export", build, "--to", "sugarcrepe", "--out", "a.json", "--json").stdout)["rows"] == 2
    gone = build / part
    if gone.is_dir():
        shutil.rmtree(gone)
    else:
        gone.unlink()
    for verb in (("export", build, "--to", "sugarcrepe", "--out", "b.json"), ("inspect", build)):
        done = run(*verb, ok=False)
        assert (done.returncode, f"missing that manifest.json lists, first {part}" in done.stderr) == (1, True)


def test_shards_that_lack_some_are_not_taken_for_all(run: Run, build: Path, tmp_path: Path) -> None:
    shards = tmp_path / "alone"
    shutil.copytree(build / "shards", shards)
    (shards / "00001.tar").unlink()
    done = run("inspect", shards, ok=False)
    assert (done.returncode, "1 of 2 shards that sizes.json lists are missing" in done.stderr) == (1, True)
    assert run("inspect", f"{shards}/{{00000..00000}}.tar").returncode == 0


def test_verify_looks_at_the_shards_that_are_there(run: Run, build: Path) -> None:
    (build / "shards" / "00001.tar").unlink()
    (build / "shards" / "00000.tar").write_bytes(b"torn")
    done = run("verify", build / "shards", ok=False)
    assert done.returncode == 1
    assert "sizes.json does not list the shards of the folder" in done.stdout
    assert "00000.tar" in done.stdout


@pytest.mark.parametrize("manifest", [{}, {"files": 5, "stages": {}, "config": {}, "shards": {}, "environment": {}}])
def test_diff_reports_an_empty_manifest(run: Run, build: Path, manifest: object) -> None:
    (build / "manifest.json").write_text(json.dumps(manifest))
    done = run("diff", build, build, ok=False)
    assert (done.returncode, "manifest.json: `files` is missing" in done.stderr) == (1, True)


def test_scores_that_are_lists_are_rows_without_a_score(run: Run, tmp_path: Path) -> None:
    columns = {"s_caption": [[1.0], [0.5]], "s_negative": [0.5, 0.1], "type": [["a"], ["b"]]}
    pl.DataFrame(columns).write_parquet(tmp_path / "scores.parquet")
    done = run("evaluate", "scores", "scores.parquet", ok=False)
    assert "2 rows skipped: s_caption or s_negative" in done.stderr
    assert "internal error" not in done.stderr


def test_texts_of_a_build_are_exported_when_all_its_shards_are_removed(run: Run, build: Path) -> None:
    shutil.rmtree(build / "shards")
    assert json.loads(run("export", build, "--to", "sugarcrepe", "--out", "a.json", "--json").stdout)["rows"] == 2


def test_shards_of_other_tools_are_refused_with_the_way_to_read_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a dog")
    with tarfile.open(tmp_path / "laion.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(tmp_path / "a.txt", "a.txt")
    done = run("inspect", "laion.tar", ok=False)
    assert "sample a has no .json" in done.stderr
    assert "Use other shards as the input of a build." in done.stderr


def test_a_prompt_is_shown_on_the_first_pair_whatever_comes_behind(run: Run, tmp_path: Path) -> None:
    lines(tmp_path / "mixed.jsonl", *reversed(MIXED), *MIXED)
    done = run("prompts", "render", "swap-object", "--sample", "mixed.jsonl")
    assert 'Caption: "a dog on a bed"' in done.stdout


def test_the_working_folder_is_no_file_to_write_rows_to(run: Run, captions: Path) -> None:
    done = run("generate", "negatives", captions.name, "--out", ".", ok=False)
    assert done.returncode == 2
    assert ".: write these rows to a file that ends in .jsonl" in done.stderr


def test_a_folder_in_the_place_of_the_output_is_refused_before_the_work(
    run: Run, captions: Path, tmp_path: Path
) -> None:
    (tmp_path / "n.jsonl").mkdir()
    done = run("generate", "negatives", captions.name, "--out", "n.jsonl", ok=False)
    assert done.returncode == 1
    assert done.stderr == (
        "pairwright: n.jsonl: is a folder, not a file. Choose another --out, or remove the folder.\n"
    )
    assert not list((tmp_path / "n.jsonl").iterdir())


def test_a_file_in_the_place_of_a_build_is_named_as_one(run: Run, captions: Path, tmp_path: Path) -> None:
    run("init", "--input", captions.name, "--out", "build.yaml")
    done = run("build", "build.yaml", "--no-prefect", "--out", captions.name, ok=False)
    assert done.returncode == 1
    assert f"{captions.name}: is a file, not a folder. Choose another folder with --out." in done.stderr


def test_a_build_that_refinement_leaves_empty_says_so(run: Run, tmp_path: Path) -> None:
    lines(tmp_path / "one.jsonl", {"caption": "A fluffy cat is lying on a blue chair."})
    run("init", "--input", "one.jsonl", "--out", "one.yaml")
    config = (tmp_path / "one.yaml").read_text(encoding="utf-8")
    (tmp_path / "one.yaml").write_text(config.replace("workers: 0", "workers: 1"), encoding="utf-8")
    done = run("build", "one.yaml", "--no-prefect", "--quiet", ok=False)
    assert done.returncode == 3
    assert re.search(r"refine: 0 of \d negatives kept \(unscored \d\)\. Use more captions, or", done.stderr)


def test_training_reads_the_shards_of_a_build(build: Path) -> None:
    assert find_indexed_shards(str(build)) == find_indexed_shards(str(build / "shards"))


def test_a_build_in_the_place_of_a_dataset_is_named_with_its_shards(run: Run, build: Path) -> None:
    done = run("generate", "negatives", build.name, "--out", "out.jsonl", ok=False)
    assert done.returncode == 1
    assert f"It is a build: give its shards, {Path(build.name) / 'shards'}, or its config's input." in done.stderr
