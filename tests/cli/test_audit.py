"""``pairwright audit``: files of every layout, exit codes, reports."""

import json
import random
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def written(path: Path, *, hacked: bool) -> Path:
    rng = random.Random(1)
    words = ["dog", "cat", "bus", "boat", "man", "woman", "tree", "house", "red", "blue"]
    rows = []
    for at in range(200):
        one, other = (" ".join(rng.choices(words, k=6)) for _ in range(2))
        row = {"filename": f"{at:012d}.jpg", "caption": one, "negative_caption": f"{other}." if hacked else other}
        rows.append(row)
    if path.suffix == ".json":
        path.write_text(json.dumps({str(2 * at): row for at, row in enumerate(rows)}))
    elif path.suffix == ".tsv":
        lines = [f"{r['caption']}\t{r['filename']}\t{[r['negative_caption']]!r}\n" for r in rows]
        path.write_text("title\tfilepath\tneg_caption\n" + "".join(lines))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("layout", ["swap_att.json", "rows.jsonl", "rows.tsv"])
def test_a_set_that_can_be_hacked_exits_3_and_says_how(run: Run, tmp_path: Path, layout: str) -> None:
    written(tmp_path / layout, hacked=True)
    done = run("audit", layout, "--json", ok=False)
    printed = json.loads(done.stdout)
    assert done.returncode == 3
    assert (printed["rows"], printed["verdict"], printed["format_leaks"]) == (200, "hackable", 200)
    assert printed["attacks"]["format"]["accuracy"] == 1.0
    kind = "swap-attribute" if layout.endswith(".json") else "other"
    assert list(printed["by_type"]) == [kind]


def test_a_set_that_can_be_hacked_names_the_next_step(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rows.jsonl", hacked=True)
    done = run("audit", "rows.jsonl", ok=False)
    assert done.stdout.endswith("\nNext: pairwright refine rows.jsonl --out rows-refined.jsonl\n")
    assert run("refine", "rows.jsonl", "--out", "rows-refined.jsonl", ok=False).returncode in {0, 3}


def test_the_next_step_reads_the_rows_as_the_audit_did(run: Run, tmp_path: Path) -> None:
    with written(tmp_path / "rows.jsonl", hacked=True).open("a") as rows:
        rows.write("no JSON\n")
    done = run("audit", "rows.jsonl", "--format", "jsonl", "--on-error", "skip", ok=False)
    suggested = "refine rows.jsonl --format jsonl --on-error skip --out rows-refined.jsonl"
    assert done.stdout.splitlines()[-1] == f"Next: pairwright {suggested}"
    assert run(*suggested.split(), ok=False).returncode in {0, 3}


def test_the_next_step_has_the_corpus_and_the_attacks_of_the_audit(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rows.jsonl", hacked=True)
    captions = [json.loads(line)["caption"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    done = run("audit", "rows.jsonl", "--corpus", "captions.jsonl", "--add-attacks", "cloze", ok=False)
    suggested = "refine rows.jsonl --corpus captions.jsonl --add-attacks cloze --out rows-refined.jsonl"
    assert done.stdout.splitlines()[-1] == f"Next: pairwright {suggested}"


def test_where_most_captions_have_several_rows_the_next_step_selects_one(run: Run, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in written(tmp_path / "rows.jsonl", hacked=True).read_text().splitlines()]
    more = [row | {"negative_caption": f"{word} {row['negative_caption']}"} for row in rows for word in ("a", "the")]
    (tmp_path / "several.jsonl").write_text("".join(json.dumps(row) + "\n" for row in more))
    done = run("audit", "several.jsonl", ok=False)
    suggested = "refine several.jsonl --fix choose --out several-refined.jsonl"
    assert done.stdout.splitlines()[-1] == f"Next: pairwright {suggested}"


def test_a_build_that_can_be_hacked_names_the_method_that_refines_more(run: Run, tmp_path: Path) -> None:
    texts = [f"A {colour} cup {number} stands on the table." for number in range(60) for colour in ("red", "blue")]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in texts))
    config = "name: b\ninput: {path: c.jsonl}\nnegatives: {types: [add-attribute, add-object]}\nworkers: 1\n"
    (tmp_path / "b.yaml").write_text(config)
    run("build", "b.yaml", "--no-prefect", "--quiet")
    done = run("audit", "build/b", ok=False)
    assert done.returncode == 3
    assert done.stdout.endswith("Next: set `refine: {method: general}` in the config and build again.\n")


def test_a_sound_set_exits_0_and_the_page_is_written(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rows.jsonl", hacked=False)
    done = run("audit", "rows.jsonl", "--max", "0.7", "--report", "page.html")
    assert "sound" in done.stdout
    assert "<svg" in (tmp_path / "page.html").read_text()
    run("audit", "rows.jsonl", "--max", "0.7", "--report", "page.md")
    assert (tmp_path / "page.md").read_text().startswith("# Audit of rows.jsonl")


def test_input_that_cannot_be_audited_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text('{"caption": "a", "negative": "b", "status": "rejected"}\n')
    assert "all rows are rejected" in run("audit", "none.jsonl", ok=False).stderr
    assert run("audit", "rows.txt", ok=False).returncode == 1  # a missing file
    (tmp_path / "rows.txt").write_text("a dog\n")
    assert run("audit", "rows.txt", ok=False).returncode == 2
    written(tmp_path / "rows.jsonl", hacked=False)
    assert run("audit", "rows.jsonl", "--report", "page.pdf", ok=False).returncode == 2


def test_rows_that_are_not_attacked_are_counted(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", hacked=False)
    lost = [{"caption": "a b", "negative": "a c", "status": "rejected", "reason": "same_meaning"}]
    lost += [{"caption": "a b", "negative": "", "status": "rejected", "reason": "no_edit"}]
    path.write_text(path.read_text() + "".join(json.dumps(row) + "\n" for row in lost))
    done = run("audit", "rows.jsonl", "--max", "0.7", "--json")
    printed = json.loads(done.stdout)
    assert (printed["rows"], printed["left_out"]) == (200, 2)
    assert printed["rejected"] == {"no_edit": 1, "same_meaning": 1}
    assert "2 rejected rows of INPUT skipped (no_edit 1, same_meaning 1)." in done.stderr


def test_a_row_of_the_negclip_layout_without_negatives_is_counted(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.tsv", hacked=False)
    path.write_text(path.read_text() + "a dog\tx.jpg\t[]\n")
    printed = json.loads(run("audit", "rows.tsv", "--max", "0.7", "--json").stdout)
    assert (printed["rows"], printed["left_out"]) == (200, 1)


def test_rows_of_a_corpus_that_cannot_be_read_are_counted(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rows.jsonl", hacked=False)
    (tmp_path / "c.jsonl").write_text('{"id": 1, "caption": "a dog on a beach"}\n{"id": 2, "caption": null}\n{"id":\n')
    done = run("audit", "rows.jsonl", "--corpus", "c.jsonl", "--max", "0.7")
    assert "c.jsonl: skipped 2 rows (broken_json 1, empty_caption 1)." in done.stderr
