"""Classifier of replaced objects: the probabilities that a text reads naturally, and that it may be true of the image.

Its features are what the pool attests of the new noun beside its modifier, verb and preposition and with the other words of
the caption, and classes of both nouns. `edit_classifier` says how it is trained; benchmarks/RESULTS.md has the figures.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.edit_classifier import (
    NONE,
    CandidateFeature,
    EditClassifier,
    Feature,
    FloatArray,
    Logits,
    load_weights,
    probabilities_of,
)
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.prepositional_links import find_links

MIN_NATURAL: Final = 0.65  # probability of a natural text; benchmarks/RESULTS.md has the figures
MAX_POSSIBLY_TRUE: Final = 0.04  # probability of a text that may be true
_SMOOTHING: Final = 0.3  # captions added to counts, so that their ratio to chance is finite
_MAX_LENGTH, _MAX_WORDS = 24, 10  # of marked captions, mostly; the weights say nothing of longer ones
_ADJACENT: Final = 0.2  # share of the captions with two words in which they are adjacent, by chance

_weights = partial(load_weights, "object_weights")


def probabilities(edit: ProposedEdit, new: Sequence[str], log_probs: FloatArray, known: Knowledge) -> FloatArray:
    """Return the probability of each of `edit_classifier.LABELS` for nouns that replace one, float64 (2, n)."""
    weights, of_pool = _weights(), _pool_associations(known)
    context = noun_context(edit.caption, edit.start, edit.end, _head(edit.old))
    found = weights.candidate_logits(features_of_candidates(context, edit.old, new, log_probs, of_pool))
    found += np.array([of_pool.pair_logits(edit.old, word) for word in new]).T
    if context.link:
        found += np.array([of_pool.preposition_logits(context.preposition, _head(word)) for word in new]).T
    of_slot = np.add(weights.bias, weights.logits(features_of_slot(context)))
    return probabilities_of(found + of_slot[:, None])


OBJECT_CLASSIFIER: Final = EditClassifier(
    probabilities, ("unnatural_object", "probable_object"), MIN_NATURAL, MAX_POSSIBLY_TRUE
)


def object_features(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield all features of a replaced object, each once; what is left out is 0."""
    of_pool = _pool_associations(known)
    context = noun_context(edit.caption, edit.start, edit.end, _head(edit.old))
    yield from features_of_pair(edit.old, edit.new, known)
    yield from features_of_slot(context)
    if context.link:
        yield from features_of_preposition(context.preposition, _head(edit.new), of_pool)
    log_probs = np.array([edit.log_prob])
    for name, [value] in features_of_candidates(context, edit.old, [edit.new], log_probs, of_pool):
        yield name, float(value)


class NounContext(NamedTuple):
    """The words of its sentence that a noun must fit; lemmas.

    Attributes:
        words: other nouns and verbs.
        before: modifiers, verb and preposition to the left of the noun.
        behind: the verb or preposition to the right.
        link: what governs the noun, and the preposition between; empty without a preposition.
        linked: the preposition that it governs, and the noun behind; empty without a preposition.
        modifier: the noun that modifies it, as written in lower case, or empty.
        tag: Penn Treebank tag of the noun.
        length: tokens of the sentence.
    """

    words: tuple[str, ...]
    before: Sequence[str]
    behind: Sequence[str]
    link: tuple[str, ...]
    linked: tuple[str, ...]
    modifier: str
    tag: str
    length: int

    @property
    def preposition(self) -> str:
        """The preposition that governs the noun, or `NONE`."""
        return self.link[1] if self.link else NONE


def noun_context(caption: Caption, start: int, end: int, noun: str) -> NounContext:
    """Return the context of the noun that ends before token ``end``."""
    before, behind = governors_of(caption, start, end)
    first, last = _sentence_around(caption, start, end)
    inside = {*caption.lemmas[first:start], *caption.lemmas[end:last]}.difference(caption.lemmas[start:end])
    links = tuple(find_links(caption.tokens[first:last]))
    phrase = caption.ending_at(end)
    return NounContext(
        words=tuple(word for word in caption.nouns_and_verbs if word in inside),
        before=before,
        behind=behind,
        link=next(((left, by) for left, by, thing in links if thing == noun and by), ()),
        linked=next(((by, thing) for left, by, thing in links if left == noun and by), ()),
        modifier=caption.lower[start - 1] if phrase is not None and start - 1 in phrase.nouns else "",
        tag=caption.tags[end - 1],
        length=last - first,
    )


def governors_of(caption: Caption, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the lemmas that modify or govern a noun from the left, and the verb or preposition after it."""
    before: list[str] = []
    at = start - 1
    while at >= 0 and caption.tokens[at].pos in {"ADJ", "NOUN", "DET", "NUM", "VERB", "ADP"}:
        token = caption.tokens[at]
        if token.pos in {"ADJ", "VERB", "ADP"}:
            before.append(token.lemma)
        if token.pos in {"VERB", "ADP"}:
            break
        at -= 1
    while end < len(caption.tokens) and caption.tokens[end].pos in {"AUX", "ADV"}:
        end += 1
    follows = end < len(caption.tokens) and caption.tokens[end].pos in {"VERB", "ADP"}
    return before, [caption.lemmas[end]] if follows else []


def _sentence_around(caption: Caption, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the sentence of some tokens: nearly all marked captions have one."""
    first = next((at + 1 for at in range(start - 1, -1, -1) if caption.tags[at] == "."), 0)
    last = next((at + 1 for at in range(end, len(caption.tokens)) if caption.tags[at] == "."), len(caption.tokens))
    return first, last


def features_of_pair(old: str, new: str, known: Knowledge) -> Iterator[Feature]:
    """Yield the features of the replaced and the new noun."""
    classes, old_classes = known.nouns.classes(new), known.nouns.classes(old)
    one, other = _head(old), _head(new)
    for name in sorted(classes):
        yield f"new {name}", 1.0
    for name in sorted(old_classes):
        yield f"old {name}", 1.0
        for new_name in sorted(classes):
            yield f"{name} > {new_name}", 1.0
    yield "same classes", float(classes == old_classes)
    yield f"old noun {one}", 1.0
    yield f"new noun {other}", 1.0
    counts, both = [max(known.captions_with(word), 1) for word in (one, other)], known.pool.cooccurrence(one, other)
    yield "old frequency", math.log(counts[0])
    yield "new frequency", math.log(counts[1])
    yield "new with old", both / counts[0]
    yield "old with new", both / counts[1]


def features_of_preposition(preposition: str, new: str, of_pool: "PoolAssociations") -> Iterator[Feature]:
    """Yield the features of the new noun behind the preposition that governs it."""
    for name in sorted(of_pool.known.nouns.classes(new)):
        yield f"{preposition}: {name}", 1.0
    yield "preposition", float(of_pool.links("", preposition, [new])[0])


def features_of_slot(context: NounContext) -> Iterator[Feature]:
    """Yield the features of the place, whatever is written there."""
    yield "plural", float(context.tag == "NNS")
    yield "compound", float(context.modifier != "")
    yield "length", float(min(context.length, _MAX_LENGTH))
    yield "words", float(min(len(context.words), _MAX_WORDS))
    yield f"link by {context.preposition}", 1.0
    yield f"links by {context.linked[0] if context.linked else NONE}", 1.0


def features_of_candidates(
    context: NounContext, old: str, new: Sequence[str], log_probs: FloatArray, of_pool: "PoolAssociations"
) -> Iterator[CandidateFeature]:
    """Yield how often the pool has new nouns with the words of a sentence: logarithms of the ratio to chance.

    Args:
        context: of the replaced noun.
        old: the replaced noun.
        new: n nouns.
        log_probs: natural logarithms of their probabilities by the cloze model, shape (n,).
        of_pool: associations of words.

    Yields:
        Names with values of shape (n,).
    """
    nouns = [_head(noun) for noun in new]
    yield "log probability", log_probs
    for role, words in (("before", context.before), ("behind", context.behind)):
        if words:
            found = of_pool.adjacent(words, nouns, before=role == "before")
            yield role, found.min(axis=0)
            yield f"{role}, mean", found.sum(axis=0) / len(found)
            yield f"unseen {role}", (found < 0).sum(axis=0)
    if context.link:
        left, preposition = context.link
        yield "link", of_pool.links(left, preposition, nouns)
    if context.linked:
        preposition, thing = context.linked
        yield "linked", of_pool.linked(preposition, thing, nouns)
    if context.modifier:
        yield "modifier", of_pool.compounds(context.modifier, nouns, context.tag)
    if context.words:
        together = of_pool.together(context.words, [*nouns, _head(old)])
        found, replaced = together[:, :-1], together[:, -1:]
        yield "together", found.sum(axis=0) / len(found)
        yield "least together", found.min(axis=0)
        yield "least together, beside old", (found - replaced).min(axis=0)


class PoolAssociations:
    """Associations of words in a pool: logarithms of how often they are together, relative to chance."""

    def __init__(self, known: Knowledge) -> None:
        self.known, self._pool = known, known.pool
        # These caches go with the object, so that they do not keep the pool in memory.
        self.pair_logits = lru_cache(maxsize=100_000)(self._pair_logits)
        self.preposition_logits = lru_cache(maxsize=20_000)(self._preposition_logits)

    def _pair_logits(self, old: str, new: str) -> Logits:
        return _weights().logits(features_of_pair(old, new, self.known))

    def _preposition_logits(self, preposition: str, new: str) -> Logits:
        return _weights().logits(features_of_preposition(preposition, new, self))

    def together(self, words: Sequence[str], nouns: Sequence[str]) -> FloatArray:
        """Return the association of words with nouns of the same caption, shape (words, nouns)."""
        return _log_ratios([self._pool.cooccurrences(word, nouns) for word in words], self._expected(words, nouns))

    def adjacent(self, words: Sequence[str], nouns: Sequence[str], *, before: bool) -> FloatArray:
        """Return the association of words with nouns that follow them or that they follow, shape (words, nouns)."""
        counts = [self._pool.adjacencies(word, nouns, before=before) for word in words]
        return _log_ratios(counts, _ADJACENT * self._expected(words, nouns))

    def compounds(self, modifier: str, nouns: Sequence[str], tag: str) -> FloatArray:
        """Return the association of a noun with others right behind it, as written for a tag, shape (nouns,)."""
        forms = [inflect(noun, tag) for noun in nouns]
        return _log_ratios([self._pool.bigram(modifier, form) for form in forms], self._expected([modifier], forms)[0])

    def links(self, left: str, preposition: str, nouns: Sequence[str]) -> FloatArray:
        """Return the association of what governs a preposition with nouns behind it; "" matches anything."""
        count = self._pool.linked_nouns
        [governing, *counts] = count(left, preposition, ["", *nouns])
        [every, *behind] = count("", "", ["", *nouns])
        return _log_ratios(counts, governing * np.array(behind) / max(every, 1))

    def linked(self, preposition: str, thing: str, nouns: Sequence[str]) -> FloatArray:
        """Return the association of nouns that govern a preposition with the noun behind it."""
        count = self._pool.linked_governors
        behind, every = self._pool.linked_nouns("", "", [thing, ""])
        governing = np.array(count(nouns, preposition, ""))
        return _log_ratios(count(nouns, preposition, thing), governing * behind / max(every, 1))

    def _expected(self, words: Sequence[str], nouns: Sequence[str]) -> FloatArray:
        """Return how many captions have two words by chance, shape (words, nouns)."""
        one, other = (np.array([self.known.captions_with(word) for word in some], float) for some in (words, nouns))
        return np.asarray(one[:, None] * other / max(self._pool.captions, 1))


@lru_cache(maxsize=1)  # edits of one pool follow one another
def _pool_associations(known: Knowledge) -> PoolAssociations:
    return PoolAssociations(known)


def _log_ratios(counts: Sequence[Any], expected: FloatArray) -> FloatArray:
    return np.asarray(np.log((np.array(counts) + _SMOOTHING) / (expected + _SMOOTHING)))


def _head(noun: str) -> str:
    return noun.rpartition(" ")[2]
