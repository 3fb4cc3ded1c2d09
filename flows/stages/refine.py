"""Stage ``refine``: hard negatives that text alone betrays are set aside.

A set operation: all candidates are judged at once, the captions of the pool train the scorers, and the verdicts are written
back part by part. By Algorithm 1 of SugarCrepe a part is read and let go, and only numbers are kept of its rows
(`filters/refinement/out_of_core.py`); against every blind attack the texts of all candidates are in memory. SHUFFLE rows, which are for
training and betray themselves, pass by it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from pairwright.datasets.exports.writing import TRAINING_ONLY_FORMS
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.filters.refinement.all_attacks import AllAttacksOptions, refine_against_all_attacks
from pairwright.filters.refinement.out_of_core import OutOfCoreRefiner
from pairwright.filters.refinement.two_scorers import Refinement, RefineOptions
from pairwright.filters.scorers.image_groups import text_group
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.flows.config.sections import RefineSection
from pairwright.flows.stages.annotation_frames import (
    NEGATIVE,
    POSITIVE,
    count_by_name,
    reject_annotations,
    split_by_status,
    tally_name,
    type_name,
    with_scores,
)
from pairwright.flows.state.layout import annotations_path, candidates_path, pairs_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult

ROWS = pl.Schema(dict.fromkeys(("id", "group", "positive", "negative", "type"), pl.String))
_IS_CANDIDATE = (pl.col("kind") == NEGATIVE) & ~pl.col("form").is_in(sorted(TRAINING_ONLY_FORMS))


def refine_negatives(root: Path, stages: list[str], parts: list[str], section: RefineSection, seed: int) -> JobResult:
    """Refine the hard negatives that ``stages`` made; the unit is a negative that a generator kept.

    A negative is compared with its hard positive where it has one, else with the caption. SHUFFLE rows are kept, and
    counted as kept; ``training_only_rows`` among the facts is their number. What else those stages made
    (a generator may make several kinds) is kept as it is, but for hard positives whose negatives all go.
    """
    places = [(root, part) for part in parts]
    if section.method == "reference":
        with OutOfCoreRefiner(root) as reference:
            for place in places:
                reference.read_captions(captions_of(*place))
            for rows in rows_of(places, stages, candidates_path):
                reference.read_rows(rows)
            outcome = reference.refine(reference_options(section, seed))
    else:
        corpus = corpus_of_parts(places, pool=True)
        rows = pl.concat([ROWS.to_frame(), *rows_of(places, stages, candidates_path)])
        outcome = refine_against_all_attacks(rows, corpus, general_options(section, seed))
    return _written(root, stages, parts, outcome)


def refine_with(
    root: Path, stages: list[str], parts: list[str], judge: Callable[[pl.DataFrame], Refinement]
) -> JobResult:
    """Refine as `refine_negatives`, by a judge of one's own.

    Args:
        root: the build directory.
        stages: whose candidates are judged.
        parts: of the pairs.
        judge: given the frame of `rows_to_judge`.
    """
    rows = rows_of([(root, part) for part in parts], stages, candidates_path)
    return _written(root, stages, parts, judge(pl.concat([ROWS.to_frame(), *rows])))


def groups_of(root: Path, part: str) -> pl.DataFrame:
    """Return ``key`` and ``group`` (`groups.pair_group`) of each pair of a part, with ``caption`` and ``captions``."""
    pairs = PAIRS.read_frame(pairs_path(root, part)).select("key", "source_id", "image", "caption", "captions")
    rows = pairs.select("image", "source_id", "key", "caption").iter_rows()
    groups = [text_group(image or source, key, caption) for image, source, key, caption in rows]
    return pairs.select("key", pl.Series("group", groups, pl.String), "caption", "captions")


def captions_of(root: Path, part: str) -> pl.DataFrame:
    """Return ``group`` and ``caption`` of all captions of a part, other captions of an image among them."""
    every = pl.concat_list(pl.concat_list("caption"), "captions")
    return groups_of(root, part).select("group", caption=every).explode("caption", empty_as_null=False)


def corpus_of_parts(places: Sequence[tuple[Path, str]], *, pool: bool = False) -> CaptionCorpus:
    """Return all captions of parts, as (build directory, part), each once an image; as `groups.corpus_of`."""
    captions = pl.concat(captions_of(*place) for place in places).unique(maintain_order=True)
    return CaptionCorpus(captions["caption"].to_list(), captions["group"].to_list(), pool)


def rows_to_judge(annotations: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Return the hard negatives among ``annotations`` as attacks take them: id, group, positive, negative, type.

    SHUFFLE rows are left out.

    Args:
        annotations: among them the hard positives that negatives name.
        groups: columns ``key`` and ``group`` of all their pairs.
    """
    beside = annotations.filter(pl.col("kind") == POSITIVE).select(positive_id="id", beside="text")
    return (
        annotations.filter(_IS_CANDIDATE)
        .join(beside, on="positive_id", how="left", maintain_order="left")
        .join(groups.select("key", "group"), on="key", how="left", maintain_order="left")
        .select(
            "id",
            "group",
            positive=pl.coalesce("beside", "source_text"),
            negative="text",
            type=type_name(),
        )
    )


def reference_options(section: RefineSection, seed: int) -> RefineOptions:
    """Return the options of Algorithm 1."""
    return RefineOptions(cells=section.cells, by_type=section.by_type, seed=seed)


def general_options(section: RefineSection, seed: int) -> AllAttacksOptions:
    """Return the options of the general refinement."""
    return AllAttacksOptions(
        target=section.target,
        min_keep=section.min_keep,
        by_type=section.by_type,
        seed=seed,
        wording=OptionNames("under refine"),
    )


def rows_of(
    places: Sequence[tuple[Path, str]], stages: Sequence[str], file: Callable[[Path, str, str], Path]
) -> Iterator[pl.DataFrame]:
    """Yield the rows to judge (`rows_to_judge`) of each part, stage by stage.

    Args:
        places: (build directory, part).
        stages: that made them.
        file: where the annotations of a stage and part stand.
    """
    for root, part in places:
        groups = groups_of(root, part)
        for stage in stages:
            yield rows_to_judge(ANNOTATIONS.read_frame(file(root, stage, part)), groups)


def _written(root: Path, stages: list[str], parts: list[str], outcome: Refinement) -> JobResult:
    """Write what came of the rows of `rows_of`, part by part."""
    away: Counter[str] = Counter()
    start = passing = 0
    outputs: list[Path] = []
    for part in parts:
        removed = []
        for stage in stages:
            frame = ANNOTATIONS.read_frame(candidates_path(root, stage, part))
            judged = _judged(frame, outcome, start)
            entered = frame.select(_IS_CANDIDATE.sum()).item()
            start += entered
            passing += frame.select((pl.col("kind") == NEGATIVE).sum()).item() - entered
            kept, gone = split_by_status(judged)
            ANNOTATIONS.write_frame(kept, annotations_path(root, stage, part))
            outputs.append(annotations_path(root, stage, part))
            away.update(count_by_name(gone, pl.lit(f"{stage}: ") + tally_name()))
            removed.append(gone)
        ANNOTATIONS.write_frame(pl.concat(removed, rechunk=True), rejected_path(root, "refine", part))
        outputs.append(rejected_path(root, "refine", part))
    reasons = Counter(filter(None, outcome.reasons))
    kept_rows = int(outcome.kept.sum()) + passing
    facts = {**outcome.as_json(), "for_training": passing, "refined_away": dict(sorted(away.items()))}
    counts = Counts("negative", len(outcome.kept) + passing, kept_rows, dict(sorted(reasons.items())))
    return JobResult(outputs, counts, facts)


def _judged(frame: pl.DataFrame, outcome: Refinement, start: int) -> pl.DataFrame:
    """Return the rows of a file; those that were judged, the first as row ``start`` of ``outcome``, with its verdict."""
    entering = frame.filter(_IS_CANDIDATE)["id"]
    told = outcome.gaps.slice(start, len(entering)).rename(lambda name: name if name == "id" else f"{name}_gap")
    reasons = pl.Series("reason", outcome.reasons[start : start + len(entering)], pl.String)
    verdicts = pl.DataFrame([entering, reasons]).filter(pl.col("reason") != "")
    gaps = frame.select("id").join(told, on="id", how="left", maintain_order="left").drop("id")
    return reject_annotations(with_scores(frame, gaps.to_dict()), verdicts)
