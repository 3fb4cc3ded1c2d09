"""Reviews in Label Studio: the tasks, and what comes back."""

import base64
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pairwright.datasets.errors import InputError
from pairwright.filters.review.decisions import combine_decisions, read_decisions
from pairwright.filters.review.label_studio import write_tasks
from pairwright.filters.review.rows import ReviewRows, read_rows
from tests.datasets.sample_builders import picture


@pytest.fixture
def rows(tmp_path: Path) -> ReviewRows:
    (tmp_path / "a.jpg").write_bytes(picture())
    lines = [
        {"id": f"r{n}", "image": "a.jpg", "caption": f"a red dog {n}", "negative": f"a blue dog {n}"} for n in range(4)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_rows(tmp_path / "rows.jsonl")


def annotation(word: str, text: str = "", **more: Any) -> dict[str, Any]:
    result: list[dict[str, Any]] = [{"from_name": "decision", "type": "choices", "value": {"choices": [word]}}]
    if text:
        result.append({"from_name": "fix", "type": "textarea", "value": {"text": [text]}})
    return {"completed_by": {"id": 1, "email": "ann@example.org"}, "result": result, "updated_at": "2030-01-01"} | more


def export(tasks: list[dict[str, Any]], annotations: list[list[dict[str, Any]]], path: Path) -> Path:
    path.write_text(json.dumps([task | {"annotations": own} for task, own in zip(tasks, annotations, strict=True)]))
    return path


def test_tasks_have_image_caption_and_candidate_and_the_configuration_names_them(
    rows: ReviewRows, tmp_path: Path
) -> None:
    assert write_tasks(rows, tmp_path / "tasks.json", sample=3) == 3
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    data = tasks[0]["data"]
    assert base64.b64decode(data["image"].removeprefix("data:image/jpeg;base64,")) == picture()
    assert data["candidate"] == data["caption"].replace("red", "blue")
    config = ET.parse(tmp_path / "tasks.xml")  # noqa: S314 - our own
    shown = {each.get("value", "").removeprefix("$") for each in config.iter() if each.get("value", "").startswith("$")}
    assert shown <= set(data)
    assert [each.get("value") for each in config.iter("Choice")] == ["keep", "reject", "unsure", "fix"]


def test_an_export_is_a_file_of_decisions(rows: ReviewRows, tmp_path: Path) -> None:
    write_tasks(rows, tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    own = [
        [annotation("keep"), annotation("reject", completed_by=7)],
        [annotation("fix", "a green dog")],
        [annotation("reject", was_cancelled=True)],
        [annotation("keep", updated_at="2030-01-02"), annotation("unsure", updated_at="2030-01-01")],
    ]
    found = read_decisions(export(tasks, own, tmp_path / "export.json"))
    assert found.reviewers == ["7", "ann@example.org"]
    of_ann = {task["data"]["id"]: found.of("ann@example.org").get(task["data"]["id"]) for task in tasks}
    said = [(each.decision, each.text) if each else None for each in of_ann.values()]
    assert said == [("keep", ""), ("fix", "a green dog"), None, ("keep", "")]
    assert combine_decisions(rows.frame, found).uncounted == combine_decisions(rows.frame, read_decisions(
        export(tasks, [[]] * 4, tmp_path / "none.json"))).uncounted  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "not a JSON list"),
        ("[", "not a JSON list"),
        ('[{"data": {"text": "x"}}]', "task 0: not a task of a review"),
        ('[{"data": {"id": "r", "candidate": "c"}, "annotations": [{"result": []}]}]', "no decision"),
        ('[{"data": {"id": "r", "candidate": "c"}, "annotations": [{"result": null}]}]', "no decision"),
    ],
)
def test_other_files_end_with_a_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_decisions(tmp_path / "export.json")
