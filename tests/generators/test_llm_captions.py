"""Captions by a model that sees the image: what is requested, what is kept, and why the rest is rejected."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Box, Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import RequestOutcome, run_step
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES
from pairwright.generators.llm_captions import CAPTION_REASONS, LLMCaptionOptions, LLMCaptions, without_opening
from pairwright.generators.prompts.book import PromptBook
from tests.generators.pair_steps import steps_of_pair

SHORT = "A brown dog runs along a beach."
LONG = (
    "A brown dog runs along a wide beach of yellow sand, close to the water. To its left lies a red frisbee, and behind "
    "it two boats stand on the sand next to a wooden hut."
)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A photo without any text."""
    path = tmp_path / "photo.png"
    Pictures.new("RGB", (40, 30), "red").save(path)
    return Pair("0" * 32, "", source_id="photo", image=str(path))


def generator(**options: Any) -> LLMCaptions:
    chosen = LLMCaptionOptions(**options)
    return LLMCaptions(load_wordnet(), load_tagger(), PromptBook(), "m", chosen)


def asked(pair: Pair, *captions: tuple[str, Any], **options: Any) -> list[Annotation]:
    answer = json.dumps({"captions": [{"form": form, "caption": text} for form, text in captions]})
    reply = Reply(answer, "stop", "", Usage(1, 1), "m", key="k")
    return run_step(steps_of_pair(generator(**options), pair, make_rng(0)), lambda _: reply)


def outcomes(rows: list[Annotation]) -> list[tuple[str, str]]:
    return [(row.text, row.reason) for row in rows]


def test_an_image_without_text_gets_a_caption_of_each_form_from_one_request(pair: Pair) -> None:
    requests: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        requests.append(request)
        entries = [("short", SHORT), ("long", LONG), ("tags", ["brown dog", "beach", "frisbee"])]
        text = json.dumps({"captions": [{"form": form, "caption": text} for form, text in entries]})
        return Reply(text, "stop", "", Usage(1, 1), "m", key="k")

    rows = run_step(steps_of_pair(generator(forms=("short", "long", "tags")), pair, make_rng(0)), answer)
    assert [(row.kind, row.status, row.text) for row in rows] == [
        ("short-caption", "kept", SHORT),
        ("long-caption", "kept", LONG),
        ("tags", "kept", "brown dog, beach, frisbee"),
    ]
    [request] = requests
    [image] = request.messages[-1].images
    assert image.sha256 == MessageImages().read(pair.image).sha256
    assert (rows[0].origin.model, rows[0].origin.request) == ("m", "k")
    assert rows[0].scores == {}  # there is nothing to compare with


@pytest.mark.parametrize(
    ("caption", "reason"),
    [
        ("Dog.", "too_short"),
        (" ".join(["A dog and"] * 20), "too_long"),
        ("A brown dog that is not clearly visible runs on a beach.", "hedged"),
        ("As mentioned in the caption, a dog runs.", "mentions_source"),
        ("- a dog\n- a beach\n- a boat", ""),
        ("一只棕色的狗在海滩上奔跑，旁边有一个红色的飞盘。", "other_language"),
        ("Ein brauner Hund rennt schnell entlang des breiten Strandes am Wasser.", "other_language"),
    ],
)
def test_a_caption_is_rejected_for_its_form(pair: Pair, caption: str, reason: str) -> None:
    [row] = asked(pair, ("short", caption))
    assert row.reason == reason
    assert row.reason in {"", *CAPTION_REASONS, "mentions_source", "other_language"}


@pytest.mark.parametrize(
    ("tags", "kept", "reason"),
    [
        ("dog; Beach, dog.", "dog, Beach", ""),
        ("", "", "too_short"),
        ("a dog that runs along a beach", "a dog that runs along a beach", "too_long"),
    ],
)
def test_tags_are_distinct_and_short(pair: Pair, tags: str, kept: str, reason: str) -> None:
    assert outcomes(asked(pair, ("tags", tags), forms=("tags",))) == [(kept, reason)]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("The image shows a dog on a beach.", "A dog on a beach."),
        ("This photo captures two dogs.", "Two dogs."),
        ("A photo of a cat.", "A cat."),
        ("In this picture, a man rides a horse.", "A man rides a horse."),
        ("A picture hangs on the wall.", "A picture hangs on the wall."),
        ("The image", "The image"),
    ],
)
def test_an_opening_about_the_image_is_dropped(written: str, text: str) -> None:
    assert without_opening(written) == text


def test_surplus_repeated_and_missing_captions_are_counted(pair: Pair) -> None:
    rows = asked(
        pair,
        ("short", SHORT),
        ("short", SHORT.upper()),
        ("short", "A dog and two boats on a beach."),
        ("short", "A hut stands by the sea."),
        ("tags", "dog"),
        forms=("short", "long"),
        per_image=2,
    )
    assert [row.reason for row in rows] == ["", "repeated", "", "spare", "not_asked", "missing", "missing"]
    assert sum(row.status == "kept" for row in rows) == 2


def test_a_caption_is_compared_with_captions_and_boxes(pair: Pair) -> None:
    known = replace(pair, caption="A dog runs on a beach.", boxes=(Box("boat", 0.1, 0.1, 0.2, 0.2),))
    rows = asked(
        known, ("short", "A puppy and a horse run past a boat."), ("short", "Three boats lie on a beach."), per_image=2
    )
    assert rows[0].scores["things"] >= 2
    assert rows[0].scores["unsupported_things"] >= 1
    assert rows[0].scores["hallucination"] == pytest.approx(
        rows[0].scores["unsupported_things"] / rows[0].scores["things"], abs=1e-6
    )
    assert [row.reason for row in rows] == ["", "above_boxes"]
    assert asked(known, ("short", "A horse runs past a boat."), max_hallucination=0.2)[0].reason == "unsupported"
    assert asked(known, ("short", "A dog runs on a beach!"))[0].reason in {"", "repeated"}


def test_what_the_captions_say_is_no_overcount(pair: Pair) -> None:
    known = replace(pair, caption="Three boats on a beach.", boxes=(Box("boat", 0.1, 0.1, 0.2, 0.2),))
    assert asked(known, ("short", "Three boats lie on the sand."))[0].reason == ""


def test_a_batch_gives_what_each_pair_gives_alone(pair: Pair) -> None:
    one = generator(per_image=2)
    known = replace(pair, key="1" * 32, caption=SHORT)
    found = [
        (each, run_step(one.ask(each, make_rng(0)), lambda _: Reply(
            json.dumps({"captions": [{"form": "short", "caption": SHORT}, {"form": "short", "caption": LONG[:70]}]}),
            "stop", "", Usage(1, 1), "m", key="k")))
        for each in (pair, known)
    ]  # fmt: skip
    assert one.check(found) == [one.check([each])[0] for each in found]


@pytest.mark.parametrize(
    ("image", "reason"), [("", "no_image"), ("/nowhere/x.png", "no_image"), ("https://example.org/x.jpg", "image_url")]
)
def test_a_pair_without_a_readable_image_is_not_asked_about(image: str, reason: str, pair: Pair) -> None:
    [row] = asked(replace(pair, image=image), ("short", SHORT))
    assert (row.status, row.reason) == ("rejected", reason)


def test_an_error_of_the_server_is_the_reason_of_each_form(pair: Pair) -> None:
    steps = steps_of_pair(generator(forms=("short", "tags")), pair, make_rng(0))
    rows = run_step(steps, lambda _: RequestError("timeout"))
    assert [(row.kind, row.reason) for row in rows] == [("short-caption", "timeout"), ("tags", "timeout")]


def test_one_broken_entry_does_not_cost_the_others(pair: Pair) -> None:
    answer = (
        '{"captions": [{"form": "short", "caption": "A dog runs on a beach."}, {"form": "poem", "caption": "O dog!"}]}'
    )
    reply = Reply(answer, "stop", "", Usage(1, 1), "m", key="k")
    rows = run_step(steps_of_pair(generator(), pair, make_rng(0)), lambda _: reply)
    assert rows[0].status == "kept"
    assert rows[1].reason in OUTPUT_ERROR_CODES


@pytest.mark.parametrize("wrong", [{"forms": ("poem",)}, {"forms": ()}, {"per_image": 0}, {"max_hallucination": 1.5}])
def test_impossible_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        generator(**wrong)
