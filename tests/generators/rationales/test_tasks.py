"""Task files: built-in tasks, tasks based on them, own tasks, and errors with their line."""

from pathlib import Path

import pytest

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.rationales.chain_of_thought import parse_chain_of_thought
from pairwright.generators.rationales.labels import check_agreement
from pairwright.generators.rationales.task_files import built_in_tasks, load_task, open_task
from pairwright.generators.rationales.tasks import TaskRowError

BOOK = PromptBook()
OWN = """\
about: Whether a review is kind.
fields: {review: [text, body]}
label: {kind: set, columns: stars, values: [harsh, kind]}
input: "review: {review}"
instructions: Say whether the review is kind or harsh.
demonstrations:
  - {review: "I loved it.", rationale: "To love a thing is praise.", label: kind}
"""


def test_built_in_tasks_are_found() -> None:
    assert built_in_tasks() == ("itm", "math", "mcqa", "nli")


@pytest.mark.parametrize("name", built_in_tasks())
def test_the_demonstrations_of_our_prompts_are_rationales_that_we_would_keep(name: str) -> None:
    task = open_task(name)
    turns = task.build_prompt(BOOK, label_given=False).messages[1:]
    for question, answer in zip(turns[::2], turns[1::2], strict=True):
        choices: list[str] = []
        if name == "mcqa":
            _, _, listed = question.text.partition("Choices: ")
            choices = [choice.strip('"') for choice in listed.splitlines()[0].strip("[]").split('", "')]
        found = parse_chain_of_thought(answer.text, task.labels, choices=choices, fields=tuple(task.fields))
        assert (found.reason, f"So the answer is {found.label}." in answer.text) == ("", True)
        assert check_agreement(found.rationale, found.label, task.labels, choices) != "contradicts"


@pytest.mark.parametrize(
    ("name", "row", "said", "gold"),
    [
        ("nli", {"premise": "A dog sleeps.", "hypothesis": "It runs.", "label": 2}, "premise: A dog sleeps.\nhypothesis: It runs.", "contradiction"),
        ("nli", {"sentence1": "A dog.", "sentence2": "A cat.", "gold_label": "-"}, "premise: A dog.\nhypothesis: A cat.", ""),
        ("math", {"Body": "Tom has 3 eggs", "Question": "How many?", "Answer": 3.0}, "Tom has 3 eggs\nHow many?", "3"),
        ("math", {"question": "How many?", "answer": "So 3. #### 3"}, "How many?", "3"),
        ("mcqa", {"question": "Where?", "choices": ["here", "there"], "answerKey": "B"}, "Where?\nchoices: here, there", "there"),
        ("mcqa", {"question": {"stem": "Where?", "choices": [{"label": "A", "text": "here"}, {"label": "B", "text": "there"}]}, "answerKey": "A"}, "Where?\nchoices: here, there", "here"),
        ("mcqa", {"question": "Where?", "choices": {"label": ["A", "B"], "text": ["here", "there"]}}, "Where?\nchoices: here, there", ""),
        ("itm", {"known": ["A dog."], "caption": "A cat.", "label": "no"}, "Does this caption fit the image? A cat.", "no"),
    ],
)  # fmt: skip
def test_rows_of_known_data_sets_are_items(name: str, row: dict[str, object], said: str, gold: str) -> None:
    item = open_task(name).item(row)
    assert (item.input, item.gold) == (said, gold)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"premise": "A dog."}, r"no text for the field `hypothesis` \(column hypothesis"),
        ({"premise": " ", "hypothesis": "It runs."}, r"no text for the field `premise` \(column premise"),
        ({"premise": "A dog.", "hypothesis": "It runs.", "label": 7}, "label 7"),
    ],
)
def test_an_incomplete_row_is_an_error(row: dict[str, object], message: str) -> None:
    with pytest.raises(TaskRowError, match=message):
        open_task("nli").item(row)


def test_a_user_s_own_task_has_instructions_demonstrations_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "reviews.yaml"
    path.write_text(OWN)
    task = open_task(str(path))
    item = task.item({"body": "Dull and {long}.", "stars": 0})
    assert (task.name, item.input, item.gold) == ("reviews", "review: Dull and {long}.", "harsh")
    prompt = task.build_prompt(BOOK, label_given=True)
    system, question, answer, asked = prompt.request({**item.values, "label": item.gold}, model="m").messages
    assert system.text.startswith("Say whether the review is kind or harsh.\n\nThe answer is one of: harsh, kind.")
    assert question.text == 'Review: "I loved it."\nRight answer: "kind"'
    assert answer.text == "To love a thing is praise. So the answer is kind."
    assert asked.text == 'Review: "Dull and {long}."\nRight answer: "harsh"'
    assert "Right answer" not in task.build_prompt(BOOK, label_given=False).messages[1].text


def test_a_task_takes_missing_keys_from_the_task_that_it_is_like(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "like: nli\ndemonstrations:\n"
        '  - {premise: "It rains.", hypothesis: "It is wet.", label: 0, rationale: "Rain makes wet."}\n'
    )
    task = load_task(path)
    prompt = task.build_prompt(BOOK, label_given=False)
    assert prompt.messages[0] == BOOK.get("rationale-nli").messages[0]
    assert [turn.text for turn in prompt.messages[1:]] == [
        'Premise: "It rains."\nHypothesis: "It is wet."',
        "Rain makes wet. So the answer is entailment.",
    ]
    assert prompt.id != BOOK.get("rationale-nli").id


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("about:", "abuot:", r":1: unknown key 'abuot'. Did you mean 'about'"),
        ("{review}", "{reveiw}", r":4: 'reveiw' is not a field. Did you mean 'review'"),
        ("kind: set", "kind: sort", r":3: 'kind' is not one of"),
        ("[harsh, kind]", "[]", r":3: 'values'"),
        ("label: kind}", "label: nice}", r":7: label 'nice' is not one of: harsh, kind"),
        ('review: "I loved it.", ', "", r":7: a demonstration has exactly the keys label, rationale, review"),
        ("instructions:", "prompt: nli\ninstructions:", "either 'prompt' or 'instructions'"),
        ("[text, body]", "3", r":2: 'review' names no columns"),
    ],
)  # fmt: skip
def test_an_error_in_a_task_file_names_its_line(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    path = tmp_path / "reviews.yaml"
    path.write_text(OWN.replace(was, becomes, 1))
    with pytest.raises(ConfigError, match=message):
        load_task(path)


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(UsageError, match="Did you mean 'nli'"):
        open_task("nlii")
