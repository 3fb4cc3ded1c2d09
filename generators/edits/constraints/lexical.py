"""Comparison of words and relation phrases by the lexicon."""

from functools import lru_cache
from typing import Final

from pairwright.generators.captions.image_words import in_both_numbers
from pairwright.generators.language.lemmas import is_verb, lemmatize
from pairwright.generators.lexicon.attributes import neighbours, opposites, other_concepts
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.lexicon.relations import load_relations
from pairwright.generators.lexicon.states import ACTION_DIMENSIONS
from pairwright.generators.lexicon.synonyms import rewordings
from pairwright.generators.lexicon.tables import read_rows

ONE_SENSE: Final = frozenset(row["noun"] for row in read_rows("noun_senses"))
AUXILIARIES: Final = frozenset({"be", "have"})


def reworded(one: str, other: str, pos: str, noun: str = "") -> bool:
    """Return whether a word or phrase entails another, so that replacing it keeps a caption true.

    The part of speech is "noun", "adjective" or "relation"; the noun is the lemma of the one that an adjective describes,
    or of the object of a relation.
    """
    if one == other or other in rewordings(one, pos, noun) or one in rewordings(other, pos, noun):
        return True
    return other in rewordings(one, pos, noun, "entailed_rewordings")


def plain_relation(key: str) -> str:
    """Return a relation without auxiliaries."""
    return " ".join(word for word in key.split() if word not in AUXILIARIES)


@lru_cache(maxsize=20_000)
def are_opposed(one: str, other: str, *, distinguished: bool = False) -> bool:
    """Return whether two attributes exclude each other for some noun: opposites, or different concepts of a class.

    They are ``distinguished`` if one captioner used both, who distinguishes even what viewers confuse.
    """
    confused = {} if distinguished else neighbours(distinguished=False)
    return frozenset((one, other)) in opposites() or any(
        pair not in confused or confused[pair].beside for _, pair in other_concepts(one, other)
    )


@lru_cache(maxsize=20_000)
def same_forms(noun: str) -> frozenset[str]:
    """Return a noun and its synonyms, each in both numbers."""
    return in_both_numbers({noun, *rewordings(noun, "noun")})


@lru_cache(maxsize=20_000)
def names_of(noun: str) -> frozenset[str]:
    """Return the words that captions use for a noun, in both numbers; of a compound, also those for its head."""
    return in_both_numbers(loosely_same(noun) | loosely_same(noun.rpartition(" ")[2]))


@lru_cache(maxsize=20_000)
def split_relation(key: str) -> tuple[str, str]:
    """Return a relation's verb, as a lemma, and its preposition; either may be empty."""
    known = load_relations().analyse(key)
    if known is not None:
        return known.verb, known.preposition
    words = key.split()
    length = load_relations().match_preposition(words, 0)
    return ("", key) if length == len(words) else (words[0], " ".join(words[1:]))


@lru_cache(maxsize=10_000)
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


def supports_relation(stated: str, new: str, old: str, subject: str, thing: str) -> bool:
    """Return whether a stated relation of two things supports a new one rather than the one that it replaces."""
    if stated in {new, old}:
        return stated == new
    lexicon = load_relations()
    if lexicon.analyse(new) is None or lexicon.refutes(stated, new, subject, thing):
        return False
    return lexicon.paraphrase(stated, new, thing) or lexicon.exclusive(stated, old, subject, thing)


@lru_cache(maxsize=20_000)
def verbs_in(line: tuple[str, ...]) -> frozenset[str]:
    """Return the verbs of a caption as relation phrases without preposition."""
    lexicon = load_relations()
    verbs = {_verb(word) for word in line if not lexicon.match_preposition((word,), 0)}
    return frozenset(verb for verb in verbs if lexicon.analyse(verb) is not None)


@lru_cache(maxsize=10_000)
def may_be_same_action(stated: str, new: str, old: str) -> bool:
    """Return whether a verb of a caption may describe the action of a new relation, and not that of the old one."""
    one, other, before = map(load_relations().analyse, (stated, new, old))
    if not (one and other and before and one.verb and other.verb):
        return False
    as_old, as_new = (
        load_relations().space.shared(one.states, each.states)[ACTION_DIMENSIONS].all() for each in (before, other)
    )
    return bool(as_new and not as_old)


@lru_cache(maxsize=20_000)
def _verb(word: str) -> str:
    if not is_verb(word):
        return word
    tag = "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else "VBN"
    return lemmatize(word, tag)
