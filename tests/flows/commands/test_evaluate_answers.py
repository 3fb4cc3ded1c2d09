"""``pairwright evaluate answers``: answers judged by a server's model, in both orders."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

WORTH = {"worst": 2, "fair": 5, "best": 9}


def answer(request: ChatRequest) -> ServerAnswer:
    """Score an answer by its word, the first one a point higher; of "nothing" say nothing that can be read."""
    shown = request.user.partition("Assistant 1:")[2]
    if "nothing" in shown:
        return ServerAnswer("I would rather not say.")
    first, _, second = shown.partition("Assistant 2:")
    one, two = (next((worth for word, worth in WORTH.items() if word in text), 3) for text in (first, second))
    return ServerAnswer(f"{one + 1} {two}\nAssistant 1 came first.")


@pytest.fixture
def judge() -> Iterator[Server]:
    with serve_in_thread(ServerApp(answer=answer)) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": str(n),
            "image": f"{n}.jpg",
            "question": f"What {n}?",
            "reference": "fair",
            "context": "A cat.",
            "type": kind,
        }
        for n, kind in enumerate(["detail", "detail", "conversation", "conversation"])
    ]
    Path("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, said in (("one", ["best", "worst", "fair", "nothing"]), ("two", ["fair too"] * 4)):
        lines = (json.dumps({"id": str(n), "answer": text}) + "\n" for n, text in enumerate(said))
        Path(f"{name}.jsonl").write_text("".join(lines))
    return tmp_path


def called(*arguments: object, ok: bool = True) -> Any:
    call = ["evaluate", "answers", *map(str, arguments), "--data", "questions.jsonl"]
    done = CliRunner().invoke(app, call)
    assert (done.exit_code == 0) == ok, done.output
    return done


def test_scores_relative_to_the_reference_by_type_with_what_was_left_out(folder: Path, judge: Server) -> None:
    asking = ["--model", "m", "--base-url", judge.url, "--price", "1/1"]
    plan = json.loads(called("one.jsonl", "two.jsonl", *asking, "--dry-run", "--json").stdout)["plan"][0]
    # Two a question; an answer that is the reference itself is asked about once, since both orders are one request.
    assert round(plan["requests"]["value"]) == 15
    assert judge.stats()["requests"] == 0
    done = called("one.jsonl", "two.jsonl", *asking, "--json", "--html", "page.html")
    told = json.loads(done.stdout)
    one, two = told["models"]
    by = {(figure["part"], figure["measure"]): figure for figure in one["figures"]}
    # In both orders: 9.5 and 5.5; 2.5 and 5.5; 5.5 and 5.5; the fourth cannot be read.
    assert by["all", "relative score"]["value"] == pytest.approx((9.5 + 2.5 + 5.5) / (3 * 5.5))
    assert by["detail", "relative score"]["value"] == pytest.approx(12 / 11)
    assert by["conversation", "relative score"]["n"] == 1
    assert by["all", "order decides"]["value"] == pytest.approx(1 / 3)  # of equal answers the first one wins
    assert one["counts"] == {
        "questions have no score (unparsed) and are left out": 1,
        "judgements cannot be read": 2,
    }
    assert {figure["value"] for figure in two["figures"] if figure["measure"] == "relative score"} == {1.0}
    assert told["llm"]["requests"] == 15
    assert "one.jsonl: judgements cannot be read: 2." in done.stderr
    assert "relative score" in Path("page.html").read_text()
    assert judge.stats()["requests"] == 15
    again = json.loads(called("one.jsonl", "two.jsonl", *asking, "--json", "--html", "page.html").stdout)
    assert again["models"] == told["models"]
    assert again["llm"]["requests"] == 0


def test_failed_rows_are_written_next_to_the_page_or_else_next_to_the_questions(folder: Path, judge: Server) -> None:
    (folder / "data").mkdir()
    Path("questions.jsonl").rename(folder / "data" / "questions.jsonl")
    call = [
        "evaluate",
        "answers",
        "one.jsonl",
        "--data",
        "data/questions.jsonl",
        "--model",
        "m",
        "--base-url",
        judge.url,
    ]
    for options in ([], ["--html", "page.html"]):
        assert CliRunner().invoke(app, [*call, *options]).exit_code == 0
    assert sorted(str(path) for path in Path().rglob("*.failed.jsonl")) == [
        "data/questions.answers.failed.jsonl",
        "page.failed.jsonl",
    ]


def test_a_judge_is_needed_and_answers_to_all_questions(folder: Path) -> None:
    done = called("one.jsonl", ok=False)
    assert "--model" in str(done.exception)
    Path("one.jsonl").write_text('{"id": "0", "answer": "x"}\n')
    done = called("one.jsonl", "--model", "m", "--base-url", "http://127.0.0.1:9", ok=False)
    assert "no answer to 3 of 4 questions" in str(done.exception)


def test_a_llava_sees_the_images_and_answers_first(
    folder: Path, judge: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="a LLaVA needs torch")
    pytest.importorskip("peft", reason="the tiny models are beside the trainer's")
    from PIL import Image

    from pairwright.training.evaluation import image_answers as answering
    from pairwright.training.models.generative import ImageTextModel
    from tests.training.finetuning import tiny_vlms

    shorter = partial(answering.generate_answers, longest=6)
    monkeypatch.setattr(answering, "generate_answers", shorter)
    for n, colour in enumerate(["red", "blue", "white", "black"]):
        Image.new("RGB", (20, 30), colour).save(f"{n}.jpg")
    model = ImageTextModel.load(tiny_vlms.llava(Path("llava"))).eval()
    asking = ["--model", "m", "--base-url", judge.url, "--price", "1/1", "--batch-size", "3"]
    llava = json.loads(called("llava", "one.jsonl", *asking, "--json").stdout)["models"][0]
    assert llava["kind"] == "image-text"
    assert len(llava["judgements"]) == 4
    for n, judged in enumerate(llava["judgements"]):
        content = [{"type": "image", "image": Image.open(f"{n}.jpg")}, {"type": "text", "text": f"What {n}?"}]
        asked = [{"role": "user", "content": content}]
        inputs = model.processor.apply_chat_template(
            asked, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        said = model.answer(dict(inputs), most=6)[0, inputs["input_ids"].shape[1] :]
        assert judged["answer"] == str(model.processor.tokenizer.decode(said, skip_special_tokens=True)).strip()


def test_a_judge_that_sees_gets_the_image_and_questions_without_one_have_no_score(folder: Path, judge: Server) -> None:
    Image.new("RGB", (8, 8)).save("0.jpg")
    options = ["--model", "m", "--base-url", judge.url, "--see-image", "--json"]
    [model] = json.loads(called("two.jsonl", *options).stdout)["models"]
    assert model["counts"] == {"questions have no score (no_image) and are left out": 3}
    assert judge.stats()["requests"] == 2
