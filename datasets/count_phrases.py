"""Counts in messages: a number with its unit, the verb that agrees with it, and sizes in bytes."""

import re

_VERBS = {"are": "is", "have": "has", "do": "does", "were": "was"}  # plural to singular
_SIBILANT = re.compile(r"(s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"(?<=[^aeiou])y$")


def count_phrase(number: int, unit: str) -> str:
    """Return ``1 caption``, ``2,000 captions``, ``3 queries``; ``unit`` is a regular noun in the singular."""
    return f"{number:,} {unit if number == 1 else _with_s(unit)}"


def verb_form(number: int, verb: str) -> str:
    """Return the verb for a number of things, given the form for several: ``is`` for 1 and ``are``."""
    return verb if number != 1 else _VERBS.get(verb) or _with_s(verb)


def format_size(count: int) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _with_s(word: str) -> str:
    if _SIBILANT.search(word):
        return f"{word}es"
    return _CONSONANT_Y.sub("ie", word) + "s"
