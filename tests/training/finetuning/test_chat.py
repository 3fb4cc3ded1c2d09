"""Chat templates: the loss is on answers and the tokens that end them, by markers or without."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("peft", reason="LoRA is peft's")

from PIL import Image  # noqa: E402 - after the skips

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.datasets.shards.samples import Sample  # noqa: E402
from pairwright.datasets.shards.writing import write_shards  # noqa: E402
from pairwright.training.finetuning.chat import LLAVA_TEMPLATE, find_answers, to_messages  # noqa: E402
from pairwright.training.finetuning.conversations import ConversationCollator  # noqa: E402
from pairwright.training.finetuning.dataset import NO_ROW, EpochOrder, open_dataset  # noqa: E402
from pairwright.training.loading.shard_index import StoredSample  # noqa: E402
from pairwright.training.loading.tokenization import IGNORE_INDEX  # noqa: E402
from pairwright.training.models.generative import ImageTextModel  # noqa: E402
from tests.datasets.sample_builders import conversation, pair, picture  # noqa: E402
from tests.training.finetuning import tiny_vlms  # noqa: E402

TURNS = (
    {"role": "human", "text": "what colour is it ?"},
    {"role": "assistant", "text": "red ."},
    {"role": "human", "text": "is it a circle ?"},
    {"role": "assistant", "text": "no it is a square ."},
)
ANSWERS = ["red .", "no it is a square ."]
PLAIN = LLAVA_TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
ENDLESS = LLAVA_TEMPLATE.replace("{{ eos_token }}{% endgeneration %}", "{% endgeneration %}{{ eos_token }}")


def sample(number: int = 0, image: bytes | None = None, turns: Any = TURNS) -> StoredSample:
    shown = picture() if image is None else image
    body = {"conversations": [{"type": "conversation", "turns": list(turns)}]}
    return StoredSample(str(number), f"shard::{number}", "", body, shown)


def collator(folder: Path, kind: str = "llava", template: str = "", **changes: Any) -> ConversationCollator:
    name = tiny_vlms.qwen(folder) if kind == "qwen" else tiny_vlms.llava(folder, template or LLAVA_TEMPLATE)
    processor = ImageTextModel.read_processor(name)
    return replace(ConversationCollator(processor, frozenset([6 if kind == "qwen" else 2])), **changes)


def learnt(one: ConversationCollator, batch: Any, row: int) -> str:
    labels = batch["labels"][row]
    assert torch.equal(labels[labels >= 0], batch["input_ids"][row][labels >= 0])
    return str(one.processor.tokenizer.decode(labels[labels >= 0]))


@pytest.mark.parametrize(
    ("kind", "template", "end"),
    [("llava", "", "</s>"), ("llava", PLAIN, "</s>"), ("llava", ENDLESS, "</s>"), ("qwen", "", "<|im_end|>")],
    ids=["markers", "no markers", "markers without the end", "qwen"],
)
def test_answers_and_their_end_tokens_are_learnt(tmp_path: Path, kind: str, template: str, end: str) -> None:
    one = collator(tmp_path, kind, template)
    batch = one([sample(), sample(1, turns=TURNS[:2])])
    assert learnt(one, batch, 0) == f" {end} ".join(ANSWERS) + f" {end}"
    assert learnt(one, batch, 1) == f"{ANSWERS[0]} {end}"
    assert (batch["skipped"], batch["cut"]) == ([], 0)


def test_markers_give_the_mask_of_transformers(tmp_path: Path) -> None:
    one = collator(tmp_path, template=LLAVA_TEMPLATE)
    batch = one([sample()])
    found = one.processor.apply_chat_template(
        one.messages(sample()), tokenize=True, return_dict=True, return_tensors="pt", return_assistant_tokens_mask=True
    )
    assert torch.equal(batch["input_ids"], torch.as_tensor(found["input_ids"]).reshape(1, -1))
    assert ((batch["labels"] != IGNORE_INDEX).long()[0].tolist()) == torch.as_tensor(
        found["assistant_masks"]
    ).flatten().tolist()


@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_conversations_without_an_image_mix_with_others(tmp_path: Path, kind: str) -> None:
    one = collator(tmp_path, kind)
    batch = one([sample(0, b""), sample(1), sample(2, b"")])
    images = (batch["input_ids"] == one.processor.image_token_id).sum(dim=1)
    assert images[0] == images[2] == 0 < images[1]
    assert len({learnt(one, batch, row) for row in range(3)}) == 1


@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_a_batch_without_any_image_gets_a_blank_one_without_labels(tmp_path: Path, kind: str) -> None:
    one = collator(tmp_path, kind)
    batch = one([sample(0, b""), sample(1, b"")])
    assert len(batch["labels"]) == 3
    assert (batch["labels"][2] == IGNORE_INDEX).all()
    assert "pixel_values" in batch


def test_long_conversations_are_cut_and_those_that_lose_image_or_answers_are_skipped(tmp_path: Path) -> None:
    one = collator(tmp_path)
    whole = one([sample()])
    last = int((whole["labels"][0] >= 0).nonzero().max())
    short = replace(one, max_tokens=last - 1)([sample(), sample(1, turns=TURNS[:2])])
    assert short["input_ids"].shape == short["labels"].shape == (2, last - 1)
    assert (short["cut"], short["skipped"]) == (1, [])
    gone = replace(one, max_tokens=10)([sample(), sample(1, b"", TURNS[:2])])
    assert [(each.place, each.reason) for each in gone["skipped"]] == [("shard::0", "too_many_tokens")]
    assert learnt(one, gone, 0).startswith("red")


def test_each_conversation_of_a_sample_is_a_row(tmp_path: Path) -> None:
    def asked(number: int) -> Sample:
        of = pair(number, f"a red circle {number}", f"{number}.jpg")
        said = [conversation(of, "what colour is it ?", f"red {turn}") for turn in range(number)]
        return Sample(of, tuple(said), (), picture(), "jpg")

    one = collator(tmp_path / "model")
    dataset = open_dataset(write_shards(map(asked, range(5)), tmp_path / "shards", max_samples=2).pattern, one)
    assert (len(dataset), dataset.index.left_out) == (10, {"no_conversations": 1})
    rows = [row for row in dataset.__getitems__(range(10)) if isinstance(row, StoredSample)]
    assert len({(row.key, row.unit) for row in rows}) == len(rows) == 10
    assert sorted(EpochOrder(dataset.index.counts, 4, seed=1)) == list(range(10))
    filled = list(EpochOrder(dataset.index.counts, 4, seed=1, batch=4))
    assert (sorted(filled[:10]), filled[10:]) == (list(range(10)), [NO_ROW] * 2)
    assert len(dataset.__getitems__(filled[8:])) == 2


def test_an_empty_image_is_no_text_only_conversation(tmp_path: Path) -> None:
    """The answers of its conversation were learnt without it."""
    made = []
    for number in range(2):
        of = pair(number, f"a red circle {number}", f"{number}.jpg")
        made.append(
            Sample(of, (conversation(of, "what colour is it ?", "red"),), (), picture() if number else b"", "jpg")
        )
    one = collator(tmp_path / "model")
    dataset = open_dataset(write_shards(made, tmp_path / "shards").pattern, one)
    batch = one(dataset.__getitems__([0, 1]))
    assert [each.reason for each in batch["skipped"]] == ["bad_image"]
    assert len(batch["labels"]) == 1


def test_broken_images_are_skipped(tmp_path: Path) -> None:
    batch = collator(tmp_path)([sample(0, b"no image"), sample(1)])
    assert [each.place for each in batch["skipped"]] == ["shard::0"]
    assert len(batch["labels"]) == 1


def test_the_image_may_come_before_or_after_the_first_question() -> None:
    image = Image.new("RGB", (8, 8))
    kinds = [
        [part["type"] for part in to_messages(TURNS, [image], image_first=one)[0]["content"]] for one in (True, False)
    ]
    assert kinds == [["image", "text"], ["text", "image"]]


def test_the_place_of_the_image_is_a_function_of_seed_and_sample(tmp_path: Path) -> None:
    one = collator(tmp_path, image_first=False)
    places = [one.messages(sample(number))[0]["content"][0]["type"] for number in range(20)]
    assert set(places) == {"image", "text"}
    assert places == [one.messages(sample(number))[0]["content"][0]["type"] for number in range(20)]


def test_a_template_that_rewrites_earlier_turns_is_refused_with_what_helps() -> None:
    def last_only(messages: Any, *, prompt: bool = False) -> str:
        return "".join(part["text"] for part in messages[-1]["content"]) if messages else ""

    with pytest.raises(UsageError, match=r"cannot be located .*\{% generation %\}"):
        find_answers(last_only, to_messages(TURNS))


TWO = (
    {"role": "human", "text": "<image>\nwhat colour is it ?"},
    {"role": "assistant", "text": "red ."},
    {"role": "human", "text": "is the <image> a circle ?"},
    {"role": "assistant", "text": "no it is a square ."},
)


def of_two(number: int = 0, turns: Any = TWO) -> StoredSample:
    return replace(sample(number, turns=turns), further_images=(picture("green"),))


@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_several_images_are_where_the_questions_mark_them(tmp_path: Path, kind: str) -> None:
    one = collator(tmp_path, kind)
    first, _, second, _ = one.messages(of_two())
    assert [part["type"] for part in first["content"]] == ["image", "text"]
    assert [part.get("text") for part in second["content"]] == ["is the ", None, " a circle ?"]
    batch = one([of_two(), sample(1), sample(2, b"")])
    images = (batch["input_ids"] == one.processor.image_token_id).sum(dim=1)
    assert images[0] == 2 * images[1] > images[2] == 0
    assert len({learnt(one, batch, row) for row in range(3)}) == 1
    assert batch["skipped"] == []


def test_the_images_of_a_sample_are_given_in_order(tmp_path: Path) -> None:
    found = [
        part["image"] for one in collator(tmp_path).messages(of_two()) for part in one["content"] if "image" in part
    ]
    (red, _, _), (_, green, _) = (image.getpixel((0, 0)) for image in found)
    assert red > 200
    assert green > 100


def test_a_sample_without_a_mark_for_each_image_is_skipped(tmp_path: Path) -> None:
    batch = collator(tmp_path)([of_two(0, TWO[:2]), sample(1)])
    assert [(one.place, one.reason) for one in batch["skipped"]] == [("shard::0", "image_count_mismatch")]
    assert len(batch["labels"]) == 1


def test_a_conversation_whose_second_image_is_beyond_the_limit_is_skipped(tmp_path: Path) -> None:
    one = collator(tmp_path)
    last = int((one([of_two()])["input_ids"][0] == one.processor.image_token_id).nonzero().max())
    batch = replace(one, max_tokens=last)([of_two(), sample(1, b"")])
    assert [each.reason for each in batch["skipped"]] == ["too_many_tokens"]
