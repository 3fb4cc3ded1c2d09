"""Text-only attacks and naturalness proxies on pairs of a caption and its edit.

All rates are *unfolded*: the share of rows in which the attack prefers the caption (or hard positive), ties counting
half. 0.5 is chance level; far below 0.5 an attack is reliably wrong, which also leaves a trace.

- *words*, *letters*: the classifiers of `audit`, of n-grams of up to three words or of letters, judged on images that
  they were not trained on.
- *single_words*: the same classifier of counts of single words, without their order.
- *trigram_total*, *trigram_mean*: log-probability of the text, or per token, under a trigram model of captions of other
  images.
- *plausibility*: association of the content words under a co-occurrence model of the same captions.
- *length*: preference for the shorter text.

Proxies compare an edit with its caption; both models never saw a caption of the image:

- *log_prob_change*: mean change of the trigram log-probability of the whole text, in nats; below 0 for unlikelier text.
- *unlikely*: share of edits that are more than `UNLIKELY` nats less likely than their caption.
- *plausibility_change*: mean change of the plausibility score in -1..1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from pairwright.filters.attacks.accuracy import compute_preference_rate
from pairwright.filters.attacks.evidence import Evidence, build_classifier_evidence
from pairwright.filters.attacks.text_classifier import compute_repeated_gaps
from pairwright.filters.scorers.text_scorers import PlausibilityScorer
from pairwright.generators.language.trigram_model import TrigramModel

SINGLE_WORDS = "single_words"
CLASSIFIERS = (SINGLE_WORDS, "words", "letters")
SEEDS = (1, 2, 3)
UNLIKELY = 8.0
MIN_ROWS = 50
_WORD = re.compile(r"[a-z']+")


class TextRow(NamedTuple):
    """A text that is true of an image and one that is not.

    Attributes:
        group: id of the image.
        positive: the caption, or a hard positive.
        negative: its edit.
    """

    group: str
    positive: str
    negative: str


@dataclass(frozen=True)
class HeldOutModels:
    """Models of captions of images that are not under test."""

    trigrams: TrigramModel
    plausibility: PlausibilityScorer

    @classmethod
    def fit(cls, captions: Sequence[str]) -> "HeldOutModels":
        """Return the models of the captions."""
        return cls(TrigramModel.fit(captions), PlausibilityScorer.train(captions))


def measure_fixed(rows: Sequence[TextRow], models: HeldOutModels) -> dict[str, float]:
    """Return the rates of the attacks that are not trained on the rows, and the proxies."""
    positives, negatives = [row.positive for row in rows], [row.negative for row in rows]
    (total, tokens), (other, other_tokens) = (models.trigrams.log_prob(texts) for texts in (positives, negatives))
    plausibility = models.plausibility.score(positives) - models.plausibility.score(negatives)
    length = np.array([len(row.negative) - len(row.positive) for row in rows], np.float64)
    gaps = {
        "trigram_total": total - other,
        "trigram_mean": total / tokens - other / other_tokens,
        "plausibility": plausibility,
        "length": length,
    }
    rates = {name: round(compute_preference_rate(gap), 4) for name, gap in gaps.items()}
    proxies = {
        "log_prob_change": float(np.mean(other - total)),
        "unlikely": float(np.mean(total - other > UNLIKELY)),
        "plausibility_change": float(-np.mean(plausibility)),
    }
    return rates | {name: round(value, 4) for name, value in proxies.items()}


def measure_classifiers(
    rows: Sequence[TextRow], names: Sequence[str] = CLASSIFIERS, seeds: Sequence[int] = SEEDS
) -> dict[str, float]:
    """Return the rates of classifiers trained on the rows of other images, the mean over several sets of folds."""
    groups = [row.group for row in rows]
    rates = {}
    for name in names:
        evidence = _build_evidence(name, rows)
        gaps = compute_repeated_gaps(evidence.features, groups, seeds, cost=evidence.cost)
        rates[name] = round(float(np.mean([compute_preference_rate(gap) for gap in gaps])), 4)
    return rates


def _build_evidence(name: str, rows: Sequence[TextRow]) -> Evidence:
    if name == SINGLE_WORDS:
        return Evidence(name, count_single_words(rows), cost=1.0)
    return build_classifier_evidence(name, [row.positive for row in rows], [row.negative for row in rows])


def count_single_words(rows: Sequence[TextRow]) -> csr_matrix:
    """Return counts of the words of the positives less those of the negatives, float64 (rows, words)."""
    columns: dict[str, int] = {}
    entries: list[tuple[int, int, float]] = []
    for number, row in enumerate(rows):
        for text, sign in ((row.positive, 1.0), (row.negative, -1.0)):
            words = _WORD.findall(text.lower())
            entries += ((number, columns.setdefault(word, len(columns)), sign) for word in words)
    row_of, column_of, signs = zip(*entries, strict=True)
    return csr_matrix((signs, (row_of, column_of)), shape=(len(rows), len(columns)))


def measure_rows(
    rows: Sequence[TextRow],
    models: HeldOutModels,
    classifiers: Sequence[str] = CLASSIFIERS,
    seeds: Sequence[int] = SEEDS,
) -> dict[str, float]:
    """Return all rates and proxies; nothing for fewer than `MIN_ROWS` rows."""
    if len(rows) < MIN_ROWS:
        return {}
    return measure_classifiers(rows, classifiers, seeds) | measure_fixed(rows, models)
