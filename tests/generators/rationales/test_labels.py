"""Labels: read where they are certain, else not; the user's own in the forms that data sets have."""

import pytest

from pairwright.generators.rationales.labels import Labels
from pairwright.generators.rationales.task_files import open_task

NLI = open_task("nli").labels
ITM = open_task("itm").labels
CHOICE, NUMBER, TEXT = Labels("choice"), Labels("number"), Labels("text")
PLACES = ["cupboard", "refrigerator", "oven"]


@pytest.mark.parametrize(
    ("said", "label"),
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
def test_a_label_of_a_set_is_read_where_it_is_certain(said: str, label: str) -> None:
    assert NLI.read(said) == label


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("No", "no"),
        ("no, it is a dog", "no"),
        ("it does not fit", "no"),
        ("Yes.", "yes"),
        ("nothing", ""),
        ("not yes", ""),
    ],
)
def test_short_labels_are_not_found_inside_of_words(said: str, label: str) -> None:
    assert ITM.read(said) == label


@pytest.mark.parametrize(
    ("said", "label"),
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
def test_a_choice_is_read_by_text_or_letter_and_they_must_agree(said: str, label: str) -> None:
    assert CHOICE.read(said, PLACES) == label


@pytest.mark.parametrize(
    ("said", "label"),
    [("(10 * 45).", "10 * 45"), ("42 books", "42"), ("nine", "9"), ("x = 3", "3"), ("some - 9", ""), ("3 or 4", "")],
)
def test_a_number_may_be_a_calculation(said: str, label: str) -> None:
    assert NUMBER.read(said) == label


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
def test_a_gold_label_that_cannot_be_is_refused(labels: Labels, given: object) -> None:
    with pytest.raises(ValueError, match="label"):
        labels.gold(given, PLACES)
