"""Algorithm 1 over a pool of any size: captions and rows in parts, of which any process works on one at a time.

The result is that of `two_scorers.refine_rows` for the same rows with all captions as its pool. Steps, each of which
reads files of earlier ones in one folder:

1. `encode_part`: the texts of a part as numbers of words.
2. `fold_assignment.py`: the fold of each group, the number of each word, and which folds may not train on which
   caption. It reads hashes and names, no texts.
3. `count_part`: the word statistics of a part's captions (`out_of_core_models.py`).
4. `fold_sums.py`: both models of a fold, which are the sums of all statistics.
5. `score_part`: two numbers for each row of a part.
6. `cell_quotas.py`: the decision from these two numbers, the id and the type of each row.

Texts with equal words are one *form*, whatever their case and spacing, identified by 64 bits of its hash: among ten
million different ones, the probability that any two collide is one in 400,000.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.refinement.cell_quotas import SCORERS
from pairwright.filters.refinement.fold_assignment import REPEATED
from pairwright.filters.refinement.fold_sums import save_counts
from pairwright.filters.refinement.grid_balancing import hash_ids
from pairwright.filters.refinement.out_of_core_models import (
    EncodedTexts,
    TextModels,
    count_captions,
)
from pairwright.filters.refinement.part_arrays import (
    load_array,
    load_arrays,
    pack_names,
    save_array,
    save_arrays,
    unpack_names,
)
from pairwright.filters.refinement.two_scorers import check_columns
from pairwright.filters.scorers.text_scorers import DECIMALS
from pairwright.generators.language.vocabulary import tokenize


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
    words: dict[str, int] = {}
    forms: dict[bytes, int] = {}
    spelled: list[list[int]] = []
    known: dict[str, int] = {}

    def form(text: str) -> int:
        number = known.get(text)
        if number is None:
            tokens = tokenize(text)
            number = forms.setdefault(_digest(" ".join(tokens)), len(forms))
            if number == len(spelled):
                spelled.append([words.setdefault(word, len(words)) for word in tokens])
            known[text] = number
        return number

    def numbers(texts: pl.Series) -> npt.NDArray[np.int32]:
        return np.fromiter(map(form, texts), np.int32, len(texts))

    captions = captions.unique(maintain_order=True)
    groups = pl.concat([captions["group"], rows["group"]]).unique(maintain_order=True)
    types = rows["type"].unique().sort()
    names = captions.select(pl.concat_str("group", pl.lit("\0"), "caption")).to_series()
    arrays: dict[str, Any] = {
        "caption_form": numbers(captions["caption"]),
        "caption_group": _places(captions["group"], groups),
        "caption_name": hash_ids(names),
        "positive": numbers(rows["positive"]),
        "negative": numbers(rows["negative"]),
        "row_group": _places(rows["group"], groups),
        "row_type": _places(rows["type"], types),
        "forms": np.frombuffer(b"".join(forms), np.uint64),
        "lengths": np.fromiter(map(len, spelled), np.int32, len(spelled)),
        "flat": np.fromiter((word for each in spelled for word in each), np.int32),
        "words": pack_names(list(words)),
        "types": pack_names(types.to_list()),
        "groups": pack_names(groups.to_list()),
        "ids": pack_names(rows["id"].to_list()),
        "id_hashes": hash_ids(rows["id"]),
    }
    return [save_arrays(folder, f"texts-{part}", arrays)]


def count_part(folder: Path, part: str) -> list[Path]:
    """Store the statistics of the captions of a part, for each set of folds that may not train on them."""
    texts, folds = _read_texts(folder, part)
    forms, excluding = load_array(folder, f"texts-{part}", "caption_form"), folds["caption_folds"]
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
    rows = load_arrays(folder, f"texts-{part}", ("positive", "negative"))
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


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _places(values: pl.Series, among: pl.Series) -> npt.NDArray[np.int32]:
    place = {name: number for number, name in enumerate(among)}
    return np.fromiter(map(place.__getitem__, values), np.int32, len(values))


def _read_texts(folder: Path, part: str) -> tuple[EncodedTexts, dict[str, npt.NDArray[Any]]]:
    texts = load_arrays(folder, f"texts-{part}", ("flat", "lengths", "words"))
    folds = load_arrays(folder, f"folds-{part}")
    lengths = texts["lengths"].astype(np.int64)
    return EncodedTexts.of(texts["flat"], lengths, unpack_names(texts["words"]), folds["numbers"]), folds
