"""Demonstrations of the built-in prompts follow the rules of their prompts."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pairwright.datasets.records import Origin, Pair
from pairwright.generators.edit_types import BENCHMARK_TYPES, POSITIVE_TYPES
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.inflection import article
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.client.messages import Reply, Usage
from pairwright.generators.llm.client.steps import run_step
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm_edits.annotations import AnnotationBuilder
from pairwright.generators.llm_edits.listed_answers import BOTH_SIDES, NEGATIVES, POSITIVES, SEEN_NEGATIVES, ListedEdits
from pairwright.generators.prompts.book import Prompt, PromptBook
from pairwright.generators.prompts.prompt import pair_values

BOOK = PromptBook()
# A demonstration would bias the judgement, or lack its image.
JUDGING = {"judge", "judge-answers", "choose", "shows-caption", "captions"}
EDITING = [p.name for p in BOOK.listing() if p.name.endswith("-compose") or p.name.startswith("swap-")]
LISTING = ("negatives-at-once", "negatives-both-sides", "positives-at-once")
_FIELD = re.compile(r"^(Caption|Replace|By|Add|Describe|As|Also true): (.+)$", re.MULTILINE)
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
        assert len(questions) >= (7 if name.startswith("rationale") else 2 if name in LISTING else 3)


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
        known = " ".join([given["Caption"], *given.get("Also true", [])]).lower()
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
    assert sum(answer["possible"] for _, answer in answers) >= 3
    assert sum(not answer["possible"] for _, answer in answers) >= 1
    for given, answer in answers:
        if answer["possible"]:
            check_edit(given["Caption"], "swap" if "swap" in name else "replace", answer)
        else:
            assert answer == {"possible": False, "from": "", "to": "", "caption": ""}


@pytest.mark.parametrize("name", LISTING)
def test_answers_with_several_types_show_each_type_in_its_order(name: str) -> None:
    counts: Counter[str] = Counter()
    for given, answer in shown(BOOK.get(name)):
        [entries] = answer.values()
        types = [each["type"] for each in entries]
        assert types == [each for each in BENCHMARK_TYPES if each in types]
        captions = [each["caption"] for each in entries]
        assert len(set(captions)) == len(captions)
        for change in entries:
            counts[change["type"]] += 1
            check_edit(given["Caption"], change["type"].partition("-")[0], change)
    known = POSITIVE_TYPES if name.startswith("positives") else BENCHMARK_TYPES
    assert not set(known) - counts.keys() - ({"swap-attribute"} if "both" in name else set())
    assert any(len(entries) < len(known) for _, answer in shown(BOOK.get(name)) for entries in answer.values())


@pytest.mark.parametrize(("name", "sees"), [*((name, False) for name in LISTING), ("negatives-at-once", True)])
def test_demonstrations_pass_the_checks_of_answers(name: str, *, sees: bool) -> None:
    """Each would be kept, with its true side; so no demonstration shows what is rejected."""
    wordnet, tagger = load_wordnet(), load_tagger()
    prompt, kind = BOOK.get(name).with_image(sees=sees), f"hard_{name.partition('s-')[0]}"
    shape = POSITIVES if kind == "hard_positive" else BOTH_SIDES if "both" in name else NEGATIVES
    shape = SEEN_NEGATIVES if sees else shape
    types = POSITIVE_TYPES if kind == "hard_positive" else BENCHMARK_TYPES
    builder = AnnotationBuilder(kind, types, 1, Origin("test", 1), "both" in name)
    batch = []
    for given, answer in shown(prompt):
        pair = Pair("k", given["Caption"], captions=tuple(given.get("Also true", ())))
        reply = run_step(
            request_answers([prompt.request(pair_values(pair), model="m")], shape),
            lambda _, given=answer: Reply(json.dumps(given), "stop", "", Usage(1, 1), "m", "k"),  # type: ignore[misc]
        )[0]
        batch.append((pair, ListedEdits(prompt, shape, types).candidates(pair.caption, reply, types)))
    rows = builder.annotations(batch, EditChecks(wordnet, load_bundled_statistics(), tagger))
    assert {(row.text, row.reason) for own in rows for row in own if row.reason not in {"", "no_edit"}} == set()


def test_replacements_in_demonstrations_are_no_longer_than_what_they_replace() -> None:
    """A model imitates them: in recorded answers a replacing caption was longer than its source too often."""
    longer = Counter[bool]()
    for name in ("negatives-at-once", "negatives-both-sides"):
        for _, answer in shown(BOOK.get(name)):
            for change in answer["negatives"]:
                if change["type"].startswith("replace"):
                    longer[len(change["to"]) > len(change["from"])] += 1
    assert longer[True] < longer[False] / 2


def test_no_true_fact_of_a_demonstration_is_a_negative_of_it() -> None:
    for given, answer in shown(BOOK.get("negatives-both-sides")):
        for change in answer["negatives"]:
            true = change["true"]
            assert not true or abs(len(true) - len(change["to"])) <= 3, change
            swapped_words = change["type"].startswith("swap")
            assert swapped_words or change["to"] not in " ".join(given.get("Also true", []))


def test_words_of_demonstrations_are_not_those_of_preferences() -> None:
    """What a preference names would be copied from a demonstration."""
    for name in ("negatives-at-once", "negatives-both-sides"):
        prompt = BOOK.get(name)
        written = {word for _, answer in shown(prompt) for each in answer["negatives"] for word in words(each["to"])}
        assert not written & {word for hint in prompt.lists["hints"] for word in words(hint)} - {"and", "of"}


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
    for prompt in (each.with_image(sees=sees) for each in BOOK.listing() for sees in (False, True)):
        longest = max(len(text) for text in (prompt.typical, *(message.text for message in prompt.messages[2::2])))
        assert longest / 3.5 < 0.8 * prompt.parameters["max_tokens"], prompt.name
