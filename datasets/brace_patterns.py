"""Brace patterns: ``{00..12}`` counts with leading zeros, ``{a,b}`` lists."""

import re
from collections.abc import Iterator
from itertools import product

from pairwright.datasets.errors import InputError

MAX_PATTERN_NAMES = 1_000_000


def expand_braces(pattern: str) -> Iterator[str]:
    """Yield the names of a brace pattern: ``{00..12}`` counts with leading zeros, ``{a,b}`` lists.

    Raises:
        InputError: for more than `MAX_PATTERN_NAMES` names, or an invalid pattern.
    """
    pieces = re.split(r"\{([^{}]*)\}", pattern)
    choices = [[piece] if index % 2 == 0 else _expand_group(piece, pattern) for index, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_PATTERN_NAMES:
        raise InputError(f"{total} names in one pattern", where=pattern, fix="Split the pattern.")
    return map("".join, product(*choices))


def _expand_group(inner: str, pattern: str) -> list[str]:
    counted = re.fullmatch(r"(\d{1,12})\.\.(\d{1,12})", inner)
    if counted:
        first, last = counted.groups()
        if int(first) > int(last) or int(last) - int(first) > MAX_PATTERN_NAMES:
            raise InputError(f"{{{inner}}} does not count up", where=pattern, fix="Write {00000..00009}.")
        return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    if "," in inner:
        return inner.split(",")
    raise InputError(f"{{{inner}}} is not a pattern", where=pattern, fix="Write {00000..00009} or {a,b}.")
