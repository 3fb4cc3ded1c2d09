"""What `diff` promises: every row that differs is told once, and nothing else is."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pairwright.datasets.errors import StorageError
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.commands.build_diff import changed_rows, compare
from tests.flows.conftest import checked, settings

build = partial(build_with_prefect, prefect=False)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(corpus: Path) -> list[Row]:
    return [json.loads(line) for line in (corpus / "text" / "captions.jsonl").read_text().splitlines()[:48]]


@pytest.fixture(scope="module")
def make(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build rows into a folder of their own."""

    def made(rows: list[Row], **changes: Any) -> Path:
        folder = tmp_path_factory.mktemp("side")
        (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        given = {"path": str(folder / "in.jsonl")}
        data = settings(corpus, input=given, retrieve=None, refine=None, part_size=20, shards={"samples": 30})
        build(checked({**data, **changes}), folder / "build")
        return folder / "build"

    return made


@pytest.fixture(scope="module")
def before(make: Callable[..., Path], rows: list[Row]) -> Path:
    return make(rows)


def test_a_build_is_no_different_from_itself(before: Path) -> None:
    told = compare(before, before)
    assert told["same"]
    assert told["config"] == told["environment"] == []
    assert told["pairs"] == {"a": 48, "b": 48, "added": 0, "removed": 0, "changed": 0, "fields": {}}
    assert told["shards"]["same"] == told["shards"]["a"] == 2
    assert changed_rows(before, before).is_empty()


def test_added_removed_and_corrected_rows_are_distinguished(
    make: Callable[..., Path], before: Path, rows: list[Row]
) -> None:
    mended = {**rows[3], "caption": "a small red circle"}
    told_more = {**rows[7], "license": "CC-BY-4.0"}
    fresh = [{**rows[0], "key": f"fresh-{n}"} for n in range(3)]
    after = make([*rows[:3], mended, rows[4], *rows[6:7], told_more, *rows[8:], *fresh])
    told = compare(before, after)
    assert not told["same"]
    assert told["pairs"] == {
        "a": 48,
        "b": 50,
        "added": 3,
        "removed": 1,
        "changed": 2,
        "fields": {"caption": 1, "license": 1},
    }
    assert (told["chosen"]["added"], told["chosen"]["removed"]) == (4, 2)  # by key, which holds the caption
    pairs = {(change, a, b) for what, change, _, a, b, _ in changed_rows(before, after).iter_rows() if what == "pair"}
    assert ("removed", rows[5]["caption"], "") in pairs
    assert ("changed", rows[3]["caption"], "a small red circle") in pairs
    assert {change for change, _, _ in pairs} == {"added", "removed", "changed"}


def test_the_counts_of_every_type_of_text_add_up(make: Callable[..., Path], before: Path, rows: list[Row]) -> None:
    after = make(rows[10:], positives=None)
    told = compare(before, after)
    for name, counts in told["annotations"].items():
        assert counts["b"] == counts["a"] + counts["added"] - counts["removed"], name
    positives = {name: counts for name, counts in told["annotations"].items() if name.startswith("hard positive")}
    assert positives
    assert all(counts["b"] == 0 for counts in positives.values())
    listed = changed_rows(before, after)
    assert listed.height == sum(
        counts[change]
        for counts in (told["pairs"], *told["annotations"].values())
        for change in ("added", "removed", "changed")
    )
    assert "a" in told["stages"]["positives"]
    assert "b" not in told["stages"]["positives"]
    assert "positives" in {each["name"].partition(".")[0] for each in told["config"]}


def test_a_text_whose_scores_alone_changed_says_so(before: Path, tmp_path: Path) -> None:
    """Each new edit model gives other scores, so that nearly all texts of a nightly build counted as changed."""
    after = tmp_path / "after"
    shutil.copytree(before, after)
    manifest = json.loads((after / "manifest.json").read_text())
    table = after / (name := next(each for each in manifest["files"] if each.startswith("annotations/negatives-")))
    frame = ANNOTATIONS.read_frame(table)
    ANNOTATIONS.write_frame(frame.with_columns(scores=pl.lit([{"name": "fit", "value": 0.5}])), table)
    manifest["files"][name]["sha256"] = "another"
    (after / "manifest.json").write_text(json.dumps(manifest))
    types = compare(before, after)["annotations"].values()
    assert sum(counts["fields"].get("scores", 0) for counts in types) == frame.height
    assert set(changed_rows(before, after)["fields"]) == {"scores"}


def test_another_size_of_parts_and_shards_changes_no_row(
    make: Callable[..., Path], before: Path, rows: list[Row]
) -> None:
    told = compare(before, make(rows, part_size=33, shards={"samples": 20}))
    assert told["pairs"]["added"] == told["pairs"]["removed"] == told["pairs"]["changed"] == 0
    assert all(counts["a"] == counts["b"] for counts in told["annotations"].values())
    assert (told["shards"]["changed"], told["shards"]["added"]) == (2, 1)
    assert not told["same"]
    assert [each["name"] for each in told["config"]] == ["shards.samples", "part_size"]


def test_a_folder_that_is_no_build_is_refused(before: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="not a build directory"):
        compare(before, tmp_path)


def test_an_unfinished_build_is_refused(before: Path, tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    with pytest.raises(StorageError, match="unfinished build"):
        compare(before, tmp_path)


def test_a_build_that_lost_a_file_is_refused_by_its_name(
    make: Callable[..., Path], before: Path, rows: list[Row]
) -> None:
    after = make(rows[:40])
    (after / "pairs" / "00001.parquet").unlink()
    with pytest.raises(StorageError, match=r"pairs/00001\.parquet"):
        compare(before, after)
