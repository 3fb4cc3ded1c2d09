"""Parser for arithmetic in model output; no text is evaluated as code.

The grammar has numbers (``1,200``, ``.5``, ``1e3``), ``+ - * /`` with the usual precedence, brackets, and alternative
operator signs (``× · x ÷ −``). Values are exact fractions, so 0.1 + 0.2 is 0.3. Powers are not supported, since a short
text could then denote a huge number.

    evaluate_expression("(10 - (3 + 6))")                 -> Fraction(1)
    parse_number("$1,200 in all")                         -> Fraction(1200)
    parse_number("(8 cups + 10 mugs) * 4")                -> Fraction(72); units are ignored
    solve_stated_unknown("some - 8", "So some - 8 = 6.")  -> Fraction(6), the value that the text states
    find_differing_numbers("(8 / 4) and (6 / 4)")         -> [Fraction(2), Fraction(3, 2)]
    find_equations("10 * 45 = 460 seeds")                 -> [Equation(Fraction(450), Fraction(460), ...)]
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from pairwright.generators.rationales.multiple_answers import Mention, listed_answers

MAX_LENGTH = 400  # characters of an expression
MAX_DEPTH = 30  # nested brackets
MAX_DIGITS = 30  # of a number

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,2})?"
_TOKEN = re.compile(rf"\s*(?:(?P<number>{_NUMBER})|(?P<sign>[-+*/()×·÷−–xX]))")
_SIGNS = {"×": "*", "·": "*", "x": "*", "X": "*", "÷": "/", "−": "-", "–": "-"}
_MONEY = re.compile(r"[$€£¥]\s?(?=[\d.(-])")
_UNKNOWN = re.compile(r"[^\W\d]\s*[-+*/×÷](?!\w)|[-+*/×÷]\s*[^\W\dxX]")  # "some - 9": a calculation with an unknown
# "8 action figures + 10", "some bags + 4": up to three words after a number, or two after an unknown, before an operator
# or a bracket are a unit, except for words that calculate, join or count.
_NO_UNIT = (
    r"(?!(?:and|or|to|than|more|less|fewer|of|plus|minus|times|divided|by|half|dozens?|hundreds?|thousands?|millions?|"
    r"percent|per|x|some|not|is|are|was|were|equals?)\b)"
)
_UNIT = re.compile(
    rf"((?<![\w.]){_NUMBER})\s+(?:{_NO_UNIT}[^\W\d_]+\s*){{1,3}}(?=[-+*/×÷()]|x\s?[\d(]|\Z)", re.IGNORECASE
)
_UNIT_OF_WORD = re.compile(
    rf"((?<![^\s(])[^\W\d_]+)\s+(?:{_NO_UNIT}[^\W\d_]+\s*){{1,2}}(?=[-+*/×÷)]|\Z)", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")
_PLACEHOLDER_VALUES = ("10007", "20011", "30011")  # numbers in place of an unknown, which do not occur in texts
# An expression in running text: it begins and ends with a number or a bracket.
_EXPRESSION = rf"[(]*-?\s?[(]*(?:{_NUMBER})(?:\s?[()]*\s?[-+*/×·÷−x]\s?[(]*\s?-?(?:{_NUMBER})[)]*)*"
_EQUATION = re.compile(
    rf"(?<![\w.,%(*/+^-])(?<![-+*/^\d]\s)(?P<left>{_EXPRESSION})\s*=\s*(?P<right>-?(?:{_NUMBER}))(?![\w%/*]|[.,]\d|\s?[-+*/×÷=]\s?\d)"
)
NUMBER_NAMES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip

_CALCULATED = re.compile(r"\d[\s)]*[-+*/×·÷−x]")
_PLAIN = re.compile(rf"(?<![\w.,])-?{_NUMBER}(?![\w]|[.,]\d)")


@dataclass(frozen=True, slots=True)
class Equation:
    """A calculation in a text: the value of its left side, the stated result, and its span in characters."""

    value: Fraction
    stated: Fraction
    start: int
    end: int

    @property
    def holds(self) -> bool:
        """Whether both sides are equal up to rounding."""
        return is_close(self.value, self.stated)


def evaluate_expression(expression: str) -> Fraction | None:
    """Return the value of an expression; None if the text is no expression or divides by zero."""
    text = _MONEY.sub("", expression.strip())
    if not text or len(text) > MAX_LENGTH:
        return None
    tokens = _tokens(text)
    if tokens is None:
        return None
    try:
        return _Parser(tokens).whole()
    except (_NoArithmeticError, ZeroDivisionError):
        return None


def parse_number(text: str) -> Fraction | None:
    """Return the number of a short text: an expression, with or without unit, or the right side of an equation.

    Returns:
        The number; None if there is none, or several that differ.
    """
    text = text.strip()[:MAX_LENGTH].strip(" .*_`'\"")
    first = text.casefold().partition(" ")[0]
    if first in NUMBER_NAMES and not re.search(r"\d", text):
        return Fraction(NUMBER_NAMES.index(first))
    right = text.rpartition("=")[2]
    if (value := evaluate_expression(right)) is not None:
        return value
    if "=" in text:
        text = right.strip()
    text = _without_units(_MONEY.sub("", text))
    if _UNKNOWN.search(text):
        return None
    found = list(dict.fromkeys(_values_within(text)))
    return found[0] if len(found) == 1 else None


def find_differing_numbers(text: str) -> list[Fraction]:
    """Return the numbers of a text that lists several different ones ("(8 / 4) and (6 / 4)", "14, 21", "5 apples or 6").

    Returns:
        The numbers; empty if the text has one number, or numbers that are not a list.
    """
    text = _MONEY.sub("", text.strip(" .*_`'\"")[:MAX_LENGTH])
    while text.startswith("(") and text.endswith(")") and _is_bracketed(text):
        text = text[1:-1].strip()
    if _UNKNOWN.search(text):
        return []
    values = {format_number(value): value for _, _, value in _found_within(text)}
    mentions = [Mention(start, end, format_number(value), whole=False) for start, end, value in _found_within(text)]
    listed = [values[answer] for answer in listed_answers(text, mentions)]
    return listed if len(listed) > 1 else []


def solve_stated_unknown(expression: str, text: str) -> Fraction | None:
    """Return the value that a text states for an expression with one unknown ("some - 8 = 6" for "(some - 8)").

    The expression is not solved for its unknown. Units and redundant brackets are ignored.

    Returns:
        The value; None if the text states none or several.
    """
    expression = _of_one_word(_MONEY.sub("", expression.strip(" .*_`'\"")[:MAX_LENGTH]))
    unknown = set(_WORD.findall(expression)) - {"x", "X"} or set(_WORD.findall(expression))
    units = r"(?:\s+[^\W\d_]+){0,2}?"
    parts = [re.escape(part) + units for part in re.findall(rf"{_NUMBER}|[^\W\d_]+|[-+*/×÷]", expression)]
    if len(unknown) != 1 or len(parts) < len(("some", "-", "8")):
        return None
    [word] = unknown
    chain = r"[\s()]*".join(parts)
    pattern = re.compile(
        rf"(?<![\w.*/+^-])(?<![-+*/]\s)(?P<left>[(]*{chain}[)]*)\s*(?:=|\.?\s+that is|is)\s*[$€£¥]?"
        rf"(?P<right>-?{_NUMBER})(?![\w%/*]|[.,]\d|\s?[-+*/×÷=]\s?\d)",
        re.IGNORECASE,
    )
    found = {
        evaluate_expression(match["right"])
        for match in pattern.finditer(text)
        if _evaluate_with_placeholders(expression, word) == _evaluate_with_placeholders(match["left"], word) is not None
    }
    return found.pop() if len(found) == 1 else None


def _evaluate_with_placeholders(expression: str, unknown: str) -> tuple[Fraction, ...] | None:
    values = []
    for number in _PLACEHOLDER_VALUES:
        known = re.sub(rf"(?<!\w){re.escape(unknown)}(?!\w)", number, _of_one_word(expression), flags=re.IGNORECASE)
        values.append(evaluate_expression(_balanced(known)))
    whole = tuple(value for value in values if value is not None)
    return whole if len(whole) == len(values) else None


def _without_units(text: str) -> str:
    return _UNIT.sub(r"\1 ", text).strip()


def _of_one_word(text: str) -> str:
    return _UNIT_OF_WORD.sub(r"\1 ", _without_units(text)).strip()


def _is_bracketed(text: str) -> bool:
    """Return whether the first bracket matches the last one."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def find_numbers(text: str) -> list[Fraction]:
    """Return the plain numbers of a text, in order."""
    text = _MONEY.sub("", text)
    found = (evaluate_expression(match[0]) for match in _PLAIN.finditer(text))
    return [value for value in found if value is not None]


def find_calculations(text: str) -> list[Fraction]:
    """Return the values of the calculations in a text, with or without a stated result, in order."""
    text = _MONEY.sub("", text)
    found = (
        evaluate_expression(_balanced(match[0]))
        for match in re.finditer(rf"(?<![\w.,]){_EXPRESSION}(?![\w]|[.,]\d)", text)
        if _CALCULATED.search(match[0])
    )
    return [value for value in found if value is not None]


def find_equations(text: str) -> list[Equation]:
    """Return the calculations with a stated result in a text, in order."""
    text = _MONEY.sub("", text)
    found: list[Equation] = []
    for match in _EQUATION.finditer(text):
        left, stated = evaluate_expression(_balanced(match["left"])), evaluate_expression(match["right"])
        if left is not None and stated is not None and _CALCULATED.search(match["left"]):
            found.append(Equation(left, stated, match.start(), match.end()))
    return found


def is_close(one: Fraction, other: Fraction) -> bool:
    """Return whether two numbers are equal, or one is a decimal to which the other rounds.

    3.33 is close to ten thirds, and 0.7 to two thirds; 37.9 is not close to 38.
    """
    return one == other or _rounds_to(one, other) or _rounds_to(other, one)


def _rounds_to(exact: Fraction, decimal: Fraction) -> bool:
    if decimal.denominator == 1:
        return False
    digits = next((digits for digits in range(1, MAX_DIGITS) if 10**digits % decimal.denominator == 0), 0)
    if not digits:
        return False
    error, unit = abs(exact - decimal), Fraction(1, 10**digits)
    return 2 * error <= unit or (digits > 1 and error < unit)  # rounded or truncated


def format_number(value: Fraction) -> str:
    """Return a number as text: ``450``, ``2.5``; six significant digits if it is no integer."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6g}"


def _values_within(text: str) -> Iterator[Fraction]:
    return (value for _, _, value in _found_within(text))


def _found_within(text: str) -> Iterator[tuple[int, int, Fraction]]:
    """Yield start, end and value of each expression of a text."""
    for match in re.finditer(rf"(?<![\w.,]){_EXPRESSION}(?![\w]|[.,]\d)", text):
        value = evaluate_expression(_balanced(match[0]))
        if value is not None:
            yield match.start(), match.end(), value


def _balanced(text: str) -> str:
    """Return the text without unmatched brackets at its ends."""
    text = text.strip()
    while text.count("(") > text.count(")") and text.startswith("("):
        text = text[1:].strip()
    while text.count(")") > text.count("(") and text.endswith(")"):
        text = text[:-1].strip()
    return text


class _NoArithmeticError(Exception):
    """The text is no expression."""


def _tokens(text: str) -> list[str] | None:
    tokens: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        number, sign = found["number"], found["sign"]
        if number is not None and len(number) > MAX_DIGITS:
            return None
        tokens.append(number.replace(",", "") if number is not None else _SIGNS.get(sign, sign))
        at = found.end()
    return tokens


class _Parser:
    """Recursive-descent parser of sums of products of factors."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def whole(self) -> Fraction:
        value = self._sum()
        if self._at < len(self._tokens):
            raise _NoArithmeticError
        return value

    def _sum(self) -> Fraction:
        value = self._product()
        while (sign := self._next_of("+-")) is not None:
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while (sign := self._next_of("*/")) is not None:
            other = self._factor()
            value = value * other if sign == "*" else value / other
        return value

    def _factor(self) -> Fraction:
        minus = False
        while (sign := self._next_of("+-")) is not None:
            minus ^= sign == "-"
        value = self._atom()
        return -value if minus else value

    def _atom(self) -> Fraction:
        if self._next_of("(") is None:
            return self._number()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _NoArithmeticError
        value = self._sum()
        if self._next_of(")") is None:
            raise _NoArithmeticError
        self._depth -= 1
        return value

    def _number(self) -> Fraction:
        if self._at >= len(self._tokens) or not (
            self._tokens[self._at][0].isdigit() or self._tokens[self._at][0] == "."
        ):
            raise _NoArithmeticError
        self._at += 1
        return Fraction(self._tokens[self._at - 1])

    def _next_of(self, signs: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at] in signs:
            self._at += 1
            return self._tokens[self._at - 1]
        return None
