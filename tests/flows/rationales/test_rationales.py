"""Rationales over an input: from outputs that are there, and asked of a server over HTTP."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pairwright.datasets.errors import InputError, PairwrightError, UsageError
from pairwright.datasets.exports.formats import export_records
from pairwright.datasets.record_tables import EXAMPLES
from pairwright.datasets.records import Annotation, Box, Origin, Pair, annotation_id, pair_key
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.rationales.generation import generate_rationales, plan_rationales
from pairwright.flows.rationales.importing import RationaleRequest, import_rationales
from pairwright.flows.rationales.task_rows import TaskInput, read_items
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.rationales.generator import RationaleSettings
from pairwright.generators.rationales.task_files import open_task

ROWS = [
    ("Tom has 3 apples and gets 4.", 7),
    ("Eva has 5 pears and eats 2.", 3),
    ("Ida buys 2 plums.", 2),
    ("Ben finds 7 figs.", 7),
    ("6 boxes hold 7 kiwis each.", 42),
    ("There are 8 dates, 3 are eaten.", 5),
    ("There are 9 grapes.", 9),
]
SAID = {
    "apples": 'Tom has 3 + 4 = 7. so the answer is 7.\n\nProblem: "There are 9 cows."\nSo the answer is 9.',
    "pears": "She has 5 - 2 = 3. Wait, 2 + 2 = 4. So the answer is 4.",
    "plums": "I'm sorry, but I can't help with that.",
    "figs": "It is seven, I think.",
    "kiwis": "There are 6 * 7 = 42 kiwis. So the answer is 42.",
    "dates": "That leaves 8 - 3 = 6 dates. So the answer is 5.",
}
REASONS = {"inconsistent": 1, "no_answer": 1, "refused": 1, "wrong_label": 1}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", [{"problem": text, "answer": number} for text, number in ROWS[:6]])


def request(rows: Path, out: Path, task: str = "math", **settings: Any) -> RationaleRequest:
    return RationaleRequest(task, TaskInput(str(rows)), out, RationaleSettings(**settings))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def asking(tmp_path: Path, said: Mapping[str, str] = SAID, **section: Any) -> Iterator[ModelAccess]:
    """Serve answers by a word of the problem; a repair round hears the same again."""
    rules = [{"matches": word, "text": text} for word, text in said.items()]
    # What is wrong is told in the last message, without the problem in it.
    rules.append({"contains": "So the answer is X", "text": "It is seven, I think."})
    with serve_in_thread(ServerApp(ServerScript(rules=rules))) as server:
        given = LLMSection(model="m", **{"base_url": server.url, "price": "1/2", **section})
        yield ModelAccess(given, tmp_path / "cache.sqlite")


def ask(given: RationaleRequest, how: ModelAccess) -> dict[str, Any]:
    return generate_rationales(given, how, lambda _: None, lambda _: None)


def test_a_model_s_answers_become_rows_and_what_is_wrong_stands_apart(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with asking(tmp_path) as how:
        result = ask(request(problems, out), how)
    assert (result["rows"], result["parsed"], result["label_accuracy"], result["consistent"]) == (6, 4, 0.75, 3)
    assert result["rejected"] == REASONS
    assert result["kept"] == 2
    assert result["kept"] + sum(result["rejected"].values()) == result["rows"]
    rows = lines(out)
    assert [row["input"].split()[0] for row in rows] == ["[label]", "[rationale]"] * 2
    assert rows[1]["output"] == "Tom has 3 + 4 = 7."
    apart = lines(tmp_path / "out.rejected.jsonl")
    assert Counter(row["reason"] for row in apart) == REASONS
    assert not any("cows" in text for row in [*rows, *apart] for text in row.values() if isinstance(text, str))
    assert result["llm"]["requests"] == 7  # one of them asks again
    assert result["failed"]["rows"] == 4


def test_the_same_run_again_pays_nothing_and_writes_the_same_bytes(problems: Path, tmp_path: Path) -> None:
    with asking(tmp_path) as how:
        ask(request(problems, tmp_path / "one.jsonl"), how)
        again = ask(request(problems, tmp_path / "two.jsonl"), replace(how, bill=type(how.bill)()))
    assert again["llm"]["requests"] == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_failed_rows_are_asked_anew_and_the_others_come_from_the_cache(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with asking(tmp_path) as how:
        ask(request(problems, out), how)
        retried = ask(request(problems, out), replace(how, retry_failed=True, bill=type(how.bill)()))
    assert retried["rejected"] == REASONS
    assert retried["llm"]["requests"] == 5


def test_a_folder_holds_splits_and_rejects_and_appears_when_it_is_whole(problems: Path, tmp_path: Path) -> None:
    with asking(tmp_path) as how:
        ask(request(problems, tmp_path / "out", validation=0.5), how)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"train.jsonl", "validation.jsonl", "rejected.jsonl"}
    assert not (tmp_path / "out-partial").exists()


def test_a_budget_that_ends_the_run_leaves_what_is_done(problems: Path, tmp_path: Path) -> None:
    told: list[str] = []
    with asking(tmp_path, max_requests=3, max_concurrency=1) as how, pytest.raises(PairwrightError):
        generate_rationales(request(problems, tmp_path / "out.jsonl"), how, told.append, lambda _: None)
    assert not (tmp_path / "out.jsonl").exists()
    assert (tmp_path / "out.partial.jsonl").exists()
    assert any("of 6 rows are done" in line for line in told)


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out"])
def test_a_run_that_ends_before_its_first_row_leaves_no_file(problems: Path, tmp_path: Path, name: str) -> None:
    with asking(tmp_path, max_cost=1e-9, price="1/1") as how, pytest.raises(PairwrightError, match="budget"):
        ask(request(problems, tmp_path / name), how)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("out")]


def test_samples_vote_over_http(problems: Path, tmp_path: Path) -> None:
    with asking(tmp_path) as how:
        result = ask(request(problems, tmp_path / "out.parquet", samples=3), how)
    assert result["kept"] == 2
    assert result["agreement"] == 1.0
    examples = EXAMPLES.read(tmp_path / "out.parquet")
    assert Counter(each.status for each in examples) == {"kept": 2, "rejected": 4}


def test_a_plan_tells_requests_and_cost_and_sends_nothing(problems: Path, tmp_path: Path) -> None:
    with asking(tmp_path) as how:
        plan = plan_rationales(request(problems, tmp_path / "out.jsonl", samples=3), how)
    assert (plan.rows, plan.requests.low, plan.requests.high) == (6, 18, 36)  # with a repair of each answer
    assert plan.cost is not None
    assert not how.cache.exists()


def test_outputs_in_parts_fit_their_rows_and_are_told_by_file(problems: Path, tmp_path: Path) -> None:
    said = list(SAID.values())
    for name, part in (("a.json", said[:4]), ("b.json", said[4:])):
        (tmp_path / name).write_text(json.dumps(part))
    result = import_rationales(request(problems, tmp_path / "out.jsonl"), [tmp_path / "a.json", tmp_path / "b.json"])
    assert (result["parsed"], result["label_accuracy"]) == (4, 0.75)
    assert result["rejected"] == {"inconsistent": 1, "no_answer": 2, "wrong_label": 1}
    assert result["outputs"]["a.json"] == {"rows": 4, "parsed": 2, "label_accuracy": 0.5}
    assert result["outputs"]["b.json"] == {"rows": 2, "parsed": 2, "label_accuracy": 1.0}


def test_outputs_of_all_rows_each_are_samples_that_vote(problems: Path, tmp_path: Path) -> None:
    right = [f"It is {number} of them. So the answer is {number}." for _, number in ROWS[:6]]
    write_rows(tmp_path / "a.jsonl", [{"output": text} for text in SAID.values()])
    (tmp_path / "b.json").write_text(json.dumps([[text, text] for text in right]))
    result = import_rationales(request(problems, tmp_path / "out.jsonl"), [tmp_path / "a.jsonl", tmp_path / "b.json"])
    assert (result["kept"], result["label_accuracy"]) == (6, 1.0)
    assert 0.5 < result["agreement"] < 1


def test_outputs_that_do_not_fit_the_rows_are_refused(problems: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(list(SAID.values())[:4]))
    with pytest.raises(UsageError, match=r"6 rows, but outputs: a.json 4"):
        import_rationales(request(problems, tmp_path / "out.jsonl"), [tmp_path / "a.json"])
    (tmp_path / "a.json").write_text(json.dumps([3] * 6))
    with pytest.raises(InputError, match="output 0: not a model output"):
        import_rationales(request(problems, tmp_path / "out.jsonl"), [tmp_path / "a.json"])
    assert not (tmp_path / "out.jsonl").exists()


def test_broken_rows_stop_the_run_with_their_place_or_are_counted(tmp_path: Path) -> None:
    rows = write_rows(
        tmp_path / "rows.jsonl", [{"problem": "1 + 1?"}, {"answer": 2}, {"problem": "2 + 1?", "answer": "many"}]
    )
    with pytest.raises(InputError, match=r"rows.jsonl:2: no text for the field `problem`"):
        list(read_items(open_task("math"), TaskInput(str(rows)), Counter()))
    broken: Counter[str] = Counter()
    assert len(list(read_items(open_task("math"), TaskInput(str(rows), on_error="skip"), broken))) == 1
    assert broken == {"broken_row": 2}


def test_broken_negatives_are_skipped_where_that_is_asked_also_in_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "negatives.jsonl"
    path.write_text('7\n{"caption": "a dog", "negative": "a cat"}\n{"caption": "a dog", "negative": null}\n')
    with pytest.raises(InputError, match=r"negatives\.jsonl:1: int instead of an object"):
        list(read_items(open_task("itm"), TaskInput(str(path)), Counter()))
    broken: Counter[str] = Counter()
    items = list(read_items(open_task("itm"), TaskInput(str(path), on_error="skip"), broken))
    assert len(items) == 2  # what is true of the image, and what is not
    assert broken == {"wrong_type": 1, "empty_negative": 1}


def test_columns_are_the_user_s(tmp_path: Path) -> None:
    rows = write_rows(
        tmp_path / "rows.jsonl", [{"a": "A dog.", "b": "It runs.", "premise": "no", "y": "neutral", "label": 0}]
    )
    given = TaskInput(str(rows), columns={"premise": "a", "hypothesis": "b", "label": "y"})
    [item] = read_items(open_task("nli"), given, Counter())
    assert (item.input, item.gold) == ("premise: A dog.\nhypothesis: It runs.", "neutral")
    with pytest.raises(UsageError, match="no field of nli"):
        list(read_items(open_task("nli"), TaskInput(str(rows), columns={"question": "a"}), Counter()))


def build(tmp_path: Path) -> tuple[Path, Pair]:
    """Return shards with one pair: two negatives, one of them of a hard positive."""
    pair = Pair(pair_key("s", "1", "A dog."), "A dog.", captions=("A brown dog.",), boxes=(Box("dog", 0, 0, 1, 1),))
    origin = Origin("x", 1)

    def made(kind: str, text: str, positive: str = "") -> Annotation:
        return Annotation(
            annotation_id(pair.key, kind, origin, text, ""),
            pair.key,
            kind,
            origin,
            text=text,
            source_text="A dog.",
            positive_id=positive,
        )

    positive = made("hard_positive", "A hound.")
    texts = [positive, made("hard_negative", "A cat."), made("hard_negative", "A house.", positive.id)]
    export_records([pair], texts, "webdataset", tmp_path / "shards")
    return tmp_path / "shards", pair


def test_hard_negatives_of_shards_are_rows_that_carry_the_key_of_their_pair(tmp_path: Path) -> None:
    shards, pair = build(tmp_path)
    items = list(read_items(open_task("itm"), TaskInput(str(shards)), Counter()))
    assert [(item.values["caption"], item.gold) for item in items] == [
        ("A cat.", "no"), ("A house.", "no"), ("A dog.", "yes"), ("A hound.", "yes"),
    ]  # fmt: skip
    assert {item.key for item in items} == {pair.key}
    assert items[0].values["known"] == ("A dog.", "A brown dog.")
    assert items[2].values["known"] == ("A brown dog.",)


def test_candidate_rows_are_matched_too_and_rejected_ones_are_counted(tmp_path: Path) -> None:
    row = {"key": "a" * 32, "image": "1.jpg", "caption": "A dog.", "negative": "A cat."}
    rows = write_rows(
        tmp_path / "n.jsonl", [row, {**row, "negative": "A cow."}, {**row, "status": "rejected", "reason": "no_edit"}]
    )
    broken: Counter[str] = Counter()
    items = list(read_items(open_task("itm"), TaskInput(str(rows)), broken))
    assert [(item.values["caption"], item.gold) for item in items] == [
        ("A cat.", "no"),
        ("A dog.", "yes"),
        ("A cow.", "no"),
    ]
    assert {item.key for item in items} == {"a" * 32}
    assert broken == {"rejected_candidate": 1}
    (tmp_path / "swap_obj.json").write_text(
        json.dumps({"0": {"filename": "1.jpg", "caption": "A dog.", "negative_caption": "A cat."}})
    )
    theirs = list(read_items(open_task("itm"), TaskInput(str(tmp_path / "swap_obj.json")), Counter()))
    assert [(item.gold, item.key) for item in theirs] == [("no", ""), ("yes", "")]


def test_matching_is_asked_about_and_goes_into_shards(tmp_path: Path) -> None:
    shards, pair = build(tmp_path)
    said = {
        'Caption: "A cat': "The caption speaks of a cat. It is a dog. So the answer is no.",
        'Caption: "A house': "There is no house. It is a dog. So the answer is no.",
        'Caption: "A (dog|hound)': "It is a dog, and that is what the caption says. So the answer is yes.",
    }
    with asking(tmp_path, said) as how:
        result = ask(request(shards, tmp_path / "itm.parquet", "itm"), how)
    assert (result["kept"], result["label_accuracy"]) == (4, 1.0)
    examples = EXAMPLES.read(tmp_path / "itm.parquet")
    assert {each.key for each in examples} == {pair.key}
    assert examples[0].input == "Does this caption fit the image? A cat."


@pytest.mark.parametrize("name", ["svamp", "anli1"])
def test_recorded_outputs_keep_no_text_of_invented_questions(real_data: Path, tmp_path: Path, name: str) -> None:
    folder = real_data / "palm_cot" / name
    table, task, outputs = {
        "svamp": ("svamp_train.json", "math", ["train_CoT_0.json", "train_CoT_1.json"]),
        "anli1": ("anli1_valid.json", "nli", ["valid_CoT_0.json"]),
    }[name]
    given = request(folder / table, tmp_path / "out.jsonl", task)
    result = import_rationales(given, [folder / "palm" / each for each in outputs])
    unread = ("no_answer", "several_answers", "unreadable_label")
    assert result["rows"] == result["parsed"] + sum(result["rejected"].get(reason, 0) for reason in unread)
    assert result["parsed"] / result["rows"] > 0.97
    for row in lines(tmp_path / "out.jsonl"):
        assert not any(mark in row["output"] for mark in ("Q:", "\n", "Premise:", "Hypothesis:"))
        assert row["output"].count("So the answer is") == 0


@pytest.mark.parametrize("all_rows", [True, False])
def test_outputs_keep_to_their_rows_when_broken_rows_are_skipped(tmp_path: Path, *, all_rows: bool) -> None:
    rows = [{"input": "2 and 3?", "label": "5"}, {"label": "9"}, "{", {"input": "3 and 4?", "label": "7"}]
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(texts))
    said = [f"It is {label}. So the answer is {label}." for label in ((5, 9, 1, 7) if all_rows else (5, 7))]
    (tmp_path / "said.json").write_text(json.dumps(said))
    given = replace(
        request(tmp_path / "rows.jsonl", tmp_path / "out.jsonl"),
        read=TaskInput(str(tmp_path / "rows.jsonl"), on_error="skip"),
    )
    result = import_rationales(given, [tmp_path / "said.json"])
    assert (result["rows"], sum(result["broken"].values())) == (2, 2)
    assert not result["rejected"]


def test_a_model_that_sees_explains_what_the_image_shows_and_rows_without_one_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    Image.new("RGB", (32, 32), "red").save(tmp_path / "images" / "1.png")
    row = {"key": "a" * 32, "image": "1.png", "caption": "A red square.", "negative": "A blue square."}
    rows = write_rows(tmp_path / "n.jsonl", [row, {**row, "image": "2.png", "caption": "A red disc."}])
    heard: list[ChatRequest] = []

    def answer(request: ChatRequest) -> ServerAnswer:
        heard.append(request)
        label = "no" if 'Caption: "A blue' in request.user else "yes"
        return ServerAnswer(f"The image shows a red square. So the answer is {label}.")

    with serve_in_thread(ServerApp(answer=answer)) as server:
        access = ModelAccess(
            LLMSection.model_validate({"model": "m", "base_url": server.url}), tmp_path / "cache.sqlite"
        )
        read = TaskInput(str(rows), image_root=tmp_path / "images")
        given = RationaleRequest("itm", read, tmp_path / "itm.parquet", RationaleSettings(see_image=True))
        assert plan_rationales(given, access).requests.low == 2  # one image is missing
        result = ask(given, access)
    assert (result["kept"], result["rejected"]) == (2, {"no_image": 2})
    for request_ in heard:
        assert [part["type"] for part in list(request_.messages())[-1]["content"]].count("image_url") == 1
        assert "The image is attached" in request_.system
        assert "do not see" not in request_.system
