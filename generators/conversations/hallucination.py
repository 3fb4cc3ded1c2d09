"""Hallucination score: the share of a text's objects that neither captions nor boxes support.

A text's *objects* are its nouns that WordNet lists under physical entities, and proper names; words for the image
itself, parts, places or amounts (``nouns.tsv``) are excluded. An object is *supported* if a caption or a box label
contains it, a synonym, a hyponym ("animal" is supported by "dog"), or a word of the same stem ("surfer" by "surfing").
A more specific word ("poodle") is not.

The score does not distinguish a false statement from a good guess: the wheels of a bus are not mentioned either.
Errors of the tagger affect it.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from pairwright.datasets.captions.invisible_characters import remove_invisible
from pairwright.generators.conversations.image_context import ImageContext
from pairwright.generators.language.lemmas import dictionary_lemmas, singular_of
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.word_set import word_set
from pairwright.generators.lexicon.nouns import flagged, loosely_same

_PHYSICAL = "physical entity"  # the WordNet hypernym of all objects, as opposed to ideas, events and amounts
_SENSES = 2
_MIN_STEM_LENGTH = 4
_WORD = re.compile(r"[^\W\d_]+|\d+")  # "5pm" are two
_SUFFIX = re.compile(r"(?:ings?|ers?|ors?|ists?|ments?|ness|es|ed|s|y|e)$")
# Objects of almost any image, and words that WordNet wrongly lists as objects.
_ALWAYS_SUPPORTED = word_set(
    "camera viewer photographer observer world environment setting area space location spot part side half quarter row "
    "end piece pair group set thing object item element detail feature subject focus frame scene image picture photo "
    "face head hand arm eye hair body foot leg back hold left right middle center front weather sun light shadow air "
    "ground floor surface sky view use way case fact example kind type form shape color colour size first second "
    "someone somebody anyone everyone nobody individual being adult figure viewpoint perspective presence arrangement"
)
_UNCOUNTED = flagged("non_object") | flagged("vague") | _ALWAYS_SUPPORTED


class HypernymLookup(Protocol):
    """WordNet relations, as provided by `language.wordnet.WordNet`."""

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether the lemma exists with that part of speech."""
        ...

    def synonyms(self, lemma: str, pos: str, senses: int = 1) -> Sequence[str]:
        """Return the other lemmas of the first senses."""
        ...

    def hypernyms(self, lemma: str, pos: str) -> Iterable[str]:
        """Return all hypernyms of the relevant senses."""
        ...

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Return whether ``kind`` is a hypernym of the lemma."""
        ...


@dataclass(frozen=True, slots=True)
class SupportedObjects:
    """Objects of a text in order, and those without support."""

    things: tuple[str, ...]
    unsupported: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of unsupported objects, 0-1; 0 without objects."""
        return len(self.unsupported) / len(self.things) if self.things else 0.0


class ObjectSupport:
    """Finds unsupported objects in texts about an image.

    Args:
        kinds: WordNet.
        tagger: tags texts; captions need no tags.
    """

    def __init__(self, kinds: HypernymLookup, tagger: Tagger) -> None:
        self._kinds, self._tagger = kinds, tagger
        self._covers = lru_cache(maxsize=100_000)(self._covered_by)
        self._names = lru_cache(maxsize=20_000)(self._find_names)
        self._is_thing = lru_cache(maxsize=20_000)(self._is_physical)

    def of(self, texts: Sequence[str], context: ImageContext) -> SupportedObjects:
        """Return the objects of all texts together."""
        return self.of_batch([(texts, context)])[0]

    def of_batch(self, batch: Sequence[tuple[Sequence[str], ImageContext]]) -> list[SupportedObjects]:
        """Return the objects of texts about several images; all texts are tagged in one call."""
        texts = dict.fromkeys(text for own, _ in batch for text in own)
        tokens = dict(zip(texts, self._tagger.tag(list(texts)), strict=True))
        return [self.of_tokens([tokens[text] for text in own], context) for own, context in batch]

    def of_tokens(self, texts: Sequence[Sequence[Token]], context: ImageContext) -> SupportedObjects:
        """Return the objects of all tagged texts together."""
        things = tuple(dict.fromkeys(thing for tokens in texts for thing in self._things(tokens)))
        words = _known_words(context)
        absent = [thing for thing in things if self._names(thing).isdisjoint(words)]
        if absent:  # as a word of the same stem, or by a more specific one
            stems = frozenset(_stem(word) for word in words if " " not in word)  # as a token has no space
            covered = [found for word in words if len(found := self._covers(word)) > 1]  # one is the word itself
            absent = [thing for thing in absent if not self._is_covered(thing, covered, stems)]
        return SupportedObjects(things, tuple(absent))

    def _things(self, tokens: Sequence[Token]) -> Iterable[str]:
        for at, token in enumerate(tokens):
            begins = at == 0 or tokens[at - 1].text in ".!?"
            if token.tag in {"NN", "NNS"}:
                if token.lemma not in _UNCOUNTED and self._is_thing(token.lemma):
                    yield token.lemma
            elif token.tag in {"NNP", "NNPS"} and not begins and token.text.isalpha():
                yield token.text.lower()

    def _is_covered(self, thing: str, covered: Sequence[AbstractSet[str]], stems: frozenset[str]) -> bool:
        names, stem = self._names(thing), _stem(thing)
        return (len(stem) >= _MIN_STEM_LENGTH and stem in stems) or any(not names.isdisjoint(each) for each in covered)

    def _find_names(self, thing: str) -> frozenset[str]:
        return loosely_same(thing).union(self._kinds.synonyms(thing, "NOUN", _SENSES))

    def _covered_by(self, word: str) -> frozenset[str]:
        """Return the synonyms and hypernyms that a known word supports."""
        if not self._kinds.has(word, "NOUN"):  # as most pairs of words
            return loosely_same(word)
        return self._names(word).union(self._kinds.hypernyms(word, "NOUN"))

    def _is_physical(self, lemma: str) -> bool:
        return self._kinds.is_a(lemma, _PHYSICAL, "NOUN")


def _known_words(context: ImageContext) -> set[str]:
    """Return the words of captions and labels and their lemmas, and pairs of adjacent ones ("fire hydrant").

    Every lemma that a word may have counts, so that the captions, most of the text by far, need no tags.
    """
    found = set[str]()
    for text in (*context.captions, *{box.label for box in context.boxes}, *(name for name, _ in context.more)):
        before = ""
        for word in _WORD.findall(remove_invisible(text).lower()):
            lemmas = _lemmas(word)
            found |= lemmas
            if before:
                found.update(f"{before} {lemma}" for lemma in lemmas)
            before = word
    return found


@lru_cache(maxsize=20_000)
def _lemmas(word: str) -> frozenset[str]:
    return frozenset((word, singular_of(word), *(lemmas[0] for lemmas in dictionary_lemmas(word).values())))


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    stem = _SUFFIX.sub("", word)
    return stem[:-1] if len(stem) > _MIN_STEM_LENGTH and stem[-1] == stem[-2] else stem
