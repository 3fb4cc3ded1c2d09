"""What an incremental build promises: only what is new is made, what stands is not touched, and nothing is half there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.cli.output.build_summary import build_lines
from pairwright.datasets import version_switch
from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.redaction import redact
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.increments import mixed_generators, prepare_increment
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.stages.words import STATISTICS
from pairwright.flows.state.build_settings import refuse_changed_settings
from pairwright.flows.state.build_versions import IncrementBase
from tests.flows.conftest import checked, settings
from tests.flows.test_build import Heard

build = partial(build_with_prefect, prefect=False)
OLD, ALL = 55, 80
SLOW = pytest.mark.slow
MADE = ("pairs", "annotations", "rejected", "candidates", "tokens", "shards", "frozen", "increments", "audit.json")


def rows_of(corpus: Path) -> list[str]:
    return (corpus / "large" / "captions.jsonl").read_text().splitlines(keepends=True)


def configured(folder: Path, corpus: Path, rows: list[str], **changes: Any) -> BuildConfig:
    """Write the rows as the input in ``folder``, and return a config of it that is incremental."""
    folder.mkdir(exist_ok=True)
    (folder / "in.jsonl").write_text("".join(rows))
    given = settings(
        corpus, input={"path": str(folder / "in.jsonl"), "source": "scenes"}, retrieve=None, incremental=True
    )
    return checked({**given, "part_size": 25, **changes})


@pytest.fixture(scope="module")
def first(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a full build of the first rows."""
    folder = tmp_path_factory.mktemp("first")
    build(configured(folder, corpus, rows_of(corpus)[:OLD]), folder / "build")
    return folder


@pytest.fixture(scope="module")
def both(corpus: Path, first: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with an increment of the rest."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(first, folder, dirs_exist_ok=True)
    build(configured(folder, corpus, rows_of(corpus)), folder / "build")
    return folder


@pytest.fixture(scope="module")
def unplaced(corpus: Path, first: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[BuildConfig, Path]:
    """A build whose increment is made and has not begun to take its place, and its config."""
    folder = tmp_path_factory.mktemp("unplaced")
    shutil.copytree(first, folder, dirs_exist_ok=True)
    config = configured(folder, corpus, rows_of(corpus))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(version_switch, "finish_switch", lambda _root: None)
        build(config, folder / "build")
    return config, folder / "build"


@pytest.fixture
def copied(first: Path, tmp_path: Path) -> Path:
    shutil.copytree(first, tmp_path / "copy")
    return tmp_path / "copy"


def contents(out: Path) -> dict[str, bytes]:
    files = [path for name in MADE for path in ([out / name] if (out / name).is_file() else (out / name).rglob("*"))]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(files) if path.is_file()}


def manifest_of(out: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return manifest


def captions_in(out: Path) -> list[str]:
    return [sample.pair.caption for shard in find_shards(out / "shards") for sample in read_shard(shard)]


def test_new_pairs_come_in_shards_of_their_own_behind_those_that_stand(corpus: Path, first: Path, both: Path) -> None:
    before, after = contents(first / "build"), contents(both / "build")
    changed = {name for name, data in before.items() if after[name] != data}
    assert changed == {"shards/sizes.json", "shards/SHA256SUMS"}
    assert captions_in(both / "build") == [json.loads(row)["caption"] for row in rows_of(corpus)]
    shards = [path.name for path in find_shards(both / "build" / "shards")]
    assert shards == [f"{number:05d}.tar" for number in range(5)]  # 20, 20, 15 and then 20, 5
    assert verify(both / "build") == []


def test_the_keys_of_the_full_build_stay_beside_those_of_the_increment(first: Path, both: Path) -> None:
    before, after, added = (
        {path.name: path.read_bytes() for path in (folder / "scan").iterdir()}
        for folder in (first / "build", both / "build", both / "build" / "increments" / "0002")
    )
    assert before == after
    assert added.keys() == before.keys()
    assert added != before


@pytest.mark.parametrize("names", [STATISTICS, STATISTICS[:1]])
def test_new_pairs_are_edited_with_the_statistics_and_the_edit_model_of_the_last_full_build(
    corpus: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """A pool that is too small has no edit model."""
    for name in names:
        write_text(tmp_path / "build" / name, name)
    base = IncrementBase(tmp_path / "build", {"files": {name: {} for name in names}})
    prepare_increment(configured(tmp_path / "config", corpus, rows_of(corpus)), base, tmp_path / "next")
    made = {path.relative_to(tmp_path / "next").as_posix() for path in (tmp_path / "next").glob("*/*")}
    assert made == set(names)
    assert all((tmp_path / "next" / name).read_text() == name for name in names)


def test_versions_are_kept_and_the_manifest_tells_of_all(first: Path, both: Path) -> None:
    kept = [json.loads(path.read_text()) for path in sorted((both / "build" / "manifests").iterdir())]
    assert kept == [manifest_of(first / "build"), manifest_of(both / "build")]
    manifest = kept[-1]
    assert (manifest["build"]["kind"], manifest["build"]["number"], manifest["build"]["full"]) == ("incremental", 2, 1)
    (told,) = manifest["increments"]
    assert told["pairs"] == {"new": ALL - OLD, "known": OLD, "changed": 0, "removed": 0}
    assert told["shards"] == ["00003.tar", "00004.tar"]
    for stage in manifest["stages"].values():
        assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values())
    assert manifest["contents"]["samples"] == manifest["stages"]["shards"]["kept"] == ALL
    assert manifest["contents"]["texts"]["hard_negatives"] == manifest["stages"]["refine"]["kept"]
    for kind, counts in manifest["types"].items():
        assert counts["made"] == counts["kept"] + sum(counts["rejected"].values()), kind


def test_an_increment_names_generators_of_which_there_are_several_versions(corpus: Path, copied: Path) -> None:
    for path in (copied / "build" / "manifest.json", *(copied / "build" / "manifests").iterdir()):
        manifest = json.loads(path.read_text())
        for maker in manifest["contents"]["makers"]:
            maker["version"] = 0  # of older rules
        path.write_text(json.dumps(manifest))
    heard = Heard()
    made = build(configured(copied, corpus, rows_of(corpus)), copied / "build", heard)
    name, newer = next(
        (maker["generator"], maker["version"]) for maker in made["contents"]["makers"] if maker["version"]
    )
    assert "; texts by different versions of a generator (" in heard.notes[-1]
    assert f"{name} 0 and {newer}" in heard.notes[-1]
    assert heard.notes[-1].endswith("): --full makes all by the newest.")
    assert any(f"{name} 0 and {newer}" in line for line in build_lines(copied / "build", made))


def test_an_increment_of_the_same_rules_names_no_versions(both: Path) -> None:
    assert not mixed_generators(manifest_of(both / "build")["contents"]["makers"])


def test_the_union_is_audited_and_card_and_report_tell_it(both: Path) -> None:
    manifest = manifest_of(both / "build")
    assert manifest["audit"]["rows"] == manifest["stages"]["refine"]["kept"]
    for page in ("README.md", "report.html"):
        text = (both / "build" / page).read_text()
        assert f"{manifest['audit']['attacks']['letters']['accuracy']:.1%}" in text
        assert "2026" not in text or manifest["increments"][0]["created"] in text


def test_refined_by_the_reference_the_frozen_scorers_stand_at_a_coins_toss_on_what_is_new(both: Path) -> None:
    (told,) = manifest_of(both / "build")["increments"]
    refined = told["stages"]["refine"]
    assert refined["kept"] > 0
    assert all(attack["after"] == 0.5 for attack in refined["facts"]["attacks"].values())


def test_where_nothing_is_new_there_is_no_new_version(corpus: Path, both: Path, tmp_path: Path) -> None:
    shutil.copytree(both / "build", tmp_path / "build")
    before, heard = contents(tmp_path / "build"), Heard()
    config = configured(both, corpus, rows_of(corpus))
    os.utime(both / "in.jsonl", ns=(1, 1))
    assert build(config, tmp_path / "build", heard)["build"]["number"] == 2
    assert heard.ran == {"pairs": 4}  # what is known, the input, its numbers, what is new
    build(config, tmp_path / "build")
    assert contents(tmp_path / "build") == before
    assert not (tmp_path / "build" / ".next").exists()


def test_an_input_that_was_not_touched_is_not_even_read(corpus: Path, copied: Path) -> None:
    build(configured(copied, corpus, rows_of(corpus)), copied / "build")
    heard = Heard()
    build(checked({**yaml.safe_load((copied / "build" / "build.yaml").read_text())}), copied / "build", heard)
    assert heard.ran == {}


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(corpus: Path, both: Path, copied: Path) -> None:
    build(configured(copied, corpus, rows_of(corpus), workers=2), copied / "build")
    assert contents(copied / "build") == contents(both / "build")


class StopsAt(Heard):
    """A progress that breaks the build off as a stage begins."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage = stage

    def begin(self, stage: str, jobs: int) -> None:  # noqa: D102 - as the protocol says
        super().begin(stage, jobs)
        if stage == self.stage:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "stage", [pytest.param("tag", marks=SLOW), "refine", pytest.param("sizes", marks=SLOW), "audit"]
)
def test_broken_off_nothing_of_it_shows_and_started_again_it_gives_the_same_bytes(
    corpus: Path, first: Path, both: Path, copied: Path, stage: str
) -> None:
    config, out = configured(copied, corpus, rows_of(corpus)), copied / "build"
    with pytest.raises(KeyboardInterrupt):
        build(config, out, StopsAt(stage))
    shown = {name: data for name, data in contents(out).items() if not name.startswith("frozen/")}
    assert shown == contents(first / "build")
    assert verify(out) == []
    build(config, out)
    assert contents(out) == contents(both / "build")
    assert verify(out) == []


def test_a_stopped_increment_is_not_dropped_by_a_build_without_the_option(corpus: Path, copied: Path) -> None:
    config, out = configured(copied, corpus, rows_of(corpus)[OLD:]), copied / "build"
    with pytest.raises(KeyboardInterrupt):
        build(config, out, StopsAt("tag"))
    given = config.model_copy(update={"incremental": False}).model_dump(mode="json", exclude_unset=True)
    (copied / "build.yaml").write_text(yaml.safe_dump(given))
    command = ["build", str(copied / "build.yaml"), "--out", str(out), "--no-prefect"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, UsageError)
    assert "an increment is unfinished. Add --incremental to finish it, or --full" in str(refused.exception)
    assert "Building" not in refused.output
    assert (out / ".next" / "kind").read_text() == "increment"
    assert CliRunner().invoke(app, [*command, "--incremental"]).exit_code == 0
    assert len(captions_in(out)) == ALL


def test_a_full_build_after_increments_says_that_it_keeps_none(corpus: Path, both: Path, tmp_path: Path) -> None:
    shutil.copytree(both, tmp_path / "copy")
    heard = Heard()
    folder = tmp_path / "copy"
    build(configured(folder, corpus, rows_of(corpus)[:OLD], incremental=False), folder / "build", heard)
    (line,) = [note for note in heard.notes if note.startswith("Version 2 (80 samples) stays in place")]
    assert "increments are not kept (--incremental adds to them)" in line


@pytest.mark.parametrize("done", [0, 1, 20, -1])
def test_killed_while_it_takes_its_place_it_is_whole_after_the_next_start(
    both: Path, unplaced: tuple[BuildConfig, Path], tmp_path: Path, done: int
) -> None:
    (config, made), out = unplaced, tmp_path / "build"
    shutil.copytree(made, out)
    moves = json.loads((out / ".next" / "journal.json").read_text())
    if done:
        (out / "manifest.json").unlink()
    for source, name in moves[:done]:  # as far as it came
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / ".next" / source).replace(out / name)
    heard = Heard()
    build(config, out, heard)
    assert heard.ran == {}
    assert contents(out) == contents(both / "build")
    assert verify(out) == []
    assert not (out / ".next").exists()


def test_changed_and_removed_pairs_are_counted_and_kept_until_a_full_build(
    corpus: Path, copied: Path, tmp_path: Path
) -> None:
    rows = rows_of(corpus)
    renamed, gone = json.loads(rows[3]), 5
    renamed["caption"] = "a yellow star"
    other = json.loads(rows[4])
    other["captions"] = ["a thing"]
    added = 20
    now = [*rows[:3], json.dumps(renamed) + "\n", json.dumps(other) + "\n", *rows[gone + 1 : OLD + added]]
    config, out = configured(copied, corpus, now), copied / "build"
    before = {path.name: path.read_bytes() for path in find_shards(out / "shards")}
    told = build(config, out)["increments"][0]["pairs"]
    assert told == {"new": added, "known": OLD - 3, "changed": 2, "removed": 1}
    assert all((out / "shards" / name).read_bytes() == data for name, data in before.items())
    whole = config.model_copy(update={"incremental": False})
    assert build(whole, out)["build"]["kind"] == "full"
    assert verify(out) == []
    build(whole, tmp_path / "fresh")
    assert contents(out) == contents(tmp_path / "fresh")
    assert manifest_of(out)["build"]["number"] == 3


def test_known_rows_in_an_input_of_another_name_are_not_new(tmp_path: Path) -> None:
    """The name of the input was hashed into keys, so that next week's folder gave every known row a second time.

    Another rank among the hits of `retrieve` is no change of a pair.
    """
    rows = [{"image": f"{n}.jpg", "caption": f"a dog on bed {n}"} for n in range(30)]
    given = {"negatives": {}, "shards": {"images": False}, "incremental": True, "workers": 1}
    for name, some in (("monday", rows[:20]), ("sunday", rows[10:])):
        hits = ({**row, "meta": {"retrieved": {"ranks": [rank]}}} for rank, row in enumerate(some))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in hits))
        source = {"path": str(tmp_path / f"{name}.jsonl"), "verify_images": "off"}
        build(checked({**given, "name": "t", "input": source}), tmp_path / "build")
    frame = pl.read_parquet(tmp_path / "build" / "pairs" / "*.parquet")
    assert frame["image"].n_unique() == frame.height == 30
    assert set(frame["source"]) == {"monday"}
    increment = json.loads((tmp_path / "build" / "manifest.json").read_text())["increments"][-1]["pairs"]
    assert (increment["new"], increment["removed"], increment["changed"]) == (10, 10, 0)


def test_a_copy_of_hard_links_stays_the_version_that_it_is(corpus: Path, copied: Path) -> None:
    """Files are replaced and never changed in place, so `cp -al` keeps a version to compare with or to go back to."""
    kept, before = copied / "kept", contents(copied / "build")
    shutil.copytree(copied / "build", kept, copy_function=os.link)
    build(configured(copied, corpus, rows_of(corpus)), copied / "build")
    build(configured(copied, corpus, rows_of(corpus)[1:], incremental=False), copied / "build")
    assert (contents(kept), verify(kept)) == (before, [])
    assert contents(copied / "build") != before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"image": "2024/{n}.jpg"}, {"image": "all/{n}.jpg"}),
        ({"image": "{n}.jpg", "id": "row-{n}"}, {"image": "{n}.jpg", "id": "line-{n}"}),
    ],
    ids=["folder", "ids"],
)
def test_images_in_a_renamed_folder_and_rows_with_new_ids_are_not_added_again(
    tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    """Without ids the image's path is part of the key, so that a renamed folder gave every row a second time."""

    def built(columns: dict[str, str], count: int) -> dict[str, Any]:
        names = [{name: text.format(n=n) for name, text in columns.items()} for n in range(count)]
        rows = [json.dumps({**each, "caption": f"a dog on bed {n % 7}"}) for n, each in enumerate(names)]
        (tmp_path / "in.jsonl").write_text("\n".join(rows))
        given = {"path": str(tmp_path / "in.jsonl"), "verify_images": "off"}
        shaping = {"shards": {"images": False}, "incremental": True, "workers": 1}
        return build(checked({"name": "t", "input": given, **shaping}), tmp_path / "build")

    built(before, 20)
    assert built(after, 23)["increments"][-1]["pairs"] == {"new": 3, "known": 0, "changed": 20, "removed": 0}
    assert len(captions_in(tmp_path / "build")) == 23


def test_a_full_build_of_the_same_has_the_same_number(corpus: Path, copied: Path) -> None:
    config = configured(copied, corpus, rows_of(corpus)[:OLD], incremental=False)
    assert build(config, copied / "build")["build"]["number"] == 1
    assert [path.name for path in (copied / "build" / "manifests").iterdir()] == ["0001.json"]


def test_other_settings_than_those_of_the_full_build_are_refused(corpus: Path, copied: Path) -> None:
    config = configured(copied, corpus, rows_of(corpus), refine={"cells": 12})
    with pytest.raises(UsageError, match=r"refine: changed since the last full build.*--full"):
        build(config, copied / "build")
    assert manifest_of(copied / "build")["build"]["number"] == 1


def test_settings_that_another_version_of_pairwright_has_are_not_said_to_be_changed(corpus: Path, copied: Path) -> None:
    for path in (copied / "build" / "manifest.json", *(copied / "build" / "manifests").iterdir()):
        manifest = json.loads(path.read_text())
        manifest["config"]["refine"]["of_an_earlier_version"] = 1
        path.write_text(json.dumps(manifest))
    config = configured(copied, corpus, rows_of(corpus))
    with pytest.raises(UsageError, match=r"refine: the last full build is by a version .* Build with --full\.$"):
        build(config, copied / "build")


def test_fields_of_the_input_that_an_earlier_version_did_not_have_are_no_changed_settings(
    corpus: Path, copied: Path
) -> None:
    before = manifest_of(copied / "build")
    for name in ("clean_captions", "encoding"):
        del before["config"]["input"][name]
    config = configured(copied, corpus, rows_of(corpus))
    refuse_changed_settings(config, before)
    cleaned = config.model_copy(update={"input": config.input.model_copy(update={"clean_captions": True})})
    with pytest.raises(UsageError, match="input: changed since"):
        refuse_changed_settings(cleaned, before)


def test_one_stage_alone_is_for_full_builds(corpus: Path, copied: Path) -> None:
    with pytest.raises(UsageError, match="--only"):
        build(configured(copied, corpus, rows_of(corpus)), copied / "build", selection=StageSelection(only="tag"))


def test_quotas_hold_of_all_versions_together(corpus: Path, tmp_path: Path) -> None:
    negatives = {"types": ["replace-object"], "quota": 60}
    changes: dict[str, Any] = {"negatives": negatives, "refine": None, "positives": None, "conversations": None}
    out = tmp_path / "build"
    one = build(configured(tmp_path, corpus, rows_of(corpus)[:52], **changes), out)
    given = one["contents"]["texts"]["hard_negatives"]
    assert 0 < given < 60
    two = build(configured(tmp_path, corpus, rows_of(corpus), **changes), out)
    assert two["contents"]["texts"]["hard_negatives"] == 60
    (told,) = two["stages"]["balance"]["facts"]["limits"].values()
    assert told["given"] == 60


def test_new_pairs_have_to_be_better_than_what_queries_found_before(corpus: Path, tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "retrieve": {"queries": str(corpus / "queries.txt"), "k": 8},
        "refine": None,
        "conversations": None,
        "positives": None,
        "index": {"ef_construction": 40},
    }
    out = tmp_path / "build"
    build(configured(tmp_path, corpus, rows_of(corpus)[:OLD], **changes), out)
    before = set(pl.read_parquet(out / "retrieval" / "keys.parquet")["key"])
    build(configured(tmp_path, corpus, rows_of(corpus), **changes), out)
    chosen = set(pl.read_parquet(out / "retrieval" / "keys.parquet")["key"])
    assert before <= chosen
    bars = (
        pl.read_parquet(out / "retrieval" / "hits.parquet") if (out / "retrieval" / "hits.parquet").exists() else None
    )
    assert bars is not None
    lowest = bars.group_by("query").agg(pl.col("score").min().alias("bar"))
    new = pl.read_parquet(out / "increments" / "0002" / "retrieval" / "hits.parquet").join(lowest, on="query")
    better = set(new.filter(pl.col("score") > pl.col("bar"))["key"])
    assert chosen - before == better
    assert len(captions_in(out)) == len(chosen)
    assert verify(out) == []


def test_increments_by_the_general_method_do_not_lean_together(corpus: Path, tmp_path: Path) -> None:
    target = 0.55
    changes: dict[str, Any] = {
        "refine": {"method": "general", "target": target},
        "positives": None,
        "conversations": None,
    }
    out, rows = tmp_path / "build", rows_of(corpus)
    build(configured(tmp_path, corpus, rows[:50], **changes), out)
    for end in (60, 80):
        manifest = build(configured(tmp_path, corpus, rows[:end], **changes), out)
    carried = manifest["stages"]["refine"]["facts"]["carried"]
    kept = sum(each["stages"]["refine"]["kept"] for each in manifest["increments"])
    assert sum(told["rows"] for told in carried.values()) == kept > 0
    for told in carried.values():
        for name in set(told) - {"rows"}:
            assert abs(told[name]) <= max(1.0, (2 * target - 1) * told["rows"]) + 1e-9


@pytest.mark.slow
def test_killed_outright_with_workers_it_ends_in_the_same_bytes(corpus: Path, both: Path, copied: Path) -> None:
    """The whole command, in a session of its own, is killed while it works; how far it came does not matter."""
    config, out = configured(copied, corpus, rows_of(corpus), workers=2), copied / "build"
    (copied / "build.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    command = [
        sys.executable,
        "-m",
        "pairwright",
        "build",
        str(copied / "build.yaml"),
        "--no-prefect",
        "--out",
        str(out),
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        while not (out / ".next" / "receipts" / "tag" / "00003.json").exists():
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"ended before it could be killed: {process.wait(0.05)}")
        os.killpg(process.pid, signal.SIGKILL)
    build(config, out)
    assert contents(out) == contents(both / "build")
    assert verify(out) == []


@pytest.mark.parametrize("changes", [{}, {"retrieve": None}])
def test_an_index_that_is_named_and_one_that_is_not_are_one_setting(corpus: Path, changes: dict[str, Any]) -> None:
    before = redact(checked(settings(corpus, index={}, **changes)).model_dump(mode="json"))
    refuse_changed_settings(checked(settings(corpus, **changes)), {"config": before})
    if not changes:
        with pytest.raises(UsageError, match="index"):
            refuse_changed_settings(checked(settings(corpus, index={"m": 8})), {"config": before})


def test_what_has_no_picture_is_set_aside_once_where_the_build_has_pictures(tmp_path: Path) -> None:
    def written(*rows: dict[str, str], **given: str) -> BuildConfig:
        Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return checked(
            {"name": "t", "input": {"path": str(tmp_path / "in.jsonl"), **given}, "incremental": True, "workers": 1}
        )

    one = {"caption": "a red circle", "image": "a.png"}
    bare = {"caption": "a blue square"}
    other = {"caption": "a green star", "image": "a.png"}
    build(written(one, on_error="skip"), tmp_path / "build")
    build(written(one, bare, other, on_error="skip"), tmp_path / "build")
    (told,) = manifest_of(tmp_path / "build")["increments"]
    assert told["pairs"]["new"] == 1
    stage = manifest_of(tmp_path / "build")["stages"]["pairs"]
    assert stage["rejected"] == {"missing_image": 1}
    assert captions_in(tmp_path / "build") == ["a red circle", "a green star"]
    assert "of 3 rows of all versions rejected" in " ".join(build_lines(tmp_path, manifest_of(tmp_path / "build")))
    build(written(one, bare, other, {**other, "caption": "a white cross"}, on_error="skip"), tmp_path / "build")
    assert manifest_of(tmp_path / "build")["stages"]["pairs"]["rejected"] == {"missing_image": 1}  # known by now
    shutil.rmtree(tmp_path / "build")
    build(written(one), tmp_path / "build")
    with pytest.raises(InputError, match="has no image, and the pairs of the build have one"):
        build(written(one, bare), tmp_path / "build")
    shutil.rmtree(tmp_path / "build")
    build(written(bare), tmp_path / "build")
    with pytest.raises(InputError, match="has an image, and the pairs of the build have none"):
        build(written(bare, one), tmp_path / "build")


def with_images_named(folder: Path, *names: str, **given: str) -> BuildConfig:
    """Return an incremental config of a row for each created image; with ``on_error``, of a broken image, too."""
    for number, name in enumerate(names):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / name)
    rows = [{"caption": f"a red circle {number}", "image": name} for number, name in enumerate(names)]
    if "on_error" in given:
        (folder / "broken.png").write_bytes(b"no picture")
        rows.append({"caption": "a blue circle", "image": "broken.png"})
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return checked(
        {"name": "t", "input": {"path": str(folder / "in.jsonl"), **given}, "incremental": True, "workers": 1}
    )


def test_new_pictures_of_another_format_are_refused_before_any_work(tmp_path: Path) -> None:
    """They were found when the new shards were joined to the old ones, after all texts had been made."""
    build(with_images_named(tmp_path, "a.png"), tmp_path / "build")
    heard = Heard()
    with pytest.raises(InputError, match=r"other formats \(jpg 1\) than those of the build \(png\)"):
        build(with_images_named(tmp_path, "a.png", "b.jpg"), tmp_path / "build", heard)
    assert set(heard.ran) == {"pairs"}
    build(with_images_named(tmp_path, "a.png", "b.png"), tmp_path / "build")
    assert manifest_of(tmp_path / "build")["increments"][0]["pairs"]["new"] == 1
    assert verify(tmp_path / "build") == []


def test_formats_of_new_images_are_those_of_their_bytes(tmp_path: Path) -> None:
    """A PNG named .jpg passed for a JPEG until its shard was packed, and one named .png beside it was refused."""

    def row(name: str, kind: str) -> dict[str, str]:
        Image.new("RGB", (8, 8)).save(tmp_path / name, format=kind)
        return {"caption": f"a red circle {name}", "image": name}

    def built(*rows: dict[str, str]) -> None:
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
        given = {"path": str(tmp_path / "in.jsonl")}
        build(checked({"name": "t", "input": given, "incremental": True, "workers": 1}), tmp_path / "build")

    first, second = row("a.jpg", "PNG"), row("b.png", "PNG")
    built(first)
    built(first, second)
    assert manifest_of(tmp_path / "build")["contents"]["image_exts"] == {"png": 2}
    with pytest.raises(InputError, match=r"other formats \(jpg 1\) than those of the build \(png\)"):
        built(first, second, row("c.png", "JPEG"))


def test_broken_rows_of_a_table_with_a_column_of_sources_are_counted_once(tmp_path: Path) -> None:
    """Each increment counted them again: a broken row had the name of the file as its source, then that of the pairs."""
    rows = [{"caption": f"a red circle {number}", "source": "web"} for number in range(3)]
    rows[1]["caption"] = ""
    given = {"path": str(tmp_path / "in.jsonl"), "on_error": "skip"}
    config = checked({"name": "t", "input": given, "incremental": True, "workers": 1})
    for more in range(2):
        rows += [{"caption": f"a blue circle {more}", "source": "web"}]
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        build(config, tmp_path / "build")
    assert manifest_of(tmp_path / "build")["increments"][0]["pairs"]["new"] == 1
    assert manifest_of(tmp_path / "build")["stages"]["pairs"]["rejected"] == {"empty_caption": 1}


def test_an_increment_may_begin_to_skip_broken_rows(tmp_path: Path) -> None:
    """The message about a broken row recommends it, and then it was refused as a changed setting."""
    build(with_images_named(tmp_path, "a.png"), tmp_path / "build")
    with pytest.raises(InputError, match="on_error: skip"):
        build(with_images_named(tmp_path, "a.png", "b.png", on_error="stop"), tmp_path / "build")
    build(with_images_named(tmp_path, "a.png", "b.png", on_error="skip"), tmp_path / "build")
    assert manifest_of(tmp_path / "build")["increments"][0]["pairs"]["new"] == 1
    assert manifest_of(tmp_path / "build")["stages"]["pairs"]["rejected"] == {"bad_image": 1}
