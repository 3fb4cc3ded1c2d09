"""Collators: texts, masks, labels, and random choices."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer's tokenizers are those of transformers")

from pairwright.datasets.errors import InputError, UsageError  # noqa: E402 - behind the guard of torch
from pairwright.datasets.shards.samples import Sample  # noqa: E402
from pairwright.datasets.shards.webdataset import write_shards  # noqa: E402
from pairwright.generators.language.wordnet import wordnet_status  # noqa: E402
from pairwright.training.loading.conversations import ConversationCollator  # noqa: E402
from pairwright.training.loading.pairs import PairCollator  # noqa: E402
from pairwright.training.loading.rationales import RationaleCollator  # noqa: E402
from pairwright.training.loading.tokenization import TextOptions, load_tokenizer  # noqa: E402
from pairwright.training.loading.triplets import TripletCollator  # noqa: E402
from pairwright.training.objectives.next_token import IGNORE_INDEX  # noqa: E402
from tests.datasets.sample_builders import conversation, negative, pair, picture, samples  # noqa: E402
from tests.training.loading_cases import loader, shards, tokenizer  # noqa: E402

IMAGE = -200


class Given(NamedTuple):
    """Shards and a tokenizer."""

    data: str
    words: str

    def text(self, ids: Any, mask: Any = None) -> str:
        """Return what token ids say."""
        shown = ids if mask is None else ids[mask]
        return str(load_tokenizer(self.words).decode([i for i in shown.tolist() if i >= 0], skip_special_tokens=True))


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Of 12 samples in three shards."""
    folder = tmp_path_factory.mktemp("recipes")
    return Given(shards(folder, count=12), tokenizer(folder))


def one_batch(data: str, recipe: Any, words: str, **options: Any) -> Any:
    """Return the only batch of an epoch, in the shards' order."""
    (batch,) = loader(data, recipe, words, **{"batch_size": 100, "window": 0, **options})
    return batch


def test_captions_and_edits_come_as_tokens_with_a_mask_where_a_row_has_none(given: Given) -> None:
    batch = one_batch(given.data, PairCollator(negatives=2, positives=1), given.words)
    assert batch.negatives.shape[:2] == batch.negatives_mask.shape == (12, 2)
    assert batch.negatives.shape == batch.negatives_text_mask.shape
    assert batch.texts.shape[1] == batch.negatives.shape[2] == batch.positives.shape[2]
    for row, sample in enumerate(samples(12)):
        assert given.text(batch.texts[row], batch.text_mask[row]) == sample.pair.caption
        has = row % 2 == 0
        assert batch.negatives_mask[row].tolist() == [has, False]
        assert batch.positives_mask[row].tolist() == [has]
        if has:
            shown = given.text(batch.negatives[row, 0], batch.negatives_text_mask[row, 0])
            assert shown == sample.pair.caption.replace("red", "blue")
            assert "disc" in given.text(batch.positives[row, 0])
        assert not batch.negatives_text_mask[row, int(has) :].any()


def test_batches_of_fixed_lengths_have_one_shape_and_embed_missing_texts_too(given: Given) -> None:
    recipe = PairCollator(negatives=2, positives=1)
    found = list(loader(given.data, recipe, given.words, 20, fixed=True))
    assert {each.texts.shape for each in found} == {(4, 20)}
    assert {each.negatives.shape for each in found} == {(4, 2, 20)}
    assert all((each.negatives_count, each.positives_count) == ([2] * 4, [1] * 4) for each in found)
    usual = one_batch(given.data, recipe, given.words)
    assert usual.negatives_count == usual.negatives_mask.sum(dim=1).tolist()
    assert usual.positives_count == usual.positives_mask.sum(dim=1).tolist()


def test_more_negatives_than_places_are_sampled_in_each_epoch_one_of_each_type_first(
    tmp_path: Path, given: Given
) -> None:
    of = pair(0)
    texts = [negative(of, f"a blue circle {n}", "attribute") for n in range(5)] + [negative(of, "a red star", "object")]
    data = write_shards([Sample(of, tuple(texts), (), picture(), "jpg")], tmp_path).pattern
    one = loader(data, PairCollator(negatives=2), given.words)
    epochs = [{given.text(row) for row in batch.negatives[0]} for _ in range(8) for batch in one]
    assert all("a red star" in drawn and len(drawn) == 2 for drawn in epochs)
    assert len({frozenset(drawn) for drawn in epochs}) > 1


@dataclass(frozen=True)
class Reversing:
    """A negative generator that reverses captions and appends the epoch."""

    def __call__(self, caption: str, captions: Sequence[str] = (), *, epoch: int = 0) -> Mapping[str, Sequence[str]]:
        """Return the reversed caption; nothing for captions of an image with several."""
        turned = " ".join([*reversed(caption.split()), str(epoch)])
        return {"shuffle": () if captions else (turned,)}


@pytest.mark.parametrize("workers", [0, 2])
def test_online_negatives_replace_those_of_the_shards(given: Given, workers: int) -> None:
    one = loader(given.data, PairCollator(negatives=1, online=Reversing()), given.words, workers=workers)
    for epoch in range(2):
        for batch in one:
            for row in range(len(batch.keys)):
                caption = given.text(batch.texts[row])
                if batch.negatives_mask[row, 0]:
                    assert given.text(batch.negatives[row, 0]) == " ".join([*reversed(caption.split()), str(epoch)])
            alone = {s.pair.key for s in samples(12) if not s.pair.captions}
            assert batch.negatives_mask[:, 0].tolist() == [key in alone for key in batch.keys]


@pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])
def test_the_online_maker_of_the_generators_fits(tmp_path: Path, given: Given) -> None:
    from pairwright.generators.online import OnlineNegatives
    from tests.generators.rule_fixtures import small_pool

    small_pool().save(tmp_path / "pool.parquet")
    of = pair(0, "a small blue car on a street")
    data = write_shards([Sample(of, (), (), picture(), "jpg")], tmp_path / "shards").pattern
    batch = one_batch(data, PairCollator(negatives=3, online=OnlineNegatives(tmp_path / "pool.parquet")), given.words)
    assert batch.negatives_mask.any()


def test_texts_over_the_limit_are_cut_before_the_end_mark_and_counted(given: Given) -> None:
    whole = one_batch(given.data, PairCollator(), given.words)
    assert whole.cut == 0
    cut = one_batch(given.data, PairCollator(), given.words, max_tokens=5)
    assert cut.cut == 12
    assert cut.texts.shape == (12, 5)
    assert (cut.texts[:, -1] == load_tokenizer(given.words).eos_token_id).all()


def test_captions_of_one_image_share_a_group(tmp_path: Path, given: Given) -> None:
    rows = [
        Sample(replace(pair(number, f"a red circle {number}", image), width=32, height=24), (), (), picture(), "jpg")
        for number, image in enumerate(["a.jpg", "b.jpg", "a.jpg"])
    ]
    batch = one_batch(write_shards(rows, tmp_path).pattern, PairCollator(), given.words)
    assert batch.groups.tolist() == [0, 1, 0]


def test_every_exchange_of_an_image_is_a_row_of_the_same_batch(given: Given) -> None:
    batches = list(loader(given.data, TripletCollator(), given.words, batch_size=2))
    assert [len(batch.keys) for batch in batches] == [4, 4, 4]
    for batch in batches:
        assert batch.images.shape[0] == 4
        assert torch.equal(batch.images[0], batch.images[1])
        assert batch.groups.tolist() == [0, 0, 1, 1]
        said = [(given.text(one), given.text(two)) for one, two in zip(batch.instructions, batch.texts, strict=True)]
        assert said[:2] == said[2:]
        assert set(said[:2]) == {
            ("what color is the circle ?", "the circle is red ."),
            ("is there a star ?", "no , there is no star ."),
        }


def test_turns_are_limited_by_sampling_in_each_epoch(given: Given) -> None:
    one = loader(given.data, TripletCollator(turns=1), given.words, batch_size=100)
    epochs = [[given.text(row) for row in batch.instructions] for _ in range(4) for batch in one]
    assert {len(epoch) for epoch in epochs} == {6}
    assert len({tuple(sorted(epoch)) for epoch in epochs}) > 1


def test_a_repeated_exchange_is_one_row_and_types_filter(tmp_path: Path, given: Given) -> None:
    of = pair(0)
    twice = conversation(of, "what color ?", "red .", "what color ?", "red .")
    other = conversation(of, "is there a star ?", "no .", kind="brief")
    data = write_shards([Sample(of, (twice, other), (), picture(), "jpg")], tmp_path).pattern
    assert len(one_batch(data, TripletCollator(), given.words).keys) == 2
    chosen = one_batch(data, TripletCollator(types=("brief",)), given.words)
    assert [given.text(row) for row in chosen.texts] == ["no ."]
    assert len(one_batch(data, ConversationCollator(IMAGE), given.words).keys) == 2


def test_only_answers_and_their_stop_marks_are_labelled(given: Given) -> None:
    batch = one_batch(given.data, ConversationCollator(IMAGE), given.words)
    end = load_tokenizer(given.words).eos_token_id
    for ids, labels, mask in zip(batch.texts, batch.labels, batch.text_mask, strict=True):
        learnt = labels != IGNORE_INDEX
        assert torch.equal(labels[learnt], ids[learnt])
        assert not learnt[~mask].any()
        assert given.text(ids[learnt]) == "the circle is red . no , there is no star ."
        assert (ids[learnt] == end).sum() == 2
        assert (ids == IMAGE).sum() == 1


def test_the_image_token_is_before_or_after_the_first_question_at_random(given: Given) -> None:
    one = loader(given.data, ConversationCollator(IMAGE), given.words, batch_size=100)
    places = {int((row == IMAGE).nonzero()) for _ in range(4) for batch in one for row in batch.texts}
    assert len(places) == 2


def test_a_conversation_that_is_too_long_is_truncated_but_keeps_its_image(given: Given) -> None:
    batch = one_batch(given.data, ConversationCollator(IMAGE), given.words, max_tokens=6)
    assert batch.cut == 6
    assert batch.texts.shape == (6, 6)
    assert ((batch.texts == IMAGE).sum(dim=1) == 1).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_steps_and_epochs_of_conversations_count_conversations(tmp_path: Path, given: Given, workers: int) -> None:
    def asked(number: int) -> Sample:
        of = pair(number, f"a red circle {number}", f"{number}.jpg")
        conversations = [
            conversation(of, "what color ?", f"red {turn} ." if turn else "red .") for turn in range(number)
        ]
        return Sample(of, tuple(conversations), (), picture(), "jpg")

    data = write_shards(map(asked, range(6)), tmp_path, max_samples=2).pattern
    one = loader(data, ConversationCollator(IMAGE), given.words, batch_size=5, workers=workers)
    assert (one.order.samples, one.unit, one.index.left_out) == (15, "conversations", {"no_conversations": 1})
    batches = list(one)
    assert [len(batch.keys) for batch in batches] == [5, 5, 5]
    said = Counter(
        (key, given.text(row[row != IGNORE_INDEX]))
        for batch in batches
        for key, row in zip(batch.keys, batch.labels, strict=True)
    )
    assert len(said) == 15
    assert set(Counter(key for key, _ in said).values()) == {1, 2, 3, 4, 5}
    for batch in batches:
        assert batch.images.shape[0] == 5
        for place, key in enumerate(batch.keys):
            assert torch.equal(batch.images[place], batch.images[batch.keys.index(key)])


@pytest.mark.parametrize(("objectives", "rows"), [("multi-task", 2), ("single-task", 1), ("label", 1)])
def test_rationale_batches_have_the_rows_of_their_objective(given: Given, objectives: Any, rows: int) -> None:
    batch = one_batch(given.data, RationaleCollator(objectives), given.words)
    assert len(batch.keys) == 6 * rows
    said = [given.text(row[row != IGNORE_INDEX]) for row in batch.targets[:rows]]
    why = "the circle is red , not blue . so the answer is no ."
    assert (
        said
        == {
            "multi-task": ["no", why],
            "single-task": [f"{why} so the answer is no ."],
            "label": ["no"],
        }[objectives]
    )
    assert batch.rationale.tolist() == [objectives == "multi-task" and row % 2 == 1 for row in range(6 * rows)]


def test_collators_refuse_values_out_of_range() -> None:
    for wrong in (
        lambda: PairCollator(negatives=-1),
        lambda: PairCollator(online=Reversing()),
        lambda: TripletCollator(turns=-1),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_a_rationale_of_another_split_is_skipped(given: Given) -> None:
    with pytest.raises(Exception, match="none of the 12 samples"):
        loader(given.data, RationaleCollator(split="validation"), given.words)


def student_lines(path: Path, *rows: tuple[str, str, str, str]) -> str:
    """Write student rows (id, objective, output, split) and return the file."""
    keys = ("id", "objective", "output", "split")
    lines = [json.dumps({**dict(zip(keys, row, strict=True)), "input": "does it fit ?"}) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_file_of_rationale_rows_is_read_by_example(tmp_path: Path, given: Given) -> None:
    data = student_lines(
        tmp_path / "rows.jsonl",
        ("a", "label", "no", "train"),
        ("b", "label", "yes", "train"),
        ("a", "rationale", "the circle is red .", "train"),
        ("c", "label", "yes", "validation"),
    )
    one = loader(data, RationaleCollator(), given.words)
    assert one.index.left_out == {"no_rationales": 1}
    (batch,) = one
    said = {key: [] for key in batch.keys}  # type: dict[str, list[str]]
    for key, row in zip(batch.keys, batch.targets, strict=True):
        said[key].append(given.text(row[row != IGNORE_INDEX]))
    assert said == {"a": ["no", "the circle is red ."], "b": ["yes"]}


@pytest.mark.parametrize("line", ["no json", "[]", '{"id": "a"}'])
def test_an_invalid_rationale_row_is_reported_by_its_line(tmp_path: Path, given: Given, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="line 1"):
        loader(str(path), RationaleCollator(), given.words)


def test_instructions_may_have_a_tokenizer_of_their_own_without_the_end_mark(given: Given) -> None:
    batch = one_batch(given.data, TripletCollator(instructions=TextOptions(given.words, 5)), given.words)
    end = load_tokenizer(given.words).eos_token_id
    assert not (batch.instructions == end).any()
    assert (batch.texts == end).sum() == len(batch.keys)
    assert batch.cut == len(batch.keys)
    assert batch.instructions.shape[1] == 4
