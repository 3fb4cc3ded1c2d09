"""Inserted words of an edit, as counted by `balance.py` to limit their share in a set.

An object or attribute counts as one word, whatever its length ("fire hydrant"). A relation may count as two, a verb and
a preposition: "laying next to" for "standing in" inserts "laying" and "next to"; for "sitting next to" only "laying".
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from pairwright.datasets.records import Annotation
from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.relations import load_relations
from pairwright.generators.lexicon.tables import read_rows

_FIRST = re.compile(r"(.+?) and \S+$")


def inserted_words(row: Annotation) -> tuple[str, ...]:
    """Return the inserted words, lower-case, without articles and addition templates; empty for a swap or shuffle."""
    return inserted_words_of_edits(row.form, row.target, [(edit.before, edit.after) for edit in row.edits])


def inserted_words_of_edits(form: str, target: str, edits: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return `inserted_words` of a row, given the removed and the inserted text of each edit."""
    if form in {"swap", "shuffle"} or not edits:
        return ()
    before, after = max(edits, key=lambda edit: len(edit[1]))  # other edits are agreement
    if form == "replace" and target == "relation":
        return _relation_words(before.lower(), after.lower())
    return _object_words(after.lower())


@lru_cache(maxsize=1)
def _template_parts() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the words of addition templates before the noun, and their parts after it: "in the background"."""
    before, after = zip(*(row["template"].split("{}") for row in read_rows("addition_templates")), strict=True)
    return frozenset(" ".join(before).split()) | ARTICLES, tuple(filter(None, after))


@lru_cache(maxsize=65_536)
def _object_words(after: str) -> tuple[str, ...]:
    """Return added words without their addition template; in front of a caption, its first word follows them."""
    (connectives, tails), words = _template_parts(), after.strip(" ,")
    tail = next((tail for tail in tails if words.endswith(tail)), "")
    first = None if tail else _FIRST.match(words)
    added = (first[1] if first is not None else words.removesuffix(tail)).split()
    while len(added) > 1 and added[0] in connectives:
        added = added[1:]
    return (" ".join(added),) if added else ()


@lru_cache(maxsize=65_536)
def _relation_words(before: str, after: str) -> tuple[str, ...]:
    """Return the parts of the new relation that are not in the old one."""
    old = _split_phrase(before)
    return tuple(dict.fromkeys(part for part in _split_phrase(after) if part not in old)) or tuple(after.split()[:1])


def _split_phrase(wording: str) -> tuple[str, ...]:
    words = tuple(wording.split())
    ends = load_relations().find_prepositions(words)
    parts, at = [], 0
    while at < len(words):
        end = ends.get(at, at + 1)
        parts.append(" ".join(words[at:end]))
        at = end
    return tuple(part for part in parts if part not in words_with("filler"))
