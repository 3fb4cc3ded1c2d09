"""Folds of the cross-fitting for a pool of any size: which fold each image is in, and who may not train on a caption.

Everything is an exchange between parts: an image gets the fold of its rank among the names of all images, a caption
the folds of all rows of any part with its text. To exchange, parts are taken in *batches* of at most `BATCH_TEXTS`
texts, and hashes in *buckets*, ranges of 64-bit numbers with at most some `BUCKET_FORMS` of them. No step holds more
than a batch or a bucket in memory, and one byte for each image with rows; other arrays over the whole pool are mapped
from files. Steps:

1. `list_batch`: the names of images, and the words of captions, of a batch, in alphabetical order.
2. `number_all`: over all batches, in ranges of names: the fold of each image, and the words that have a number.
3. `gather_batch`: the hashes of a batch in ascending order, with the folds that rows with the text are in.
4. `unite_bucket`: over all batches: the folds of each caption's text, repeated captions, and repeated ids (an error).
5. `assign_batch`: what of this each part needs.

`assign_folds` takes them together for a pool that is one batch.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.errors import UsageError
from pairwright.filters.refinement.part_arrays import (
    Array,
    map_array,
    map_arrays,
    map_columns,
    read_strings,
    save_array,
    save_mapped,
    scratch_array,
)
from pairwright.filters.refinement.reference.language_models import folds_path, texts_path
from pairwright.filters.refinement.reference.refine import RefineOptions
from pairwright.filters.refinement.rows import Hashes
from pairwright.filters.refinement.steps import StepResult
from pairwright.filters.scorers.text_scorers import assign_group_folds
from pairwright.generators.language.vocabulary import MAX_WORDS, IntArray, lookup_sorted

FoldSets = npt.NDArray[np.int32]

BATCH_TEXTS = 4_000_000  # captions and rows: some 300 MB
BUCKET_FORMS = 8_000_000  # some 350 MB
REPEATED = -1  # instead of a set of folds: a caption that another one of its group repeats
_RANGE_NAMES = 4_000_000  # some 400 MB
_FOLD_SET = np.int32  # one bit for each fold
_WORDS = "words.json"
_NO_HASHES = np.zeros(0, np.uint64)
# Arrays of the texts of a part of which hashes are exchanged.
_HASHED = ("forms", "positive", "negative", "row_group", "caption_form", "caption_group", "caption_name", "id_hashes")


def split_batches(parts: Sequence[str], texts: Sequence[int]) -> list[list[str]]:
    """Return consecutive parts in batches, given the number of texts of each part; at least one batch."""
    batches: list[list[str]] = [[]]
    held = 0
    for part, number in zip(parts, texts, strict=True):
        if batches[-1] and held + number > BATCH_TEXTS:
            batches.append([])
            held = 0
        batches[-1].append(part)
        held += number
    return batches


def count_buckets(forms: int) -> int:
    """Return the number of buckets for so many forms, the sum of the facts of `gather_batch`."""
    return max(1, -(-forms // BUCKET_FORMS))


def assign_folds(folder: Path, parts: Sequence[str], options: RefineOptions) -> StepResult:
    """Take all steps for a pool that is one batch."""
    taken = [
        list_batch(folder, "all", parts),
        number_all(folder, ["all"], options),
        gather_batch(folder, "all", parts),
        unite_bucket(folder, {"all": parts}, 0, 1),
        assign_batch(folder, ["all"], "all", parts, 1),
    ]
    return [file for files, _ in taken for file in files], {}


def list_batch(folder: Path, batch: str, parts: Sequence[str]) -> StepResult:
    """Store the names of images, which of them have rows, and the words of captions with their counts, of a batch."""
    groups = [read_strings(map_columns(texts_path(folder, part))["groups"]) for part in parts]
    ranks = rank_names(groups)
    tested = np.zeros(1 + max((int(each.max(initial=-1)) for each in ranks), default=-1), np.bool_)
    for part, each in zip(parts, ranks, strict=True):
        tested[each[map_arrays(texts_path(folder, part), ["row_group"])["row_group"]]] = True
    counted = [_count_words(folder, part) for part in parts]
    words = _sum_words(counted).sort("word")
    columns: dict[str, Array | pl.Series] = {
        "names": pl.concat([pl.Series(dtype=pl.String), *groups]).unique().sort(),
        "tested": tested.astype(np.int8),
        "places": np.concatenate([np.zeros(0, np.int32), *(each.astype(np.int32) for each in ranks)]),
        "ends": np.cumsum([len(each) for each in ranks], dtype=np.int64),
        "words": words["word"],
        "times": words["times"].to_numpy(),
    }
    return [save_mapped(_names_path(folder, batch), columns)], {}


def number_all(folder: Path, batches: Sequence[str], options: RefineOptions) -> StepResult:
    """Store the words that have a number, and for each batch the folds of its images, -1 for those without rows."""
    listed = [map_columns(_names_path(folder, batch)) for batch in batches]
    write_bytes(folder / _WORDS, orjson.dumps(_choose_words(listed)))
    names = [each["names"] for each in listed]
    starts = np.cumsum([0, *map(len, names)])
    with scratch_array(folder, np.int64, int(starts[-1])) as ranks:
        groups = 0
        for slices in _split_ranges(names):
            own = rank_names([read_strings(table[some]) for table, some in zip(names, slices, strict=True)])
            tested = np.zeros(1 + max(int(each.max(initial=-1)) for each in own), np.bool_)
            for table, some, each in zip(listed, slices, own, strict=True):
                tested[each[table["tested"].to_numpy()[some] != 0]] = True
            number = np.where(tested, groups + np.cumsum(tested) - 1, -1)
            groups += int(tested.sum())
            for start, some, each in zip(starts[:-1], slices, own, strict=True):
                ranks[start + some.start : start + some.stop] = number[each]
        fold_of = np.append(assign_group_folds(groups, options.folds, options.seed), np.int8(-1))
        ends = zip(batches, pairwise(starts.tolist()), strict=True)
        files = [save_array(folder, f"group-folds-{batch}", fold_of[ranks[slice(*each)]]) for batch, each in ends]
    return [folder / _WORDS, *files], {}


def gather_batch(folder: Path, batch: str, parts: Sequence[str]) -> StepResult:
    """Store the hashes of a batch; the fact ``forms`` is the number of forms of its rows."""
    forms, sets = [_NO_HASHES], [np.zeros(0, _FOLD_SET)]
    captions, names, ids = [_NO_HASHES], [_NO_HASHES], [_NO_HASHES]
    for part, fold_of in zip(parts, _folds_of_groups(folder, batch), strict=True):
        texts = map_arrays(texts_path(folder, part), _HASHED)
        bits = _bits(fold_of[texts["row_group"]])
        own = np.zeros(len(texts["forms"]), _FOLD_SET)
        for side in ("positive", "negative"):
            np.bitwise_or.at(own, texts[side], bits)
        forms.append(texts["forms"][own != 0])
        sets.append(own[own != 0])
        captions.append(np.unique(texts["forms"][texts["caption_form"]]))
        names.append(np.unique(texts["caption_name"]))
        ids.append(texts["id_hashes"])
    united, together = _unite(np.concatenate(forms), np.concatenate(sets))
    columns: dict[str, Array | pl.Series] = {
        "forms": united,
        "sets": together,
        "captions": np.unique(np.concatenate(captions)),
        "names": np.unique(np.concatenate(names)),
        "ids": np.sort(np.concatenate(ids)),
    }
    return [save_mapped(_hashes_path(folder, batch), columns)], {"forms": len(united)}


def unite_bucket(folder: Path, batches: Mapping[str, Sequence[str]], bucket: int, buckets: int) -> StepResult:
    """Store the answers to one bucket of the hashes of all batches.

    Args:
        folder: of all steps.
        batches: the parts of each batch.
        bucket: its number, from 0.
        buckets: how many there are.

    Raises:
        UsageError: ids repeat.
    """
    mapped = [_slice_bucket(map_arrays(_hashes_path(folder, batch)), bucket, buckets) for batch in batches]
    every = {name: np.concatenate([each[name] for each in mapped]) for name in mapped[0]}
    _refuse_repeated(folder, [part for parts in batches.values() for part in parts], every["ids"])
    forms, sets = _unite(every["forms"], every["sets"])
    first = np.zeros(len(every["names"]), np.int8)
    first[np.unique(every["names"], return_index=True)[1]] = 1
    answers = {
        "captions": lookup_sorted(forms, sets, every["captions"], _FOLD_SET(0)),
        "names": first,
        "caption_ends": np.cumsum([len(each["captions"]) for each in mapped], dtype=np.int64),
        "name_ends": np.cumsum([len(each["names"]) for each in mapped], dtype=np.int64),
    }
    return [save_mapped(_answers_path(folder, bucket), answers)], {}


def assign_batch(folder: Path, batches: Sequence[str], batch: str, parts: Sequence[str], buckets: int) -> StepResult:
    """Store for each part of a batch the folds of its rows and captions, and the numbers of its words."""
    asked, number = map_arrays(_hashes_path(folder, batch)), batches.index(batch)
    answers = [map_arrays(_answers_path(folder, bucket)) for bucket in range(buckets)]
    sets = np.concatenate([_slice_batch(each, "caption", number) for each in answers])
    unused = np.concatenate([_slice_batch(each, "name", number) for each in answers]) != 0
    place = {word: number for number, word in enumerate(read_words(folder))}
    files = []
    for part, fold_of in zip(parts, _folds_of_groups(folder, batch), strict=True):
        texts = map_arrays(texts_path(folder, part), _HASHED)
        words = map_columns(texts_path(folder, part))["words"].to_pylist()
        forms = texts["forms"][texts["caption_form"]]
        excluding = lookup_sorted(asked["captions"], sets, forms, _FOLD_SET(0)) | _bits(fold_of[texts["caption_group"]])
        own, once = np.unique(np.searchsorted(asked["names"], texts["caption_name"]), return_index=True)
        repeated = np.ones(len(forms), np.bool_)
        repeated[once] = ~unused[own]
        unused[own] = False
        arrays = {
            "row_fold": fold_of[texts["row_group"]],
            "caption_folds": np.where(repeated, _FOLD_SET(REPEATED), excluding),
            "numbers": np.array([place.get(word, -1) for word in words], np.int64),
        }
        files.append(save_mapped(folds_path(folder, part), arrays))
    return files, {}


def read_words(folder: Path) -> list[str]:
    """Return the words that have a number, in alphabetical order; the number of a word is its place."""
    found: list[str] = orjson.loads((folder / _WORDS).read_bytes())
    return found


def rank_names(tables: Sequence[pl.Series]) -> list[IntArray]:
    """Return the alphabetical rank of each name of each table among the distinct names of all."""
    every = pl.concat([pl.Series([], dtype=pl.String), *(each.rename("") for each in tables)])
    ranks = every.rank("dense").to_numpy().astype(np.int64) - 1
    return np.split(ranks, np.cumsum([len(each) for each in tables])[:-1]) if tables else []


def _bits(folds: npt.NDArray[np.int8]) -> FoldSets:
    # The set of one fold each; empty for -1.
    return np.where(folds >= 0, np.left_shift(_FOLD_SET(1), np.maximum(folds, 0), dtype=_FOLD_SET), _FOLD_SET(0))


def _unite(hashes: Hashes, sets: FoldSets) -> tuple[Hashes, FoldSets]:
    # The distinct hashes in ascending order, and the union of the sets of each.
    order = np.argsort(hashes)
    hashes = hashes[order]
    starts = np.flatnonzero(np.append([True], hashes[1:] != hashes[:-1])) if len(hashes) else np.zeros(0, np.int64)
    return hashes[starts], np.bitwise_or.reduceat(sets[order], starts) if len(hashes) else sets


def _folds_of_groups(folder: Path, batch: str) -> list[npt.NDArray[np.int8]]:
    # The fold of each group of each part of a batch, -1 without rows.
    listed = map_columns(_names_path(folder, batch))
    fold_of, ends = map_array(folder, f"group-folds-{batch}"), listed["ends"].to_numpy()
    return np.split(fold_of[listed["places"].to_numpy()], ends[:-1]) if len(ends) else []


def _count_words(folder: Path, part: str) -> pl.DataFrame:
    texts = map_arrays(texts_path(folder, part), ("flat", "lengths", "caption_form"))
    weight = np.bincount(texts["caption_form"], minlength=len(texts["lengths"]))
    words = read_strings(map_columns(texts_path(folder, part))["words"]).alias("word")
    seen = np.bincount(texts["flat"], weights=np.repeat(weight, texts["lengths"]), minlength=len(words))
    return pl.DataFrame({"word": words, "times": seen.astype(np.int64)}).filter(pl.col("times") > 0)


def _sum_words(counted: Sequence[pl.DataFrame]) -> pl.DataFrame:
    every = pl.concat([pl.DataFrame(schema={"word": pl.String, "times": pl.Int64}), *counted])
    return every.group_by("word").agg(pl.col("times").sum())


def _choose_words(listed: Sequence[dict[str, Any]]) -> list[str]:
    # The words of all captions in alphabetical order, the most frequent ones if they are too many.
    kept = _sum_words([])
    tables = [each["words"] for each in listed]
    for slices in _split_ranges(tables):
        found = [
            pl.DataFrame({"word": read_strings(each["words"][some]), "times": each["times"][some].to_numpy()})
            for each, some in zip(listed, slices, strict=True)
        ]
        kept = pl.concat([kept, _sum_words(found)])
        if len(kept) > MAX_WORDS:
            kept = kept.sort(-pl.col("times"), "word").head(MAX_WORDS)
    return kept["word"].sort().to_list()


@dataclass(frozen=True)
class _SortedNames:
    # An Arrow array of strings as `bisect` reads it.
    array: Any

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: int) -> str:
        return str(self.array[place].as_py())


def _split_ranges(tables: Sequence[Any]) -> Iterator[list[slice]]:
    """Yield a slice of each sorted table for one range of names after another, each of at most `_RANGE_NAMES` in all.

    Ranges end at names from samples: every so many names of each table.
    """
    step = max(1, _RANGE_NAMES // (2 * max(1, len(tables))))
    samples = sorted(table[place].as_py() for table in tables for place in range(step - 1, len(table), step))
    of_range = max(1, _RANGE_NAMES // (2 * step))
    starts = [0] * len(tables)
    for edge in sorted({*samples[of_range - 1 :: of_range]}):
        stops = [bisect_right(_SortedNames(table), edge, start) for table, start in zip(tables, starts, strict=True)]
        yield [slice(*each) for each in zip(starts, stops, strict=True)]
        starts = stops
    yield [slice(start, len(table)) for table, start in zip(tables, starts, strict=True)]


def _slice_bucket(arrays: dict[str, Array], bucket: int, buckets: int) -> dict[str, Array]:
    # The hashes of a bucket and the sets of its forms.
    low, high = (np.uint64(min(2**64 * edge // buckets, 2**64 - 1)) for edge in (bucket, bucket + 1))
    last = bucket == buckets - 1

    def inside(hashes: Hashes) -> slice:
        return slice(int(np.searchsorted(hashes, low)), len(hashes) if last else int(np.searchsorted(hashes, high)))

    found = {name: arrays[name][inside(arrays[name])] for name in ("forms", "captions", "names", "ids")}
    return found | {"sets": arrays["sets"][inside(arrays["forms"])]}


def _slice_batch(answers: dict[str, Array], kind: str, number: int) -> Array:
    ends = answers[f"{kind}_ends"]
    return answers[f"{kind}s"][ends[number - 1] if number else 0 : ends[number]]


def _refuse_repeated(folder: Path, parts: Sequence[str], hashes: Hashes) -> None:
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    seen: set[str] = set()
    for part in parts if len(twice) else ():  # different ids with equal hashes are no error
        columns = map_columns(texts_path(folder, part))
        rows = np.flatnonzero(np.isin(columns["id_hashes"].to_numpy(), twice))
        for name in read_strings(columns["ids"]).gather(rows):
            if name in seen:
                raise UsageError(f"row id {name!r} occurs twice; ids must be unique")
            seen.add(name)


def _names_path(folder: Path, batch: str) -> Path:
    return folder / f"names-{batch}.arrow"


def _hashes_path(folder: Path, batch: str) -> Path:
    return folder / f"hashes-{batch}.arrow"


def _answers_path(folder: Path, bucket: int) -> Path:
    return folder / f"answers-{bucket}.arrow"
