"""Selection in rounds: rows within a loose target, goals of auxiliary evidence, and trimming."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from pairwright.filters.attacks.accuracy import RoundResult, tighten_limit
from pairwright.filters.attacks.evidence import Evidence, build_auxiliary_evidence, build_scorer_evidence
from pairwright.filters.attacks.registry import COMBINED, TRANSFER
from pairwright.filters.refinement.general.evidence_files import RowNumbers, save_evidence
from pairwright.filters.refinement.general.round_steps import (
    SubsetRows,
    choose_rows,
    load_subset,
    name_chosen,
    stack_features,
)
from pairwright.filters.refinement.general.rounds import (
    Measured,
    PlannedEvidence,
    PlannedRows,
    SubsetRequirements,
    SubsetSearch,
    compute_scorer_goal,
)
from pairwright.filters.refinement.steps import Facts, Plan, take_steps
from pairwright.generators.language.vocabulary import FloatArray, IntArray

ROWS = 600
TARGET = 0.7
TYPES = ["add", "swap"] * (ROWS // 2)


@dataclass(frozen=True)
class Chosen:
    """A selected subset, read from its files."""

    kept: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    detected_by: IntArray
    rounds: Sequence[RoundResult]
    holds: bool
    conclusive: bool


def stored_search(
    folder: Path,
    evidence: Evidence,
    types: Sequence[str],
    requirements: SubsetRequirements,
    *,
    group_size: int = 3,
    slots: Sequence[str] | None = None,
) -> SubsetSearch:
    """Return the search among rows whose numbers and evidence it stores."""
    names = pl.Series(types, dtype=pl.String)
    slot = None if slots is None else pl.Series(slots, dtype=pl.String)
    rows = RowNumbers.of(names, names, np.arange(len(types)) // group_size, slot)
    rows.save(folder)
    save_evidence(folder, evidence)
    planned = [PlannedEvidence(evidence.name, scorer=True, within_goals=evidence.within_goals)]
    return SubsetSearch(
        PlannedRows(len(types), rows.strata, rows.kinds, slots is not None), planned, requirements, seed=0
    )


def read(folder: Path, search: SubsetSearch) -> Chosen:
    selected = take_steps(folder, search.judge()).selected
    subset = load_subset(folder, selected.measured.subset)
    return Chosen(subset.kept, subset.detected_by, selected.rounds, selected.holds, selected.measured.is_large_enough)


def chosen(
    folder: Path, share: float, requirements: SubsetRequirements, goal: float, slots: Sequence[str] | None = None
) -> Chosen:
    """Return the subset selected against a scorer that prefers this share of the positives in each type."""
    place = np.arange(ROWS) // 2  # of the row within its type
    gaps = np.where(place < share * ROWS / 2, 0.2, -0.2) + place / ROWS / 10
    evidence = build_auxiliary_evidence("seer", gaps, TYPES, goal)
    return read(folder, stored_search(folder, evidence, TYPES, requirements, slots=slots))


def test_rows_within_a_loose_target_are_kept_without_a_round(tmp_path: Path) -> None:
    whole = chosen(
        tmp_path, compute_scorer_goal(TARGET) - 0.02, SubsetRequirements(TARGET), compute_scorer_goal(TARGET)
    )
    assert whole.kept.all()
    assert whole.holds
    assert [(each.kept, each.holds) for each in whole.rounds] == [(ROWS, True)]


@pytest.mark.parametrize(("share", "goal"), [(0.66, compute_scorer_goal(TARGET)), (0.45, 0.49)])
def test_rows_within_the_target_are_balanced_where_held_out_scorers_would_detect_more(
    share: float, goal: float, tmp_path: Path
) -> None:
    found = chosen(tmp_path, share, SubsetRequirements(TARGET), goal)
    assert not found.kept.all()
    assert found.holds


def test_goals_are_checked_in_every_type() -> None:
    one, other = np.array([0.1, -0.1] * 50), np.array([0.1] * 50 + [-0.1] * 50)
    types = ["add"] * 50 + ["swap"] * 50
    assert build_auxiliary_evidence("seer", one, types, 0.6).within_goals
    assert not build_auxiliary_evidence("seer", other, types, 0.6).within_goals
    silent = np.where(np.arange(100) < 50, one, np.nan)
    assert build_auxiliary_evidence("seer", silent, types, 0.6).within_goals


def test_at_most_one_row_per_slot_is_kept_however_loose_the_target(tmp_path: Path) -> None:
    slots = [str(row // 4 * 2 + row % 2) for row in range(ROWS)]
    found = chosen(tmp_path, 0.5, SubsetRequirements(TARGET), compute_scorer_goal(TARGET), slots)
    taken = np.array(slots)[found.kept].tolist()
    assert len(taken) == len(set(taken)) > ROWS / 4


def test_too_few_rows_give_no_conclusive_result(tmp_path: Path) -> None:
    evidence = build_auxiliary_evidence("seer", np.array([0.1, -0.1] * 20), ["add"] * 40, 0.6)
    found = read(tmp_path, stored_search(tmp_path, evidence, ["add"] * 40, SubsetRequirements(TARGET, rounds=1)))
    assert not found.holds
    assert not found.conclusive


def test_a_round_with_a_low_penalty_undoes_the_choice_of_one_with_a_high_penalty(tmp_path: Path) -> None:
    # Each row has one of 400 words, removed or inserted, and a side that all rows share, which makes the steps small.
    rng, rows, words = np.random.default_rng(0), 4_000, 400
    side = csr_matrix(np.where(rng.random((rows, 1)) < 0.6, 1.0, -1.0))
    signs, word = np.where(rng.random(rows) < 0.5, 1.0, -1.0), rng.integers(words, size=rows)
    features = csr_matrix((signs, (np.arange(rows), word)), (rows, words))
    stored_search(tmp_path, Evidence("side", side), ["add"] * rows, SubsetRequirements(TARGET))
    save_evidence(tmp_path, Evidence("words", features))
    stack_features(tmp_path, 0, ["side", "words"], 0)

    def choose(number: int, penalty: float) -> tuple["np.ndarray[tuple[int], np.dtype[np.bool_]]", float]:
        choose_rows(tmp_path, 0, number, (0.2, penalty), 1.0, TARGET)
        kept = load_subset(tmp_path, (name_chosen(number, 0),)).kept
        return kept, float(np.sum(np.square(features[kept].sum(axis=0))))

    low, imbalance = choose(0, 0.001)
    assert choose(1, 1.0)[1] < imbalance / 3
    assert np.array_equal(choose(2, 0.001)[0], low)


def test_the_transfer_penalty_falls_only_in_the_type_whose_scorer_is_too_far_on_the_side_of_the_negative() -> None:
    evidence = [
        PlannedEvidence("seer", scorer=True, within_goals=False),
        PlannedEvidence(TRANSFER, scorer=False, balance_only=True),
    ]
    search = SubsetSearch(
        PlannedRows(9_000, ["add", "few", "swap"], ["add", "few", "swap"]), evidence, SubsetRequirements(0.52), 0
    )
    # In all rows the scorer is even; in "few" it is as far as in "add", but within the 95% interval of 100 rows.
    rates = {"seer": [(0.5, 9_000), (0.46, 4_450), (0.46, 100), (0.54, 4_450)]}
    plan, facts, penalties = search.select(), list[Facts](), list[tuple[float, ...]]()
    while len(penalties) < 6:
        steps = plan.send(facts) if facts else next(plan)
        penalties += [step.args[2] for step in steps if step.run is choose_rows]
        facts = [{"rates": rates, "rows": 9_000, "groups": 3_000, "imbalance": [1.0, 1.0]} for _ in steps]
    (before, *_), (add, few, swap) = penalties[:3], penalties[3:]
    assert add[1] < before[1]
    assert few == swap == before


def test_the_weight_of_random_sums_follows_the_combined_classifier_in_each_type() -> None:
    evidence = [PlannedEvidence("seer", scorer=True, within_goals=False), PlannedEvidence("words", scorer=False)]
    kinds = ["even", "found", "wrong"]
    search = SubsetSearch(PlannedRows(9_000, kinds, kinds), evidence, SubsetRequirements(0.52), 0)
    even = [(0.5, 9_000), *[(0.5, 3_000)] * 3]
    together = [(0.5, 9_000), (0.5, 3_000), (0.56, 3_000), (0.44, 3_000)]
    rates = {"seer": even, "words": even, COMBINED: together}
    facts = {"rates": rates, "rows": 9_000, "groups": 3_000, "imbalance": [1.0, 1.0]}
    plan, given, weights = search.select(), list[Facts](), list[float]()
    while len(weights) < 6:
        steps = plan.send(given) if given else next(plan)
        weights += [step.args[3] for step in steps if step.run is choose_rows]
        given = [facts for _ in steps]
    before, (same, lower, higher) = weights[:3], weights[3:]
    assert len(set(before)) == 1
    assert lower < same == before[0] < higher


def test_the_penalty_of_a_classifier_falls_in_the_type_that_is_more_even_than_random_signs() -> None:
    evidence = [PlannedEvidence("seer", scorer=True, within_goals=False), PlannedEvidence("words", scorer=False)]
    kinds = ["even", "random", "uneven"]
    search = SubsetSearch(PlannedRows(9_000, kinds, kinds), evidence, SubsetRequirements(0.52), 0)
    half = [(0.5, 9_000), *[(0.5, 3_000)] * 3]
    measured: Facts = {"rates": {"seer": half, "words": half, COMBINED: half}, "rows": 9_000, "groups": 3_000}
    plan, given, penalties = search.select(), list[Facts](), list[tuple[float, ...]]()
    imbalance = {0: [0.2, 0.2], 1: [1.0, 1.0], 2: [3.0, 3.0]}
    while len(penalties) < 6:
        steps = plan.send(given) if given else next(plan)
        penalties += [step.args[2] for step in steps if step.run is choose_rows]
        given = [{"imbalance": imbalance[step.args[0]]} if step.run is choose_rows else measured for step in steps]
    (before, *_), (even, random, uneven) = penalties[:3], penalties[3:]
    assert even[1] < before[1]
    assert even[0] == before[0]  # scorers have random sums for it
    assert random == uneven == before


def test_imbalance_is_measured_against_random_signs(tmp_path: Path) -> None:
    # Words that are in as many positives as negatives, and one of eight rows that is always in the positive.
    words = np.array([0] * 200 + [1] * 2 + [2] * 8)
    signs = np.array([1.0, -1.0] * 100 + [1.0, -1.0] + [1.0] * 8)
    rows = len(words)
    one, other = (
        Evidence(name, csr_matrix((signs[own], (np.flatnonzero(own), words[own])), (rows, 3)))
        for name, own in (("paired", words < 2), ("alone", words == 2))
    )
    stored_search(tmp_path, one, ["add"] * rows, SubsetRequirements(TARGET))
    save_evidence(tmp_path, other)
    stack_features(tmp_path, 0, ["paired", "alone"], 0)
    _, facts = choose_rows(tmp_path, 0, 0, (1e-4, 1e-4), 1.0, TARGET)
    kept = load_subset(tmp_path, (name_chosen(0, 0),)).kept
    assert kept.all()
    assert facts["imbalance"] == [0.0, 8.0]


TRIM_ROWS = 400


def trimmed(
    folder: Path, gaps: FloatArray, target: float, *, types: Sequence[str] | None = None, min_rows: int = 100
) -> Chosen:
    """Return what is left of rows with these gaps of a scorer, all of them kept and detected by another attack before."""
    rows = len(gaps)
    search = stored_search(
        folder,
        build_scorer_evidence("seer", gaps),
        types or ["add"] * rows,
        SubsetRequirements(target, min_rows),
        group_size=4,
    )
    SubsetRows(np.ones(rows, np.bool_), np.full(rows, 1, np.int64)).save(folder, "start")

    def plan() -> Plan[tuple[Measured, tuple[RoundResult, ...]]]:
        start = yield from search.measure("start-measured", ("start",), "0 start")
        return (yield from search.trim(start))

    best, rounds = take_steps(folder, plan())
    subset = load_subset(folder, best.subset)
    return Chosen(subset.kept, subset.detected_by, rounds, rounds[-1].holds, conclusive=True)


def telling(share: float) -> FloatArray:
    """Return gaps that add up to 0, of which this share prefers the positive."""
    wins = round(share * TRIM_ROWS)
    gaps = np.concatenate(
        [np.linspace(0.1, 0.2, wins), -np.linspace(0.1, 0.2, TRIM_ROWS - wins) * wins / (TRIM_ROWS - wins)]
    )
    assert abs(gaps.sum()) < 1e-9
    return gaps


@pytest.mark.parametrize("share", [0.6, 0.4])
def test_trimming_brings_an_attack_with_balanced_sums_but_uneven_counts_within_its_limit(
    share: float, tmp_path: Path
) -> None:
    gaps = telling(share)
    best = trimmed(tmp_path, gaps, 0.52)
    left = gaps[best.kept]
    assert not best.rounds[0].holds
    assert best.rounds[-1].holds
    assert abs(np.mean(left > 0) - 0.5) <= tighten_limit(0.52, len(left), "")
    assert len(left) > 0.8 * TRIM_ROWS
    gone = np.flatnonzero(~best.kept)
    side = np.sign(share - 0.5)
    assert (np.sign(gaps[gone]) == side).all()
    assert np.abs(gaps[gone]).min() >= np.abs(left[np.sign(left) == side]).max()
    assert (best.detected_by[gone] == 0).all()
    assert (best.detected_by[best.kept] == 1).all()


def test_only_the_type_that_exceeds_its_limit_is_trimmed(tmp_path: Path) -> None:
    gaps = np.tile([0.1, -0.1], TRIM_ROWS)
    gaps[:40] = 0.3
    types = ["add"] * 80 + ["swap"] * (2 * TRIM_ROWS - 80)
    best = trimmed(tmp_path, gaps, 0.54, types=types)
    assert best.rounds[-1].holds
    assert np.flatnonzero(~best.kept).max() < 40


def test_trimming_stops_at_the_minimum_number_of_rows_and_reports_that_the_set_does_not_hold(tmp_path: Path) -> None:
    best = trimmed(tmp_path, telling(0.6), 0.52, min_rows=TRIM_ROWS - 10)
    assert best.kept.all()
    assert not best.rounds[-1].holds


def test_a_set_within_its_limits_is_not_trimmed(tmp_path: Path) -> None:
    best = trimmed(tmp_path, telling(0.5), 0.52)
    assert best.kept.all()
    assert [each.holds for each in best.rounds] == [True]


def test_a_tight_target_drops_no_more_rows_than_necessary(tmp_path: Path) -> None:
    best = trimmed(tmp_path, telling(0.6), 0.505)
    assert best.rounds[-1].holds
    assert 0.78 * TRIM_ROWS < best.kept.sum() < 0.82 * TRIM_ROWS
