"""What two words say of the same thing: the same, something that may hold as well, or something that excludes it."""

from functools import lru_cache
from typing import Final

from pairwright.generators.captions.context import loosely_same, plural_of
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.lexicon.tables import read_rows
from pairwright.generators.words.attributes import exclude_each_other, place
from pairwright.generators.words.relations import RELATIONS, wordings_like
from pairwright.generators.words.synonyms import ATTRIBUTES, OBJECTS
from pairwright.generators.words.synonyms import RELATIONS as REWORDED
from pairwright.generators.words.verbs import forms_of, same_act

_AUXILIARIES: Final = frozenset({"be", "have"})


def _lists(table: str, key: str, column: str) -> dict[str, tuple[str, ...]]:
    return {row[key]: tuple(word.strip() for word in row[column].split(",")) for row in read_rows(table)}


def _pairs(table: str, key: str, column: str, kind: str = "") -> frozenset[frozenset[str]]:
    rows = (row for row in read_rows(table) if not kind or row["kind"] == kind)
    return frozenset(frozenset((row[key], word.strip())) for row in rows for word in row[column].split(","))


_NOUNS_APART: Final = _pairs("told_apart", "word", "apart", "noun")
_QUALITIES_APART: Final = _pairs("told_apart", "word", "apart", "quality")
_REWORDED_NOUNS: Final = _pairs("reworded_nouns", "noun", "others")
_TOGETHER: Final = tuple(
    frozenset(word.strip() for word in row["phrases"].split(",")) for row in read_rows("relations_together")
)
_CONVERSES: Final = _lists("converses", "phrase", "converses")
GENERAL: Final = _lists("general_nouns", "noun", "kinds")
SENSES: Final = {row["noun"]: row["sense"] for row in read_rows("noun_senses")}
PREPOSITIONS: Final = frozenset(
    {wording for each in RELATIONS for wording in each.wordings}
    | {wording for old, others in REWORDED.items() for wording in (old, *others)}
)
SYMMETRIC: Final = frozenset(wording for each in RELATIONS if not each.strict for wording in each.wordings)
_STRICT: Final = {wording: each.name for each in RELATIONS if each.strict for wording in each.wordings}
_FIRST_WORDS: Final = frozenset(phrase.partition(" ")[0] for phrase in PREPOSITIONS)


def near(one: str, other: str) -> bool:
    """Whether two lemmas may be said of one thing: captioners use both and do not tell them apart."""
    if reworded(one, other):
        return True
    return other in loosely_same(one) and frozenset((one, other)) not in _NOUNS_APART


def reworded(one: str, other: str) -> bool:
    """Whether a word may be written for another and what is said stays as true."""
    first, second = ATTRIBUTES.get(one), ATTRIBUTES.get(other)
    return (
        one == other
        or other in OBJECTS.get(one, ())
        or one in OBJECTS.get(other, ())
        or frozenset((one, other)) in _REWORDED_NOUNS
        or bool(first and other in first.others)
        or bool(second and one in second.others)
    )


def unlike(one: str, other: str) -> bool:
    """Whether two attributes exclude each other, or are neighbours that captioners tell apart."""
    first, second = place(one), place(other)
    apart = (
        first is not None
        and second is not None
        and first.group == second.group
        and frozenset((first.concept, second.concept)) in _QUALITIES_APART
    )
    return apart or exclude_each_other(one, other)


@lru_cache(maxsize=20_000)
def same_forms(noun: str) -> frozenset[str]:
    """Return a noun and its synonyms, each in both numbers."""
    words = {noun, *OBJECTS.get(noun, ())}
    return frozenset(words | {plural_of(word) for word in words})


@lru_cache(maxsize=20_000)
def names_of(noun: str) -> frozenset[str]:
    """Return the words by which captions may call a thing, in both numbers; of a compound, its head too."""
    words = loosely_same(noun) | loosely_same(noun.rpartition(" ")[2])
    return frozenset(form for word in words for form in (word, plural_of(word)))


@lru_cache(maxsize=20_000)
def split_relation(key: str) -> tuple[str, str]:
    """Return a relation's verb, as a lemma, and its preposition; either may be empty."""
    first, _, rest = key.partition(" ")
    if key in PREPOSITIONS or (first in _FIRST_WORDS and not rest):
        return "", key
    if first in _FIRST_WORDS and rest.split()[-1] in _FIRST_WORDS | {"of"}:
        return "", key
    verb = first if first != lemmatize(first, "VBN") else lemmatize(first, "VBG")
    return lemmatize(verb, "VBN"), rest


def deed(key: str) -> str:
    """Return a relation without "is" and "has"."""
    return " ".join(word for word in key.split() if word not in _AUXILIARIES)


def same_relation(one: str, other: str) -> bool:
    """Whether two prepositions say the same."""
    if one == other or other in REWORDED.get(one, ()) or one in REWORDED.get(other, ()):
        return True
    return any(one in each.wordings and other in each.wordings for each in RELATIONS)


@lru_cache(maxsize=20_000)
def may_hold_together(one: str, other: str) -> bool:
    """Whether two relations, by their lemmas, may be told of the same two things at once."""
    if any(one in group and other in group for group in _TOGETHER):
        return True
    (verb, where), (other_verb, elsewhere) = split_relation(one), split_relation(other)
    if verb and other_verb:
        return where == elsewhere and same_act(verb, other_verb)
    return bool(where and elsewhere and (verb or other_verb)) and where in paraphrases(elsewhere)


def are_apart(one: str, other: str) -> bool:
    """Whether two prepositions are different relations that hold one way only: "above" and "on"."""
    return one in _STRICT and other in _STRICT and _STRICT[one] != _STRICT[other]


@lru_cache(maxsize=20_000)
def paraphrases(preposition: str) -> frozenset[str]:
    """Return the prepositions that may be told of the same two things as one, or as a verb."""
    together = {*wordings_like(preposition), *REWORDED.get(preposition, ())}
    together |= {phrase for group in _TOGETHER if preposition in group for phrase in group}
    return frozenset(phrase for phrase in together if not split_relation(phrase)[0])


@lru_cache(maxsize=20_000)
def verbs_with(preposition: str) -> frozenset[str]:
    """Return the verbs, as lemmas, that may be told of the same two things as a preposition: "wear" for "in"."""
    together = frozenset[str]().union(*(group for group in _TOGETHER if preposition in group))
    return frozenset(phrase for phrase in together if split_relation(phrase)[0] == phrase)


@lru_cache(maxsize=20_000)
def converses(key: str) -> frozenset[str]:
    """Return what is said the other way round where a relation holds: passives, and the rows of ``converses.tsv``."""
    verb, preposition = split_relation(key)
    found = {*_CONVERSES.get(key, ()), *_CONVERSES.get(verb or preposition, ())}
    if verb and not preposition:
        found |= {f"{inflect(verb, tag)} by" for tag in ("VBN", "VBG")}
        found |= {f"being {inflect(verb, 'VBN')} by"}
    return frozenset(found)


@lru_cache(maxsize=20_000)
def act_forms(verb: str) -> frozenset[str]:
    """Return every form of a verb and of those that captioners use of the same act."""
    return forms_of(verb)
