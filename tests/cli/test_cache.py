"""``pairwright cache``."""

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Reply, Usage
from tests.cli.conftest import Run

YES = Reply("yes", "stop", "", Usage(10, 2), "small-2", raw=b'{"answer": "\xc3\xa9"}')


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Three answers of one model and two of another."""
    path = tmp_path / "llm-cache.sqlite"
    with Cache.open(path) as cache:
        for number in range(5):
            reply = replace(YES, text=f"answer {number} \u2028 é")
            cache.put(f"{number:032x}", reply, asked="small" if number < 3 else "large", endpoint="http://a:80")
    return path


def printed(run: Run, *arguments: object) -> Any:
    return json.loads(run("cache", *arguments, "--json").stdout)


def test_info_counts_by_model(run: Run, cache: Path) -> None:
    found = printed(run, "info", cache)
    assert {name: found[name] for name in ("answers", "prompt_tokens", "completion_tokens")} == {
        "answers": 5,
        "prompt_tokens": 50,
        "completion_tokens": 10,
    }
    assert [(share["model"], share["answers"]) for share in found["models"]] == [("large", 2), ("small", 3)]
    assert found["file_bytes"] > found["bytes"] > 5 * len(YES.raw)
    assert all(abs(share["first"] - time.time()) < 3600 for share in found["models"])
    assert "small  http://a:80" in run("cache", "info", cache.parent).stdout


def test_a_build_directory_names_the_cache_that_its_config_does(run: Run, cache: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "build.yaml").write_text(
        json.dumps({"name": "b", "input": {"path": "in.jsonl"}, "llm": {"model": "m", "cache": "../llm-cache.sqlite"}})
    )
    assert cache.parent == tmp_path
    assert printed(run, "info", build)["answers"] == 5


def test_info_of_an_empty_cache_is_a_total_of_nothing(run: Run, tmp_path: Path) -> None:
    Cache.open(tmp_path / "empty.sqlite").close()
    assert "0 answers" in run("cache", "info", "empty.sqlite").stdout


def test_an_export_comes_back_byte_for_byte(run: Run, cache: Path, tmp_path: Path) -> None:
    assert printed(run, "export", cache, "--out", "a.jsonl")["answers"] == 5
    assert printed(run, "import", "other.sqlite", "a.jsonl") == {"added": 5, "known": 0}
    assert printed(run, "import", "other.sqlite", "a.jsonl") == {"added": 0, "known": 5}
    run("cache", "export", "other.sqlite", "--out", "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    with Cache.open(cache) as one, Cache.open(tmp_path / "other.sqlite") as other:
        for number in range(5):
            first, second = one.get(f"{number:032x}"), other.get(f"{number:032x}")
            assert first is not None
            assert second is not None
            assert (first, first.raw) == (second, second.raw)


def test_an_export_starts_with_its_format_and_is_sorted(run: Run, cache: Path, tmp_path: Path) -> None:
    run("cache", "export", cache, "--out", "a.jsonl")
    head, *rows = map(json.loads, (tmp_path / "a.jsonl").read_text().removesuffix("\n").split("\n"))
    assert head == {"pairwright_cache": 1}
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert json.loads(rows[0]["raw"]) == {"answer": "é"}


GOOD = {
    "key": "0" * 32, "endpoint": "", "asked": "", "model": "", "answered": 1, "finish_reason": "", "refusal": "",
    "prompt_tokens": 1, "completion_tokens": 1, "cached_tokens": 0, "text": "", "raw": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{}"], "a.jsonl:1: not an export"),
        ([""], "a.jsonl:1: not a JSON object"),
        ([{"pairwright_cache": 99}], "newer pairwright"),
        ([{"pairwright_cache": 1}, GOOD, "[1]"], "a.jsonl:3: not a JSON object"),
        ([{"pairwright_cache": 1}, {**GOOD, "text": 7}], "a.jsonl:2: text is missing or of another type"),
        ([{"pairwright_cache": 1}, {**GOOD, "answered": 2**60}], "a.jsonl:2: answered 1152921504606846976 is out of"),
        ([{"pairwright_cache": 1}, {**GOOD, "key": "xyz"}], "a.jsonl:2: key 'xyz' is not 32 hex digits"),
    ],
)
def test_a_broken_export_is_named_by_line(run: Run, tmp_path: Path, lines: list[object], message: str) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (tmp_path / "a.jsonl").write_text("\n".join(texts) + "\n")
    done = run("cache", "import", "c.sqlite", "a.jsonl", ok=False)
    assert done.returncode in {1, 2}
    assert message in done.stderr


def test_prune_drops_a_model(run: Run, cache: Path) -> None:
    assert printed(run, "prune", cache, "--model", "small", "--dry-run")["dropped"] == 3
    assert printed(run, "info", cache)["answers"] == 5
    assert printed(run, "prune", cache, "--model", "small")["kept"] == 2
    assert [share["model"] for share in printed(run, "info", cache)["models"]] == ["large"]


def test_prune_drops_what_is_older_than_an_age(run: Run, tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    rows = [{**GOOD, "key": f"{days:032x}", "answered": now - days * 86_400_000} for days in range(10)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [{"pairwright_cache": 1}, *rows])))
    run("cache", "import", "c.sqlite", "a.jsonl")
    assert printed(run, "prune", "c.sqlite", "--older-than", "84h")["dropped"] == 6
    with Cache.open(tmp_path / "c.sqlite") as cache:
        assert set(cache.get_many(f"{days:032x}" for days in range(10))) == {f"{days:032x}" for days in range(4)}


def test_prune_to_a_size_drops_the_oldest_and_gives_the_room_back(run: Run, tmp_path: Path) -> None:
    rows = [{**GOOD, "key": f"{n:032x}", "answered": 1000 + n, "raw": "x" * 10_000} for n in range(300)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [{"pairwright_cache": 1}, *rows])))
    run("cache", "import", "c.sqlite", "a.jsonl")
    before = printed(run, "info", "c.sqlite")["file_bytes"]
    assert printed(run, "prune", "c.sqlite", "--max-size", "1MB")["kept"] == 100
    assert printed(run, "info", "c.sqlite")["file_bytes"] < before / 2
    with Cache.open(tmp_path / "c.sqlite") as cache:
        assert set(cache.get_many(f"{n:032x}" for n in range(300))) == {f"{n:032x}" for n in range(200, 300)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prune", "c.sqlite"], "requires --older-than, --model or --max-size"),
        (["prune", "c.sqlite", "--older-than", "soon"], "90d, 12h or 30m"),
        (["prune", "c.sqlite", "--max-size", "2XB"], "500MB or 2GB"),
    ],
)
def test_wrong_usage_exits_2_with_what_to_write(run: Run, arguments: list[str], message: str) -> None:
    done = run("cache", *arguments, ok=False)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("verb", [["info"], ["export", "--out", "a.jsonl"], ["prune", "--model", "small"]])
def test_a_cache_that_is_not_there_is_an_error_and_none_is_made(run: Run, tmp_path: Path, verb: list[str]) -> None:
    done = run("cache", verb[0], "none.sqlite", *verb[1:], ok=False)
    assert done.returncode == 1
    assert "there is no cache" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", [["info"], ["export", "--out", "a.jsonl"], ["prune", "--model", "small"]])
@pytest.mark.parametrize("tables", [False, True])
def test_a_file_that_is_no_cache_is_refused_and_unchanged(
    run: Run, tmp_path: Path, verb: list[str], *, tables: bool
) -> None:
    path = tmp_path / "llm-cache.sqlite"
    path.touch()
    if tables:
        with closing(sqlite3.connect(path)) as database:
            database.executescript("CREATE TABLE a (b); DROP TABLE a")
    before = path.read_bytes()
    done = run("cache", verb[0], path.name, *verb[1:], ok=False)
    assert done.returncode == 1
    assert "not a cache of answers" in done.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
