"""Algorithm 1 over a pool of any size: captions and rows in parts, of which any process works on one at a time.

The result is that of `two_scorers.refine_rows` for the same rows with all captions as its pool. Steps, each of which
reads files of earlier ones in one folder:

1. `encode_part`: the texts of a part as numbers of words.
2. `assign_folds`: over all parts, the fold of each group, the number of each word, and which folds may not train on
   which caption. It reads hashes and names, no texts.
3. `count_part`: the word statistics of a part's captions (`out_of_core_models.py`).
4. `fit_fold`: both models of a fold from the sum of all statistics.
5. `score_part`: two numbers for each row of a part.
6. `balance_parts`: over all parts, the decision from these two numbers, the id and the type of each row.

Texts with equal words are one *form*, whatever their case and spacing, identified by 64 bits of its hash: among ten
million different ones, the probability that any two collide is one in 400,000.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.filters.refinement.grid_balancing import hash_ids, refuse_repeated
from pairwright.filters.refinement.out_of_core_models import (
    GRAMMAR,
    KINDS,
    PLAUSIBILITY,
    EncodedTexts,
    TextModels,
    count_captions,
    sum_counts,
)
from pairwright.filters.refinement.two_scorers import REASONS, RefineOptions, balance_scored_rows, check_columns
from pairwright.filters.scorers.text_scorers import DECIMALS, assign_group_folds
from pairwright.generators.language.vocabulary import MAX_WORDS, IntArray, tokenize

FoldSets = npt.NDArray[np.int32]

SCORERS = (GRAMMAR, PLAUSIBILITY)
_WORDS = "words.json"
_FOLD_SET = np.int32  # one bit for each fold
_REPEATED = -1  # instead of a set of folds: a caption that another one of its group repeats


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
        "words": _pack(list(words)),
        "types": _pack(types.to_list()),
        "groups": _pack(groups.to_list()),
        "ids": _pack(rows["id"].to_list()),
        "id_hashes": hash_ids(rows["id"]),
    }
    return [_save(folder, f"texts-{part}", arrays)]


def assign_folds(folder: Path, parts: Sequence[str], options: RefineOptions) -> list[Path]:
    """Assign groups to folds, number all words, and store for each part what follows for it; return the files."""
    group_of = _number_names([_read_strings(folder, part, "groups") for part in parts])
    tested = np.zeros(1 + max((int(each.max(initial=-1)) for each in group_of), default=-1), np.bool_)
    for part, groups in zip(parts, group_of, strict=True):
        tested[groups[_load(folder, f"texts-{part}", "row_group")]] = True
    fold_of = np.full(len(tested), -1, np.int64)
    fold_of[tested] = assign_group_folds(int(tested.sum()), options.folds, options.seed)
    excluded = _exclude_forms(folder, parts, [fold_of[groups] for groups in group_of])
    first = _find_first([_load(folder, f"texts-{part}", "caption_name") for part in parts])
    words, numbers = _number_words(folder, parts)
    write_bytes(folder / _WORDS, orjson.dumps(words))
    files = [folder / _WORDS]
    for part, groups, excluding, once, number in zip(parts, group_of, excluded, first, numbers, strict=True):
        texts = _load_all(folder, f"texts-{part}", ("caption_form", "caption_group", "row_group"))
        own = fold_of[groups]
        folds = excluding[texts["caption_form"]] | _bits(own[texts["caption_group"]])
        arrays = {
            "row_fold": own[texts["row_group"]].astype(np.int8),
            "caption_folds": np.where(once, folds, _REPEATED),
            "numbers": number,
        }
        files.append(_save(folder, f"folds-{part}", arrays))
    return files


def count_part(folder: Path, part: str) -> list[Path]:
    """Store the statistics of the captions of a part, for each set of folds that may not train on them."""
    texts, folds = _read_texts(folder, part)
    forms, excluding = _load(folder, f"texts-{part}", "caption_form"), folds["caption_folds"]
    arrays: dict[str, npt.NDArray[Any]] = {"sets": np.unique(excluding[excluding != _REPEATED])}
    for place, some in enumerate(arrays["sets"].tolist()):
        times = np.bincount(forms[excluding == some], minlength=len(texts.lengths))
        counts = count_captions(texts.take(times > 0), times[times > 0])
        for kind, (keys, number) in counts.items():
            arrays |= {f"{place}-{kind}-keys": keys, f"{place}-{kind}-times": number}
    return [_save(folder, f"counts-{part}", arrays)]


def fit_fold(folder: Path, parts: Sequence[str], fold: int) -> list[Path]:
    """Fit and store both models of a fold; without captions to train on, there is no file."""
    words = orjson.loads((folder / _WORDS).read_bytes())
    counts = {kind: sum_counts(_counts_without(folder, parts, fold, kind)) for kind in KINDS}
    if not len(counts["trigrams"][0]):
        return []
    TextModels.fit(words, counts).save(_fold_path(folder, fold))
    return [_fold_path(folder, fold)]


def score_part(folder: Path, part: str, folds: Iterable[int]) -> list[Path]:
    """Store score(positive) - score(negative) of each row of a part by each model, float64 (n, 2); NaN without a model.

    Args:
        folder: of all steps.
        part: its name.
        folds: that have models.
    """
    texts, assigned = _read_texts(folder, part)
    rows = _load_all(folder, f"texts-{part}", ("positive", "negative"))
    gaps = np.full((len(rows["positive"]), len(SCORERS)), np.nan)
    for fold in sorted({*folds} & {*np.unique(assigned["row_fold"]).tolist()}):
        members = np.flatnonzero(assigned["row_fold"] == fold)
        positive, negative = rows["positive"][members], rows["negative"][members]
        used = np.zeros(len(texts.lengths), np.bool_)
        used[positive] = used[negative] = True
        place = np.cumsum(used) - 1
        scores = TextModels.load(_fold_path(folder, fold)).scores(texts.take(used))
        for column, name in enumerate(SCORERS):
            found = scores[name][place[positive]] - scores[name][place[negative]]
            gaps[members, column] = np.round(found, DECIMALS)
    return [_save_array(folder, f"gaps-{part}", gaps)]


def balance_parts(folder: Path, parts: Sequence[str], options: RefineOptions) -> tuple[list[Path], dict[str, Any]]:
    """Decide on the rows of all parts, in their order; return the files of the verdicts and `Refinement.as_json`.

    Raises:
        UsageError: ids repeat.
    """
    names = sorted({name for part in parts for name in _unpack(_load(folder, f"texts-{part}", "types"))})
    sizes = [len(_map_array(folder, f"gaps-{part}")) for part in parts]
    ends = np.cumsum(sizes, dtype=np.int64)
    rows = _ScoredRows.empty(int(ends[-1]) if parts else 0)
    for part, size, end in zip(parts, sizes, ends.tolist(), strict=True):
        rows.fill(slice(end - size, end), folder, part, names)

    def id_of(row: int) -> str:
        at = int(np.searchsorted(ends, row, side="right"))
        return str(_read_strings(folder, parts[at], "ids")[row - int(ends[at]) + sizes[at]])

    refuse_repeated(rows.hashes, id_of)
    gaps = dict(zip(SCORERS, rows.gaps, strict=True))
    outcome = balance_scored_rows(rows.hashes, names, rows.kinds, gaps, rows.same, options)
    codes = np.split(outcome.codes, ends[:-1]) if parts else []
    files = [_save_array(folder, f"verdicts-{part}", own) for part, own in zip(parts, codes, strict=True)]
    return files, outcome.as_json()


class _ScoredRows(NamedTuple):
    """What the decision reads of all rows, 29 bytes a row: hash of the id, place of the type, equality, two gaps."""

    hashes: npt.NDArray[np.uint64]
    kinds: npt.NDArray[np.int32]
    same: npt.NDArray[np.bool_]
    gaps: npt.NDArray[np.float64]

    @classmethod
    def empty(cls, rows: int) -> "_ScoredRows":
        shape = (len(SCORERS), rows)
        return cls(np.empty(rows, np.uint64), np.empty(rows, np.int32), np.empty(rows, np.bool_), np.empty(shape))

    def fill(self, place: slice, folder: Path, part: str, names: Sequence[str]) -> None:
        """Read the rows of a part into their place."""
        texts = _load_all(folder, f"texts-{part}", ("positive", "negative", "row_type", "types", "id_hashes"))
        kinds = _places(pl.Series(_unpack(texts["types"]), dtype=pl.String), pl.Series(names, dtype=pl.String))
        self.hashes[place] = texts["id_hashes"]
        self.kinds[place] = kinds[texts["row_type"]]
        self.same[place] = texts["positive"] == texts["negative"]
        self.gaps[:, place] = _map_array(folder, f"gaps-{part}").T


def read_verdicts(folder: Path, part: str) -> pl.DataFrame:
    """Return ``id``, the gap of each scorer and ``reason`` (empty for kept rows) of the rows of a part."""
    gaps, codes = _map_array(folder, f"gaps-{part}"), _map_array(folder, f"verdicts-{part}")
    columns = {name: gaps[:, column] for column, name in enumerate(SCORERS)}
    reasons = pl.Series(REASONS, dtype=pl.String).gather(codes)
    return pl.DataFrame({"id": _read_strings(folder, part, "ids"), **columns, "reason": reasons})


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _bits(folds: IntArray) -> FoldSets:
    # The set of one fold each; empty for -1.
    return np.where(folds >= 0, 1 << np.maximum(folds, 0), 0).astype(_FOLD_SET)


def _places(values: pl.Series, among: pl.Series) -> npt.NDArray[np.int32]:
    place = {name: number for number, name in enumerate(among)}
    return np.fromiter(map(place.__getitem__, values), np.int32, len(values))


def _number_names(parts: Sequence[pl.Series]) -> list[IntArray]:
    # The alphabetical rank of each name among the distinct names of all parts.
    every = pl.concat([pl.Series([], dtype=pl.String), *(each.rename("") for each in parts)])
    ranks = every.rank("dense").to_numpy().astype(np.int64) - 1
    return np.split(ranks, np.cumsum([len(each) for each in parts])[:-1]) if parts else []


def _exclude_forms(folder: Path, parts: Sequence[str], fold_of_group: Sequence[IntArray]) -> list[FoldSets]:
    # For each form of each part the set of folds in which a row of any part has it.
    hashes, sets = [], []
    for part, fold_of in zip(parts, fold_of_group, strict=True):
        texts = _load_all(folder, f"texts-{part}", ("forms", "positive", "negative", "row_group"))
        bits = _bits(fold_of[texts["row_group"]])
        own = np.zeros(len(texts["forms"]), _FOLD_SET)
        for side in ("positive", "negative"):
            np.bitwise_or.at(own, texts[side], bits)
        hashes.append(texts["forms"])
        sets.append(own)
    ends = np.cumsum([len(each) for each in hashes])
    named = np.concatenate([np.zeros(0, np.uint64), *hashes])
    every = np.concatenate([np.zeros(0, _FOLD_SET), *sets])
    del hashes, sets  # of ten million captions and their negatives, each array here takes hundreds of megabytes
    order = np.argsort(named, kind="stable")
    named = named[order]
    starts = np.flatnonzero(np.append([True], named[1:] != named[:-1])) if len(named) else np.zeros(0, np.int64)
    if len(named):
        united = np.bitwise_or.reduceat(every[order], starts)
        every[order] = np.repeat(united, np.diff(starts, append=len(named)))
    return np.split(every, ends[:-1]) if parts else []


def _find_first(names: Sequence[npt.NDArray[np.uint64]]) -> list[npt.NDArray[np.bool_]]:
    every = np.concatenate([np.zeros(0, np.uint64), *names])
    first = np.zeros(len(every), np.bool_)
    first[np.unique(every, return_index=True)[1]] = True
    return np.split(first, np.cumsum([len(each) for each in names])[:-1]) if names else []


def _number_words(folder: Path, parts: Sequence[str]) -> tuple[list[str], list[IntArray]]:
    # The words of all captions in alphabetical order, the most frequent ones if they are too many; and the place of
    # each word of each part among them, -1 for others.
    times: dict[str, int] = {}
    for part in parts:
        texts = _load_all(folder, f"texts-{part}", ("words", "flat", "lengths", "caption_form"))
        weight = np.bincount(texts["caption_form"], minlength=len(texts["lengths"]))
        words = _unpack(texts["words"])
        seen = np.bincount(texts["flat"], weights=np.repeat(weight, texts["lengths"]), minlength=len(words))
        for word in np.flatnonzero(seen).tolist():
            times[words[word]] = times.get(words[word], 0) + int(seen[word])
    ranked = sorted(times, key=lambda word: (-times[word], word))[:MAX_WORDS] if len(times) > MAX_WORDS else times
    place = {word: number for number, word in enumerate(sorted(ranked))}
    numbers = [
        np.array([place.get(word, -1) for word in _unpack(_load(folder, f"texts-{part}", "words"))], np.int64)
        for part in parts
    ]
    return list(place), numbers


def _counts_without(folder: Path, parts: Sequence[str], fold: int, kind: str) -> Iterator[tuple[IntArray, IntArray]]:
    for part in parts:
        with np.load(folder / f"counts-{part}.npz", allow_pickle=False) as stored:
            for place, excluding in enumerate(stored["sets"].tolist()):
                if not excluding >> fold & 1:
                    yield stored[f"{place}-{kind}-keys"], stored[f"{place}-{kind}-times"]


def _read_texts(folder: Path, part: str) -> tuple[EncodedTexts, dict[str, npt.NDArray[Any]]]:
    texts = _load_all(folder, f"texts-{part}", ("flat", "lengths", "words"))
    folds = _load_all(folder, f"folds-{part}")
    lengths = texts["lengths"].astype(np.int64)
    return EncodedTexts.of(texts["flat"], lengths, _unpack(texts["words"]), folds["numbers"]), folds


def _read_strings(folder: Path, part: str, name: str) -> pl.Series:
    return pl.Series("id", _unpack(_load(folder, f"texts-{part}", name)), pl.String)


def _fold_path(folder: Path, fold: int) -> Path:
    return folder / f"fold-{fold}.arrow"


def _pack(names: Sequence[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(orjson.dumps(names), np.uint8)


def _unpack(packed: npt.NDArray[np.uint8]) -> list[str]:
    found: list[str] = orjson.loads(packed.tobytes())
    return found


def _save(folder: Path, name: str, arrays: dict[str, Any]) -> Path:
    path = folder / f"{name}.npz"
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays)
    return path


def _save_array(folder: Path, name: str, array: npt.NDArray[Any]) -> Path:
    path = folder / f"{name}.npy"
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, array)
    return path


def _map_array(folder: Path, name: str) -> npt.NDArray[Any]:
    # The array stays on disk.
    found: npt.NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return found


def _load(folder: Path, name: str, array: str) -> npt.NDArray[Any]:
    return _load_all(folder, name, (array,))[array]


def _load_all(folder: Path, name: str, arrays: Sequence[str] = ()) -> dict[str, npt.NDArray[Any]]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        return {each: stored[each] for each in arrays or stored.files}
