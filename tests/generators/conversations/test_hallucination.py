"""Objects of a text without support in captions and boxes."""

import json
from pathlib import Path
from statistics import fmean

import pytest
import yaml

from pairwright.datasets.records import Box
from pairwright.generators.conversations.hallucination import ObjectSupport
from pairwright.generators.conversations.image_context import ImageContext
from pairwright.generators.conversations.turn_checks import Exchange, check_turns
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from pairwright.generators.prompts.book import BUILT_IN

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

CONTEXT = ImageContext(
    ("A man is surfing on a big wave.", "A surfer near two dogs on the beach."), (Box("person", 0, 0, 1, 1),)
)


@pytest.fixture(scope="module")
def support() -> ObjectSupport:
    return ObjectSupport(load_wordnet(), load_tagger())


@pytest.mark.parametrize(
    "text",
    [
        "A man is surfing on a wave.",
        "The animals are near a person.",
        "A surfer rides a large wave close to the shore.",
        "In the center of the image there is someone on the left side.",
        "Yes, there are two dogs.",
        "No.",
    ],
)
def test_true_sentences_have_no_unsupported_object(support: ObjectSupport, text: str) -> None:
    assert support.of([text], CONTEXT).unsupported == ()
    assert support.of([text], CONTEXT).share == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The man holds an umbrella.", ("umbrella",)),
        ("A poodle runs behind a lifeguard.", ("poodle", "lifeguard")),
        ("A man is near the Eiffel Tower.", ("eiffel", "tower")),
    ],
)
def test_objects_that_are_not_mentioned_are_unsupported(
    support: ObjectSupport, text: str, expected: tuple[str, ...]
) -> None:
    assert support.of([text], CONTEXT).unsupported == expected


def test_labels_count_as_much_as_captions(support: ObjectSupport) -> None:
    boxes = ImageContext(("A street.",), (Box("fire hydrant", 0, 0, 1, 1),), more=(("umbrella", 2),))
    assert support.of(["There is a hydrant beside an umbrella on the street."], boxes).share == 0


@pytest.mark.parametrize(
    ("caption", "text"),
    [
        ("Two people sit down eating pizza.from red plates.", "There is a pizza on the plate."),
        ("A heavy set man showing his teeth in a funny manner.", "The man shows a tooth."),
        ("A boy batting on a field.", "A boy stands with a bat on the field."),
        ("Some stuf\u00adfed bears.", "A stuffed bear."),
    ],
)
def test_words_of_captions_count_with_any_lemma_that_they_may_have(
    support: ObjectSupport, caption: str, text: str
) -> None:
    assert support.of([text], ImageContext((caption,), ())).unsupported == ()


def test_captions_of_the_image_are_supported_and_those_of_others_are_not(
    support: ObjectSupport, real_data: Path
) -> None:
    lines = (real_data / "llava_caps_boxes/caps_boxes.jsonl").read_text().splitlines()[:20]
    rows = [json.loads(line) for line in lines]
    held_out, others = [], []
    for row, other in zip(rows, [*rows[7:], *rows[:7]], strict=True):
        boxes = tuple(Box(each["category"], *each["bbox"]) for each in row["instances"])
        context = ImageContext(tuple(row["captions"][1:]), boxes)
        held_out.append(support.of([row["captions"][0]], context).share)
        others.append(support.of([other["captions"][0]], context).share)
        assert support.of(row["captions"][1:], context).share == 0
    assert fmean(held_out) < 0.25
    assert fmean(others) > 0.6


@pytest.mark.parametrize("name", ["conversation", "detail", "reasoning"])
def test_the_demonstrations_of_our_prompts_pass_the_checks(support: ObjectSupport, name: str) -> None:
    for shown in yaml.safe_load((BUILT_IN / f"{name}.yaml").read_text())["demonstrations"]:
        values, answer = shown["values"], shown["answer"]
        boxes = tuple(Box(label, *corners) for label, corners in values["boxes"])
        context = ImageContext(tuple(values["captions"]), boxes)
        said = {"question": "Describe the image in detail.", "answer": answer} if name == "detail" else answer
        turns = [Exchange(turn["question"], turn["answer"]) for turn in said.get("turns", [said])]
        assert check_turns(turns, name, context) is None
        assert support.of([turn.answer for turn in turns], context).share < (0.35 if name == "reasoning" else 0.2)
