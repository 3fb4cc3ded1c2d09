"""Relations in other captions, read as phrases of the lexicon, and what they say of a proposed relation."""

from functools import lru_cache
from typing import Final

from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.language.lemmas import is_verb, lemmatize
from pairwright.generators.lexicon.attributes import concepts, neighbours, opposites
from pairwright.generators.lexicon.nouns import cell_words, loosely_same
from pairwright.generators.lexicon.relations import Relation, load_relations
from pairwright.generators.lexicon.states import DEEDS, States, exclude
from pairwright.generators.lexicon.synonyms import rewordings
from pairwright.generators.lexicon.tables import read_rows

_REWORDED_NOUNS: Final = frozenset(
    frozenset((row["noun"], other)) for row in read_rows("reworded_nouns") for other in cell_words(row["others"])
)
SENSES: Final = {row["noun"]: row["sense"] for row in read_rows("noun_senses") if row["sense"]}
_AUXILIARIES: Final = frozenset({"be", "have"})
_BEARING: Final = frozenset({"place:held", "place:worn", "place:contains", "place:bears"})


def reworded(one: str, other: str, pos: str, noun: str = "") -> bool:
    """Whether a word may be written for another and what is said stays true; it may say less.

    Args:
        one: the word or phrase that gives way.
        other: what is written instead.
        pos: "noun", "adjective" or "relation".
        noun: lemma of the noun that an adjective describes, or of the object of a relation.
    """
    if one == other or other in rewordings(one, pos, noun) or one in rewordings(other, pos, noun):
        return True
    entailed = rewordings(one, pos, noun, "entailed_rewordings")
    return other in entailed or (pos == "noun" and frozenset((one, other)) in _REWORDED_NOUNS)


def plain_relation(key: str) -> str:
    """Return a relation without "is" and "has"."""
    return " ".join(word for word in key.split() if word not in _AUXILIARIES)


@lru_cache(maxsize=20_000)
def are_opposed(one: str, other: str) -> bool:
    """Whether two attributes exclude each other beside some noun: opposites, or other concepts of a class."""
    if frozenset((one, other)) in opposites():
        return True
    return any(
        group == other_group and concept != other_concept and frozenset((concept, other_concept)) not in _neighbours()
        for group, concept in concepts().get(one, ())
        for other_group, other_concept in concepts().get(other, ())
    )


@lru_cache(maxsize=1)
def _neighbours() -> frozenset[frozenset[str]]:
    return frozenset(pair for pair, beside in neighbours(told_apart=False).items() if not beside.beside)


@lru_cache(maxsize=20_000)
def same_forms(noun: str) -> frozenset[str]:
    """Return a noun and its synonyms, each in both numbers."""
    words = {noun, *rewordings(noun, "noun")}
    return frozenset(words | {plural_of(word) for word in words})


@lru_cache(maxsize=20_000)
def names_of(noun: str) -> frozenset[str]:
    """Return the words by which captions may call a thing, in both numbers; of a compound, its head too."""
    words = loosely_same(noun) | loosely_same(noun.rpartition(" ")[2])
    return frozenset(form for word in words for form in (word, plural_of(word)))


@lru_cache(maxsize=20_000)
def split_relation(key: str) -> tuple[str, str]:
    """Return a relation's verb, as a lemma, and its preposition; either may be empty."""
    known = load_relations().analyse(key)
    if known is not None:
        return known.verb, known.preposition
    words = key.split()
    length = load_relations().match_preposition(words, 0)
    return ("", key) if length == len(words) else (words[0], " ".join(words[1:]))


@lru_cache(maxsize=50_000)
def relations_between(words: tuple[str, ...]) -> frozenset[str]:
    """Return the relation phrases among the words between two things; of a passive, the verb with "by"."""
    lexicon, found = load_relations(), set[str]()
    for at, word in enumerate(words):
        length = lexicon.match_preposition(words, at)
        if length:
            phrase = " ".join(words[at : at + length])
            found |= {phrase, f"{_verb(words[at - 1])} {phrase}"} if at else {phrase}
        elif not lexicon.match_preposition(words, at + 1):
            found.add(_verb(word))
    return frozenset(key for key in found if key.endswith(" by") or lexicon.analyse(key) is not None)


@lru_cache(maxsize=100_000)
def supports(said: str, new: str, old: str, subject: str, thing: str) -> bool:
    """Whether a relation that is said of two things makes a new one likely, and not the one that it replaces."""
    if said in {new, old}:
        return said == new
    lexicon = load_relations()
    known = lexicon.analyse(new)
    if known is None or lexicon.refutes(said, new, subject, thing):
        return False
    if said == "with" and not _BEARING.isdisjoint(known.features):
        return True
    return lexicon.paraphrase(said, new, thing) or lexicon.exclusive(said, old, subject, thing)


@lru_cache(maxsize=20_000)
def deeds_of(line: tuple[str, ...]) -> frozenset[str]:
    """Return the verbs of a caption as relation phrases, without what they are said of and where."""
    lexicon = load_relations()
    verbs = {_verb(word) for word in line if not lexicon.match_preposition((word,), 0)}
    return frozenset(verb for verb in verbs if lexicon.analyse(verb) is not None)


@lru_cache(maxsize=100_000)
def is_deed(said: str, new: str, old: str) -> bool:
    """Whether a verb of a caption may describe the action of a new relation, and not that of the old one."""
    if not is_displaced_deed(said, old):
        return False
    one, other = load_relations().analyse(said), load_relations().analyse(new)
    return one is not None and other is not None and bool(other.verb) and not exclude(_deed(one), _deed(other))


@lru_cache(maxsize=20_000)
def is_displaced_deed(said: str, old: str) -> bool:
    """Whether a verb of a caption does not describe the action of an old relation."""
    one, before = load_relations().analyse(said), load_relations().analyse(old)
    return one is not None and before is not None and bool(one.verb) and exclude(_deed(one), _deed(before))


def _deed(relation: Relation) -> States:
    return relation.states[-len(DEEDS) :]


@lru_cache(maxsize=100_000)
def is_same_place(said: str, new: str, old: str, thing: str) -> bool:
    """Whether a preposition that a caption has before a thing says the new place, and not the old one."""
    one, other, before = split_relation(said)[1], split_relation(new)[1], split_relation(old)[1]
    lexicon = load_relations()
    return bool(one and other) and lexicon.paraphrase(one, other, thing) and not lexicon.paraphrase(one, before, thing)


@lru_cache(maxsize=20_000)
def converses(key: str) -> frozenset[str]:
    """Return what is said the other way round where a relation may hold."""
    return frozenset(load_relations().converse(key))


def follows_from(new: Relation, old: Relation) -> bool:
    """Whether a relation allows every state that another does: "on" follows from "sit on"."""
    return all(states & ~wider == 0 for states, wider in zip(old.states, new.states, strict=True))


@lru_cache(maxsize=20_000)
def _verb(word: str) -> str:
    if not is_verb(word):
        return word
    tag = "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else "VBN"
    return lemmatize(word, tag)
