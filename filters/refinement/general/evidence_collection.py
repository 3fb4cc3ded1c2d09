"""Steps that collect the evidence of all attacks on the rows under attack (`attacked_rows.py`).

1. `score_fold`: the gaps of all trained scorers on the rows of one fold, trained on all captions or on one half of them.
   `score_rows`: the evidence of a scorer that is not trained. `read_features`: that of a classifier.
2. `gather_scorers`: the evidence of the trained scorers, and the transfer estimate, from their gaps.

No step holds all texts: they are read some thousand at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.filters.attacks.evidence import (
    Evidence,
    build_auxiliary_evidence,
    build_classifier_evidence,
    build_scorer_evidence,
    build_transfer_evidence,
)
from pairwright.filters.attacks.registry import (
    CLASSIFIERS,
    COMBINED,
    MEANING,
    TRANSFER,
    WORD_CLUSTERS,
    build_auxiliary_scorers,
    build_fixed_scorers,
    load_scorer,
)
from pairwright.filters.attacks.transfer_prior import SplitCorpusGaps
from pairwright.filters.attacks.word_clusters import compute_cluster_differences
from pairwright.filters.refinement.general.attacked_rows import load_captions, load_texts
from pairwright.filters.refinement.general.evidence_files import save_evidence
from pairwright.filters.refinement.general.fold_texts import FoldTexts
from pairwright.filters.refinement.general.rounds import PlannedEvidence
from pairwright.filters.refinement.general.stored_words import CaptionSource
from pairwright.filters.refinement.part_arrays import map_array, save_array
from pairwright.filters.refinement.steps import Facts, Plan, Step, StepResult
from pairwright.filters.scorers.text_scorers import FOLDS, CrossFittedScorer, GapScorer, assign_folds, compute_gaps
from pairwright.generators.language.vocabulary import FloatArray, IntArray

HALVES = (0, 1)


@dataclass(frozen=True)
class AttackSet:
    """The attacks of a refinement.

    Attributes:
        without: names of attacks to skip.
        meaning: whether a classifier of MiniLM's sentence embeddings takes part.
        added: names of scorers to load (`registry.load_scorer`).
        scorers: more scorers.
    """

    without: tuple[str, ...] = ()
    meaning: bool = False
    added: tuple[str, ...] = ()
    scorers: tuple[GapScorer, ...] = field(default=(), repr=False)

    @property
    def all_scorers(self) -> list[GapScorer]:
        """All scorers, without their captions.

        Raises:
            UsageError: a name occurs twice, or ``without`` names no attack or all of them.
        """
        scorers = [
            *build_fixed_scorers(),
            *build_auxiliary_scorers(),
            *map(load_scorer, self.added),
            *self.scorers,
        ]
        names = [scorer.name for scorer in scorers]
        require_known("no attack", self.without, [*names, *CLASSIFIERS, WORD_CLUSTERS])
        if len(set(names)) != len(names) or {*names} & {*CLASSIFIERS, WORD_CLUSTERS, COMBINED}:
            raise UsageError(f"scorers need unique names that no other attack has; got: {', '.join(names)}")
        left = [scorer for scorer in scorers if scorer.name not in self.without]
        if not left and not self.classifiers:
            raise UsageError("every attack is skipped. Keep at least one.")
        return left

    @property
    def trained(self) -> list[CrossFittedScorer]:
        """The scorers that are trained on captions."""
        return [each for each in self.all_scorers if isinstance(each, CrossFittedScorer) and each.corpus is None]

    @property
    def classifiers(self) -> list[str]:
        """The names of the classifiers but that of word clusters."""
        return [*(name for name in CLASSIFIERS if name not in self.without), *([MEANING] if self.meaning else [])]

    def scorer(self, name: str) -> GapScorer:
        """Return a scorer by its name."""
        return next(each for each in self.all_scorers if each.name == name)


@dataclass(frozen=True)
class EvidencePlan:
    """Collects the evidence of a set of attacks.

    Attributes:
        attacks: the attacks.
        parts: names of the parts of rows and captions.
        source: where the captions are from.
        ordered: facts of `attacked_rows.order_rows`.
        goals: share of rows in which a fixed scorer, and in which a held-out one, is to prefer the positive.
        seed: of the folds.
    """

    attacks: AttackSet
    parts: tuple[str, ...]
    source: CaptionSource
    ordered: Facts
    goals: tuple[float, float]
    seed: int

    def collect(self) -> Plan[list[PlannedEvidence]]:
        """Plan the collection; the result is the evidence in its order, the transfer estimate last."""
        scorers = [each.name for each in self.attacks.all_scorers]
        trained = [each.name for each in self.attacks.trained]
        folds = 1 if self.source == "elsewhere" else min(FOLDS, self.ordered["groups"])
        clusters = [] if WORD_CLUSTERS in self.attacks.without else [WORD_CLUSTERS]
        classifiers = [*self.attacks.classifiers, *clusters]
        texts = (self.parts, self.source)
        yield [
            *(
                Step(_name_gaps(half, fold), score_fold, (*texts, self.attacks, half, fold, self.seed))
                for half in (None, *HALVES)
                for fold in range(folds if trained else 0)
            ),
            *(
                Step(f"evidence-{name}", score_rows, (self.parts, self.attacks, name, self.seed))
                for name in scorers
                if name not in trained
            ),
            *(Step(f"evidence-{name}", read_features, (*texts, name)) for name in classifiers),
        ]
        within: Mapping[str, bool] = {}
        if trained:
            (facts,) = yield [Step("scorers", gather_scorers, (*texts, tuple(trained), self.goals, self.seed))]
            within = facts["within_goals"]
        found = [PlannedEvidence(name, scorer=True, within_goals=within.get(name, True)) for name in scorers]
        found += [PlannedEvidence(name, scorer=False) for name in classifiers]
        if trained:
            found.append(PlannedEvidence(TRANSFER, scorer=False, balance_only=True, within_goals=within[TRANSFER]))
        return found


def score_fold(  # noqa: PLR0913, PLR0917 - a step's arguments
    folder: Path,
    parts: Sequence[str],
    source: CaptionSource,
    attacks: AttackSet,
    half: int | None,
    fold: int,
    seed: int,
) -> StepResult:
    """Store the gaps of all trained scorers on the rows of one fold, float64 (scorers, rows of the fold).

    Args:
        folder: of all steps.
        parts: names of all parts.
        source: where the captions are from.
        attacks: with the scorers.
        half: of the captions to train on; None: all.
        fold: its number; with captions from elsewhere there is one fold.
        seed: of the folds.
    """
    rows = np.flatnonzero(_assign_rows(folder, source, seed) == fold)
    texts = FoldTexts.load(folder, parts, source, rows)
    gaps = compute_gaps(attacks.trained, texts.training(half), len(rows), texts.batches)
    return [save_array(folder, _name_gaps(half, fold), np.stack(gaps))], {}


def score_rows(folder: Path, parts: Sequence[str], attacks: AttackSet, name: str, seed: int) -> StepResult:
    """Store the evidence of a scorer that is not trained."""
    texts = load_texts(folder, parts)
    gaps = attacks.scorer(name).gaps(texts.positives, texts.negatives, texts.groups, seed)
    return [save_evidence(folder, build_scorer_evidence(name, gaps))], {}


def read_features(folder: Path, parts: Sequence[str], source: CaptionSource, name: str) -> StepResult:
    """Store the evidence of a classifier."""
    texts = load_texts(folder, parts)
    if name != WORD_CLUSTERS:
        return [save_evidence(folder, build_classifier_evidence(name, texts.positives, texts.negatives))], {}
    captions = list(dict.fromkeys(texts.positives)) if source == "rows" else load_captions(folder, parts)
    read = compute_cluster_differences(texts.positives, texts.negatives, captions)
    return [save_evidence(folder, Evidence.of_features(name, read))], {}


def gather_scorers(  # noqa: PLR0913, PLR0917 - a step's arguments
    folder: Path,
    parts: Sequence[str],
    source: CaptionSource,
    names: Sequence[str],
    goals: tuple[float, float],
    seed: int,
) -> StepResult:
    """Store the evidence of the trained scorers and the transfer estimate; the facts are which are within their goals.

    Args:
        folder: of all steps.
        parts: names of all parts.
        source: where the captions are from.
        names: of the trained scorers.
        goals: as in `EvidencePlan`.
        seed: of the folds.
    """
    types = list(load_texts(folder, parts).types)
    whole, *halves = (
        _gather_folds(folder, half, len(names), _assign_rows(folder, source, seed)) for half in (None, *HALVES)
    )
    found = {
        name: build_auxiliary_evidence(name, gaps, types, goals[0]) for name, gaps in zip(names, whole, strict=True)
    }
    split: Mapping[str, SplitCorpusGaps] = {
        name: SplitCorpusGaps(*each) for name, each in zip(names, zip(whole, *halves, strict=True), strict=True)
    }
    found[TRANSFER] = build_transfer_evidence(split, types, goals[1])
    within = {name: each.within_goals for name, each in found.items()}
    return [save_evidence(folder, each) for each in found.values()], {"within_goals": within}


def _assign_rows(folder: Path, source: CaptionSource, seed: int) -> IntArray:
    # The fold of each row.
    groups = map_array(folder, "text-groups")
    return np.zeros(len(groups), np.int64) if source == "elsewhere" else assign_folds(groups, FOLDS, seed)


def _gather_folds(folder: Path, half: int | None, scorers: int, fold_of: IntArray) -> list[FloatArray]:
    # The gaps of each scorer on all rows, from those of each fold.
    gaps = np.full((scorers, len(fold_of)), np.nan)
    for fold in np.unique(fold_of).tolist():
        gaps[:, fold_of == fold] = map_array(folder, _name_gaps(half, fold))
    return list(gaps)


def _name_gaps(half: int | None, fold: int) -> str:
    return f"gaps-{'all' if half is None else f'half{half}'}-{fold}"
