"""What constraints ask WordNet and the caption pool, remembered.

Pool statistics answer which words stand next to each other (adjacency), and what captions put where (links of a noun or
verb, a preposition and a noun).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.edits.constraints.lexical import same_forms
from pairwright.generators.language.lemmas import singular_of
from pairwright.generators.lexicon.attributes import AttributeLexicon
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import NounLexicon, flagged, loosely_same
from pairwright.generators.lexicon.protocols import Pool, Thesaurus
from pairwright.generators.lexicon.relations import load_relations
from pairwright.generators.lexicon.synonyms import reword_each_other

SEEN: Final = 2  # captions of the pool that show that two words go together
LINKED: Final = 0.1  # captions in which chance would have two words, from which such words are known not to be linked
BESIDE: Final = 0.05  # of the captions with a noun, those with another one, from which images often show both
MORE_THAN_CHANCE: Final = 5.0  # factor by which chance is exceeded where two things belong to one scene
TOGETHER: Final = 1.0  # the same, from which words are known not to be together
FEWEST_PLURALS: Final = 0.01  # of the captions with a noun, those that have its plural, if there is one
FEW_PLURALS: Final = 0.1  # the same, of a noun that also stands without an article
MASS: Final = 0.3  # share of singulars without an article, from which a noun needs none
ALWAYS_MASS: Final = 0.9  # the same, from which it hardly has one
SLACK: Final = 0.05  # plausibility by which a word may fall short
KNOWN: Final = 20  # links to a noun, from which what is not among them tells something
_SHORT: Final = 3  # letters from which the name of a kind is no symbol
_MANY_KINDS: Final = 400  # of a thing; of more, only those count that the pool has


@dataclass(frozen=True, slots=True)
class Names:
    """Words by which a thing is mentioned: single words, and phrases by their last word.

    Attributes:
        singulars: words whose plurals count too, as recognized in a text: to inflect all kinds of a thing
            would take longer than to read the few words of a caption.
        exact: other words.
        never: forms that do not count, whatever their singular is.
        phrases: of singulars and other words, by the last word.
    """

    singulars: frozenset[str]
    exact: frozenset[str]
    never: frozenset[str]
    phrases: dict[str, tuple[str, ...]]

    def found_in(self, words: frozenset[str], text: str) -> frozenset[str]:
        """Return the names that a text has; ``words`` are its words, which stand between single spaces."""
        found = set(words & self.singulars)
        forms = by_singular(words)
        for one in self.singulars.intersection(forms):  # visits the few words of the text
            found.update(forms[one])
        lasts = self.phrases.keys()
        for last in (lasts & words) | (lasts & forms.keys()):
            for form in {last, *forms.get(last, ())}:
                said = (phrase.removesuffix(last) + form for phrase in self.phrases[last])
                found.update(phrase for phrase in said if f" {phrase} " in text)
        return frozenset(found - self.never | (words & self.exact))


class Knowledge:
    """Answers by WordNet and pool statistics.

    Args:
        thesaurus: WordNet.
        pool: statistics of the reference captions.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool) -> None:
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

    def may_be_called(self, one: str, other: str) -> bool:
        """Whether captioners use two nouns for the same thing, and do not tell them apart."""
        return reword_each_other(one, other) and not self.nouns.exclusive(one, other)

    def expects(self, one: str, other: str, captions: float) -> bool:
        """Whether chance alone would have two lemmas together in so many captions of the pool."""
        return self.captions_with(one) * self.captions_with(other) >= captions * self.pool.captions

    def often_beside(self, one: str, other: str) -> bool:
        """Whether images of one thing often show another one, so that it may be there where no caption mentions it."""
        both = self.pool.cooccurrence(one, other)
        chance = self.captions_with(one) * self.captions_with(other) / max(self.pool.captions, 1)
        return both >= SEEN and both >= BESIDE * self.captions_with(one) and both >= MORE_THAN_CHANCE * chance

    def _find_captions_with(self, word: str) -> int:
        return max(self.pool.cooccurrence(word, word), self.pool.form_frequency(word))

    def _find_share(self, noun: str) -> float:
        """Return the share of places of a singular, behind words such as "a" or "some", that have no article."""
        bare, one = (sum(self.pool.run(word, noun) for word in words_with(each)) for each in ("before_mass", "one"))
        return bare / (bare + one + 1)

    def _find_mentions(self, noun: str) -> Names:
        """Return the names by which another caption may mention a noun; of a compound, its head too."""
        head = noun.rpartition(" ")[2]
        return _names(self._kinds(noun) | {noun, head})

    def _find_own_mentions(self, noun: str, form: str) -> Names:
        """Return the names by which the edited caption itself mentions a noun, strictly: it tells two things apart.

        An addition tells apart even what another captioner takes for each other ("a skateboard and a scooter"), but one
        of them may be a kind of the other ("two boats", "a kayak").
        """
        wide = loosely_same(noun) | loosely_same(noun.rpartition(" ")[2])
        wide = frozenset(word for word in wide if word != noun and not self._may_mean(noun, word, form))
        never = wide | {plural_of(word) for word in wide}
        return _names(self._kinds(noun) - never, same_forms(noun), never)

    def _may_mean(self, noun: str, word: str, form: str) -> bool:
        return self.may_be_called(noun, word) and (form != "add" or self.related(noun, word, "NOUN"))

    def _find_kinds(self, noun: str) -> frozenset[str]:
        """Return all words that would make a noun true: synonyms, loosely same words, and kinds of it."""
        kinds = [*self.thesaurus.hyponyms(noun, "NOUN")]
        if len(kinds) > _MANY_KINDS:
            kinds = [word for word in kinds if self.pool.frequency(word, "NOUN")]
        kinds = [word for word in kinds if len(word) >= _SHORT or self._is_noun(word)]
        return frozenset({noun, *self.thesaurus.synonyms(noun, "NOUN"), *loosely_same(noun), *kinds} - flagged("frame"))

    def _is_noun(self, word: str) -> bool:
        """Whether captions use a word mostly as a noun: "ox", not "in" (which WordNet lists as a metal)."""
        return 2 * self.pool.frequency(word, "NOUN") > self.pool.form_frequency(word)


def _names(
    singulars: frozenset[str], exact: frozenset[str] = frozenset(), never: frozenset[str] = frozenset()
) -> Names:
    phrases: dict[str, list[str]] = {}
    for name in singulars | exact:
        if " " in name:
            phrases.setdefault(name.rpartition(" ")[2], []).append(name)
    return Names(singulars, exact, never, {last: tuple(found) for last, found in phrases.items()})


@lru_cache(maxsize=1_000)  # a caption is compared with each of its edits
def by_singular(words: frozenset[str]) -> dict[str, list[str]]:
    """Return words by their singulars."""
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(singular_of(word), []).append(word)
    return found
