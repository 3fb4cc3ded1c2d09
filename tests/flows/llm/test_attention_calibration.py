"""A local teacher with calibrated attention: what it attends to, what it writes, what is kept, and what is refused."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairwright.cli.options.context import ContextOptions, add_context
from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.records import Pair, pair_key
from pairwright.flows.commands.generate import GenerateRequest
from pairwright.flows.commands.generate_with_model import run_llm_generator
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm.attention_calibration import AttentionCalibration
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.generators.llm.client.messages import Message
from pairwright.generators.llm.client.messages import Request as Asked
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.documents import Document, with_documents
from pairwright.generators.llm.local.chat_template import RenderedPrompt, render_prompt
from pairwright.generators.llm.local.folder import LocalFolder
from pairwright.generators.llm.local.generation import GenerationRequest, TextGenerator
from pairwright.generators.llm.local.model import load_local_model
from pairwright.indexes.building.build import build_index_from_pairs
from tests.generators.llm.local.tiny_models import make_model

pytest.importorskip("transformers", reason="the extra `train` is not installed")

CAPTIONS = ["A cat sits on a red mat.", "Two birds fly over water.", "A man rides a horse beside the road."]
ASKED = CAPTIONS[:2]
TEXTS = ["A cat lies on a blue mat.", "A bird.", "A woman and a man ride two horses over the grass."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "small", context=4096)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, Any]:
    return load_local_model(LocalFolder("small", folder, "llama"))[:2]


def prompt(tokenizer: Any, question: str, texts: Sequence[str]) -> RenderedPrompt:
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    chat = with_documents([Message("user", question)], documents)
    return render_prompt(Asked(chat.messages, "small", documents=chat.places), tokenizer)


def test_an_answer_is_written_while_each_document_has_the_share_that_its_relevance_asks_for(
    loaded: tuple[Any, Any],
) -> None:
    import torch

    from pairwright.training.attention.calibration import Calibration, attention_shares
    from pairwright.training.attention.decoder import DocumentDecoder
    from pairwright.training.attention.prompts import DocumentPrompt, tokenize_prompt

    model, tokenizer = loaded
    prompts = [prompt(tokenizer, "What is in it?", TEXTS), prompt(tokenizer, "Who rides, and where to?", TEXTS[::-1])]
    how = AttentionCalibration(temperature=0.01)  # so that every document has a share to be seen
    held: list[Any] = []

    @contextmanager
    def around(model: Any, tokenizer: Any, prompts: Sequence[RenderedPrompt]) -> Iterator[object]:
        with how.around(model, tokenizer, prompts) as seen:
            held.append(seen)
            yield seen

    TextGenerator(model, tokenizer, around=around).write(
        [GenerationRequest(each, 3, temperature=0) for each in prompts]
    )
    (seen,) = held
    for row, each in enumerate(prompts):
        asked = DocumentPrompt(each.text, each.letters, each.marks)
        relevances = DocumentDecoder(model, tokenizer).relevances([asked], Calibration(temperature=0.01))[0]
        tokens = tokenize_prompt(asked, tokenizer).layout.tokens
        wanted = torch.from_numpy(attention_shares(relevances, tokens, 0.01)).exp().float()
        first, last = (seen.masses[layer][row] for layer in (0, 1))
        assert torch.allclose(last / last.sum(-1, keepdim=True), wanted.expand_as(last), atol=1e-5)
        assert not torch.allclose(first / first.sum(-1, keepdim=True), wanted.expand_as(first), atol=1e-2)


def test_answers_by_calibrated_attention_are_others_and_the_model_is_left_as_it_was(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    batch = [
        GenerationRequest(prompt(tokenizer, question, TEXTS), 12, temperature=0)
        for question in ("What is in it?", "Who?")
    ]
    plain = TextGenerator(model, tokenizer).write(batch)
    calibrated = TextGenerator(model, tokenizer, around=AttentionCalibration().around).write(batch)
    alone = [TextGenerator(model, tokenizer, around=AttentionCalibration().around).write([each])[0] for each in batch]
    assert calibrated == alone
    assert all(one.text != other.text for one, other in zip(plain, calibrated, strict=True))
    assert TextGenerator(model, tokenizer).write(batch) == plain


def test_prompts_without_documents_are_written_as_they_are(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    wanted = [GenerationRequest(prompt(tokenizer, "What is in it?", []), 8, temperature=0)]
    with AttentionCalibration().around(model, tokenizer, [each.prompt for each in wanted]) as seen:
        assert seen is None
    plain = TextGenerator(model, tokenizer).write(wanted)
    assert TextGenerator(model, tokenizer, around=AttentionCalibration().around).write(wanted) == plain


def test_a_prompt_without_room_for_the_dummy_is_told_so(loaded: tuple[Any, Any], monkeypatch: Any) -> None:
    model, tokenizer = loaded
    asked = prompt(tokenizer, "What is in it?", ["a b c d e", "a", "a b c d e"])
    monkeypatch.setattr(model.config, "max_position_embeddings", len(asked.tokens))
    with pytest.raises(RequestError, match="context"), AttentionCalibration().around(model, tokenizer, [asked]):
        pass


def run(folder: Path, tmp_path: Path, reading: ContextOptions) -> tuple[int, bytes]:
    """Return how many answers were written, and the rows."""
    captions, out = tmp_path / "captions.jsonl", tmp_path / "out.jsonl"
    captions.write_text("".join(json.dumps({"caption": text}) + "\n" for text in ASKED))
    section = LLMSection(model=f"local:{folder}", parameters={"max_tokens": 2})
    asking = add_context(ModelAccess(section, tmp_path / "cache.sqlite", seed=3), reading, out)
    read = ReadOptions(input=str(captions), verify_images="off")
    request = GenerateRequest("llm-conversations", {"types": ["detail"]}, 3, read, "", out)
    result = run_llm_generator(request, asking, lambda _: None, lambda _: None)
    return int(result["llm"]["requests"]), out.read_bytes()


def test_calibrated_answers_are_asked_for_and_kept_apart(folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    build_index_from_pairs(lambda: [[Pair(pair_key("", "", text), text) for text in [*CAPTIONS, *TEXTS]]], index)
    plain = run(folder, tmp_path, ContextOptions(3, index))
    calibrated = run(folder, tmp_path, ContextOptions(3, index, calibrate=True))
    assert min(plain[0], calibrated[0]) >= len(ASKED)
    assert run(folder, tmp_path, ContextOptions(3, index)) == (0, plain[1])
    assert run(folder, tmp_path, ContextOptions(3, index, calibrate=True)) == (0, calibrated[1])


def test_rows_tell_the_calibration_and_without_it_nothing_of_it(folder: Path, tmp_path: Path) -> None:
    asking = ModelAccess(LLMSection(model=f"local:{folder}"), tmp_path / "cache.sqlite")
    reading = ContextOptions(3, tmp_path, calibrate=True)
    assert asking.local is not None
    assert asking.settings().cache_endpoint == f"local:{asking.local.fingerprint}"
    told = add_context(asking, reading, tmp_path / "out.jsonl").settings().cache_endpoint
    assert told == f"local:{asking.local.fingerprint}+calibrated-linear-t5e-05-last-half"
    softer = add_context(asking, replace(reading, temperature=0.5), tmp_path / "out.jsonl")
    assert softer.settings().cache_endpoint.endswith("-t0.5-last-half")


def test_a_model_that_cannot_be_calibrated_ends_the_run_in_one_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import LlamaForCausalLM

    index = tmp_path / "index"
    build_index_from_pairs(lambda: [[Pair(pair_key("", "", text), text) for text in [*CAPTIONS, *TEXTS]]], index)
    # As models do that have attention functions of their own.
    monkeypatch.setattr(LlamaForCausalLM, "set_attn_implementation", lambda *_: None)
    with pytest.raises(UsageError, match="LlamaForCausalLM does not use transformers' attention") as error:
        run(folder, tmp_path, ContextOptions(3, index, calibrate=True))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("model", "reading", "why"),
    [
        ("local:small", ContextOptions(calibrate=True), "--context N and --index FOLDER"),
        ("gpt-4o-mini", ContextOptions(3, Path("index"), calibrate=True), "local:FOLDER"),
        ("local:small", ContextOptions(3, Path("index"), temperature=1.0), "requires --calibrate"),
        ("local:small", ContextOptions(3, Path("index"), calibrate=True, temperature=0.0), "above 0"),
    ],
)
def test_calibration_is_refused_where_there_is_nothing_to_calibrate(
    model: str, reading: ContextOptions, why: str, tmp_path: Path
) -> None:
    asking = ModelAccess(LLMSection(model=model), tmp_path / "cache.sqlite")
    with pytest.raises(UsageError, match=why):
        add_context(asking, reading, tmp_path / "out.jsonl")
