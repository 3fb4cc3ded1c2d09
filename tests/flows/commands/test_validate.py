"""``pairwright validate`` over files: each witness, what is written, plans and stops."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.scenes import Scene
from pairwright.datasets.images.loading import open_image
from pairwright.flows.commands.validate import Validation, ValidationRequest
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

ROWS: list[dict[str, Any]] = [
    {"id": "a", "image": "000000000001.jpg", "caption": "a large dog in a field", "negative": "a large cat in a field"},
    {"id": "b", "image": "000000000001.jpg", "caption": "a large dog in a field", "negative": "a small dog in a field"},
    {
        "id": "c",
        "image": "000000000002.jpg",
        "caption": "a man near a couch",
        "negative": "a man near a sofa",
        "mine": 7,
    },
    {"id": "d", "image": "", "caption": "a dog runs", "negative": "", "status": "rejected", "reason": "no_edit"},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def called(*arguments: object) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["validate", *map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def test_other_captions_of_the_image_speak_against_what_they_say(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", ROWS)
    about = written(tmp_path / "about.jsonl", [{"image_id": 1, "captions": ["a cat and a dog", "grass"]}])
    summary = called(rows, "--captions", about, "--out", tmp_path / "out.jsonl")
    found = rows_of(tmp_path / "out.jsonl")
    assert {name: row["reason"] for name, row in found.items()} == {
        "a": "true_of_image", "b": "", "c": "same_meaning", "d": "no_edit"
    }  # fmt: skip
    assert found["c"]["mine"] == 7
    assert (summary["in"], summary["kept"]) == (4, 1)
    assert summary["kept"] + sum(summary["rejected"].values()) == summary["in"]
    assert (summary["in"], summary["rejected_in_input"]) == (4, 1)
    assert summary["by"]["context"] == {
        "rows": 3, "kept": 1, "rejected": {"same_meaning": 1, "true_of_image": 1}, "images_with_context": 1
    }  # fmt: skip


def test_rows_of_captions_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", ROWS)
    about = written(tmp_path / "about.jsonl", [{"image_id": 1, "captions": ["a cat"]}, {"image_id": 2, "captions": 3}])
    done = CliRunner().invoke(
        app, ["validate", str(rows), "--captions", str(about), "--out", str(tmp_path / "out.jsonl")]
    )
    assert "about.jsonl: skipped 1 row (wrong_type 1)." in done.stderr


def test_without_captions_only_rewordings_are_found_and_a_line_says_so(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", ROWS)
    done = CliRunner().invoke(app, ["validate", str(rows), "--out", str(tmp_path / "out.jsonl")])
    assert "--captions" in done.stderr
    assert rows_of(tmp_path / "out.jsonl")["a"]["status"] == "kept"


def test_images_lie_beside_the_input_unless_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "ä ö.png").write_bytes(b"here")
    rows = written(tmp_path / "rows.jsonl", [ROWS[0] | {"image": "ä ö.png"}])
    request = ValidationRequest(rows, tmp_path / "o.jsonl")
    assert Validation(request).undecided()[0].image == str(tmp_path / "ä ö.png")
    elsewhere = Validation(replace(request, image_root=tmp_path / "other")).undecided()[0]
    assert elsewhere.image == str(tmp_path / "other" / "ä ö.png")
    written(rows, [ROWS[0] | {"image": "of the working folder.png"}])
    assert Validation(request).undecided()[0].image == "of the working folder.png"


def test_an_image_outside_the_named_folder_is_rejected_and_no_witness_is_shown_it(tmp_path: Path) -> None:
    root = tmp_path / "images"
    names = {"a": "../private.jpg", "b": str(tmp_path / "private.jpg"), "c": "1.jpg", "d": str(root / "1.jpg")}
    rows = written(tmp_path / "rows.jsonl", [ROWS[0] | {"id": id_, "image": image} for id_, image in names.items()])
    work = Validation(ValidationRequest(rows, tmp_path / "o.jsonl", image_root=root))
    assert {question.id: question.image for question in work.undecided().values()} == {
        "c": str(root / "1.jpg"), "d": str(root / "1.jpg")
    }  # fmt: skip
    summary = work.finish()
    assert summary["rejected"] == {"image_outside_root": 2}
    assert rows_of(tmp_path / "o.jsonl")["a"]["reason"] == "image_outside_root"


def test_images_inside_a_table_beside_the_input_are_found_and_their_other_captions_heard(tmp_path: Path) -> None:
    """Rows of one number in two tables are two pictures."""
    captions = [["a red dog on a bed", "a blue dog on a bed"], ["a red dog on a bed", "an animal"]]
    for name in ("a", "b"):
        images = [{"bytes": b"not looked at", "path": None}] * 2
        pl.DataFrame({"image": images, "captions": captions[:: 1 if name == "a" else -1]}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    rows = [
        {"id": f"{name}{row}", "image": f"{tmp_path}/{name}.parquet::image/row-{row:08}"}
        | {"caption": "a red dog on a bed", "negative": "a blue dog on a bed", "form": "replace", "target": "attribute"}
        for name in ("a", "b")
        for row in (1, 2)
    ]
    path = written(tmp_path / "rows.jsonl", rows)
    called(path, "--captions", f"{tmp_path}/{{a,b}}.parquet", "--out", tmp_path / "o.jsonl")
    assert {name: row["status"] for name, row in rows_of(tmp_path / "o.jsonl").items()} == {
        "a1": "rejected",
        "a2": "kept",
        "b1": "kept",
        "b2": "rejected",
    }
    written(path, [rows[0] | {"image": "a.parquet::image/row-00000001"}])
    found = Validation(ValidationRequest(path, tmp_path / "o.jsonl")).undecided()[0]
    assert found.image == rows[0]["image"]


def test_options_that_would_do_nothing_are_refused(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", ROWS)
    for options in (
        ["--margin", "0.1"],
        ["--image-root", "x"],
        ["--by", "llm"],
        ["--model", "m"],
        ["--keep-undecided"],
        ["--by", "cat"],
        ["--columns", "a=b"],
    ):
        done = CliRunner().invoke(app, ["validate", str(rows), "--out", str(tmp_path / "o.jsonl"), *options])
        assert done.exit_code != 0
    assert not (tmp_path / "o.jsonl").exists()


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Scene], list[dict[str, Any]]]:
    """A shard of drawn scenes, and rows over it whose negatives are true half of the time."""
    from pairwright.datasets.colorshape.corpus import make_sample

    folder = tmp_path_factory.mktemp("scenes")
    write_corpus(folder, CorpusSpec(pairs=12, shard_size=12, seed=3))
    samples = [make_sample(3, index) for index in range(12)]
    rows = [
        {
            "id": one.key,
            "image": f"00000.tar::{one.key}.jpg",
            "caption": one.captions[0],
            "negative": one.captions[1] if at % 2 else other.captions[0],
        }
        for at, (one, other) in enumerate(zip(samples, [*samples[1:], samples[0]], strict=True))
    ]
    return folder, {one.key: one.scene for one in samples}, rows


@pytest.fixture
def seer(scenes: tuple[Path, dict[str, Scene], list[dict[str, Any]]]) -> Iterator[Server]:
    """A server whose model sees what is drawn."""
    _, known, rows = scenes
    by_texts = {frozenset((row["caption"], row["negative"])): known[row["id"]] for row in rows}

    def answer(request: ChatRequest) -> ServerAnswer:
        shown = [json.loads(line.partition(" ")[2]) for line in request.user.strip().splitlines()]
        scene = by_texts[frozenset(shown)]
        right = [at for at, text in enumerate(shown, 1) if judge(text, scene) is OracleVerdict.TRUE]
        return ServerAnswer({0: "neither", 1: f"({right[0]})" if right else "", 2: "both"}[len(right)])

    with serve_in_thread(ServerApp(answer=answer)) as server:
        yield server


def test_a_model_that_sees_finds_the_negatives_that_are_true(
    scenes: tuple[Path, dict[str, Scene], list[dict[str, Any]]], seer: Server, tmp_path: Path
) -> None:
    folder, known, rows = scenes
    path, out = written(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    asking = ["--model", "m", "--base-url", seer.url, "--price", "1/1"]
    call = [path, "--out", out, "--by", "llm", "--image-root", folder, *asking]
    planned = called(*call, "--dry-run")["plan"][0]
    assert round(planned["requests"]["value"]) == 2 * len(rows)
    assert seer.stats()["requests"] == 0
    summary = called(*call)
    for row in rows:
        scene = known[row["id"]]
        assert judge(row["caption"], scene) is OracleVerdict.TRUE
        false = judge(row["negative"], scene) is not OracleVerdict.TRUE
        assert rows_of(out)[row["id"]]["status"] == ("kept" if false else "rejected")
    assert summary["rejected"]["true_of_image"] >= len(rows) // 2
    assert summary["by"]["llm"]["requests"] == 2 * len(rows)
    again = called(*call)
    assert again["by"]["llm"]["requests"] == 0
    assert again["rejected"] == summary["rejected"]


def test_a_model_is_shown_the_pictures_inside_a_table(
    scenes: tuple[Path, dict[str, Scene], list[dict[str, Any]]], seer: Server, tmp_path: Path
) -> None:
    folder, _, rows = scenes
    pictures = [open_image(f"{folder}/{row['image']}") for row in rows]
    pl.DataFrame({"jpg": [*pictures[:-1], b"none"]}).write_parquet(tmp_path / "t.parquet", row_group_size=5)
    named = [row | {"image": f"t.parquet::jpg/row-{at:08}"} for at, row in enumerate(rows, 1)]
    asking = ["--model", "m", "--base-url", seer.url, "--price", "1/1"]
    found = []
    for given, root in ((rows, folder), (named, tmp_path)):
        path = written(tmp_path / "rows.jsonl", given)
        called(path, "--out", tmp_path / "out.jsonl", "--by", "llm", "--image-root", root, *asking)
        found.append({name: row["reason"] for name, row in rows_of(tmp_path / "out.jsonl").items()})
    last = rows[-1]["id"]
    assert found[1].pop(last) == "no_image"
    assert found[1].items() <= found[0].items()


def test_a_judge_without_images_judges_nothing(seer: Server, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", ROWS[:1])
    call = [str(path), "--out", str(tmp_path / "o.jsonl"), "--by", "llm", "--model", "m", "--base-url", seer.url]
    done = CliRunner().invoke(app, ["validate", *call])
    assert done.exit_code == 3
    assert rows_of(tmp_path / "o.jsonl")["a"]["reason"] == "no_image"


def test_a_clip_checkpoint_is_read_and_rejects_what_it_likes_clearly_better(
    scenes: tuple[Path, dict[str, Scene], list[dict[str, Any]]], tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the 'clip' extra is not installed")
    pytest.importorskip("transformers", reason="the 'clip' extra is not installed")
    from pairwright.datasets.images.loading import decode_image, open_image
    from pairwright.indexes.encoders.clip import ClipEncoder
    from tests.indexes import tiny_clip

    folder, _, rows = scenes
    checkpoint, out = tiny_clip.transformers_folder(tmp_path / "clip"), tmp_path / "out.jsonl"
    encoder = ClipEncoder(str(checkpoint), device="cpu")

    def likes(locator: str, text: str) -> float:
        [image] = encoder.encode_images([decode_image(open_image(locator), locator)])
        return float(image @ encoder.encode_texts([text])[0])

    texts = sorted(("a cat", "a photo of a dog"), key=lambda text: likes(f"{folder}/{rows[0]['image']}", text))
    given = [row | {"caption": texts[0], "negative": texts[1]} for row in rows]
    path = written(tmp_path / "rows.jsonl", [*given, {"id": "none", "caption": "a cat", "negative": "a dog"}])
    expected = {row["id"]: [likes(f"{folder}/{row['image']}", text) for text in texts] for row in given}
    wins = sorted(two - one for one, two in expected.values())
    margin = (wins[0] + wins[-1]) / 2
    assert margin > 0  # the checkpoint likes one text better for some images, and by how much differs
    assert wins[0] < margin < wins[-1]
    call = (path, "--by", "clip", "--clip-model", checkpoint, "--device", "cpu", "--image-root", folder)
    summary = called(*call, "--margin", margin, "--out", out)
    found = rows_of(out)
    for name, (one, two) in expected.items():
        assert found[name]["scores"] == {"clip_positive": pytest.approx(one), "clip_negative": pytest.approx(two)}
        assert found[name]["reason"] == ("true_of_image" if two - one > margin else "")
    assert found["none"]["reason"] == "no_image"
    assert summary["by"]["clip"]["rows"] == len(rows) + 1
    first = out.read_bytes()
    called(*call, "--margin", margin, "--out", out)
    assert out.read_bytes() == first
