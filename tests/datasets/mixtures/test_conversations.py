"""Conversations parsed from every layout."""

import time
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import ImageRoot
from pairwright.datasets.mixtures.conversations import Conversation, check_conversation_columns, conversations_from_row
from pairwright.datasets.mixtures.sources import append_prompt
from pairwright.datasets.records import Turn
from pairwright.datasets.rejects import REASONS, RejectError

ASKED, REPLY = "What is it?", "A bus."
TURNS = (Turn("human", ASKED), Turn("assistant", REPLY))
LLAVA = [{"from": "human", "value": f"<image>\n{ASKED}"}, {"from": "gpt", "value": REPLY}]
PARTS = [{"type": "image_url", "image_url": {"url": "1.jpg"}}, {"type": "text", "text": ASKED}]
MARK = [{"type": "image"}, {"type": "text", "text": ASKED}]


def chat(question: Any, **row: Any) -> dict[str, Any]:
    answer = {"role": "assistant", "content": [{"type": "text", "text": REPLY}]}
    return row | {"messages": [{"role": "user", "content": question}, answer]}


def conversations(fields: dict[str, Any], columns: dict[str, str] | None = None) -> list[Conversation]:
    return list(conversations_from_row(fields, columns or {}, ImageRoot(Path("/data"))))


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 7, "image": "1.jpg", "conversations": LLAVA},
        {"messages": [{"role": "user", "content": PARTS}, {"role": "assistant", "content": REPLY}]},
        chat(MARK, images=["1.jpg"]),  # TRL
        chat(MARK, images=[{"bytes": None, "path": "1.jpg"}]),
        chat([{"type": "image", "image": "1.jpg"}, MARK[1]]),  # Qwen
        chat([{"type": "image", "url": "1.jpg"}, MARK[1]]),  # transformers
        chat(f"<image>{ASKED}", images=["1.jpg"]),  # LLaMA-Factory, ms-swift
        chat(MARK, image="1.jpg"),
        {"image": "1.jpg", "turns": [{"role": "human", "text": ASKED}, {"role": "assistant", "text": REPLY}]},
        {"images": ["1.jpg"], "texts": [{"user": ASKED, "assistant": REPLY, "source": "x"}]},  # The Cauldron
        {"image": "1.jpg", "question": ASKED, "answer": REPLY},
        {"image": "1.jpg", "instruction": f" {ASKED}\n", "output": REPLY},
        {"image": "1.jpg", "input": ASKED, "output": REPLY, "objective": "label", "split": "train"},
        {"images": ["1.jpg"], "query": f"<image>{ASKED}", "response": REPLY, "history": []},  # ms-swift
        {
            "conversations": [
                {"from": "user", "value": f"Picture 1: <img>1.jpg</img>\n{ASKED}"},
                {"from": "assistant", "value": REPLY},
            ]
        },  # Qwen-VL
    ],
)
def test_every_layout_gives_the_same_turns_and_image(fields: dict[str, Any]) -> None:
    (conversation,) = conversations(fields)
    assert (conversation.turns, conversation.images, conversation.name) == (TURNS, ("/data/1.jpg",), "1.jpg")


BOTH = f"<image>\n<image>\n{ASKED}"
TWO = ["1.jpg", "2.jpg"]
NAMED = [{"type": "image", "image": name} for name in TWO]


@pytest.mark.parametrize(
    "fields",
    [
        {"image": TWO, "conversations": [{"from": "human", "value": BOTH}, LLAVA[1]]},  # LLaVA-NeXT-Interleave
        {"images": TWO, "conversation": [{"role": "user", "content": BOTH}, {"role": "assistant", "content": REPLY}]},
        {"images": TWO, "texts": [{"user": ASKED, "assistant": REPLY}]},  # The Cauldron: no marks
        {"images": TWO, "question": ASKED, "answer": REPLY},
        chat([MARK[0], *MARK], images=TWO),  # TRL
        chat([MARK[0], *MARK], images=[{"bytes": None, "path": name} for name in TWO]),
        chat([*NAMED, MARK[1]]),  # Qwen2.5-VL
        chat([*NAMED, MARK[1]], image="1.jpg"),
        chat([MARK[0], NAMED[1], MARK[1]], image="1.jpg"),
        chat(BOTH, images=TWO),  # LLaMA-Factory, ms-swift
    ],
)
def test_every_layout_of_several_images_gives_them_in_order(fields: dict[str, Any]) -> None:
    (conversation,) = conversations(fields)
    assert conversation.turns == (Turn("human", BOTH), TURNS[1])
    assert (conversation.images, conversation.written) == (("/data/1.jpg", "/data/2.jpg"), ("1.jpg", "2.jpg"))


def test_images_of_several_turns_stay_in_them() -> None:
    turns = [
        {"role": "user", "content": [MARK[1], NAMED[0], {"type": "text", "text": "And:"}]},
        {"role": "assistant", "content": REPLY},
        {"role": "user", "content": [{"type": "text", "text": "This: "}, NAMED[0]]},
        {"role": "assistant", "content": REPLY},
    ]
    (conversation,) = conversations({"messages": turns})
    assert conversation.texts == [f"{ASKED}\n<image>\nAnd:", REPLY, "This: <image>", REPLY]
    assert conversation.images == ("/data/1.jpg", "/data/1.jpg")  # shown twice


def test_a_first_turn_by_system_is_dropped_when_asked() -> None:
    system = {"from": "system", "value": "Be brief."}
    row = {"image": "1.jpg", "conversations": [system, *LLAVA]}
    (conversation,) = conversations_from_row(row, {}, ImageRoot(Path("/data")), drop_system=True)
    assert conversation.turns == TURNS
    with pytest.raises(RejectError, match="turn 3 is by 'system'"):
        list(
            conversations_from_row(
                {**row, "conversations": [*LLAVA, system]}, {}, ImageRoot(Path("/data")), drop_system=True
            )
        )


def test_columns_are_named_by_the_user() -> None:
    (conversation,) = conversations({"q": ASKED, "a": 3, "question": "other"}, {"question": "q", "answer": "a"})
    assert conversation.texts == [ASKED, "3"]


def test_a_column_of_the_image_may_be_a_template() -> None:
    (conversation,) = conversations(
        {"image_id": 7, "question": ASKED, "answer": REPLY}, {"image": "coco/{image_id:012}.jpg"}
    )
    assert conversation.images == ("/data/coco/000000000007.jpg",)


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({"instruction": "Translate.", "input": "chat", "output": "cat"}, ["Translate.\nchat", "cat"]),
        ({"instruction": "Greet.", "input": "", "output": "Hi."}, ["Greet.", "Hi."]),
        ({"prompt": "Greet.", "query": "SELECT 1", "answer": "Hi."}, ["Greet.", "Hi."]),
        (
            {"query": "And?", "response": "A cat.", "history": [["What?", "A dog."]]},
            ["What?", "A dog.", "And?", "A cat."],
        ),
        *(
            ({"question": "Which?", "answer": "A cat.", "history": other}, ["Which?", "A cat."])
            for other in ("of 3 years", ["visited", "2019"], 3, [["What?", None]], [["", ""]])
        ),
    ],
)
def test_the_input_of_an_instruction_and_earlier_exchanges_are_read(fields: dict[str, Any], texts: list[str]) -> None:
    (conversation,) = conversations(fields)
    assert conversation.texts == texts


@pytest.mark.parametrize(
    ("instruction", "texts", "side"),
    [
        ("Compare.\n<image>", ["Compare.\na red dog", REPLY], "after"),
        ("<image>\nCompare.", ["Compare.\na red dog", REPLY], "before"),
        ("<image>", ["a red dog", REPLY], "before"),
    ],
)
def test_the_image_stays_beside_an_instruction_with_its_input(instruction: str, texts: list[str], side: str) -> None:
    row = {"image": "1.jpg", "instruction": instruction, "input": "a red dog", "output": REPLY}
    (conversation,) = conversations(row)
    assert (conversation.texts, conversation.side) == (texts, side)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is it?", "Write <img>1.jpg</img>."),
        ("How do I write <img></img>?", "Like that."),
        ("Is <img>logo</img> valid?", "No."),
        ("<img>" * 20_000 + ".jpg", "No."),
        ("<img>" + ".jpg" * 20_000, "No."),
    ],
)
def test_img_that_names_no_image_of_a_question_is_text(question: str, answer: str) -> None:
    turns = [{"from": "user", "value": question}, {"from": "assistant", "value": answer}]
    start = time.process_time()
    (conversation,) = conversations({"conversations": turns})
    assert (conversation.texts, conversation.images) == ([question, answer], ())
    assert time.process_time() - start < 1


def test_images_named_inside_a_text_stay_at_their_places() -> None:
    asked = "Picture 1: <img>1.jpg</img>\nPicture 2: <img>2.jpg</img>\nWhich?"
    (conversation,) = conversations(
        {"conversations": [{"from": "user", "value": asked}, {"from": "assistant", "value": REPLY}]}
    )
    assert conversation.written == ("1.jpg", "2.jpg")
    assert conversation.texts == ["Picture 1: <image>\nPicture 2: <image>\nWhich?", REPLY]


def test_an_unknown_column_part_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(
        UsageError, match=r"no such name: quest\. Did you mean question\? There are: conversations, question"
    ):
        check_conversation_columns({"quest": "q"})


def test_an_example_gives_its_label_and_its_rationale() -> None:
    row = {"input": "2 + 2?", "label": "4", "rationale": "Two and two is four.", "split": "validation", "key": ""}
    assert [(conversation.kind, *conversation.texts, conversation.split) for conversation in conversations(row)] == [
        ("label", "[label] 2 + 2?", "4", "validation"),
        ("rationale", "[rationale] 2 + 2?", "Two and two is four.", "validation"),
    ]


def test_a_row_of_our_parquet_export_gives_each_of_its_conversations() -> None:
    row = {
        "image": "",
        "conversations": [
            {"type": "brief", "turns": [{"role": "human", "text": ASKED}, {"role": "assistant", "text": REPLY}]}
        ]
        * 2,
        "provenance": {},
    }
    assert [(conversation.kind, conversation.turns) for conversation in conversations(row)] == [("brief", TURNS)] * 2
    assert conversations({"image": "", "conversations": [], "provenance": {}}) == []


@pytest.mark.parametrize(("text", "side"), [("<image>\nQ", "before"), ("Q\n<image>", "after"), ("Q", "")])
def test_the_side_of_the_image_token_is_kept(text: str, side: str) -> None:
    (conversation,) = conversations({"image": "1.jpg", "conversations": [{"from": "human", "value": text}, LLAVA[1]]})
    assert (conversation.turns[0].text, conversation.side) == ("Q", side)


@pytest.mark.parametrize(
    ("fields", "questions"),
    [
        ({"image": "1.jpg", "conversations": [{"from": "human", "value": "<image>\n "}, LLAVA[1]]}, [""]),
        (chat([PARTS[0]]), [""]),
        (
            {"image": ["1.jpg", "2.jpg"], "conversations": [{"from": "human", "value": "<image>"}, LLAVA[1]] * 2},
            ["<image>", "<image>"],
        ),
        ({"image": ["1.jpg", "2.jpg"], "question": "<image>\n<image>", "answer": "A"}, ["<image>\n<image>"]),
    ],
)
def test_a_question_may_be_its_images_alone(fields: dict[str, Any], questions: list[str]) -> None:
    (conversation,) = conversations(fields)
    assert conversation.texts[::2] == questions
    assert all(conversation.texts[1::2])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"caption": "A bus."}, "no_conversation"),
        ({"conversations": "text"}, "wrong_type"),
        ({"conversations": ["text"]}, "wrong_type"),
        ({"conversations": []}, "bad_turns"),
        ({"conversations": [{"type": "brief", "turns": "text"}]}, "wrong_type"),
        ({"conversations": [LLAVA[1], LLAVA[0]], "image": "1.jpg"}, "misplaced_image_token"),
        ({"conversations": [LLAVA[1]]}, "bad_turns"),
        ({"conversations": LLAVA[:1], "image": "1.jpg"}, "bad_turns"),
        ({"conversations": [{"from": "system", "value": "Be kind."}, *LLAVA], "image": "1.jpg"}, "bad_turns"),
        ({"conversations": [{"from": ["human"], "value": "Q"}, LLAVA[1]]}, "wrong_type"),
        ({"conversations": [{"from": "human", "value": "\n "}, LLAVA[1]], "image": "1.jpg"}, "empty_turn"),
        ({"conversations": [*LLAVA, {"from": "human", "value": ""}, LLAVA[1]], "image": "1.jpg"}, "empty_turn"),
        ({"conversations": [{"from": "human", "value": None}, LLAVA[1]]}, "empty_turn"),
        ({"conversations": LLAVA}, "misplaced_image_token"),
        ({"conversations": [*LLAVA, *LLAVA], "image": "1.jpg"}, "misplaced_image_token"),
        (
            {"conversations": [{"from": "human", "value": "Is <image> it?"}, LLAVA[1]], "image": "1.jpg"},
            "misplaced_image_token",
        ),
        ({"question": "Q", "answer": ["a", "b"]}, "wrong_type"),
        ({"question": "Q", "answer": ""}, "empty_turn"),
        ({"question": "Q", "answer": None}, "empty_turn"),
        ({"question": "Q"}, "no_conversation"),
        ({"image_id": 7, "question": "Q", "answer": "A"}, "missing_image"),
        ({"image": 3, "question": "Q", "answer": "A"}, "wrong_type"),
        ({"input": "Q", "label": "yes", "rationale": "So.", "key": "0" * 32}, "missing_image"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]},
            "wrong_type",
        ),
        (chat(MARK), "missing_image"),
        (chat(MARK, images=[]), "missing_image"),
        (chat(MARK, images=["1.jpg", "2.jpg"]), "image_count_mismatch"),
        (chat([*MARK, *MARK], images=["1.jpg"]), "image_count_mismatch"),
        (chat([*MARK, PARTS[0]], images=["1.jpg", "2.jpg"]), "image_count_mismatch"),
        (chat([*PARTS, MARK[0]]), "missing_image"),
        (chat([*PARTS, PARTS[0], {"type": "text", "text": "<image>"}]), "image_count_mismatch"),
        ({"image": ["1.jpg", "2.jpg"], "conversations": LLAVA}, "image_count_mismatch"),
        ({"image": ["1.jpg", "2.jpg"], "conversations": [*LLAVA, *LLAVA, *LLAVA]}, "image_count_mismatch"),
        ({"image": ["1.jpg", None], "conversations": [*LLAVA, *LLAVA]}, "missing_image"),
        ({"image": ["1.jpg", ""], "question": "Q", "answer": "A"}, "missing_image"),
        ({"image": ["1.jpg", 2], "question": "Q", "answer": "A"}, "wrong_type"),
        ({"image": ["1.jpg", "2.jpg"], "question": "<image> Q", "answer": "<image>A"}, "misplaced_image_token"),
        ({"image": ["1.jpg", "2.jpg"], "question": "", "answer": "A"}, "empty_turn"),
        ({"image": ["1.jpg", "2.jpg"], "question": "<image>\n<image>", "answer": " "}, "empty_turn"),
        ({"image": ["1.jpg", "2.jpg"], "conversations": []}, "bad_turns"),
        (chat(MARK, images=[{"bytes": b"x", "path": None}]), "wrong_type"),
        (chat([{"type": "video", "video": "1.mp4"}, MARK[1]]), "wrong_type"),
    ],
)
def test_an_invalid_conversation_is_rejected_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(RejectError) as flaw:
        conversations(fields)
    assert flaw.value.reason == reason
    assert reason in REASONS


def test_a_response_format_prompt_is_appended_once_to_each_question() -> None:
    prompt = "Answer the question using a single word or phrase."
    conversation = Conversation(
        (Turn("human", "Q"), Turn("assistant", "A"), Turn("human", f"R\n{prompt}"), Turn("assistant", "B"))
    )
    once = append_prompt(conversation, prompt)
    assert once.texts == [f"Q\n{prompt}", "A", f"R\n{prompt}", "B"]
    assert append_prompt(once, prompt) == once


def test_an_image_outside_the_image_root_is_refused(tmp_path: Path) -> None:
    row = {
        "image": "../private.jpg",
        "conversations": [{"from": "human", "value": "What?"}, {"from": "gpt", "value": "A."}],
    }
    assert next(conversations_from_row(row, {}, ImageRoot(tmp_path / "photos"))).images == (
        str(tmp_path / "private.jpg"),
    )
    with pytest.raises(RejectError, match="lies outside the image root"):
        list(conversations_from_row(row, {}, ImageRoot(tmp_path / "photos", confined=True)))
