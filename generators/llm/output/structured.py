"""Answers that are a pydantic model: from what the model said to a checked value.

An answer that is strictly the JSON asked for is read by pydantic at once. Every other one is looked at more closely:
`parsing` finds the objects and lists in it, and of each it is seen whether it fits, as it is or with the usual
mistakes taken back. What was overlooked is named (`TOLERATED_DEFECTS`), so that runs can count it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from pairwright.generators.llm.output.accepted_forms import iter_interpretations, read_plain_value
from pairwright.generators.llm.output.boilerplate import announces_correction, is_refusal, starts_new_turn
from pairwright.generators.llm.output.errors import OutputError
from pairwright.generators.llm.output.json_parsing import FoundJSON, FoundValues, find_json_values

TOLERATED_DEFECTS: Mapping[str, str] = {
    "control": "byte order marks, control characters, or a chat's end marks",
    "thinking": "a thinking block before the answer",
    "reasoning": "the answer sent as reasoning, without content",
    "fence": "a code fence around it",
    "prose": "words around it",
    "run_on": "an invented next turn behind it",
    "syntax": "JSON that is not quite JSON",
    "wrapped": "an object or list around it, or one missing, or JSON in a string",
    "repeated": "the same answer several times",
    "corrected": "an answer before it that the model itself corrected",
    "renamed": "other names for the fields asked for, such as new_caption",
    "keyed": "an object whose names are the types of its entries, in place of a list",
    "plain": "a numbered list, or lines of `name: value`, in place of JSON",
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
class StructuredResult:
    """What was read: a value, or what is wrong; and what was overlooked."""

    value: Any
    trouble: OutputError | None = None
    forgiven: tuple[str, ...] = ()


def parse_strict(text: str, shape: type[BaseModel]) -> BaseModel | None:
    """Return the value of a text that is nothing but the JSON asked for; None for any other."""
    if "NaN" in text or "Infinity" in text:  # pydantic takes them for numbers, as no JSON does
        return None
    try:
        return shape.model_validate_json(text, strict=True, extra="forbid")
    except ValidationError:
        return None


def parse_structured(text: str, shape: type[BaseModel], *, cut: bool = False) -> StructuredResult:
    """Find the value that was asked for, in any of its disguises.

    Args:
        text: what the model said, without thinking blocks and control characters.
        shape: what was asked for.
        cut: whether the server says that the answer broke off.
    """
    text, unwrapped = decode_json_string(text)
    findings = find_json_values(text)
    read = _read(text, shape, findings, cut=cut)
    return StructuredResult(read.value, read.trouble, (*unwrapped, *read.forgiven))


def _read(text: str, shape: type[BaseModel], findings: FoundValues, *, cut: bool) -> StructuredResult:
    found = findings.values
    tried = [(each, validate_variants(each.value, shape)) for each in found]
    good = [(each, its) for each, its in tried if its.trouble is None]
    if not good and len(found) > 1:
        together = validate_variants([each.value for each in found], shape)
        if together.trouble is None and findings.broken_off < 0:
            return StructuredResult(together.value, None, ("wrapped", *together.forgiven))
    if not good and not found and findings.broken_off < 0 and (plain := read_plain_value(text, shape)) is not None:
        read = validate_variants(plain, shape)
        if read.trouble is None and not cut:
            return replace(read, forgiven=("plain", *read.forgiven))
    if not good:
        return StructuredResult(None, _find_error(text, findings, [its for _, its in tried], cut=cut))
    chosen = 0
    forgiven: list[str] = []
    for at in range(1, len(good)):
        between = text[good[at - 1][0].end : good[at][0].start]
        if any(starts_new_turn(line) for line in between.splitlines() if line.strip()):
            break
        if good[at][1].value == good[chosen][1].value:
            forgiven.append("repeated")
        elif announces_correction(between):
            chosen = at
            forgiven.append("corrected")
        else:
            return StructuredResult(None, OutputError("several_answers"))
    value, best = good[chosen]
    forgiven = [*best.forgiven, *_surrounding_defects(text, value, findings), *forgiven]
    return StructuredResult(best.value, None, tuple(dict.fromkeys(forgiven)))


def decode_json_string(text: str) -> tuple[str, tuple[str, ...]]:
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


def _surrounding_defects(text: str, value: FoundJSON, findings: FoundValues) -> list[str]:
    before, after = text[: value.start], text[value.end :]
    forgiven = [] if value.clean else ["syntax"]
    if "```" in before:
        forgiven.append("fence")
    if any(starts_new_turn(line) for line in after[:10_000].splitlines() if line.strip("` \t")):
        forgiven.append("run_on")
    elif findings.broken_off >= 0 or _words(before) or _words(after):
        forgiven.append("prose")
    return forgiven


def _words(text: str) -> bool:
    return bool(text.replace("```json", "").strip("` \n\t;"))


def _find_error(text: str, findings: FoundValues, tried: list[StructuredResult], *, cut: bool) -> OutputError:
    if cut or findings.broken_off >= 0:
        return OutputError("truncated") if cut else OutputError("truncated", "Your answer broke off before its end.")
    if tried:
        return tried[0].trouble or OutputError("malformed")
    return OutputError("refused") if is_refusal(text.strip()) else OutputError("malformed")


def validate_variants(value: Any, shape: type[BaseModel]) -> StructuredResult:
    """Return a value as the shape has it, read in the first of the accepted forms (`answer_forms`) that fits.

    Forms in which every field counts come before those in which fields that were not asked for are ignored.
    """
    forms = [("", value), *iter_interpretations(value, shape)]
    first = StructuredResult(None)
    for ignoring in (False, True):
        for name, each in forms:
            read = _validated(each, shape, ignoring=ignoring)
            if read.trouble is None:
                return replace(read, forgiven=(name, *read.forgiven) if name else read.forgiven)
            if not name:
                first = read
    return first


def _validated(value: Any, shape: type[BaseModel], *, ignoring: bool) -> StructuredResult:
    """Return a value that pydantic takes, strictly or else with values of other types converted.

    Args:
        value: a JSON value.
        shape: the model.
        ignoring: whether fields that the model does not have are ignored, where it does not forbid them.
    """
    data = orjson.dumps(value)
    ignoring = ignoring and shape.model_config.get("extra") != "forbid"
    forgiven = ("extra_field",) if ignoring else ()
    strict = None
    for retyped in (False, True):
        try:
            read = shape.model_validate_json(data, strict=not retyped, extra="ignore" if ignoring else "forbid")
            return StructuredResult(read, None, (*forgiven, "retyped") if retyped else forgiven)
        except ValidationError as error:
            strict, lax = strict or error, error
    return StructuredResult(None, _describe_errors(lax if _errors(lax) else strict or lax))


def _errors(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False, include_context=False))


def _describe_errors(error: ValidationError) -> OutputError:
    """Return the trouble that pydantic's errors are. The user is told places and kinds, never what the model wrote."""
    errors = sorted(_errors(error), key=lambda each: _ORDER.index(_error_code(each["type"])))
    told = [f"{_field_path(each['loc'])}: {each['msg'].removeprefix('Value error, ')}" for each in errors[:_TOLD]]
    kinds = [f"{_field_path(each['loc'])}: {each['type']}" for each in errors[:_TOLD]]
    return OutputError(_error_code(errors[0]["type"]), f"What is wrong: {'; '.join(told)}.", "; ".join(kinds))


_ORDER = ("missing_field", "wrong_type", "extra_field", "wrong_value")


def _error_code(kind: str) -> str:
    if kind in ("missing", "extra_forbidden"):
        return "missing_field" if kind == "missing" else "extra_field"
    return "wrong_type" if kind.endswith(_TYPES) else "wrong_value"


def _field_path(loc: tuple[int | str, ...]) -> str:
    """Return where in the answer, with the names that the model made up left out: they may be anything."""
    steps = [str(step) if str(step).isidentifier() or isinstance(step, int) else "…" for step in loc]
    return ".".join(step if len(step) <= 30 else "…" for step in steps) or "the whole"
