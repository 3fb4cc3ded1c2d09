"""What a build promises: nothing lost, the same bytes always, and going on where it stood."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from PIL import Image

from pairwright.datasets.errors import InputError, PairwrightError, StorageError
from pairwright.datasets.progress import ProgressReport
from pairwright.datasets.record_tables import REJECTS
from pairwright.datasets.reports.contact_sheet import read_first_samples
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.commands.demo import truth_table
from pairwright.flows.commands.plan import estimate_build
from pairwright.flows.progress import BuildProgress
from pairwright.flows.state.layout import part_name, rejected_path
from pairwright.flows.state.locks import build_lock
from pairwright.generators.llm.session import Snapshot
from tests.flows.conftest import Run, checked, settings

build = partial(build_with_prefect, prefect=False)
SAME = ("pairs", "annotations", "rejected", "candidates", "index", "retrieval", "shards")


class Heard(BuildProgress):
    """A progress that remembers which jobs ran and which were taken over from an earlier run."""

    def __init__(self) -> None:
        self.ran: dict[str, int] = {}
        self.reused: dict[str, int] = {}
        self.steps: list[ProgressReport] = []
        self.notes: list[str] = []

    def begin(self, stage: str, jobs: int) -> None:  # noqa: D102 - as of `BuildProgress`
        self.ran.setdefault(stage, 0)
        self.reused.setdefault(stage, 0)
        assert jobs

    def advance(self, stage: str, *, reused: bool) -> None:  # noqa: D102 - as of `BuildProgress`
        (self.reused if reused else self.ran)[stage] += 1

    def report_step(self, report: ProgressReport) -> None:  # noqa: D102 - as of `BuildProgress`
        self.steps.append(report)

    def report_model(self, stage: str, now: Snapshot) -> None:  # noqa: D102 - as of `BuildProgress`
        assert stage in self.ran
        assert now.rows >= 0

    def end(self, stage: str, summary: str) -> None:  # noqa: D102 - as of `BuildProgress`
        assert stage in self.ran
        assert summary

    def note(self, message: str) -> None:  # noqa: D102 - as of `BuildProgress`
        assert message
        self.notes.append(message)


def contents(out: Path) -> dict[str, bytes]:
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for folder in SAME
        for path in sorted((out / folder).rglob("*"))
        if path.is_file()
    }


def manifest_of(out: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return manifest


def test_every_stage_counts_candidates_as_kept_and_rejected(built: Path) -> None:
    stages = manifest_of(built)["stages"]
    for name, stage in stages.items():
        assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values()), name
    assert stages["retrieve"]["candidates"] == stages["pairs"]["kept"] == 80
    assert stages["shards"]["candidates"] == stages["retrieve"]["kept"]
    assert stages["refine"]["candidates"] == stages["negatives"]["kept"]
    assert all(stages[name]["kept"] for name in ("negatives", "positives", "conversations", "refine"))


def test_rejected_rows_are_in_the_build_with_their_reasons(built: Path) -> None:
    for stage, told in manifest_of(built)["stages"].items():
        parts = sorted((built / "rejected").glob(f"{stage}-*.parquet"))
        reasons = pl.concat([pl.read_parquet(part).select("reason") for part in parts]) if parts else None
        if reasons is not None:
            counted = dict(reasons.group_by("reason").len().iter_rows())
            assert counted == told["rejected"], stage


def test_the_shards_are_whole_and_hold_the_texts(built: Path) -> None:
    assert verify(built) == []
    contents = manifest_of(built)["contents"]
    assert contents["samples"] == manifest_of(built)["stages"]["shards"]["kept"]
    assert contents["texts"]["hard_negatives"] == manifest_of(built)["stages"]["refine"]["kept"]


def test_refinement_leaves_both_scorers_at_a_coins_toss(built: Path) -> None:
    facts = manifest_of(built)["stages"]["refine"]["facts"]
    assert all(abs(attack["after"] - 0.5) < 1e-9 for attack in facts["attacks"].values())


def test_a_second_run_does_nothing_again(corpus: Path, built: Path) -> None:
    before, heard = contents(built), Heard()
    build(checked(settings(corpus)), built, heard)
    assert not any(heard.ran.values())
    assert contents(built) == before


def test_the_number_of_workers_changes_no_byte(corpus: Path, tmp_path: Path) -> None:
    """With texts enough to train an edit model of."""
    given = settings(corpus, input={"path": str(corpus / "large" / "captions.jsonl")})
    for workers in (1, 2):
        build(checked({**given, "workers": workers}), tmp_path / f"by-{workers}")
    assert contents(tmp_path / "by-2") == contents(tmp_path / "by-1")


def test_changing_one_stage_runs_only_it_and_what_follows(corpus: Path, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "build"
    shutil.copytree(built, out)
    heard = Heard()
    build(checked(settings(corpus, refine={"cells": 6})), out, heard)
    assert {stage for stage, jobs in heard.ran.items() if jobs} <= {"refine", "shards", "sizes"}
    assert heard.ran["refine"] > 0
    assert heard.reused["refine"] > 0, "the texts are encoded again"


def test_a_stage_that_is_left_out_leaves_nothing_behind(corpus: Path, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "build"
    shutil.copytree(built, out)
    build(checked(settings(corpus, retrieve=None, positives=None, shards={"samples": 50})), out)
    assert not list((out / "annotations").glob("positives-*"))
    assert not list((out / "retrieval").glob("*"))
    assert [path.name for path in sorted((out / "shards").glob("*.tar"))] == ["00000.tar", "00001.tar"]
    assert manifest_of(out)["contents"]["samples"] == 80


def test_pictures_pass_through_untouched(corpus: Path, tmp_path: Path) -> None:
    config = settings(corpus, input={"path": str(corpus / "pictures")}, retrieve=None, refine=None)
    build(checked(config), tmp_path / "build")
    assert manifest_of(tmp_path / "build")["contents"]["image_exts"] == {"jpg": 60}
    assert verify(tmp_path / "build") == []


def test_broken_rows_are_rejected_rows_under_skip(tmp_path: Path) -> None:
    rows = ['{"caption": "a red circle"}', "{broken", '{"caption": ""}', '{"caption": "a blue square"}']
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    config = {"name": "t", "input": {"path": str(tmp_path / "in.jsonl"), "on_error": "skip"}, "workers": 1}
    build(checked(config), tmp_path / "build")
    told = manifest_of(tmp_path / "build")["stages"]["pairs"]
    assert (told["candidates"], told["kept"]) == (4, 2)
    assert told["rejected"] == {"broken_json": 1, "empty_caption": 1}


def pictured_and_bare(folder: Path, rows: int = 6) -> dict[str, Any]:
    """Write pictures and a table in which every third row, the first among them, has none; return the input."""
    for number in range(rows):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
    lines = [
        {"caption": f"a red circle {number}", **({"image": f"{number}.png"} if number % 3 else {})}
        for number in range(rows)
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"path": str(folder / "in.jsonl")}


def test_pairs_without_a_picture_among_others_stop_a_build_before_all_work(tmp_path: Path) -> None:
    config = {"name": "t", "input": pictured_and_bare(tmp_path), "negatives": {}, "part_size": 2, "workers": 1}
    with pytest.raises(InputError, match="2 of 6 pairs have no image") as caught:
        build(checked(config), tmp_path / "build")
    assert "on_error: skip" in caught.value.fix
    assert "images: false" in caught.value.fix
    assert not (tmp_path / "build" / "annotations").exists()
    build(checked({**config, "shards": {"images": False}}), tmp_path / "texts")
    assert manifest_of(tmp_path / "texts")["contents"]["samples"] == 6


@pytest.mark.parametrize(("endings", "told"), [(("jpg", "png", "jpeg"), "jpg 2, png 1"), (("gif",), "gif 1")])
def test_pictures_of_several_formats_stop_a_build_before_all_work(
    tmp_path: Path, endings: tuple[str, ...], told: str
) -> None:
    (tmp_path / "in").mkdir()
    for number, ending in enumerate(endings):
        Image.new("RGB", (8, 8)).save(tmp_path / "in" / f"{number}.{ending}")
        (tmp_path / "in" / f"{number}.txt").write_text(f"a red circle {number}")
    config = {"name": "t", "input": {"path": str(tmp_path / "in"), "on_error": "skip"}, "negatives": {}, "workers": 1}
    with pytest.raises(InputError, match=rf"\({told}\).*`image_format: jpg`"):
        build(checked(config), tmp_path / "build")
    assert not (tmp_path / "build" / "annotations").exists()
    build(checked({**config, "shards": {"image_format": "jpg"}}), tmp_path / "recoded")
    assert manifest_of(tmp_path / "recoded")["contents"]["image_exts"] == {"jpg": len(endings)}


def test_images_with_a_wrong_ending_are_found_before_any_other_work(tmp_path: Path) -> None:
    """A PNG named .jpg stopped the build at the shards, after all texts were made."""
    (tmp_path / "in").mkdir()
    for number in range(6):
        kind = "PNG" if number == 3 else "JPEG"
        Image.new("RGB", (8, 8)).save(tmp_path / "in" / f"{number}.jpg", format=kind)
        (tmp_path / "in" / f"{number}.txt").write_text(f"a red circle {number}")
    config = {"name": "t", "input": {"path": str(tmp_path / "in")}, "negatives": {}, "workers": 1}
    with pytest.raises(InputError, match=r"\(jpg 5, png 1\).*`image_format: jpg`"):
        build(checked(config), tmp_path / "build")
    assert not (tmp_path / "build" / "tokens").exists()


def test_images_that_are_all_urls_stop_the_build_before_any_other_work(tmp_path: Path) -> None:
    """All texts were made first, and then no shard could be packed."""
    rows = [{"caption": f"a dog on bed {number}", "image": f"https://x.org/{number}.jpg"} for number in range(8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = checked({"name": "t", "input": {"path": str(tmp_path / "rows.jsonl")}, "negatives": {}, "workers": 1})
    with pytest.raises(InputError, match=r"all images \(8\) are URLs.*`fetch`.*`images: false`"):
        build(config, tmp_path / "out")
    assert not (tmp_path / "out" / "tokens").exists()


def test_what_a_later_stage_would_miss_is_said_before_all_work(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    without_queries = settings(corpus, retrieve={"queries": str(tmp_path / "queries.txt")})
    without_key = settings(corpus, llm={"model": "m"}, negatives={"method": "llm"})
    for config, told in ((without_queries, "queries.txt: no such file"), (without_key, "OPENAI_API_KEY")):
        with pytest.raises(PairwrightError, match=told):
            build(checked(config), tmp_path / "build")
        assert not (tmp_path / "build").exists()


def test_pairs_without_a_picture_among_others_are_rejected_rows_under_skip(tmp_path: Path) -> None:
    given = {**pictured_and_bare(tmp_path), "on_error": "skip"}
    build(checked({"name": "t", "input": given, "part_size": 1, "workers": 1}), tmp_path / "build")
    manifest = manifest_of(tmp_path / "build")
    told = manifest["stages"]["pairs"]
    assert (told["candidates"], told["kept"], told["rejected"]) == (6, 4, {"missing_image": 2})
    assert manifest["contents"]["samples"] == 4
    assert verify(tmp_path / "build") == []


def test_broken_rows_stop_the_build_with_one_line_that_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": "a red circle"}\n{broken\n')
    config = checked({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1})
    with pytest.raises(InputError, match=r"in\.jsonl:2: broken_json"):
        build(config, tmp_path / "build")
    assert not (tmp_path / "build" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("row", "given", "told"),
    [
        ({"words": "a"}, {}, r"Name the column: `columns: {caption: NAME}` under input; `pairwright init` "),
        ({"text": "a", "title": "b"}, {}, r"Choose one: `columns: {caption: text}` under input\."),
        ({"caption": "a"}, {"columns": {"capton": "caption"}}, "`columns` under input: no such name: capton"),
        ({"caption": "a"}, {"columns": {"key": "di"}}, r"no row has a column di\. Correct `columns` under input"),
        ({"caption": "a"}, {"format": "jsn"}, "`format` under input: no such format: jsn"),
        ({"caption": ""}, {}, r"To skip such rows: `on_error: skip` under input\."),
        ({"captions": "[a"}, {}, r"for one caption a row: `columns: {caption: captions}` under input\."),
        ({"my texts": "[a"}, {"columns": {"captions": "my texts"}}, r"`columns: {caption: my texts}` under input\."),
        ({"caption": "a", "source_id": 1, "key": 2}, {}, r"\(or map it: `columns: {key: NAME}` under input\)"),
        ([{"caption": "a"}], {}, r"Name it \.json, or give `format: json` under input\."),
    ],
)
def test_errors_in_the_input_name_keys_of_the_config(
    tmp_path: Path, row: object, given: dict[str, Any], told: str
) -> None:
    (tmp_path / "pool.jsonl").write_text(json.dumps(row) + "\n")
    config = checked({"name": "pool", "input": {"path": str(tmp_path / "pool.jsonl"), **given}, "workers": 1})
    with pytest.raises(PairwrightError, match=told) as caught:
        build(config, tmp_path / "build")
    assert "--" not in str(caught.value)
    with pytest.raises(PairwrightError, match=told):
        estimate_build(config, tmp_path / "build")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("pool.jsonl", '[{"caption": "a dog"}]\n', "Name it .json, or give `format: json` under input."),
        ("pool.txt", "a dog\n", "Add a header line (caption) and rename the file to .tsv."),
        ("pool.dat", "a dog\n", "Name the format: `format` under input, one of coco | "),
    ],
)
def test_an_input_of_an_unknown_format_is_refused_with_keys_of_the_config(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        build(checked({"name": "pool", "input": {"path": str(tmp_path / name)}, "workers": 1}), tmp_path / "build")
    assert told in str(caught.value)
    assert "--" not in str(caught.value)


def test_the_detail_of_a_rejected_row_names_keys_of_the_config(tmp_path: Path) -> None:
    rows = [{"captions": "[a"}, {"captions": "a red circle"}]
    (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, rows)))
    given = {"path": str(tmp_path / "pool.jsonl"), "on_error": "skip"}
    build(checked({"name": "pool", "input": given, "workers": 1}), tmp_path / "build")
    (flaw,) = REJECTS.read(rejected_path(tmp_path / "build", "pairs", part_name(0)))
    assert flaw.detail.endswith("for one caption a row: `columns: {caption: captions}` under input")


def test_a_second_build_in_the_same_folder_is_refused(corpus: Path, tmp_path: Path) -> None:
    with build_lock(tmp_path / "build"), pytest.raises(StorageError, match="another build is running"):
        build(checked(settings(corpus)), tmp_path / "build")


def by_prefect(run: Run, folder: Path, config: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (folder / "build.yaml").write_text(yaml.safe_dump(config))
    return run("pairwright", "build", folder / "build.yaml", "--out", folder / "build")


def test_prefect_runs_the_same_build(corpus: Path, built: Path, tmp_path: Path, through_prefect: Run) -> None:
    done = by_prefect(through_prefect, tmp_path, settings(corpus))
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "build") == contents(built)


def test_a_failure_in_a_prefect_task_is_still_our_error(tmp_path: Path, through_prefect: Run) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": ""}\n{"caption": "a"}')
    config = {"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}
    done = by_prefect(through_prefect, tmp_path, config)
    assert done.returncode == 1
    assert "empty_caption" in done.stderr
    assert "Traceback" not in done.stderr


SLOW = pytest.mark.slow


@pytest.mark.parametrize("stage", [pytest.param("pairs", marks=SLOW), "tag", pytest.param("negatives", marks=SLOW)])
def test_a_killed_build_started_again_gives_the_same_bytes(
    corpus: Path, built: Path, tmp_path: Path, stage: str
) -> None:
    """Killed when the stage's end is told, that is, while the next one is at work."""
    config, out = tmp_path / "build.yaml", tmp_path / "build"
    config.write_text(yaml.safe_dump(settings(corpus)))
    command = [sys.executable, "-m", "pairwright", "build", str(config), "--out", str(out), "--no-prefect"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr
        assert any(line.startswith(f"  {stage} ") for line in lines(process.stderr))
        os.killpg(process.pid, signal.SIGKILL)  # the session of its own: build, workers and Prefect's server
    assert not (out / "manifest.json").exists()
    heard = Heard()
    build(checked(settings(corpus)), out, heard)
    assert heard.reused[stage]
    assert contents(out) == contents(built)


def lines(stream: Any) -> Iterator[str]:
    while line := stream.readline():
        yield line


def write_captions(path: Path, numbers: range) -> None:
    path.write_text("".join(json.dumps({"id": n, "caption": f"a dog and {n} cats"}) + "\n" for n in numbers))


def plain(tmp_path: Path, **changes: Any) -> Any:
    config = {"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "part_size": 10, "workers": 1}
    return checked({**config, **changes})


def test_a_folder_with_other_files_is_refused_and_not_changed(tmp_path: Path) -> None:
    write_captions(tmp_path / "in.jsonl", range(3))
    mine = tmp_path / "coco" / "annotations" / "captions.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(StorageError, match="not a build directory"):
        build(plain(tmp_path), tmp_path / "coco")
    assert mine.exists()
    assert [path.name for path in (tmp_path / "coco").iterdir()] == ["annotations"]


@pytest.mark.parametrize(("before", "after"), [(30, 12), (12, 30)])
def test_an_input_that_changed_gives_what_a_fresh_build_gives(tmp_path: Path, before: int, after: int) -> None:
    (tmp_path / "q.txt").write_text("a dog\n")
    config = plain(tmp_path, retrieve={"queries": str(tmp_path / "q.txt"), "k": 100})
    write_captions(tmp_path / "in.jsonl", range(before))
    build(config, tmp_path / "old")
    write_captions(tmp_path / "in.jsonl", range(after))
    build(config, tmp_path / "old")
    build(config, tmp_path / "new")
    assert manifest_of(tmp_path / "old")["stages"]["index"]["candidates"] == after
    assert contents(tmp_path / "old") == contents(tmp_path / "new")


def test_another_part_size_gives_what_a_fresh_build_gives(tmp_path: Path) -> None:
    write_captions(tmp_path / "in.jsonl", range(35))
    build(plain(tmp_path), tmp_path / "old")
    build(plain(tmp_path, part_size=20), tmp_path / "old")
    build(plain(tmp_path, part_size=20), tmp_path / "new")
    assert contents(tmp_path / "old") == contents(tmp_path / "new")


def test_what_is_appended_leaves_the_parts_before_it_tagged(tmp_path: Path) -> None:
    config = plain(tmp_path, positives={})
    write_captions(tmp_path / "in.jsonl", range(30))
    build(config, tmp_path / "build")
    write_captions(tmp_path / "in.jsonl", range(31))
    heard = Heard()
    build(config, tmp_path / "build", heard)
    assert (heard.reused["tag"], heard.ran["tag"]) == (3, 1)


def test_pictures_that_changed_are_packed_again(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(corpus / "pictures" / "00000.tar", tmp_path / "in")
    config = checked({"name": "t", "input": {"path": str(tmp_path / "in")}, "workers": 1})
    build(config, tmp_path / "old")
    tar = tmp_path / "in" / "00000.tar"
    data = bytearray(tar.read_bytes())
    picture = data.index(b"\xff\xd8\xff")
    comment = b"\xff\xfe\x00\x06abcd"  # a comment in the first picture's header, over bytes of its own kind
    data[picture + 2 : picture + 2 + len(comment)] = comment
    tar.write_bytes(data)
    build(
        checked({**config.model_dump(), "input": {**config.input.model_dump(), "verify_images": "off"}}),
        tmp_path / "old",
    )
    assert comment in (tmp_path / "old" / "shards" / "00000.tar").read_bytes()


def test_a_shard_without_a_usable_image_is_counted_and_the_others_are_kept(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.txt").write_text(f"a caption {number}")
        (tmp_path / "in" / f"{number}.jpg").write_bytes(b"no picture" if number < 2 else _one_picture(corpus))
    section = {"path": str(tmp_path / "in"), "verify_images": "off"}
    build(checked({"name": "t", "input": section, "shards": {"samples": 2}, "workers": 1}), tmp_path / "out")
    told = manifest_of(tmp_path / "out")["stages"]["shards"]
    assert (told["candidates"], told["kept"]) == (4, 2)
    assert sum(told["rejected"].values()) == 2


def test_a_look_into_a_build_shows_the_pictures_that_were_packed(tmp_path: Path) -> None:
    """Those that they were made of may be of another format, or gone."""
    (tmp_path / "in").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "in" / "0.gif")
    (tmp_path / "in" / "0.txt").write_text("a red circle")
    given = {"name": "t", "input": {"path": str(tmp_path / "in")}, "shards": {"image_format": "png"}, "workers": 1}
    build(checked(given), tmp_path / "build")
    (tmp_path / "in" / "0.gif").unlink()
    (shown,) = read_first_samples(tmp_path / "build", 4)
    assert (shown.pair.caption, shown.image_ext) == ("a red circle", "png")


def _one_picture(corpus: Path) -> bytes:
    data = (corpus / "pictures" / "00000.tar").read_bytes()
    return data[data.index(b"\xff\xd8\xff") : data.index(b"\xff\xd9") + 2]


def test_a_job_that_was_begun_is_not_taken_for_done(corpus: Path, built: Path, tmp_path: Path) -> None:
    """Killed between its outputs and its receipt, under another config: the first config's receipt must not stand."""
    out = tmp_path / "build"
    shutil.copytree(built, out)
    other = checked(settings(corpus, refine={"cells": 4}))
    with pytest.raises(ZeroDivisionError):
        build(other, out, Killer("refine"))
    build(checked(settings(corpus)), out)
    assert contents(out) == contents(built)


class Killer(Heard):
    """A progress that ends the build when a stage is done."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage = stage

    def advance(self, stage: str, *, reused: bool) -> None:  # noqa: D102 - as of `BuildProgress`
        if stage == self.stage and not reused:
            raise ZeroDivisionError


def test_a_turn_is_a_question_with_its_answer_in_every_count(corpus: Path, tmp_path: Path) -> None:
    config = checked(settings(corpus, retrieve=None, negatives=None, positives=None, refine=None))
    build(config, tmp_path / "build", truth=truth_table)
    told = manifest_of(tmp_path / "build")
    assert told["contents"]["texts"]["turns"] == told["oracle"]["turns"]["kept"] > 160
