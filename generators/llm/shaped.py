"""Answers that are a pydantic model: from what the model said to a checked value.

An answer that is strictly the JSON asked for is read by pydantic at once. Every other one is looked at more closely:
`parsing` finds the objects and lists in it, and of each it is seen whether it fits, as it is or with the usual
mistakes taken back. What was overlooked is named (`FORGIVEN`), so that runs can count it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_origin

import orjson
from pydantic import BaseModel, ValidationError

from pairwright.generators.llm.manners import begins_turn, refuses
from pairwright.generators.llm.parsing import Findings, Found, find_values
from pairwright.generators.llm.troubles import Trouble

FORGIVEN: Mapping[str, str] = {
    "control": "byte order marks, control characters, or a chat's end marks",
    "thinking": "a thinking block before the answer",
    "reasoning": "the answer sent as reasoning, without content",
    "fence": "a code fence around it",
    "prose": "words around it",
    "run_on": "an invented next turn behind it",
    "syntax": "JSON that is not quite JSON",
    "wrapped": "an object or list around it, or one missing, or JSON in a string",
    "repeated": "the same answer several times",
    "entries": "entries of a list that are no good, beside others that are",
    "retyped": "values of another type that say the same, such as numbers in quotes",
    "extra_field": "fields that were not asked for",
    "label": "an opening or a label before it",
    "quotes": "quotes around it",
    "number": "a number or bullet before it",
}

_TYPES = ("_type", "_parsing", "_from_float", "_attributes_type", "_size")
_TOLD = 3  # faults of one answer


@dataclass(frozen=True, slots=True)
class ReadShape:
    """What was read: a value, or what is wrong; and what was overlooked."""

    value: Any
    trouble: Trouble | None = None
    forgiven: tuple[str, ...] = ()


def read_strict(text: str, shape: type[BaseModel]) -> BaseModel | None:
    """Return the value of a text that is nothing but the JSON asked for; None for any other."""
    if "NaN" in text or "Infinity" in text:  # pydantic takes them for numbers, as no JSON does
        return None
    try:
        return shape.model_validate_json(text, strict=True, extra="forbid")
    except ValidationError:
        return None


def read_shape(text: str, shape: type[BaseModel], *, cut: bool = False) -> ReadShape:
    """Find the value that was asked for, in any of its disguises.

    Args:
        text: what the model said, without thinking blocks and control characters.
        shape: what was asked for.
        cut: whether the server says that the answer broke off.
    """
    text, unwrapped = decoded(text)
    findings = find_values(text)
    read = _read(text, shape, findings, cut=cut)
    return ReadShape(read.value, read.trouble, (*unwrapped, *read.forgiven))


def _read(text: str, shape: type[BaseModel], findings: Findings, *, cut: bool) -> ReadShape:
    found = findings.values
    tried = [(each, fit(each.value, shape)) for each in found]
    good = [(each, its) for each, its in tried if its.trouble is None]
    if not good and len(found) > 1:
        together = fit([each.value for each in found], shape)
        if together.trouble is None and findings.broken_off < 0:
            return ReadShape(together.value, None, ("wrapped", *together.forgiven))
    if not good:
        return ReadShape(None, _trouble(text, findings, [its for _, its in tried], cut=cut))
    first, best = good[0]
    forgiven = [*best.forgiven, *_around(text, first, findings)]
    others = [other for other, its in good[1:] if its.value != best.value]
    if others and not _turns_between(text, first, others[0]):
        return ReadShape(None, Trouble("several_answers"))
    if len(good) > 1 and not others:
        forgiven.append("repeated")
    return ReadShape(best.value, None, tuple(dict.fromkeys(forgiven)))


def decoded(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text that a JSON string holds, where the whole answer is one."""
    stripped = text.strip()
    if stripped.startswith('"') and stripped.endswith('"'):
        try:
            inner = orjson.loads(stripped)
        except orjson.JSONDecodeError:
            return text, ()
        if isinstance(inner, str):
            return inner, ("wrapped",)
    return text, ()


def _turns_between(text: str, first: Found, other: Found) -> bool:
    between = text[first.end : other.start]
    return any(begins_turn(line) for line in between.splitlines() if line.strip())


def _around(text: str, value: Found, findings: Findings) -> list[str]:
    before, after = text[: value.start], text[value.end :]
    forgiven = [] if value.clean else ["syntax"]
    if "```" in before:
        forgiven.append("fence")
    if any(begins_turn(line) for line in after[:10_000].splitlines() if line.strip("` \t")):
        forgiven.append("run_on")
    elif findings.broken_off >= 0 or _words(before) or _words(after):
        forgiven.append("prose")
    return forgiven


def _words(text: str) -> bool:
    return bool(text.replace("```json", "").strip("` \n\t;"))


def _trouble(text: str, findings: Findings, tried: list[ReadShape], *, cut: bool) -> Trouble:
    if cut or findings.broken_off >= 0:
        return Trouble("truncated") if cut else Trouble("truncated", "Your answer broke off before its end.")
    if tried:
        return tried[0].trouble or Trouble("malformed")
    return Trouble("refused") if refuses(text.strip()) else Trouble("malformed")


def fit(value: Any, shape: type[BaseModel]) -> ReadShape:
    """Return a value as the shape has it, the usual mistakes taken back one by one."""
    read = _validated(value, shape)
    if read.trouble is None:
        return read
    for other in _disguises(value, shape):
        inner = _validated(other, shape)
        if inner.trouble is None:
            return ReadShape(inner.value, None, ("wrapped", *inner.forgiven))
    return read


def _disguises(value: Any, shape: type[BaseModel]) -> list[Any]:
    """Return what a value may stand for: what it wraps, itself wrapped, or with JSON in its strings read."""
    fields = _names(shape)
    disguises: list[Any] = []
    if isinstance(value, list):
        if len(value) == 1:
            disguises.append(value[0])
        if len(fields) == 1 and _is_list(shape):
            disguises.append({next(iter(fields)): value})
    elif isinstance(value, dict):
        if len(value) == 1 and not fields & set(value):
            inner = next(iter(value.values()))
            inner = unstrung(inner)
            disguises.append(inner)
            if isinstance(inner, list):
                disguises += _disguises(inner, shape)
        disguises.append({name: unstrung(inner) for name, inner in value.items()})
    return disguises


def _names(shape: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in shape.model_fields.items()}


def _is_list(shape: type[BaseModel]) -> bool:
    [field] = shape.model_fields.values()
    return get_origin(field.annotation) is list


def unstrung(value: Any) -> Any:
    """Return what a string holds that is itself JSON's object or list."""
    if isinstance(value, str) and value[:1] in "{[" and value:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _validated(value: Any, shape: type[BaseModel]) -> ReadShape:
    data = orjson.dumps(value)
    try:
        return ReadShape(shape.model_validate_json(data, strict=True, extra="forbid"))
    except ValidationError as error:
        strict = error
    try:
        return ReadShape(shape.model_validate_json(data, strict=False, extra="forbid"), None, ("retyped",))
    except ValidationError as error:
        lax = error
    if shape.model_config.get("extra") != "forbid" and any(each["type"] == "extra_forbidden" for each in _errors(lax)):
        for is_strict, forgiven in ((True, ("extra_field",)), (False, ("extra_field", "retyped"))):
            try:
                read = shape.model_validate_json(data, strict=is_strict, extra="ignore")
                return ReadShape(read, None, forgiven)
            except ValidationError as error:
                lax = error
    return ReadShape(None, _told(lax if _errors(lax) else strict))


def _errors(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False, include_context=False))


def _told(error: ValidationError) -> Trouble:
    """Return the trouble that pydantic's errors are. The user is told places and kinds, never what the model wrote."""
    errors = sorted(_errors(error), key=lambda each: _ORDER.index(_word(each["type"])))
    told = [f"{_place(each['loc'])}: {each['msg'].removeprefix('Value error, ')}" for each in errors[:_TOLD]]
    kinds = [f"{_place(each['loc'])}: {each['type']}" for each in errors[:_TOLD]]
    return Trouble(_word(errors[0]["type"]), f"What is wrong: {'; '.join(told)}.", "; ".join(kinds))


_ORDER = ("missing_field", "wrong_type", "extra_field", "wrong_value")


def _word(kind: str) -> str:
    if kind in ("missing", "extra_forbidden"):
        return "missing_field" if kind == "missing" else "extra_field"
    return "wrong_type" if kind.endswith(_TYPES) else "wrong_value"


def _place(loc: tuple[int | str, ...]) -> str:
    """Return where in the answer, with the names that the model made up left out: they may be anything."""
    steps = [str(step) if str(step).isidentifier() or isinstance(step, int) else "…" for step in loc]
    return ".".join(step if len(step) <= 30 else "…" for step in steps) or "the whole"
