"""``--see-image`` over ColorShape images: a scripted model looks at the scene, and says where its own edit is visible."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.colorshape.corpus import CorpusSpec, make_sample, write_corpus
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.scenes import Scene
from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import open_image
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

COLOURS = ("red", "blue", "green", "yellow", "black", "purple", "orange")
PAIRS = 16
OWN_PROMPT = """version: 1
about: What happens.
answer: text
typical: A cat sits.
values: {caption: the caption}
system: You describe pictures.
user: "Say what happens: {{ caption }}"
temperature: 0
max_tokens: 40
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Scene]]:
    """Captions with images, the last one without, and the scene of each caption."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, CorpusSpec(pairs=PAIRS, shard_size=PAIRS, seed=7))
    samples = [make_sample(7, index) for index in range(PAIRS)]
    lines: list[dict[str, Any]] = [{"image": f"00000.tar::{one.key}.jpg", "caption": one.caption} for one in samples]
    lines[-1]["image"] = "none.png"
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder, {one.caption: one.scene for one in samples}


@pytest.fixture
def server(corpus: tuple[Path, dict[str, Scene]]) -> Iterator[Server]:
    folder, scenes = corpus
    by_image = {
        open_image(f"{folder}/00000.tar::{index:09d}.jpg"): make_sample(7, index).scene for index in range(PAIRS)
    }

    def answer(request: ChatRequest) -> ServerAnswer:
        parts = list(request.messages())[-1]["content"]
        [url] = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        scene = by_image[base64.b64decode(url.partition(",")[2])]
        caption = json.loads(request.user.splitlines()[0].removeprefix("Caption: "))
        assert scenes[caption] == scene
        old = next((colour for colour in COLOURS if colour in caption), "")
        rows = []
        for new in COLOURS[:3] if old else ():
            text = caption.replace(old, new, 1)
            visible = judge(text, scene) is OracleVerdict.TRUE
            row = {"type": "replace-attribute", "from": old, "to": new, "image_shows": f"a {old} shape"}
            rows.append({**row, "visible": visible, "caption": text})
        return ServerAnswer(json.dumps({"negatives": rows}))

    with serve_in_thread(ServerApp(answer=answer)) as server:
        yield server


def test_negatives_state_what_the_image_shows_and_none_that_is_visible_is_kept(
    corpus: tuple[Path, dict[str, Scene]], server: Server, tmp_path: Path
) -> None:
    folder, scenes = corpus
    out = tmp_path / "negatives.jsonl"
    call = ["negatives", folder / "captions.jsonl", "--method", "llm", "--model", "m", "--base-url", server.url]
    call += ["--see-image", "--types", "replace-attribute", "--price", "1/1", "--out", out, "--json"]
    plan = json.loads(CliRunner().invoke(app, ["generate", *map(str, call), "--dry-run"]).stdout)["plan"][0]
    assert plan["requests"]["low"] == PAIRS - 1  # one image is missing
    done = CliRunner().invoke(app, ["generate", *map(str, call)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    rejected = result["types"]["replace-attribute"]["rejected"]
    assert rejected["no_image"] == 1
    assert rejected["seen_in_image"] > 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for row in rows:
        if row["status"] == "kept":
            assert row["image_shows"] == f"a {row['edit'][0]['from']} shape"
            assert judge(row["negative"], scenes[row["caption"]]) is not OracleVerdict.TRUE
        elif row["reason"] == "seen_in_image":
            assert judge(row["negative"], scenes[row["caption"]]) is OracleVerdict.TRUE
    assert result["types"]["replace-attribute"]["kept"] > 0
    assert server.stats()["requests"] == PAIRS - 1


def test_a_build_sees_the_images(corpus: tuple[Path, dict[str, Scene]], server: Server, tmp_path: Path) -> None:
    folder, _ = corpus
    config = {
        "name": "x",
        "input": {"path": str(folder / "captions.jsonl"), "verify_images": "off"},
        "llm": {"model": "m", "base_url": server.url},
        "negatives": {"method": "llm", "types": ["replace-attribute"], "see_image": True},
        "shards": {"images": False},
        "workers": 1,
    }
    manifest = build(parse_config(config, where="test"), tmp_path / "build", prefect=False)
    assert manifest["stages"]["negatives"]["rejected"]["no_image"] == 1
    kept = [row for part in (tmp_path / "build" / "annotations").glob("negatives-*") for row in ANNOTATIONS.read(part)]
    assert kept
    assert all(row.image_shows for row in kept)


@pytest.mark.parametrize(
    "options",
    [["--method", "rules"], ["--method", "llm", "--both-sides"], ["--method", "llm", "--variant", "workflow"]],
)
def test_options_that_do_not_see_are_refused(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "c.jsonl").write_text('{"caption": "a cat"}\n')
    call = ["generate", "negatives", str(tmp_path / "c.jsonl"), "--out", str(tmp_path / "n.jsonl"), "--see-image"]
    with pytest.raises(UsageError, match="--see-image requires"):
        CliRunner().invoke(app, [*call, "--model", "m", *options], catch_exceptions=False)


def test_rows_do_not_depend_on_the_number_of_workers(
    corpus: tuple[Path, dict[str, Scene]], server: Server, tmp_path: Path
) -> None:
    folder, _ = corpus
    call = ["generate", "negatives", folder / "captions.jsonl", "--method", "llm", "--model", "m", "--see-image"]
    written = []
    for workers in (1, 3):
        out = tmp_path / f"{workers}.jsonl"
        options = ["--base-url", server.url, "--types", "replace-attribute", "--workers", workers, "--out", out]
        done = CliRunner().invoke(app, [*map(str, [*call, *options])], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("verb", "reads"),
    [
        (["generate", "negatives", "--method", "llm", "--see-image"], "captions"),
        (["generate", "positives", "--method", "llm", "--see-image"], "captions"),
        (["generate", "conversations", "--method", "llm", "--see-image"], "captions"),
        (["generate", "captions"], "captions"),
        (["generate", "rationales", "--task", "itm", "--see-image"], "negatives"),
        (["generate", "mistakes"], "negatives"),
        (["validate", "--by", "llm"], "negatives"),
        (["prompts", "ask", "own", "--prompts", "prompts", "--see-image"], "captions"),
    ],
    ids=lambda each: " ".join(each[:2]) if isinstance(each, list) else "",
)
@pytest.mark.parametrize("address", [False, True], ids=["file", "address"])
def test_each_request_of_each_verb_has_its_image_once(
    verb: list[str],
    reads: str,
    address: bool,  # noqa: FBT001 - a parameter
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the size that the model sees, with the tokens of its maker's rule in the plan; or by its address."""
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (2000, 1500), (9, 20, 200)).save("one.png")
    image = "https://example.org/one.png" if address else "one.png"
    row: dict[str, Any] = {"caption": "A red bus waits.", "image": image, "width": 2000, "height": 1500}
    Path("captions.jsonl").write_text(json.dumps(row))
    Path("negatives.jsonl").write_text(
        json.dumps({**row, "negative": "A blue bus waits.", "type": "replace-attribute"})
    )
    Path("prompts").mkdir()
    Path("prompts/own.yaml").write_text(OWN_PROMPT)
    sent: list[list[str]] = []

    def answer(request: ChatRequest) -> ServerAnswer:
        parts = [part for one in request.messages() if isinstance(one["content"], list) for part in one["content"]]
        sent.append([part["image_url"]["url"] for part in parts if part["type"] == "image_url"])
        return ServerAnswer("(1)")

    with serve_in_thread(ServerApp(answer=answer)) as server:
        options = ["--model", "openai/gpt-4o-mini", "--base-url", server.url, "--out", "out.jsonl", "--json"]
        call = [*verb, f"{reads}.jsonl", *options, *(["--image-urls"] if address else [])]
        [plan] = json.loads(CliRunner().invoke(app, [*call, "--dry-run"], catch_exceptions=False).stdout)["plan"]
        assert not sent
        CliRunner().invoke(app, call, catch_exceptions=False)
    assert plan["requests"]["low"] <= len(sent) <= plan["requests"]["high"]
    for urls in sent:
        [url] = urls
        if address:
            assert url == image
        else:
            assert url.startswith("data:image/jpeg;base64,")
            with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as shown:
                assert shown.size == (1024, 768)
    if not address:
        assert plan["image_tokens"]["low"] == plan["requests"]["low"] * (2833 + 4 * 5667)
