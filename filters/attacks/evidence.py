"""The evidence that a text alone gives: what each attack on a set of rows has to go by.

A piece of *evidence* is either the gaps of a fixed scorer, whose answer on a row does not depend on which other rows
are kept, or the features of a classifier, which is trained anew on whatever is left. Both are odd: with positive and
negative exchanged each number changes its sign. That is what lets a set be balanced: when the kept rows' features
add up to about nothing, nothing linear can be learned from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairwright.datasets.progress import track
from pairwright.filters.attacks.registry import CLASSIFIERS, TRANSFER, WORD_CLUSTERS, classifier_features
from pairwright.filters.attacks.transfer_prior import SplitCorpusGaps, estimate_transfer
from pairwright.filters.attacks.word_clusters import cluster_differences
from pairwright.filters.scorers.text_scorers import CrossFittedScorer, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, encode_names

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

BANDS = 6


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one attack goes by.

    Attributes:
        name: of the attack.
        features: (n, d), odd in the exchange of positive and negative, mean squared row length 1 (or 0).
        gaps: of a fixed scorer, float64 (n,), NaN where it has none; None for a classifier.
        cost: inverse strength of the classifier's L2 penalty.
        silent: whether it is no attack of its own, only to be balanced (`foresight.py`).
        goals_met: whether it counts as balanced on all rows of each type as they are, where it has goals to transfer scorers
            to come (`auxiliary_evidence`, `foresight.py`); True where it has none.
    """

    name: str
    features: "Differences"
    gaps: FloatArray | None = None
    cost: float = 3.0
    balance_only: bool = False
    within_goals: bool = True

    def of(self, rows: npt.NDArray[np.bool_]) -> "Evidence":
        """Return what an attack goes by on a subset of the rows; goals are of all rows alone."""
        gaps = None if self.gaps is None else self.gaps[rows]
        return Evidence(self.name, self.features[rows], gaps, self.cost, balance_only=self.balance_only)


def classifier_evidence(name: str, positives: Sequence[str], negatives: Sequence[str]) -> Evidence:
    """Return what the classifier ``name``, one of ``CLASSIFIERS`` or ``MEANING``, reads in the rows."""
    return Evidence(name, scale_to_unit_length(classifier_features(name, positives, negatives)))


def scorer_evidence(name: str, gaps: FloatArray) -> Evidence:
    """Return the gaps of a fixed scorer as evidence: their sign, and the sign within each of six bands of size.

    Rows of each band are to be balanced too, so that no rule that weighs large gaps otherwise than small ones tells.

    Args:
        name: of the scorer.
        gaps: float64 (n,), NaN for no score, which counts as a tie.
    """
    return Evidence(name, scale_to_unit_length(_band_features(gaps, np.full(len(gaps), 0.5))), gaps)


def auxiliary_evidence(name: str, gaps: FloatArray, types: Sequence[str], expected_rate: float) -> Evidence:
    """Return the evidence of a scorer that has others of its kind, which nobody has seen, to be guarded against.

    It counts as balanced where the scorer prefers the positive in the share ``expected_rate`` of the rows; a type in which it
    already stands between ``expected_rate`` and its mirror image may stay as it is.

    Args:
        name: of the scorer.
        gaps: as of `scorer_evidence`.
        types: one a row.
        expected_rate: 0-1.
    """
    _, kind = encode_names(types)
    sign = np.sign(np.nan_to_num(gaps))
    scored, better = (np.bincount(kind, weights=each).astype(np.float64) for each in (sign != 0, sign > 0))
    share = np.where(scored > 0, better, 0.5) / np.maximum(scored, 1.0)
    goals = _clip_share(share, expected_rate)
    features = scale_to_unit_length(_band_features(gaps, goals[kind]))
    return Evidence(name, features, gaps, within_goals=bool(np.all(goals == share)))


def _clip_share(share: FloatArray, expected_rate: float) -> FloatArray:
    # The goal of each type: its share as it is, where that lies between the expected_rate and its mirror image.
    goals: FloatArray = (
        np.clip(share, min(expected_rate, 1.0 - expected_rate), expected_rate)
        if expected_rate > 0.5
        else np.full(len(share), expected_rate)
    )
    return goals


def scale_to_unit_length(features: "Differences") -> "Differences":
    """Return the features scaled such that the mean squared length of a row is 1."""
    mean = float(np.sum(features.data**2)) / max(features.shape[0], 1)
    return features / np.sqrt(mean) if mean else features


def _band_features(gaps: FloatArray, expected_rate: FloatArray) -> "Differences":
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
    """Rows as attacks see them, all of one length: the two texts, the group (image) and the type of the edit."""

    positives: Sequence[str]
    negatives: Sequence[str]
    groups: Sequence[str]
    types: Sequence[str]


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """What is balanced beside the attacks, so that others of their kind find as little.

    What the scorers that are trained on captions foresee of those to come (`foresight.py`).

    Attributes:
        expected_rate: as of `auxiliary_evidence`.
        foresee: share of the rows in which scorers to come shall be expected to prefer the positive, 0-1.
        captions: a classifier of the kinds of words that these tell takes part (`word_kinds.py`); none: it does not.
    """

    expected_rate: float
    target_share: float
    captions: Sequence[str] = ()


def collect_evidence(
    texts: RowTexts,
    scorers: Sequence[GapScorer],
    seed: int,
    classifiers: Sequence[str] = CLASSIFIERS,
    transfer: "TransferOptions | None" = None,
) -> Mapping[str, Evidence]:
    """Return the evidence of the scorers and classifiers on the rows, by name.

    Args:
        texts: the rows.
        scorers: fixed ones.
        seed: of the folds that scorers are cross-fitted over.
        classifiers: names among ``CLASSIFIERS``.
        transfer: what is to be balanced beside the attacks. Without: each scorer's gaps as they are.
    """

    def gaps(scorer: GapScorer) -> FloatArray:
        return scorer.gaps(texts.positives, texts.negatives, texts.groups, seed)

    found: dict[str, Evidence] = {}
    trained: dict[str, SplitCorpusGaps] = {}
    for scorer in track(scorers, "training text-only scorers", unit="scorers"):
        # Length is length: nobody has another.
        if transfer is None or not isinstance(scorer, CrossFittedScorer):
            found[scorer.name] = scorer_evidence(scorer.name, gaps(scorer))
            continue
        akin = [gaps(replace(scorer, half=half)) for half in (0, 1)]
        trained[scorer.name] = SplitCorpusGaps(gaps(scorer), *akin)
        found[scorer.name] = auxiliary_evidence(
            scorer.name, trained[scorer.name].whole, texts.types, transfer.expected_rate
        )
    for name in track(classifiers, "reading features", unit="classifiers"):
        found[name] = classifier_evidence(name, texts.positives, texts.negatives)
    if transfer is not None and transfer.captions:
        read = cluster_differences(texts.positives, texts.negatives, transfer.captions)
        found[WORD_CLUSTERS] = Evidence(WORD_CLUSTERS, scale_to_unit_length(read))
    if transfer is not None and trained:
        found[TRANSFER] = _transfer_evidence(trained, texts.types, transfer.target_share)
    return found


def _transfer_evidence(trained: Mapping[str, SplitCorpusGaps], types: Sequence[str], expected_rate: float) -> Evidence:
    from scipy.sparse import csr_matrix

    _, kind = encode_names(types)
    likely = estimate_transfer(trained, types)
    share = np.bincount(kind, weights=likely) / np.maximum(np.bincount(kind), 1)
    goals = _clip_share(share, expected_rate)
    away = likely - goals[kind]
    features = scale_to_unit_length(csr_matrix(away[:, np.newaxis]))
    return Evidence(TRANSFER, features, balance_only=True, within_goals=bool(np.all(goals == share)))
