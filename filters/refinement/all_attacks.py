"""Adversarial refinement against all text-only attacks: fixed scorers, trained classifiers, and all of them combined.

Rows and results are those of `two_scorers.py`. Here any number of scorers take part, and the classifiers are trained
on the selected rows in each round until they are within the target (`rounds.py`). A dropped row has the evidence that
detected it as its reason (``detected_by_words``, ...), and the result has an upper bound (`balanced_subset.py`).

Limit: where nearly all rows are unbalanced in the same direction (every negative longer than its caption), no large
subset is balanced. Then the result does not hold, and ``advice`` names the scorer and what may help.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.suggestions import require_known
from pairwright.filters.attacks.accuracy import (
    MIN_GROUPS,
    MIN_ROWS,
    AttackChange,
    AttackSummary,
    PreferenceRates,
    SubsetEvaluator,
)
from pairwright.filters.attacks.evidence import Evidence, RowTexts, TransferOptions, collect_evidence
from pairwright.filters.attacks.fold_groups import merge_mirrored_groups
from pairwright.filters.attacks.registry import (
    CLASSIFIERS,
    COMBINED,
    MEANING,
    WORD_CLUSTERS,
    build_auxiliary_scorers,
    build_fixed_scorers,
    give_corpus,
)
from pairwright.filters.metrics.confidence_intervals import Z95
from pairwright.filters.refinement.balanced_subset import bound_balanced_rows
from pairwright.filters.refinement.grid_balancing import build_reason_ledger
from pairwright.filters.refinement.pair_selection import NOT_CHOSEN
from pairwright.filters.refinement.rounds import (
    SelectedSubset,
    SubsetRequirements,
    compute_scorer_goal,
    compute_transfer_goal,
    select_subset,
)
from pairwright.filters.refinement.two_scorers import ROW_COLUMNS, Refinement, check_rows
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, encode_names, normalize_text

TOO_FEW = "too_few_of_type"


@dataclass(frozen=True, slots=True)
class AllAttacksOptions:
    """Options of the refinement against all attacks.

    Attributes:
        target: folded accuracy that no attack may have on the kept rows, 0.5-1.
        min_keep: minimum share of the rows to keep, 0-1.
        by_type: balance each edit type by itself.
        seed: of the folds, and of the choice between rows of similar evidence.
        folds: of the cross-fitting.
        rounds: maximum number of rounds.
        without: names of attacks to skip.
        meaning: whether a classifier of MiniLM's sentence embeddings takes part.
        wording: names of these options, for the advice.
    """

    target: float = 0.52
    min_keep: float = 0.1
    by_type: bool = True
    seed: int = 0
    folds: int = 5
    rounds: int = 12
    without: tuple[str, ...] = ()
    meaning: bool = False
    wording: OptionNames = COMMAND_LINE


def refine_against_all_attacks(
    rows: pl.DataFrame,
    corpus: CaptionCorpus | None = None,
    options: AllAttacksOptions | None = None,
    scorers: Sequence[GapScorer] | None = None,
) -> Refinement:
    """Refine rows against all fixed scorers and classifiers.

    Args:
        rows: string columns ``id`` (unique), ``group``, ``positive``, ``negative``, ``type``; and ``slot``, equal for
            candidates of which at most one may be kept, if there are several.
        corpus: captions to train the fixed scorers on, with their groups; without, the positives of the rows.
        options: see `AllAttacksOptions`.
        scorers: additional fixed scorers.

    Raises:
        UsageError: a column is missing, ids repeat, or ``without`` names no attack or all of them.
        InputError: every caption of a corpus from elsewhere is under test.
    """
    options = options or AllAttacksOptions()
    built_in = [*build_fixed_scorers(corpus, options.folds), *build_auxiliary_scorers(corpus, options.folds)]
    scorers, classifiers = _select_scorers(
        [*built_in, *give_corpus(scorers or (), corpus, options.folds)], options.without
    )
    if options.meaning:
        classifiers = [*classifiers, MEANING]
    check_rows(rows)
    attacked = _AttackedRows.of(rows, by_type=options.by_type)
    evidence = collect_evidence(
        attacked.texts,
        scorers,
        options.seed,
        classifiers,
        _choose_transfer_options(corpus, attacked.texts.positives, options),
    )
    requirements = attacked.requirements(options)
    strata = attacked.texts.types if options.by_type else [""] * len(attacked.order)
    chosen = select_subset(evidence, _fold_groups(attacked.texts), strata, requirements, options.seed)
    return _build_refinement(attacked, evidence, chosen, requirements, options)


@dataclass(frozen=True, slots=True)
class _AttackedRows:
    """The rows under attack: those whose texts differ, of types with enough rows, sorted by id.

    Attributes:
        rows: columns of all rows, including those not under attack.
        slots: slot of each of all rows; its id where it has none.
        few: types with too few rows.
        order: positions of the rows under attack among all rows.
        texts: texts of the rows under attack.
    """

    rows: Mapping[str, list[str]]
    slots: list[str]
    few: set[str]
    order: list[int]
    texts: RowTexts

    @classmethod
    def of(cls, rows: pl.DataFrame, *, by_type: bool) -> "_AttackedRows":
        read = {name: rows[name].to_list() for name in ROW_COLUMNS}
        slots = rows["slot"].to_list() if "slot" in rows.columns else read["id"]
        pairs = enumerate(zip(read["positive"], read["negative"], strict=True))
        differing = [row for row, (true, false) in pairs if normalize_text(true) != normalize_text(false)]
        order = sorted(differing, key=read["id"].__getitem__)
        few = _find_small_types(read["type"], slots, order) if by_type else set()
        order = [row for row in order if read["type"][row] not in few]
        texts = RowTexts(*([read[name][row] for row in order] for name in ("positive", "negative", "group", "type")))
        return cls(read, slots, few, order, texts)

    @property
    def max_kept(self) -> int:
        """Maximum number of kept rows: one per slot."""
        return len({self.slots[row] for row in self.order})

    def requirements(self, options: AllAttacksOptions) -> SubsetRequirements:
        """Return the requirements of the subset."""
        min_rows = int(np.ceil(options.min_keep * self.max_kept))
        several = self.max_kept < len(self.order)
        slots = [self.slots[row] for row in self.order] if several else None
        return SubsetRequirements(options.target, min_rows, options.rounds, slots)

    def reasons(self, chosen: SelectedSubset, names: Sequence[str]) -> list[str]:
        """Return the reason of each of all rows, empty for kept rows; ``names`` are those of the evidence."""
        reasons = [TOO_FEW if kind in self.few else "identical" for kind in self.rows["type"]]
        for place, row in enumerate(self.order):
            reasons[row] = "" if chosen.kept[place] else f"detected_by_{names[chosen.detected_by[place]]}"
        return _keep_one_row_per_slot(reasons, self.slots, self.rows["id"])


def _choose_transfer_options(
    corpus: CaptionCorpus | None, positives: Sequence[str], options: AllAttacksOptions
) -> TransferOptions:
    """Return the goals of evidence against held-out scorers, and the captions for word clusters."""
    captions = corpus.captions if corpus else list(dict.fromkeys(positives))
    read_so_far = len(corpus.captions) if corpus else len(positives)
    goals = compute_scorer_goal(options.target), compute_transfer_goal(options.target, read_so_far)
    return TransferOptions(*goals, () if WORD_CLUSTERS in options.without else captions)


def _build_refinement(
    attacked: _AttackedRows,
    evidence: Mapping[str, Evidence],
    chosen: SelectedSubset,
    requirements: SubsetRequirements,
    options: AllAttacksOptions,
) -> Refinement:
    """Return the result of a selection: reasons, bounds, and accuracies before and after."""
    types, ids = attacked.rows["type"], attacked.rows["id"]
    reasons = attacked.reasons(chosen, list(evidence))
    gaps = {name: each.gaps for name, each in evidence.items() if each.gaps is not None}
    bounds = {name: bound_balanced_rows({name: gap}, requirements.target) for name, gap in gaps.items()}
    max_kept = attacked.max_kept
    counted = Counter(kind for kind, reason in zip(types, reasons, strict=True) if reason != NOT_CHOSEN)
    total, by_type = _summarize(evidence, attacked.texts, chosen, counted, options.seed)
    return Refinement(
        kept=np.array([not reason for reason in reasons], np.bool_),
        reasons=tuple(reasons),
        gaps=_align_gaps(gaps, attacked.order, ids),
        total=total,
        by_type=by_type,
        ledger=build_reason_ledger(reasons, types),
        rounds=len(chosen.rounds),
        bound=min(bound_balanced_rows(gaps, requirements.target) if gaps else max_kept, max_kept),
        holds=chosen.holds and bool(chosen.kept.any()),
        history=chosen.rounds,
        advice="" if chosen.holds else _write_advice(bounds, requirements, chosen, max_kept, options.wording),
    )


def _select_scorers(scorers: Sequence[GapScorer], without: Sequence[str]) -> tuple[list[GapScorer], list[str]]:
    names = [scorer.name for scorer in scorers]
    require_known("no attack", without, [*names, *CLASSIFIERS, WORD_CLUSTERS])
    if len(set(names)) != len(names) or {*names} & {*CLASSIFIERS, WORD_CLUSTERS, COMBINED}:
        raise UsageError(f"scorers need unique names that no other attack has; got: {', '.join(names)}")
    left = [scorer for scorer in scorers if scorer.name not in without]
    classifiers = [name for name in CLASSIFIERS if name not in without]
    if not left and not classifiers:
        raise UsageError("every attack is skipped. Keep at least one.")
    return left, classifiers


def _find_small_types(types: Sequence[str], slots: Sequence[str], rows: Sequence[int]) -> set[str]:
    # Types with too few rows to train and test an attack; none if they hold most rows, since the others would stand for
    # little of the set (of 50 captions, additions alone would be left, which length detects).
    size = Counter(kind for kind, _ in {(types[row], slots[row]) for row in rows})
    few = {kind for kind, number in size.items() if number < MIN_ROWS}
    return few if 2 * sum(size[kind] for kind in few) < size.total() else set()


def _keep_one_row_per_slot(reasons: Sequence[str], slots: Sequence[str], ids: Sequence[str]) -> list[str]:
    # One row of each slot has the reason of the slot: the kept one, else the first by id. The others are not chosen.
    speaks: dict[str, int] = {}
    for row in sorted(range(len(ids)), key=lambda row: (bool(reasons[row]), ids[row])):
        speaks.setdefault(slots[row], row)
    return [reason if speaks[slots[row]] == row else NOT_CHOSEN for row, reason in enumerate(reasons)]


def _fold_groups(texts: RowTexts) -> list[str]:
    return merge_mirrored_groups(texts.groups, texts.positives, texts.negatives)


def _summarize(
    evidence: Mapping[str, Evidence], texts: RowTexts, chosen: SelectedSubset, counted: Mapping[str, int], seed: int
) -> tuple[AttackSummary, dict[str, AttackSummary]]:
    names, kind = encode_names(texts.types)
    evaluator = SubsetEvaluator(evidence, _fold_groups(texts), kind, names)
    whole = np.ones(len(kind), np.bool_)
    before = evaluator.rates(whole, evaluator.gaps(whole, f"{seed} before"))
    total = AttackSummary(sum(counted.values()), int(chosen.kept.sum()), _compare_attacks(before, chosen.rates, 0))
    # The rates have no types when the rows were balanced in total: measure them here.
    after = (
        chosen.rates
        if len(next(iter(chosen.rates.values()))) == len(names) + 1
        else evaluator.rates(chosen.kept, evaluator.gaps(chosen.kept, f"{seed} types"))
    )
    by_type = {}
    for number, name in enumerate(names):
        inside = kind == number
        attacks = _compare_attacks(before, after, number + 1)
        by_type[name] = AttackSummary(counted[name], int(chosen.kept[inside].sum()), attacks)
    return total, by_type


def _compare_attacks(before: PreferenceRates, after: PreferenceRates, part: int) -> dict[str, AttackChange]:
    return {
        name: AttackChange(*(0.5 + abs(rates[name][part][0] - 0.5) for rates in (before, after))) for name in before
    }


def _align_gaps(gaps: Mapping[str, FloatArray], order: Sequence[int], ids: Sequence[str]) -> pl.DataFrame:
    columns = {name: np.full(len(ids), np.nan) for name in gaps}
    for name, gap in gaps.items():
        columns[name][order] = gap
    return pl.DataFrame({"id": pl.Series(ids, dtype=pl.String), **columns})


def _write_advice(
    bounds: Mapping[str, int], requirements: SubsetRequirements, chosen: SelectedSubset, rows: int, wording: OptionNames
) -> str:
    kept = int(chosen.kept.sum())
    tight = min(bounds, key=bounds.__getitem__, default="")
    if tight and bounds[tight] < max(requirements.min_rows, rows // 10):
        return (
            f"{tight} alone detects nearly all rows: at most {bounds[tight]:,} of {rows:,} rows can be kept at"
            f" {requirements.target:.0%}. Dropping rows cannot balance a set whose rows all favour one side: generate"
            f" negatives with {wording.flag('both_sides', 'under negatives')}, which edits the positive too."
        )
    if not chosen.conclusive:
        return (
            f"Too few rows or images to measure whether the set is balanced: {kept:,} rows are kept."
            f" At least {MIN_ROWS} kept rows of {MIN_GROUPS} images are needed."
        )
    smaller = wording.option("min_keep") + ("" if wording.section else " or --fix format")  # a config has no such key
    return (
        f"No subset of at least {requirements.min_rows:,} rows was found on which every attack is within"
        f" {requirements.target:.1%}. At chance level an attack on {kept:,} rows is within"
        f" {0.5 + Z95 / 2 / max(kept, 1) ** 0.5:.1%} in 19 of 20 sets: with fewer than 2,400 rows set a larger"
        f" {wording.option('target')}. A smaller {smaller} may help too."
    )
