"""Labels of rationale tasks: parsing, comparison, and consistency with a rationale.

Four kinds of labels:
- ``set``: one of the task's values (entailment, neutral, contradiction), or an alias.
- ``choice``: one of the row's choices, by its text or its letter.
- ``number``: a number or a calculation (`arithmetic`).
- ``text``: any short text.

Ambiguous labels are not guessed: "not entailment", "(b) oven" if (b) is something else. If a text gives alternatives
("3 or 4", "either (c) or (d)"), all of them are returned (`multiple_answers`).

`check_agreement` compares a label with the last sentences of its rationale, without a model; only a certain
contradiction counts against a row:
- ``number``: the value must occur in the rationale, as a number or a calculation, and every calculation must be right
  ("10 * 45 = 460" is not). If it occurs nowhere, a different last result contradicts it, unless the label continues
  the calculation with it ("4 + 6 = 10", and the label "3 + (4 + 6)" or "3 + 10").
- ``set``: a value named in the last sentence must be the label. Most rationales name none: they are *silent*.
- ``choice``: the label's text must occur in the rationale, or at least the last sentence must not name only another
  choice.
- ``text``: the label must occur in the rationale, or else the rationale is silent.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from pairwright.generators.rationales.arithmetic import (
    NUMBER_NAMES,
    evaluate_expression,
    find_calculations,
    find_differing_numbers,
    find_equations,
    find_numbers,
    format_number,
    is_close,
    parse_number,
    solve_stated_unknown,
    strip_outer_brackets,
    values_of_parts,
)
from pairwright.generators.rationales.multiple_answers import find_choice_mentions, find_word_mentions, listed_answers

LabelKind = Literal["set", "choice", "number", "text"]
LABEL_KINDS: tuple[LabelKind, ...] = ("set", "choice", "number", "text")

MAX_LENGTH = 300  # characters of a label
_CLEAR = 7  # letters of a word that names a label wherever it occurs
MISSING_LABELS = frozenset({"", "-", "-1", "none", "null", "nan"})  # values of unknown labels in data sets

_WRAPPED = re.compile(r"[\s\"'“”‘’`*_.,;:!]+")
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_LETTER = re.compile(
    r"(?:option|choice)?\s*(?:\((?P<round>[A-Za-z])\)|(?P<bare>[A-Za-z])(?:[).:]|\Z))\s*", re.IGNORECASE
)
_EXCLUDED = re.compile(r"\b(?:not|rather than|instead of)\s+[\w-]+")  # "entailment, not neutral"
_DENIED = re.compile(r"\b(?:not|isn't|neither|never|cannot)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Labels:
    """The labels of a task.

    Attributes:
        kind: see the module.
        values: values of a ``set``, in the order in which rows number them from 0.
        also: aliases of the values of a ``set``: value -> words.
    """

    kind: LabelKind
    values: tuple[str, ...] = ()
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, text: str, choices: Sequence[str] = ()) -> str:
        """Return the label of a model's answer in its canonical form; empty if none or several can be read.

        Args:
            text: the text after the marker.
            choices: choices of the row, for kind ``choice``.
        """
        found = self.answers(text, choices)
        return found[0] if len(found) == 1 else ""

    def answers(self, text: str, choices: Sequence[str] = ()) -> list[str]:
        """Return the labels of a model's answer: one, several alternatives, or none.

        Args:
            text: the text after the marker.
            choices: choices of the row, for kind ``choice``.
        """
        text = text[:MAX_LENGTH].strip()
        bare = _strip_decoration(text)
        if self.kind == "text":
            return [bare] if bare else []
        if self.kind == "number":
            label = _number(text)
            return [label] if label else [format_number(value) for value in find_differing_numbers(text)]
        if self.kind == "choice":
            several = listed_answers(text, find_choice_mentions(text, choices))
            label = _choice(text, bare, choices)
        else:
            several = listed_answers(_folded(bare), find_word_mentions(_folded(bare), self.words))
            label = self._member(bare)
        if len(several) > 1:
            return several
        return [label] if label else []

    def read_stated(self, text: str, rationale: str) -> str:
        """Return the number that a rationale states for a calculation with an unknown; empty if it states none.

        That is 6 for "some - 8" if the rationale has "some - 8 = 6". Only for kind ``number``.
        """
        value = solve_stated_unknown(text[:MAX_LENGTH], rationale) if self.kind == "number" else None
        return format_number(value) if value is not None else ""

    def gold(self, given: Any, choices: Sequence[str] = ()) -> str:
        """Return the gold label of a row in its canonical form; empty if it is marked as unknown.

        Args:
            given: the label, its number or its letter, as text or number.
            choices: choices of the row.

        Raises:
            ValueError: it is not a label of the task.
        """
        text = " ".join(str(given if given is not None else "").split())
        if not text or (self.kind != "number" and text.casefold() in MISSING_LABELS):
            return ""
        numbered: Sequence[str] = choices if self.kind == "choice" else self.values
        if (
            self.kind in {"set", "choice"}
            and re.fullmatch(r"\d+(?:\.0)?", text)
            and _folded(text) not in self._folded(numbered)
        ):
            place = int(float(text))
            if place >= len(numbered):
                raise ValueError(f"label {text}: there are {len(numbered)} labels, numbered from 0")
            return numbered[place]
        if self.kind == "number":
            return text.removesuffix(".0") if evaluate_expression(text) is not None else _gold_number(text)
        found = self.read(text, choices)
        if not found:
            raise ValueError(f"label {text[:60]!r} is not one of: {', '.join(numbered)}")
        return found

    def same(self, one: str, other: str) -> bool:
        """Return whether two canonical labels are equal."""
        if self.kind == "number":
            a, b = evaluate_expression(one), evaluate_expression(other)
            return a is not None and b is not None and is_close(a, b)
        return _folded(one) == _folded(other)

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Values and aliases of a ``set`` -> the value."""
        return {_folded(word): value for value in self.values for word in (value, *self.also.get(value, ()))}

    def _member(self, bare: str) -> str:
        folded = _folded(bare)
        first = next(iter(find_word_mentions(folded, self.words)), None)
        if first is not None and first.start == 0:
            rest = _EXCLUDED.sub("", folded[first.end :])
            return first.answer if {*find_mentioned(self, rest)} <= {first.answer} else ""
        if _DENIED.search(bare):
            return ""
        held = {*find_mentioned(self, folded)}
        return held.pop() if len(held) == 1 else ""

    @staticmethod
    def _folded(texts: Sequence[str]) -> set[str]:
        return {_folded(text) for text in texts}


def find_mentioned(labels: Labels, text: str) -> list[str]:
    """Return the values of a ``set`` that a text names, in order; short words ("no", "true") occur in any sentence."""
    words = {word: value for word, value in labels.words.items() if len(word) >= _CLEAR and " " not in word}
    return [mention.answer for mention in find_word_mentions(text.casefold(), words)]


def _starts_with_word(text: str, word: str) -> bool:
    return text.startswith(word) and re.match(r"[\w-]", text[len(word) :]) is None


def _folded(text: str) -> str:
    return " ".join(_strip_decoration(text).casefold().replace("’", "'").split())


def _strip_decoration(text: str) -> str:
    """Return a text without surrounding quotes, asterisks and punctuation, and without a leading article."""
    text = text.strip()
    begin = _WRAPPED.match(text)
    text = text[begin.end() :] if begin else text
    while text and _WRAPPED.fullmatch(text[-1]):
        text = text[:-1]
    return _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) and _ARTICLE.sub("", text, count=1) else text


def _number(text: str) -> str:
    text = text.strip(" *_`'\"")
    text = re.sub(r"\s+", " ", text).rstrip(" .,;!")
    if evaluate_expression(text) is not None:
        return strip_outer_brackets(text)
    value = parse_number(text)
    return format_number(value) if value is not None else ""


def _gold_number(text: str) -> str:
    # Worked solutions in some data sets end in "#### 1,200".
    value = parse_number(text.rpartition("####")[2])
    if value is None:
        raise ValueError(f"label {text[:60]!r} is not a number")
    return format_number(value)


def _choice(text: str, bare: str, choices: Sequence[str]) -> str:
    by_text = {_folded(choice): choice for choice in choices}
    if _folded(bare) in by_text:
        return by_text[_folded(bare)]
    letter = _LETTER.match(text.lstrip(" \"'*_"))
    if letter:
        place = ord((letter["round"] or letter["bare"]).upper()) - ord("A")
        rest = _folded(text.lstrip(" \"'*_")[letter.end() :])
        if place >= len(choices):
            return ""
        meant = choices[place]
        named = [choice for folded, choice in by_text.items() if rest.startswith(folded)]
        return meant if not rest or meant in named or not named else ""
    folded = _folded(bare)
    begun = [word for word in by_text if word and _starts_with_word(folded, word)]
    if begun:
        return by_text[max(begun, key=len)]
    # "blotters" is the choice "blotter".
    alike = [choice for word, choice in by_text.items() if word.removesuffix("s") == folded.removesuffix("s")]
    return alike[0] if len(alike) == 1 else ""


Agreement = Literal["agrees", "contradicts", "silent"]

_SENTENCE = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=\S)")
_NEGATED = re.compile(r"\b(?:not|no|never|neither|nor|cannot|without)\b|n['’]t\b", re.IGNORECASE)
_SPELLED = re.compile(rf"\b(?:{'|'.join(NUMBER_NAMES)})\b", re.IGNORECASE)


def check_agreement(rationale: str, label: str, labels: Labels, choices: Sequence[str] = ()) -> Agreement:
    """Return whether a rationale agrees with a label, contradicts it, or is silent.

    Args:
        rationale: the rationale, without marker and label.
        label: the label in its canonical form.
        labels: labels of the task.
        choices: choices of the row, for kind ``choice``.
    """
    if labels.kind == "number":
        return _check_number(rationale, values_of_parts(label))
    if labels.kind == "set":
        return _check_member(rationale, label, labels)
    if labels.kind == "choice":
        return _check_choice(rationale, label, choices)
    return "agrees" if _names(rationale, label) else "silent"


def _check_number(rationale: str, values: Sequence[Fraction]) -> Agreement:
    """Compare a rationale with the value of a label and those of its operands; empty for a label without value."""
    if not values:
        return "silent"
    results = find_equations(rationale)
    if not all(equation.holds for equation in results):
        return "contradicts"
    numbers = [
        *find_numbers(rationale),
        *find_calculations(rationale),
        *(Fraction(NUMBER_NAMES.index(word.lower())) for word in _SPELLED.findall(rationale)),
    ]
    if any(is_close(each, values[0]) or is_close(-each, values[0]) for each in numbers):
        return "agrees"
    if not results:
        return "silent"
    # "So 4 + 6 = 10 storks came. The answer is 3 + (4 + 6)": the label is the last step.
    return "agrees" if any(is_close(results[-1].stated, each) for each in values) else "contradicts"


def _check_member(rationale: str, label: str, labels: Labels) -> Agreement:
    last = _sentences(rationale)[-1:]
    named = find_mentioned(labels, last[0]) if last else []
    if not named or _NEGATED.search(last[0]):
        return "silent"
    return "agrees" if named[-1] == label else "contradicts"


def _check_choice(rationale: str, label: str, choices: Sequence[str]) -> Agreement:
    if _names(rationale, label):
        return "agrees"
    last = _sentences(rationale)[-1:]
    named = [choice for choice in choices if last and _names(last[0], choice)]
    return "contradicts" if len(named) == 1 and not _NEGATED.search(last[0]) else "silent"


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]


def _names(text: str, label: str) -> bool:
    return bool(label) and re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, re.IGNORECASE) is not None
