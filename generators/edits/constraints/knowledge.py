"""Cached lookups of constraints in WordNet and the pool statistics.

Pool statistics count which words stand next to each other (adjacency), and prepositional links: noun or verb,
preposition, governed noun.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.image_words import in_both_numbers
from pairwright.generators.edits.constraints.lexical import same_forms
from pairwright.generators.language.lemmas import singular_of
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.lexicon.attributes import AttributeLexicon
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import NounLexicon, flagged, loosely_same
from pairwright.generators.lexicon.relations import load_relations
from pairwright.generators.lexicon.synonyms import reword_each_other
from pairwright.generators.lexicon.tables import grouped

MIN_COUNT: Final = 2  # captions of the pool that attest two words together
MIN_COOCCURRENCE_SHARE: Final = 0.05  # share of captions with a noun that have another, from which both are often shown
MIN_LIFT: Final = 5.0  # observed over expected co-occurrences from which two things belong to one scene
EXPECTED_COOCCURRENCES: Final = 1.0  # captions expected by chance from which two words that never co-occur do not fit
_SHORT: Final = 3  # minimum letters of a hyponym that is not a symbol ("Au")
_NO_NAMES: Final = frozenset[str]()
_MANY_KINDS: Final = 400  # hyponyms of a noun beyond which only those of the pool are used


@dataclass(frozen=True, slots=True)
class Names:
    """Words and phrases that mention a thing.

    Attributes:
        singulars: words that also match in the plural: lemmatizing the few words of a caption is faster than inflecting
            all hyponyms of a noun.
        exact: words that match as written only.
        never: forms that do not match, whatever their singular is.
        phrases: the multi-word names, by their last word.
        words: all names, and the last words of the phrases.
    """

    singulars: frozenset[str]
    exact: frozenset[str]
    never: frozenset[str]
    phrases: dict[str, tuple[str, ...]]
    words: frozenset[str]

    def found_in(self, words: frozenset[str], text: str) -> frozenset[str]:
        """Return the names in a text; ``words`` are its words, which single spaces separate in ``text``."""
        forms = by_singular(words)
        if self.words.isdisjoint(words) and self.words.isdisjoint(forms):  # as nearly always
            return _NO_NAMES
        found = set(words & self.singulars)
        for one in self.singulars.intersection(forms):  # visits the few words of the text
            found.update(forms[one])
        lasts = self.phrases.keys()
        for last in (lasts & words) | (lasts & forms.keys()):
            for form in {last, *forms.get(last, ())}:
                variants = (phrase.removesuffix(last) + form for phrase in self.phrases[last])
                found.update(phrase for phrase in variants if f" {phrase} " in text)
        return frozenset(found - self.never | (words & self.exact))


class Knowledge:
    """Cached lookups in WordNet and the pool statistics."""

    def __init__(self, thesaurus: WordNet, pool: PoolStatistics) -> None:
        self.thesaurus, self.pool = thesaurus, pool
        self.nouns = NounLexicon(thesaurus)
        self.attributes = AttributeLexicon(thesaurus, self.nouns)
        self.relations = load_relations()
        self._kinds = lru_cache(maxsize=10_000)(self._find_kinds)
        self.related = lru_cache(maxsize=100_000)(thesaurus.related)
        self.mentions = lru_cache(maxsize=100_000)(self._find_mentions)
        self.own_mentions = lru_cache(maxsize=100_000)(self._find_own_mentions)
        self.share_without_article = lru_cache(maxsize=20_000)(self._find_share)
        self.captions_with = lru_cache(maxsize=100_000)(self._find_captions_with)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the caches."""
        return Knowledge, (self.thesaurus, self.pool)

    def expects_cooccurrence(self, one: str, other: str) -> bool:
        """Return whether two independent lemmas would co-occur in `EXPECTED_COOCCURRENCES` captions of the pool."""
        return self.captions_with(one) * self.captions_with(other) >= EXPECTED_COOCCURRENCES * self.pool.captions

    def often_cooccur(self, one: str, other: str) -> bool:
        """Return whether images of one thing often show another one, perhaps without a mention."""
        both = self.pool.cooccurrence(one, other)
        if both < MIN_COUNT:
            return False
        chance = self.captions_with(one) * self.captions_with(other) / max(self.pool.captions, 1)
        return both >= MIN_COOCCURRENCE_SHARE * self.captions_with(one) and both >= MIN_LIFT * chance

    def _find_captions_with(self, word: str) -> int:
        return max(self.pool.cooccurrence(word, word), self.pool.form_frequency(word))

    def _find_share(self, noun: str) -> float:
        """Return the share of uses of a singular, after words such as "a" or "some", without an article."""
        bare, one = (sum(self.pool.bigram(word, noun) for word in words_with(each)) for each in ("before_mass", "one"))
        return bare / (bare + one + 1)

    def _find_mentions(self, noun: str) -> Names:
        """Return the names by which another caption may mention a noun; of a compound, its head too."""
        head = noun.rpartition(" ")[2]
        return _names(self._kinds(noun) | {noun, head})

    def _find_own_mentions(self, noun: str, form: str) -> Names:
        """Return the names by which the edited caption itself mentions a noun: one caption uses different words for two things.

        An addition distinguishes even what different captioners confuse ("a skateboard and a scooter"), unless one is a
        hyponym of the other ("two boats", "a kayak").
        """
        wide = loosely_same(noun) | loosely_same(noun.rpartition(" ")[2])
        wide = frozenset(word for word in wide if word != noun and not self._may_mean(noun, word, form))
        never = in_both_numbers(wide)
        return _names(self._kinds(noun) - never, same_forms(noun), never)

    def _may_mean(self, noun: str, word: str, form: str) -> bool:
        """Return whether captioners use a word for the same thing as a noun without distinguishing them."""
        mixed_up = reword_each_other(noun, word) and not self.nouns.exclusive(noun, word)
        return mixed_up and (form != "add" or self.related(noun, word, "NOUN"))

    def _find_kinds(self, noun: str) -> frozenset[str]:
        """Return all words that imply a noun: synonyms, loosely same words and hyponyms."""
        kinds = [*self.thesaurus.hyponyms(noun, "NOUN")]
        if len(kinds) > _MANY_KINDS:
            kinds = [word for word in kinds if self.pool.frequency(word, "NOUN")]
        kinds = [word for word in kinds if len(word) >= _SHORT or self._is_noun(word)]
        return frozenset(
            {noun, *self.thesaurus.synonyms(noun, "NOUN"), *loosely_same(noun), *kinds} - flagged("non_object")
        )

    def _is_noun(self, word: str) -> bool:
        """Return whether captions use a word mostly as a noun: "ox", not "in" (which WordNet lists as a metal)."""
        return 2 * self.pool.frequency(word, "NOUN") > self.pool.form_frequency(word)


def _names(
    singulars: frozenset[str], exact: frozenset[str] = frozenset(), never: frozenset[str] = frozenset()
) -> Names:
    phrases = grouped((name.rpartition(" ")[2], name) for name in singulars | exact if " " in name)
    return Names(singulars, exact, never, phrases, singulars.union(exact, phrases))


@lru_cache(maxsize=1_000)  # a caption is compared with each of its edits
def by_singular(words: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return words by their singulars."""
    return grouped((singular_of(word), word) for word in words)
