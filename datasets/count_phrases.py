"""Counts in messages: a number with its unit, and the verb that agrees with it."""

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


def _with_s(word: str) -> str:
    if _SIBILANT.search(word):
        return f"{word}es"
    return _CONSONANT_Y.sub("ie", word) + "s"
