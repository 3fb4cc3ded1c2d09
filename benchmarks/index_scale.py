"""A large sharded index: built from a folder of embeddings, searched, and checked against the truth; figures for a plan.

    python -m benchmarks.index_scale [--vectors 1000000] [--shards 4] [--workers 2] [--storage fp16] [--work DIR]
        [--json scale.json] [--page benchmarks/RESULTS.md]

Writes a folder of embeddings as clip-retrieval does (half precision, image and text vectors of
`synthetic_embeddings.py`, made in blocks; 2 KiB a pair at 512 dimensions, kept in --work), builds an index over the image
vectors in parts, side by side, and opens and searches it. Build and search run in processes of their own, whose trees'
memory is measured. Then:

- recall@10 against the nearest of all vectors by brute force, for new images and for text-like queries;
- the merged results against a merge, made here, of what each part finds on its own;
- rates, and what they come to for --plan pairs on --plan-cores cores: extrapolated, and said so.

--json writes all figures, and --page fills the tables of benchmarks/RESULTS.md with them.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.process_usage import Measured, measured
from benchmarks.synthetic_embeddings import Mixture, Rows
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors
from pairwright.indexes.hnsw.metadata import VectorStorage
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import Hits, Index, open_index

BLOCK = 62_500  # rows of a file of embeddings
QUERIES = 500  # of each kind
K = 10
KINDS = ("image", "text-like")
GIB = 2**30


@dataclass(frozen=True)
class Work:
    """The working folder and what is in it."""

    folder: Path

    @property
    def embeddings(self) -> Path:
        """Laid out as clip-retrieval does."""
        return self.folder / "embeddings"

    @property
    def index(self) -> Path:
        """The index."""
        return self.folder / "index"


def make_embeddings(work: Work, count: int, mixture: Mixture) -> None:
    """Write ``count`` rows, unless they are there already."""
    made = work.folder / "made.json"
    wanted = {"count": count, "dim": mixture.dim, "clusters": mixture.clusters, "seed": mixture.seed}
    if made.exists() and json.loads(made.read_text()) == wanted:
        return
    if work.embeddings.exists():
        raise SystemExit(f"{work.embeddings}: holds other embeddings. Take another --work, or remove it.")
    for name in ("img_emb", "text_emb", "metadata"):
        (work.embeddings / name).mkdir(parents=True)
    for number, start in enumerate(range(0, count, BLOCK)):
        rows = min(BLOCK, count - start)
        images, texts = mixture.block(f"block {number}", rows)
        np.save(work.embeddings / "img_emb" / f"img_emb_{number:04}.npy", images.astype(np.float16))
        np.save(work.embeddings / "text_emb" / f"text_emb_{number:04}.npy", texts.astype(np.float16))
        ids = range(start, start + rows)
        metadata = pl.DataFrame(
            {"caption": [f"made picture {i}" for i in ids], "image_path": [f"{i}.jpg" for i in ids]}
        )
        metadata.write_parquet(work.embeddings / "metadata" / f"metadata_{number:04}.parquet")
    made.write_text(json.dumps(wanted))


def queries(mixture: Mixture) -> dict[str, Rows]:
    """Return queries of each kind that are not in the pool."""
    images, texts = mixture.block("queries", QUERIES)
    return dict(zip(KINDS, (images, texts), strict=True))


def batches(folder: Path) -> Iterator[list[Pair]]:
    """Yield the pairs of the folder."""
    for batch in read_pairs(ReadOptions(str(folder), format="clip-retrieval", verify_images="off")):
        yield batch.pairs


def nearest(work: Work, asked: Rows) -> NDArray[np.int64]:
    """Return the numbers of the K nearest of all rows (n, K), by brute force, block by block."""
    best, rows, start = np.full((len(asked), K), -2, np.float32), np.zeros((len(asked), K), np.int64), 0
    for path in sorted((work.embeddings / "img_emb").glob("*.npy")):
        block = np.load(path).astype(np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        joined = np.concatenate([best, asked @ block.T], axis=1)
        numbers = np.concatenate(
            [rows, np.broadcast_to(np.arange(start, start + len(block)), (len(asked), len(block)))], 1
        )
        kept = np.argpartition(-joined, K, axis=1)[:, :K]
        best, rows = np.take_along_axis(joined, kept, 1), np.take_along_axis(numbers, kept, 1)
        start += len(block)
    return rows


def keys_of(work: Work) -> NDArray[np.uint8]:
    """Return the key of each row, uint8 (rows, 16)."""
    found = [(json.loads(pair.meta)["embedding_row"], pair.key) for batch in batches(work.embeddings) for pair in batch]
    joined = b"".join(bytes.fromhex(key) for _, key in sorted(found))
    return np.frombuffer(joined, np.uint8).reshape(-1, 16)


def build(work: Work, options: IndexOptions, shards: int, workers: int) -> dict[str, Any]:
    """Build the index over the image vectors."""
    info = build_index_from_pairs(
        partial(batches, work.embeddings),
        work.index,
        encoder=None,
        vectors=PrecomputedVectors(work.embeddings),
        modalities=("image",),
        options=options,
        shards=shards,
        workers=workers,
    )
    return info.summary()


def search(work: Work, mixture: Mixture) -> dict[str, Any]:
    """Open and search the index; return latencies and rates, and leave the hits for the checks."""
    opening = []
    for _ in range(5):
        started = time.perf_counter()
        index = open_index(work.index)
        opening.append(time.perf_counter() - started)
    found: dict[str, Any] = {"open_ms": 1000 * statistics.median(opening)}
    for kind, asked in queries(mixture).items():
        index.search(asked, K, modality="image")  # brings the index into memory
        started, used = time.perf_counter(), time.process_time()
        hits = index.search(asked, K, modality="image")
        found[f"{kind}: queries/s"] = len(asked) / (time.perf_counter() - started)
        milliseconds = 1000 * (time.process_time() - used)
        found[f"{kind}: core ms a query and part"] = milliseconds / len(asked) / len(index.parts)
        one = []
        for row in range(100):
            started = time.perf_counter()
            index.search(asked[row : row + 1], K, modality="image")
            one.append(time.perf_counter() - started)
        found[f"{kind}: ms a query alone"] = 1000 * statistics.median(one)
        np.savez(work.folder / f"hits-{KINDS.index(kind)}.npz", queries=hits.queries, keys=hits.keys)
        found[f"{kind}: merged as it should be"] = same_as_merged(index, asked, hits)
    return found


def same_as_merged(index: Index, asked: Rows, hits: Hits) -> bool:
    """Tell whether ``hits`` are the K best of what the parts find, each asked alone."""
    alone = [replace(index, parts=(part,)).search(asked, K, modality="image").frame() for part in index.parts]
    together = pl.concat([frame.with_columns(part=pl.lit(number)) for number, frame in enumerate(alone)])
    best = together.sort(["query", "score", "part", "rank"], descending=[False, True, False, False])
    wanted = best.group_by("query", maintain_order=True).head(K)
    return wanted.select("query", "key", "score").equals(hits.frame().select("query", "key", "score"))


def recall(work: Work, kind: str, rows: NDArray[np.int64], keys: NDArray[np.uint8]) -> float:
    """Return the share of the true nearest ``rows`` (n, K) among the hits."""
    with np.load(work.folder / f"hits-{KINDS.index(kind)}.npz") as hits:
        found = set(zip(hits["queries"].tolist(), map(bytes, hits["keys"]), strict=True))
    wanted = [(query, bytes(keys[row])) for query, line in enumerate(rows) for row in line]
    return sum(one in found for one in wanted) / len(wanted)


def in_process(step: str, arguments: list[str]) -> tuple[dict[str, Any], Measured]:
    """Run one step of this benchmark in a process of its own."""
    run = measured([sys.executable, "-m", "benchmarks.index_scale", *arguments, "--step", step])
    result: dict[str, Any] = json.loads(run.stdout)
    return result, run


def memory(name: str, run: Measured) -> dict[str, float]:
    """Return the wall and CPU seconds and the memory of one step."""
    return {
        f"{name}: wall s": run.wall,
        f"{name}: CPU s": run.cpu,
        f"{name}: peak resident GiB": run.resident / GIB,
        f"{name}: peak anonymous GiB": run.anonymous / GIB,
    }


def plan(figures: dict[str, Any], storage: str, pairs: int, part: int, cores: int) -> dict[str, Any]:
    """Return what the rates come to for ``pairs`` in parts of ``part`` vectors on ``cores`` cores: extrapolated.

    An insertion and a search of an HNSW graph take O(log n) steps (Malkov and Yashunin 2018, section 4.2), so costs grow
    by log(part) / log(measured part); what a larger graph loses in the processor's caches comes on top. An ivfpq part
    has at most 8,192 lists: adding costs the same, and a search of as many lists grows with the part.
    """
    here = figures["vectors"] / figures["parts"]
    deeper = float(np.log(part) / np.log(here))
    adding, asking = (1.0, part / here) if storage == "ivfpq" else (deeper, deeper)
    parts = -(-pairs // part)
    core_hours = pairs * figures["build: CPU us a vector"] * adding / 3.6e9
    core_ms = parts * asking * figures["text-like: core ms a query and part"]
    return {
        "parts": parts,
        "files, GiB a part": part * figures["bytes a vector"] / GIB,
        "files, GiB": pairs * figures["bytes a vector"] / GIB,
        "build, core hours": core_hours,
        "build, hours": core_hours / cores,
        "search, ms a query on all cores": core_ms / cores,
        "search, seconds for 84,525 queries": 84_525 * core_ms / cores / 1000,
    }


def figures_of(
    built: dict[str, Any], build_run: Measured, searched: dict[str, Any], search_run: Measured
) -> dict[str, Any]:
    """Return all measured figures, with the rates that `plan` needs."""
    vectors = built["vectors"]
    rates = {
        "bytes a vector": built["bytes"] / vectors,
        "build: CPU us a vector": 1e6 * build_run.cpu / vectors,
        "build: vectors/s": vectors / build_run.wall,
    }
    return {
        **built,
        "cores": os.cpu_count(),
        **memory("build", build_run),
        **memory("search", search_run),
        **rates,
        **searched,
    }


def table(figures: dict[str, Any]) -> str:
    """Return figures as a table in Markdown."""
    lines = [
        f"| {name} | {f'{value:,.3f}' if isinstance(value, float) else value} |"
        for name, value in figures.items()
        if value != "" and not isinstance(value, list | dict)
    ]
    return "\n".join(["| | |", "| --- | ---: |", *lines])


def fill(page: Path, name: str, content: str) -> None:
    """Put ``content`` between the marks ``<!-- scale: name -->`` and ``<!-- end -->`` of a page."""
    head, mark, rest = page.read_text(encoding="utf-8").partition(f"<!-- scale: {name} -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    if not end:
        raise SystemExit(f"{page}: no marks for {name!r}")
    page.write_text(f"{head}{mark}{content}\n{end}{tail}", encoding="utf-8")


def run_all(work: Work, mixture: Mixture, chosen: argparse.Namespace, given: list[str]) -> None:
    """Run the steps, print the tables and write the figures."""
    started = time.perf_counter()
    make_embeddings(work, chosen.vectors, mixture)
    print(
        f"{chosen.vectors:,} vectors of {mixture.dim}, {time.perf_counter() - started:.0f} s to make", file=sys.stderr
    )
    built, build_run = in_process("build", given)
    searched, search_run = in_process("search", given)
    figures = figures_of(built, build_run, searched, search_run)
    keys = keys_of(work)
    for kind, asked in queries(mixture).items():
        figures[f"{kind}: recall@{K}"] = recall(work, kind, nearest(work, asked), keys)
    planned = plan(figures, chosen.storage, chosen.plan, chosen.plan_part, chosen.plan_cores)
    of = f"{chosen.plan:,} pairs in parts of {chosen.plan_part:,} on {chosen.plan_cores} cores"
    print(f"\nmeasured, {chosen.storage}\n\n{table(figures)}\n\nextrapolated to {of}\n\n{table(planned)}")
    if chosen.json:
        chosen.json.write_text(json.dumps({"measured": figures, "extrapolated": planned}, indent=2) + "\n")
    if chosen.page:
        fill(chosen.page, f"measured, {chosen.storage}", table(figures))
        fill(chosen.page, f"extrapolated, {chosen.storage}", table(planned))


def main() -> None:
    """Run one step, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--storage", choices=get_args(VectorStorage), default="fp16")
    parser.add_argument("--work", type=Path, help="kept; else a temporary folder")
    parser.add_argument("--json", type=Path, help="where all figures go")
    parser.add_argument("--page", type=Path, help="page whose tables are filled, benchmarks/RESULTS.md")
    parser.add_argument("--plan", type=int, default=400_000_000, help="pairs to extrapolate to")
    parser.add_argument("--plan-part", type=int, default=10_000_000, help="vectors of a part of that")
    parser.add_argument("--plan-cores", type=int, default=64)
    parser.add_argument("--step", choices=("all", "build", "search"), default="all", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    mixture = Mixture(chosen.dim)
    with tempfile.TemporaryDirectory() as temporary:
        work = Work(chosen.work or Path(temporary))
        if chosen.step == "build":
            print(json.dumps(build(work, IndexOptions(storage=chosen.storage), chosen.shards, chosen.workers)))
        elif chosen.step == "search":
            print(json.dumps(search(work, mixture)))
        else:
            given = [*sys.argv[1:], *(() if chosen.work else ("--work", temporary))]
            run_all(work, mixture, chosen, given)


if __name__ == "__main__":
    main()
