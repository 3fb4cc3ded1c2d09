"""The choice of rows: when all of them may stay as they are."""

import numpy as np
import pytest

from pairwright.filters.attacks.evidence import auxiliary_evidence
from pairwright.filters.refinement.rounds import SelectedSubset, SubsetRequirements, scorer_goal, select_subset

ROWS = 600
TARGET = 0.7
TYPES = ["add", "swap"] * (ROWS // 2)
GROUPS = [str(row // 3) for row in range(ROWS)]


def chosen(share: float, demand: SubsetRequirements, goal: float) -> SelectedSubset:
    """What is taken before a scorer that prefers this share of the positives, in each type."""
    place = np.arange(ROWS) // 2  # of the row within its type
    gaps = np.where(place < share * ROWS / 2, 0.2, -0.2) + place / ROWS / 10
    return select_subset({"seer": auxiliary_evidence("seer", gaps, TYPES, goal)}, GROUPS, TYPES, demand, 0)


def test_rows_that_hold_a_loose_target_as_they_are_stay_without_a_round() -> None:
    whole = chosen(scorer_goal(TARGET) - 0.02, SubsetRequirements(TARGET), scorer_goal(TARGET))
    assert whole.kept.all()
    assert whole.holds
    assert [(each.kept, each.holds) for each in whole.rounds] == [(ROWS, True)]


@pytest.mark.parametrize(("share", "goal"), [(0.66, scorer_goal(TARGET)), (0.45, 0.49)])
def test_rows_within_the_target_are_balanced_where_scorers_to_come_would_find_more(share: float, goal: float) -> None:
    found = chosen(share, SubsetRequirements(TARGET), goal)
    assert not found.kept.all()
    assert found.holds


def test_goals_are_met_or_not_in_every_type_by_itself() -> None:
    one, other = np.array([0.1, -0.1] * 50), np.array([0.1] * 50 + [-0.1] * 50)
    types = ["add"] * 50 + ["swap"] * 50
    assert auxiliary_evidence("seer", one, types, 0.6).within_goals
    assert not auxiliary_evidence("seer", other, types, 0.6).within_goals
    silent = np.where(np.arange(100) < 50, one, np.nan)
    assert auxiliary_evidence("seer", silent, types, 0.6).within_goals


def test_of_candidates_for_one_place_one_at_most_is_taken_however_loose_the_target() -> None:
    slots = [str(row // 4 * 2 + row % 2) for row in range(ROWS)]
    found = chosen(0.5, SubsetRequirements(TARGET, slots=slots), scorer_goal(TARGET))
    taken = np.array(slots)[found.kept].tolist()
    assert len(taken) == len(set(taken)) > ROWS / 4


def test_on_too_few_rows_nothing_is_said_to_hold() -> None:
    gaps = np.array([0.1, -0.1] * 20)
    evidence = {"seer": auxiliary_evidence("seer", gaps, ["add"] * 40, 0.6)}
    found = select_subset(
        evidence, [str(row) for row in range(40)], ["add"] * 40, SubsetRequirements(TARGET, rounds=1), 0
    )
    assert not found.holds
    assert not found.told
