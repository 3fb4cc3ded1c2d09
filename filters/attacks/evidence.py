"""Evidence of each attack on a set of rows: gaps of fixed scorers and features of classifiers.

Gaps of a fixed scorer do not depend on which other rows are kept; a classifier is trained again on every subset.
All features are odd: exchanging positive and negative changes the sign of each number. So a set can be balanced: when
the features of the kept rows add up to about zero, nothing linear can be learned from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairwright.datasets.progress import track
from pairwright.filters.attacks.registry import CLASSIFIERS, TRANSFER, compute_classifier_features
from pairwright.filters.attacks.text_classifier import factor_equal_rows
from pairwright.filters.attacks.text_features import FactoredDifferences
from pairwright.filters.attacks.transfer_prior import SplitCorpusGaps, estimate_transfer
from pairwright.filters.scorers.text_scorers import CrossFittedScorer, GapScorer, collect_unique_captions, cross_fit
from pairwright.generators.language.vocabulary import FloatArray, encode_names

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

BANDS = 6


@dataclass(frozen=True, eq=False)
class Evidence:
    """Features, and gaps where there are any, of one attack.

    Attributes:
        name: of the attack.
        features: (n, d), odd, with a mean squared row length of 1 (or 0).
        gaps: of a fixed scorer, float64 (n,), NaN without a score; None for a classifier.
        cost: inverse strength of the classifier's L2 penalty.
        balance_only: whether it is only balanced and is no attack itself (`transfer_prior.py`).
        within_goals: whether all rows of each type already meet the goals of `build_auxiliary_evidence` or
            `transfer_prior.py`;
            True for evidence without goals.
        factors: two matrices whose product is ``features``, if they have fewer numbers.
    """

    name: str
    features: "Differences"
    gaps: FloatArray | None = None
    cost: float = 3.0
    balance_only: bool = False
    within_goals: bool = True
    factors: FactoredDifferences | None = None

    @classmethod
    def of_features(cls, name: str, features: "Differences | FactoredDifferences") -> "Evidence":
        """Return the evidence of a classifier with these features, which are scaled."""
        if not isinstance(features, FactoredDifferences):
            return cls(name, scale_to_unit_length(features))
        product = features.product()
        scaled = FactoredDifferences(features.left / _root_mean_square(product), features.right)
        return cls(name, scale_to_unit_length(product), factors=scaled)

    def of(self, rows: npt.NDArray[np.bool_]) -> "Evidence":
        """Return the evidence on a subset of the rows."""
        gaps = None if self.gaps is None else self.gaps[rows]
        factors = None if self.factors is None else self.factors.of(rows)
        return Evidence(
            self.name, self.features[rows], gaps, self.cost, balance_only=self.balance_only, factors=factors
        )

    def trained_on(self, rows: npt.NDArray[np.bool_] | slice) -> "Differences | FactoredDifferences":
        """Return the features of some rows as a classifier reads them, with as few numbers as possible."""
        if self.factors is not None:
            return self.factors.of(rows)
        return self.features[rows] if self.gaps is None else factor_equal_rows(self.features[rows])


def build_classifier_evidence(name: str, positives: Sequence[str], negatives: Sequence[str]) -> Evidence:
    """Return the features of the classifier ``name`` on the rows as evidence."""
    return Evidence.of_features(name, compute_classifier_features(name, positives, negatives))


def build_scorer_evidence(name: str, gaps: FloatArray) -> Evidence:
    """Return the gaps of a fixed scorer as evidence: their sign, and the sign within each of six bands of size.

    Each band is balanced too, so that weighing large and small gaps differently detects nothing.

    Args:
        name: of the scorer.
        gaps: float64 (n,), NaN without a score, which counts as a tie.
    """
    return Evidence(name, scale_to_unit_length(_compute_band_features(gaps, np.full(len(gaps), 0.5))), gaps)


def build_auxiliary_evidence(name: str, gaps: FloatArray, types: Sequence[str], expected_rate: float) -> Evidence:
    """Return the evidence of a scorer that shall also protect against held-out scorers of the same kind.

    It counts as balanced where the scorer prefers the positive in the share ``expected_rate`` of the rows; a type whose
    share is between ``expected_rate`` and 1 - ``expected_rate`` may stay unchanged.

    Args:
        name: of the scorer.
        gaps: as in `build_scorer_evidence`.
        types: type of each row.
        expected_rate: 0-1.
    """
    _, kind = encode_names(types)
    sign = np.sign(np.nan_to_num(gaps))
    scored, preferred = (np.bincount(kind, weights=each).astype(np.float64) for each in (sign != 0, sign > 0))
    share = np.where(scored > 0, preferred, 0.5) / np.maximum(scored, 1.0)
    goals = _clip_share(share, expected_rate)
    features = scale_to_unit_length(_compute_band_features(gaps, goals[kind]))
    return Evidence(name, features, gaps, within_goals=bool(np.all(goals == share)))


def _clip_share(share: FloatArray, expected_rate: float) -> FloatArray:
    # The goal of a type is its present share where that is between the expected rate and its mirror image.
    goals: FloatArray = (
        np.clip(share, min(expected_rate, 1.0 - expected_rate), expected_rate)
        if expected_rate > 0.5
        else np.full(len(share), expected_rate)
    )
    return goals


def scale_to_unit_length(features: "Differences") -> "Differences":
    """Return the features, scaled to a mean squared row length of 1."""
    return features / _root_mean_square(features)


def _root_mean_square(features: "Differences") -> float:
    mean = float(np.sum(features.data**2)) / max(features.shape[0], 1)
    return float(np.sqrt(mean)) if mean else 1.0


def _compute_band_features(gaps: FloatArray, expected_rate: FloatArray) -> "Differences":
    from scipy.sparse import csr_matrix

    scored = np.flatnonzero(np.nan_to_num(gaps))
    size, sign = np.abs(gaps[scored]), np.sign(gaps[scored])
    edges = np.quantile(size, np.arange(1, BANDS) / BANDS) if len(scored) else np.zeros(0)
    band = 1 + np.searchsorted(edges, size)
    columns = np.concatenate([np.zeros(len(scored), np.int64), band])
    return csr_matrix(
        (np.tile(sign + 1.0 - 2.0 * expected_rate[scored], 2), (np.tile(scored, 2), columns)),
        shape=(len(gaps), BANDS + 1),
    )


@dataclass(frozen=True, eq=False)
class RowTexts:
    """Rows as attacks see them, all of one length: both texts, the group (image) and the edit type."""

    positives: Sequence[str]
    negatives: Sequence[str]
    groups: Sequence[str]
    types: Sequence[str]


def collect_evidence(
    texts: RowTexts, scorers: Sequence[GapScorer], seed: int, classifiers: Sequence[str] = CLASSIFIERS
) -> Mapping[str, Evidence]:
    """Return the evidence of the scorers and classifiers on the rows, by name.

    Args:
        texts: the rows.
        scorers: fixed scorers.
        seed: of the folds for cross-fitting.
        classifiers: names of classifiers of the table (`registry.py`).
    """
    # One corpus for all scorers that are trained on the rows: its texts are normalized once.
    rows = collect_unique_captions(texts.positives, texts.groups)
    trained = [
        replace(each, corpus=rows) if each.corpus is None else each
        for each in scorers
        if isinstance(each, CrossFittedScorer)
    ]
    cross_fitted = cross_fit(trained, texts.positives, texts.negatives, texts.groups, seed)
    gaps = dict(zip((each.name for each in trained), cross_fitted, strict=True))
    found: dict[str, Evidence] = {}
    for scorer in scorers:
        if scorer.name not in gaps:
            gaps[scorer.name] = scorer.gaps(texts.positives, texts.negatives, texts.groups, seed)
        found[scorer.name] = build_scorer_evidence(scorer.name, gaps[scorer.name])
    for name in track(classifiers, "reading features", unit="classifiers"):
        found[name] = build_classifier_evidence(name, texts.positives, texts.negatives)
    return found


def build_transfer_evidence(
    trained: Mapping[str, SplitCorpusGaps], types: Sequence[str], expected_rate: float
) -> Evidence:
    """Return the estimate of what held-out scorers prefer (`transfer_prior.py`) as evidence.

    Args:
        trained: gaps of each kind of scorer.
        types: type of each row.
        expected_rate: share of the rows in which held-out scorers are to prefer the positive, 0-1.
    """
    from scipy.sparse import csr_matrix

    _, kind = encode_names(types)
    likely = estimate_transfer(trained, types)
    share = np.bincount(kind, weights=likely) / np.maximum(np.bincount(kind), 1)
    goals = _clip_share(share, expected_rate)
    away = likely - goals[kind]
    features = scale_to_unit_length(csr_matrix(away[:, np.newaxis]))
    return Evidence(TRANSFER, features, balance_only=True, within_goals=bool(np.all(goals == share)))
