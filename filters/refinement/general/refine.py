"""General method of refinement: against all text-only attacks, which are fixed scorers, trained classifiers, and all combined.

Rows and results are those of `reference/refine.py`. Here any number of scorers take part, and the classifiers are trained
on the selected rows in each round until they are within the target (`rounds.py`). A dropped row has the evidence that
detected it as its reason (``detected_by_words``, ...), and the result has an upper bound (`balanced_subset.py`).

Limit: where nearly all rows are unbalanced in the same direction (every negative longer than its caption), no large
subset is balanced. Then the result does not hold, and ``advice`` names the scorer and what may help.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.filters.attacks.accuracy import (
    MIN_GROUPS,
    MIN_ROWS,
    AttackChange,
    AttackSummary,
    PreferenceRates,
)
from pairwright.filters.metrics.confidence_intervals import Z95
from pairwright.filters.refinement.defaults import DEFAULT_MIN_KEEP, DEFAULT_ROUNDS, DEFAULT_TARGET
from pairwright.filters.refinement.general.attacked_rows import order_rows, read_ids, read_reasons, store_texts
from pairwright.filters.refinement.general.evidence_collection import AttackSet, EvidencePlan
from pairwright.filters.refinement.general.evidence_files import load_gaps
from pairwright.filters.refinement.general.round_steps import load_subset
from pairwright.filters.refinement.general.rounds import (
    JudgedSubset,
    PlannedEvidence,
    PlannedRows,
    SubsetRequirements,
    SubsetSearch,
    compute_scorer_goal,
    compute_transfer_goal,
)
from pairwright.filters.refinement.general.stored_words import CaptionSource
from pairwright.filters.refinement.one_per_caption import NOT_CHOSEN
from pairwright.filters.refinement.result import Refinement, RefinementSummary, build_reason_ledger
from pairwright.filters.refinement.steps import Facts, Plan, Step, StepResult, repeat, take_steps, take_together
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer

MAX_ROWS_TOGETHER = 500_000
"""Up to so many rows all rounds are one step, with some 2 KB of memory a row: some 40 groups of steps follow one another, and
each would wait for workers, of which the chain of the longest steps keeps three busy."""
_PART = "00000"
_CAPTIONS = pl.Schema({"group": pl.String, "caption": pl.String})


@dataclass(frozen=True, slots=True)
class AllAttacksOptions:
    """Options of the refinement against all attacks.

    Attributes:
        target: folded accuracy that no attack may have on the kept rows, 0.5-1.
        min_keep: minimum share of the rows to keep, 0-1.
        by_type: balance each edit type by itself.
        seed: of the folds, and of the choice between rows of similar evidence.
        rounds: maximum number of rounds.
        without: names of attacks to skip.
        meaning: whether a classifier of MiniLM's sentence embeddings takes part.
        added: names of additional fixed scorers to load (`registry.load_scorer`).
        wording: names of these options, for the advice.
    """

    target: float = DEFAULT_TARGET
    min_keep: float = DEFAULT_MIN_KEEP
    by_type: bool = True
    seed: int = 0
    rounds: int = DEFAULT_ROUNDS
    without: tuple[str, ...] = ()
    meaning: bool = False
    added: tuple[str, ...] = ()
    wording: OptionNames = COMMAND_LINE

    def requirements(self, max_kept: int) -> SubsetRequirements:
        """Return the requirements of the subset, given the maximum number of kept rows."""
        return SubsetRequirements(self.target, int(np.ceil(self.min_keep * max_kept)), self.rounds)


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
    source: CaptionSource = "rows" if corpus is None else "pool" if corpus.pool else "elsewhere"
    captions = CaptionCorpus([], []) if corpus is None else corpus
    named = pl.DataFrame({"group": captions.groups, "caption": captions.captions}, _CAPTIONS)
    with TemporaryDirectory(prefix="pairwright-refine-") as temporary:
        folder = Path(temporary)
        store_texts(folder, _PART, named, rows)
        refined = take_steps(folder, plan_refinement((_PART,), options, source, tuple(scorers or ())))
        verdicts, _ = refined.read_verdicts(folder, _PART)
    reasons = verdicts["reason"].to_list()
    if refined.ordered["slots"]:
        reasons = _keep_one_row_per_slot(reasons, rows["slot"].to_list(), rows["id"].to_list())
    summary = refined.count(Counter(zip(rows["type"], reasons, strict=True)))
    return Refinement(
        kept=np.array([not reason for reason in reasons], np.bool_),
        reasons=tuple(reasons),
        gaps=verdicts.drop("reason"),
        **{each.name: getattr(summary, each.name) for each in fields(summary)},
    )


def plan_refinement(
    parts: tuple[str, ...], options: AllAttacksOptions, source: CaptionSource, scorers: tuple[GapScorer, ...] = ()
) -> Plan["AttackedParts"]:
    """Plan the refinement of rows that `attacked_rows.store_texts` stored.

    Args:
        parts: names of all parts.
        options: of the refinement.
        source: where the captions are from.
        scorers: additional fixed scorers.
    """
    attacks = AttackSet(options.without, options.meaning, options.added, scorers)
    _ = attacks.all_scorers  # raises errors of the names
    (ordered,) = yield [Step("order", order_rows, (parts, options.by_type, source))]
    read = ordered["number"] if source == "rows" else ordered["captions"]
    goals = compute_scorer_goal(options.target), compute_transfer_goal(options.target, read)
    collected = yield from EvidencePlan(attacks, parts, source, ordered, goals, options.seed).collect()
    rows = PlannedRows(ordered["number"], ordered["strata"], ordered["kinds"], ordered["slots"])
    requirements = options.requirements(ordered["max_kept"])
    search = SubsetSearch(rows, tuple(collected), requirements, options.seed)
    if ordered["number"] > MAX_ROWS_TOGETHER:
        judged = yield from search.judge()
    else:
        (taken,) = yield [Step("rounds", take_rounds, (search,), multi_core=True)]
        judged = repeat(search.judge(), taken)
    return AttackedParts(parts, options, ordered, tuple(collected), judged)


def take_rounds(folder: Path, search: SubsetSearch) -> StepResult:
    """Take all steps of a search; the facts are those of `take_together`."""
    return take_together(folder, search.judge())


@dataclass(frozen=True)
class AttackedParts:
    """The result of a plan (`result.RefinedParts`): which rows are kept, in files.

    Attributes:
        parts: names of all parts.
        options: of the refinement.
        ordered: facts of `attacked_rows.order_rows`.
        evidence: of each attack.
        judged: the selected subset, and what attacks find in it.
    """

    parts: tuple[str, ...]
    options: AllAttacksOptions
    ordered: Facts
    evidence: tuple[PlannedEvidence, ...]
    judged: JudgedSubset

    def read_verdicts(self, folder: Path, part: str) -> tuple[pl.DataFrame, Mapping[str, Any]]:
        """Return the verdicts on a part; and its rows by type and reason, which is empty for kept rows."""
        rows, start = read_ids(folder, part), sum(self.ordered["rows"][: self.parts.index(part)])
        subset, names = load_subset(folder, self.judged.selected.measured.subset), [each.name for each in self.evidence]
        places, reasons = read_reasons(folder, rows["type"], start, self.ordered["few"], subset, names)
        gaps = {each.name: np.append(load_gaps(folder, each.name), np.nan) for each in self.evidence if each.scorer}
        counted: dict[str, Counter[str]] = {}
        for kind, reason in zip(rows["type"], reasons, strict=True):
            counted.setdefault(kind, Counter())[reason] += 1
        verdicts = rows.select("id", pl.Series("reason", reasons, pl.String))
        return verdicts.with_columns(pl.Series(name, gap[places]) for name, gap in gaps.items()), {
            kind: dict(reasons) for kind, reasons in counted.items()
        }

    def summarize(self, counted: Sequence[Mapping[str, Any]]) -> dict[str, object]:
        """Return `Refinement.as_json`, given the counts of all parts."""
        counts: Counter[tuple[str, str]] = Counter()
        rejected: Counter[str] = Counter()
        for part in counted:
            for kind, reasons in part.items():
                for reason, number in reasons.items():
                    counts[kind, reason] += number
                    rejected[reason] += number if reason else 0
        return self.count(counts).describe(+rejected)

    def count(self, counts: Mapping[tuple[str, str], int]) -> RefinementSummary:
        """Return the numbers of the refinement, given the number of all rows of each type and reason."""
        judged, selected, max_kept = self.judged, self.judged.selected, self.ordered["max_kept"]
        counted: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        for (kind, reason), number in counts.items():
            counted[kind] += number if reason != NOT_CHOSEN else 0
            kept[kind] += number if not reason else 0
        by_type = {
            name: AttackSummary(counted[name], kept[name], _compare_attacks(judged.before, judged.after, place))
            for place, name in enumerate(self.ordered["kinds"], 1)
        }
        after = _compare_attacks(judged.before, selected.measured.rates, 0)
        return RefinementSummary(
            total=AttackSummary(counted.total(), kept.total(), after),
            by_type=by_type,
            ledger=build_reason_ledger(counts),
            rounds=len(selected.rounds),
            bound=min(judged.bounds[""], max_kept),
            holds=selected.holds and bool(kept.total()),
            history=selected.rounds,
            advice="" if selected.holds else _write_advice(judged, kept.total(), max_kept, self.options),
        )


def _keep_one_row_per_slot(reasons: Sequence[str], slots: Sequence[str], ids: Sequence[str]) -> list[str]:
    # One row of each slot has the reason of the slot: the kept one, else the first by id. The others are not chosen.
    speaks: dict[str, int] = {}
    for row in sorted(range(len(ids)), key=lambda row: (bool(reasons[row]), ids[row])):
        speaks.setdefault(slots[row], row)
    return [reason if speaks[slots[row]] == row else NOT_CHOSEN for row, reason in enumerate(reasons)]


def _compare_attacks(before: PreferenceRates, after: PreferenceRates, part: int) -> dict[str, AttackChange]:
    return {
        name: AttackChange(*(0.5 + abs(rates[name][part][0] - 0.5) for rates in (before, after))) for name in before
    }


def _write_advice(judged: JudgedSubset, kept: int, rows: int, options: AllAttacksOptions) -> str:
    requirements, wording = options.requirements(rows), options.wording
    bounds = {name: bound for name, bound in judged.bounds.items() if name}
    tight = min(bounds, key=bounds.__getitem__, default="")
    if tight and bounds[tight] < max(requirements.min_rows, rows // 10):
        return (
            f"{tight} alone detects nearly all rows: at most {bounds[tight]:,} of {rows:,} rows can be kept at"
            f" {requirements.target:.0%}. Dropping rows cannot balance a set whose rows all favour one side: generate"
            f" negatives with {wording.flag('both_sides', 'under negatives')}, which edits the positive too."
        )
    measured = judged.selected.measured
    if not measured.is_large_enough:
        return (
            "Too few rows or images to measure whether the set is balanced:"
            f" {kept:,} rows are kept, whose images form {count_phrase(measured.groups, 'group')}."
            f" At least {MIN_ROWS} rows in {MIN_GROUPS} groups are needed. Images form one group where a row of one has"
            " the texts of a row of the other, exchanged: refine such rows (yes or no to one question) separately."
        )
    smaller = wording.option("min_keep") + ("" if wording.section else " or --fix format")  # a config has no such key
    return (
        f"No subset of at least {requirements.min_rows:,} rows was found on which every attack is within"
        f" {requirements.target:.1%}. At chance level an attack on {kept:,} rows is within"
        f" {0.5 + Z95 / 2 / max(kept, 1) ** 0.5:.1%} in 19 of 20 sets: with fewer than 2,400 rows set a larger"
        f" {wording.option('target')}. A smaller {smaller} may help too."
    )
