"""Parser for arithmetic in model output; no text is evaluated as code.

The grammar has numbers (``1,200``, ``.5``, ``1e3``), ``+ - * /`` with the usual precedence, brackets, and alternative
operator signs (``× · ÷ −``). A letter x is a sign only between two operands (``4 x 6``, ``4x6 = 24``); in ``2x - 3`` it is
a variable, in ``a 4x6 photo`` a part of a size. Values are exact fractions, so 0.1 + 0.2 is 0.3. Powers are not
supported, since a short text could then denote a huge number.

    evaluate_expression("(10 - (3 + 6))")                 -> Fraction(1)
    parse_number("$1,200 in all")                         -> Fraction(1200)
    parse_number("(8 cups + 10 mugs) * 4")                -> Fraction(72); units are ignored
    solve_stated_unknown("some - 8", "So some - 8 = 6.")  -> Fraction(6), the value that the text states
    find_differing_numbers("(8 / 4) and (6 / 4)")         -> [Fraction(2), Fraction(3, 2)]
    find_equations("10 * 45 = 460 seeds")                 -> [Equation(Fraction(450), Fraction(460))]
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pairwright.generators.rationales.multiple_answers import Mention, listed_answers

MAX_LENGTH = 400  # characters of an expression
MAX_BRACKETS = 30  # opening brackets of an expression
MAX_DIGITS = 30  # of a number

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,2})?"
_OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_SIGNS = str.maketrans("×·÷−–", "**/--")
_MONEY = re.compile(r"[$€£¥]\s?(?=[\d.(-])")
# An x without spaces around it is a sign if only more of the calculation is before its result or the end of the text.
_TIMES = re.compile(r"(?<=[\d)])(?:\s+x\s+|\s*+x\s*+(?=[-+*/\d(),.x ]++(?:=|\Z)))(?=[(.\d])", re.IGNORECASE)
_EXPRESSION_CHARS = re.compile(rf"(?:[\s()+*/-]|{_NUMBER})++")
_UNKNOWN = re.compile(r"[^\W\d]\s*[-+*/](?!\w)|[-+*/]\s*[^\W\d]")  # "some - 9": a calculation with an unknown
# "8 action figures + 10", "some bags + 4": up to three words after a number, or two after an unknown, before an operator
# or a bracket are a unit, except for words that calculate, join or count.
_NO_UNIT = (
    r"(?!(?:and|or|to|than|more|less|fewer|of|plus|minus|times|divided|by|half|dozens?|hundreds?|thousands?|millions?|"
    r"percent|per|x|some|not|is|are|was|were|equals?)\b)"
)
_UNIT = re.compile(
    rf"((?<![\w.]){_NUMBER})\s+(?:{_NO_UNIT}[^\W\d_]+\s*){{1,3}}(?=[-+*/()]|x\s?[\d(]|\Z)", re.IGNORECASE
)
_UNIT_OF_WORD = re.compile(rf"((?<![^\s(])[^\W\d_]+)\s+(?:{_NO_UNIT}[^\W\d_]+\s*){{1,2}}(?=[-+*/)]|\Z)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
# An expression in running text: it begins and ends with a number or a bracket.
_EXPRESSION = rf"[(]*-?\s?[(]*(?:{_NUMBER})(?:\s?[()]*\s?[-+*/]\s?[(]*\s?-?(?:{_NUMBER})[)]*)*"
_STATED = rf"(?P<right>-?(?:{_NUMBER}))(?![\w%/*]|[.,]\d|\s?[-+*/=]\s?\d)"
_EQUATION = re.compile(rf"(?<![\w.,%(*/+^-])(?<![-+*/^\dx]\s)(?P<left>{_EXPRESSION})\s*=\s*{_STATED}")
_CALCULATION = re.compile(rf"(?<![\w.,]){_EXPRESSION}(?![\w]|[.,]\d)")
NUMBER_NAMES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip

_CALCULATED = re.compile(r"\d[\s)]*[-+*/]")
_PLAIN = re.compile(rf"(?<![\w.,])-?{_NUMBER}(?![\w]|[.,]\d)")


@dataclass(frozen=True, slots=True)
class Equation:
    """A calculation in a text: the value of its left side, and the stated result."""

    value: Fraction
    stated: Fraction

    @property
    def holds(self) -> bool:
        """Whether both sides are equal up to rounding."""
        return is_close(self.value, self.stated)


def evaluate_expression(expression: str) -> Fraction | None:
    """Return the value of an expression; None if the text is no expression or divides by zero."""
    return next(iter(values_of_parts(expression)), None)


def values_of_parts(expression: str) -> list[Fraction]:
    """Return the value of an expression and those of its operands, the whole first; empty if it has no value."""
    text = _with_plain_signs(expression)
    if not _EXPRESSION_CHARS.fullmatch(text):
        return []
    numbers: dict[str, Fraction] = {}
    tree = _parse(text, numbers)
    try:
        return list(_values(tree, numbers)) if tree is not None else []
    except (KeyError, ZeroDivisionError):
        return []


def _parse(text: str, numbers: dict[str, Fraction]) -> ast.expr | None:
    """Return the syntax tree of an expression, with a name for each number; None if it is not well-formed.

    Args:
        text: with plain signs.
        numbers: filled with the value of each name of a number.
    """
    written = re.findall(_NUMBER, text)
    if len(text) > MAX_LENGTH or text.count("(") > MAX_BRACKETS or any(len(each) > MAX_DIGITS for each in written):
        return None

    def name(found: re.Match[str]) -> str:
        value = Fraction(found[0].replace(",", ""))
        named = f"_{value.numerator}_{value.denominator}"
        numbers[named] = value
        return f" {named} "

    try:
        # Line breaks and spaces beyond ASCII are not valid between the operands of Python's expressions.
        return ast.parse(" ".join(re.sub(_NUMBER, name, text).split()), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError):
        return None


def _values(node: ast.expr, numbers: Mapping[str, Fraction]) -> Iterator[Fraction]:
    """Yield the value of a node, then those of its operands.

    Raises:
        KeyError: it is not arithmetic.
        ZeroDivisionError: it divides by zero.
    """
    match node:
        case ast.Name(name):
            yield numbers[name]
        case ast.UnaryOp(ast.UAdd() | ast.USub() as sign, operand):
            value, *parts = _values(operand, numbers)
            yield from (-value if isinstance(sign, ast.USub) else value, *parts)
        case ast.BinOp(left, sign, right):
            one, other = list(_values(left, numbers)), list(_values(right, numbers))
            yield from (_OPERATORS[type(sign)](one[0], other[0]), *one, *other)
        case _:
            raise KeyError(type(node).__name__)


def _with_plain_signs(text: str) -> str:
    """Return a text with ``+ - * /`` for all operator signs, without signs of money."""
    return _TIMES.sub(" * ", _MONEY.sub("", text).translate(_SIGNS))


def parse_number(text: str) -> Fraction | None:
    """Return the number of a short text: an expression, with or without unit, or the right side of an equation.

    Returns:
        The number; None if there is none, or several that differ.
    """
    text = text.strip()[:MAX_LENGTH].strip(" .*_`'\"")
    first = text.casefold().partition(" ")[0]
    if first in NUMBER_NAMES and not re.search(r"\d", text):
        return Fraction(NUMBER_NAMES.index(first))
    right = text.rpartition("=")[2].strip()
    if (value := evaluate_expression(right)) is not None:
        return value
    text = _with_plain_signs(_without_units(_MONEY.sub("", right)))
    if _UNKNOWN.search(text):
        return None
    found = {value for _, _, value in _found_within(text)}
    return found.pop() if len(found) == 1 else None


def find_differing_numbers(text: str) -> list[Fraction]:
    """Return the numbers of a text that lists several different ones ("(8 / 4) and (6 / 4)", "14, 21", "5 apples or 6").

    Returns:
        The numbers; empty if the text has one number, or numbers that are not a list.
    """
    text = strip_outer_brackets(_with_plain_signs(text.strip(" .*_`'\"")[:MAX_LENGTH]))
    if _UNKNOWN.search(text):
        return []
    found = list(_found_within(text))
    values = {format_number(value): value for _, _, value in found}
    mentions = [Mention(start, end, format_number(value), whole=False) for start, end, value in found]
    listed = [values[answer] for answer in listed_answers(text, mentions)]
    return listed if len(listed) > 1 else []


def solve_stated_unknown(expression: str, text: str) -> Fraction | None:
    """Return the value that a text states for an expression with one unknown ("some - 8 = 6" for "(some - 8)").

    The expression is not solved for its unknown. Units and redundant brackets are ignored.

    Returns:
        The value; None if the text states none or several.
    """
    expression = _of_one_word(_with_plain_signs(expression.strip(" .*_`'\"")[:MAX_LENGTH]))
    units = r"(?:\s+[^\W\d_]+){0,2}?"
    parts = re.findall(rf"{_NUMBER}|[^\W\d_]+|[-+*/]", expression)
    if len(set(_WORD.findall(expression))) != 1 or len(parts) < len(("some", "-", "8")):
        return None
    chain = r"[\s()]*".join(re.escape(part) + units for part in parts)
    statement = re.compile(
        rf"(?<![\w.*/+^-])(?<![-+*/]\s)(?P<left>[(]*{chain}[)]*)\s*(?:=|\.?\s+that is|is)\s*{_STATED}", re.IGNORECASE
    )
    wanted = _structure(expression)
    found = {
        evaluate_expression(match["right"])
        for match in statement.finditer(_with_plain_signs(text))
        if wanted == _structure(match["left"]) is not None
    }
    return found.pop() if len(found) == 1 else None


def _structure(expression: str) -> str | None:
    """Return an expression without redundant brackets and units; None if it is not well-formed."""
    tree = _parse(_balanced(_of_one_word(expression.casefold())), {})
    return ast.dump(tree) if tree is not None else None


def _without_units(text: str) -> str:
    return _UNIT.sub(r"\1 ", text).strip()


def _of_one_word(text: str) -> str:
    return _UNIT_OF_WORD.sub(r"\1 ", _without_units(text)).strip()


def strip_outer_brackets(text: str) -> str:
    """Return a text without the brackets that enclose all of it."""
    inner = text[1:-1].strip()
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for letter in inner:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return text
    return strip_outer_brackets(inner)


def find_numbers(text: str) -> list[Fraction]:
    """Return the plain numbers of a text, in order."""
    found = (evaluate_expression(match[0]) for match in _PLAIN.finditer(_with_plain_signs(text)))
    return [value for value in found if value is not None]


def find_calculations(text: str) -> list[Fraction]:
    """Return the values of the calculations in a text, with or without a stated result, in order."""
    text = _with_plain_signs(text)
    return [value for start, end, value in _found_within(text) if _CALCULATED.search(text[start:end])]


def find_equations(text: str) -> list[Equation]:
    """Return the calculations with a stated result in a text, in order."""
    found: list[Equation] = []
    for match in _EQUATION.finditer(_with_plain_signs(text)):
        left, stated = evaluate_expression(_balanced(match["left"])), evaluate_expression(match["right"])
        if left is not None and stated is not None and _CALCULATED.search(match["left"]):
            found.append(Equation(left, stated))
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


def _found_within(text: str) -> Iterator[tuple[int, int, Fraction]]:
    """Yield start, end and value of each expression of a text with plain signs."""
    for match in _CALCULATION.finditer(text):
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
