"""The table of stages: an entry is all that a stage needs to run, resume and be shown."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.record_tables import PAIRS
from pairwright.flows import graph
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.commands.plan import estimate_build
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.graph import STAGES, stages_of
from pairwright.flows.runners.engine import StageJobs
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.stages.definition import Stage, StageRun
from pairwright.flows.state.layout import pairs_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from tests.flows.conftest import checked, settings
from tests.flows.test_build import Heard

build = partial(build_with_prefect, prefect=False)


def count_characters(root: Path, part: str) -> JobResult:
    """Write the number of characters of the captions of a part."""
    captions = [pair.caption for pair in PAIRS.read(pairs_path(root, part))]
    path = root / "lengths" / f"{part}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(sum(map(len, captions))))
    return JobResult([path], Counts("caption", len(captions), len(captions)))


def lengths_jobs(run: StageRun) -> Sequence[Job]:
    return run.job_per_part(count_characters)


def sum_characters(root: Path, parts: Sequence[str]) -> JobResult:
    """Write the number of characters of all captions."""
    path = root / "lengths" / "all.json"
    path.write_text(json.dumps(sum(json.loads((root / "lengths" / f"{part}.json").read_text()) for part in parts)))
    return JobResult([path], Counts("caption", 20, 20), {"files": 1})


def summed_lengths_jobs(run: StageRun) -> StageJobs:
    counted = yield run.job_per_part(count_characters)
    return [run.job(sum_characters, run.parts, after=counted)]


@pytest.fixture
def with_toy_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Stage("lengths", "counts characters", ("pairs",), "caption", "part", lengths_jobs, lengths_jobs)
    after = next(number for number, stage in enumerate(STAGES) if stage.name == "tag")
    monkeypatch.setattr(graph, "STAGES", (*STAGES[:after], toy, *STAGES[after:]))


def write_input(path: Path, rows: int) -> None:
    path.write_text("".join(json.dumps({"caption": f"a dog and {number} cats"}) + "\n" for number in range(rows)))


def small(folder: Path, **changes: Any) -> BuildConfig:
    config = {"name": "t", "input": {"path": str(folder / "in.jsonl")}, "part_size": 10, "workers": 1}
    return checked({**config, **changes})


def manifest_of(out: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return manifest


@pytest.mark.usefixtures("with_toy_stage")
def test_a_stage_added_to_the_table_runs_in_full_and_incremental_builds_and_is_in_plan_selection_and_manifest(
    tmp_path: Path,
) -> None:
    write_input(tmp_path / "in.jsonl", 20)
    config, out = small(tmp_path, incremental=True), tmp_path / "build"
    assert estimate_build(config, out).stages == ("pairs", "lengths", "tag", "words", "shards", "sizes")
    build(config, out, selection=StageSelection(only="pairs"))
    assert list(build(config, out, selection=StageSelection(only="lengths"))["stages"]) == ["pairs", "lengths"]
    heard = Heard()
    build(config, out, heard)
    assert (heard.reused["lengths"], heard.ran["lengths"]) == (2, 0)
    full = manifest_of(out)["stages"]["lengths"]
    assert (full["unit"], full["kept"], full["parts"]) == ("caption", 20, 2)
    repeated = Heard()
    build(small(tmp_path), out, repeated, selection=StageSelection(begin="lengths"))
    assert (repeated.ran["pairs"], repeated.ran["lengths"], repeated.ran["tag"]) == (0, 2, 2)
    write_input(tmp_path / "in.jsonl", 25)
    appended = Heard()
    build(config, out, appended)
    assert appended.ran["lengths"] == 1
    manifest = manifest_of(out)
    assert manifest["build"]["kind"] == "incremental"
    assert manifest["stages"]["lengths"]["kept"] == 25
    assert {f"lengths/{part:05d}.json" for part in range(3)} <= manifest["files"].keys()
    assert (out / "lengths" / "00002.json").is_file()


@pytest.mark.usefixtures("with_toy_stage")
def test_a_stage_of_two_groups_of_jobs_repeats_the_merge_only_where_a_part_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = next(number for number, stage in enumerate(graph.STAGES) if stage.name == "lengths")
    summed = replace(graph.STAGES[number], full=summed_lengths_jobs, scope="set")
    monkeypatch.setattr(graph, "STAGES", (*graph.STAGES[:number], summed, *graph.STAGES[number + 1 :]))
    write_input(tmp_path / "in.jsonl", 20)
    config, out = small(tmp_path), tmp_path / "build"
    for stage in ("pairs", "lengths"):
        build(config, out, selection=StageSelection(only=stage))
    characters = sum(len(f"a dog and {number} cats") for number in range(20))
    assert json.loads((out / "lengths" / "all.json").read_text()) == characters
    (out / "lengths" / "00001.json").unlink()
    repeated = Heard()
    build(config, out, repeated)
    assert (repeated.ran["lengths"], repeated.reused["lengths"]) == (1, 2)  # the same bytes again: the merge is valid
    entry = manifest_of(out)["stages"]["lengths"]
    assert (entry["candidates"], entry["kept"], entry["facts"]) == (20, 20, {"files": 1})


def test_the_stages_of_an_incremental_build_reuse_frozen_statistics_and_end_with_an_audit(corpus: Path) -> None:
    def names(**changes: Any) -> list[str]:
        return [stage.name for stage in stages_of(checked(settings(corpus, **changes)), incremental=True)]

    ending = ["freeze", "refine", "shards", "sizes", "audit"]
    texts = ["tag", "negatives", "positives", "conversations", "balance", "balance-positives"]
    assert names() == ["pairs", "index", "retrieve", *texts, *ending]
    assert names(retrieve=None, index={}) == ["pairs", *texts, *ending]
    assert names(retrieve=None, negatives=None, positives=None, conversations=None, refine=None) == [
        *("pairs", "tag", "shards", "sizes")
    ]


def test_every_input_of_a_stage_is_a_stage_before_it() -> None:
    seen: set[str] = set()
    for stage in STAGES:
        assert set(stage.inputs) <= seen, stage.name
        assert stage.full or stage.incremental, stage.name
        seen.add(stage.name)


def test_the_table_states_the_unit_and_the_jobs_of_each_stage(built: Path) -> None:
    manifest = manifest_of(built)
    for stage in stages_of(checked(manifest["config"])):
        entry = manifest["stages"][stage.name]
        assert entry["unit"] == stage.unit
        assert (entry["parts"] > 1) == (stage.scope != "set"), stage.name


@pytest.mark.parametrize("name", ["pairs", "audit", "twice"])
def test_a_generator_with_the_name_of_a_stage_or_of_another_generator_is_refused(tmp_path: Path, name: str) -> None:
    config = small(tmp_path, generators=[{"name": name}, *([{"name": name}] if name == "twice" else [])])
    with pytest.raises(ConfigError, match=f"generators: '{name}' is the name of another stage"):
        stages_of(config)


def test_a_build_hashes_its_code_in_a_fraction_of_a_second() -> None:
    code = """
import time
from pairwright.flows.graph import STAGES
from pairwright.flows.state.code_versions import code_hash
start = time.process_time()
for stage in STAGES:
    code_hash((stage.full or stage.incremental).__module__)
print(time.process_time() - start)
"""
    seconds = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(seconds) < 1  # about 0.2 on an idle core
