"""``pairwright evaluate choices``: a model, at a server or local, on captions and hard negatives of images."""

import base64
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import PairwrightError
from pairwright.filters.metrics.image_choices import yes_log_probability
from pairwright.generators.llm.client.messages import Reply, Usage
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.generators.prompts.book import PromptBook

Serve = Callable[[Callable[[ChatRequest], ServerAnswer]], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(serve_in_thread(ServerApp(answer=answer)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, colour in (("red", "red"), ("blue", "blue")):
        Image.new("RGB", (32, 32), colour).save(tmp_path / f"{name}.png")
    return tmp_path


def rows(folder: Path, *captions: str) -> Path:
    """Write rows of the red image in VALSE's layout, each with the negative "a blue cup"."""
    path = folder / "existence.json"
    found = {
        str(n): {"image_file": "red.png", "caption": text, "foil": f"not {text}", "linguistic_phenomena": "existence"}
        for n, text in enumerate(captions)
    }
    path.write_text(json.dumps(found))
    return path


def called(server: Server, data: Path, *more: str) -> Any:
    call = ["evaluate", "choices", "--data", str(data), "--model", "m", "--base-url", server.url, "--price", "1/1"]
    done = CliRunner().invoke(app, [*call, *more, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def figures(summary: Any) -> dict[str, float]:
    (model,) = summary["models"]
    return {one["measure"]: one["value"] for one in model["figures"] if one["part"] == "all"}


def colour_of_image(request: ChatRequest) -> str:
    """Return red or blue; empty without an image."""
    found = re.search(r"base64,([\w+/=]+)", json.dumps(request.body["messages"]))
    if found is None:
        return ""
    pixels = Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGB").tobytes()
    return "red" if pixels[0] > pixels[2] else "blue"


def choose(request: ChatRequest) -> ServerAnswer:
    """Know rows with "right", choose the first of those with "first", refuse those with "unclear"."""
    first, second = re.findall(r'\(\d\) "(.*)"', request.user)[:2]
    if "unclear" in first:
        return ServerAnswer("It is hard to say.")
    if "first" in first:
        return ServerAnswer("(1)")
    return ServerAnswer("(2)" if first.startswith("not") else "(1)") if second else ServerAnswer("")


def test_a_choice_is_asked_in_both_orders_and_the_order_bias_is_told(folder: Path, serve: Serve) -> None:
    server = serve(choose)
    data = rows(folder, "right one", "right two", "the first", "an unclear one")
    plan = called(server, data, "--dry-run")["plan"][0]
    assert round(plan["requests"]["value"]) == 8
    assert server.stats()["requests"] == 0
    summary = called(server, data)
    assert figures(summary) == {
        "accuracy": pytest.approx((1 + 1 + 0.5 + 0) / 4), "both orders": 0.5, "order decides": 0.25,
    }  # fmt: skip
    assert summary["models"][0]["counts"] == {"answers name no caption and are wrong": 2}
    assert summary["llm"]["requests"] == 8
    assert figures(called(server, data)) == figures(summary)
    assert server.stats()["requests"] == 8  # the second time from the cache
    assert called(server, data, "--limit", "2")["models"][0]["figures"][0]["n"] == 2


def test_the_probability_of_yes_is_given_with_and_without_the_prior_of_the_text(folder: Path, serve: Serve) -> None:
    # The model prefers what is said often: the negatives. With the prior removed it knows all groups.
    prior = {"a red cup": 0.2, "a blue cup": 0.9}

    def answer(request: ChatRequest) -> ServerAnswer:
        p, colour = prior[re.findall(r'"(.*)"', request.user)[0]], colour_of_image(request)
        if colour:
            p *= 1.0 if colour in request.user else 0.5
        return ServerAnswer("Yes", logprobs={"Yes": math.log(p * 0.9), " no": math.log((1 - p) * 0.9), "Maybe": -2.3})

    group = {"id": 0, "image_0": "red", "image_1": "blue", "caption_0": "a red cup", "caption_1": "a blue cup"}
    path = folder / "examples.jsonl"
    path.write_text(json.dumps(group))
    summary = called(serve(answer), path, "--method", "probability")
    # Red image: 0.2 against 0.45; blue image: 0.9 against 0.1. Without priors: 1 against 1/2 in both.
    assert figures(summary) == {
        "text": 0.0, "image": 1.0, "group": 0.0,
        "text (prior removed)": 1.0, "image (prior removed)": 1.0, "group (prior removed)": 1.0,
    }  # fmt: skip
    assert summary["llm"]["requests"] == 6  # four with an image, two texts without


def test_without_probabilities_a_line_says_what_to_do(folder: Path, serve: Serve) -> None:
    server = serve(lambda _: ServerAnswer("Yes"))
    call = ["evaluate", "choices", "--data", str(rows(folder, "a")), "--model", "m", "--base-url", server.url]
    done = CliRunner().invoke(app, [*call, "--method", "probability"])
    assert isinstance(done.exception, PairwrightError)
    assert "no_probabilities 1). Use --method choice." in str(done.exception)
    done = CliRunner().invoke(app, ["evaluate", "choices", "--data", "x.json"])
    assert "requires --model" in str(done.exception)


def test_a_missing_image_is_counted(folder: Path, serve: Serve) -> None:
    data = rows(folder, "right one", "right two")
    data.write_text(data.read_text().replace("red.png", "gone.png", 1))
    summary = called(serve(choose), data)
    assert summary["models"][0]["counts"] == {"rows have no answer (no_image) and are left out": 1}
    assert figures(summary)["accuracy"] == 1.0


def test_failed_rows_are_named_next_to_the_data(folder: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "valse").mkdir()
    data = rows(folder, "a right cup").rename(folder / "valse" / "existence.json")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    called(serve(choose), data, "--images", str(folder))
    assert (folder / "valse" / "existence.choices.failed.jsonl").is_file()
    assert [path.name for path in Path().iterdir() if "failed" in path.name] == []
    monkeypatch.chdir(folder / "valse")
    called(serve(choose), Path(), "--images", str(folder))
    assert (folder / "valse.choices.failed.jsonl").is_file()


def test_an_image_is_cropped_to_the_box_of_its_row(folder: Path, serve: Serve) -> None:
    picture = Image.new("RGB", (64, 32), "blue")
    picture.paste((255, 0, 0), (32, 0, 64, 32))
    picture.save(folder / "both.png")
    texts = {"true_caption": "right cup", "false_caption": "not right cup"}
    inside = {"image_path": "both.png", "bbox_x": 32, "bbox_y": 0, "bbox_w": 32, "bbox_h": 32, **texts}
    path = folder / "visual_genome_relation.json"
    path.write_text(json.dumps([inside, {**inside, "bbox_x": 64, "false_caption": "not left cup"}]))
    seen: list[str] = []

    def answer(request: ChatRequest) -> ServerAnswer:
        seen.append(colour_of_image(request))
        return choose(request)

    counts = called(serve(answer), path)["models"][0]["counts"]
    assert seen == ["red", "red"]
    assert counts["rows have no answer (no_image) and are left out"] == 1  # the box is outside the image


def test_a_plan_without_requests_says_why(folder: Path, serve: Serve) -> None:
    data = rows(folder, "right one")
    call = ["evaluate", "choices", "--data", str(data), "--model", "m", "--base-url", serve(choose).url, "--dry-run"]
    line = "caption-choice: no row leads to a request. Check the captions (are they in English?), the images and the options."
    assert line not in CliRunner().invoke(app, call).stdout
    data.write_text(data.read_text().replace("red.png", "gone.png"))
    assert line in CliRunner().invoke(app, call).stdout


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LLaVA with random weights whose tokenizer knows yes and no in several spellings."""
    pytest.importorskip("transformers", reason="the extra `train` is not installed")
    from tests.generators.llm.local.tiny_models import make_seeing_model

    return make_seeing_model(tmp_path_factory.mktemp("models") / "seeing", words=["Yes", " yes", "yes.", "No"])


def called_locally(model: Path, data: Path, *more: str) -> Any:
    call = ["evaluate", "choices", "--data", str(data), "--model", f"local:{model}", *more, "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output or done.exception
    return json.loads(done.stdout)


def yes_by_transformers(model: Path, caption: str, image: str = "") -> float:
    """Return log(p(yes) / (p(yes) + p(no))) over all spellings, from the logits behind the prompt."""
    import torch
    from transformers import AutoProcessor, LlavaForConditionalGeneration

    processor: Any = AutoProcessor.from_pretrained(model)
    network = LlavaForConditionalGeneration.from_pretrained(model).eval()
    asked = PromptBook().get("shows-caption").request({"caption": caption}, model="", row="")
    chat = [
        {
            "role": each.role,
            "content": [{"type": "image"}] * (each.role == "user" and bool(image))
            + [{"type": "text", "text": each.text}],
        }
        for each in asked.messages
    ]
    text = processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    given = {"images": [Image.open(image)]} if image else {}
    inputs = processor(text=[text], **given, add_special_tokens=False, return_tensors="pt")
    with torch.inference_mode():
        likely = torch.softmax(network(**inputs).logits[0, -1].double(), dim=-1)
    spelt = [processor.tokenizer.decode([token]).strip(" .").lower() for token in range(len(processor.tokenizer))]
    yes, no = (sum(float(likely[at]) for at, text in enumerate(spelt) if text == word) for word in ("yes", "no"))
    return math.log(yes / (yes + no))


def test_a_local_model_gives_the_exact_probability_of_yes(folder: Path, seeing: Path) -> None:
    data = rows(folder, "a red cup", "two dogs")
    summary = called_locally(seeing, data, "--method", "probability")
    (model,) = summary["models"]
    assert model["model"].startswith("local:llava@")
    assert set(figures(summary)) == {"accuracy", "accuracy (prior removed)"}
    for row in model["rows"]:
        for name, text, image in (
            ("caption", row["caption"], "red.png"), ("negative", row["negative"], "red.png"),
            ("caption_prior", row["caption"], ""), ("negative_prior", row["negative"], ""),
        ):  # fmt: skip
            assert row["scores"][name] == pytest.approx(yes_by_transformers(seeing, text, image), abs=1e-4), name
    assert summary["llm"]["requests"] == 8
    assert called_locally(seeing, data, "--method", "probability")["llm"]["requests"] == 0


def test_a_local_model_chooses_in_both_orders(folder: Path, seeing: Path) -> None:
    data = rows(folder, "a red cup", "two dogs")
    summary = called_locally(seeing, data, "--parameter", "max_tokens=4")
    assert set(figures(summary)) == {"accuracy", "both orders", "order decides"}
    assert summary["llm"]["requests"] == 4
    assert called_locally(seeing, data, "--dry-run")["plan"][0]["requests"]["value"] == 4


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ({"Yes": math.log(0.6), "No": math.log(0.2)}, math.log(0.75)),
        ({"Yes": math.log(0.3), " yes": math.log(0.3), "▁no": math.log(0.2)}, math.log(0.75)),
        ({"No": -0.1}, math.log(1e-9)),
        ({"Maybe": -0.1}, None),
        (None, None),
    ],
)
def test_spellings_of_yes_and_no_are_added_up(top: dict[str, float] | None, expected: float | None) -> None:
    content = None if top is None else [{"top_logprobs": [{"token": t, "logprob": p} for t, p in top.items()]}]
    body = json.dumps({"choices": [{"logprobs": {"content": content}}]}).encode()
    found = yes_log_probability(Reply("", "stop", "", Usage(0, 0), "m", raw=body))
    assert found is None if expected is None else found == pytest.approx(expected)
