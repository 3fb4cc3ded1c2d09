"""``pairwright generate mistakes``: a scripted model that sees ColorShape images errs, and a judge knows the truth."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.colorshape.corpus import CorpusSpec, make_sample, write_corpus
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.scenes import Scene
from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.images.loading import open_image
from pairwright.filters.validation.model_mistakes import REASONS
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

Corpus = tuple[Path, dict[bytes, Scene]]
Errs = Callable[[str], str]  # the text that a model chooses between -> how it is mistaken: "", "content", "position"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Captioned images, and the scene of each image by its bytes."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, CorpusSpec(pairs=36, shard_size=36, seed=5))
    lines, scenes = [], {}
    for one in (make_sample(5, index) for index in range(36)):
        image = f"00000.tar::{one.key}.jpg"
        scenes[open_image(f"{folder}/{image}")] = one.scene
        lines.append({"image": image, "caption": one.captions[0], "captions": list(one.captions[1:])})
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder, scenes


def shown_image(request: ChatRequest) -> bytes:
    [url] = [
        part["image_url"]["url"]
        for part in list(request.messages())[-1]["content"]
        if isinstance(part, dict) and part["type"] == "image_url"
    ]
    return base64.b64decode(url.partition(",")[2])


@contextmanager
def models(corpus: Corpus, errs: Errs) -> Iterator[Server]:
    """Serve ``vlm``, which is mistaken about some texts, and ``judge``, which is not."""
    folder, scenes = corpus
    captions = {json.loads(line)["caption"] for line in (folder / "captions.jsonl").read_text().splitlines()}

    def answer(request: ChatRequest) -> ServerAnswer:
        scene = scenes[shown_image(request)]
        texts = [json.loads(line.partition(" ")[2]) for line in request.user.strip().splitlines()]
        right = [at for at, text in enumerate(texts, 1) if judge(text, scene) is OracleVerdict.TRUE]
        if request.model == "judge":
            return ServerAnswer({0: "neither", 1: f"({right[0]})" if right else "", 2: "both"}[len(right)])
        how = errs("|".join(sorted(texts)))
        caption = 1 if texts[0] in captions else 2
        return ServerAnswer({"": f"({caption})", "content": f"({3 - caption})", "position": "(1)"}[how])

    with serve_in_thread(ServerApp(answer=answer)) as server:
        yield server


def drawn(text: str) -> str:
    """Err about a third of the rows, in either way."""
    return ("content", "position", "", "", "", "")[blake2b(text.encode(), digest_size=2).digest()[0] % 6]


def called(*arguments: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["generate", "mistakes", *map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.output


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_kept_are_the_negatives_that_the_model_chooses_in_both_orders_and_the_judge_finds_false(
    corpus: Corpus, tmp_path: Path
) -> None:
    folder, scenes = corpus
    out = tmp_path / "hard.jsonl"
    with models(corpus, drawn) as server:
        call = [folder / "captions.jsonl", "--model", "vlm", "--base-url", server.url, "--out", out, "--per-type", 4]
        summary = called(*call, "--judge-model", "judge")
        paid = server.stats()["requests"]
        first = out.read_bytes()
        again = called(*call, "--judge-model", "judge")
        assert server.stats()["requests"] == paid
    assert out.read_bytes() == first
    assert again["by"]["mistakes"]["requests"] == again["by"]["judge"]["requests"] == 0
    rows = rows_of(out)
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_reason.setdefault(row["reason"], []).append(row)
    assert by_reason.keys() >= {"", "model_correct", "order_dependent"}
    for row in rows:
        if row["reason"] in {"", *REASONS}:
            how = drawn("|".join(sorted((row["caption"], row["negative"]))))
            scene = scenes[open_image(row["image"])]
            assert judge(row["caption"], scene) is OracleVerdict.TRUE
            if row["reason"] == "":
                assert how == "content"
                assert judge(row["negative"], scene) is not OracleVerdict.TRUE
                assert (row["scores"]["mistake"], row["scores"]["judge"]) == (1.0, 1.0)
            else:
                assert row["scores"]["mistake"] == {"model_correct": 0.0, "order_dependent": 0.5}[row["reason"]]
                assert how != "content"
    mistakes = summary["by"]["mistakes"]
    # One request a row, and a second one after a wrong choice.
    wrong = mistakes["kept"] + mistakes["rejected"]["order_dependent"]
    assert mistakes["requests"] == mistakes["answered"] + wrong
    assert mistakes["accuracy"] == round(mistakes["rejected"]["model_correct"] / mistakes["answered"], 4)
    assert 0.3 < mistakes["chose_first"] < 0.7
    assert summary["by"]["judge"]["rows"] == mistakes["kept"]
    assert summary["kept"] + sum(summary["rejected"].values()) == summary["in"]


def test_a_preference_for_a_position_is_no_mistake(corpus: Corpus, tmp_path: Path) -> None:
    folder, _ = corpus
    scored = []
    with models(corpus, lambda _: "position") as server:
        options = ["--model", "vlm", "--base-url", server.url, "--out", tmp_path / "hard.jsonl"]
        for seed in range(12):
            summary = called(folder / "captions.jsonl", *options, "--seed", seed, code=3)
            assert summary["by"]["mistakes"]["rejected"].keys() == {"model_correct", "order_dependent"}
            scored += [row for row in rows_of(tmp_path / "hard.jsonl") if row["scores"].get("mistake") is not None]
    assert {row["scores"]["chose_first"] for row in scored} == {1.0}
    # The orders are balanced: of a model without an opinion, half of the first answers are right.
    right = sum(row["scores"]["mistake"] == 0 for row in scored) / len(scored)
    assert abs(right - 0.5) < 2 * (0.25 / len(scored)) ** 0.5


def test_without_a_judge_a_review_is_suggested_and_true_negatives_are_left_to_it(
    corpus: Corpus, tmp_path: Path
) -> None:
    folder, _ = corpus
    rows = [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]
    true = [
        {"id": str(at), "image": row["image"], "caption": row["caption"], "negative": row["captions"][0]}
        for at, row in enumerate(rows)
        if row["captions"]
    ]
    given, out = folder / "true.jsonl", tmp_path / "hard.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in true))
    with models(corpus, lambda _: "content") as server:
        call = [given, "--model", "vlm", "--base-url", server.url, "--out", out]
        done = CliRunner().invoke(app, ["generate", "mistakes", *map(str, call)], catch_exceptions=False)
        assert f"pairwright review {out}" in done.stdout
        assert f"vlm: {len(true)} of {len(true)} negatives chosen in both orders" in done.stdout
        summary = called(*call, "--judge-model", "judge", code=3)
    assert summary["by"]["judge"]["rejected"]["true_of_image"] == len(true)


def test_rows_about_which_the_judge_is_undecided_are_rejected_and_did_not_fail(corpus: Corpus, tmp_path: Path) -> None:
    folder, _ = corpus
    with serve_in_thread(ServerApp(answer=mistaken_then_undecided(corpus))) as server:
        call = [folder / "captions.jsonl", "--model", "vlm", "--base-url", server.url, "--out", tmp_path / "hard.jsonl"]
        done = CliRunner().invoke(
            app, ["generate", "mistakes", *map(str, call), "--judge-model", "judge"], catch_exceptions=False
        )
    assert done.exit_code == 3
    reasons = {row["reason"] for row in rows_of(tmp_path / "hard.jsonl")}
    assert "judge_undecided" in reasons
    assert "failed" not in done.stderr
    assert not (tmp_path / "hard.judge.failed.jsonl").read_text()


def mistaken_then_undecided(corpus: Corpus) -> Callable[[ChatRequest], ServerAnswer]:
    """Return a model that chooses no caption, and a judge that chooses what is shown first."""
    captions = {json.loads(line)["caption"] for line in (corpus[0] / "captions.jsonl").read_text().splitlines()}

    def answer(request: ChatRequest) -> ServerAnswer:
        first = json.loads(request.user.strip().splitlines()[0].partition(" ")[2])
        return ServerAnswer("(1)" if request.model == "judge" or first not in captions else "(2)")

    return answer


def test_a_plan_sends_nothing_and_writes_nothing(corpus: Corpus, tmp_path: Path) -> None:
    folder, _ = corpus
    with models(corpus, drawn) as server:
        options = ["--model", "vlm", "--base-url", server.url, "--out", tmp_path / "hard.jsonl", "--dry-run"]
        model, judging = called(folder / "captions.jsonl", *options, "--judge-model", "judge")["plan"]
        assert server.stats()["requests"] == 0
    assert [model["stage"], judging["stage"]] == ["mistakes", "judge"]
    assert model["requests"]["low"] >= model["rows"] > 24
    assert judging["requests"]["value"] == 2 * judging["rows"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_plan_refuses_a_retry_of_nothing_as_the_run_does(
    corpus: Corpus, tmp_path: Path, more: tuple[str, ...]
) -> None:
    options = ["--model", "vlm", "--base-url", "http://localhost:9", "--out", str(tmp_path / "hard.jsonl"), *more]
    command = ["generate", "mistakes", str(corpus[0] / "captions.jsonl"), *options, "--retry-failed"]
    ended = CliRunner().invoke(app, command).exception
    assert isinstance(ended, PairwrightError)
    assert "there is nothing to retry" in str(ended)


def test_rows_without_an_image_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "a", "image": "none.png", "caption": "a cat", "negative": "a dog"}) + "\n")
    options = ["--model", "m", "--base-url", "http://localhost:9/v1", "--out", tmp_path / "out.jsonl"]
    assert called(path, *options, code=3)["rejected"] == {"no_image": 1}
    assert rows_of(tmp_path / "out.jsonl")[0]["reason"] == "no_image"


@pytest.mark.parametrize("name", ["rows.jsonl", "swap_att.json", "sugarcrepe", "negclip.tsv"])
def test_candidates_are_read_in_every_layout(corpus: Corpus, tmp_path: Path, name: str) -> None:
    folder, _ = corpus
    row = json.loads((folder / "captions.jsonl").read_text().splitlines()[0])
    image, caption, negative = row["image"], row["caption"], "two purple hearts"
    given = tmp_path / name
    sugarcrepe = json.dumps({"0": {"filename": image, "caption": caption, "negative_caption": negative}})
    if name == "sugarcrepe":
        given.mkdir()
        (given / "swap_att.json").write_text(sugarcrepe)
    elif name.endswith(".jsonl"):
        given.write_text(json.dumps({"image": image, "caption": caption, "negative": negative}) + "\n")
    elif name.endswith(".tsv"):
        given.write_text(f"title\tfilepath\tneg_caption\n{caption}\t{image}\t{[negative]!r}\n")
    else:
        given.write_text(sugarcrepe)
    with models(corpus, lambda _: "content") as server:
        call = [given, "--model", "vlm", "--base-url", server.url, "--out", tmp_path / "hard.jsonl"]
        summary = called(*call, "--image-root", folder, "--judge-model", "judge")
    assert (summary["in"], summary["kept"]) == (1, 1)
    assert rows_of(tmp_path / "hard.jsonl")[0]["negative"] == negative


def test_limits_apply_to_the_model_and_the_judge_together(corpus: Corpus, tmp_path: Path) -> None:
    folder, _ = corpus
    with models(corpus, lambda _: "content") as server:
        call = [folder / "captions.jsonl", "--model", "vlm", "--base-url", server.url, "--out", tmp_path / "hard.jsonl"]
        asked = called(*call)["by"]["mistakes"]["requests"]
        (tmp_path / "llm-cache.sqlite").unlink()
        call += ["--judge-model", "judge", "--max-requests", asked + 3]
        done = CliRunner().invoke(app, ["generate", "mistakes", *map(str, call)])
        assert done.exit_code == 1
        assert server.stats()["requests"] == 2 * asked + 3


def test_a_judge_that_cannot_be_is_named(corpus: Corpus, tmp_path: Path) -> None:
    folder, _ = corpus
    call = ["generate", "mistakes", str(folder / "captions.jsonl"), "--out", str(tmp_path / "o.jsonl"), "--model", "m"]
    server = ["--base-url", "http://localhost:9/v1"]
    for wrong in (["--judge-base-url", "http://localhost:9/v1"], [*server, "--judge-model", "local:none"]):
        done = CliRunner().invoke(app, [*call, *wrong])
        assert isinstance(done.exception, PairwrightError), done.output


@pytest.mark.parametrize("errs", ["", "content", "position"])
def test_the_bounds_of_a_plan_hold_for_a_model_that_is_always_or_never_right(
    corpus: Corpus, tmp_path: Path, errs: str
) -> None:
    folder, _ = corpus
    with models(corpus, lambda _: errs) as server:
        call = [folder / "captions.jsonl", "--model", "vlm", "--base-url", server.url, "--out", tmp_path / "hard.jsonl"]
        [plan] = called(*call, "--dry-run")["plan"]
        called(*call, code=0 if errs == "content" else 3)
        sent = server.stats()["requests"]
    assert plan["requests"]["low"] <= sent <= plan["requests"]["high"]
    images = {bound: plan["image_tokens"][bound] / plan["requests"][bound] for bound in ("low", "high")}
    assert images["low"] == pytest.approx(images["high"])
