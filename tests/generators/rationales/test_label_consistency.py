"""Does a rationale end in its label: only what contradicts it for certain is told so."""

import pytest

from pairwright.generators.rationales.labels import Labels, check_agreement
from pairwright.generators.rationales.task_files import open_task

NUMBER, NLI = Labels("number"), open_task("nli").labels


@pytest.mark.parametrize(
    ("rationale", "label", "told"),
    [
        ("There are 8 trays with 12 rolls. 8 * 12 = 96 rolls.", "96", "agrees"),
        ("There are 8 trays with 12 rolls. So there are 8 * 12 rolls.", "96", "agrees"),
        ("The seven dwarfs less one are six.", "7 - 1", "agrees"),
        ("Half of 7 is 3.50.", "3.5", "agrees"),
        ("8 * 12 = 98 rolls, near 96.", "96", "contradicts"),
        ("She has 5 - 2 = 3 pears.", "4", "contradicts"),
        ("She has some pears.", "4", "silent"),
        ("They paid $133 / 19 = $6.95 each.", "7", "contradicts"),
        ("Each gets 10 / 3 = 3.33.", "10 / 3", "agrees"),
    ],
)
def test_a_number_has_to_be_come_to_by_right_calculations(rationale: str, label: str, told: str) -> None:
    assert check_agreement(rationale, label, NUMBER) == told


@pytest.mark.parametrize(
    ("rationale", "told"),
    [
        ("A dog is an animal.", "silent"),
        ("A dog is an animal. That is entailment.", "agrees"),
        ("It seems entailment at first. But nothing is said of it, so it is neutral.", "contradicts"),
        ("That does not contradict the premise.", "silent"),
    ],
)
def test_a_label_of_a_set_is_contradicted_by_another_one_in_the_last_sentence(rationale: str, told: str) -> None:
    assert check_agreement(rationale, "entailment", NLI) == told


@pytest.mark.parametrize(
    ("rationale", "told"),
    [
        ("Of the choices only the refrigerator is cold.", "agrees"),
        ("Milk is kept in the oven.", "contradicts"),
        ("It is not the oven.", "silent"),
        ("Milk has to be cold.", "silent"),
    ],
)
def test_a_choice_is_contradicted_where_only_another_is_named(rationale: str, told: str) -> None:
    assert check_agreement(rationale, "refrigerator", Labels("choice"), ["refrigerator", "oven"]) == told
