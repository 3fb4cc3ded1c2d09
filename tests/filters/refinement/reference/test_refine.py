"""Refinement of whole sets of rows, with the real scorers."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.filters.candidates.files import read_candidates
from pairwright.filters.candidates.rows import candidate_frame
from pairwright.filters.refinement.candidates import refine_candidates
from pairwright.filters.refinement.reference.refine import RefineOptions, refine_rows
from pairwright.filters.refinement.result import Refinement
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import FloatArray

NOUNS, COLOURS, PLACES = ["dog", "cat", "horse", "bus"], ["red", "brown", "black"], ["park", "room", "street"]


def toy_rows(number: int = 400) -> pl.DataFrame:
    """Return captions with negatives of two types: shuffled word order, and a rarer noun."""
    rows = []
    for index in range(number):
        rng = make_rng(3, index)
        noun, colour, place = rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(PLACES)
        positive = f"a {colour} {noun} in the {place}"
        if index % 2:
            rows.append((str(index), positive, f"a {noun} {colour} in the {place}", str(index // 4), "swap-attribute"))
        else:
            other = rng.choice([*NOUNS, "submarine"])
            rows.append((str(index), positive, f"a {colour} {other} in the {place}", str(index // 4), "replace-object"))
    return pl.DataFrame(rows, schema=["id", "positive", "negative", "group", "type"], orient="row")


def same(one: Refinement, other: Refinement) -> bool:
    return dict(zip(one.gaps["id"], one.reasons, strict=True)) == dict(
        zip(other.gaps["id"], other.reasons, strict=True)
    )


def test_both_scorers_have_an_accuracy_of_one_half_in_total_and_in_each_type() -> None:
    result = refine_rows(toy_rows())
    assert result.total.attacks["grammar"].before > 0.6
    assert 0 < result.total.kept < result.total.rows == 400
    for each in (result.total, *result.by_type.values()):
        assert {attack.after for attack in each.attacks.values()} == {0.5}


def test_the_rule_of_the_paper_balances_the_total_only() -> None:
    plain = refine_rows(toy_rows(), options=RefineOptions(by_type=False))
    assert {attack.after for attack in plain.total.attacks.values()} == {0.5}
    assert {step.stratum for step in plain.ledger} == {""}
    assert set(plain.by_type) == {"replace-object", "swap-attribute"}


def test_the_order_of_the_rows_changes_nothing() -> None:
    rows = toy_rows()
    assert same(refine_rows(rows), refine_rows(rows.sample(fraction=1.0, shuffle=True, seed=1)))
    assert refine_rows(rows).as_json() == refine_rows(rows.reverse()).as_json()


def test_another_seed_of_the_sample_keeps_other_rows() -> None:
    rows = toy_rows()
    assert not same(refine_rows(rows), refine_rows(rows, options=RefineOptions(seed=1)))


def test_a_negative_that_equals_its_positive_but_for_case_and_spacing_is_rejected_as_identical() -> None:
    rows = toy_rows(100).with_columns(
        negative=pl.when(pl.col("id") == "7").then(pl.col("positive").str.to_uppercase()).otherwise("negative")
    )
    result = refine_rows(rows)
    assert result.reasons[7] == "identical"
    assert (
        result.reasons.count("identical")
        == 1 + rows.filter((pl.col("positive") == pl.col("negative")) & (pl.col("id") != "7")).height
    )


def test_the_report_adds_up_and_is_json() -> None:
    report = json.loads(json.dumps(refine_rows(toy_rows()).as_json()))
    assert report["in"] == report["kept"] + sum(report["rejected"].values())
    assert sum(each["kept"] for each in report["by_type"].values()) == report["kept"]
    assert report["rounds"] == 1


def test_a_fixed_corpus_gives_a_row_the_same_gaps_whatever_other_rows_there_are() -> None:
    """A corpus without texts under test scores each row independently of the others."""
    rows = toy_rows(40)
    corpus = CaptionCorpus(["a red fox in the park", "the horse in a street"], ["x", "y"])
    gaps = refine_rows(rows, corpus).gaps
    assert gaps.head(10).equals(refine_rows(rows.head(10), corpus).gaps)


class Fixed:
    """A scorer with given gaps."""

    def __init__(self, name: str, gaps: list[float]) -> None:
        self.name = name
        self._gaps = np.array(gaps)

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return what was given, whatever the rows."""
        assert len(positives) == len(negatives) == len(groups)
        assert seed >= 0
        return self._gaps


def test_any_two_scorers_can_take_part() -> None:
    result = refine_rows(
        toy_rows(4),
        options=RefineOptions(by_type=False),
        scorers=(Fixed("length", [0.1, -0.1, 0.1, float("nan")]), Fixed("format", [0.2, -0.2, 0.2, 0.0])),
    )
    assert result.total.kept == 2
    assert result.reasons[3] == "unscored"
    assert set(result.total.attacks) == {"length", "format"}


def test_wrong_columns_or_another_number_of_scorers_are_refused() -> None:
    with pytest.raises(UsageError, match="group"):
        refine_rows(toy_rows(4).drop("group"))
    with pytest.raises(UsageError, match="two scorers"):
        refine_rows(toy_rows(4), scorers=(Fixed("length", [0.0] * 4),))


def test_already_rejected_rows_are_unchanged_and_take_no_part() -> None:
    rows = [{"caption": "a dog", "negative": "a cat", "status": "rejected", "reason": "true_of_image"}]
    rows += [{"caption": row["positive"], "negative": row["negative"]} for row in toy_rows(60).iter_rows(named=True)]
    frame, outcome = refine_candidates(candidate_frame((str(place), row) for place, row in enumerate(rows)))
    assert frame.row(0, named=True)["reason"] == "true_of_image"
    assert outcome.total.rows == 60
    assert frame["id"].n_unique() == 61
    assert (frame["status"] == "kept").sum() == outcome.total.kept
    assert all(score["name"].endswith("_gap") for scores in frame["scores"][1:] for score in scores)


@pytest.mark.parametrize("name", ["swap_att", "replace_att"])
def test_real_negatives_are_detectable_before_refinement_and_not_after(real_data: Path, name: str) -> None:
    corpus = _captions(real_data, images=1500)
    frame = read_candidates(real_data / "sugarcrepe_unrefined" / f"{name}.json")
    refined, outcome = refine_candidates(frame, corpus)
    assert all(attack.before > 0.6 for attack in outcome.total.attacks.values())
    assert all(abs(attack.after - 0.5) < 0.01 for attack in outcome.total.attacks.values())
    assert outcome.total.kept > len(frame) / 4
    assert (refined["status"] == "kept").sum() == outcome.total.kept


def _captions(real_data: Path, images: int) -> CaptionCorpus:
    captions, groups = [], []
    with (real_data / "coco_captions" / "captions.jsonl").open() as lines:
        for _, line in zip(range(images), lines, strict=False):
            row = json.loads(line)
            captions += row["captions"]
            groups += [str(row["image_id"])] * len(row["captions"])
    return CaptionCorpus(captions, groups)
