"""Auxiliary scorers, and the transfer estimate from halves of the captions."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pairwright.datasets.rng import make_numpy_rng, make_rng
from pairwright.filters.attacks.registry import TRANSFER, build_auxiliary_scorers
from pairwright.filters.attacks.transfer_prior import SplitCorpusGaps, estimate_transfer
from pairwright.filters.refinement.general.attacked_rows import store_texts
from pairwright.filters.refinement.general.refine import AllAttacksOptions, plan_refinement
from pairwright.filters.refinement.steps import take_steps
from pairwright.filters.scorers.auxiliary import describe_word_shape
from pairwright.filters.scorers.character_model import ORDER, CharacterModel
from pairwright.filters.scorers.text_scorers import CaptionCorpus, PlausibilityScorer

THINGS = {
    "dog": ("grass", "leash"),
    "boat": ("lake", "sail"),
    "train": ("track", "station"),
    "cat": ("sofa", "blanket"),
}


def captions(number: int = 600) -> list[str]:
    """A thing with what belongs to it, so that order, scores and spelling can be learned."""
    texts = []
    for index in range(number):
        rng = make_rng("guards", index)
        thing = rng.choice(sorted(THINGS))
        place, gear = THINGS[thing]
        filler = rng.choice([f"{one}{two}" for one in ("big", "old", "new", "red") for two in ("ger", "ish", "ling")])
        texts.append(f"A {filler} {thing} with a {gear} near the {place}")
    return texts


AUXILIARY_SCORERS = {scorer.name: scorer.train for scorer in build_auxiliary_scorers()}


@pytest.mark.parametrize("name", sorted(AUXILIARY_SCORERS))
def test_scores_are_shares_equal_for_equal_texts_and_the_same_in_any_order(name: str) -> None:
    read = captions()
    scorer, other = AUXILIARY_SCORERS[name](read), AUXILIARY_SCORERS[name](read[::-1])
    texts = [*read[:20], "", "zzz qqq", read[0]]
    scores = scorer.score(texts)
    assert np.all((scores >= 0) & (scores <= 1))
    assert scores[0] == scores[-1]
    np.testing.assert_allclose(scores, other.score(texts), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("frequency", "A bigger dog with a zebra near the zebra"),
        ("word_shapes", "Dog a bigger with leash a near grass the"),
        ("cooccurrence", "A bigger dog with a sail near the station"),
        ("similarity", "A bigger dog with a sail near the station"),
        ("word_order", "A bigger dog with a near leash the grass"),
        ("spelling", "A bgiger dgo wiht a lsaeh naer the grsas"),
    ],
)
def test_each_auxiliary_scorer_detects_what_it_is_for(name: str, worse: str) -> None:
    vocabulary = "bigger oldish newling redger bigish"
    read = [*captions(), *(f"a {word} place where {vocabulary} stand" for word in map(chr, range(97, 123)))]
    better, bad = AUXILIARY_SCORERS[name](read).score(["A bigger dog with a leash near the grass", worse])
    assert better > bad


def test_cooccurrence_has_a_wider_window_than_plausibility() -> None:
    read = [f"{thing} seen here today {places[0]}" for thing, places in THINGS.items()] * 50
    better, worse = "dog seen here today grass", "dog seen here today lake"
    assert np.ptp(PlausibilityScorer.train(read).score([better, worse])) < 0.01
    scores = AUXILIARY_SCORERS["cooccurrence"](read).score([better, worse])
    assert scores[0] > scores[1] + 0.01


def test_no_auxiliary_scorer_is_trained_on_the_rows_that_it_scores() -> None:
    read = captions(60)
    groups = [str(number) for number in range(60)]
    negatives = [text.replace("near", "far from") for text in read]
    whole = build_auxiliary_scorers(CaptionCorpus(read, groups, pool=True))
    for scorer in whole:
        gaps = scorer.gaps(read, negatives, groups, 3)
        assert np.isfinite(gaps).all()
        again = scorer.gaps(read[::-1], negatives[::-1], groups[::-1], 3)
        np.testing.assert_allclose(again[::-1], gaps, atol=1e-6)


def test_shapes_keep_function_words_and_endings() -> None:
    words = ("the", "boats", ",", "sailing", "by", "3", "docks")
    assert " ".join(map(describe_word_shape, words)) == "the tsx , ngx by 3 ksx"


def test_the_character_model_follows_the_formula_of_witten_and_bell() -> None:
    read = ["ab", "ab", "ac"]
    model = CharacterModel.fit(read)
    total, letters = model.log_prob(["ab"])
    assert letters.tolist() == [3]
    assert total[0] == pytest.approx(sum(math.log(share) for share in _restated(read, "ab")))


def _restated(read: list[str], text: str) -> list[float]:
    # Every run of up to ORDER characters, in plain dictionaries: the text framed by five edges and one.
    def runs(one: str) -> list[str]:
        row = "#" * (ORDER - 1) + one + "#"
        return [row[end - ORDER : end] for end in range(ORDER, len(row) + 1)]

    longest = [run for one in read for run in runs(one)]
    found = []
    for run in runs(text):
        share = 1.0 / (len(set("".join(read))) + 2)
        for length in range(1, ORDER + 1):
            after = Counter(each[-1] for each in longest if each[-length:-1] == run[-length:-1])
            if after:
                share = (after[run[-1]] + len(after) * share) / (after.total() + len(after))
        found.append(share)
    return found


def test_unknown_characters_have_a_finite_probability() -> None:
    total, _ = CharacterModel.fit(captions(30)).log_prob(["ß漢字", "", "\udcff"])
    assert np.isfinite(total).all()


def test_the_transfer_estimate_predicts_a_held_out_scorer() -> None:
    rng = make_numpy_rng(0, "foresight")
    truth = rng.normal(0.8, 1.0, 4_000)
    one, two, three, unseen = (truth + rng.normal(0.0, 1.0, 4_000) for _ in range(4))
    likely = estimate_transfer({"one": SplitCorpusGaps(three, one, two)}, ["replace"] * 4_000)
    assert np.mean(likely) == pytest.approx(np.mean(unseen > 0), abs=0.05)
    for low, high in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
        rows = (likely >= low) & (likely < high)
        assert np.mean(unseen[rows] > 0) == pytest.approx(np.mean(likely[rows]), abs=0.12)


def test_the_transfer_estimate_is_balanced_and_is_no_attack(tmp_path: Path) -> None:
    read = captions(120)
    rows = pl.DataFrame(
        {
            "id": [str(n) for n in range(120)],
            "group": [str(n) for n in range(120)],
            "positive": read,
            "negative": [text.replace("near", "on") for text in read],
            "type": ["replace"] * 120,
        }
    )
    store_texts(tmp_path, "00000", pl.DataFrame(schema={"group": pl.String, "caption": pl.String}), rows)
    judged = take_steps(tmp_path, plan_refinement(("00000",), AllAttacksOptions(rounds=1), "rows"))
    assert [each.name for each in judged.evidence if each.balance_only] == [TRANSFER]
    attacks = judged.judged.before
    assert TRANSFER not in attacks
    assert set(AUXILIARY_SCORERS) <= set(attacks)
    assert all(0 <= rate <= 1 for rates in attacks.values() for rate, _ in rates)
