"""Parsing of options about types: ``--types``, ``--quota``, ``--counts``, ``--ratios``, ``--vocabulary``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pairwright.cli.options.input import split_list
from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import find_duplicates, require_known


def parse_types(kind: str, text: str | None, known: Sequence[str]) -> dict[str, Any]:
    """Return ``{"types": ...}`` of a list, nothing for None.

    Args:
        kind: the texts, such as "negative", for messages.
        text: value of ``--types``.
        known: types that can be made.

    Raises:
        UsageError: for an empty list, an unknown type or one that is repeated.
    """
    named = parse_list("types", text)
    require_known(f"no such type of {kind}:", named.get("types", ()), known)
    if repeated := find_duplicates(named.get("types", ())):
        raise UsageError(f"--types: {', '.join(repeated)} is repeated. Give each type once.")
    return named


def parse_vocabulary(text: str) -> dict[str, Any]:
    """Return ``{"vocabulary": ...}`` of ``--vocabulary``, nothing where it is empty.

    Raises:
        UsageError: for a label that is the name of a file.
    """
    labels = parse_list("vocabulary", text or None)
    if file := next((label for label in labels.get("vocabulary", ()) if Path(label).is_file()), ""):
        raise UsageError(f"--vocabulary {file}: a file. Write the labels, such as dog,cat,traffic light.")
    return labels


def parse_list(name: str, text: str | None) -> dict[str, Any]:
    """Return ``{name: items}`` of a list with commas, nothing for None.

    Raises:
        UsageError: for a list without items.
    """
    if text is None:
        return {}
    items = split_list(text)
    if not items:
        raise UsageError(f"--{name} {text!r} is empty. Name at least one, or omit --{name} for all.")
    return {name: items}


def parse_counts(text: str, types: Sequence[str]) -> dict[str, int]:
    """Return ``conversation=58,brief=23`` as the count of each type.

    Raises:
        UsageError: for an unknown or repeated type, or a value that is no whole number.
    """
    counts: dict[str, int] = {}
    for kind, number in _assignments(text):
        require_known("--counts: no such type:", [kind], types)
        if not number.isdecimal() or kind in counts:
            raise UsageError(f"--counts {text!r}: write TYPE=N,... such as {types[0]}=1000, each type once.")
        counts[kind] = int(number)
    return counts


def parse_ratios(text: str) -> dict[str, float]:
    """Return ``conversation=58,detail=23`` as the part of each type.

    Raises:
        UsageError: for a repeated type, or a value that is no number.
    """
    parts: dict[str, float] = {}
    for kind, number in _assignments(text):
        try:
            part = float(number)
        except ValueError:
            raise UsageError(f"--ratios {text!r}: write conversation=58,detail=23,reasoning=77.") from None
        if kind in parts:
            raise UsageError(f"--ratios: {kind} is repeated. Give each type once.")
        parts[kind] = part
    return parts


def parse_quota(text: str, types: Sequence[str], made: Sequence[str]) -> dict[str, int]:
    """Return ``1000`` or ``1000,swap-object=50`` as the greatest number of rows of each type.

    Args:
        text: value of ``--quota``; a type that is named takes its own number.
        types: all types.
        made: types that the run makes.

    Raises:
        UsageError: for an unknown or repeated type, or a value that is no whole number.
    """
    quota: dict[str, int] = {}
    named: set[str] = set()
    for item in sorted(split_list(text), key=lambda item: "=" in item):  # the number for all types first
        kind, sign, number = (part.strip() for part in item.rpartition("="))
        if not number.isdecimal():
            raise UsageError(f"--quota {text!r}: write 1000, or TYPE=1000, or both, such as 1000,swap-object=50.")
        require_known("--quota: no such type:", [kind] if sign else [], types)
        if sign and kind not in made:
            raise UsageError(f"--quota: {kind} is not in --types: {', '.join(made)}.")
        if kind in named:
            raise UsageError(f"--quota: {kind or 'the number for all types'} is repeated. Give each once.")
        named.add(kind)
        quota |= {kind: int(number)} if sign else dict.fromkeys(made, int(number))
    return quota


def _assignments(text: str) -> list[tuple[str, str]]:
    parts = (item.partition("=") for item in split_list(text))
    return [(kind.strip(), number.strip()) for kind, _, number in parts]
