"""Rationales as a stage of a build: of the negatives that are kept, into the samples of their pairs."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.exports.formats import export
from pairwright.datasets.record_tables import ANNOTATIONS, EXAMPLES
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.flows.build import build
from pairwright.flows.commands.plan_requests import plan_build_requests
from pairwright.flows.config.build import BuildConfig, parse_config
from pairwright.flows.llm.pair_task import KEPT_SHARE
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

CAPTIONS = [f"A {colour} dog on a {what}." for colour in ("red", "blue", "grey") for what in ("bed", "sofa", "rug")]
TRUE = 'Caption: "A (red|blue|grey) dog on a (bed|sofa|rug)'
RULES = [
    {"matches": f'(?s){TRUE}[^"]*"[^"]*$', "text": "It says what is known. So the answer is yes."},
    {"matches": "", "text": "It says something else. So the answer is no."},
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(rules=RULES))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def config_of(folder: Path, **sections: Any) -> BuildConfig:
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    config = {
        "name": "x",
        "input": {"path": str(path)},
        "llm": {"model": "small", "price": "1/2"},
        "negatives": {"types": ["replace-object"]},
        "rationales": {},
        "part_size": 4,
        "workers": 1,
        **sections,
    }
    return parse_config(config, where="test")


def test_each_kept_negative_and_its_caption_get_a_rationale_in_their_sample(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "build"
    manifest = build(config_of(tmp_path), out, prefect=False)
    stage = manifest["stages"]["rationales"]
    negatives = [row for part in sorted((out / "annotations").glob("negatives-*")) for row in ANNOTATIONS.read(part)]
    assert stage["candidates"] == len(negatives) + len({row.key for row in negatives})
    assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values())
    assert stage["kept"] > len(negatives) > 0
    assert manifest["cost"]["requests"] == stage["candidates"]
    kept = [row for part in sorted((out / "rationales").glob("*")) for row in EXAMPLES.read(part)]
    packed = [row for shard in find_shards(out / "shards") for sample in read_shard(shard) for row in sample.examples]
    assert len(packed) == len(kept) == stage["kept"] == manifest["contents"]["texts"]["rationales"]
    assert {row.label for row in packed} == {"yes", "no"}
    texts = {f"Does this caption fit the image? {row.text}" for row in negatives}
    assert {row.input for row in packed if row.label == "no"} <= texts


def test_a_second_run_asks_nothing_and_writes_the_same(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "build"
    build(config_of(tmp_path), out, prefect=False)
    before = {path: path.read_bytes() for path in (out / "shards").glob("*.tar")}
    shutil.rmtree(out / "receipts" / "rationales")
    asked = server.stats()["requests"]
    build(config_of(tmp_path), out, prefect=False)
    assert {path: path.read_bytes() for path in (out / "shards").glob("*.tar")} == before
    assert server.stats()["requests"] == asked > 0


def test_a_build_exports_its_rationales(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "build"
    manifest = build(config_of(tmp_path), out, prefect=False)
    done = export(out, "rationales", tmp_path / "rows.jsonl")
    assert done.rows == 2 * manifest["stages"]["rationales"]["kept"]


def test_the_plan_tells_how_many_rationales_at_most(server: Server, tmp_path: Path) -> None:
    [plan] = plan_build_requests(config_of(tmp_path), tmp_path / "build")
    assert plan.stage == "rationales"
    assert plan.rows == 2 * len(CAPTIONS)
    assert (plan.requests.low, plan.cached.value) == (plan.rows, 0)  # no two of them are one


def test_of_the_negatives_of_a_model_the_plan_expects_the_usual_share(server: Server, tmp_path: Path) -> None:
    config = config_of(tmp_path, negatives={"method": "llm", "types": ["replace-object"], "candidates": 2})
    plans = {plan.stage: plan for plan in plan_build_requests(config, tmp_path / "build")}
    assert plans["rationales"].rows == round(len(CAPTIONS) * (1 + 2 * KEPT_SHARE))


@pytest.mark.parametrize(
    ("change", "message"), [({"negatives": None}, "requires hard negatives"), ({"llm": None}, "requires a model")]
)
def test_rationales_without_negatives_or_a_model_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config_of(tmp_path, **change)


def test_a_model_that_sees_explains_the_rows_with_an_image(server: Server, tmp_path: Path) -> None:
    Image.new("RGB", (16, 16), "red").save(tmp_path / "0.png")
    sections = {"rationales": {"see_image": True}, "shards": {"images": False}}
    config = config_of(tmp_path, **sections)
    captions = tmp_path / "captions.jsonl"
    lines = [{"caption": text, "image": "0.png" if text == CAPTIONS[0] else ""} for text in CAPTIONS]
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [plan] = plan_build_requests(config, tmp_path / "build")
    assert plan.tokens_in.value > 0
    stage = build(config, tmp_path / "build", prefect=False)["stages"]["rationales"]
    assert stage["kept"] == 2  # the caption with an image, and its negative
    assert stage["rejected"] == {"no_image": stage["candidates"] - 2}
