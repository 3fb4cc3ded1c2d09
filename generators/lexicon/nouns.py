"""Nouns of captions: their classes and features, which exclude each other, and which may replace which.

WordNet's main sense gives the class of a noun (``noun_classes.tsv``); ``nouns.tsv`` corrects it and adds features.
Two nouns *exclude* each other if a thing that a caption calls the one is not called the other: not if one is a kind or a
part of the other, nor if captioners use both for the same thing (``noun_groups.tsv``, ``noun_together.tsv``). Persons exclude each other by sex
and age only. A noun may *replace* another that it excludes and that captions use in the same places: both relations are
symmetric. What fits the caption at hand is for others to say.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, NamedTuple

from pairwright.generators.lexicon.protocols import Thesaurus
from pairwright.generators.lexicon.tables import read_rows

_ALIVE: Final = frozenset({"person", "animal"})
_SEXES: Final = frozenset({"male", "female"})
_GROWN: Final = frozenset({"baby", "adult"})  # mutually exclusive; a child may be a boy to one and a man to another


@dataclass(frozen=True, slots=True)
class NounFeatures:
    """A row of ``nouns.tsv``: classes in place of WordNet's, further places, and flags."""

    classes: tuple[str, ...] = ()
    places: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NounProfile:
    """What is known of a noun.

    Attributes:
        classes: broad classes, with their parents.
        places: usages of captions (``noun_classes.tsv``).
        flags: features (``nouns.tsv``).
        senses: WordNet's relevant senses.
        kinds: the senses and all above them.
        called: the noun, of a compound its spelling as one word, and its last word unless ``noun_groups.tsv`` has it.
        apart: nouns that it excludes whatever their marks, but for senses.
        marks: senses, and kinds of which all are taken for each other (``noun_near_kinds.tsv``); the noun, of a compound
            its words and its spelling as one word; its classes ("@building").
        also: the marks of nouns that may be said of the same thing: kinds; what captioners use for the same, and what may
            be said in the same place.
    """

    classes: frozenset[str]
    places: frozenset[str]
    flags: frozenset[str]
    senses: frozenset[int]
    kinds: frozenset[int]
    called: frozenset[str]
    apart: frozenset[str]
    marks: frozenset[str | int]
    also: frozenset[str | int]


@dataclass(frozen=True, slots=True)
class _NounClass:
    above: frozenset[str]
    places: frozenset[str]


class _Index(NamedTuple):
    """The profiles of a vocabulary, and their positions by what they have."""

    profiles: list[NounProfile]
    uses: dict[str, set[int]]
    marks: dict[str | int, set[int]]
    also: dict[str | int, set[int]]
    called: dict[str, set[int]]
    persons: set[int]
    frames: set[int]


def _union(table: Mapping[Any, set[int]], names: Iterable[Any]) -> set[int]:
    """Return the positions under any of some names."""
    return set[int]().union(*(table[name] for name in names if name in table))


def cell_words(cell: str) -> tuple[str, ...]:
    """Return the words and phrases of a cell, which are parted by commas."""
    return tuple(word.strip() for word in cell.split(",") if word.strip())


@lru_cache(maxsize=1)
def noun_features() -> dict[str, NounFeatures]:
    """Return the features of each noun of the table."""
    return {
        row["noun"]: NounFeatures(
            cell_words(row["classes"]), frozenset(cell_words(row["places"])), frozenset(row["flags"].split())
        )
        for row in read_rows("nouns")
    }


@lru_cache(maxsize=64)
def flagged(flag: str) -> frozenset[str]:
    """Return the nouns with a feature: "frame", "mass", "worn", ..."""
    return frozenset(noun for noun, features in noun_features().items() if flag in features.flags)


@lru_cache(maxsize=8)
def nouns_of_class(name: str) -> frozenset[str]:
    """Return the nouns to which the table itself gives a class, "person" or "shape"."""
    return frozenset(noun for noun, features in noun_features().items() if name in features.classes)


@lru_cache(maxsize=2)
def gendered_words(gender: str) -> frozenset[str]:
    """Return the words, as written, that mark a person as "male" or "female"."""
    return frozenset(row["word"] for row in read_rows("gendered_words") if row["gender"] == gender)


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    reworded = (f"{row['word']}, {row['others']}" for row in read_rows("rewordings") if row["pos"] == "noun")
    for cell in (*(row["words"] for row in read_rows("noun_groups")), *reworded):
        words = frozenset(cell_words(cell))
        groups |= {word: groups.get(word, frozenset()) | words for word in words}
    return groups


def loosely_same(noun: str) -> frozenset[str]:
    """Return the nouns that captioners use for the same thing, itself among them."""
    return _groups().get(noun, frozenset()) | {noun}


@lru_cache(maxsize=1)
def _apart() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for row in read_rows("noun_apart"):
        first, *others = nouns = cell_words(row["nouns"])
        for one, other in combinations(nouns, 2) if row["mutual"] else ((first, other) for other in others):
            table[one] = table.get(one, frozenset()) | {other}
            table[other] = table.get(other, frozenset()) | {one}
    return table


@lru_cache(maxsize=1)
def _together() -> dict[str, frozenset[str]]:
    """Return, for each noun or class, those of which both may be said in one place."""
    table: dict[str, frozenset[str]] = {}
    for row in read_rows("noun_together"):
        nouns, others = frozenset(cell_words(row["nouns"])), frozenset(cell_words(row["others"]))
        for these, those in ((nouns, others), (others, nouns)):
            table |= {each: table.get(each, frozenset()) | those for each in these}
    return table


@lru_cache(maxsize=1)
def _classes() -> tuple[dict[str, _NounClass], dict[str, str]]:
    """Return the classes by name, and by the WordNet lemmas below which they are."""
    classes: dict[str, _NounClass] = {}
    by_kind: dict[str, str] = {}
    for row in read_rows("noun_classes"):
        above = frozenset({row["class"], *cell_words(row["parents"])})
        classes[row["class"]] = _NounClass(above, frozenset(cell_words(row["places"])))
        for kind in cell_words(row["kinds"]):
            by_kind.setdefault(kind, row["class"])
    return classes, by_kind


class NounLexicon:
    """Classes, features and replacements of nouns: lemmas in lower case, compounds with spaces ("fire hydrant").

    Args:
        thesaurus: WordNet.
    """

    def __init__(self, thesaurus: Thesaurus) -> None:
        self._thesaurus = thesaurus
        near = (self._meant(row["kind"]) for row in read_rows("noun_near_kinds"))
        self._near_kinds = frozenset[int]().union(*near)
        self.profile = lru_cache(maxsize=20_000)(self._find_profile)
        self._by_use = lru_cache(maxsize=4)(self._index)
        self._substitutes = lru_cache(maxsize=20_000)(self._find_substitutes)

    def __reduce__(self) -> tuple[object, tuple[Thesaurus]]:
        """Pickle without the caches."""
        return NounLexicon, (self._thesaurus,)

    def classes(self, noun: str) -> frozenset[str]:
        """Return the broad classes of a noun; none of what is no thing."""
        return self.profile(noun).classes

    def has_flag(self, noun: str, flag: str) -> bool:
        """Whether a noun has a feature of ``nouns.tsv``."""
        return flag in self.profile(noun).flags

    def is_known(self, noun: str) -> bool:
        """Whether the tables or WordNet have a noun, so that it names one thing ("fire hydrant", and not "city bus")."""
        return noun in noun_features() or bool(self._meant(noun))

    def is_person(self, noun: str) -> bool:
        """Whether a noun names a person."""
        return "person" in self.profile(noun).classes

    def is_alive(self, noun: str) -> bool:
        """Whether a noun names a person or an animal."""
        return not _ALIVE.isdisjoint(self.profile(noun).classes)

    def is_frame(self, noun: str) -> bool:
        """Whether a noun speaks of the picture, of parts or amounts ("close up", "side", "group"): never edited."""
        return self.has_flag(noun, "frame")

    def exclusive(self, one: str, other: str) -> bool:
        """Whether a thing called ``one`` is not called ``other``; symmetric."""
        return one != other and _exclude_each_other(self.profile(one), self.profile(other))

    def substitutes(self, noun: str, vocabulary: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a vocabulary that may replace a noun, in its order.

        They exclude the noun, and captions use them in the same places. Symmetric: ``b`` is among the substitutes of
        ``a`` if and only if ``a`` is among those of ``b``.
        """
        return self._substitutes(noun, tuple(vocabulary))

    def _find_substitutes(self, noun: str, vocabulary: tuple[str, ...]) -> tuple[str, ...]:
        profile, index = self.profile(noun), self._by_use(vocabulary)
        if "frame" in profile.flags:
            return ()
        found = _union(index.uses, profile.classes | profile.places) - index.frames
        related = _union(index.marks, profile.also) | _union(index.also, profile.marks)
        asked = _union(index.called, profile.apart)  # which others are persons or kept apart decides more
        asked |= index.persons if "person" in profile.classes else set()
        asked = {at for at in asked & found if _exclude_each_other(profile, index.profiles[at])} | (
            found - asked - related
        )
        return tuple(vocabulary[at] for at in sorted(asked) if vocabulary[at] != noun)

    def _index(self, vocabulary: tuple[str, ...]) -> "_Index":
        index = _Index([self.profile(noun) for noun in vocabulary], {}, {}, {}, {}, set(), set())
        for at, profile in enumerate(index.profiles):
            columns: tuple[tuple[dict[Any, set[int]], Iterable[Any]], ...] = (
                (index.uses, profile.classes | profile.places),
                (index.marks, profile.marks),
                (index.also, profile.also),
                (index.called, profile.called),
            )
            for table, names in columns:
                for name in names:
                    table.setdefault(name, set()).add(at)
            if "person" in profile.classes:
                index.persons.add(at)
            if "frame" in profile.flags:
                index.frames.add(at)
        return index

    def _find_profile(self, noun: str) -> NounProfile:
        joined = noun.replace(" ", "")
        if joined != noun and self.is_known(joined) and not self.is_known(noun):  # "surf board"
            same = self.profile(joined)
            return replace(same, marks=same.marks.union({noun}, noun.split()), also=same.also | {noun})
        head = noun.rpartition(" ")[2]
        called = frozenset({noun, joined} if noun in _groups() else {noun, head, joined})
        features = noun_features().get(noun, NounFeatures())
        class_names = features.classes or self._class_of(noun)
        if head != noun and not class_names and not self._meant(noun):  # a compound that no dictionary has
            above = self.profile(head)
            classes, places, flags = above.classes, above.places, above.flags
            senses, kinds = above.senses, above.kinds
        else:
            known = [_classes()[0][name] for name in class_names]
            classes = frozenset[str]().union(*(each.above for each in known))
            places, flags = features.places.union(*(each.places for each in known)), features.flags
            senses, kinds = self._thesaurus.sense_closure(noun, "NOUN")
        marks = called.union(noun.split(), (f"@{name}" for name in classes))
        also = {other for each in called | {head} for other in loosely_same(each)}
        also |= {other for mark in marks for other in _together().get(mark, ())}
        apart = frozenset(other for each in called for other in _apart().get(each, ())).difference(noun.split())
        near = kinds & self._near_kinds
        return NounProfile(classes, places, flags, senses, kinds, called, apart, senses | marks | near, kinds | also)

    def _meant(self, noun: str) -> frozenset[int]:
        return self._thesaurus.sense_closure(noun, "NOUN")[0]

    def _class_of(self, noun: str) -> tuple[str, ...]:
        by_kind = _classes()[1]
        found = next((kind for kind in self._thesaurus.hypernym_path(noun, "NOUN") if kind in by_kind), None)
        return (by_kind[found],) if found is not None else ()


def _are_other_persons(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether flags of two persons exclude each other: the sexes, and a baby and an adult."""
    return any(len(one & kind) == len(other & kind) == 1 and one & kind != other & kind for kind in (_SEXES, _GROWN))


def _exclude_each_other(one: NounProfile, other: NounProfile) -> bool:
    """Whether a thing of the one profile is not called by the noun of the other."""
    apart = not (one.apart.isdisjoint(other.called) or other.apart.isdisjoint(one.called))
    if not apart and ("frame" in one.flags or "frame" in other.flags):
        return False
    if apart or ("person" in one.classes and "person" in other.classes):
        related = not (one.kinds.isdisjoint(other.senses) and other.kinds.isdisjoint(one.senses))
        return not related and (apart or _are_other_persons(one.flags, other.flags))
    return one.also.isdisjoint(other.marks) and other.also.isdisjoint(one.marks)
