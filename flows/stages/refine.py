"""Stage ``refine``: rejects hard negatives that a text-only model can detect.

All candidates are judged as one set; the captions of the pool train the scorers, and the verdicts are written part by
part. Method ``reference`` (SugarCrepe, Algorithm 1) has jobs of bounded memory, most of them for a part
(`filters/refinement/out_of_core.py`); its files in ``refinement/`` let a killed build resume. Method ``general`` is one
job that holds the texts of all candidates in memory. SHUFFLE rows, which are for training only and easy to detect, are
kept without being judged.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import TRAINING_ONLY_FORMS
from pairwright.filters.attacks.registry import MEANING, fingerprint_scorers, load_scorer
from pairwright.filters.refinement.all_attacks import AllAttacksOptions, refine_against_all_attacks
from pairwright.filters.refinement.cell_quotas import (
    Grids,
    choose_grids,
    count_rows,
    limit_rows,
    list_cells,
    read_verdicts,
    sum_verdicts,
)
from pairwright.filters.refinement.out_of_core import count_part, encode_part, fit_fold, score_part
from pairwright.filters.refinement.two_scorers import Refinement, RefineOptions
from pairwright.filters.scorers.image_groups import text_group
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
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
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.refine_folds import FOLDER, fold_jobs, step
from pairwright.flows.state.layout import annotations_path, candidates_path, pairs_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

Facts = Mapping[str, Any]
ROWS = pl.Schema(dict.fromkeys(("id", "group", "positive", "negative", "type"), pl.String))
_IS_CANDIDATE = (pl.col("kind") == NEGATIVE) & ~pl.col("form").is_in(sorted(TRAINING_ONLY_FORMS))


def refine_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``refine`` in a full build."""
    config = run.config
    if config.refine and config.refine.method == "reference":
        return _reference_jobs(run, reference_options(config.refine, config.seed))
    args = (refined_stages(config), run.parts, config.refine, config.seed)
    return [run.job(refine_negatives, *args, state=scorers_state(config.refine))]


def _reference_jobs(run: "StageRun", options: RefineOptions) -> "StageJobs":
    """Yield the steps of `filters/refinement/out_of_core.py`; the last job sums up."""
    stages, parts = refined_stages(run.config), run.parts
    texts = yield [run.job(encode_texts, stages, part, part=f"texts-{part}") for part in parts]
    assigned = yield from fold_jobs(run, options, texts)
    counts = yield [run.job(count_words, part, part=f"counts-{part}", after=[assigned[part]]) for part in parts]
    models = yield [
        run.job(fit_models, parts, fold, part=f"fold-{fold}", after=counts) for fold in range(options.folds)
    ]
    fitted = [fold for fold, receipt in enumerate(models) if receipt.outputs]
    grids = choose_grids((receipt.facts["rows"] for receipt in counts), fitted, options)
    gaps = yield [
        run.job(score_texts, part, fitted, grids, options, part=f"gaps-{part}", after=models) for part in parts
    ]
    (limits,) = yield [run.job(limit_cells, parts, part="balance", after=gaps)]
    written = yield [run.job(write_verdicts, stages, part, grids, options, part=part, after=[limits]) for part in parts]
    return [run.job(sum_up, [dict(receipt.facts) for receipt in written], after=written)]


def encode_texts(root: Path, stages: list[str], part: str) -> JobResult:
    """Store the captions and the candidates of a part as numbers; the fact is their number."""
    captions = captions_of(root, part)
    rows = pl.concat([ROWS.to_frame(), *rows_of([(root, part)], stages, candidates_path)])
    return step(encode_part(root / FOLDER, part, captions, rows), {"texts": captions.height + rows.height})


def count_words(root: Path, part: str) -> JobResult:
    """Count the words of the captions of a part, and its rows."""
    return step(count_part(root / FOLDER, part), {"rows": count_rows(root / FOLDER, part)})


def fit_models(root: Path, parts: list[str], fold: int) -> JobResult:
    """Fit the models that judge the rows of a fold."""
    return step(fit_fold(root / FOLDER, parts, fold))


def score_texts(root: Path, part: str, folds: list[int], grids: Grids, options: RefineOptions) -> JobResult:
    """Score the candidates of a part by the models of ``folds``, and place them in the cells of their grid."""
    folder = root / FOLDER
    return step([*score_part(folder, part, folds), list_cells(folder, part, grids, options)])


def limit_cells(root: Path, parts: list[str]) -> JobResult:
    """Decide how many candidates of each cell are kept."""
    return step(limit_rows(root / FOLDER, parts))


def write_verdicts(root: Path, stages: list[str], part: str, grids: Grids, options: RefineOptions) -> JobResult:
    """Write the kept and the rejected candidates of a part."""
    verdicts, counts = read_verdicts(root / FOLDER, part, grids, options)
    outputs, facts = _write_part(root, stages, part, verdicts)
    return JobResult(outputs, Counts("negative"), {**facts, "verdicts": counts})


def sum_up(root: Path, parts: list[dict[str, Any]]) -> JobResult:  # noqa: ARG001 - a job's
    """Return the counts and the facts of the stage; the unit is a negative that a generator kept."""
    return _summary([], sum_verdicts([part["verdicts"] for part in parts]), parts)


def refine_negatives(root: Path, stages: list[str], parts: list[str], section: "RefineSection", seed: int) -> JobResult:
    """Refine the hard negatives of ``stages`` by method ``general``; the unit is a negative that a generator kept.

    A negative is compared with its hard positive if it has one, else with the caption. SHUFFLE rows are counted as kept;
    the fact ``for_training`` is their number. Annotations of other kinds are kept, except hard positives whose negatives
    are all rejected.
    """
    corpus = corpus_of_parts([(root, part) for part in parts], pool=True)
    scorers = added_scorers(section)

    def judge(rows: pl.DataFrame) -> Refinement:
        return refine_against_all_attacks(rows, corpus, general_options(section, seed), scorers)

    return refine_with(root, stages, parts, judge)


def refine_with(
    root: Path, stages: list[str], parts: list[str], judge: Callable[[pl.DataFrame], Refinement]
) -> JobResult:
    """Refine like `refine_negatives`, with the verdicts of ``judge``.

    Args:
        root: the build directory.
        stages: whose candidates are judged.
        parts: of the pairs.
        judge: takes the frame of `rows_to_judge`.
    """
    of_parts = [pl.concat([ROWS.to_frame(), *rows_of([(root, part)], stages, candidates_path)]) for part in parts]
    outcome = judge(pl.concat([ROWS.to_frame(), *of_parts]))
    verdicts = outcome.gaps.with_columns(reason=pl.Series(outcome.reasons, dtype=pl.String))
    outputs, facts = [], []
    start = 0
    for part, rows in zip(parts, of_parts, strict=True):
        written, found = _write_part(root, stages, part, verdicts.slice(start, rows.height))
        outputs += written
        facts.append(found)
        start += rows.height
    return _summary(outputs, outcome.as_json(), facts)


def groups_of(root: Path, part: str) -> pl.DataFrame:
    """Return ``key`` and ``group`` (`image_groups.text_group`) of each pair of a part, with ``caption`` and ``captions``."""
    pairs = PAIRS.read_frame(pairs_path(root, part)).select("key", "source_id", "image", "caption", "captions")
    rows = pairs.select("image", "source_id", "key", "caption").iter_rows()
    groups = [text_group(image or source, key, caption) for image, source, key, caption in rows]
    return pairs.select("key", pl.Series("group", groups, pl.String), "caption", "captions")


def captions_of(root: Path, part: str) -> pl.DataFrame:
    """Return ``group`` and ``caption`` of all captions of a part, including the other captions of its images."""
    every = pl.concat_list(pl.concat_list("caption"), "captions")
    return groups_of(root, part).select("group", caption=every).explode("caption", empty_as_null=False)


def corpus_of_parts(places: Sequence[tuple[Path, str]], *, pool: bool = False) -> CaptionCorpus:
    """Return the captions of parts, given as (build directory, part), without repetitions for an image."""
    captions = pl.concat(captions_of(*place) for place in places).unique(maintain_order=True)
    return CaptionCorpus(captions["caption"].to_list(), captions["group"].to_list(), pool)


def rows_to_judge(annotations: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Return the hard negatives among ``annotations`` but SHUFFLE rows: id, group, positive, negative, type.

    Args:
        annotations: with the hard positives that negatives name.
        groups: columns ``key`` and ``group`` of all their pairs.
    """
    positives = annotations.filter(pl.col("kind") == POSITIVE).select(positive_id="id", positive="text")
    return (
        annotations.filter(_IS_CANDIDATE)
        .join(positives, on="positive_id", how="left", maintain_order="left")
        .join(groups.select("key", "group"), on="key", how="left", maintain_order="left")
        .select(
            "id",
            "group",
            positive=pl.coalesce("positive", "source_text"),
            negative="text",
            type=type_name(),
        )
    )


def reference_options(section: "RefineSection", seed: int) -> RefineOptions:
    """Return the options of method ``reference``."""
    return RefineOptions(cells=section.cells, by_type=section.by_type, seed=seed)


def general_options(section: "RefineSection", seed: int) -> AllAttacksOptions:
    """Return the options of method ``general``."""
    return AllAttacksOptions(
        target=section.target,
        min_keep=section.min_keep,
        by_type=section.by_type,
        seed=seed,
        meaning=MEANING in section.add_attacks,
        wording=OptionNames("under refine"),
    )


def added_scorers(section: "RefineSection") -> list[GapScorer]:
    """Return the scorers that ``add_attacks`` names, loaded."""
    return [load_scorer(name) for name in section.add_attacks if name != MEANING]


def scorers_state(section: "RefineSection | None") -> str:
    """Return a text that changes when a scorer of another package changes."""
    return fingerprint_scorers(section.add_attacks) if section else ""


def rows_of(
    places: Sequence[tuple[Path, str]], stages: Sequence[str], file: Callable[[Path, str, str], Path]
) -> Iterator[pl.DataFrame]:
    """Yield the rows to judge (`rows_to_judge`) of each part, stage by stage.

    Args:
        places: (build directory, part).
        stages: that made the rows.
        file: returns the file of the annotations of a stage and part.
    """
    for root, part in places:
        groups = groups_of(root, part)
        for stage in stages:
            yield rows_to_judge(ANNOTATIONS.read_frame(file(root, stage, part)), groups)


def _write_part(root: Path, stages: Sequence[str], part: str, verdicts: pl.DataFrame) -> tuple[list[Path], Facts]:
    """Write the kept and the rejected rows of a part.

    Args:
        root: the build directory.
        stages: that made the rows.
        part: of the pairs.
        verdicts: ``id``, ``reason`` and one gap per scorer of the rows of `rows_to_judge`, stage by stage.

    Returns:
        The files, and the facts ``for_training`` and ``refined_away``.
    """
    refined_away: Counter[str] = Counter()
    start = passing = 0
    removed, outputs = [], []
    for stage in stages:
        frame = ANNOTATIONS.read_frame(candidates_path(root, stage, part))
        entering = frame.select(_IS_CANDIDATE.sum()).item()
        passing += frame.select((pl.col("kind") == NEGATIVE).sum()).item() - entering
        kept, gone = split_by_status(_judged(frame, verdicts.slice(start, entering)))
        start += entering
        ANNOTATIONS.write_frame(kept, annotations_path(root, stage, part))
        outputs.append(annotations_path(root, stage, part))
        refined_away.update(count_by_name(gone, pl.lit(f"{stage}: ") + tally_name()))
        removed.append(gone)
    ANNOTATIONS.write_frame(pl.concat(removed, rechunk=True), rejected_path(root, "refine", part))
    return [*outputs, rejected_path(root, "refine", part)], {
        "for_training": passing,
        "refined_away": dict(refined_away),
    }


def _judged(frame: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a file with their verdicts."""
    gaps = verdicts.drop("reason").rename(lambda name: name if name == "id" else f"{name}_gap")
    scores = frame.select("id").join(gaps, on="id", how="left", maintain_order="left").drop("id")
    rejected = verdicts.select("id", "reason").filter(pl.col("reason") != "")
    return reject_annotations(with_scores(frame, scores.to_dict()), rejected)


def _summary(outputs: Sequence[Path], outcome: Facts, parts: Sequence[Facts]) -> JobResult:
    """Return the counts and facts of all parts, whose refinement is ``outcome`` (`Refinement.as_json`)."""
    refined_away: Counter[str] = Counter()
    for part in parts:
        refined_away.update(part["refined_away"])
    passing = sum(part["for_training"] for part in parts)
    facts = {**outcome, "for_training": passing, "refined_away": dict(sorted(refined_away.items()))}
    counts = Counts("negative", outcome["in"] + passing, outcome["kept"] + passing, outcome["rejected"])
    return JobResult(outputs, counts, facts)
