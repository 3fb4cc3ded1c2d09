"""Conversations by a model: recorded and hostile answers, in process and over a server."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Box, Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.conversations.llm_generator import LLMConversationOptions, LLMConversations
from pairwright.generators.conversations.turn_checks import TURN_REASONS
from pairwright.generators.conversations.type_ratios import PAPER_RATIOS, assign_types
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.client import request_errors
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome, run_step
from pairwright.generators.llm.output import errors
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.session import Session
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import AnswerRule, ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.prompts.book import PromptBook
from tests.generators.llm.session_process import settings
from tests.generators.pair_steps import steps_of_pair
from tests.generators.rule_fixtures import pair_of

PAIR = pair_of("A brown dog runs on a beach.", "A dog near the water.", boxes=(Box("dog", 0.5, 0.25, 0.75, 0.9),))
GOOD = {
    "turns": [
        {"question": "What is the dog doing?", "answer": "It is running on a beach."},
        {"question": "What color is the dog?", "answer": "The dog is brown."},
    ]
}
DETAIL = "A brown dog is running along a beach. It is near the water, in the right half of the picture, and takes up most of the height."
REASONING = {
    "question": "Why might the dog like this place?",
    "answer": f"{DETAIL} There is a lot of room to run here, so the dog can play, and it can cool down in the water.",
}


class Words:
    """A dictionary of a few words."""

    def synonyms(self, lemma: str, pos: str, senses: int = 1) -> list[str]:
        """Know one."""
        return ["hound"][:senses] if (lemma, pos) == ("dog", "NOUN") else []

    def hypernyms(self, lemma: str, pos: str) -> list[str]:
        """Know what a dog is."""
        return ["mammal"] if (lemma, pos) == ("dog", "NOUN") else []

    def has(self, lemma: str, pos: str) -> bool:
        """Know every word."""
        return bool(lemma and pos)

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Know what can be touched."""
        things = {"dog", "hound", "mammal", "poodle", "frisbee", "beach", "water", "leash"}
        return pos == "NOUN" and kind == "physical entity" and lemma in things


def maker(model: str = "m", **options: Any) -> LLMConversations:
    given = {"types": ("conversation",), **options}
    return LLMConversations(Words(), load_tagger(), PromptBook(), model, LLMConversationOptions(**given))


def answering(*answers: object) -> Callable[[Request], RequestOutcome]:
    """Answer one after the other, the last one for ever."""
    left = [each if isinstance(each, str) else json.dumps(each) for each in answers]

    def answer(_: Request) -> RequestOutcome:
        return Reply(left.pop(0) if len(left) > 1 else left[0], "stop", "", Usage(1, 1), "m", key="k")

    return answer


def rows(*answers: object, pair: Pair = PAIR, **options: Any) -> list[Annotation]:
    generator = maker(**options)
    return run_step(steps_of_pair(generator, pair, make_rng(1)), answering(*answers))


def conversation(*turns: tuple[str, str]) -> dict[str, Any]:
    return {"turns": [{"question": question, "answer": answer} for question, answer in turns]}


def test_a_good_answer_becomes_turns_with_their_origin() -> None:
    [row] = rows(GOOD, seed=7)
    assert (row.kind, row.status, row.reason) == ("conversation", "kept", "")
    assert [(turn.role, turn.text) for turn in row.turns[:2]] == [
        ("human", "What is the dog doing?"),
        ("assistant", "It is running on a beach."),
    ]
    assert row.origin.model == "m"
    assert row.origin.seed == 7
    assert row.origin.prompt == PromptBook().get("conversation").id
    assert row.origin.request == "k"


def test_all_types_are_made_of_one_pair() -> None:
    def answer(request: Request) -> RequestOutcome:
        name = request.schema.name if request.schema else ""
        text = {"WrittenConversation": json.dumps(GOOD), "WrittenTurn": json.dumps(REASONING), "": DETAIL}[name]
        return Reply(text, "stop", "", Usage(1, 1), "m")

    generator = maker(types=("conversation", "detail", "reasoning"))
    made = run_step(steps_of_pair(generator, PAIR, make_rng(1)), answer)
    assert [(row.kind, row.status) for row in made] == [(t, "kept") for t in ("conversation", "detail", "reasoning")]
    assert made[1].turns[0].text in PromptBook().get("detail").lists["questions"]
    assert made[1].turns[1].text == DETAIL
    assert [prompt.partition("@")[0] for prompt in generator.prompts] == ["conversation", "detail", "reasoning"]


def test_an_invalid_answer_is_repaired_by_one_retry() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        seen.append(request)
        invalid = conversation(("What is it?", "The caption says a dog."), ("Is it brown?", "Yes."))
        return Reply(json.dumps(invalid if len(seen) == 1 else GOOD), "stop", "", Usage(1, 1), "m")

    [row] = run_step(steps_of_pair(maker(), PAIR, make_rng(1)), answer)
    assert row.status == "kept"
    assert len(seen) == 2
    assert "mention no captions" in seen[1].messages[-1].text


# What a bad model says, and why it is not taken. Every answer comes twice: the repair is no better.
HOSTILE: tuple[tuple[str, object, str], ...] = (
    ("conversation", "Sure! Question: What is it?\nAnswer: A dog.\nQuestion: Where?\nAnswer: On a beach.", "malformed"),
    ("conversation", "I'm sorry, but I can't help with that.", "refused"),
    ("conversation", "", "empty_answer"),
    ("conversation", {"turns": [{"question": "What is it?"}]}, "missing_field"),
    ("conversation", {"turns": "What is it? A dog."}, "wrong_type"),
    ("conversation", {"turns": []}, "too_few_turns"),
    ("conversation", json.dumps(GOOD) + "\n" + json.dumps(conversation(("Is it?", "No."), ("So?", "Yes."))), "several_answers"),
    ("conversation", conversation(("What is it?", "A dog."), ("Where is it?", "At [0.5, 0.25, 0.75, 0.9].")), "coordinates"),
    ("conversation", conversation(("What is it?", "A dog."), ("Where is it?", "In the bounding box.")), "mentions_source"),
    ("conversation", conversation(("What is it?", "A dog."), ("How old is it?", "It cannot be determined.")), "unanswerable"),
    ("conversation", conversation(("What is it?", "A dog.\nUser: Where is it?"), ("Is it brown?", "Yes.")), "not_alternating"),
    ("conversation", conversation(("What is it?", ""), ("Is it brown?", "Yes.")), "empty_turn"),
    ("conversation", conversation(("<image> What is it?", "A dog."), ("Is it brown?", "Yes.")), "image_token"),
    ("conversation", conversation(*(("Is it a dog?", f"Yes, dog {n}.") for n in range(5))), "repeated"),
    ("detail", "A dog.", "too_short"),
    ("detail", f"{DETAIL} " * 30, "too_long"),
    ("detail", f"# The image\n\n- {DETAIL}\n- The dog is brown.", "list_formatting"),
    ("detail", f"The image description tells of a dog. {DETAIL}", "mentions_source"),
    ("detail", "As an AI language model I cannot see images.", "refused"),
    ("detail", "I'm unable to view images, so I can't describe it.", "refused"),
    ("reasoning", {"question": "The dog runs.", "answer": REASONING["answer"]}, "no_question"),
    ("reasoning", {"question": REASONING["question"], "answer": "It is fun."}, "too_short"),
    ("reasoning", {**REASONING, "answer": f"{REASONING['answer']} It is not mentioned why."}, "unanswerable"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "said", "reason"), HOSTILE, ids=[f"{k}-{r}-{n}" for n, (k, _, r) in enumerate(HOSTILE)]
)
def test_a_bad_answer_is_rejected_with_its_reason(kind: str, said: object, reason: str) -> None:
    [row] = rows(said, types=(kind,))
    assert (row.kind, row.status, row.reason) == (kind, "rejected", reason)
    assert not row.turns
    assert reason in errors.OUTPUT_ERROR_CODES.keys() | request_errors.REQUEST_ERROR_CODES.keys() | TURN_REASONS.keys()
    assert row.text == (said if isinstance(said, str) else json.dumps(said))


def test_control_characters_are_removed_from_values() -> None:
    [row] = rows(conversation(("What\x00 is it?", "A d\x07og."), ("Is it brown?", "Yes.")), types=("conversation",))
    assert [turn.text for turn in row.turns] == ["What is it?", "A dog.", "Is it brown?", "Yes."]


def test_the_same_answers_over_a_server_end_the_same(tmp_path: Path) -> None:
    cases = [("conversation", GOOD, ""), ("detail", DETAIL, ""), ("reasoning", REASONING, ""), *HOSTILE]
    said = [said if isinstance(said, str) else json.dumps(said) for _, said, _ in cases]
    # One model for each case, so that the repair is answered like the first request.
    script = ServerScript(rules=[AnswerRule(model=f"m{n}", text=text) for n, text in enumerate(said)])

    def ask(number: int, attempt: int) -> LLMStep[list[Annotation]]:
        return steps_of_pair(maker(f"m{number}", types=(cases[number][0],)), PAIR, make_rng(1), attempt=attempt)

    work: Iterable[LLMRow[list[Annotation]]] = [LLMRow(str(n), partial(ask, n)) for n in range(len(cases))]
    with (
        serve_in_thread(ServerApp(script)) as server,
        Session(settings(server.url), cache=tmp_path / "cache.sqlite") as session,
    ):
        ended = [row for done in session.run(work) for row in done.result or []]
    assert [(row.kind, row.reason) for row in ended] == [(kind, reason) for kind, _, reason in cases]
    assert [row.status for row in ended] == ["rejected" if reason else "kept" for _, _, reason in cases]


def test_typical_answers_are_valid() -> None:
    rounds: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        rounds.append(request)
        return Reply(request.expects, "planned", "", Usage(1, 1), "m")

    made = run_step(steps_of_pair(maker(types=("conversation", "detail", "reasoning")), PAIR, make_rng(1)), answer)
    assert [row.status for row in made] == ["kept"] * 3
    assert len(rounds) == 3


def test_a_request_error_is_the_reason() -> None:
    [row] = run_step(steps_of_pair(maker(), PAIR, make_rng(1)), lambda _: RequestError("server_error", "HTTP 500"))
    assert (row.status, row.reason) == ("rejected", "server_error")


def test_unsupported_objects_are_scored() -> None:
    [plain] = rows(conversation(("What animal is it?", "A hound, a mammal."), ("Where is it?", "On a beach.")))
    assert plain.scores == {"hallucination": 0.0, "unsupported_things": 0.0}
    [made_up] = rows(
        conversation(("What does the dog hold?", "A frisbee."), ("What is near?", "A leash on the beach."))
    )
    assert made_up.status == "kept"
    assert made_up.scores == {"hallucination": 0.5, "unsupported_things": 2.0}


def test_types_are_drawn_by_ratio() -> None:
    generator = maker(types=tuple(PAPER_RATIOS), ratios=PAPER_RATIOS)
    drawn = []
    for number in range(600):
        step = generator.ask(PAIR, make_rng(number))
        [request] = next(step)
        drawn.append(request.schema.name if request.schema else "detail")
    assert abs(drawn.count("WrittenConversation") / 600 - 58 / 158) < 0.07
    assert abs(drawn.count("detail") / 600 - 23 / 158) < 0.07
    assert abs(drawn.count("WrittenTurn") / 600 - 77 / 158) < 0.07


def test_counts_select_that_many_pairs_of_each_type_in_any_order() -> None:
    keys = [f"{n:032x}" for n in range(60)]
    counts = {"conversation": 20, "detail": 0, "reasoning": 100}
    chosen = assign_types(keys, counts, 1)
    assert {kind: len(those) for kind, those in chosen.items()} == {"conversation": 20, "detail": 0, "reasoning": 60}
    assert assign_types(keys[::-1], counts, 1) == chosen
    assert assign_types(keys, counts, 2)["conversation"] != chosen["conversation"]
    assert assign_types(keys, {"detail": 20}, 1)["detail"] != chosen["conversation"]


def test_a_pair_over_its_count_is_not_asked_about() -> None:
    only = {"conversation": frozenset({PAIR.key}), "detail": frozenset({"other"})}
    made = rows(GOOD, types=("conversation", "detail"), only=only)
    assert {(row.kind, row.status, row.reason) for row in made} == {
        ("conversation", "kept", ""),
        ("detail", "rejected", "over_quota"),
    }
    [row] = rows("never asked", only={"conversation": frozenset()})
    assert (row.reason, row.origin.request) == ("over_quota", "")


def test_another_attempt_draws_new_samples_of_the_texts_that_no_earlier_one_gave() -> None:
    asked: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        asked.append(request)
        kind = request.schema.name if request.schema else "detail"
        bad = kind == "detail" and request.sample < 2
        text = "" if bad else {"WrittenConversation": json.dumps(GOOD), "detail": DETAIL}[kind]
        return Reply(text, "stop", "", Usage(1, 1), "m", key=request.key("x"))

    generator = maker(types=("conversation", "detail"))
    made = run_step(steps_of_pair(generator, PAIR, make_rng(1), attempt=2), answer)
    assert [(row.kind, row.status) for row in made] == [("conversation", "kept"), ("detail", "kept")]
    samples = [(request.schema is None, request.sample) for request in asked if request.repair == "possible"]
    assert samples == [(False, 0), (True, 0), (True, 1), (True, 2)]
    assert len({request.key("x") for request in asked}) == len(asked)


def test_the_image_is_sent_on_demand(tmp_path: Path) -> None:
    Pictures.new("RGB", (8, 8), "red").save(tmp_path / "dog.png")
    pair = replace(PAIR, image=str(tmp_path / "dog.png"))
    [blind] = next(maker().ask(pair, make_rng(1)))
    [seeing] = next(maker(see_image=True).ask(pair, make_rng(1)))
    assert not blind.messages[-1].images
    [image] = seeing.messages[-1].images
    assert image.data_url().startswith("data:image/png;base64,")
    assert "The image is attached" in seeing.messages[0].text
    assert "You do not see the image" in blind.messages[0].text
    assert "do not see" not in seeing.messages[0].text


@pytest.mark.parametrize(
    ("image", "reason"), [("", "no_image"), ("missing.png", "no_image"), ("https://example.org/dog.png", "image_url")]
)
def test_a_pair_without_a_readable_image_is_not_asked_when_the_image_is_to_be_seen(image: str, reason: str) -> None:
    [row] = rows(GOOD, pair=replace(PAIR, image=image), see_image=True)
    assert (row.status, row.reason) == ("rejected", reason)


@pytest.mark.parametrize(
    "options",
    [{"types": ("brief",)}, {"types": ()}, {"ratios": {"detail": 1}}, {"ratios": {"conversation": -1.0}}, {"ratios": {"conversation": 0}}],
)  # fmt: skip
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        maker(**options)


def test_an_answer_in_another_language_is_retried_and_then_rejected() -> None:
    strange = conversation(("What is the dog doing?", "Running."), ("Where is the dog?", "Собака бежит по пляжу."))
    [row] = rows(strange)
    assert (row.status, row.reason) == ("rejected", "other_language")
    [row] = rows(strange, GOOD)
    assert row.status == "kept"
