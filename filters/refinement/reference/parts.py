"""Parts of a pool in the reference method (`plan.py`): encoding of their texts, word statistics, and scores of their rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.refinement.forms import PartForms
from pairwright.filters.refinement.part_arrays import map_arrays, map_columns, save_array, save_mapped
from pairwright.filters.refinement.reference.cell_quotas import SCORERS
from pairwright.filters.refinement.reference.fold_assignment import REPEATED
from pairwright.filters.refinement.reference.fold_sums import save_counts
from pairwright.filters.refinement.reference.language_models import (
    EncodedTexts,
    TextModels,
    count_captions,
    folds_path,
    texts_path,
)
from pairwright.filters.refinement.rows import check_columns, hash_ids
from pairwright.filters.scorers.text_scorers import DECIMALS


def encode_part(folder: Path, part: str, captions: pl.DataFrame, rows: pl.DataFrame) -> list[Path]:
    """Store the texts of a part and return the files.

    Args:
        folder: of all steps.
        part: its name.
        captions: string columns ``group`` and ``caption``; a caption counts once per group, however often it is there.
        rows: with the columns of `refine_rows`.

    Raises:
        UsageError: a column is missing or not of strings.
    """
    check_columns(rows)
    captions = captions.unique(maintain_order=True)
    groups = pl.concat([captions["group"], rows["group"]]).unique(maintain_order=True)
    types = rows["type"].unique().sort()
    names = captions.select(pl.concat_str("group", pl.lit("\0"), "caption")).to_series()
    forms = PartForms.of(captions["caption"], rows["positive"], rows["negative"])
    arrays: dict[str, Any] = {
        "caption_form": forms.captions,
        "caption_group": _places(captions["group"], groups),
        "caption_name": hash_ids(names),
        "positive": forms.positives,
        "negative": forms.negatives,
        "row_group": _places(rows["group"], groups),
        "row_type": _places(rows["type"], types),
        "forms": forms.hashes,
        "lengths": forms.lengths,
        "flat": forms.flat,
        "words": forms.words,
        "types": types,
        "groups": groups,
        "ids": rows["id"],
        "id_hashes": hash_ids(rows["id"]),
    }
    return [save_mapped(texts_path(folder, part), arrays)]


def count_part(folder: Path, part: str) -> list[Path]:
    """Store the statistics of the captions of a part, for each set of folds that may not train on them."""
    texts, folds = _read_texts(folder, part)
    forms, excluding = map_arrays(texts_path(folder, part), ["caption_form"])["caption_form"], folds["caption_folds"]
    counts = {}
    for some in np.unique(excluding[excluding != REPEATED]).tolist():
        times = np.bincount(forms[excluding == some], minlength=len(texts.lengths))
        counts[some] = count_captions(texts.take(times > 0), times[times > 0])
    return [save_counts(folder, part, counts)]


def score_part(folder: Path, part: str, folds: Iterable[int]) -> list[Path]:
    """Store score(positive) - score(negative) of each row of a part by each model, float64 (n, 2); NaN without a model.

    Args:
        folder: of all steps.
        part: its name.
        folds: that have models.
    """
    texts, assigned = _read_texts(folder, part)
    rows = map_arrays(texts_path(folder, part), ("positive", "negative"))
    gaps = np.full((len(rows["positive"]), len(SCORERS)), np.nan)
    for fold in sorted({*folds} & {*np.unique(assigned["row_fold"]).tolist()}):
        members = np.flatnonzero(assigned["row_fold"] == fold)
        positive, negative = rows["positive"][members], rows["negative"][members]
        used = np.zeros(len(texts.lengths), np.bool_)
        used[positive] = used[negative] = True
        place = np.cumsum(used) - 1
        scores = TextModels.load(folder, fold).scores(texts.take(used))
        for column, name in enumerate(SCORERS):
            found = scores[name][place[positive]] - scores[name][place[negative]]
            gaps[members, column] = np.round(found, DECIMALS)
    return [save_array(folder, f"gaps-{part}", gaps)]


def _places(values: pl.Series, among: pl.Series) -> npt.NDArray[np.int32]:
    place = {name: number for number, name in enumerate(among)}
    return np.fromiter(map(place.__getitem__, values), np.int32, len(values))


def _read_texts(folder: Path, part: str) -> tuple[EncodedTexts, dict[str, npt.NDArray[Any]]]:
    texts, folds = map_columns(texts_path(folder, part)), map_arrays(folds_path(folder, part))
    flat, lengths = texts["flat"].to_numpy(), texts["lengths"].to_numpy().astype(np.int64)
    return EncodedTexts.of(flat, lengths, texts["words"].to_pylist(), folds["numbers"]), folds
