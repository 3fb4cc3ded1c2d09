"""A local model behind the seam of servers: the same answers for the same seed, in any batch, from any folder."""

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from pairwright.datasets.errors import InputError, MissingResourceError, UsageError
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.documents import Document, with_documents
from pairwright.generators.llm.local.chat_template import RenderedPrompt, render_prompt
from pairwright.generators.llm.local.folder import find_local_model
from pairwright.generators.llm.local.model import LocalModel, local_client, local_settings
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm.output.plain_text import TextShape
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.session import Session
from tests.generators.llm.local.tiny_models import CHAT, make_model, make_tokenizer

pytest.importorskip("transformers", reason="the extra `train` is not installed")

TEXTS = ["A cat.", "A dog runs on the red mat.", "What is it?", "Two birds fly over water and a man rides beside."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "small")


def request(text: str, *, sample: int = 0, **parameters: Any) -> Request:
    return Request(
        (Message("system", "Answer."), Message("user", text)),
        "local:small",
        {"max_tokens": 12, **parameters},
        sample=sample,
    )


def ask_all(folder: Path, requests: Sequence[Request], most_rows: int = 64, **given: Any) -> list[Reply]:
    async def run() -> list[Reply]:
        model = LocalModel.open(find_local_model(f"local:{folder}"), most_rows=most_rows, **given)
        try:
            return list(await asyncio.gather(*map(model.ask, requests)))
        finally:
            await model.close()

    return asyncio.run(run())


def said(replies: Sequence[Reply]) -> list[str]:
    return [reply.text for reply in replies]


@pytest.mark.parametrize(
    "parameters", [{"temperature": 0}, {"temperature": 1.0, "seed": 3}, {"top_p": 0.8, "top_k": 9}]
)
def test_answers_do_not_depend_on_the_batch(folder: Path, parameters: dict[str, Any]) -> None:
    requests = [request(text, sample=sample, **parameters) for text in TEXTS for sample in (0, 1)]
    together, alone = ask_all(folder, requests), ask_all(folder, requests[::-1], most_rows=1)[::-1]
    assert said(together) == said(alone)


def test_another_seed_and_another_sample_give_other_answers_and_greedy_ones_are_the_same(folder: Path) -> None:
    [first, again, seeded, sampled] = ask_all(
        folder, [request("A cat."), request("A cat."), request("A cat.", seed=1), request("A cat.", sample=1)]
    )
    assert first.text == again.text
    assert len({first.text, seeded.text, sampled.text}) == 3
    greedy = ask_all(folder, [request("A cat.", temperature=0, seed=seed) for seed in (0, 1)])
    assert greedy[0].text == greedy[1].text


def test_greedy_is_what_transformers_itself_writes(folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    asked_for = request(TEXTS[1], temperature=0)
    [reply] = ask_all(folder, [asked_for])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    text = "<|system|>Answer.<|end|><|user|>" + TEXTS[1] + "<|end|><|assistant|>"
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    whole = model.generate(**ids, max_new_tokens=12, do_sample=False)[0, ids["input_ids"].shape[1] :]
    assert reply.text == tokenizer.decode(whole, skip_special_tokens=True)
    assert reply.usage.prompt_tokens == ids["input_ids"].shape[1]


def test_max_tokens_and_stop_end_an_answer_and_are_reported(folder: Path) -> None:
    [long, short] = ask_all(folder, [request("A cat.", seed=5), request("A cat.", seed=5, max_tokens=3)])
    assert long.text.startswith(short.text)
    assert (short.finish_reason, short.usage.completion_tokens) == ("length", 3)
    mark = long.text[4:6]
    [stopped] = ask_all(folder, [request("A cat.", seed=5, stop=[mark])])
    assert stopped.text == long.text[: long.text.index(mark)]
    assert stopped.finish_reason == "stop"


def test_an_end_token_ends_an_answer(folder: Path) -> None:
    replies = ask_all(folder, [request(text, seed=seed, max_tokens=60) for text in TEXTS for seed in range(8)])
    ended = [reply for reply in replies if reply.finish_reason == "stop"]
    assert ended
    assert all("<|end|>" not in reply.text for reply in replies)


def test_a_chat_without_a_template_is_read_plainly_and_ends_before_the_next_turn() -> None:
    prompt = render_prompt(request("A cat."), tokenizer := make_tokenizer(None))
    assert tokenizer.decode(prompt.tokens) == "Answer.\n\nUser: A cat.\n\nAssistant:"
    assert prompt.stops == ("\nUser:",)


def test_a_template_without_a_system_turn_has_its_text_before_the_users() -> None:
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT
    tokenizer = make_tokenizer(refusing)
    prompt = render_prompt(request("A cat."), tokenizer)
    assert tokenizer.decode(prompt.tokens) == "<|user|>Answer.\n\nA cat.<|end|><|assistant|>"


@pytest.mark.parametrize("template", [CHAT, None])
def test_the_places_of_documents_are_known(template: str | None) -> None:
    tokenizer = make_tokenizer(template)
    documents = [Document("a", "A red mat."), Document("b", "Two birds."), Document("c", "A red mat.")]
    chat = with_documents(request("A red mat.").messages, documents)
    prompt = render_prompt(Request(chat.messages, "m", documents=chat.places), tokenizer)
    assert [prompt.text[start:end] for start, end in prompt.letters] == [document.text for document in documents]


def test_a_template_that_changes_documents_is_refused() -> None:
    cutting = "{% for message in messages %}{{ message['content'][:60] }}{% endfor %}"
    chat = with_documents(request("A cat.").messages, [Document("a", "A red mat on the floor of a long room.")])
    with pytest.raises(RequestError, match="changes the text of documents"):
        render_prompt(Request(chat.messages, "m", documents=chat.places), make_tokenizer(cutting))


def test_the_context_of_a_batch_gets_the_places_of_its_documents(folder: Path) -> None:
    seen: list[list[str]] = []

    @contextmanager
    def around(model: Any, tokenizer: Any, prompts: Sequence[RenderedPrompt]) -> Any:
        seen.extend([prompt.text[start:end] for start, end in prompt.letters] for prompt in prompts)
        yield

    requests = []
    for texts in (["A dog."], ["Two birds.", "A man rides."]):
        chat = with_documents(request("What?").messages, [Document(text, text) for text in texts])
        requests.append(Request(chat.messages, "m", {"max_tokens": 2}, documents=chat.places))
    ask_all(folder, requests, around=around)
    assert sorted(seen) == [["A dog."], ["Two birds.", "A man rides."]]


@pytest.mark.parametrize(
    ("error", "is_of_row"),
    [
        pytest.param(RequestError("context_too_long"), True, id="no-room"),
        pytest.param(pytest.importorskip("torch").OutOfMemoryError(), True, id="no-memory"),
        pytest.param(UsageError("no such model"), False, id="no-use"),
    ],
)
def test_one_row_that_cannot_be_written_leaves_the_others_and_a_model_that_cannot_ends_the_run(
    folder: Path,
    error: Exception,
    is_of_row: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    @contextmanager
    def around(model: Any, tokenizer: Any, prompts: Sequence[RenderedPrompt]) -> Any:
        if any("birds" in prompt.text for prompt in prompts):
            raise error
        yield

    async def run() -> list[Reply | BaseException]:
        model = LocalModel.open(find_local_model(f"local:{folder}"), around=around)
        try:
            return await asyncio.gather(*(model.ask(request(text)) for text in TEXTS), return_exceptions=True)
        finally:
            await model.close()

    found = asyncio.run(run())
    wanted = RequestError if is_of_row else UsageError
    assert [isinstance(each, wanted) for each in found] == ["birds" in text or not is_of_row for text in TEXTS], found


def test_a_copied_and_renamed_folder_has_the_same_name_and_other_weights_another(folder: Path, tmp_path: Path) -> None:
    first = find_local_model(f"local:{folder}")
    shutil.copytree(folder, tmp_path / "moved")
    assert find_local_model(f"local:{tmp_path / 'moved'}").name == first.name
    assert str(folder) not in first.name
    other = find_local_model(f"local:{make_model(tmp_path / 'other', seed=1)}")
    assert other.fingerprint != first.fingerprint
    (tmp_path / "moved" / "chat_template.jinja").write_text("{{ messages }}")
    assert find_local_model(f"local:{tmp_path / 'moved'}").fingerprint != first.fingerprint


def test_a_session_keeps_its_answers_and_asks_nothing_twice(folder: Path, tmp_path: Path) -> None:
    model = find_local_model(f"local:{folder}")

    def step(text: str, _: int) -> LLMStep[str]:
        [answer] = yield from request_answers([request(text, seed=2)], TextShape("text"))
        return answer.raw

    def run() -> tuple[list[str | None], int]:
        with Session(local_settings(model), cache=tmp_path / "cache.sqlite", opened=local_client(model)) as session:
            done = [each.result for each in session.run(LLMRow(text, partial(step, text)) for text in TEXTS)]
            return done, session.totals().spent.requests

    first, paid = run()
    again, paid_again = run()
    assert first == again
    assert paid >= len(TEXTS)
    assert paid_again == 0


def test_unusable_models_are_reported_before_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="needs a model name"):
        find_local_model("local:")
    with pytest.raises(InputError, match="no such folder"):
        find_local_model(f"local:{tmp_path / 'nowhere'}")
    with pytest.raises(InputError, match=r"no config\.json"):
        find_local_model(f"local:{tmp_path}")
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(InputError, match="no weights"):
        find_local_model(f"local:{tmp_path}")
    monkeypatch.setattr("pairwright.generators.llm.local.folder.find_spec", lambda _: None)
    with pytest.raises(MissingResourceError, match=r"pip install 'pairwright\[train\]'"):
        find_local_model(f"local:{tmp_path}")


def test_a_folder_without_a_language_model_is_reported_in_one_line(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "torn")
    (tmp_path / "torn" / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match="cannot be loaded"):
        LocalModel.open(find_local_model(f"local:{tmp_path / 'torn'}"))


def test_unsupported_parameters_and_invalid_values_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="not support the parameter logit_bias"):
        ask_all(folder, [request("A cat.", logit_bias={})])
    with pytest.raises(UsageError, match="top_p"):
        ask_all(folder, [request("A cat.", top_p=2)])


def test_a_prompt_longer_than_its_context_is_a_rows_own_failure(tmp_path: Path) -> None:
    small = make_model(tmp_path / "small", context=16)
    with pytest.raises(RequestError) as failed:
        ask_all(small, [request("A cat. " * 50)])
    assert failed.value.code == "context_too_long"


def test_stopping_ends_waiting_requests_and_closing_those_in_generation(folder: Path) -> None:
    begun = Event()

    @contextmanager
    def around(*_: Any) -> Any:
        begun.set()
        yield

    async def run() -> list[Any]:
        model = LocalModel.open(find_local_model(f"local:{folder}"), most_rows=1, around=around)
        asking = [asyncio.ensure_future(model.ask(request(text, max_tokens=900))) for text in TEXTS]
        await asyncio.sleep(0)
        await asyncio.to_thread(begun.wait, 20)
        model.stop(RequestError("interrupted"))
        await model.close()
        return await asyncio.gather(*asking, return_exceptions=True)

    outcomes = asyncio.run(run())
    ended = [isinstance(each, RequestError) and each.code == "interrupted" for each in outcomes]
    assert sum(ended) >= len(TEXTS) - 1
