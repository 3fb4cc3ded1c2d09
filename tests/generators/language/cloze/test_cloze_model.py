"""Cloze model: learns what fits a context, scores a row the same in any batch, and is the same after loading."""

import math
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.language.cloze.context import MAX_BAG, REACH, SLOT_KINDS, ClozeContext, ClozeExample
from pairwright.generators.language.cloze.examples import ClozeSample, ClozeSampler
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import train_cloze_model, train_network

OBJECTS = {"eat": ["apple", "cake", "pizza"], "ride": ["horse", "bike", "wave"]}
WORDS = ["", "a", "an", "man", "eat", "ride", "red", "horse", "zebra", "apple"]

words = st.lists(st.sampled_from(WORDS), max_size=REACH).map(tuple)
heads = st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS))
contexts = st.builds(ClozeContext, words, words, heads, st.lists(st.sampled_from(WORDS), max_size=MAX_BAG).map(tuple))


def noun_after(verb: str, noun: str = "apple") -> ClozeExample:
    """Return "a man VERB a | NOUN"."""
    return ClozeExample("noun", noun, ClozeContext(("a", verb, "man", "a"), ("", "", "", ""), ("", ""), ("man", verb)))


def make_sample() -> ClozeSample:
    sampler, rng = ClozeSampler(), random.Random(1)
    for number in range(1_000):
        verb = rng.choice(list(OBJECTS))
        noun = rng.choice(OBJECTS[verb])
        relation = ClozeContext(("man", "a", "", ""), ("a", noun, "", ""), ("man", noun), ("man", noun))
        sampler.add(f"{number}", [noun_after(verb, noun), ClozeExample("relation", verb, relation)])
    return sampler.sample()


@pytest.fixture(scope="module")
def model() -> ClozeModel:
    return train_cloze_model(make_sample())


def test_what_was_seen_in_a_context_is_likelier_there_than_elsewhere(model: ClozeModel) -> None:
    eating, riding = np.exp(model.log_probs("noun", [noun_after("eat").context, noun_after("ride").context]))
    edible = [model.index("noun")[noun] for noun in OBJECTS["eat"]]
    assert eating[edible].sum() > 0.95
    assert riding[edible].sum() < 0.05


@settings(deadline=None)
@given(st.lists(contexts, max_size=20))
def test_probabilities_sum_to_one(model: ClozeModel, given_contexts: list[ClozeContext]) -> None:
    for kind in ("noun", "relation"):
        found = model.log_probs(kind, given_contexts)
        assert found.shape == (len(given_contexts), len(model.targets(kind)))
        assert found.dtype == np.float32
        assert np.allclose(np.exp(found).sum(1), 1, atol=1e-5)


@settings(deadline=None)
@given(st.lists(contexts, min_size=1, max_size=40), st.integers(1, 700), st.randoms())
def test_a_row_is_bitwise_the_same_in_any_batch(
    model: ClozeModel, some: list[ClozeContext], size: int, rng: random.Random
) -> None:
    batch = rng.choices(some, k=size)
    alone = {context: model.log_probs("noun", [context])[0].tobytes() for context in some}
    assert [row.tobytes() for row in model.log_probs("noun", batch)] == [alone[context] for context in batch]


@pytest.mark.parametrize("kernels", ["Haswell", "Zen", "SkylakeX", "Nehalem"])
def test_a_row_is_bitwise_the_same_with_the_kernels_of_other_processors(
    model: ClozeModel, kernels: str, tmp_path: Path
) -> None:
    model.save(tmp_path / "model.npz")
    code = f"""
import sys
from dataclasses import replace
from pathlib import Path
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel
model = ClozeModel.load(Path({str(tmp_path / "model.npz")!r}))
words = {WORDS}
parts = [(words[at % 7:][:4], words[at % 6:][:4], words[at % 5:][:2], words[at % 9:]) for at in range(50)]
contexts = [ClozeContext(*map(tuple, each)) for each in parts]
rows = model.log_probs("noun", contexts)
sys.exit(any(model.log_probs("noun", [each])[0].tobytes() != row.tobytes() for each, row in zip(contexts, rows)))
"""
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels}
    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment)
    if done.returncode == -signal.SIGILL:
        pytest.skip(f"this processor lacks the instructions of the {kernels} kernels")
    assert done.returncode == 0


def test_an_unknown_word_is_not_a_missing_one(model: ClozeModel) -> None:
    start, unknown = (ClozeContext(("a", word), (), (), ()) for word in ("", "zebra"))
    assert not np.array_equal(*model.log_probs("noun", [start, unknown]))


def test_equal_samples_give_equal_files_and_a_loaded_model_gives_equal_rows(model: ClozeModel, tmp_path: Path) -> None:
    again = train_cloze_model(make_sample())
    assert again.digest == model.digest
    for name, each in (("a.npz", model), ("b.npz", again)):
        each.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = ClozeModel.load(tmp_path / "a.npz")
    assert loaded.digest == model.digest
    for kind in SLOT_KINDS:
        assert loaded.targets(kind) == model.targets(kind)
        rows = [noun_after("eat").context]
        assert np.array_equal(loaded.log_probs(kind, rows), model.log_probs(kind, rows))


def test_networks_trained_in_threads_are_those_trained_one_by_one(model: ClozeModel, tmp_path: Path) -> None:
    assert train_cloze_model(make_sample(), threads=3).digest == model.digest
    for kind in SLOT_KINDS:
        ClozeModel({kind: train_network(make_sample(), kind)}).save(tmp_path / f"{kind}.npz")
    joined = {kind: ClozeModel.load(tmp_path / f"{kind}.npz").networks[kind] for kind in SLOT_KINDS}
    assert ClozeModel(joined).digest == model.digest


def test_a_kind_without_examples_has_no_targets(model: ClozeModel) -> None:
    assert model.targets("adjective") == ()
    assert model.log_probs("adjective", [noun_after("eat").context]).shape == (1, 0)


def test_a_model_of_no_captions_has_no_targets() -> None:
    empty = train_cloze_model(ClozeSampler().sample())
    assert all(empty.targets(kind) == () for kind in SLOT_KINDS)


def test_a_model_of_little_is_near_the_frequencies(model: ClozeModel) -> None:
    sampler = ClozeSampler()
    for number in range(8):
        sampler.add(str(number), [noun_after("eat", "cake" if number < 6 else "pie")])
    small = train_cloze_model(sampler.sample())
    cake = small.log_probs("noun", [noun_after("eat").context])[0, small.index("noun")["cake"]]
    assert math.isclose(math.exp(cake), 0.75, abs_tol=0.15)


def test_a_file_of_something_else_is_refused(model: ClozeModel, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"model\.npz"):
        ClozeModel.load(path)
    with pytest.raises(StorageError, match=r"missing\.npz"):
        ClozeModel.load(tmp_path / "missing.npz")


def nouns_after(nouns: dict[str, list[str]], captions: int) -> ClozeSample:
    """Return a sample of "a man VERB a | NOUN", each noun of a verb equally often."""
    sampler, rng = ClozeSampler(), random.Random(2)
    for number in range(captions):
        verb = rng.choice(list(nouns))
        sampler.add(f"{number}", [noun_after(verb, rng.choice(nouns[verb]))])
    return sampler.sample()


def share_after(model: ClozeModel, verb: str, nouns: list[str]) -> float:
    """Return the probability of some nouns behind a verb."""
    scores = model.log_probs("noun", [noun_after(verb).context])[0]
    return float(sum(math.exp(scores[model.index("noun")[noun]]) for noun in nouns))


def test_what_the_pool_does_not_say_is_kept_from_the_model_that_training_starts_from(model: ClozeModel) -> None:
    seen = nouns_after({"see": [*OBJECTS["eat"], *OBJECTS["ride"], "pear"]}, 60)
    pool = ClozeSample.merged([seen, nouns_after({"eat": ["pear"], "ride": ["pear"]}, 6)])
    warm = train_cloze_model(pool, model)
    for verb, other in ("eat", "ride"), ("ride", "eat"):
        assert share_after(warm, verb, OBJECTS[verb]) > 3 * share_after(warm, verb, OBJECTS[other])
    assert share_after(warm, "see", ["pear"]) > 0.02
    assert warm.digest == train_cloze_model(pool, model).digest


def test_from_a_model_of_quite_other_captions_as_much_is_learned_as_from_none(model: ClozeModel) -> None:
    turned = {"eat": OBJECTS["ride"], "ride": OBJECTS["eat"]}
    warm = train_cloze_model(nouns_after(turned, 1_000), model)
    assert share_after(warm, "eat", OBJECTS["ride"]) > 0.95


def test_from_a_model_without_any_word_of_the_pool_as_much_is_learned_as_from_none(model: ClozeModel) -> None:
    nouns = {"load": ["crate", "barrel"], "fly": ["glider", "kite"]}
    warm = train_cloze_model(nouns_after(nouns, 1_000), model)
    assert share_after(warm, "fly", nouns["fly"]) > 0.95


def test_a_vocabulary_of_two_words_is_learned_from_some_thousand_examples() -> None:
    """A pool of ten million captions of the same few words takes no longer to learn than one of a few thousand."""
    sampler = ClozeSampler()
    for number in range(6_000):
        noun, verb = ("apple", "eat") if number % 2 else ("horse", "ride")
        sampler.add(f"{number}", [noun_after(verb, noun)])
    sample = sampler.sample()
    nouns = sample.kinds["noun"]
    some = replace(nouns, captions=nouns.captions[:4_000], rows=nouns.rows[:4_000])
    enough = train_cloze_model(replace(sample, kinds={**sample.kinds, "noun": some}))
    assert train_cloze_model(sample).networks["noun"].output.tobytes() == enough.networks["noun"].output.tobytes()
    assert share_after(enough, "eat", ["apple"]) > 0.95
