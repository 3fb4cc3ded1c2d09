"""Classifier of replaced relations: the probabilities that a text reads naturally, and that it may be true of the image.

Logistic regression on what the pool attests of the new relation, its shape, the classes of the nouns, and the verbs and
prepositions themselves; `edit_classifier` says how it is trained. Above a floor, neither the probability of the cloze
model nor any single count separates natural from odd relations, but together they do: benchmarks/RESULTS.md has the
figures.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Final

import numpy as np

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
from pairwright.generators.edits.constraints.image import has_plural_subject
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.scope import has_ambiguous_attachment
from pairwright.generators.lexicon.nouns import are_alive
from pairwright.generators.lexicon.relations import UNKNOWN, NounClass, load_relations

MIN_NATURAL: Final = 0.75  # probability of a natural text; benchmarks/RESULTS.md has the figures
MAX_POSSIBLY_TRUE: Final = 0.03  # probability of a text that may be true
_SMOOTHING: Final = 0.1  # captions added to counts, so that their ratio to chance is finite

_weights = partial(load_weights, "relation_weights")


def probabilities(candidates: Candidates, known: Knowledge) -> FloatArray:
    """Return the probability of each of `edit_classifier.LABELS` for relations that replace others, float64 (2, n)."""
    places, at, new, _ = candidates
    of_counts, weights, nouns, relations = _logits_of_counts(known), _weights(), known.nouns, load_relations()
    classes = [[nouns.classes(noun) if noun else None for noun in (place.before, place.after)] for place in places]
    parts = [
        (
            _logits_of_phrases(places[place].old, relation),
            _logits_of_noun("subject", classes[place][0], relation),
            _logits_of_noun("object", classes[place][1], relation),
            of_counts(relation, places[place].before, places[place].after),
        )
        for place, relation in zip(at.tolist(), new, strict=True)
    ]
    found = weights.candidate_logits(features_of_candidates(candidates, known))
    found += np.array(parts).sum(axis=1).T
    of_slots = [
        (
            weights.bias,
            _logits_of_classes(relations.noun_classes(place.before or UNKNOWN, place.after)),
            weights.logits(features_of_slot(place, known)),
        )
        for place in places
    ]
    return probabilities_of(found + np.array(of_slots).sum(axis=1)[at].T)


RELATION_CLASSIFIER: Final = EditClassifier(
    probabilities, ("unnatural_relation", "probable_relation"), MIN_NATURAL, MAX_POSSIBLY_TRUE
)


def relation_features(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield all features of a replaced relation, each once; what is left out is 0."""
    old, new, subject, thing = edit.old, edit.new, edit.before, edit.after
    yield from features_of_phrases(old, new)
    for role, noun in (("subject", subject), ("object", thing)):
        yield from features_of_noun(role, known.nouns.classes(noun) if noun else None, new)
    yield from features_of_classes(load_relations().noun_classes(subject or UNKNOWN, thing))
    yield from features_of_counts(new, subject, thing, known)
    yield from features_of_slot(edit, known)
    candidates = Candidates.of_slot(edit, [new], np.array([edit.log_prob]))
    for name, [value] in features_of_candidates(candidates, known):
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


def features_of_noun(role: str, classes: frozenset[str] | None, new: str) -> Iterator[Feature]:
    """Yield the features of the subject or object of a new relation, given its classes; None for an unknown noun."""
    verb, preposition = split_relation(new)
    for name in ("unknown",) if classes is None else sorted(classes):
        yield f"{role} {name}", 1.0
        yield f"{role} {name}: {preposition or NONE}", 1.0
        yield f"{role} {name}, verb {verb or NONE}", 1.0
    relation = load_relations().analyse(new)
    if role == "subject" and classes is not None and relation and relation.subject:
        yield "wrong subject", float(are_alive(classes) is not (relation.subject == "animate"))


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


def features_of_candidates(candidates: Candidates, known: Knowledge) -> Iterator[CandidateFeature]:
    """Yield how n new relations fit their captions, as names with values of shape (n,)."""
    places, at, new, log_probs = candidates
    yield "log probability", log_probs
    rests = [[lemma for lemma in each.caption.contents if lemma not in each.old.split()] for each in places]
    words = [(verb or preposition).rpartition(" ")[2] for verb, preposition in map(split_relation, new)]
    pairs = [*zip(at.tolist(), words, strict=True)]
    fits = {(place, word): known.pool.plausibility(word, rests[place]) for place, word in dict.fromkeys(pairs)}
    yield "plausibility", np.array([fits[pair] for pair in pairs])


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


@lru_cache(maxsize=20_000)
def _logits_of_noun(role: str, classes: frozenset[str] | None, new: str) -> Logits:
    return _weights().logits(features_of_noun(role, classes, new))


@lru_cache(maxsize=1)  # edits of one pool follow one another
def _logits_of_counts(known: Knowledge) -> Callable[[str, str, str], Logits]:
    """Return cached sums of what depends on a pool; the cache goes with the function, so that it does not keep the pool."""
    return lru_cache(maxsize=10_000)(
        lambda new, subject, thing: _weights().logits(features_of_counts(new, subject, thing, known))
    )
