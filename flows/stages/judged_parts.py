"""What the stages that refine negatives share: the candidates of a part, and how verdicts on them are written."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import TRAINING_ONLY_FORMS
from pairwright.filters.scorers.image_groups import text_group
from pairwright.filters.scorers.text_scorers import CaptionCorpus
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

Facts = Mapping[str, Any]
ROWS = pl.Schema(dict.fromkeys(("id", "group", "positive", "negative", "type"), pl.String))
_IS_CANDIDATE = (pl.col("kind") == NEGATIVE) & ~pl.col("form").is_in(sorted(TRAINING_ONLY_FORMS))


def read_candidates(root: Path, stages: Sequence[str], part: str) -> pl.DataFrame:
    """Return the candidates of a part, stage by stage, as `rows_to_judge` does."""
    return pl.concat([ROWS.to_frame(), *rows_of([(root, part)], stages, candidates_path)])


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


def write_part(root: Path, stages: Sequence[str], part: str, verdicts: pl.DataFrame) -> tuple[list[Path], Facts]:
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


def summarize_parts(outputs: Sequence[Path], outcome: Facts, parts: Sequence[Facts]) -> JobResult:
    """Return the counts and facts of all parts, whose refinement is ``outcome`` (`Refinement.as_json`)."""
    refined_away: Counter[str] = Counter()
    for part in parts:
        refined_away.update(part["refined_away"])
    passing = sum(part["for_training"] for part in parts)
    facts = {**outcome, "for_training": passing, "refined_away": dict(sorted(refined_away.items()))}
    counts = Counts("negative", outcome["in"] + passing, outcome["kept"] + passing, outcome["rejected"])
    return JobResult(outputs, counts, facts)
