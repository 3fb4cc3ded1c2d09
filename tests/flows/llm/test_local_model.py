"""A generator that asks a model on this machine: rows, cache, plan, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pairwright.cli.options.context import ContextOptions, add_context
from pairwright.cli.options.model import ModelOptions
from pairwright.cli.options.model_runs import bill_lines, plan_lines
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.records import Pair, pair_key
from pairwright.flows.commands.generate import GenerateRequest
from pairwright.flows.commands.generate_with_model import plan_llm_generator, run_llm_generator
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.indexes.building.build import build_index_from_pairs
from tests.generators.llm.local.tiny_models import make_model

pytest.importorskip("transformers", reason="the extra `train` is not installed")

CAPTIONS = ["A cat sits on a red mat.", "Two birds fly over water.", "A man rides a horse beside the road."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "small", context=4096)


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return path


def asking(model: Path, folder: Path, **section: Any) -> ModelAccess:
    given = {"parameters": {"max_tokens": 6}, **section}
    return ModelAccess(LLMSection(model=f"local:{model}", **given), folder / "cache.sqlite", seed=3)


def request(captions: Path) -> GenerateRequest:
    read = ReadOptions(input=str(captions), verify_images="off")
    return GenerateRequest("llm-conversations", {"types": ["detail"]}, 3, read, "", captions.parent / "out.jsonl")


def run(captions: Path, model: Path, **section: Any) -> dict[str, Any]:
    how = asking(model, captions.parent, **section)
    return run_llm_generator(request(captions), how, lambda _: None, lambda _: None)


def test_every_caption_is_answered_and_a_moved_model_answers_from_the_cache(
    captions: Path, model: Path, tmp_path: Path
) -> None:
    result = run(captions, model)
    first = (tmp_path / "out.jsonl").read_bytes()
    assert result["captions"] == len(CAPTIONS)
    assert result["llm"]["requests"] >= len(CAPTIONS)
    assert result["llm"]["cost"] == 0
    assert result["llm"]["model"].startswith("local:llama@")
    assert str(model) not in json.dumps(result["llm"]) + first.decode()
    moved = shutil.copytree(model, tmp_path / "elsewhere")
    assert run(captions, moved)["llm"]["requests"] == 0
    assert (tmp_path / "out.jsonl").read_bytes() == first
    assert "answers written" in bill_lines(result)[0]


def test_rows_read_the_nearest_captions_and_which_is_written_beside_them(
    captions: Path, model: Path, tmp_path: Path
) -> None:
    pairs = [Pair(pair_key("", "", text), text) for text in [*CAPTIONS, "A cat on a blue mat.", "A horse and a man."]]
    build_index_from_pairs(lambda: [pairs], tmp_path / "index")

    def given(count: int) -> ModelAccess:
        return add_context(asking(model, tmp_path), ContextOptions(count, tmp_path / "index"), tmp_path / "out.jsonl")

    def run_with(count: int) -> int:
        result = run_llm_generator(request(captions), given(count), lambda _: None, lambda _: None)
        return int(result["llm"]["requests"])

    hows = (asking(model, tmp_path), given(2))
    plain, reading = (plan_llm_generator(request(captions), how, lambda _: None) for how in hows)
    assert reading.tokens_in.value > plain.tokens_in.value
    assert run_with(2) >= len(CAPTIONS)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    told = [json.loads(line) for line in (tmp_path / "out.context.jsonl").read_text().splitlines()]
    assert [each["row"] for each in told] == [row["key"] for row in rows]
    assert [each["query"] for each in told] == CAPTIONS
    assert [document["rank"] for document in told[0]["documents"]] == [1, 2]
    assert told[0]["documents"][0]["key"] == pairs[3].key
    assert run_with(2) == 0
    assert run_with(1) >= len(CAPTIONS)


def test_context_and_index_go_together(model: Path, tmp_path: Path) -> None:
    how = asking(model, tmp_path)
    assert add_context(how, ContextOptions(), tmp_path / "out.jsonl") is how
    with pytest.raises(UsageError, match="require each other"):
        add_context(how, ContextOptions(3), tmp_path / "out.jsonl")
    with pytest.raises(UsageError, match="require each other"):
        add_context(how, ContextOptions(index=tmp_path), tmp_path / "out.jsonl")


def test_a_plan_tells_tokens_and_no_cost(captions: Path, model: Path, tmp_path: Path) -> None:
    plan = plan_llm_generator(request(captions), asking(model, tmp_path), lambda _: None)
    assert plan.requests.low == len(CAPTIONS)
    assert plan.tokens_in.value > 0
    assert not plan.unpriced
    row = plan_lines([plan])[1]
    assert row.split()[-2:] == ["none", "unknown"]


@pytest.mark.parametrize(
    "option", [{"base_url": "http://localhost:1/v1"}, {"batch": True}, {"max_cost": 1.0}, {"structured": "tool"}]
)
def test_what_only_servers_know_is_refused_with_a_local_model(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="local:small"):
        ModelOptions(model="local:small", **option).section()


def test_a_model_that_is_not_there_is_told_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        run(tmp_path / "missing.jsonl", tmp_path / "no-model")
