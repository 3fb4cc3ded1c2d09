"""Labels: parsing, gold labels of data sets, and consistency with rationales."""

import pytest

from pairwright.generators.rationales.labels import Labels, check_agreement
from pairwright.generators.rationales.task_files import open_task

NLI = open_task("nli").labels
ITM = open_task("itm").labels
CHOICE, NUMBER, TEXT = Labels("choice"), Labels("number"), Labels("text")
PLACES = ["cupboard", "refrigerator", "oven"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("entailment.", "entailment"),
        ("**Contradiction**", "contradiction"),
        ('"neutral"', "neutral"),
        ("that the hypothesis contradicts the premise", "contradiction"),
        ("entailment because the dog is an animal", "entailment"),
        ("entailment, not contradiction", "entailment"),
        ("entailment or neutral", ""),
        ("not entailment", ""),
        ("either entailment or neutral", ""),
        ("71", ""),
    ],
)
def test_a_label_of_a_set_is_read_if_it_is_unambiguous(text: str, label: str) -> None:
    assert NLI.read(text) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("No", "no"),
        ("no, it is a dog", "no"),
        ("it does not fit", "no"),
        ("Yes.", "yes"),
        ("nothing", ""),
        ("not yes", ""),
    ],
)
def test_short_labels_are_not_found_inside_of_words(text: str, label: str) -> None:
    assert ITM.read(text) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("(b)", "refrigerator"),
        ("B", "refrigerator"),
        ("B. refrigerator", "refrigerator"),
        ("option (c)", "oven"),
        ("the refrigerator", "refrigerator"),
        ("refrigerator, since it is cold", "refrigerator"),
        ("ovens", "oven"),
        ("(b) oven", ""),
        ("(z)", ""),
        ("fridge", ""),
    ],
)
def test_a_choice_is_read_by_text_or_letter_and_they_must_agree(text: str, label: str) -> None:
    assert CHOICE.read(text, PLACES) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [("(10 * 45).", "10 * 45"), ("42 books", "42"), ("nine", "9"), ("x = 3", "3"), ("some - 9", ""), ("3 or 4", "")],
)
def test_a_number_may_be_a_calculation(text: str, label: str) -> None:
    assert NUMBER.read(text) == label


def test_numbers_are_the_same_by_their_value_and_texts_but_for_case_and_articles() -> None:
    assert NUMBER.same("10 * 45", "( 10.0 * 45.0 )")
    assert not NUMBER.same("10 * 45", "451")
    assert TEXT.same("the Eiffel Tower", "Eiffel tower")


@pytest.mark.parametrize(
    ("labels", "given", "label"),
    [
        (NLI, 2, "contradiction"),
        (NLI, "0", "entailment"),
        (NLI, "neutral", "neutral"),
        (NLI, "-", ""),
        (NLI, -1, ""),
        (NLI, None, ""),
        (CHOICE, "B", "refrigerator"),
        (CHOICE, 1, "refrigerator"),
        (CHOICE, "oven", "oven"),
        (NUMBER, 51.0, "51"),
        (NUMBER, -1, "-1"),
        (NUMBER, "( 84.0 / 2.0 )", "( 84.0 / 2.0 )"),
        (NUMBER, "48 / 2 = 24 clips #### 1,200", "1200"),
    ],
)
def test_gold_labels_come_in_the_forms_that_data_sets_have(labels: Labels, given: object, label: str) -> None:
    assert labels.gold(given, PLACES) == label


@pytest.mark.parametrize(
    ("labels", "given"), [(NLI, "maybe"), (NLI, 3), (CHOICE, 9), (CHOICE, "garden"), (NUMBER, "many")]
)
def test_an_invalid_gold_label_is_refused(labels: Labels, given: object) -> None:
    with pytest.raises(ValueError, match="label"):
        labels.gold(given, PLACES)


@pytest.mark.parametrize(
    ("rationale", "label", "expected"),
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
        ("4 + 6 = 10 storks are there, and 3 birds.", "3 + (4 + 6)", "agrees"),
        ("632 + 465 = 1097 girls are there now.", "1,097 - 410", "agrees"),
        ("7 - 8 = -1 marbles, then -1 + 10 = 9 marbles.", "10 - 8", "contradicts"),
    ],
)
def test_a_rationale_must_state_the_number_and_calculate_correctly(rationale: str, label: str, expected: str) -> None:
    assert check_agreement(rationale, label, NUMBER) == expected


@pytest.mark.parametrize(
    ("rationale", "expected"),
    [
        ("A dog is an animal.", "silent"),
        ("A dog is an animal. That is entailment.", "agrees"),
        ("It seems entailment at first. But nothing is said of it, so it is neutral.", "contradicts"),
        ("That does not contradict the premise.", "silent"),
    ],
)
def test_another_value_in_the_last_sentence_contradicts_a_label_of_a_set(rationale: str, expected: str) -> None:
    assert check_agreement(rationale, "entailment", NLI) == expected


@pytest.mark.parametrize(
    ("rationale", "expected"),
    [
        ("Of the choices only the refrigerator is cold.", "agrees"),
        ("Milk is kept in the oven.", "contradicts"),
        ("It is not the oven.", "silent"),
        ("Milk has to be cold.", "silent"),
    ],
)
def test_a_choice_is_contradicted_if_only_another_is_named(rationale: str, expected: str) -> None:
    assert check_agreement(rationale, "refrigerator", Labels("choice"), ["refrigerator", "oven"]) == expected
