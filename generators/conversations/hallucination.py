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

from pairwright.generators.conversations.image_context import ImageContext
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.word_set import word_set
from pairwright.generators.lexicon.nouns import flagged, loosely_same

_PHYSICAL = "physical entity"  # the WordNet hypernym of all objects, as opposed to ideas, events and amounts
_SENSES = 2
_MIN_STEM_LENGTH = 4
_SUFFIX = re.compile(r"(?:ings?|ers?|ors?|ists?|ments?|ness|es|ed|s|y|e)$")
# Objects of almost any image, and words that WordNet wrongly lists as objects.
_ALWAYS_SUPPORTED = word_set(
    "camera viewer photographer observer world environment setting area space location spot part side half quarter row "
    "end piece pair group set thing object item element detail feature subject focus frame scene image picture photo "
    "face head hand arm eye hair body foot leg back hold left right middle center front weather sun light shadow air "
    "ground floor surface sky view use way case fact example kind type form shape color colour size first second "
    "someone somebody anyone everyone nobody individual being adult figure viewpoint perspective presence arrangement"
)
_UNCOUNTED = flagged("frame") | flagged("vague") | _ALWAYS_SUPPORTED


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
        tagger: tags captions and texts.
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
        """Return the objects of texts about several images; all of it is tagged in one call."""
        known = [_known_texts(context) for _, context in batch]
        texts = dict.fromkeys(text for (own, _), given in zip(batch, known, strict=True) for text in (*given, *own))
        tokens = dict(zip(texts, self._tagger.tag(list(texts)), strict=True))
        return [
            self._supported([tokens[text] for text in own], [tokens[text] for text in given])
            for (own, _), given in zip(batch, known, strict=True)
        ]

    def _supported(self, texts: Sequence[Sequence[Token]], known: Sequence[Sequence[Token]]) -> SupportedObjects:
        words = {form for tokens in known for form in _forms(tokens)}
        # Not their union: it takes longer to build than the few things take to look up. One that has the word alone is left out.
        covered = [words, *(found for word in words if len(found := self._covers(word)) > 1)]
        stems = frozenset(_stem(word) for word in words if " " not in word)  # as a token has no space
        things = tuple(dict.fromkeys(thing for tokens in texts for thing in self._things(tokens)))
        return SupportedObjects(things, tuple(thing for thing in things if not self._has(thing, covered, stems)))

    def _things(self, tokens: Sequence[Token]) -> Iterable[str]:
        for at, token in enumerate(tokens):
            begins = at == 0 or tokens[at - 1].text in ".!?"
            if token.tag in {"NN", "NNS"}:
                if token.lemma not in _UNCOUNTED and self._is_thing(token.lemma):
                    yield token.lemma
            elif token.tag in {"NNP", "NNPS"} and not begins and token.text.isalpha():
                yield token.text.lower()

    def _has(self, thing: str, covered: Sequence[AbstractSet[str]], stems: frozenset[str]) -> bool:
        names = self._names(thing)
        if any(not names.isdisjoint(each) for each in covered):
            return True
        return _stem(thing) in stems and len(_stem(thing)) >= _MIN_STEM_LENGTH

    def _find_names(self, thing: str) -> frozenset[str]:
        return loosely_same(thing).union(self._kinds.synonyms(thing, "NOUN", _SENSES))

    def _covered_by(self, word: str) -> frozenset[str]:
        """Return the synonyms and hypernyms that a known word supports."""
        if not self._kinds.has(word, "NOUN"):  # as most pairs of words
            return loosely_same(word)
        return self._names(word).union(self._kinds.hypernyms(word, "NOUN"))

    def _is_physical(self, lemma: str) -> bool:
        return self._kinds.is_a(lemma, _PHYSICAL, "NOUN")


def _known_texts(context: ImageContext) -> list[str]:
    """Return the captions and labels of an image."""
    labels = dict.fromkeys(box.label for box in context.boxes)
    return [*context.captions, *labels, *(name for name, _ in context.more)]


def _forms(tokens: Sequence[Token]) -> Iterable[str]:
    """Yield words in lower case, lemmas, and pairs of adjacent words ("fire hydrant")."""
    for at, token in enumerate(tokens):
        if token.text.isalnum() or "-" in token.text:
            yield token.text.lower()
            yield token.lemma
            if at + 1 < len(tokens):
                yield f"{token.text.lower()} {tokens[at + 1].lemma}"


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    stem = _SUFFIX.sub("", word)
    return stem[:-1] if len(stem) > _MIN_STEM_LENGTH and stem[-1] == stem[-2] else stem
