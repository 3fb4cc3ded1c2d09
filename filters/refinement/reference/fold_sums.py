"""The counts of all parts that a fold may train on, summed in ranges of keys: memory does not grow with the counts.

1. `sum_range`: the sums in one range of keys, read some `CHUNK_ENTRIES` at a time in the order of the keys and written
   to disk as they come. In memory are the pairs of words of the range, and some numbers of each word.
2. `finish_fold`: the statistics without context, of all ranges.

A pool whose counts are one range has one step for each fold, `fit_fold`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from pairwright.filters.refinement.part_arrays import Array, DiskArrays, map_arrays, save_mapped
from pairwright.filters.refinement.reference.fold_assignment import read_words
from pairwright.filters.refinement.reference.language_models import (
    BIGRAMS,
    KINDS,
    LOW_BITS,
    PAIRS,
    TRIGRAMS,
    CaptionCounts,
    every_path,
    gather_ids,
    range_edges,
    range_path,
    spread_ids,
)
from pairwright.filters.refinement.steps import StepResult
from pairwright.filters.scorers.shared_texts import sum_counts
from pairwright.generators.language.trigram_model import (
    count_contexts,
    count_counts,
    estimate_discounts,
    unigram_probabilities,
)
from pairwright.generators.language.vocabulary import ID_BITS, SPECIAL, START, UNKNOWN, IntArray, sum_by_key

RANGE_ENTRIES = 60_000_000
"""Entries of the counts of all parts in a range of keys: half a minute."""
CHUNK_ENTRIES = 2_000_000
"""Entries that are summed at once: some 120 MB."""
_LARGEST = np.iinfo(np.int64).max
_START = int(spread_ids(np.array([START]))[0])

Counts = tuple[IntArray, IntArray]


def save_counts(folder: Path, part: str, counts: Mapping[int, CaptionCounts]) -> Path:
    """Store the counts of the captions of a part, by the set of folds that may not train on them; return the file."""
    columns: dict[str, Array] = {}
    for kind in KINDS:
        keys, times = (
            np.concatenate([_no_counts()[side], *(each[kind][side] for each in counts.values())]) for side in (0, 1)
        )
        sets = np.repeat(np.array(list(counts), np.int32), [len(each[kind][0]) for each in counts.values()])
        order = np.argsort(keys, kind="stable")
        columns |= {kind: keys[order], f"{kind}-times": times[order], f"{kind}-sets": sets[order]}
    return save_mapped(_counts_path(folder, part), columns)


def count_entries(folder: Path, part: str) -> int:
    """Return the number of entries of the counts of a part."""
    counts = map_arrays(_counts_path(folder, part))
    return sum(len(counts[kind]) for kind in KINDS)


def count_ranges(entries: int) -> int:
    """Return the number of ranges of keys for so many entries in all parts."""
    return max(1, -(-entries // RANGE_ENTRIES))


def fit_fold(folder: Path, parts: Sequence[str], fold: int) -> StepResult:
    """Take all steps of a fold whose counts are one range; the fact is that of `finish_fold`."""
    files, _ = sum_range(folder, parts, fold, 0, 1)
    finished, facts = finish_fold(folder, fold, 1)
    return files + finished, facts


def sum_range(folder: Path, parts: Sequence[str], fold: int, number: int, ranges: int) -> StepResult:
    """Store the sums of the counts of a fold in one range of keys.

    Args:
        folder: of all steps.
        parts: names of all parts.
        fold: whose captions are left out.
        number: of the range, from 0.
        ranges: how many there are.
    """
    with closing(DiskArrays(folder)) as disk:
        grams = _write_grams(disk, TRIGRAMS, _read_chunks(folder, parts, TRIGRAMS, fold, (number, ranges)))
        pairs = _write_grams(disk, BIGRAMS, map(_count_bigrams, grams))
        words = sum_counts(sum_by_key(keys & LOW_BITS) for keys, _ in pairs)
        totals = sum_counts(_write_pairs(disk, _read_chunks(folder, parts, PAIRS, fold, (number, ranges))))
        columns = {"words": words[0], "words-times": words[1], "totals": totals[0], "totals-times": totals[1]}
        return [save_mapped(range_path(folder, fold, number), disk.read() | columns)], {}


def finish_fold(folder: Path, fold: int, ranges: int) -> StepResult:
    """Store the statistics without context of a fold; the fact ``trained`` is whether it has captions to train on."""
    sums = [map_arrays(range_path(folder, fold, number)) for number in range(ranges)]
    if not any(len(each[TRIGRAMS]) for each in sums):
        return [], {"trained": False}
    words = len(read_words(folder))
    before, totals = (_sum_by_id(sums, name, words + SPECIAL) for name in ("words", "totals"))
    known = before > 0
    known[:SPECIAL] = True
    discounts = {
        f"discounts{order}": estimate_discounts(sum(each[f"{name}-seen"].reshape(-1, 4).sum(0) for each in sums))
        for order, name in ((2, BIGRAMS), (3, TRIGRAMS))
    }
    columns: dict[str, Array] = {
        "ids": np.append(np.where(known[SPECIAL:], np.arange(words) + SPECIAL, UNKNOWN), UNKNOWN),
        "unigrams": unigram_probabilities(before, known),
        **discounts,
        "totals": totals,
        "together": np.array([totals.sum() // 2]),
        "ranges": np.array([ranges]),
    }
    return [save_mapped(every_path(folder, fold), columns)], {"trained": True}


def _write_grams(disk: DiskArrays, name: str, chunks: Iterator[Counts]) -> Iterator[Counts]:
    """Write n-grams and the counts of their contexts; yield them again, in chunks of whole contexts."""
    for keys, times in _whole_contexts(chunks):
        contexts, _ = count_contexts(keys, times)
        disk.append(name, keys)
        disk.append(f"{name}-times", times)
        disk.append(f"{name}-contexts", contexts.contexts)
        disk.append(f"{name}-total", contexts.total)
        disk.append(f"{name}-classes", contexts.classes.ravel())
        disk.append(f"{name}-seen", count_counts(times))
        yield keys, times


def _count_bigrams(trigrams: Counts) -> Counts:
    # The words before each pair of words that ends trigrams of whole contexts; at the start of a caption, the captions.
    keys, times = trigrams
    middle = keys >> 2 * ID_BITS
    return sum_by_key(middle << ID_BITS | keys & LOW_BITS, np.where(middle == _START, times, 1))


def _write_pairs(disk: DiskArrays, chunks: Iterator[Counts]) -> Iterator[Counts]:
    """Write co-occurring pairs; yield the co-occurrences of each id."""
    for keys, times in chunks:
        disk.append(PAIRS, keys)
        disk.append(f"{PAIRS}-times", times)
        yield sum_by_key(np.append(gather_ids(keys >> ID_BITS), keys & LOW_BITS), np.append(times, times))


def _whole_contexts(chunks: Iterator[Counts]) -> Iterator[Counts]:
    # Chunks of ascending keys, of which only the last context of one may go on in the next; so that no context does.
    held = _no_counts()
    for some in chunks:
        keys, times = map(np.append, held, some)
        if len(held[0]) and len(some[0]) and held[0][-1] >= some[0][0]:
            keys, times = sum_by_key(keys, times)
        end = int(np.searchsorted(keys, keys[-1] >> ID_BITS << ID_BITS)) if len(keys) else 0
        yield keys[:end], times[:end]
        held = keys[end:], times[end:]
    yield held


def _read_chunks(folder: Path, parts: Sequence[str], kind: str, fold: int, some: tuple[int, int]) -> Iterator[Counts]:
    # The sums of all parts in one range of keys, in ascending order of the keys.
    counts = [map_arrays(_counts_path(folder, part)) for part in parts]
    columns = [tuple(each[name] for name in (kind, f"{kind}-times", f"{kind}-sets")) for each in counts]
    for slices in _split_keys([keys for keys, _, _ in columns], kind, some):
        read = [_no_counts()]
        for (keys, times, sets), own in zip(columns, slices, strict=True):
            trained = sets[own] >> fold & 1 == 0
            read.append((keys[own][trained], times[own][trained]))
        yield sum_by_key(*map(np.concatenate, zip(*read, strict=True)))


def _split_keys(tables: Sequence[IntArray], kind: str, some: tuple[int, int]) -> Iterator[list[slice]]:
    """Yield slices of ascending keys, one range of keys after another, each of at most some `CHUNK_ENTRIES` in all.

    Ranges end at samples: every so many keys of each table.
    """
    number, ranges = some
    edges = [*range_edges(kind, ranges).tolist(), _LARGEST]
    starts, ends = ([int(np.searchsorted(keys, edges[number + side])) for keys in tables] for side in (0, 1))
    if number + 1 == ranges:
        ends = [len(keys) for keys in tables]
    step = max(1, CHUNK_ENTRIES // (2 * max(1, len(tables))))
    within = zip(tables, starts, ends, strict=True)
    samples = np.sort(
        np.concatenate([np.zeros(0, np.int64), *(keys[start:end][step - 1 :: step] for keys, start, end in within)])
    )
    for edge in np.unique(samples[:: max(1, CHUNK_ENTRIES // (2 * step))]).tolist():
        stops = [int(np.searchsorted(keys, edge, "right")) for keys in tables]
        yield list(map(slice, starts, stops))
        starts = stops
    yield list(map(slice, starts, ends))


def _sum_by_id(sums: Sequence[Mapping[str, Array]], name: str, size: int) -> IntArray:
    total = np.zeros(size, np.int64)
    for each in sums:
        total[each[name]] += each[f"{name}-times"]
    return total


def _no_counts() -> Counts:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def _counts_path(folder: Path, part: str) -> Path:
    return folder / f"counts-{part}.arrow"
