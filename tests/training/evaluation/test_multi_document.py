"""Questions over several documents: files, answers, and metrics of a decoder."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import InputError, UsageError
from pairwright.filters.evaluation.results import TaskResult
from pairwright.training.attention.question_files import MultiDocumentQuestion, contains_answer, read_questions
from pairwright.training.evaluation.multi_document import TREATMENTS, MultiDocumentPlan, evaluate_multi_document
from tests.training.attention.test_decoder import reader

QUESTION = MultiDocumentQuestion("Who flies?", ("Anna",), "Anna flies.", ("Ben walks.", "Cleo swims.", "Dan rests."))


def natural(path: Path, golds: int = 1) -> Path:
    ctxs = [{"title": "T", "text": f"text {place}", "isgold": place in range(2, 2 + golds)} for place in range(4)]
    row = {"question": "q", "answers": ["b", "c"], "ctxs": ctxs}
    short = {"question": "r", "answers": ["b"], "ctxs": ctxs[2:]}
    with gzip.open(path, "wt") as handle:
        handle.write(f"{json.dumps(row)}\n{json.dumps(short)}\n")
    return path


def test_the_gold_document_is_put_where_it_is_asked_for_and_the_others_keep_their_order() -> None:
    assert QUESTION.documents(4, 0) == ["Anna flies.", "Ben walks.", "Cleo swims.", "Dan rests."]
    assert QUESTION.documents(3, 1) == ["Ben walks.", "Anna flies.", "Cleo swims."]
    assert QUESTION.documents(4, 3)[-1] == "Anna flies."


def test_natural_questions_are_read_and_those_with_too_few_documents_counted(tmp_path: Path) -> None:
    found, short = read_questions(natural(tmp_path / "nq.jsonl.gz"), 4)
    assert short == 1
    assert found == [
        MultiDocumentQuestion(
            "q", ("b", "c"), "(Title: T) text 2", tuple(f"(Title: T) text {place}" for place in (0, 1, 3))
        )
    ]
    assert len(read_questions(natural(tmp_path / "nq.jsonl.gz"), 2)[0]) == 2
    with pytest.raises(InputError, match=r"nq.jsonl.gz:1: 2 gold documents"):
        read_questions(natural(tmp_path / "nq.jsonl.gz", golds=2), 4)


def test_synthwiki_draws_distractors_that_do_not_hold_the_answer(tmp_path: Path) -> None:
    names = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"]
    rows = [f"Where was {name} born?,Town{place},{name} was born in Town{place}." for place, name in enumerate(names)]
    path = tmp_path / "synth.csv"
    path.write_text("\n".join(["question,answer,wiki", *rows, "Who?,Town1,Town1 is a town."]))
    found, short = read_questions(path, 4)
    assert short == 0
    for one in found:
        assert len(set(one.distractors) | {one.gold}) == 4
        assert one.answers[0] in one.gold
        assert not any(one.answers[0] in text for text in one.distractors)
    assert read_questions(path, 4) == (found, short)
    assert read_questions(path, 4, seed=1)[0] != found
    assert len(read_questions(path, 4, limit=2)[0]) == 2


@pytest.mark.parametrize(
    ("name", "text"), [("q.csv", "question,answer\na,b\n"), ("q.jsonl", '{"question": "a"}\n'), ("q.jsonl", "{\n")]
)
def test_files_of_another_shape_are_refused_with_their_place(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read_questions(tmp_path / name, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": "Anna"}, "list of strings"),
        ({"answers": []}, "list of strings"),
        ({"answers": ["The"]}, "list of strings"),
        ({"question": None}, "no question"),
        ({"ctxs": [{"text": "a", "isgold": True}, {"text": " ", "isgold": False}]}, "document 2 has no text"),
        ({"ctxs": [{"text": None, "isgold": True}, {"text": "b", "isgold": False}]}, "document 1 has no text"),
        ({"ctxs": [{"text": "a", "isgold": False}] * 3}, "0 gold documents"),
    ],
)
def test_an_invalid_row_is_refused_with_its_line(tmp_path: Path, change: dict[str, object], message: str) -> None:
    whole = {"question": "q", "answers": ["b"], "ctxs": [{"text": "a", "isgold": True}, {"text": "b", "isgold": False}]}
    (tmp_path / "q.jsonl").write_text(f"{json.dumps(whole)}\n{json.dumps({**whole, **change})}\n")
    with pytest.raises(InputError, match=f"q.jsonl:2: .*{message}"):
        read_questions(tmp_path / "q.jsonl", 2)


@pytest.mark.parametrize("row", [",x,a text", "q,,a text", "q,x,", "q,x, "])
def test_a_table_row_with_an_empty_cell_is_refused_with_its_number(tmp_path: Path, row: str) -> None:
    (tmp_path / "q.csv").write_text(f"question,answer,wiki\nq,b,a text\n{row}\n")
    with pytest.raises(InputError, match=r"q.csv: row 2 has an empty cell"):
        read_questions(tmp_path / "q.csv", 2)


def test_a_file_that_is_not_there_holds_nothing_or_is_ragged_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "ragged.csv").write_text("question,answer,wiki\nq,a,text,too,many\n")
    for name, message in (
        ("nowhere.jsonl", "no such file"),
        ("nowhere.csv", "no such file"),
        ("empty.jsonl", "no questions"),
        ("ragged.csv", "as many cells as the header"),
    ):
        with pytest.raises(InputError, match=message) as error:
            read_questions(tmp_path / name, 2)
        assert "\n" not in str(error.value)


def test_too_few_documents_and_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least 2"):
        read_questions(tmp_path / "q.jsonl", 1)
    with pytest.raises(UsageError, match="fewer --documents"):
        read_questions(natural(tmp_path / "nq.jsonl.gz"), 20)
    with pytest.raises(UsageError, match="unsupported extension"):
        read_questions(tmp_path / "q.txt", 2)


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("It was the Anna, surely", True),
        ("ANNA!", True),
        ("Ben\nAnna", False),
        ("", False),
        ("A-n-n-a", True),
    ],
)
def test_an_answer_is_right_when_it_stands_in_the_first_line(said: str, right: bool) -> None:  # noqa: FBT001
    assert contains_answer(said, ["the Anna", "zzz"]) is right


def measured() -> TaskResult:
    plan = MultiDocumentPlan(4, (0, 1, 3), TREATMENTS, longest=4)
    return evaluate_multi_document(reader(8), [QUESTION] * 2, plan)


def test_every_way_ranking_and_test_of_the_model_is_reported_with_its_numbers() -> None:
    found = measured()
    by_part: dict[str, list[str]] = {}
    for one in found.metrics:
        by_part.setdefault(one.part, []).append(one.measure)
    for treatment in TREATMENTS:
        assert by_part.pop(treatment) == ["gold 1 of 4", "gold 2 of 4", "gold 4 of 4", "average of 4"]
    assert by_part == {
        "ranking by attention": ["recall@3 of 4"],
        "ranking by plain-attention": ["recall@3 of 4"],
        "condition 1": ["valid of 4"],
        "condition 2": ["valid of 4"],
        "linear": ["rank correlation of 4"],
        "log-linear": ["rank correlation of 4"],
    }
    attention = found.detail["attention of 4"]
    assert list(attention) == [1, 2, 4]
    assert np.asarray(list(attention.values())).shape == (3, 4)
    assert found.detail["passes of 4"] > 50
    recall = [metric for metric in found.metrics if metric.measure.startswith("recall")]
    assert {metric.chance for metric in recall} == {0.75}


def test_a_reader_that_always_says_the_answer_is_always_right(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reader()
    monkeypatch.setattr(type(found), "answers", lambda _, prompts, *__: ["Anna."] * len(prompts))
    metrics = evaluate_multi_document(found, [QUESTION], MultiDocumentPlan(3, (0, 2), ("plain",))).metrics
    assert [(one.measure, one.value) for one in metrics if one.part == "plain"] == [
        ("gold 1 of 3", 1),
        ("gold 3 of 3", 1),
        ("average of 3", 1),
    ]
