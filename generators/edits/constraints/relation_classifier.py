"""Classifier of replaced relations: the probabilities that a text reads naturally, and that it may be true of the image.

Logistic regression on what the pool attests of the new relation, its shape, the classes of the nouns, and the verbs and
prepositions themselves; `edit_classifier` says how it is trained. Above a floor, neither the probability of the cloze
model nor any single count separates natural from odd relations, but together they do: benchmarks/RESULTS.md has the
figures.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np

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
from pairwright.generators.edits.constraints.image import has_plural_subject
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.scope import has_ambiguous_attachment
from pairwright.generators.lexicon.relations import UNKNOWN, NounClass, load_relations

MIN_NATURAL: Final = 0.75  # probability of a natural text; benchmarks/RESULTS.md has the figures
MAX_POSSIBLY_TRUE: Final = 0.03  # probability of a text that may be true
_SMOOTHING: Final = 0.1  # captions added to counts, so that their ratio to chance is finite

_weights = partial(load_weights, "relation_weights")


def probabilities(edit: ProposedEdit, new: Sequence[str], log_probs: FloatArray, known: Knowledge) -> FloatArray:
    """Return the probability of each of `edit_classifier.LABELS` for relations that replace one, float64 (2, n)."""
    subject, thing, of_pool, weights = edit.before, edit.after, _logits_of_pool(known), _weights()
    classes = load_relations().noun_classes(subject or UNKNOWN, thing)
    parts = [
        (
            _logits_of_phrases(edit.old, relation),
            of_pool.noun("subject", subject, relation),
            of_pool.noun("object", thing, relation),
            of_pool.counts(relation, subject, thing),
        )
        for relation in new
    ]
    found = weights.candidate_logits(features_of_candidates(edit, new, log_probs, known))
    found += np.array(parts).sum(axis=1).T
    of_slot = np.sum([weights.bias, _logits_of_classes(classes), weights.logits(features_of_slot(edit, known))], axis=0)
    return probabilities_of(found + of_slot[:, None])


RELATION_CLASSIFIER: Final = EditClassifier(
    probabilities, ("unnatural_relation", "probable_relation"), MIN_NATURAL, MAX_POSSIBLY_TRUE
)


def relation_features(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield all features of a replaced relation, each once; what is left out is 0."""
    old, new, subject, thing = edit.old, edit.new, edit.before, edit.after
    yield from features_of_phrases(old, new)
    yield from features_of_noun("subject", subject, new, known)
    yield from features_of_noun("object", thing, new, known)
    yield from features_of_classes(load_relations().noun_classes(subject or UNKNOWN, thing))
    yield from features_of_counts(new, subject, thing, known)
    yield from features_of_slot(edit, known)
    for name, [value] in features_of_candidates(edit, [new], np.array([edit.log_prob]), known):
        yield name, float(value)


def features_of_phrases(old: str, new: str) -> Iterator[Feature]:
    """Yield the features of the replaced and the new relation."""
    (old_verb, old_preposition), (verb, preposition) = split_relation(old), split_relation(new)
    yield f"old verb {old_verb or NONE}", 1.0
    yield f"old preposition {old_preposition or NONE}", 1.0
    yield f"verb {verb or NONE}", 1.0
    yield f"preposition {preposition or NONE}", 1.0
    yield f"{old_preposition or NONE} > {preposition or NONE}", 1.0
    yield f"verb {old_verb or NONE} > {verb or NONE}", 1.0
    yield "same verb", float(verb == old_verb)
    yield "same preposition", float(preposition == old_preposition)
    yield "same shape", float(bool(verb) == bool(old_verb) and bool(preposition) == bool(old_preposition))


def features_of_noun(role: str, noun: str, new: str, known: Knowledge) -> Iterator[Feature]:
    """Yield the features of the subject or object of a new relation; an empty string is an unknown noun."""
    verb, preposition = split_relation(new)
    for name in sorted(known.nouns.classes(noun)) if noun else ("unknown",):
        yield f"{role} {name}", 1.0
        yield f"{role} {name}: {preposition or NONE}", 1.0
        yield f"{role} {name}, verb {verb or NONE}", 1.0
    relation = load_relations().analyse(new)
    if role == "subject" and noun and relation and relation.subject:
        yield "wrong subject", float(known.nouns.is_alive(noun) is not (relation.subject == "animate"))


def features_of_classes(classes: Iterable[NounClass]) -> Iterator[Feature]:
    """Yield the classes of nouns of which relations coincide."""
    for name in dict.fromkeys(each.name for each in classes):
        yield f"nouns {name}", 1.0


def features_of_counts(new: str, subject: str, thing: str, known: Knowledge) -> Iterator[Feature]:
    """Yield how often the pool has the parts of a relation together: the logarithm of the ratio to chance."""
    verb, preposition = split_relation(new)
    if verb and subject:
        yield "subject and verb", _association(subject, verb, known)
    if not preposition:
        yield "verb and object", _association(verb, thing, known)
        return
    if verb:
        yield "verb and preposition", _association(verb, preposition, known)
    yield "link", _link(verb, preposition, thing, known)
    yield "preposition and object", _link("", preposition, thing, known)


def features_of_slot(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield the features of the place, whatever is written there."""
    yield "attachment", float(has_ambiguous_attachment(edit, known))
    yield "plural subject", float(has_plural_subject(edit))


def features_of_candidates(
    edit: ProposedEdit, new: Sequence[str], log_probs: FloatArray, known: Knowledge
) -> Iterator[CandidateFeature]:
    """Yield how n new relations fit the caption, as names with values of shape (n,)."""
    yield "log probability", log_probs
    rest = [lemma for lemma in edit.caption.contents if lemma not in edit.old.split()]
    words = [(verb or preposition).rpartition(" ")[2] for verb, preposition in map(split_relation, new)]
    fits = {word: known.pool.plausibility(word, rest) for word in dict.fromkeys(words)}
    yield "plausibility", np.array([fits[word] for word in words])


def _association(one: str, other: str, known: Knowledge) -> float:
    expected = known.captions_with(one) * known.captions_with(other) / max(known.pool.captions, 1)
    return math.log((known.pool.adjacency(one, other) + _SMOOTHING) / (_SMOOTHING * (expected + 1)))


def _link(left: str, preposition: str, noun: str, known: Knowledge) -> float:
    linked = known.pool.linked
    expected = linked(left, preposition, "") * linked("", "", noun) / max(linked("", "", ""), 1)
    return math.log((linked(left, preposition, noun) + _SMOOTHING) / (expected + _SMOOTHING))


@lru_cache(maxsize=20_000)
def _logits_of_phrases(old: str, new: str) -> Logits:
    return _weights().logits(features_of_phrases(old, new))


@lru_cache(maxsize=2_000)
def _logits_of_classes(classes: tuple[NounClass, ...]) -> Logits:
    return _weights().logits(features_of_classes(classes))


class _PoolLogits:
    """Cached sums of what depends on a pool; the caches go with the object, so that they do not keep the pool in memory."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self.noun = lru_cache(maxsize=50_000)(self._of_noun)
        self.counts = lru_cache(maxsize=50_000)(self._of_counts)

    def _of_noun(self, role: str, noun: str, new: str) -> Logits:
        return _weights().logits(features_of_noun(role, noun, new, self._known))

    def _of_counts(self, new: str, subject: str, thing: str) -> Logits:
        return _weights().logits(features_of_counts(new, subject, thing, self._known))


@lru_cache(maxsize=1)  # edits of one pool follow one another
def _logits_of_pool(known: Knowledge) -> _PoolLogits:
    return _PoolLogits(known)
