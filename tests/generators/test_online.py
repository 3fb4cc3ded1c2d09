"""Negatives in a data loader."""

import importlib.util
import multiprocessing
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.generators.language.wordnet import wordnet_status
from pairwright.generators.online import OnlineNegatives, Texts
from tests.generators.rule_fixtures import POOL, SHAPED, counted, small_pool, tiny_edit_model, tokens_of

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])
CAPTIONS = POOL[:12]


@pytest.fixture(scope="module")
def negatives(tmp_path_factory: pytest.TempPathFactory) -> OnlineNegatives:
    """A maker over the small pool."""
    path = tmp_path_factory.mktemp("pool") / "pool.parquet"
    small_pool().save(path)
    return OnlineNegatives(path, seed=3)


class Captions:
    """A dataset as torch takes it: captions by number, with their negatives."""

    def __init__(self, negatives: OnlineNegatives, epoch: int) -> None:
        self.negatives, self.epoch = negatives, epoch

    def __len__(self) -> int:
        return len(CAPTIONS)

    def __getitem__(self, at: int) -> Texts:
        return self.negatives(CAPTIONS[at], epoch=self.epoch)


def _in_worker(work: tuple[OnlineNegatives, Sequence[str]]) -> list[Texts]:
    make, captions = work
    return [make(caption, epoch=1) for caption in captions]


def test_every_type_is_answered(negatives: OnlineNegatives) -> None:
    texts = negatives("a small blue car on a street")
    assert set(texts) == set(negatives.types)
    assert texts["replace-object"]
    assert texts["swap-object"] == ()


def test_a_path_as_text_and_a_list_of_types_are_accepted(negatives: OnlineNegatives) -> None:
    caption = "a small blue car on a street"
    given = OnlineNegatives(str(negatives.pool), ["replace-object"], seed=negatives.seed)
    assert given(caption) == OnlineNegatives(negatives.pool, ("replace-object",), seed=negatives.seed)(caption)
    assert given(caption) == OnlineNegatives(negatives.pool, "replace-object", seed=negatives.seed)(caption)


def test_another_epoch_gives_other_negatives_and_the_same_epoch_the_same(negatives: OnlineNegatives) -> None:
    caption = "a small blue car on a street"
    assert negatives(caption, epoch=4) == negatives(caption, epoch=4)
    assert len({tuple(negatives(each, epoch=epoch)["replace-object"] for each in CAPTIONS) for epoch in range(4)}) > 1


def test_a_higher_floor_gives_fewer(negatives: OnlineNegatives) -> None:
    def count(floor: float) -> int:
        made = [replace(negatives, per_type=4, floor=floor)(caption) for caption in CAPTIONS]
        return sum(len(texts) for each in made for texts in each.values())

    assert count(0.001) > count(1.0)


def test_the_edit_model_beside_the_pool_is_used(negatives: OnlineNegatives, tmp_path: Path) -> None:
    path = tmp_path / "words.parquet"
    counted(SHAPED * 12).save(path)
    tiny_edit_model(SHAPED * 12).save(tmp_path)
    make = replace(negatives, pool=path, per_type=4)
    made = {text for caption in SHAPED for text in make(caption)["replace-object"]}
    assert made
    assert made <= set(SHAPED)


def test_tokens_made_before_give_the_same(negatives: OnlineNegatives) -> None:
    assert negatives(CAPTIONS[0], tokens=tokens_of(CAPTIONS[0])) == negatives(CAPTIONS[0])
    assert negatives.many(CAPTIONS, epoch=2) == [negatives(caption, epoch=2) for caption in CAPTIONS]


def test_what_other_captions_say_is_not_put_in(negatives: OnlineNegatives) -> None:
    found = {negatives("a dog on a bed", ["a cat sleeps"], epoch=e)["replace-object"] for e in range(15)}
    assert not any("cat" in text for texts in found for text in texts)


@pytest.mark.parametrize("way", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_worker_processes_give_what_one_process_gives(negatives: OnlineNegatives, way: str) -> None:
    expected = _in_worker((negatives, CAPTIONS))
    with multiprocessing.get_context(way).Pool(2) as workers:
        parts = workers.map(_in_worker, [(negatives, CAPTIONS[:5]), (negatives, CAPTIONS[5:])])
    assert [texts for part in parts for texts in part] == expected


def test_it_is_small_to_send(negatives: OnlineNegatives) -> None:
    negatives(CAPTIONS[0])
    assert len(pickle.dumps(negatives)) < 1000


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="torch is not installed")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_torch_loader_gives_the_same_with_any_number_of_workers(negatives: OnlineNegatives, workers: int) -> None:
    from torch.utils.data import DataLoader

    way = "fork" if workers else None
    dataset: Any = Captions(negatives, epoch=1)
    loader: Any = DataLoader(dataset, 3, num_workers=workers, multiprocessing_context=way, collate_fn=list)
    assert [texts for batch in loader for texts in batch] == _in_worker((negatives, CAPTIONS))


def test_a_missing_pool_is_named_when_it_is_first_needed(tmp_path: Path) -> None:
    make = OnlineNegatives(tmp_path / "none.parquet")
    with pytest.raises(StorageError, match=r"none\.parquet"):
        make("a dog", tokens=tokens_of("a dog"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda make: make(None), r"caption must be a text, not None\. Skip rows"),
        (lambda make: make(b"a dog"), r"caption must be a text, not b'a dog' \(bytes\)\. Skip rows"),
        (lambda make: make("a dog", ["a cat", 3.0]), r"captions\[1\] must be a text, not 3\.0 \(float\)\. Skip rows"),
        (lambda make: make.many(["a dog", None]), r"captions\[1\] must be a text, not None\. Skip rows"),
        (lambda make: make.many("a dog"), r"captions must be a list of texts, not 'a dog' \(str\)\. Put a single one"),
        (lambda make: make("a dog", "a cat"), r"captions must be a list of texts, not 'a cat' \(str\)\. Put a single"),
        (
            lambda make: make.many(["a dog", ["x"] * 99]),
            r"captions\[1\] must be a text, not .{63} \(list\)\. Skip rows",
        ),
    ],
)
def test_what_is_no_caption_is_told_with_its_place(negatives: OnlineNegatives, wrong: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        wrong(negatives)


def test_an_empty_caption_has_no_negatives(negatives: OnlineNegatives) -> None:
    assert set(negatives("").values()) == {()}


def test_a_caption_over_the_limit_has_no_negatives(negatives: OnlineNegatives) -> None:
    caption = "a small blue car on a street"
    limited = replace(negatives, max_caption=len(caption))
    assert limited(caption) == negatives(caption)
    assert not any(limited(f"{caption}.").values())
    assert limited.many([caption, f"{caption}."]) == [limited(caption), limited(f"{caption}.")]
