"""Parser of answers that are a pydantic model.

An answer that is exactly the requested JSON is validated by pydantic at once. Any other is examined more closely:
`json_parsing` finds the objects and lists in it, and each is validated as it is or with frequent mistakes corrected.
Defects that were ignored are named (`TOLERATED_DEFECTS`), so that runs can count them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from pairwright.generators.llm.output.accepted_forms import iter_interpretations, read_plain_value
from pairwright.generators.llm.output.boilerplate import announces_correction, is_refusal, starts_new_turn
from pairwright.generators.llm.output.errors import OutputError, ParsedAnswer
from pairwright.generators.llm.output.json_parsing import FoundJSON, FoundValues, find_json_values

TOLERATED_DEFECTS: Mapping[str, str] = {
    "control": "byte order marks, control characters, or end tokens of a chat",
    "thinking": "a thinking block before the answer",
    "reasoning": "the answer sent as reasoning, without content",
    "fence": "a code fence around it",
    "prose": "text around it",
    "run_on": "an invented next turn after it",
    "syntax": "invalid JSON syntax with a clear meaning",
    "wrapped": "an object or list around it, a missing one, or JSON in a string",
    "repeated": "the same answer several times",
    "corrected": "an earlier answer that the model itself corrected",
    "renamed": "other names for the requested fields, such as new_caption",
    "keyed": "an object with the types of its entries as keys, in place of a list",
    "plain": "a numbered list, or lines of `name: value`, in place of JSON",
    "entries": "invalid entries of a list that has valid ones, too",
    "retyped": "equivalent values of another type, such as numbers in quotes",
    "extra_field": "fields that were not requested",
    "label": "a preamble or a label before it",
    "quotes": "quotes around it",
    "number": "a number or bullet before it",
}

_TYPES = ("_type", "_parsing", "_from_float", "_attributes_type", "_size")
_MAX_DESCRIBED = 3  # errors of one answer in the feedback


def parse_strict(text: str, shape: type[BaseModel]) -> BaseModel | None:
    """Return the value of a text that is exactly the requested JSON, else None."""
    if "NaN" in text or "Infinity" in text:  # not JSON, but pydantic accepts them as numbers
        return None
    try:
        return shape.model_validate_json(text, strict=True, extra="forbid")
    except ValidationError:
        return None


def parse_structured(text: str, shape: type[BaseModel], *, cut: bool = False) -> ParsedAnswer[Any]:
    """Return the requested value, in any accepted form.

    Args:
        text: the answer, without thinking blocks and control characters.
        shape: the requested model.
        cut: whether the server reports that the answer is cut off.
    """
    text, unwrapped = decode_json_string(text)
    findings = find_json_values(text)
    read = _read(text, shape, findings, cut=cut)
    return ParsedAnswer(read.value, read.error, (*unwrapped, *read.tolerated))


def _read(text: str, shape: type[BaseModel], findings: FoundValues, *, cut: bool) -> ParsedAnswer[Any]:
    found = findings.values
    tried = [(each, validate_variants(each.value, shape)) for each in found]
    good = [(each, its) for each, its in tried if its.error is None]
    if not good and len(found) > 1:
        together = validate_variants([each.value for each in found], shape)
        if together.error is None and findings.broken_off < 0:
            return ParsedAnswer(together.value, None, ("wrapped", *together.tolerated))
    if not good and not found and findings.broken_off < 0 and (plain := read_plain_value(text, shape)) is not None:
        read = validate_variants(plain, shape)
        if read.error is None and not cut:
            return replace(read, tolerated=("plain", *read.tolerated))
    if not good:
        return ParsedAnswer(None, _find_error(text, findings, [its for _, its in tried], cut=cut))
    chosen = 0
    tolerated: list[str] = []
    for at in range(1, len(good)):
        between = text[good[at - 1][0].end : good[at][0].start]
        if any(starts_new_turn(line) for line in between.splitlines() if line.strip()):
            break
        if good[at][1].value == good[chosen][1].value:
            tolerated.append("repeated")
        elif announces_correction(between):
            chosen = at
            tolerated.append("corrected")
        else:
            return ParsedAnswer(None, OutputError("several_answers"))
    value, best = good[chosen]
    tolerated = [*best.tolerated, *_surrounding_defects(text, value, findings), *tolerated]
    return ParsedAnswer(best.value, None, tuple(dict.fromkeys(tolerated)))


def decode_json_string(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the content of an answer that is one JSON string, and the defects."""
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
    tolerated = [] if value.clean else ["syntax"]
    if "```" in before:
        tolerated.append("fence")
    if any(starts_new_turn(line) for line in after[:10_000].splitlines() if line.strip("` \t")):
        tolerated.append("run_on")
    elif findings.broken_off >= 0 or _words(before) or _words(after):
        tolerated.append("prose")
    return tolerated


def _words(text: str) -> bool:
    return bool(text.replace("```json", "").strip("` \n\t;"))


def _find_error(text: str, findings: FoundValues, tried: list[ParsedAnswer[Any]], *, cut: bool) -> OutputError:
    if cut or findings.broken_off >= 0:
        return OutputError("truncated") if cut else OutputError("truncated", "Your answer broke off before its end.")
    if tried:
        return tried[0].error or OutputError("malformed")
    return OutputError("refused") if is_refusal(text.strip()) else OutputError("malformed")


def validate_variants(value: Any, shape: type[BaseModel]) -> ParsedAnswer[Any]:
    """Return a value as an instance of the model, in the first of the accepted forms (`accepted_forms`) that is valid.

    Forms in which every field counts are tried before those in which extra fields are ignored.
    """
    forms = [("", value), *iter_interpretations(value, shape)]
    first: ParsedAnswer[Any] = ParsedAnswer(None)
    for ignoring in (False, True):
        for name, each in forms:
            read = _validated(each, shape, ignoring=ignoring)
            if read.error is None:
                return replace(read, tolerated=(name, *read.tolerated) if name else read.tolerated)
            if not name:
                first = read
    return first


def _validated(value: Any, shape: type[BaseModel], *, ignoring: bool) -> ParsedAnswer[Any]:
    """Return a value validated by pydantic, strictly or else with type conversion.

    Args:
        value: a JSON value.
        shape: the model.
        ignoring: whether to ignore extra fields, unless the model forbids them.
    """
    data = orjson.dumps(value)
    ignoring = ignoring and shape.model_config.get("extra") != "forbid"
    tolerated = ("extra_field",) if ignoring else ()
    strict = None
    for retyped in (False, True):
        try:
            read = shape.model_validate_json(data, strict=not retyped, extra="ignore" if ignoring else "forbid")
            return ParsedAnswer(read, None, (*tolerated, "retyped") if retyped else tolerated)
        except ValidationError as error:
            strict, lax = strict or error, error
    return ParsedAnswer(None, _describe_errors(lax if _errors(lax) else strict or lax))


def _errors(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False, include_context=False))


def _describe_errors(error: ValidationError) -> OutputError:
    """Return pydantic's errors as an output error; its detail has places and kinds, never text of the model."""
    errors = sorted(_errors(error), key=lambda each: _ORDER.index(_error_code(each["type"])))
    messages = [
        f"{_field_path(each['loc'])}: {each['msg'].removeprefix('Value error, ')}" for each in errors[:_MAX_DESCRIBED]
    ]
    kinds = [f"{_field_path(each['loc'])}: {each['type']}" for each in errors[:_MAX_DESCRIBED]]
    return OutputError(_error_code(errors[0]["type"]), f"What is wrong: {'; '.join(messages)}.", "; ".join(kinds))


_ORDER = ("missing_field", "wrong_type", "extra_field", "wrong_value")


def _error_code(kind: str) -> str:
    if kind in ("missing", "extra_forbidden"):
        return "missing_field" if kind == "missing" else "extra_field"
    return "wrong_type" if kind.endswith(_TYPES) else "wrong_value"


def _field_path(loc: tuple[int | str, ...]) -> str:
    """Return the place in the answer; names invented by the model are replaced, since they may be anything."""
    steps = [str(step) if str(step).isidentifier() or isinstance(step, int) else "…" for step in loc]
    return ".".join(step if len(step) <= 30 else "…" for step in steps) or "the whole"
