"""Classifier of replaced objects: the probabilities that a text reads naturally, and that it may be true of the image.

Its features are what the pool attests of the new noun beside its modifier, verb and preposition and with the other words of
the caption, and classes of both nouns. `edit_classifier` says how it is trained; benchmarks/RESULTS.md has the figures.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.edit_classifier import (
    NONE,
    CandidateFeature,
    Candidates,
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


def probabilities(candidates: Candidates, known: Knowledge) -> FloatArray:
    """Return the probability of each of `edit_classifier.LABELS` for nouns that replace others, float64 (2, n)."""
    places, at, new, _ = candidates
    weights, of_pool = _weights(), _pool_associations(known)
    contexts = [_context_of(place) for place in places]
    found = weights.candidate_logits(features_of_candidates(candidates, contexts, of_pool))
    replaced = [known.nouns.classes(place.old) for place in places]
    of_words = [
        (
            _logits_of_classes(replaced[place], known.nouns.classes(word)),
            of_pool.old_logits(_head(places[place].old)),
            of_pool.new_logits(_head(word)),
            _logits_of_preposition(contexts[place].preposition, known.nouns.classes(_head(word))),
        )
        for place, word in zip(at.tolist(), new, strict=True)
    ]
    found += np.array(of_words).sum(axis=1).T
    of_slots = np.array([np.add(weights.bias, weights.logits(features_of_slot(each))) for each in contexts])
    return probabilities_of(found + of_slots[at].T)


OBJECT_CLASSIFIER: Final = EditClassifier(
    probabilities, ("unnatural_object", "probable_object"), MIN_NATURAL, MAX_POSSIBLY_TRUE
)


def object_features(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield all features of a replaced object, each once; what is left out is 0."""
    context = _context_of(edit)
    yield from features_of_classes(known.nouns.classes(edit.old), known.nouns.classes(edit.new))
    yield from features_of_noun("old", _head(edit.old), known)
    yield from features_of_noun("new", _head(edit.new), known)
    yield from features_of_slot(context)
    yield from features_of_preposition(context.preposition, known.nouns.classes(_head(edit.new)))
    candidates = Candidates.of_slot(edit, [edit.new], np.array([edit.log_prob]))
    for name, [value] in features_of_candidates(candidates, [context], _pool_associations(known)):
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
    link: tuple[()] | tuple[str, str]
    linked: tuple[()] | tuple[str, str]
    modifier: str
    tag: str
    length: int

    @property
    def preposition(self) -> str:
        """The preposition that governs the noun, or `NONE`."""
        return self.link[1] if self.link else NONE


def _context_of(edit: ProposedEdit) -> NounContext:
    return noun_context(edit.caption, edit.start, edit.end, _head(edit.old))


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


def features_of_classes(old: frozenset[str], new: frozenset[str]) -> Iterator[Feature]:
    """Yield the features of the classes of the replaced and the new noun."""
    for name in sorted(new):
        yield f"new {name}", 1.0
    for name in sorted(old):
        yield f"old {name}", 1.0
        for new_name in sorted(new):
            yield f"{name} > {new_name}", 1.0
    yield "same classes", float(new == old)


def features_of_noun(role: str, noun: str, known: Knowledge) -> Iterator[Feature]:
    """Yield the features of the replaced ("old") or the new noun alone."""
    yield f"{role} noun {noun}", 1.0
    yield f"{role} frequency", math.log(max(known.captions_with(noun), 1))


def features_of_preposition(preposition: str, new: frozenset[str]) -> Iterator[Feature]:
    """Yield the features of the classes of the new noun behind the preposition that governs it, if one does."""
    for name in sorted(new) if preposition != NONE else ():
        yield f"{preposition}: {name}", 1.0


def features_of_slot(context: NounContext) -> Iterator[Feature]:
    """Yield the features of the place, whatever is written there."""
    yield "plural", float(context.tag == "NNS")
    yield "compound", float(context.modifier != "")
    yield "length", float(min(context.length, _MAX_LENGTH))
    yield "words", float(min(len(context.words), _MAX_WORDS))
    yield f"link by {context.preposition}", 1.0
    yield f"links by {context.linked[0] if context.linked else NONE}", 1.0


def features_of_candidates(
    candidates: Candidates, contexts: Sequence[NounContext], of_pool: "PoolAssociations"
) -> Iterator[CandidateFeature]:
    """Yield how often the pool has new nouns with the words of their sentences: logarithms of the ratio to chance.

    Args:
        candidates: n nouns.
        contexts: of the replaced nouns, one for each place.
        of_pool: associations of words.

    Yields:
        Names with values of shape (n,); 0 where a context lacks the words.
    """
    places, at, new, log_probs = candidates
    nouns, replaced, own = [*map(_head, new)], [_head(place.old) for place in places], at.tolist()
    yield "log probability", log_probs
    both, frequency = of_pool.cooccurrences((replaced[place] for place in own), nouns), of_pool.frequencies
    yield "new with old", both / np.maximum(frequency(replaced)[at], 1)
    yield "old with new", both / np.maximum(frequency(nouns), 1)
    for role in ("before", "behind"):
        beside = _Beside([getattr(each, role) for each in contexts], at)
        found = of_pool.adjacent(*beside.pairs(nouns), before=role == "before")
        yield role, beside.reduced(np.minimum, found)
        yield f"{role}, mean", beside.mean(found)
        yield f"unseen {role}", beside.reduced(np.add, (found < 0).astype(float))
    link, words = of_pool.link, [(contexts[place], noun) for place, noun in zip(own, nouns, strict=True)]
    yield "link", np.array([link(*each.link, noun) if each.link else 0.0 for each, noun in words])
    yield "preposition", np.array([link("", each.preposition, noun) if each.link else 0.0 for each, noun in words])
    yield "linked", np.array([link(noun, *each.linked) if each.linked else 0.0 for each, noun in words])
    compounds = [
        of_pool.compound(each.modifier, inflect(noun, each.tag)) if each.modifier else 0.0 for each, noun in words
    ]
    yield "modifier", np.array(compounds)
    beside = _Beside([each.words for each in contexts], at)
    found = of_pool.together(*beside.pairs(nouns))
    old = of_pool.together(*beside.pairs([replaced[place] for place in own]))
    yield "together", beside.mean(found)
    yield "least together", beside.reduced(np.minimum, found)
    yield "least together, beside old", beside.reduced(np.minimum, found - old)


class _Beside:
    """Each of n candidates with each of the words beside it; a candidate without any has 0.

    Args:
        words: of each place.
        at: place of each candidate, shape (n,).
    """

    def __init__(self, words: Sequence[Sequence[str]], at: npt.NDArray[np.int64]) -> None:
        self._words = [words[place] for place in at.tolist()]
        self._sizes = np.array([len(each) for each in self._words], np.int64)
        self._some = np.flatnonzero(self._sizes)
        self._starts = (np.cumsum(self._sizes) - self._sizes)[self._some]

    def pairs(self, nouns: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the words of all candidates, and beside each its candidate, given as one of n nouns."""
        beside = [noun for noun, words in zip(nouns, self._words, strict=True) for _ in words]
        return [*chain.from_iterable(self._words)], beside

    def reduced(self, ufunc: np.ufunc, values: FloatArray) -> FloatArray:
        """Return the values of pairs reduced to one of each candidate."""
        found = np.zeros(len(self._sizes))
        if len(self._some):
            found[self._some] = ufunc.reduceat(values, self._starts)
        return found

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean of the values of each candidate."""
        return np.asarray(self.reduced(np.add, values) / np.maximum(self._sizes, 1))


class PoolAssociations:
    """Associations of words in a pool: logarithms of how often they are together, relative to chance."""

    def __init__(self, known: Knowledge) -> None:
        self._known, self._pool = known, known.pool
        # These caches go with the object, so that they do not keep the pool in memory.
        self.old_logits = lru_cache(maxsize=20_000)(partial(self._noun_logits, "old"))
        self.new_logits = lru_cache(maxsize=20_000)(partial(self._noun_logits, "new"))
        self.link = lru_cache(maxsize=20_000)(self._find_link)
        self.compound = lru_cache(maxsize=20_000)(self._find_compound)

    def _noun_logits(self, role: str, noun: str) -> Logits:
        return _weights().logits(features_of_noun(role, noun, self._known))

    def frequencies(self, words: Sequence[str]) -> FloatArray:
        """Return the number of captions with each word, shape (words,)."""
        return np.array([*map(self._known.captions_with, words)], float)

    def cooccurrences(self, words: Iterable[str], nouns: Sequence[str]) -> FloatArray:
        """Return the number of captions with each word and the noun beside it, shape (nouns,)."""
        return np.array([*map(self._pool.cooccurrence, words, nouns)], float)

    def together(self, words: Sequence[str], nouns: Sequence[str]) -> FloatArray:
        """Return the association of each word with a noun of the same caption, shape (words,)."""
        return _log_ratios(self.cooccurrences(words, nouns), self._expected(words, nouns))

    def adjacent(self, words: Sequence[str], nouns: Sequence[str], *, before: bool) -> FloatArray:
        """Return the association of each word with a noun that follows it or that it follows, shape (words,)."""
        counts = map(self._pool.adjacency, *((words, nouns) if before else (nouns, words)))
        return _log_ratios([*counts], _ADJACENT * self._expected(words, nouns))

    def _find_compound(self, modifier: str, noun: str) -> float:
        """Return the association of a modifier with a noun right behind it, both as written."""
        expected = self._known.captions_with(modifier) * self._known.captions_with(noun) / max(self._pool.captions, 1)
        return _log_ratio(self._pool.bigram(modifier, noun), expected)

    def _find_link(self, left: str, preposition: str, noun: str) -> float:
        """Return the association of what governs a preposition with the noun behind it; "" matches anything."""
        count = self._pool.linked
        expected = count(left, preposition, "") * count("", "", noun) / max(count("", "", ""), 1)
        return _log_ratio(count(left, preposition, noun), expected)

    def _expected(self, words: Sequence[str], nouns: Sequence[str]) -> FloatArray:
        """Return how many captions have each word and the noun beside it by chance, shape (words,)."""
        return self.frequencies(words) * self.frequencies(nouns) / max(self._pool.captions, 1)


@lru_cache(maxsize=5_000)
def _logits_of_classes(old: frozenset[str], new: frozenset[str]) -> Logits:
    return _weights().logits(features_of_classes(old, new))


@lru_cache(maxsize=5_000)
def _logits_of_preposition(preposition: str, new: frozenset[str]) -> Logits:
    return _weights().logits(features_of_preposition(preposition, new))


@lru_cache(maxsize=1)  # edits of one pool follow one another
def _pool_associations(known: Knowledge) -> PoolAssociations:
    return PoolAssociations(known)


def _log_ratios(counts: Sequence[int] | FloatArray, expected: FloatArray) -> FloatArray:
    return np.asarray(np.log((np.array(counts) + _SMOOTHING) / (expected + _SMOOTHING)))


def _log_ratio(count: int, expected: float) -> float:
    return math.log((count + _SMOOTHING) / (expected + _SMOOTHING))


def _head(noun: str) -> str:
    return noun.rpartition(" ")[2]
