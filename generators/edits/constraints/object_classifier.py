"""Classifier of replaced objects: the probabilities that a text reads naturally, and that it may be true of the image.

Its features are what the pool attests of the new noun beside its modifier, verb and preposition and with the other words of
the caption, and classes of both nouns. `edit_classifier` says how it is trained; benchmarks/RESULTS.md has the figures.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.edit_classifier import (
    NONE,
    EditClassifier,
    Feature,
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


def probabilities(edit: ProposedEdit, known: Knowledge) -> tuple[float, float]:
    """Return the probability of each of `edit_classifier.LABELS` for a replaced object."""
    weights, of_pool = _weights(), _pool_associations(known)
    old, new = _head(edit.old), _head(edit.new)
    context = noun_context(edit.caption, edit.start, edit.end, old)
    of_edit = (*features_of_words(context.words, old, new, of_pool), ("log probability", edit.log_prob))
    return probabilities_of(
        (
            weights.bias,
            of_pool.pair_logits(edit.old, edit.new),
            _slot_logits(context),
            *[of_pool.place_logits(place, new) for place in context.places],
            weights.logits(of_edit),
        )
    )


OBJECT_CLASSIFIER: Final = EditClassifier(probabilities, MIN_NATURAL, MAX_POSSIBLY_TRUE)


def object_features(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield all features of a replaced object, each once; what is left out is 0."""
    of_pool, old, new = _pool_associations(known), _head(edit.old), _head(edit.new)
    context = noun_context(edit.caption, edit.start, edit.end, old)
    yield from features_of_pair(edit.old, edit.new, known)
    yield from features_of_slot(context)
    for place in context.places:
        yield from features_of_place(place, new, of_pool)
    yield from features_of_words(context.words, old, new, of_pool)
    yield "log probability", edit.log_prob


Place = tuple[str, tuple[str, ...]]  # what is next to a noun, by its role in the sentence


class NounContext(NamedTuple):
    """The words of its sentence that a noun must fit; lemmas.

    Attributes:
        words: other nouns and verbs.
        places: those of the following that the sentence has, with their role. "before": modifiers, verb and preposition to
            the left; "behind": the verb or preposition to the right; "link": what governs the noun, and the preposition
            between; "linked": the preposition that it governs, and the noun behind; "modifier": the noun that modifies
            it, as written in lower case, and the tag.
        tag: Penn Treebank tag of the noun.
        length: tokens of the sentence.
    """

    words: tuple[str, ...]
    places: tuple[Place, ...]
    tag: str
    length: int


@lru_cache(maxsize=16)  # several nouns are proposed for one slot
def noun_context(caption: Caption, start: int, end: int, noun: str) -> NounContext:
    """Return the context of the noun that ends before token ``end``."""
    before, behind = governors_of(caption, start, end)
    first, last = _sentence_around(caption, start, end)
    inside = {*caption.lemmas[first:start], *caption.lemmas[end:last]}.difference(caption.lemmas[start:end])
    links = tuple(find_links(caption.tokens[first:last]))
    phrase, tag = caption.ending_at(end), caption.tags[end - 1]
    modifiers = caption.lower[start - 1 : start] if phrase is not None and start - 1 in phrase.nouns else ()
    places: dict[str, tuple[str, ...]] = {
        "before": tuple(before),
        "behind": tuple(behind),
        "link": next(((left, by) for left, by, thing in links if thing == noun and by), ()),
        "linked": next(((by, thing) for left, by, thing in links if left == noun and by), ()),
        "modifier": (*modifiers, tag) if modifiers else (),
    }
    return NounContext(
        words=tuple(word for word in caption.nouns_and_verbs if word in inside),
        places=tuple((role, words) for role, words in places.items() if words),
        tag=tag,
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
    for name in sorted(classes):
        yield f"new {name}", 1.0
    for name in sorted(old_classes):
        yield f"old {name}", 1.0
        for new_name in sorted(classes):
            yield f"{name} > {new_name}", 1.0
    yield "same classes", float(classes == old_classes)
    one, other = _head(old), _head(new)
    yield f"old noun {one}", 1.0
    yield f"new noun {other}", 1.0
    counts, both = [max(known.captions_with(word), 1) for word in (one, other)], known.pool.cooccurrence(one, other)
    yield "old frequency", math.log(counts[0])
    yield "new frequency", math.log(counts[1])
    yield "new with old", both / counts[0]
    yield "old with new", both / counts[1]


def features_of_slot(context: NounContext) -> Iterator[Feature]:
    """Yield the features of the place, whatever is written there."""
    places = dict(context.places)
    yield "plural", float(context.tag == "NNS")
    yield "compound", float("modifier" in places)
    yield "length", float(min(context.length, _MAX_LENGTH))
    yield "words", float(min(len(context.words), _MAX_WORDS))
    yield f"link by {places.get('link', ('', NONE))[1]}", 1.0
    yield f"links by {places.get('linked', (NONE,))[0]}", 1.0


def features_of_place(place: Place, new: str, of_pool: "PoolAssociations") -> Iterator[Feature]:
    """Yield how often the pool has the new noun in a place: logarithms of the ratio to chance."""
    role, words = place
    if role == "modifier":
        modifier, tag = words
        yield role, of_pool.compound(modifier, new, tag)
    elif role == "link":
        left, preposition = words
        for name in sorted(of_pool.known.nouns.classes(new)):
            yield f"{preposition}: {name}", 1.0
        yield "link", of_pool.link(left, preposition, new)
        yield "preposition", of_pool.link("", preposition, new)
    elif role == "linked":
        yield role, of_pool.link(new, *words)
    else:
        found = [of_pool.adjacent(*((word, new) if role == "before" else (new, word))) for word in words]
        yield role, min(found)
        yield f"{role}, mean", sum(found) / len(found)
        yield f"unseen {role}", float(sum(value < 0 for value in found))


def features_of_words(words: tuple[str, ...], old: str, new: str, of_pool: "PoolAssociations") -> Iterator[Feature]:
    """Yield how often the pool has the new noun with the words of a caption, likewise."""
    if words:
        rows = of_pool.rows(words)
        found = [row(new) for row in rows]
        yield "together", sum(found) / len(found)
        yield "least together", min(found)
        yield "least together, beside old", min([own - row(old) for own, row in zip(found, rows, strict=True)])


class PoolAssociations:
    """Cached associations of words in a pool; the caches go with the object, so that they do not keep the pool in memory."""

    def __init__(self, known: Knowledge) -> None:
        self.known, self._pool = known, known.pool
        self.pair_logits = lru_cache(maxsize=50_000)(self._pair_logits)
        self.place_logits = lru_cache(maxsize=100_000)(self._place_logits)
        self.rows = lru_cache(maxsize=16)(self._rows)  # several nouns are proposed for one slot
        self._row = lru_cache(maxsize=400)(self._find_row)

    def _pair_logits(self, old: str, new: str) -> Logits:
        return _weights().logits(features_of_pair(old, new, self.known))

    def _place_logits(self, place: Place, new: str) -> Logits:
        return _weights().logits(features_of_place(place, new, self))

    def _rows(self, words: tuple[str, ...]) -> list[Callable[[str], float]]:
        """Return for each of some words its association with a noun of the same caption."""
        return [*map(self._row, words)]

    def _find_row(self, word: str) -> Callable[[str], float]:
        return lru_cache(maxsize=1_000)(partial(self._together, word))

    def _together(self, one: str, other: str) -> float:
        return _log_ratio(self._pool.cooccurrence(one, other), self._expected(one, other))

    def adjacent(self, one: str, other: str) -> float:
        """Return the association of a word with the one that follows."""
        return _log_ratio(self._pool.adjacency(one, other), _ADJACENT * self._expected(one, other))

    def compound(self, modifier: str, noun: str, tag: str) -> float:
        """Return the same of a noun right behind another one, as written."""
        form = inflect(noun, tag)
        return _log_ratio(self._pool.bigram(modifier, form), self._expected(modifier, form))

    def link(self, left: str, preposition: str, noun: str) -> float:
        """Return the association of what governs a preposition with the noun behind it; "" matches anything."""
        linked = self._pool.linked
        expected = linked(left, preposition, "") * linked("", "", noun) / max(linked("", "", ""), 1)
        return _log_ratio(linked(left, preposition, noun), expected)

    def _expected(self, one: str, other: str) -> float:
        return self.known.captions_with(one) * self.known.captions_with(other) / max(self._pool.captions, 1)


@lru_cache(maxsize=1)  # edits of one pool follow one another
def _pool_associations(known: Knowledge) -> PoolAssociations:
    return PoolAssociations(known)


@lru_cache(maxsize=64)
def _slot_logits(context: NounContext) -> Logits:
    return _weights().logits(features_of_slot(context))


def _log_ratio(count: float, expected: float) -> float:
    return math.log((count + _SMOOTHING) / (expected + _SMOOTHING))


def _head(noun: str) -> str:
    return noun.rpartition(" ")[2]
