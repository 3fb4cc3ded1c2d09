"""``dev llm-server --plausible``: most answers of every type pass the checks, and plans match the requests."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import body_key, parse_chat_request
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel
from pairwright.generators.plausible_model.prompt_recognition import PromptRecognizer
from pairwright.generators.prompts.book import PromptBook

PHOTOS = (
    "A brown dog sleeps on a wooden bench near the lake.",
    "Two women in red coats wait for a bus.",
    "a small boat is tied to the old pier",
    "A man in a blue shirt holds a large pizza and a glass.",
    "The white cat is sitting under a black table .",
    "A young boy rides a skateboard down the street",
    "A bathroom with a white sink and a mirror.",
    "An airplane flies above a snowy mountain.",
    "A woman is cutting a cake with a knife in the kitchen.",
    "A yellow train is parked next to a gray building.",
)
SHAPES = (
    "a red circle to the left of a blue square",
    "There is a little green cross above a brown star.",
    "a picture showing two big circles and a little heart",
    "A little red square below a brown cross.",
    "There is a yellow cross and two black stars.",
    "A big blue triangle is to the right of a red star.",
)
NOT_ANSWERED = {"no_edit", "no_and"}  # what the caption does not offer


@pytest.fixture(scope="module")
def model() -> PlausibleModel:
    return PlausibleModel()


@pytest.fixture
def server(model: PlausibleModel) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(), answer=model)) as server:
        yield server


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def generated(server: Server, verb: str, *options: str) -> dict[str, Any]:
    command = ["generate", verb, "c.jsonl", *options, "--model", "m", "--base-url", server.url, "--out", "o.jsonl", "--json"]  # fmt: skip
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code in {0, 3}, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def written(captions: tuple[str, ...]) -> None:
    Path("c.jsonl").write_bytes(b"\n".join(orjson.dumps({"caption": caption}) for caption in captions))


COMMANDS = (
    ("negatives", "--method", "llm"),
    ("negatives", "--method", "llm", "--variant", "workflow"),
    ("positives", "--method", "llm"),
    ("conversations", "--method", "llm", "--types", "conversation,detail,reasoning"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("captions", [PHOTOS, SHAPES], ids=["photos", "shapes"])
def test_more_than_half_of_the_answers_of_each_type_pass_the_checks(
    server: Server, command: tuple[str, ...], captions: tuple[str, ...]
) -> None:
    written(captions)
    types = generated(server, *command)["types"]
    answered = {
        kind: (counts["kept"], counts["made"] - sum(counts["rejected"].get(reason, 0) for reason in NOT_ANSWERED))
        for kind, counts in types.items()
    }
    assert sum(made > 0 for _, made in answered.values()) >= 3, answered
    assert all(kept > made / 2 for kept, made in answered.values() if made), types


@pytest.mark.parametrize("label_given", [(), ("--label-given",)])
def test_rationales_of_hard_negatives_and_their_captions_are_kept(server: Server, label_given: tuple[str, ...]) -> None:
    written(PHOTOS)
    generated(server, "negatives", "--method", "llm")
    Path("o.jsonl").rename("c.jsonl")
    done = generated(server, "rationales", "--task", "itm", *label_given)
    assert done["kept"] > 0.8 * done["rows"] > 10
    assert done["parsed"] == done["rows"]


@pytest.mark.parametrize("task", ["nli", "math", "mcqa"])
def test_rationales_of_other_tasks_explain_the_label_that_is_given(server: Server, task: str) -> None:
    row = {"premise": "A dog runs.", "hypothesis": "It is wet.", "problem": "Tom has 3 eggs and 4 pears. How many?", "question": "What is cold?", "choices": ["oven", "refrigerator"]}  # fmt: skip
    label = {"nli": "neutral", "math": "7", "mcqa": "refrigerator"}[task]
    Path("c.jsonl").write_text(json.dumps({**row, "label": label}))
    assert generated(server, "rationales", "--task", task, "--label-given")["kept"] == 1


@pytest.mark.parametrize("fits", [True, False], ids=["answers that fit", "answers that do not"])
@pytest.mark.parametrize(
    "command",
    [*COMMANDS, ("rationales", "--task", "itm"), ("rationales", "--task", "itm", "--samples", "3")],
    ids=" ".join,
)
def test_a_plan_holds_the_number_of_requests_that_are_sent(
    model: PlausibleModel, command: tuple[str, ...], *, fits: bool
) -> None:
    """Between its bounds: below by rounds that answers make unnecessary, above by a repair of every answer."""
    written(PHOTOS)
    if command[0] == "rationales":
        rows = [{"caption": "A dog sits.", "negative": f"{count} cats sit."} for count in ("Two", "Three", "Four")]
        Path("c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    served = (
        ServerApp(ServerScript(), answer=model)
        if fits
        else ServerApp(ServerScript(rules=({"contains": "", "text": "nothing of use"},)))
    )
    with serve_in_thread(served) as server:
        [plan] = generated(server, *command, "--dry-run")["plan"]
        assert server.stats()["requests"] == 0
        generated(server, *command)
        sent = server.stats()["requests"]
    assert plan["requests"]["low"] <= sent <= plan["requests"]["high"], plan
    assert plan["requests"]["high"] > plan["requests"]["value"] > plan["requests"]["low"]
    if not fits:
        assert sent > plan["requests"]["low"], "answers that do not fit are asked for once more"


def test_the_table_of_a_plan_shows_the_bounds_and_says_what_they_hold(server: Server) -> None:
    written(PHOTOS)
    command = ["generate", "negatives", "c.jsonl", "--method", "llm", "--model", "m", "--base-url", server.url]
    done = CliRunner().invoke(app, [*command, "--out", "o.jsonl", "--dry-run"], catch_exceptions=False)
    assert "4 (3 to 23)" in done.stdout
    assert "no requests were sent" in done.stdout
    assert re.search(r"Requests include about \d+ for first answers that are not usable", done.stdout)
    assert "each answer repaired once" in done.stdout


@pytest.mark.parametrize(
    "name", ["negatives-at-once", "conversation", "rationale-itm", "replace-object-compose", "detail"]
)
def test_the_values_of_a_request_are_read_as_they_were_written(name: str) -> None:
    values = {
        "caption": 'A "dog": {x}\nCaption: "no"', "captions": ["A dog.", 'A "cat".'], "known": ["a, b", "c"], "types": ["swap-object"], "hint": "verbs", "count": 3,
        "boxes": [["dog", [0.1, 0.2, 0.3, 0.4]]], "more": [], "sees": False, "label": "no", "concept": "dog", "new_concept": "cat",
    }  # fmt: skip
    prompt = PromptBook().get(name)
    request = prompt.request(values, model="m")
    repair = [
        ("assistant", "no json"),
        ("user", "Your answer was empty. Answer again, with one line and nothing else."),
    ]
    for behind in ([], repair):
        read = PromptRecognizer().read([*((each.role, each.text) for each in request.messages), *behind])
        assert read is not None
        assert read.name == name
        wanted = {key: values[key] for key in prompt.needs if values[key] not in ([], False)}
        assert {key: [list(each) if isinstance(each, tuple) else each for each in value] if isinstance(value, list) else value for key, value in read.values.items()} == wanted  # fmt: skip


def test_the_same_request_gets_the_same_answer_and_a_request_of_others_the_usual_one(model: PlausibleModel) -> None:
    request = PromptBook().get("swap-object").request({"caption": "A dog chases a cat."}, model="m")
    body = {"model": "m", "messages": [{"role": each.role, "content": each.text} for each in request.messages]}
    asked = parse_chat_request(body, body_key(body), 0)
    assert model(asked) == model(asked) == PlausibleModel()(asked)
    other = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    assert model(parse_chat_request(other, body_key(other), 0)) is None


def test_plausible_answers_and_a_recording_exclude_each_other() -> None:
    Path("tape.jsonl").write_text("")
    done = CliRunner().invoke(app, ["dev", "llm-server", "--plausible", "--replay", "tape.jsonl"])
    assert isinstance(done.exception, UsageError)
    assert "mutually exclusive" in str(done.exception)


def test_prompts_with_the_image_are_answered_too(server: Server) -> None:
    Image.new("RGB", (32, 32), "red").save("photo.png")
    rows = [{"caption": caption, "image": "photo.png"} for caption in PHOTOS]
    Path("photos.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["--model", "m", "--base-url", server.url, "--json"]
    for call in (
        ["negatives", "photos.jsonl", "--method", "llm", "--see-image", "--out", "n.jsonl"],
        ["positives", "photos.jsonl", "--method", "llm", "--see-image", "--out", "p.jsonl"],
        ["conversations", "photos.jsonl", "--method", "llm", "--see-image", "--out", "c.jsonl"],
        ["rationales", "n.jsonl", "--task", "itm", "--see-image", "--out", "r.jsonl"],
        ["mistakes", "n.jsonl", "--out", "m.jsonl"],
    ):
        done = CliRunner().invoke(app, ["generate", *call, *asked], catch_exceptions=False)
        assert done.exit_code == 0, (call, done.output)
    kept = [row for row in map(json.loads, Path("n.jsonl").read_text().splitlines()) if row["status"] == "kept"]
    assert all(row["image_shows"] for row in kept)
    reasons = {row["reason"] for row in map(json.loads, Path("m.jsonl").read_text().splitlines())}
    assert {"", "model_correct"} <= reasons
    assert not reasons & {"order_dependent", "model_undecided"}


def test_negatives_of_several_captions_and_candidates_are_kept_and_the_next_command_chooses(server: Server) -> None:
    written(PHOTOS)
    one, several = (
        generated(server, "negatives", "--method", "llm", "--candidates", count)["types"] for count in ("1", "4")
    )
    kept, more = (sum(counts["kept"] for counts in types.values()) for types in (one, several))
    assert more > 2 * kept > 10
    asked = ("--method", "llm", "--model", "m", "--base-url", server.url, "--out", "o.jsonl", "--candidates", "4")
    done = CliRunner().invoke(app, ["generate", "negatives", "c.jsonl", *asked], catch_exceptions=False)
    assert "Next: pairwright refine o.jsonl --fix choose --out o-refined.jsonl" in done.stdout


def test_both_sides_by_a_model_are_compared_with_texts_of_about_their_length(server: Server) -> None:
    """A positive is true words in the place of the false ones, so neither side is the longer one as a rule."""
    written(PHOTOS)
    done = generated(server, "negatives", "--method", "llm", "--both-sides", "--candidates", "4")
    rows = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    kept = [row for row in rows if row["status"] == "kept" and row["negative"]]
    assert len(kept) > 3
    assert all(row["positive"] not in {"", row["caption"]} for row in kept)
    lengths = done["lengths"]
    assert sum(lengths.values()) == len(kept)
    assert lengths["longer"] < 0.8 * len(kept)


def test_true_additions_are_what_other_captions_state(server: Server) -> None:
    rows = [
        {
            "caption": "A cat sleeps on a bed.",
            "captions": ["A cat sleeps on a bed.", f"A small cat on a bed next to a {thing}."],
        }
        for thing in ("lamp", "clock", "book", "vase", "laptop", "suitcase", "bicycle", "radio")
    ]
    Path("c.jsonl").write_text("".join(json.dumps({"image_id": at, **row}) + "\n" for at, row in enumerate(rows)))
    generated(server, "negatives", "--method", "llm", "--both-sides", "--candidates", "4", "--types", "add-object")
    found = [row for row in map(json.loads, Path("o.jsonl").read_text().splitlines()) if row["status"] == "kept"]
    assert len(found) > 8
    assert all(abs(len(row["positive"]) - len(row["negative"])) <= 3 for row in found)


@pytest.mark.slow
def test_refine_keeps_clearly_more_where_it_may_choose_among_candidates(server: Server, real_data: Path) -> None:
    lines = (real_data / "coco_captions" / "captions.jsonl").read_text().splitlines()
    Path("c.jsonl").write_text("\n".join(lines[:480:2]))
    Path("corpus.jsonl").write_text("\n".join(lines[480:4480:2]))
    kept = []
    for count in ("1", "4"):
        generated(server, "negatives", "--method", "llm", "--candidates", count)
        refine = [
            "refine",
            "o.jsonl",
            "--fix",
            "choose",
            "--corpus",
            "corpus.jsonl",
            "--target",
            "0.55",
            "--out",
            "r.jsonl",
        ]
        kept.append(json.loads(CliRunner().invoke(app, [*refine, "--json", "-q"]).stdout)["kept"])
    assert kept[1] > 1.2 * kept[0] > 0


def test_judges_and_ratings_are_answered_alike_in_either_order(server: Server) -> None:
    Path("images").mkdir()
    rows = []
    for number, caption in enumerate(PHOTOS):
        Image.new("RGB", (8, 8)).save(f"images/{number}.png")
        rows.append({"caption": caption, "negative": f"{caption} No.", "image": f"{number}.png", "type": "add-object"})
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asking = ["--model", "m", "--base-url", server.url, "--out", "o.jsonl", "--json"]
    judged = CliRunner().invoke(
        app, ["validate", "c.jsonl", "--by", "llm", "--image-root", "images", *asking], catch_exceptions=False
    )
    counts = json.loads(judged.stdout)
    assert counts["rejected"].keys() == {"true_of_image"}, judged.output
    assert counts["kept"] > 0
    rated = CliRunner().invoke(app, ["refine", "c.jsonl", "--add-attacks", "llm", *asking], catch_exceptions=False)
    assert "llm" in json.loads(rated.stdout)["attacks"], rated.output
