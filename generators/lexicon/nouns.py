"""Noun lexicon: classes and features of nouns, their exclusions, and their substitutes.

The main sense in WordNet gives the class of a noun (``noun_classes.tsv``); ``nouns.tsv`` corrects it and adds features.
Two nouns *exclude* each other if they cannot name the same thing: not if one is a hyponym or a part of the other, nor
if captioners use both for the same thing (``noun_groups.tsv``, ``noun_compatibility.tsv``). Persons exclude each other
by sex and age only. A noun may *replace* another that it excludes and that shares a class or usage; both relations are
symmetric. The fit to a context is left to the cloze model and constraints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from typing import Final

from pairwright.generators.lexicon.tables import cell_words, grouped, read_rows, united
from pairwright.generators.lexicon.thesaurus import Thesaurus

_ALIVE: Final = frozenset({"person", "animal"})
_SEXES: Final = frozenset({"male", "female"})
_AGES: Final = frozenset({"baby", "adult"})  # mutually exclusive; a child may be a boy to one and a man to another


@dataclass(frozen=True, slots=True)
class NounFeatures:
    """A row of ``nouns.tsv``: classes in place of WordNet's, further usages, and flags."""

    classes: tuple[str, ...] = ()
    usages: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NounProfile:
    """The properties of a noun that decide on exclusion and substitution.

    Attributes:
        classes: broad classes, with their parents.
        usages: semantic roles in captions (``noun_classes.tsv``).
        flags: features (``nouns.tsv``).
        senses: relevant senses in WordNet.
        kinds: the senses and all their hypernyms.
        names: the noun, of a compound its spelling as one word, and its last word unless ``noun_groups.tsv`` has it.
        exclusions: nouns of ``noun_exclusions.tsv``, which it excludes unless their senses are related.
        identifiers: senses; the noun, of a compound its words and its spelling as one word; its classes ("@building").
        compatible: identifiers of nouns that may name the same thing: hypernyms, loose synonyms, and nouns of
            ``noun_compatibility.tsv``.
    """

    classes: frozenset[str]
    usages: frozenset[str]
    flags: frozenset[str]
    senses: frozenset[int]
    kinds: frozenset[int]
    names: frozenset[str]
    exclusions: frozenset[str]
    identifiers: frozenset[str | int]
    compatible: frozenset[str | int]


@lru_cache(maxsize=1)
def noun_features() -> dict[str, NounFeatures]:
    """Return the features of each noun of the table."""
    return {
        row["noun"]: NounFeatures(
            cell_words(row["classes"]), frozenset(cell_words(row["usages"])), frozenset(row["flags"].split())
        )
        for row in read_rows("nouns")
    }


@lru_cache(maxsize=64)
def flagged(flag: str) -> frozenset[str]:
    """Return the nouns with a feature: "non_object", "mass", "worn", ..."""
    return frozenset(noun for noun, features in noun_features().items() if flag in features.flags)


@lru_cache(maxsize=8)
def nouns_of_class(name: str) -> frozenset[str]:
    """Return the nouns with a class in the table, "person" or "shape"."""
    return frozenset(noun for noun, features in noun_features().items() if name in features.classes)


@lru_cache(maxsize=2)
def gendered_words(gender: str) -> frozenset[str]:
    """Return the words, as written, that mark a person as "male" or "female"."""
    return frozenset(row["word"] for row in read_rows("gendered_words") if row["gender"] == gender)


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    reworded = (f"{row['word']}, {row['others']}" for row in read_rows("rewordings") if row["pos"] == "noun")
    cells = (*(row["words"] for row in read_rows("noun_groups")), *reworded)
    return united((word, words) for words in map(cell_words, cells) for word in words)


def loosely_same(noun: str) -> frozenset[str]:
    """Return the nouns that captioners use for the same thing, itself among them."""
    return _groups().get(noun, frozenset()) | {noun}


@lru_cache(maxsize=1)
def _exclusions() -> dict[str, frozenset[str]]:
    rows = ((cell_words(row["nouns"]), row["mutual"]) for row in read_rows("noun_exclusions"))
    pairs = [
        pair for nouns, mutual in rows for pair in (combinations(nouns, 2) if mutual else product(nouns[:1], nouns[1:]))
    ]
    return united((one, (other,)) for pair in pairs for one, other in (pair, pair[::-1]))


@lru_cache(maxsize=1)
def _compatible_nouns() -> dict[str, frozenset[str]]:
    """Return, for each noun or class, those that may hold in the same slot."""
    rows = ((cell_words(row["nouns"]), cell_words(row["others"])) for row in read_rows("noun_compatibility"))
    return united((each, those) for row in rows for these, those in (row, row[::-1]) for each in these)


@lru_cache(maxsize=1)
def _classes() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return each class with its parents, and its usages."""
    return {
        row["class"]: ((row["class"], *cell_words(row["parents"])), cell_words(row["usages"]))
        for row in read_rows("noun_classes")
    }


@lru_cache(maxsize=1)
def _class_by_kind() -> dict[str, str]:
    """Return the classes by the WordNet lemmas below which they are; the first one counts."""
    rows = reversed(read_rows("noun_classes"))
    return {kind: row["class"] for row in rows for kind in cell_words(row["kinds"])}


class NounLexicon:
    """Classes, features and replacements of nouns: lemmas in lower case, compounds with spaces ("fire hydrant")."""

    def __init__(self, thesaurus: Thesaurus) -> None:
        self._thesaurus = thesaurus
        self.profile = lru_cache(maxsize=20_000)(self._find_profile)
        self._by_role = lru_cache(maxsize=8)(self._find_by_role)

    def classes(self, noun: str) -> frozenset[str]:
        """Return the broad classes of a noun; empty if it names no object."""
        return self.profile(noun).classes

    def is_known(self, noun: str) -> bool:
        """Return whether the tables or WordNet list a noun ("fire hydrant", not "city bus")."""
        return noun in noun_features() or bool(self._main_senses(noun))

    def is_person(self, noun: str) -> bool:
        """Return whether a noun names a person."""
        return "person" in self.profile(noun).classes

    def is_alive(self, noun: str) -> bool:
        """Return whether a noun names a person or an animal."""
        return are_alive(self.profile(noun).classes)

    def exclusive(self, one: str, other: str) -> bool:
        """Return whether two nouns cannot name the same thing; symmetric."""
        return one != other and _exclude_each_other(self.profile(one), self.profile(other))

    def substitutes(self, noun: str, vocabulary: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a vocabulary that may replace a noun, in its order.

        They exclude the noun, and share a class or usage with it. Symmetric: ``b`` is among the substitutes of
        ``a`` if and only if ``a`` is among those of ``b``.
        """
        own, by_role = self.profile(noun), self._by_role(tuple(vocabulary))
        if "non_object" in own.flags:
            return ()
        sharing = set[int]().union(*(by_role.get(role, ()) for role in own.classes | own.usages))
        others = ((vocabulary[at], self.profile(vocabulary[at])) for at in sorted(sharing))
        return tuple(other for other, profile in others if other != noun and _exclude_each_other(own, profile))

    def _find_by_role(self, vocabulary: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Return the places of the objects of a vocabulary by class and usage."""
        profiles = enumerate(map(self.profile, vocabulary))
        objects = [(at, each) for at, each in profiles if "non_object" not in each.flags]
        return grouped((role, at) for at, each in objects for role in each.classes | each.usages)

    def _find_profile(self, noun: str) -> NounProfile:
        joined = noun.replace(" ", "")
        if joined != noun and self.is_known(joined) and not self.is_known(noun):  # "surf board"
            same = self.profile(joined)
            return replace(
                same, identifiers=same.identifiers.union({noun}, noun.split()), compatible=same.compatible | {noun}
            )
        head = noun.rpartition(" ")[2]
        names = frozenset({noun, joined} if noun in _groups() else {noun, head, joined})
        features = noun_features().get(noun, NounFeatures())
        class_names = features.classes or self._class_of(noun)
        if head != noun and not class_names and not self._main_senses(noun):  # a compound that is in no dictionary
            above = self.profile(head)
            classes, usages, flags = above.classes, above.usages, above.flags
            senses, kinds = above.senses, above.kinds
        else:
            known = [_classes()[name] for name in class_names]
            classes = frozenset[str]().union(*(above for above, _ in known))
            usages, flags = features.usages.union(*(usages for _, usages in known)), features.flags
            senses, kinds = self._thesaurus.sense_closure(noun, "NOUN")
        identifiers = names.union(noun.split(), (f"@{name}" for name in classes))
        compatible = {other for each in names | {head} for other in loosely_same(each)}
        compatible |= {other for mark in identifiers for other in _compatible_nouns().get(mark, ())}
        exclusions = frozenset(other for each in names for other in _exclusions().get(each, ())) - {*noun.split()}
        return NounProfile(
            classes, usages, flags, senses, kinds, names, exclusions, senses | identifiers, kinds | compatible
        )

    def _main_senses(self, noun: str) -> frozenset[int]:
        return self._thesaurus.sense_closure(noun, "NOUN")[0]

    def _class_of(self, noun: str) -> tuple[str, ...]:
        path, by_kind = self._thesaurus.hypernym_path(noun, "NOUN"), _class_by_kind()
        return tuple(by_kind[kind] for kind in path if kind in by_kind)[:1]


def are_alive(classes: frozenset[str]) -> bool:
    """Return whether the classes of a noun are those of a person or an animal."""
    return not _ALIVE.isdisjoint(classes)


def _are_exclusive_persons(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two persons exclude each other by their flags: the sexes, and baby and adult."""
    return any(len(one & kind) == len(other & kind) == 1 and one & kind != other & kind for kind in (_SEXES, _AGES))


def _exclude_each_other(one: NounProfile, other: NounProfile) -> bool:
    """Return whether the nouns of two profiles cannot name the same thing."""
    listed = not (one.exclusions.isdisjoint(other.names) or other.exclusions.isdisjoint(one.names))
    if not listed and ("non_object" in one.flags or "non_object" in other.flags):
        return False
    if listed or ("person" in one.classes and "person" in other.classes):
        related = not (one.kinds.isdisjoint(other.senses) and other.kinds.isdisjoint(one.senses))
        return not related and (listed or _are_exclusive_persons(one.flags, other.flags))
    return one.compatible.isdisjoint(other.identifiers) and other.compatible.isdisjoint(one.identifiers)
