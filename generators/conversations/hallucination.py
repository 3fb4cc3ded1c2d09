"""Which things a text names that nothing known of the image supports: possible hallucinations, as a score.

A text's *things* are its nouns that WordNet knows as something to be seen or touched, and proper names; words that
speak of the picture, of parts, places or amounts (`nouns.FRAMES`) are none. A thing is *supported* when a caption or a
box label has it, a word that captions use for the same, a synonym, something that is a kind of it ("animal", where
there is a dog), or a word of the same stem ("surfer", where someone is surfing). A more special word is not ("poodle").

The score is the share of distinct things that nothing supports. It tells no lie from a good guess: the wheels of a
bus are not mentioned either. Tags come from a small tagger; a text in which it errs is scored accordingly.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from pairwright.generators.captions.context import loosely_same
from pairwright.generators.conversations.image_context import ImageContext
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.words.nouns import FRAMES
from pairwright.generators.words.wordlists import word_set

_PHYSICAL = "physical entity"  # WordNet's class of all that is no idea, event, amount or relation
_SENSES = 2
_STEM = 4  # letters at least
_SUFFIX = re.compile(r"(?:ings?|ers?|ors?|ists?|ments?|ness|es|ed|s|y|e)$")
# What goes without saying, or is no thing although WordNet thinks so.
_ALWAYS_SUPPORTED = word_set(
    "camera viewer photographer observer world environment setting area space location spot part side half quarter row "
    "end piece pair group set thing object item element detail feature subject focus frame scene image picture photo "
    "face head hand arm eye hair body foot leg back hold left right middle center front weather sun light shadow air "
    "ground floor surface sky view use way case fact example kind type form shape color colour size first second "
    "someone somebody anyone everyone nobody individual being adult figure viewpoint perspective presence arrangement"
)


class HypernymLookup(Protocol):
    """What is asked of WordNet; `language.wordnet.WordNet` is one."""

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether the lemma is one of that part of speech."""
        ...

    def synonyms(self, lemma: str, pos: str, senses: int = 1) -> Sequence[str]:
        """Return the other lemmas of the first senses."""
        ...

    def hypernyms(self, lemma: str, pos: str) -> Iterable[str]:
        """Return every lemma above the senses that count."""
        ...

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Return whether the lemma is a kind of ``kind``."""
        ...


@dataclass(frozen=True, slots=True)
class SupportedObjects:
    """What became of a text's things: all of them, and those that nothing supports, in order."""

    things: tuple[str, ...]
    unsupported: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of the things that nothing supports, 0-1; 0 where there is no thing."""
        return len(self.unsupported) / len(self.things) if self.things else 0.0


class ObjectSupport:
    """Scores texts against what is known of an image.

    Args:
        kinds: WordNet.
        tagger: tags captions and texts.
    """

    def __init__(self, kinds: HypernymLookup, tagger: Tagger) -> None:
        self._kinds, self._tagger = kinds, tagger
        self._covers = lru_cache(maxsize=20_000)(self._covered_by)
        self._is_thing = lru_cache(maxsize=20_000)(self._is_physical)

    def of(self, texts: Sequence[str], context: ImageContext) -> SupportedObjects:
        """Return the things of all texts together, and which of them nothing supports."""
        known = [
            *context.captions,
            *dict.fromkeys(box.label for box in context.boxes),
            *(name for name, _ in context.more),
        ]
        tagged = self._tagger.tag([*known, *texts])
        words = {form for tokens in tagged[: len(known)] for form in _forms(tokens)}
        covered = words.union(*(self._covers(word) for word in words))
        stems = frozenset(map(_stem, words))
        things = tuple(dict.fromkeys(thing for tokens in tagged[len(known) :] for thing in self._things(tokens)))
        return SupportedObjects(things, tuple(thing for thing in things if not self._has(thing, covered, stems)))

    def _things(self, tokens: Sequence[Token]) -> Iterable[str]:
        for at, token in enumerate(tokens):
            begins = at == 0 or tokens[at - 1].text in ".!?"
            if token.tag in {"NN", "NNS"}:
                if token.lemma not in FRAMES | _ALWAYS_SUPPORTED and self._is_thing(token.lemma):
                    yield token.lemma
            elif token.tag in {"NNP", "NNPS"} and not begins and token.text.isalpha():
                yield token.text.lower()

    def _has(self, thing: str, covered: set[str], stems: frozenset[str]) -> bool:
        if thing in covered or (_stem(thing) in stems and len(_stem(thing)) >= _STEM):
            return True
        return any(word in covered for word in (*loosely_same(thing), *self._kinds.synonyms(thing, "NOUN", _SENSES)))

    def _covered_by(self, word: str) -> frozenset[str]:
        """Return what a known word supports beside itself."""
        return frozenset(
            [*loosely_same(word), *self._kinds.synonyms(word, "NOUN", _SENSES), *self._kinds.hypernyms(word, "NOUN")]
        )

    def _is_physical(self, lemma: str) -> bool:
        return self._kinds.is_a(lemma, _PHYSICAL, "NOUN")


def _forms(tokens: Sequence[Token]) -> Iterable[str]:
    """Yield words as written and lemmas, and both words of neighbours together ("fire hydrant")."""
    for at, token in enumerate(tokens):
        if token.text.isalnum() or "-" in token.text:
            yield token.text.lower()
            yield token.lemma
            if at + 1 < len(tokens):
                yield f"{token.text.lower()} {tokens[at + 1].lemma}"


def _stem(word: str) -> str:
    stem = _SUFFIX.sub("", word)
    return stem[:-1] if len(stem) > _STEM and stem[-1] == stem[-2] else stem
