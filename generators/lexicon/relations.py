"""Relation lexicon: relation phrases of captions ("sit on top of", "next to", "hold") and their exclusions.

A phrase is a preposition, a verb with a preposition, or a verb with an object; its key has the verb as a lemma. Tables
say for prepositions and verbs which situations they allow (`states`). Two phrases exclude each other if they allow no
situation in common, which is symmetric by construction. A weak phrase is uninformative rather than false ("near a
table" for an object on it), so a stronger phrase does not refute it. For some nouns states coincide ("in a train", "on
a train") or do not exist: ``data/relation_nouns.tsv``.

Nouns are optional everywhere. Without them, phrases are compared for two solid things of which the first is alive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.lexicon.states import StateGroup, States, StateSpace
from pairwright.generators.lexicon.tables import grouped, read_rows
from pairwright.generators.lexicon.verbs import Frame, Verb, read_verbs

_CONTACT: Final = (
    "place top attached inside lodged worn held entry contains bears encircled"  # states of `prepositions.tsv`
)
UNKNOWN: Final = "thing"  # stands for an unknown subject


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """A preposition of one or more words.

    Attributes:
        weak: allowed states, including those in which the phrase is true but uninformative.
        synonym: shared name of synonymous prepositions.
        converses: phrases r for which "B r A" may say "A phrase B".
    """

    phrase: str
    states: States
    weak: States
    synonym: str
    converses: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """An analysed relation phrase.

    Attributes:
        verb: lemma, or empty.
        preposition: or empty.
        states: states that verb and preposition both allow.
        weak: the same with what `Preposition.weak` adds.
        synonym: of the verb and of the preposition.
        subject: "animate" or "thing" if the verb requires such a subject.
        frame: of the verb ("i", "t", "p"; see `Verb`), or empty.
        mutual: whether the verb may hold in both directions at once.
    """

    verb: str
    preposition: str
    states: States
    weak: States
    synonym: tuple[str, str]
    subject: str
    frame: Frame | None
    mutual: bool


@dataclass(frozen=True, slots=True, eq=False)  # one object for each class: a key of caches
class NounClass:
    """A class of nouns for which states coincide.

    Attributes:
        merged: states that coincide.
        dropped: states that do not exist.
        synonyms: groups of `Preposition.synonym` that are synonymous for these nouns.
    """

    name: str
    merged: tuple[StateGroup, ...]
    dropped: tuple[StateGroup, ...]
    synonyms: tuple[frozenset[str], ...]


class RelationLexicon:
    """Relation phrases and their features; see `load_relations`."""

    def __init__(self) -> None:
        prepositions, verbs, nouns = (read_rows(name) for name in ("prepositions", "verbs", "relation_nouns"))
        self.space = StateSpace([*prepositions, *verbs])
        self._prepositions = {
            row["phrase"]: Preposition(
                row["phrase"],
                self.space.parse(row),
                self.space.parse(row | {"place": row["weak"] or row["place"]}),
                row["same"] or row["phrase"],
                frozenset(filter(None, row["converse"].split("|"))),
            )
            for row in prepositions
        }
        self._verbs = read_verbs(verbs, self.space)
        self._classes = _read_classes(nouns, self.space)
        self._contact = self.space.groups(_CONTACT)
        self.analyse = lru_cache(maxsize=None)(self._analyse)
        self._weak_states = lru_cache(maxsize=64)(self._find_weak_states)
        self._excludes = lru_cache(maxsize=10_000)(self._find_excludes)

    def _analyse(self, key: str) -> Relation | None:
        """Return the analysis of a phrase, or None if its verb or its preposition is not in the tables."""
        lemma, _, rest = key.partition(" ")
        particle, _, phrase = rest.partition(" ")
        plain, transitive = self._verbs.get((lemma, "i")), self._verbs.get((lemma, "t"))
        if key in self._prepositions:
            return self._relation(key, None, self._prepositions[key])
        for chosen in (key, f"{lemma} {phrase}"):
            if (chosen, "p") in self._verbs:
                return self._relation(key, self._verbs[chosen, "p"], None)
        if plain and rest in self._prepositions:
            return self._relation(key, plain, self._prepositions[rest])
        if plain and particle in plain.particles and phrase in self._prepositions:
            return self._relation(key, plain, self._prepositions[phrase])
        for verb in (transitive, plain):
            if verb and (not rest or rest in verb.particles):
                return self._relation(key, verb, None)
        return None

    def _relation(self, key: str, verb: Verb | None, preposition: Preposition | None) -> Relation:
        states = weak = verb.states if verb else self.space.every
        if preposition:
            states, weak = (self.space.restricted(each, states) for each in (preposition.states, preposition.weak))
        chosen = verb.lemma.partition(" ")[2] if verb and verb.frame == "p" else ""
        return Relation(
            key.partition(" ")[0] if verb else "",
            preposition.phrase if preposition else chosen,
            states,
            weak,
            (verb.synonym if verb else "", preposition.synonym if preposition else ""),
            verb.subject if verb else "",
            verb.frame if verb else None,
            bool(verb and verb.mutual),
        )

    def noun_classes(self, subject: str, thing: str) -> tuple[NounClass, ...]:
        """Return the classes of a subject and an object, given by their lemmas; empty strings are unknown nouns."""
        found = self._classes.get(("object", _head(thing)), ())
        if not subject:
            return found
        return self._classes.get(("subject", _head(subject)), self._classes["subject", ""]) + found

    def exclusive(self, a: str, b: str, subject: str = "", thing: str = "") -> bool:
        """Return whether two phrases cannot both be true of the same two things in one picture; false for unknown phrases."""
        return self._excludes(a, b, self.noun_classes(subject, thing))

    def refutes(self, a: str, b: str, subject: str = "", thing: str = "") -> bool:
        """Return whether a phrase refutes another: they exclude each other, and the other is not merely weaker."""
        return self._excludes(a, b, self.noun_classes(subject, thing), weak=True)

    def _find_excludes(self, a: str, b: str, classes: tuple[NounClass, ...], *, weak: bool = False) -> bool:
        one, other = self.analyse(a), self.analyse(b)
        if one is None or other is None:
            return False
        states = [_applied(classes, each) for each in (one.states, other.weak if weak else other.states)]
        shared = self.space.shared(*states)
        return not shared.all()

    def refuted(self, key: str, keys: tuple[str, ...], classes: tuple[NounClass, ...]) -> npt.NDArray[np.bool_]:
        """Return whether a phrase `refutes` each of others, for nouns of some classes (`noun_classes`), shape (n,)."""
        relation = self.analyse(key)
        if relation is None:
            return np.zeros(len(keys), bool)
        known, weak = self._weak_states(keys)
        shared = self.space.shared(_applied(classes, weak), _applied(classes, relation.states))
        return known & ~shared.all(axis=1)

    def _find_weak_states(self, keys: tuple[str, ...]) -> tuple[npt.NDArray[np.bool_], States]:
        """Return whether each phrase is in the tables, shape (n,), and its weak states for nouns of no class."""
        relations = [*map(self.analyse, keys)]
        known = np.array([each is not None for each in relations], bool)
        weak = [self.space.every if each is None else each.weak for each in relations]
        return known, np.array(weak, bool).reshape(len(keys), -1)

    def paraphrase(self, a: str, b: str, thing: str = "") -> bool:
        """Return whether two phrases are synonymous for an object ("near" and "next to")."""
        one, other = self.analyse(a), self.analyse(b)
        if one is None or other is None or one.synonym[0] != other.synonym[0]:
            return False
        pair = {one.synonym[1], other.synonym[1]}
        return len(pair) == 1 or any(pair <= group for each in self.noun_classes("", thing) for group in each.synonyms)

    def is_mutual(self, key: str) -> bool:
        """Return whether a phrase may hold of two things in both directions: "near", "talk to"."""
        relation = self.analyse(key)
        if relation is not None and relation.mutual:
            return True
        return any(self.paraphrase(key, other) for other in self.converse(key))

    def keeps_apart(self, key: str) -> bool:
        """Return whether neither of two things is on, in or fastened to the other: "behind"; not "carry"."""
        relation = self.analyse(key)
        (dimension, mask), *_ = self._contact
        return relation is not None and not (relation.states[dimension] & mask).any()

    def converse(self, key: str) -> frozenset[str]:
        """Return the phrases r for which "B r A" may say "A key B"; of a verb with an object, its passive ("hold by")."""
        relation = self.analyse(key)
        if relation is not None and relation.frame == "t":
            return frozenset({f"{relation.verb} by"})
        known = self._prepositions.get(relation.preposition) if relation and relation.frame != "p" else None
        return known.converses if known else frozenset()

    @property
    def prepositions(self) -> frozenset[str]:
        """The prepositions of the table."""
        return frozenset(self._prepositions)

    def find_prepositions(self, lower: Sequence[str]) -> dict[int, int]:
        """Return start and end of the prepositions among tokens, from left to right, without overlap."""
        found, at = {}, 0
        while at < len(lower):
            length = self.match_preposition(lower, at)
            if length:
                found[at] = at + length
            at += length or 1
        return found

    def match_preposition(self, lower: Sequence[str], at: int) -> int:
        """Return the number of tokens of the longest preposition that starts at token ``at``, 0 if there is none."""
        for length in self._lengths.get(lower[at], ()) if at < len(lower) else ():
            if at + length <= len(lower) and " ".join(lower[at : at + length]) in self._prepositions:
                return length
        return 0

    @cached_property
    def _lengths(self) -> dict[str, tuple[int, ...]]:
        """Numbers of tokens of the prepositions that start with a word, the longest first."""
        return grouped(sorted({(words[0], len(words)) for words in map(str.split, self._prepositions)}, reverse=True))


@lru_cache(maxsize=1)
def load_relations() -> RelationLexicon:
    """Return the lexicon of relation phrases."""
    return RelationLexicon()


def _read_classes(rows: Iterable[dict[str, str]], space: StateSpace) -> dict[tuple[str, str], tuple[NounClass, ...]]:
    """Return the classes by role and noun; those of the subject "" are for nouns of no other class."""
    found = list[tuple[tuple[str, str], NounClass]]()
    for row in rows:
        groups = tuple(frozenset(group.split()) for group in row["same"].split("|") if group.strip())
        each = NounClass(row["class"], space.groups(row["merge"]), space.groups(row["drop"]), groups)
        found += [((row["role"], noun), each) for noun in row["nouns"].split() or [""]]
    return grouped(found)


def _head(noun: str) -> str:
    return noun.rpartition(" ")[2]


def _applied(classes: Iterable[NounClass], states: States) -> States:
    """Return states for nouns of some classes; a phrase that would lose all states of a dimension keeps them."""
    found = states.copy()
    for each in classes:
        for dimension, mask in each.dropped:
            left = found[..., dimension] & ~mask
            found[..., dimension] = np.where(left.any(axis=-1, keepdims=True), left, found[..., dimension])
        for dimension, mask in each.merged:
            here = found[..., dimension]
            found[..., dimension] = here | (mask & (here & mask).any(axis=-1, keepdims=True))
    return found
