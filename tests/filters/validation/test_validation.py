"""Who says that a negative is true after all: a judge's free-form answers, a CLIP-like model, captions and boxes."""

import io
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pairwright.datasets.records import Box, Pair
from pairwright.filters.validation.caption_context import collect_facts
from pairwright.filters.validation.clip_margin import check_by_clip_margin
from pairwright.filters.validation.llm_judge import (
    BOTH,
    FIRST,
    NEITHER,
    REFUSED,
    SECOND,
    UNCLEAR,
    NegativeJudge,
    pair_for_row,
    parse_pick,
)
from pairwright.filters.validation.model_mistakes import MistakeFinder
from pairwright.filters.validation.verdicts import REASONS, ValidationRow
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import RequestOutcome, run_step
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.prompts.book import PromptBook


@pytest.mark.parametrize(
    ("answer", "pick"),
    [
        ("(1)", FIRST),
        ("2", SECOND),
        ("Output (2).", SECOND),
        ("**(1)**", FIRST),
        ("The correct caption is: (2) A dog on a mat", SECOND),
        ("Answer: 1", FIRST),
        ("Caption (1) is right, since the dog is brown.", FIRST),
        ("(2) A table with three cups.", SECOND),
        ("2 dogs can be seen, so (1) is wrong and the better one is (2).", SECOND),
        ("Both.", BOTH),
        ("both (1) and (2)", BOTH),
        ("Neither (1) nor (2)", NEITHER),
        ("(1) nor (2) fits; neither is right.", NEITHER),
        ("Both captions are incorrect.", NEITHER),
        ("None of the captions is right. If I had to choose, the closest would be:\n(2) a plate of scones", SECOND),
        ("Neither is right. However, if forced to choose, (1) is more accurate.", FIRST),
        ("A dog lies on a mat.", FIRST),
        ("I see that a cat lies on a mat!", SECOND),
        ("I'm sorry, I can't assist with this request.", REFUSED),
        ("Sorry, the picture is dark, but (1).", FIRST),
        ("(1) or (2), it is hard to say.", UNCLEAR),
        ("(1), (2)", UNCLEAR),
        ("1, 2", UNCLEAR),
        ("(1) is right, (2) is not.", FIRST),
        ("", UNCLEAR),
        ("A dog lies on a mat, and a cat lies on a mat.", UNCLEAR),
        ("12", UNCLEAR),
    ],
)
def test_answers_are_parsed_as_a_person_reads_them(answer: str, pick: str) -> None:
    assert parse_pick(answer, "a dog lies on a mat", "a cat lies on a mat") == pick


def test_recorded_answers_are_parsed_as_recorded(real_data: Path) -> None:
    found = Counter[tuple[str, bool]]()
    for path in sorted((real_data / "gpt4v_answers").glob("*.json")):
        for row in json.loads(path.read_text()).values():
            if not isinstance(row, dict):
                continue  # a stray figure
            texts = [row["caption"], row["negative_caption"]]
            first, second = texts if path.name.startswith("positive") else texts[::-1]
            pick = parse_pick(row["answer"]["free_form_answer"], first, second)
            said = row["answer"]["multiple_choice_answer"]
            recorded = {first: FIRST, second: SECOND}.get(said, "")
            found[recorded, pick == recorded if recorded else pick in {NEITHER, REFUSED}] += 1
    wrong = {recorded: count for (recorded, right), count in found.items() if not right}
    # Two answers reject both texts and then name the closer one, which the record omits.
    assert wrong == {"": 2}
    assert found.total() == 4292


def image(tmp_path: Path, name: str = "1.png", colour: str = "red") -> str:
    Image.new("RGB", (8, 8), colour).save(tmp_path / name)
    return str(tmp_path / name)


def judged(question: ValidationRow, answer: Callable[[Request], RequestOutcome]) -> tuple[str, dict[str, float]]:
    judge = NegativeJudge(PromptBook(None), "m", MessageImages(), [question])
    (row,) = run_step(judge.annotate(pair_for_row(question), random.Random(0)), answer)
    assert (row.status == "rejected") == bool(row.reason)
    return row.reason, row.scores


def says(text: str) -> Callable[[Request], RequestOutcome]:
    return lambda _: Reply(text, "stop", "", Usage(1, 1), "m")


def knows(*true: str) -> Callable[[Request], RequestOutcome]:
    """Answer as a judge who knows which texts are true."""

    def answer(request: Request) -> RequestOutcome:
        shown = [json.loads(line.partition(" ")[2]) for line in request.messages[-1].text.strip().splitlines()]
        right = [f"({at})" for at, text in enumerate(shown, 1) if text in true]
        return Reply({0: "neither", 1: "".join(right), 2: "both"}[len(right)], "stop", "", Usage(1, 1), "m")

    return answer


def test_only_picks_of_both_orders_count(tmp_path: Path) -> None:
    question = ValidationRow("a", image(tmp_path), "a red square", "a blue square")
    assert judged(question, knows("a red square")) == ("", {"judge": 1.0})
    assert judged(question, knows("a red square", "a blue square")) == ("true_of_image", {"judge": 0.0})
    assert judged(question, knows("a blue square")) == ("true_of_image", {"judge": 0.0})
    assert judged(question, knows()) == ("caption_doubted", {"judge": 0.5})
    assert judged(question, says("(1)")) == ("judge_undecided", {"judge": 0.5})  # whatever is shown first
    for text in ("Let me think.", "I'm sorry, I can't assist with this request."):
        assert judged(question, says(text)) == ("judge_unreadable", {"judge": 0.5})


def test_request_errors_and_missing_images_give_no_verdict(tmp_path: Path) -> None:
    question = ValidationRow("a", image(tmp_path), "a red square", "a blue square")
    assert judged(question, lambda _: RequestError("timeout")) == ("timeout", {})
    for locator in ("", str(tmp_path / "none.png"), "https://example.org/1.png"):
        reason = "image_url" if locator.startswith("https") else "no_image"
        assert judged(ValidationRow("a", locator, "a red square", "a blue square"), says("(1)")) == (reason, {})
        assert reason in REASONS


def test_the_judge_sees_the_image_and_the_texts_in_both_orders(tmp_path: Path) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        seen.append(request)
        return Reply("(1)", "stop", "", Usage(1, 1), "m")

    judged(ValidationRow("a", image(tmp_path), "one", "two"), answer)
    assert [len(request.messages[-1].images) for request in seen] == [1, 1]
    orders = [request.messages[-1].text for request in seen]
    assert [text.index("one") < text.index("two") for text in orders] == [True, False]


class Colours:
    """An encoder that distinguishes red from blue."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Tell red from the rest."""
        return np.array([[1.0, 0.0] if "red" in text else [0.0, 1.0] for text in texts], np.float32)

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Look at a corner: how red, how blue."""
        return np.array([np.asarray(one)[0, 0, [0, 2]] / 255 for one in images], np.float32)


def test_a_negative_that_fits_the_image_clearly_better_is_rejected_and_scores_are_kept(tmp_path: Path) -> None:
    red, blue = image(tmp_path), image(tmp_path, "2.png", "blue")
    rows = [("a red thing", "a blue thing", red), ("a red thing", "a blue thing", blue), ("a", "b", "none.png")]
    questions = [ValidationRow(str(at), where, one, other) for at, (one, other, where) in enumerate(rows)]
    found = list(check_by_clip_margin(questions, Colours(), 0.5))
    assert [verdict.reason for verdict in found] == ["", "true_of_image", "no_image"]
    assert [dict(verdict.scores) for verdict in found[:2]] == [
        {"clip_positive": 1.0, "clip_negative": 0.0},
        {"clip_positive": 0.0, "clip_negative": 1.0},
    ]
    assert [verdict.reason for verdict in check_by_clip_margin(questions[:2], Colours(), 1.0)] == ["", ""]


def test_an_invalid_image_is_a_reason_and_the_other_rows_are_judged(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(io.BytesIO(b"\x89PNG no").getvalue())
    questions = [
        ValidationRow("a", str(tmp_path / "broken.png"), "a", "b"),
        ValidationRow("b", image(tmp_path), "red", "x"),
    ]
    assert [verdict.reason for verdict in check_by_clip_margin(questions, Colours(), 0.5)] == ["no_image", ""]


def test_the_facts_of_an_image_come_from_all_its_pairs() -> None:
    box = Box("dog", 0.1, 0.1, 0.5, 0.5)
    pairs = [Pair("k", "a dog", image="000000000007.jpg"), Pair("l", "a pet", captions=("a dog",), source_id="7")]
    pairs += [Pair("m", "a cat", image="8.jpg", boxes=(box,)), Pair("n", "not asked about", image="9.jpg")]
    known = collect_facts(pairs, {"7", "8"})
    assert {group: (list(each.captions), list(each.boxes)) for group, each in known.items()} == {
        "7": (["a dog", "a pet"], []),
        "8": (["a cat"], [box]),
    }


def test_an_unreadable_choice_is_no_choice_between_neither_and_both(tmp_path: Path) -> None:
    """All rows of a model that reasoned up to its token limit were undecided."""
    question = ValidationRow("a", image(tmp_path), "a red square", "a blue square")
    refused = ("I'm sorry, I can't assist with this request.", "model_unreadable")
    for text, reason in (
        refused,
        ("", "model_unreadable"),
        ("neither", "model_undecided"),
        ("both", "model_undecided"),
    ):
        finder = MistakeFinder(PromptBook(None), "m", MessageImages(), [question])
        (row,) = run_step(finder.annotate(pair_for_row(question), random.Random(0)), says(text))
        assert (row.reason, row.scores) == (reason, {})
