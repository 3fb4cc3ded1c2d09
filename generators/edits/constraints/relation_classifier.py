"""Classifier of replaced relations: the probabilities that a text reads naturally, and that it may be true of the image.

Logistic regression on what the pool attests of the new relation, its shape, the classes of the nouns, and the verbs and
prepositions themselves. It was trained on edits of COCO captions that readers marked (`tools.train_relation_classifier`);
``relation_weights.tsv`` has the weights. Above a floor, neither the probability of the cloze model nor any single count
separates natural from odd relations, but together they do: benchmarks/RESULTS.md has the figures.
"""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from pairwright.generators.edits.constraints.image import has_plural_subject
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.scope import has_ambiguous_attachment
from pairwright.generators.lexicon.relations import UNKNOWN, load_relations
from pairwright.generators.lexicon.tables import read_rows

LABELS: Final = ("natural", "possibly_true")
BIAS: Final = "bias"  # row of the weights that counts for every edit
MIN_NATURAL: Final = 0.7  # probability of a natural text; benchmarks/RESULTS.md has the figures
MAX_POSSIBLY_TRUE: Final = 0.15  # probability of a text that may be true
_NONE: Final = (0.0,) * len(LABELS)  # weights of a feature that no marked edit had
_SMOOTHING: Final = 0.1  # captions added to counts, so that their ratio to chance is finite

Feature = tuple[str, float]
Logits = tuple[float, ...]  # of `LABELS`


def is_unnatural(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether readers would probably find the text of a replaced relation odd."""
    return probabilities(edit, known)[0] < MIN_NATURAL


def may_be_true(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a replaced relation too often holds of the image as well."""
    return probabilities(edit, known)[1] > MAX_POSSIBLY_TRUE


@lru_cache(maxsize=8)  # two constraints ask for one edit
def probabilities(edit: ProposedEdit, known: Knowledge) -> tuple[float, ...]:
    """Return the probability of each of `LABELS` for a replaced relation."""
    of_words = _logits_of_words(edit.old, edit.new, edit.before, edit.after, known)
    of_caption = _logits(features_of_caption(edit, known))
    return tuple(
        1 / (1 + math.exp(-bias - one - other))
        for bias, one, other in zip(_weights()[BIAS], of_words, of_caption, strict=True)
    )


def relation_features(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield all features of a replaced relation, each once; what is left out is 0."""
    yield from features_of_words(edit.old, edit.new, edit.before, edit.after, known)
    yield from features_of_caption(edit, known)


def features_of_words(old: str, new: str, subject: str, thing: str, known: Knowledge) -> Iterator[Feature]:
    """Yield the features that depend on the two relations and the nouns that they join (`ProposedEdit`).

    Counts are natural logarithms of the ratio to the number that independent words would have.
    """
    (old_verb, old_preposition), (verb, preposition) = split_relation(old), split_relation(new)
    yield f"old verb {old_verb}", 1.0
    yield f"old preposition {old_preposition}", 1.0
    yield f"verb {verb}", 1.0
    yield f"preposition {preposition}", 1.0
    yield "same verb", float(verb == old_verb)
    yield "same preposition", float(preposition == old_preposition)
    yield "same shape", float(bool(verb) == bool(old_verb) and bool(preposition) == bool(old_preposition))
    yield f"{old_preposition} > {preposition}", 1.0
    yield from _attested(verb, preposition, subject, thing, known)
    for role, noun in (("subject", subject), ("object", thing)):
        for name in sorted(known.nouns.classes(noun)) if noun else ("unknown",):
            yield f"{role} {name}", 1.0
            yield f"{role} {name}: {preposition}", 1.0
    relation = load_relations().analyse(new)
    if relation and relation.subject and subject:
        yield "wrong subject", float(known.nouns.is_alive(subject) is not (relation.subject == "animate"))
    for name in dict.fromkeys(each.name for each in load_relations().noun_classes(subject or UNKNOWN, thing)):
        yield f"nouns {name}", 1.0


def features_of_caption(edit: ProposedEdit, known: Knowledge) -> Iterator[Feature]:
    """Yield the features that depend on the caption and the other captions of its image."""
    yield "log probability", edit.log_prob
    verb, preposition = split_relation(edit.new)
    rest = [lemma for lemma in edit.caption.contents if lemma not in edit.old.split()]
    yield "plausibility", known.pool.plausibility((verb or preposition).rpartition(" ")[2], rest)
    yield "attachment", float(has_ambiguous_attachment(edit, known))
    yield "plural subject", float(has_plural_subject(edit))


def _attested(verb: str, preposition: str, subject: str, thing: str, known: Knowledge) -> Iterator[Feature]:
    """Yield how often the pool has the parts of a relation together, relative to chance."""
    if verb and subject:
        yield "subject and verb", _association(subject, verb, known)
    if not preposition:
        yield "verb and object", _association(verb, thing, known)
        return
    if verb:
        yield "verb and preposition", _association(verb, preposition, known)
    yield "link", _link(verb, preposition, thing, known)
    yield "preposition and object", _link("", preposition, thing, known)
    if subject:
        yield "subject and preposition", _link(subject, preposition, "", known)


def _association(one: str, other: str, known: Knowledge) -> float:
    expected = known.captions_with(one) * known.captions_with(other) / max(known.pool.captions, 1)
    return math.log((known.pool.adjacency(one, other) + _SMOOTHING) / (_SMOOTHING * (expected + 1)))


def _link(left: str, preposition: str, noun: str, known: Knowledge) -> float:
    linked = known.pool.linked
    expected = linked(left, preposition, "") * linked("", "", noun) / max(linked("", "", ""), 1)
    return math.log((linked(left, preposition, noun) + _SMOOTHING) / (expected + _SMOOTHING))


@lru_cache(maxsize=50_000)
def _logits_of_words(old: str, new: str, subject: str, thing: str, known: Knowledge) -> Logits:
    return _logits(features_of_words(old, new, subject, thing, known))


def _logits(features: Iterable[Feature]) -> Logits:
    """Return the sum of the weighted features for each label."""
    weights = _weights()
    weighted = [[value * weight for weight in weights.get(name, _NONE)] for name, value in features]
    return tuple(map(sum, zip(*weighted, strict=True)))


@lru_cache(maxsize=1)
def _weights() -> dict[str, Logits]:
    return {row["feature"]: tuple(float(row[label]) for label in LABELS) for row in read_rows("relation_weights")}
