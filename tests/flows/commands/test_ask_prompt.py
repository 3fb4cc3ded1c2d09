"""A prompt of the user's, asked about every pair: a line a pair, in order, with what it read written beside."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.records import Pair, pair_key
from pairwright.flows.commands.ask_prompt import PromptRequest, ask_prompt, plan_prompt
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm.context import Context, context_record_path
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.indexes.building.build import build_index_from_pairs

CAPTIONS = ["A cat sits on a red mat.", "Two birds fly over water.", "A man rides a horse."]
RULES = [
    {"contains": "birds", "refusal": "I can't help with that."},
    {"contains": "Document [1]", "text": "It is like the others."},
    {"contains": "cat", "text": "A pet at rest."},
    {"contains": "horse", "text": "A ride."},
]
PROMPT = "version: 1\nabout: A title.\nvalues: {caption: the caption}\nsystem: Give a title.\nuser: '{{ caption }}'\nanswer: text\ntypical: A short title.\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(rules=RULES))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def request_(tmp_path: Path) -> PromptRequest:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "title.yaml").write_text(PROMPT)
    captions = tmp_path / "captions.jsonl"
    captions.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return PromptRequest("title", ReadOptions(input=str(captions), verify_images="off"), tmp_path / "out.jsonl")


def asking(folder: Path, context: Context | None = None) -> ModelAccess:
    section = LLMSection.model_validate({"model": "small", "prompts": str(folder / "prompts")})
    return ModelAccess(section, folder / "cache.sqlite", context=context)


def rows_of(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_pair_has_a_line_kept_or_rejected_and_a_second_run_asks_nothing(
    server: Server, request_: PromptRequest, tmp_path: Path
) -> None:
    result = ask_prompt(request_, asking(tmp_path), lambda _: None, lambda _: None)
    rows = rows_of(request_.out)
    assert [row["caption"] for row in rows] == CAPTIONS
    assert [row["reason"] for row in rows] == ["", "refused", ""]
    assert rows[0]["text"] == "A pet at rest."
    assert rows[0]["prompt"].startswith("title@")
    assert (result["kept"], result["rejected"]) == (2, {"refused": 1})
    first, before = request_.out.read_bytes(), server.stats()["requests"]
    ask_prompt(request_, asking(tmp_path), lambda _: None, lambda _: None)
    assert request_.out.read_bytes() == first
    assert server.stats()["requests"] == before


def test_with_context_a_server_is_sent_the_documents_too(
    server: Server, request_: PromptRequest, tmp_path: Path
) -> None:
    build_index_from_pairs(lambda: [[Pair(pair_key("", "", text), text) for text in CAPTIONS]], tmp_path / "index")
    context = Context(tmp_path / "index", 1, context_record_path(request_.out))
    ask_prompt(request_, asking(tmp_path, context), lambda _: None, lambda _: None)
    assert "It is like the others." in [row["text"] for row in rows_of(request_.out)]
    told = rows_of(context_record_path(request_.out))
    assert [each["row"] for each in told] == [row["key"] for row in rows_of(request_.out)]


def test_a_plan_sends_nothing(server: Server, request_: PromptRequest, tmp_path: Path) -> None:
    assert plan_prompt(request_, asking(tmp_path)).requests.low == len(CAPTIONS)
    assert server.stats()["requests"] == 0


def test_a_prompt_that_asks_for_more_than_a_pair_gives_is_refused(request_: PromptRequest, tmp_path: Path) -> None:
    text = PROMPT.replace("{caption: the caption}", "{mood: a mood}").replace("caption", "mood")
    (tmp_path / "prompts" / "title.yaml").write_text(text)
    with pytest.raises(UsageError, match="asks for mood"):
        plan_prompt(request_, asking(tmp_path))


def test_a_model_that_sees_gets_the_image_and_pairs_without_one_are_rejected(
    server: Server, request_: PromptRequest, tmp_path: Path
) -> None:
    Image.new("RGB", (512, 512), "red").save(tmp_path / "cat.png")
    (tmp_path / "bad.png").write_bytes(b"no image")
    images = ["cat.png", "bad.png", ""]
    captions = Path(str(request_.read.input))
    lines = [{"caption": text, "image": image} for text, image in zip(CAPTIONS, images, strict=True)]
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    seeing = replace(request_, see_image=True)
    result = ask_prompt(seeing, asking(tmp_path), lambda _: None, lambda _: None)
    assert [row["reason"] for row in rows_of(request_.out)] == ["", "no_image", "no_image"]
    assert (result["kept"], result["rejected"]) == (1, {"no_image": 2})
    texts_only = plan_prompt(request_, asking(tmp_path)).tokens_in.value / len(CAPTIONS)
    (tmp_path / "cache.sqlite").unlink()
    assert plan_prompt(seeing, asking(tmp_path)).tokens_in.value > texts_only + 80  # those of the image
