"""Memory and CPU of the steps of the reference refinement that read all parts, on made-up numbers.

    python -m benchmarks.refinement_merges [--rows 3500000] [--parts 400] [--batch-texts N] [--bucket-forms N] [--work DIR]
    python -m benchmarks.refinement_merges --models [--rows 2000000] [--parts 100] [--range-entries N] [--work DIR]

Each step of `filters/refinement/reference/fold_assignment.py` and `cell_quotas.py` runs in processes of its own, one job a process;
the texts and gaps of the parts are random numbers, 3.5 negatives to a pair of one caption, a fifth of them with the text
of another. *CPU s* is the sum over the jobs of a step, *longest* that of one job; *anonymous* is the memory that the
largest job added to its process and that no file backs, sampled every 5 ms.

With ``--models`` the steps of the language models (`fold_sums.py`) run instead, on as many captions of made-up words (half
of them drawn by Zipf's law, half among the words that follow the one before), for one fold of five.
"""

import argparse
import re
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

from pairwright.datasets.atomic_files import write_bytes
from pairwright.filters.refinement.part_arrays import map_arrays, save_array, save_mapped
from pairwright.filters.refinement.reference import fold_assignment, fold_sums
from pairwright.filters.refinement.reference.cell_quotas import (
    BalancedParts,
    choose_grids,
    count_rows,
    limit_rows,
    list_cells,
)
from pairwright.filters.refinement.reference.fold_assignment import (
    assign_batch,
    count_buckets,
    gather_batch,
    list_batch,
    number_all,
    split_batches,
    unite_bucket,
)
from pairwright.filters.refinement.reference.fold_sums import count_entries, count_ranges, finish_fold, sum_range
from pairwright.filters.refinement.reference.language_models import folds_path, texts_path
from pairwright.filters.refinement.reference.parts import count_part, score_part
from pairwright.filters.refinement.reference.refine import RefineOptions
from pairwright.generators.language.vocabulary import IntArray

NEGATIVES = 3.5  # of a pair
TYPES = ("add-object", "replace-attribute", "replace-object", "replace-relation", "swap-attribute", "swap-object")
MIB = 2**20
WORDS, FOLDS = 30_000, 5  # of made-up captions
HEAD = f"{'step':10} {'jobs':>5} {'CPU s':>7} {'longest':>8} {'us a row':>10} {'anonymous':>10} {'bytes per row':>14}"


def write_part(folder: Path, part: str, rows: int) -> None:
    """Write made-up texts and gaps of a part."""
    rng = np.random.default_rng(int(part))
    pairs = round(rows / NEGATIVES)
    repeated = rng.random(rows) < 0.2
    hashes = rng.integers(0, 2**63, pairs + rows, dtype=np.uint64) * np.uint64(2)
    hashes[pairs:][repeated] = np.random.default_rng(1).integers(0, 2**63, rows, dtype=np.uint64)[repeated]
    group = np.minimum((np.arange(rows) / NEGATIVES).astype(np.int32), pairs - 1)
    ids = [f"{number:032x}" for number in range(int(part) * rows, (int(part) + 1) * rows)]
    arrays: dict[str, Any] = {
        "caption_form": np.arange(pairs, dtype=np.int32),
        "caption_group": np.arange(pairs, dtype=np.int32),
        "caption_name": rng.integers(0, 2**64, pairs, dtype=np.uint64),
        "positive": group,
        "negative": np.arange(pairs, pairs + rows, dtype=np.int32),
        "row_group": group,
        "row_type": rng.integers(0, len(TYPES), rows).astype(np.int32),
        "forms": hashes,
        "lengths": np.ones(pairs + rows, np.int32),
        "flat": rng.integers(0, 5000, pairs + rows).astype(np.int32),
        "words": pl.Series([f"word{number}" for number in range(5000)]),
        "types": pl.Series(TYPES),
        "groups": pl.Series([f"{number:032x}.jpg" for number in rng.integers(0, 2**63, pairs).tolist()]),
        "ids": pl.Series(ids),
        "id_hashes": rng.integers(0, 2**64, rows, dtype=np.uint64),
    }
    save_mapped(texts_path(folder, part), arrays)
    save_array(folder, f"gaps-{part}", rng.normal(0.02, 0.1, (rows, 2)).clip(-1, 1).round(6))


def write_captions(folder: Path, part: str, captions: int) -> None:
    """Write made-up captions of a part, each with one row and its fold."""
    rng = np.random.default_rng(int(part))
    lengths = rng.integers(8, 13, captions).astype(np.int32)
    drawn, follows = _draw_words(rng, int(lengths.sum())), rng.random(int(lengths.sum())) < 0.5
    flat = np.where(follows, (np.roll(drawn, 1) * 31 + _draw_words(rng, len(drawn)) ** 2) % WORDS, drawn)
    own = np.arange(captions, dtype=np.int32)
    texts: dict[str, Any] = {
        "caption_form": own,
        "positive": own,
        "negative": np.roll(own, 1),
        "lengths": lengths,
        "flat": flat.astype(np.int32),
        "words": pl.Series([f"word{number}" for number in range(WORDS)]),
    }
    save_mapped(texts_path(folder, part), texts)
    fold = rng.integers(0, FOLDS, captions)
    save_mapped(
        folds_path(folder, part),
        {"caption_folds": (1 << fold).astype(np.int32), "row_fold": fold, "numbers": np.arange(WORDS)},
    )


def _draw_words(rng: np.random.Generator, size: int) -> IntArray:
    # Frequencies by Zipf's law.
    drawn: IntArray = np.minimum(np.exp(rng.random(size) * np.log(WORDS + 1)).astype(np.int64) - 1, WORDS - 1)
    return drawn


def run_models(folder: Path, parts: Sequence[str], captions: int) -> None:
    """Print the table of the language models of one fold."""
    write_bytes(folder / "words.json", orjson.dumps([f"word{number}" for number in range(WORDS)]))
    rows = len(parts) * captions
    print(HEAD)
    run_step("counts", [(count_parts, folder, parts)], rows)
    entries = sum(count_entries(folder, part) for part in parts)
    ranges = count_ranges(entries)
    run_step("sums", [(sum_range, folder, parts, 0, number, ranges) for number in range(ranges)], rows)
    run_step("finish", [(finish_fold, folder, 0, ranges)], rows)
    run_step("score", [(score_part, folder, parts[0], [0])], captions // FOLDS)
    trigrams = sum(len(map_arrays(path)["trigrams"]) for path in folder.glob("sums-0-*"))
    size = sum(path.stat().st_size for path in folder.glob("sums-0-*"))
    print(f"{entries:,} entries, {trigrams:,} different trigrams, {size / MIB:,.0f} MiB of files of the fold")


def count_parts(folder: Path, parts: Sequence[str]) -> None:
    """Count the words of parts."""
    for part in parts:
        count_part(folder, part)


def measure(job: Callable[..., Any], *arguments: object) -> tuple[Any, float, float]:
    """Return what a job returns, its CPU seconds, and the MiB of anonymous memory that it added at most."""
    pa.ipc, pl.concat([pl.Series(["b", "a"])]).rank("dense")
    peak, done = [0.0], threading.Event()
    before = anonymous()

    def sample() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], anonymous() - before)

    watching = threading.Thread(target=sample)
    watching.start()
    start = time.process_time()
    result = job(*arguments)
    used = time.process_time() - start
    done.set()
    watching.join()
    return result, used, peak[0]


def anonymous() -> float:
    """Return the MiB of anonymous memory of this process."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def run_step(name: str, jobs: Sequence[tuple[Any, ...]], rows: int) -> list[Any]:
    """Run jobs one after the other, each in a new process, print a line, and return their results."""
    found = []
    for job in jobs:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found.append(pool.submit(measure, *job).result())
    total, longest, most = (
        sum(each[1] for each in found),
        max(each[1] for each in found),
        max(each[2] for each in found),
    )
    print(
        f"{name:10} {len(jobs):5} {total:7.1f} {longest:8.1f} {1e6 * total / rows:10.2f} {most:10.0f}"
        f" {most * MIB / rows:14.1f}",
        flush=True,
    )
    return [each[0] for each in found]


def run_steps(folder: Path, parts: Sequence[str], each: int) -> None:
    """Print the table."""
    options, rows = RefineOptions(), len(parts) * each
    batches = {f"{number}": batch for number, batch in enumerate(_batches(parts, each))}
    names = list(batches)
    print(HEAD)
    run_step("names", [(list_batch, folder, name, batch) for name, batch in batches.items()], rows)
    run_step("numbers", [(number_all, folder, names, options)], rows)
    gathered = run_step("hashes", [(gather_batch, folder, name, batch) for name, batch in batches.items()], rows)
    buckets = count_buckets(sum(facts["forms"] for _, facts in gathered))
    run_step("answers", [(unite_bucket, folder, batches, number, buckets) for number in range(buckets)], rows)
    run_step("folds", [(assign_batch, folder, names, name, batch, buckets) for name, batch in batches.items()], rows)
    grids = choose_grids([count_rows(folder, part) for part in parts], range(options.folds), options)
    start = time.process_time()
    for part in parts:
        list_cells(folder, part, grids, options)
    print(f"{'cells':10} {len(parts):5} {time.process_time() - start:7.1f}")
    run_step("balance", [(limit_rows, folder, parts)], rows)
    start = time.process_time()
    balanced = BalancedParts(grids, options)
    kept = sum(int((balanced.read_verdicts(folder, part)[0]["reason"] == "").sum()) for part in parts)
    print(f"{'verdicts':10} {len(parts):5} {time.process_time() - start:7.1f}   kept {kept:,} of {rows:,}")


def _batches(parts: Sequence[str], rows: int) -> list[list[str]]:
    return split_batches(parts, [rows + round(rows / NEGATIVES)] * len(parts))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", action="store_true", help="the language models instead")
    parser.add_argument("--rows", type=int, default=3_500_000)
    parser.add_argument("--parts", type=int, default=400)
    parser.add_argument("--range-entries", type=int, default=fold_sums.RANGE_ENTRIES)
    parser.add_argument("--batch-texts", type=int, default=fold_assignment.BATCH_TEXTS)
    parser.add_argument("--bucket-forms", type=int, default=fold_assignment.BUCKET_FORMS)
    parser.add_argument("--work", type=Path, help="folder for the files; else a temporary one")
    chosen = parser.parse_args()
    fold_assignment.BATCH_TEXTS, fold_assignment.BUCKET_FORMS = chosen.batch_texts, chosen.bucket_forms
    fold_sums.RANGE_ENTRIES = chosen.range_entries
    parts, each = [f"{number:05}" for number in range(chosen.parts)], chosen.rows // chosen.parts
    with tempfile.TemporaryDirectory(dir=chosen.work) as folder:
        for part in parts:
            (write_captions if chosen.models else write_part)(Path(folder), part, each)
        (run_models if chosen.models else run_steps)(Path(folder), parts, each)


if __name__ == "__main__":
    main()
