"""Exact arithmetic in model output."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.rationales.arithmetic import (
    evaluate_expression,
    find_calculations,
    find_differing_numbers,
    find_equations,
    find_numbers,
    format_number,
    is_close,
    parse_number,
    solve_stated_unknown,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(10 - (3 + 6))", 1),
        ("2 + 3 * 4", 14),
        ("2 x 3", 6),
        ("12 ÷ 4 − 1", 2),
        ("1,200 / 3", 400),
        ("(9 - (-9))", 18),
        ("10 - 4 - 3", 3),
        ("$5.50 + $4.50", 10),
        ("( 84.0 / 2.0 )", 42),
        ("1e3", 1000),
        ("2x3", 6),
        ("(2 + 1) x (4)", 12),
        ("4x6x2", 48),
        ("4 x6", 24),
        ("1 +\n2", 3),
        ("10\u202f+\xa05", 15),
    ],
)
def test_expressions_have_their_usual_value(text: str, value: int) -> None:
    assert evaluate_expression(text) == value


def test_values_are_exact() -> None:
    assert evaluate_expression("0.1 + 0.2") == Fraction(3, 10)
    assert evaluate_expression("1 / 3 * 3") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "some - 9",
        "1 / 0",
        "((((",
        "5 +",
        "9 9",
        "2 ** 9",
        "2 ^ 9",
        "__import__('os')",
        "1" * 31,
        "(" * 99 + "1" + ")" * 99,
        "1+" * 300 + "1",
        "2x -3",
        "2x + 3",
        "-" * 399 + "x",
        "lambda: 0",
        "1 if 2 else 3",
        "2 // 3",
        "()",
        "3(4)",
    ],
)
def test_what_is_no_expression_has_no_value(text: str) -> None:
    assert evaluate_expression(text) is None


@given(st.recursive(
    st.integers(0, 999).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
    max_leaves=12,
))  # fmt: skip
def test_expressions_have_the_value_that_python_gives(text: str) -> None:
    try:
        # The test's own strings of digits and signs.
        wanted = eval("".join(f"Fraction({part})" if part.isdigit() else part for part in _parts(text)))  # noqa: S307
    except ZeroDivisionError:
        wanted = None
    assert evaluate_expression(text) == wanted


def _parts(text: str) -> list[str]:
    return text.replace("(", "( ").replace(")", " )").split()


@given(st.text("0123456789+-*/()., x=$abc", max_size=60))
def test_any_expression_is_read_without_an_error(text: str) -> None:
    evaluate_expression(text)
    parse_number(text)
    find_equations(text)
    find_calculations(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42 books", 42),
        ("$1,200 in all", 1200),
        ("10 - 3 = 7", 7),
        ("x = 5", 5),
        ("(10 * 45) seeds", 450),
        ("5 or 5.0", 5),
        ("((8 action figures + 10 cabinets) * 4 shelves)", 72),
        ("8 boxes x 4 pens", 32),
        ("(12 cups) / 4", 3),
    ],
)
def test_an_answer_with_a_unit_is_a_number(text: str, value: int) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "between 3 and 5",
        "some - 9",
        "7 + x - 10",
        "3 apples and 4 pears",
        "(14, 21)",
        "2 hundred + 3",
        "3 more + 4",
        "12 of them - 4",
        "50 percent * 80",
    ],
)
def test_an_answer_that_is_no_one_number_is_none(text: str) -> None:
    assert parse_number(text) is None


def test_equations_are_found_in_running_text_and_checked() -> None:
    found = find_equations("So 18 + 8 = 26. Then 10 - (3 + 6) = 2 emails, and x = 5.")
    assert [(int(equation.stated), equation.holds) for equation in found] == [(26, True), (2, False)]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("99 x 3 = 297 dollars", [True]),
        ("4x6 = 25", [False]),
        ("so 4x6x2 = 48 cubes", [True]),
        ("4x 6 = 25", [False]),
        ("2x -3 = 5", []),
        ("a 4x6 photo costs 3 + 4 = 7", [True]),
        ("3 boxes x 4 + 2 = 14", []),
    ],
)
def test_the_letter_x_multiplies_between_operands_only(text: str, holds: list[bool]) -> None:
    assert [equation.holds for equation in find_equations(text)] == holds


def test_the_sides_of_a_size_are_not_multiplied() -> None:
    assert find_calculations("He frames a 4x6 photo.") == []
    assert parse_number("2 * x") is None


@pytest.mark.parametrize("text", ["26 * x = 37", "52 - 26 * x = 5", "5 = 5", "2 + 3 = 5 + 1", "7 * 36 is 252"])
def test_no_equation_is_made_out_of_a_part_of_one(text: str) -> None:
    assert find_equations(text) == []


def test_rounded_results_hold_and_others_do_not() -> None:
    assert is_close(Fraction(10, 3), Fraction("3.33"))
    assert is_close(Fraction(2, 3), Fraction("0.7"))
    assert is_close(Fraction(2, 3), Fraction("0.66"))
    assert not is_close(Fraction("37.9"), Fraction(38))
    assert not is_close(Fraction(11, 3), Fraction(4))


def test_numbers_and_calculations_of_a_text() -> None:
    text = "He had 1,000 stamps and sold 3 * 20 of them for $2.50."
    assert find_numbers(text) == [1000, 3, 20, Fraction("2.5")]
    assert find_calculations(text) == [60]


def test_numbers_are_formatted_briefly() -> None:
    assert [format_number(Fraction(*pair)) for pair in ((450, 1), (5, 2), (10, 3))] == ["450", "2.5", "3.33333"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(8 / 4) and (6 / 4)", [2, Fraction(3, 2)]),
        ("((28 - 13) and (28 - 15))", [15, 13]),
        ("(14, 21)", [14, 21]),
        ("14 crackers and 21 cakes", [14, 21]),
        ("(8 / 4)", []),
        ("5 or 5.0", []),
        ("1,200", []),
        ("some - 8 and 4", []),
        ("((415 - 309) - (41", []),
        ("between 3 and 5", [3, 5]),
        ("either 5 apples or 6", [5, 6]),
        ("12 eggs in 3 boxes", []),
        ("5, not 6", []),
    ],
)
def test_lists_of_different_numbers_are_found(text: str, found: list[Fraction]) -> None:
    assert find_differing_numbers(text) == found


@pytest.mark.parametrize(
    ("expression", "text", "value"),
    [
        ("(some - 8)", "She has 6 dollars left. So some - 8 = 6.", 6),
        ("((some - 7) + 2)", "Now there are 10. So some - 7 + 2 = 10.", 10),
        ("(7 + x - 10)", "There are 8 now, then 7 + x - 10 = 8.", 8),
        ("(some bags + 4 bags)", "So some bags + 4 bags = 8 bags.", 8),
        ("(some - 563 - 558)", "So he had some - 563 - 558 crayons left. That is 332 crayons.", 332),
        ("some - 8", "Some - 8 = $1,200.50", Fraction("1200.5")),
        ("some - 8", "So some - 9 = 6.", None),
        ("some - 8", "So some - 8 = 6, and some - 8 = 7.", None),
        ("some - 8", "So 54 - some - 8 = 6.", None),
        ("some - 8", "So some - 8 = 6 + 1.", None),
        ("54 - (some - 28)", "So 54 - some - 28 = 30.", None),
        ("some - other", "So some - other = 30.", None),
        ("some", "So some is 5.", None),
        ("10 - 4", "So 10 - 4 = 7.", None),
    ],
)
def test_a_calculation_with_an_unknown_has_the_value_that_the_text_states(
    expression: str, text: str, value: Fraction | None
) -> None:
    assert solve_stated_unknown(expression, text) == value


@given(st.text("0123456789+-*/()., x=$abcs", max_size=60), st.text("0123456789+-*/()., x=$abcs", max_size=80))
def test_any_statement_is_read_without_an_error(expression: str, text: str) -> None:
    solve_stated_unknown(expression, f"{expression} = 5. {text}")
    find_differing_numbers(expression)
