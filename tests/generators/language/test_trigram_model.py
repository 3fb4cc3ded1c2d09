"""Trigram language model, compared with sums and counts by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.language.trigram_model import TrigramModel
from pairwright.generators.language.vocabulary import UNKNOWN, Vocabulary, normalize_text, tokenize

POOL = ["a dog runs", "a dog sleeps", "a cat sleeps .", "the dog runs in the park", "dogs", ""]

captions = st.lists(st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join), max_size=25)


@settings(deadline=None)  # it fits models: no time limit on an example
@given(captions, st.lists(st.sampled_from("abcdexyz"), max_size=3).map(" ".join))
def test_probabilities_of_the_next_word_sum_to_one(pool: list[str], before: str) -> None:
    following = TrigramModel.fit(pool).next_word(before)
    assert math.isclose(sum(following.values()), 1.0, abs_tol=1e-9)
    assert all(0 < probability <= 1 for probability in following.values())


@settings(deadline=None)  # it fits models: no time limit on an example
@given(captions, st.lists(st.sampled_from("abcdex"), max_size=5))
def test_the_probability_of_a_caption_is_the_product_of_its_steps(pool: list[str], caption: list[str]) -> None:
    model = TrigramModel.fit(pool)
    total, tokens = model.log_prob([" ".join(caption)])
    steps = [*caption, "<end>"]
    known = model.next_word("").keys()
    product = sum(
        math.log(model.next_word(" ".join(steps[:place]))[step if step in known else "<unknown>"])
        for place, step in enumerate(steps)
    )
    assert math.isclose(total[0], product, abs_tol=1e-9)
    assert tokens[0] == len(steps)


@settings(deadline=None)  # it fits models: no time limit on an example
@given(captions)
def test_the_order_of_the_captions_does_not_matter(pool: list[str]) -> None:
    assert TrigramModel.fit(pool).fingerprint == TrigramModel.fit(sorted(pool, reverse=True)).fingerprint


def test_seen_runs_are_likelier_than_unseen_ones_and_unknown_words_are_unlikely_but_possible() -> None:
    seen, mixed, unknown = TrigramModel.fit(POOL).log_prob(["a dog runs", "dog a runs", "a zebra runs"])[0]
    assert seen > mixed > -np.inf
    assert seen > unknown > -np.inf


def test_no_context_reaches_into_the_caption_before() -> None:
    model = TrigramModel.fit(POOL)
    together = model.log_prob(["a dog runs", "", "the park", "a dog runs"])[0]
    alone = [model.log_prob([caption])[0][0] for caption in ("a dog runs", "", "the park", "a dog runs")]
    assert together.tolist() == alone
    assert model.log_prob([])[0].shape == (0,)


def test_case_and_spacing_do_not_matter_and_punctuation_does() -> None:
    total, tokens = TrigramModel.fit(POOL).log_prob(["A  Dog runs ", "a dog runs", "a dog runs."])
    assert total[0] == total[1] != total[2]
    assert tokens.tolist() == [4, 4, 5]


def test_a_saved_model_comes_back_the_same_and_in_the_same_bytes(tmp_path: Path) -> None:
    model = TrigramModel.fit(POOL)
    for name in ("one.npz", "two.npz"):
        model.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    loaded = TrigramModel.load(tmp_path / "one.npz")
    assert loaded.fingerprint == model.fingerprint
    assert loaded.log_prob(POOL)[0].tolist() == model.log_prob(POOL)[0].tolist()


def test_a_model_without_captions_is_uniform_and_can_be_saved(tmp_path: Path) -> None:
    TrigramModel.fit([]).save(tmp_path / "empty.npz")
    one, other = TrigramModel.load(tmp_path / "empty.npz").log_prob(["a dog", "two cats"])[0]
    assert one == other


@pytest.mark.parametrize("damage", ["missing", "torn", "changed", "foreign"])
def test_a_damaged_model_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.npz"
    TrigramModel.fit(POOL).save(path)
    if damage == "missing":
        path.unlink()
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "changed":
        stored = dict(np.load(path))
        np.savez(path, **(stored | {"unigrams": stored["unigrams"] / 2}))
    else:
        np.savez(path, numbers=np.arange(3))
    with pytest.raises(StorageError, match="Train it again"):
        TrigramModel.load(path)


def test_words_are_runs_of_letters_and_digits_or_single_marks() -> None:
    assert tokenize("A man's 2 dogs, well-fed.") == ["a", "man's", "2", "dogs", ",", "well", "-", "fed", "."]
    assert normalize_text(" A  DOG.") == normalize_text("a dog .")


@given(st.lists(st.text(max_size=30), max_size=10))
def test_every_word_of_the_captions_is_known_and_no_other(given_captions: list[str]) -> None:
    tokens = [tokenize(caption) for caption in given_captions]
    vocabulary = Vocabulary.of(tokens)
    flat, lengths = vocabulary.encode(tokens)
    assert (flat != UNKNOWN).all()
    assert lengths.tolist() == [len(each) for each in tokens]
    assert vocabulary.encode([["\x00never\x00"]])[0].tolist() == [UNKNOWN]


def test_held_out_real_captions_are_predicted_well(real_data: Path) -> None:
    """40,000 captions bring the perplexity of captions of other images below 40, of shuffled ones not below 400."""
    with (real_data / "coco_captions" / "captions.jsonl").open() as lines:
        pool = [
            caption for _, line in zip(range(9000), lines, strict=False) for caption in json.loads(line)["captions"]
        ]
    model = TrigramModel.fit(pool[:40_000])
    held_out = pool[40_000:]
    for texts, low, high in ((held_out, 1, 40), ([" ".join(sorted(tokenize(text))) for text in held_out], 400, 1e9)):
        total, tokens = model.log_prob(texts)
        assert low < math.exp(-total.sum() / tokens.sum()) < high
