"""Local models that read images: a LLaVA with random weights, which the test builds."""

import asyncio
import base64
import io
import json
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture

from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.local.chat_template import render_prompt
from pairwright.generators.llm.local.folder import find_local_model
from pairwright.generators.llm.local.model import LocalModel, load_local_model
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES
from tests.cli.generate.test_annotations import call
from tests.generators.llm.local.tiny_models import CHAT, make_model, make_seeing_model

pytest.importorskip("transformers", reason="the extra `train` is not installed")

IMAGES = MessageImages()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_seeing_model(tmp_path_factory.mktemp("models") / "seeing")


def png(colour: str, size: tuple[int, int] = (40, 30)) -> bytes:
    out = io.BytesIO()
    picture = Picture.new("RGB", size, colour)
    picture.paste("white", (0, 0, size[0] // 2, size[1] // 2))
    picture.save(out, "PNG")
    return out.getvalue()


def looking(*colours: str, text: str = "What is in the picture?", sample: int = 0, **parameters: Any) -> Request:
    images = tuple(IMAGES.of(png(colour)) for colour in colours)
    given = {"max_tokens": 12, "temperature": 0, **parameters}
    return Request((Message("system", "Answer."), Message("user", text, images)), "m", given, sample=sample)


def ask_all(folder: Path, requests: Sequence[Request], most_rows: int = 64) -> list[Reply]:
    async def run() -> list[Reply]:
        model = LocalModel.open(find_local_model(f"local:{folder}"), most_rows=most_rows)
        try:
            return list(await asyncio.gather(*map(model.ask, requests)))
        finally:
            await model.close()

    return asyncio.run(run())


def texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text for reply in replies]


def test_the_answer_is_what_transformers_writes_for_the_image(folder: Path) -> None:
    model, tokenizer, processor = load_local_model(find_local_model(f"local:{folder}"))
    request = looking("red")
    chat = [
        {"role": "system", "content": [{"type": "text", "text": "Answer."}]},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is in the picture?"}]},
    ]
    text = processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    url = request.messages[1].images[0].data_url()
    picture = Picture.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    inputs = processor(text=[text], images=[picture], add_special_tokens=False, return_tensors="pt")
    written = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    [reply] = ask_all(folder, [request])
    assert reply.text == tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert reply.usage.prompt_tokens == inputs["input_ids"].shape[1]


def test_another_image_gives_another_answer(folder: Path) -> None:
    replies = ask_all(folder, [looking(colour) for colour in ("red", "blue", "black", "yellow")])
    assert len(set(texts(replies))) > 1


def test_answers_do_not_depend_on_the_batch_and_texts_go_with_images(folder: Path) -> None:
    requests = [
        looking("red", temperature=1, seed=5),
        looking("blue", text="What is it? Look at the door, the mat and the cat.", temperature=1, seed=5),
        looking("green", sample=1, temperature=1, seed=5),
        Request((Message("user", "What is in the picture?"),), "m", {"max_tokens": 12, "seed": 5}),
        looking("red", "blue", temperature=1, seed=5),
    ]
    assert texts(ask_all(folder, requests)) == texts(ask_all(folder, requests, most_rows=1))


@pytest.mark.parametrize("template", [None, CHAT])
def test_without_a_template_for_parts_the_image_token_stands_before_the_text(
    template: str | None, tmp_path: Path
) -> None:
    folder = make_seeing_model(tmp_path / "seeing", template=template)
    _, tokenizer, processor = load_local_model(find_local_model(f"local:{folder}"))
    prompt = render_prompt(looking("red"), tokenizer, processor)
    assert "<image>What is in the picture?" in prompt.text
    assert prompt.tokens.count(tokenizer.convert_tokens_to_ids("<image>")) == 4
    [reply] = ask_all(folder, [looking("red")])
    assert reply.usage.completion_tokens > 0


def test_a_checkpoint_that_cannot_see_ends_the_run_and_says_so(tmp_path: Path) -> None:
    text_only = make_model(tmp_path / "small")
    assert not find_local_model(f"local:{text_only}").sees
    with pytest.raises(UsageError, match="reads text only"):
        ask_all(text_only, [looking("red")])


def test_a_web_address_is_not_opened(folder: Path) -> None:
    image = MessageImages(urls=True).read("https://example.org/a.jpg")
    with pytest.raises(UsageError, match="no web addresses"):
        ask_all(folder, [Request((Message("user", "What?", (image,)),), "m")])


def test_pixels_that_cannot_be_decoded_are_a_failure_of_their_row(folder: Path) -> None:
    data = bytearray(png("red", (300, 300)))
    middle = data.index(b"IDAT") + 20
    data[middle : middle + 40] = bytes(40)
    broken = MessageImages(edge=100).of(bytes(data))
    with pytest.raises(RequestError) as caught:
        ask_all(folder, [Request((Message("user", "What?", (broken,)),), "m")])
    assert caught.value.code == "bad_image"


@pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")
def test_a_processor_that_needs_torchvision_says_so(folder: Path, tmp_path: Path) -> None:
    """Qwen-VL's processor does, for videos."""
    copy = tmp_path / "qwen"
    shutil.copytree(folder, copy)
    for name in ("processor_config.json", "config.json"):
        data = json.loads((copy / name).read_text())
        data |= (
            {"processor_class": "Qwen2VLProcessor"} if name == "processor_config.json" else {"model_type": "qwen2_vl"}
        )
        (copy / name).write_text(json.dumps(data))
    with pytest.raises(MissingResourceError, match="torchvision"):
        load_local_model(find_local_model(f"local:{copy}"))


def test_the_command_asks_a_local_model_with_images(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random weights write no captions, so all answers are rejected for their form; none is for its image."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for colour in ("red", "blue"):
        (tmp_path / "photos" / f"{colour}.png").write_bytes(png(colour))
    asked = ("generate", "captions", "photos", "--parameter", "max_tokens=8", "--out", "c.jsonl", "--json")
    result = json.loads(call(*asked, "--model", f"local:{folder}"))
    assert result["llm"]["requests"] >= 2
    assert result["types"]["short-caption"]["rejected"].keys() <= OUTPUT_ERROR_CODES.keys()
    with pytest.raises(UsageError, match="reads text only"):
        call(*asked, "--model", f"local:{make_model(tmp_path / 'small')}")
