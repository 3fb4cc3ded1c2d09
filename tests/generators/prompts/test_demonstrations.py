"""Demonstrations of the built-in prompts follow the rules of their prompts."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pairwright.generators.language.inflection import article
from pairwright.generators.prompts.book import Prompt, PromptBook

BOOK = PromptBook()
JUDGING = {"judge", "judge-answers", "captions"}  # a demonstration would bias the judgement, or lack its image
EDITING = [p.name for p in BOOK.listing() if p.name.endswith("-compose") or p.name.startswith(("swap-", "positive-"))]
TYPES = (
    "replace-object", "replace-attribute", "replace-relation", "swap-object", "swap-attribute", "add-object",
    "add-attribute",
)  # fmt: skip
_FIELD = re.compile(r"^(Caption|Replace|By|Add|Describe|As|Also said of the picture): (.+)$", re.MULTILINE)
_WORD = re.compile(r"[\w'-]+|[^\w\s]")


def shown(prompt: Prompt) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the values and the answer of each demonstration."""
    turns = prompt.messages[1:]
    for question, answer in zip(turns[::2], turns[1::2], strict=True):
        given = {name: json.loads(data) for name, data in _FIELD.findall(question.text)}
        yield given, json.loads(answer.text) if prompt.answer == "json" else answer.text


def words(text: str) -> list[str]:
    """Return words and punctuation in lower case without articles, which depend on the edit."""
    return [word for word in _WORD.findall(text.lower()) if word not in {"a", "an"}]


def edited(source: str, text: str) -> tuple[list[str], list[str]]:
    """Return what differs, as one span of words on each side."""
    before, after = words(source), words(text)
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


def swapped(source: str, one: str, other: str) -> list[str]:
    """Return the words of ``source`` with two runs of words exchanged."""
    joined, first, second = (f" {' '.join(words(text))} " for text in (source, one, other))
    at, then = joined.find(first), joined.rfind(second)
    assert -1 < at < then, (source, one, other)
    return (joined[:at] + second + joined[at + len(first) : then] + first + joined[then + len(second) :]).split()


def check_form(source: str, text: str) -> None:
    """Check that an edit keeps the form of the caption and adapts articles."""
    assert text != source
    assert text[:1].isupper() == source[:1].isupper()
    assert re.findall(r"\W*$", text) == re.findall(r"\W*$", source)
    assert "  " not in text
    for written, word in re.findall(r"\b([Aa]n?) ([\w-]+)", text):
        assert article(word) == written.lower(), text


def check_edit(source: str, form: str, change: dict[str, str]) -> None:
    """Check that ``change`` is an edit of that form."""
    text = change["caption"]
    check_form(source, text)
    if form == "swap":
        assert words(text) == swapped(source, change["from"], change["to"])
        return
    gone, come = edited(source, text)
    assert (gone == []) == (form == "add")
    joined, said = " ".join(come), " ".join(words(change["to"]))
    assert joined in said or set(come) == set(words(change["to"])), (source, change)
    if form == "replace":
        assert f" {' '.join(gone)} " in f" {' '.join(words(change['from']))} "


@pytest.mark.parametrize("name", [p.name for p in BOOK.listing()])
def test_there_are_enough_demonstrations_without_duplicates(name: str) -> None:
    questions = [message.text for message in BOOK.get(name).messages[1::2]]
    assert len(set(questions)) == len(questions)
    if name in JUDGING:
        assert not questions
    else:
        assert len(questions) >= (3 if name in {"conversation", "detail", "reasoning"} else 7)


@pytest.mark.parametrize("kind", ["object", "attribute", "relation"])
def test_found_concepts_stand_in_the_caption_in_its_order(kind: str) -> None:
    empty = 0
    for given, answer in shown(BOOK.get(f"replace-{kind}-find")):
        places = [re.search(rf"\b{re.escape(each)}\b", given["Caption"]) for each in answer["concepts"]]
        assert None not in places, given
        starts = [place.start() for place in places if place]
        assert starts == sorted(set(starts))
        empty += not starts
    assert empty >= 1


@pytest.mark.parametrize("name", [p.name for p in BOOK.listing() if p.name.endswith("-propose")])
def test_proposed_concepts_are_new_to_the_caption_and_to_what_is_known(name: str) -> None:
    for given, answer in shown(BOOK.get(name)):
        new = answer["concept"]
        known = " ".join([given["Caption"], *given.get("Also said of the picture", [])]).lower()
        assert new == new.lower()
        assert not re.search(rf"\b{re.escape(new)}\b", known), given
        replaced = given.get("Replace") or given.get("Describe")
        assert replaced is None or re.search(rf"\b{re.escape(replaced)}\b", given["Caption"])


@pytest.mark.parametrize("name", [name for name in EDITING if name.endswith("-compose")])
def test_composed_captions_differ_by_the_concept_and_nothing_else(name: str) -> None:
    for given, answer in shown(BOOK.get(name)):
        source, text = given["Caption"], answer["caption"]
        check_form(source, text)
        gone, come = edited(source, text)
        new = words(given.get("By") or given.get("Add") or given["As"])
        if name.startswith("replace"):
            assert gone == words(given["Replace"])
            assert come == new
        else:
            assert gone == []
            assert come[: len(new)] == new if name == "add-attribute-compose" else set(new) <= set(come)
            assert len(come) <= len(new) + 2


@pytest.mark.parametrize("name", [name for name in EDITING if not name.endswith("-compose")])
def test_gated_edits_show_both_answers_and_change_one_place_or_one_pair(name: str) -> None:
    answers = list(shown(BOOK.get(name)))
    assert sum(answer["possible"] for _, answer in answers) >= 6
    assert sum(not answer["possible"] for _, answer in answers) >= 1
    for given, answer in answers:
        if answer["possible"]:
            check_edit(given["Caption"], "swap" if "swap" in name else "replace", answer)
        else:
            assert answer == {"possible": False, "from": "", "to": "", "caption": ""}


def test_swaps_around_and_are_short_and_exchange_its_two_sides() -> None:
    for given, answer in shown(BOOK.get("positive-swap")):
        assert " and " in given["Caption"]
        assert len(given["Caption"].split()) < 15
        if answer["possible"]:
            assert f"{answer['from']} and {answer['to']}" in given["Caption"]


def test_the_answer_with_all_types_shows_each_type_at_least_seven_times_in_its_order() -> None:
    counts = dict.fromkeys(TYPES, 0)
    for given, answer in shown(BOOK.get("negatives-at-once")):
        types = [each["type"] for each in answer["negatives"]]
        assert types == [each for each in TYPES if each in types]
        captions = [each["caption"] for each in answer["negatives"]]
        assert len(set(captions)) == len(captions)
        for change in answer["negatives"]:
            counts[change["type"]] += 1
            check_edit(given["Caption"], change["type"].partition("-")[0], change)
    assert min(counts.values()) >= 7, counts
    assert any(len(answer["negatives"]) < 7 for _, answer in shown(BOOK.get("negatives-at-once")))


@pytest.mark.parametrize("name", ["conversation", "detail", "reasoning"])
def test_conversations_never_mention_their_sources(name: str) -> None:
    for message in BOOK.get(name).messages[2::2]:
        assert not re.search(
            r"\b(captions?|bounding|box(es)?|coordinates?|descriptions?|labels?|0\.\d)\b", message.text
        )


def test_conversations_have_three_to_eight_turns_and_questions_that_ask() -> None:
    for message in BOOK.get("conversation").messages[2::2]:
        turns = json.loads(message.text)["turns"]
        assert 3 <= len(turns) <= 8
        assert all(turn["question"].endswith("?") and turn["answer"].endswith(".") for turn in turns)


def test_the_questions_of_details_are_many_and_of_one_line() -> None:
    questions = BOOK.get("detail").lists["questions"]
    assert len({question.lower() for question in questions}) >= 12
    assert not [question for question in questions if "\n" in question or question[-1] not in ".?"]


@pytest.mark.parametrize("name", [p.name for p in BOOK.listing() if p.name.startswith("rationale-")])
def test_rationales_end_in_their_label_once_and_agree_with_the_one_given(name: str) -> None:
    turns = BOOK.get(name).messages[1:]
    given_too = 0
    for question, answer in zip(turns[::2], turns[1::2], strict=True):
        assert "\n" not in answer.text
        assert answer.text.count("So the answer is ") == 1
        label = answer.text.partition("So the answer is ")[2].removesuffix(".")
        if found := re.search(r"^Right answer: (.+)$", question.text, re.MULTILINE):
            assert json.loads(found[1]) == label
            given_too += 1
        if choices := re.search(r"^Choices: (.+)$", question.text, re.MULTILINE):
            assert label in json.loads(choices[1])
        for left, sign, right, result in re.findall(r"(\d+) ([-+*/]) (\d+) = (\d+)", answer.text):
            one, other = int(left), int(right)
            assert {"-": one - other, "+": one + other, "*": one * other, "/": one / other}[sign] == int(result)
    assert 2 <= given_too < len(turns) / 2 - 2


def test_every_answer_is_far_from_its_limit() -> None:
    for prompt in BOOK.listing():
        longest = max(len(text) for text in (prompt.typical, *(message.text for message in prompt.messages[2::2])))
        assert longest / 3.5 < 0.8 * prompt.parameters["max_tokens"], prompt.name
