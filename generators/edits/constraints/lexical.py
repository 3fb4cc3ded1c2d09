"""What two words say of the same thing: the same, something that may hold as well, or something that excludes it."""

from functools import lru_cache
from typing import Final

from pairwright.generators.captions.context import plural_of
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.lexicon.attributes import NounCondition
from pairwright.generators.lexicon.nouns import cell_words, loosely_same
from pairwright.generators.lexicon.relations import load_relations, swap_ways
from pairwright.generators.lexicon.synonyms import rewording_rows
from pairwright.generators.lexicon.tables import read_rows

_AUXILIARIES: Final = frozenset({"be", "have"})
_FORMS: Final = ("VB", "VBG", "VBZ", "VBD", "VBN")


def _lists(table: str, key: str, column: str) -> dict[str, tuple[str, ...]]:
    return {row[key]: cell_words(row[column]) for row in read_rows(table)}


_REWORDED_NOUNS: Final = _lists("reworded_nouns", "noun", "others")
_REWORDED: Final = {  # relations, of whatever things
    phrase: rows[0].others
    for (pos, phrase), rows in rewording_rows().items()
    if pos == "relation" and rows[0].condition == NounCondition()
}
_TOGETHER: Final = tuple(frozenset(cell_words(row["phrases"])) for row in read_rows("relations_together"))
_CONVERSES: Final = _lists("converses", "phrase", "converses")
GENERAL: Final = _lists("general_nouns", "noun", "kinds")
SENSES: Final = {row["noun"]: row["sense"] for row in read_rows("noun_senses")}
PREPOSITIONS: Final = load_relations().prepositions.union(_REWORDED, *_REWORDED.values())
_ONE_WAY: Final = frozenset({"strict", "place", "order"})
SYMMETRIC: Final = frozenset(
    phrase for phrase in load_relations().prepositions if _ONE_WAY.isdisjoint(swap_ways().get(phrase, ()))
)
_FIRST_WORDS: Final = frozenset(phrase.partition(" ")[0] for phrase in PREPOSITIONS)


def reworded(one: str, other: str) -> bool:
    """Whether a noun or attribute may be written for another and what is said stays as true."""
    return one == other or _rewords(one, other) or _rewords(other, one)


def _rewords(one: str, other: str) -> bool:
    rows = (row for pos in ("noun", "adjective") for row in rewording_rows().get((pos, one), ()))
    return other in _REWORDED_NOUNS.get(one, ()) or any(other in row.others for row in rows)


@lru_cache(maxsize=20_000)
def same_forms(noun: str) -> frozenset[str]:
    """Return a noun and its synonyms, each in both numbers."""
    words = {noun, *(other for row in rewording_rows().get(("noun", noun), ()) for other in row.others)}
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
    return other in load_relations().same(one) or other in _REWORDED.get(one, ()) or one in _REWORDED.get(other, ())


def same_act(one: str, other: str) -> bool:
    """Whether captioners may use the two verbs (lemmas) of the same act."""
    return other in load_relations().same(one)


def are_other_acts(one: str, other: str) -> bool:
    """Whether two verbs (lemmas) exclude each other."""
    return PREPOSITIONS.isdisjoint((one, other)) and load_relations().exclusive(one, other)


@lru_cache(maxsize=20_000)
def may_hold_together(one: str, other: str) -> bool:
    """Whether two relations, by their lemmas, may be told of the same two things at once."""
    if any(one in group and other in group for group in _TOGETHER):
        return True
    (verb, where), (other_verb, elsewhere) = split_relation(one), split_relation(other)
    if verb and other_verb:
        return where == elsewhere and same_act(verb, other_verb)
    return bool(where and elsewhere and (verb or other_verb)) and where in paraphrases(elsewhere)


@lru_cache(maxsize=20_000)
def paraphrases(preposition: str) -> frozenset[str]:
    """Return the prepositions that may be told of the same two things as one, or as a verb."""
    together = {*load_relations().same(preposition), *_REWORDED.get(preposition, ())}
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
    acts = (act.partition(" ") for act in load_relations().same(verb))
    return frozenset(inflect(first, tag) + gap + rest for first, gap, rest in acts for tag in _FORMS)
