"""Stage ``refine``: hard negatives that text alone betrays are set aside.

A set operation: the texts of all candidates are judged at once, the captions of the pool train the scorers, and the
verdicts are written back part by part. Records are read twice, a part at a time: some KB each, they would not fit
into memory where their texts do. By Algorithm 1 of SugarCrepe, or against every blind attack, as the config
says. SHUFFLE rows, which are for training and betray themselves, pass by it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from pairwright.datasets.contents import type_of
from pairwright.datasets.exports.writing import TRAINING_FORMS
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.tables import ANNOTATIONS, PAIRS
from pairwright.filters.general import GeneralOptions, refine_generally
from pairwright.filters.groups import corpus_of, pair_group
from pairwright.filters.refinement import Refinement, RefineOptions, refine_rows
from pairwright.flows.layout import annotations_path, candidates_path, pairs_path, rejected_path
from pairwright.flows.receipts import Counts, Outcome
from pairwright.flows.sections import RefineSection
from pairwright.generators.balance import balanced
from pairwright.generators.tally import tallied_as


def refine_negatives(root: Path, stages: list[str], parts: list[str], section: RefineSection, seed: int) -> Outcome:
    """Refine the hard negatives that ``stages`` made; the unit is a negative that a generator kept.

    A negative is compared with its hard positive where it has one, else with the caption. SHUFFLE rows are kept, and
    counted as kept; ``for_training`` among the facts is their number. What else those stages made
    (a generator may make several kinds) is kept as it is, but for hard positives whose negatives all go.
    """
    groups: dict[str, str] = {}

    def noted() -> Iterator[Pair]:
        for part in parts:
            for pair in PAIRS.read(pairs_path(root, part)):
                groups[pair.key] = pair_group(pair)
                yield pair

    corpus = corpus_of(noted(), pool=True)

    def judge(rows: pl.DataFrame) -> Refinement:
        if section.method == "reference":
            return refine_rows(rows, corpus, reference_options(section, seed))
        return refine_generally(rows, corpus, general_options(section, seed))

    return refine_with(root, stages, parts, groups, judge)


def refine_with(
    root: Path,
    stages: list[str],
    parts: list[str],
    groups: Mapping[str, str],
    judge: Callable[[pl.DataFrame], Refinement],
) -> Outcome:
    """Refine as `refine_negatives`, by a judge of one's own.

    Args:
        root: the build directory.
        stages: whose candidates are judged.
        parts: of the pairs.
        groups: key of each pair to its group.
        judge: given the frame of `rows_to_judge`.
    """
    files = [(stage, part) for stage in stages for part in parts]
    frames, passing = [rows_to_judge([], groups)], 0
    starts = {}
    for file in files:
        rows = ANNOTATIONS.read(candidates_path(root, *file))
        starts[file] = sum(frame.height for frame in frames)
        frames.append(rows_to_judge(rows, groups))
        passing += sum(row.kind == "hard_negative" for row in rows) - frames[-1].height
    outcome = judge(pl.concat(frames))
    away: Counter[str] = Counter()
    for part in parts:
        removed: list[Annotation] = []
        for stage in stages:
            mine = _judged(ANNOTATIONS.read(candidates_path(root, stage, part)), outcome, starts[stage, part])
            mine = list(balanced(mine, {}))  # a positive whose negatives are gone has nothing to stand beside
            ANNOTATIONS.write([row for row in mine if row.status == "kept"], annotations_path(root, stage, part))
            gone = [row for row in mine if row.status == "rejected"]
            away.update(f"{stage}: {tallied_as(row)}" for row in gone)
            removed += gone
        ANNOTATIONS.write(removed, rejected_path(root, "refine", part))
    outputs = [annotations_path(root, *file) for file in files]
    outputs += [rejected_path(root, "refine", part) for part in parts]
    reasons = Counter(filter(None, outcome.reasons))
    kept = int(outcome.kept.sum()) + passing
    facts = {**outcome.as_json(), "for_training": passing, "refined_away": dict(sorted(away.items()))}
    counts = Counts("negative", len(outcome.kept) + passing, kept, dict(sorted(reasons.items())))
    return Outcome(outputs, counts, facts)


def rows_to_judge(rows: Sequence[Annotation], groups: Mapping[str, str]) -> pl.DataFrame:
    """Return the hard negatives among ``rows`` as attacks take them: id, group, positive, negative, type.

    SHUFFLE rows are left out. The hard positives that negatives name are to be among ``rows``.
    """
    beside = {row.id: row.text for row in rows if row.kind == "hard_positive"}
    entering = [row for row in rows if _enters(row)]
    return pl.DataFrame(
        {
            "id": [row.id for row in entering],
            "group": [groups[row.key] for row in entering],
            "positive": [beside.get(row.positive_id, row.source_text) for row in entering],
            "negative": [row.text for row in entering],
            "type": [type_of(row) for row in entering],
        },
        schema=dict.fromkeys(("id", "group", "positive", "negative", "type"), pl.String),
    )


def reference_options(section: RefineSection, seed: int) -> RefineOptions:
    """Return the options of Algorithm 1."""
    return RefineOptions(cells=section.cells, by_type=section.by_type, seed=seed)


def general_options(section: RefineSection, seed: int) -> GeneralOptions:
    """Return the options of the general refinement."""
    return GeneralOptions(target=section.target, min_keep=section.min_keep, by_type=section.by_type, seed=seed)


def _judged(rows: Sequence[Annotation], outcome: Refinement, start: int) -> list[Annotation]:
    """Return the rows of a file; those that were judged, the first as row ``start`` of ``outcome``, with its verdict."""
    entering = [number for number, row in enumerate(rows) if _enters(row)]
    gaps = outcome.gaps.drop("id").slice(start, len(entering)).rename(lambda name: f"{name}_gap").to_dicts()
    judged = list(rows)
    for place, (number, named) in enumerate(zip(entering, gaps, strict=True), start):
        row = rows[number]
        judged[number] = replace(
            row,
            status="kept" if outcome.kept[place] else "rejected",
            reason=outcome.reasons[place],
            scores={**row.scores, **{name: gap for name, gap in named.items() if gap == gap}},  # noqa: PLR0124 - not NaN
        )
    return judged


def _enters(row: Annotation) -> bool:
    return row.kind == "hard_negative" and row.form not in TRAINING_FORMS
