"""Collators: texts, masks, labels, and random choices."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the trainer's tokenizers are those of transformers")

import numpy as np  # noqa: E402 - behind the guard of torch

from pairwright.datasets.errors import InputError, UsageError  # noqa: E402
from pairwright.datasets.shards.samples import Sample  # noqa: E402
from pairwright.datasets.shards.writing import write_shards  # noqa: E402
from pairwright.generators.language.wordnet import wordnet_status  # noqa: E402
from pairwright.training.finetuning.dataset import open_dataset  # noqa: E402
from pairwright.training.loading.batches import PairCollator, TripletCollator  # noqa: E402
from pairwright.training.loading.rationales import RationaleCollator  # noqa: E402
from pairwright.training.loading.tokenization import IGNORE_INDEX, TextOptions, load_tokenizer  # noqa: E402
from tests.datasets.sample_builders import conversation, negative, pair, picture, samples  # noqa: E402
from tests.training.loading_cases import loader, shards, tokenizer  # noqa: E402


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
    assert batch.texts.shape[:2] == batch.mask.shape == (12, 4)
    assert batch.texts.shape == batch.text_mask.shape
    assert batch.negatives == 2
    for row, sample in enumerate(samples(12)):
        assert given.text(batch.texts[row, 0], batch.text_mask[row, 0]) == sample.pair.caption
        has = row % 2 == 0
        assert batch.mask[row].tolist() == [True, has, False, has]
        if has:
            shown = given.text(batch.texts[row, 1], batch.text_mask[row, 1])
            assert shown == sample.pair.caption.replace("red", "blue")
            assert "disc" in given.text(batch.texts[row, 3])
        assert not batch.text_mask[row, 1 + int(has) : 3].any()


def test_batches_of_fixed_lengths_have_one_shape_and_embed_missing_texts_too(given: Given) -> None:
    recipe = PairCollator(negatives=2, positives=1)
    found = list(loader(given.data, recipe, given.words, 20, fixed=True))
    assert {each.texts.shape for each in found} == {(4, 4, 20)}
    assert all(each.embedded.all() and each.embedded.shape == (4, 4) for each in found)
    usual = one_batch(given.data, recipe, given.words)
    assert usual.embedded.tolist() == usual.mask.tolist()


@pytest.mark.parametrize("workers", [0, 1])
def test_which_texts_to_embed_is_known_on_the_host(given: Given, workers: int) -> None:
    for batch in loader(given.data, PairCollator(negatives=2), given.words, workers=workers, device="meta"):
        assert batch.images.is_meta
        assert batch.mask.is_meta
        assert isinstance(batch.embedded, np.ndarray)


def test_more_negatives_than_places_are_sampled_in_each_epoch_one_of_each_type_first(
    tmp_path: Path, given: Given
) -> None:
    of = pair(0)
    texts = [negative(of, f"a blue circle {n}", "attribute") for n in range(5)] + [negative(of, "a red star", "object")]
    data = write_shards([Sample(of, tuple(texts), (), picture(), "jpg")], tmp_path).pattern
    one = loader(data, PairCollator(negatives=2), given.words)
    epochs = [{given.text(row) for row in batch.texts[0, 1:]} for _ in range(8) for batch in one]
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
                caption = given.text(batch.texts[row, 0])
                if batch.mask[row, 1]:
                    assert given.text(batch.texts[row, 1]) == " ".join([*reversed(caption.split()), str(epoch)])
            alone = {s.pair.key for s in samples(12) if not s.pair.captions}
            assert batch.mask[:, 1].tolist() == [key in alone for key in batch.keys]


@pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])
def test_the_online_maker_of_the_generators_fits(tmp_path: Path, given: Given) -> None:
    from pairwright.generators.online import OnlineNegatives
    from tests.generators.rule_fixtures import small_pool

    small_pool().save(tmp_path / "pool.parquet")
    of = pair(0, "a small blue car on a street")
    data = write_shards([Sample(of, (), (), picture(), "jpg")], tmp_path / "shards").pattern
    batch = one_batch(data, PairCollator(negatives=3, online=OnlineNegatives(tmp_path / "pool.parquet")), given.words)
    assert batch.mask[:, 1:].any()


def test_texts_over_the_limit_are_cut_before_the_end_mark_and_counted(given: Given) -> None:
    whole = one_batch(given.data, PairCollator(), given.words)
    assert whole.cut == 0
    cut = one_batch(given.data, PairCollator(), given.words, max_tokens=5)
    assert cut.cut == 12
    assert cut.texts.shape == (12, 1, 5)
    assert (cut.texts[:, 0, -1] == load_tokenizer(given.words).eos_token_id).all()


def test_every_exchange_of_an_image_is_a_row_of_the_same_batch(given: Given) -> None:
    batches = list(loader(given.data, TripletCollator(), given.words, batch_size=2))
    assert [len(batch.keys) for batch in batches] == [4, 4, 4]
    for batch in batches:
        assert batch.images.shape[0] == 2
        assert batch.image_index.tolist() == [0, 0, 1, 1]
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


def rationales(data: str, objectives: Any, given: Given, split: str = "train") -> tuple[Any, RationaleCollator]:
    """Return a data set and its collator."""
    collator = RationaleCollator(objectives, split, load_tokenizer(given.words))
    return open_dataset(data, collator), collator


@pytest.mark.parametrize(("objectives", "rows"), [("multi-task", 2), ("single-task", 1), ("label", 1)])
def test_rationale_batches_have_the_rows_of_their_objective(given: Given, objectives: Any, rows: int) -> None:
    dataset, collator = rationales(given.data, objectives, given)
    batch = collator([dataset[number] for number in range(len(dataset))])
    assert len(batch["labels"]) == 6 * rows
    said = [given.text(row[row != IGNORE_INDEX]) for row in batch["labels"][:rows]]
    why = "the circle is red , not blue . so the answer is no ."
    assert (
        said
        == {
            "multi-task": ["no", why],
            "single-task": [f"{why} so the answer is no ."],
            "label": ["no"],
        }[objectives]
    )
    assert batch["rationale"].tolist() == [objectives == "multi-task" and row % 2 == 1 for row in range(6 * rows)]


def test_collators_refuse_values_out_of_range() -> None:
    for wrong in (
        lambda: PairCollator(negatives=-1),
        lambda: PairCollator(online=Reversing()),
        lambda: TripletCollator(turns=-1),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_a_rationale_of_another_split_is_skipped(given: Given) -> None:
    with pytest.raises(Exception, match="12: no rationales"):
        rationales(given.data, "multi-task", given, "validation")


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
    dataset, collator = rationales(data, "multi-task", given)
    assert dataset.index.left_out == {"no_rationales": 1}
    said = [[given.text(row[row >= 0]) for row in collator([dataset[number]])["labels"]] for number in range(2)]
    assert said == [["no", "the circle is red ."], ["yes"]]


def test_a_batch_without_a_usable_example_has_no_labels(given: Given) -> None:
    _, collator = rationales(given.data, "multi-task", given)
    assert (collator([])["labels"] == IGNORE_INDEX).all()


@pytest.mark.parametrize("line", ["no json", "[]", '{"id": "a"}'])
def test_an_invalid_rationale_row_is_reported_by_its_line(tmp_path: Path, given: Given, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=r"rows\.jsonl:1: "):
        rationales(str(path), "multi-task", given)


def test_instructions_may_have_a_tokenizer_of_their_own_without_the_end_mark(given: Given) -> None:
    batch = one_batch(given.data, TripletCollator(instructions=TextOptions(given.words, 5)), given.words)
    end = load_tokenizer(given.words).eos_token_id
    assert not (batch.instructions == end).any()
    assert (batch.texts == end).sum() == len(batch.keys)
    assert batch.cut == len(batch.keys)
    assert batch.instructions.shape[1] == 4
