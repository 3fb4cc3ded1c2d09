"""``pairwright mix``."""

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_a_mixture_is_printed_as_a_table_of_eighty_columns_and_written(run: Run, tmp_path: Path) -> None:
    for name in ("a_source_of_a_very_long_name", "b"):
        rows = [{"question": f"What is {name} {number}?", "answer": "A row."} for number in range(1_500)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "m.yaml").write_text(
        "sources:\n- {path: a_source_of_a_very_long_name.jsonl, ratio: 2}\n- {path: b.jsonl, ratio: 1}\n"
    )
    done = run("mix", "m.yaml", "--out", "out.json")
    head, *lines = done.stdout.splitlines()
    assert head == "2,250 rows of 2 sources"
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["source", "found", "asked", "taken", "share", "duplicates", "turns", "words"]
    assert lines[2].split() == ["b", "1,500", "750", "750", "33.3%", "0", "750", "2.0"]
    assert lines[-1] == "Written to out.json; report: out.mixture.json"
    half = json.loads(run("mix", "m.yaml", "--keep", "0.5", "--seed", "1", "--out", "half.jsonl", "--json").stdout)
    assert half["rows"] == len((tmp_path / "half.jsonl").read_text().splitlines()) == 1_125
    run("mix", "m.yaml", "--dry-run", "--out", "dry.json")
    assert not (tmp_path / "dry.json").exists()


def test_a_dry_run_needs_no_output_and_a_mixture_prints_its_paths(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "Q", "answer": "A"}')
    (tmp_path / "m.yaml").write_text("sources:\n- {path: a.jsonl}\n")
    before = set(tmp_path.iterdir())
    done = run("mix", "m.yaml", "--dry-run")
    assert done.stdout.splitlines()[0] == "1 row of 1 source"
    assert done.stdout.splitlines()[2].split()[:4] == ["a", "1", "1", "1"]
    assert set(tmp_path.iterdir()) == before
    (tmp_path / "deep").mkdir()
    last = run("mix", "m.yaml", "--out", "deep/mixed.json").stdout.splitlines()[-1]
    assert last == "Written to deep/mixed.json; report: deep/mixed.mixture.json"
    assert (tmp_path / "deep" / "mixed.mixture.json").is_file()
    assert json.loads(run("mix", "m.yaml", "--dry-run", "--json").stdout)["report"] == ""


def test_wrong_calls_end_with_code_2_and_a_line_that_helps(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("sources:\n- {path: a.jsonl, count: 5}\n")
    (tmp_path / "a.jsonl").write_text('{"question": "Q", "answer": "A"}')
    done = run("mix", "m.yaml", "--out", "out.json", ok=False)
    assert (done.returncode, "5 rows requested, 1 available" in done.stderr) == (2, True)
    done = run("mix", "m.yaml", "--out", "out.txt", ok=False)
    assert (done.returncode, "ends in .json, .jsonl, .parquet, nothing (a folder)" in done.stderr) == (2, True)


def test_a_mixture_in_shards_says_what_shows_it(run: Run, tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "Who is it?"}, {"from": "gpt", "value": "A dog."}]
    (tmp_path / "a.json").write_text(json.dumps([{"id": "1", "conversations": turns}]))
    (tmp_path / "m.yaml").write_text("sources: [{path: a.json}]")
    assert run("mix", "m.yaml", "--out", "mixed").stdout.splitlines()[-1] == "Next: pairwright inspect mixed"
