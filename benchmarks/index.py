"""Building, opening and searching an index, beside bare FAISS with the same parameters, hnswlib and usearch.

    python -m benchmarks.index [--vectors 20000] [--dim 512] [--runs 3] [--only NAME ...] [--folder FOLDER]

The pool is a mixture of clusters of unequal size on the sphere. Queries are of two kinds: *like the pool* (further vectors
of the mixture) and *like texts* (a small part of such a vector, a direction that no stored vector has, and noise: cosines
of about 0.3 to their nearest, as texts have to images). Each maker is a process of its own for each run, and all of them
build M 32, efConstruction 200, with all cores. A column is the median of the runs:

    CPU s      to build, files included; for pairwright also to look for copies and to tune; ratio to bare FAISS
    peak MB    memory beyond the start, a block of 16,384 rows included
    need MB    what vectors, links and (pairwright) the search for copies take by themselves
    B/vector   of the file
    open ms    by memory map where the maker can; the second time, so that the disk does not count
    effort, recall@10, queries/s
               for each kind of query: the first step that reaches recall 0.95 (or the last), one thread, batches of 500

A maker that is not installed is named, and left out.
"""

import argparse
import gc
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.building.part_builder import new_part_builder
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import limit_faiss_threads
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.storage import VectorStore, choose_storage, open_store, training_row_count
from pairwright.indexes.hnsw.top_k import TopK

M, EF, K, WANTED = 32, 200, 10, 0.95
BLOCK = 16_384
QUERIES = 1000
LADDER = (16, 32, 64, 128, 256, 512, 1024)
KINDS = ("pool", "text")
PART = "text-00000"
Made = Any  # what a maker built or opened


def mixture(count: int, dim: int, *names: str) -> Vectors:
    """Draw from clusters whose sizes fall as 1 / rank and whose members are spread in a space of fewer dimensions."""
    centres = 300
    fixed = make_numpy_rng("index benchmark", dim)
    middle = fixed.normal(size=(centres, dim))
    frames = fixed.normal(size=(8, dim // 8, dim))
    shares = 1 / np.arange(1, centres + 1)
    chance = make_numpy_rng("index benchmark", dim, *names)
    rows = np.empty((count, dim), np.float32)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        cluster = chance.choice(centres, size, p=shares / shares.sum())
        inner = chance.normal(size=(size, dim // 8))
        spread = np.empty((size, dim))
        for frame in range(8):
            mine = cluster % 8 == frame
            spread[mine] = inner[mine] @ frames[frame] / np.sqrt(dim / 8)
        part = middle[cluster] + spread + 0.3 * chance.normal(size=(size, dim))
        rows[start : start + size] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def text_like(rows: Vectors) -> Vectors:
    """Turn vectors of the pool into queries from outside it."""
    chance = make_numpy_rng("index benchmark", "texts", rows.shape[1])
    gap = chance.normal(size=rows.shape[1]) / np.sqrt(rows.shape[1])
    noise = chance.normal(size=rows.shape) / np.sqrt(rows.shape[1])
    queries = 0.35 * rows + 0.8 * gap + 0.5 * noise
    unit: Vectors = (queries / np.linalg.norm(queries, axis=1, keepdims=True)).astype(np.float32)
    return unit


def prepare(folder: Path, count: int, dim: int) -> None:
    """Write pool, queries and the true tenth score of each."""
    folder.mkdir(parents=True, exist_ok=True)
    pool = mixture(count, dim, "pool")
    pool.tofile(folder / "pool.f32")
    asked = mixture(QUERIES, dim, "queries")
    for kind, queries in (("pool", asked), ("text", text_like(asked))):
        best = TopK(len(queries), K)
        for start in range(0, count, BLOCK):
            part = pool[start : start + BLOCK]
            best.add(queries @ part.T, np.arange(start, start + len(part)))
        np.savez(folder / f"{kind}.npz", queries=queries, tenth=best.scores[:, -1])


class Maker(ABC):
    """One way to build an index and to search it."""

    efforts: tuple[int, ...] = LADDER

    def __init__(self, folder: Path, count: int, dim: int) -> None:
        """Take the folder of the pool and its size."""
        self.folder, self.count, self.dim = folder, count, dim

    def blocks(self) -> Iterator[Vectors]:
        """Yield the pool, read into memory block by block."""
        with (self.folder / "pool.f32").open("rb") as handle:
            for start in range(0, self.count, BLOCK):
                size = min(BLOCK, self.count - start)
                yield np.frombuffer(handle.read(4 * self.dim * size), np.float32).reshape(size, self.dim)

    @property
    def needed(self) -> float:
        """Bytes that vectors and links need."""
        return self.count * (4 * self.dim + 8 * M + 16)

    @abstractmethod
    def build(self, out: Path) -> None:
        """Build into the folder ``out``."""

    @abstractmethod
    def open(self, out: Path) -> Made:
        """Open what was built."""

    @abstractmethod
    def search(self, made: Made, queries: Vectors, effort: int) -> NDArray[np.int64]:
        """Return the numbers of the `K` nearest, with one thread."""


class Pairwright(Maker):
    """This toolkit: a part with its keys, copies sought, effort tuned on 500 queries whose truth is taken as it builds."""

    def __init__(self, folder: Path, count: int, dim: int, storage: str) -> None:
        """Take the form of storage, too."""
        super().__init__(folder, count, dim)
        self.options = IndexOptions(m=M, ef_construction=EF, storage=storage)  # type: ignore[arg-type]  # from MAKERS
        self.choice = choose_storage(count, dim, self.options)
        if self.choice.kind == "flat":
            self.efforts = (0,)
        if self.choice.kind == "ivfpq":
            self.efforts = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

    @property
    def needed(self) -> float:
        """Bytes that vectors, links and the search for copies need."""
        return self.choice.total_bytes + 72 * self.count

    def build(self, out: Path) -> None:
        """Build into the folder ``out``."""
        rows = training_row_count(self.choice.storage, self.count)
        sample = np.fromfile(self.folder / "pool.f32", np.float32, rows * self.dim).reshape(rows, self.dim)
        with np.load(self.folder / "pool.npz") as asked:
            probes = asked["queries"][:500]
        part = new_part_builder(
            out / PART,
            self.choice,
            self.options,
            count=self.count,
            sample=sample if rows else None,
            sample_queries=probes,
        )
        del sample
        done = 0
        for block in self.blocks():
            part.add([f"{number:032x}" for number in range(done, done + len(block))], block)
            done += len(block)
        info = part.finish()
        if info is None or info.vectors != self.count:
            raise SystemExit("some vectors of the mixture were taken for copies")

    def open(self, out: Path) -> VectorStore:
        """Open what was built, by memory map."""
        return open_store(out / PART, self.choice.kind, self.choice.storage)

    def search(self, made: Made, queries: Vectors, effort: int) -> NDArray[np.int64]:
        """Return the numbers of the `K` nearest."""
        numbers: NDArray[np.int64] = made.search(queries, K, effort)[1]
        return numbers


class BareFaiss(Maker):
    """FAISS as its tutorial uses it, given the same blocks."""

    def build(self, out: Path) -> None:
        """Build into the folder ``out``."""
        import faiss

        index = faiss.IndexHNSWFlat(self.dim, M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF
        for rows in self.blocks():
            index.add(rows)
        faiss.write_index(index, str(out / "index"))

    def open(self, out: Path) -> Made:
        """Read it into memory, as FAISS does when not told otherwise."""
        import faiss

        return faiss.read_index(str(out / "index"))

    def search(self, made: Made, queries: Vectors, effort: int) -> NDArray[np.int64]:
        """Return the numbers of the `K` nearest."""
        made.hnsw.efSearch = effort
        numbers: NDArray[np.int64] = made.search(queries, K)[1]
        return numbers


class Hnswlib(Maker):
    """The graph's authors' own library."""

    def build(self, out: Path) -> None:
        """Build into the folder ``out``."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=self.dim)
        index.init_index(max_elements=self.count, ef_construction=EF, M=M)
        for rows in self.blocks():
            index.add_items(rows)
        index.save_index(str(out / "index"))

    def open(self, out: Path) -> Made:
        """Read it into memory; it cannot map."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=self.dim)
        index.load_index(str(out / "index"))
        return index

    def search(self, made: Made, queries: Vectors, effort: int) -> NDArray[np.int64]:
        """Return the numbers of the `K` nearest."""
        made.set_ef(effort)
        return np.asarray(made.knn_query(queries, k=K, num_threads=1)[0], np.int64)


class Usearch(Maker):
    """USearch in float32, links as above."""

    def build(self, out: Path) -> None:
        """Build into the folder ``out``."""
        index = self._index()
        for number, rows in enumerate(self.blocks()):
            index.add(np.arange(number * BLOCK, number * BLOCK + len(rows)), rows)
        index.save(str(out / "index"))

    def open(self, out: Path) -> Made:
        """Open it by memory map."""
        index = self._index()
        index.view(str(out / "index"))
        return index

    def search(self, made: Made, queries: Vectors, effort: int) -> NDArray[np.int64]:
        """Return the numbers of the `K` nearest."""
        made.expansion_search = effort
        return np.asarray(made.search(queries, K, threads=1).keys, np.int64)

    def _index(self) -> Made:
        from usearch.index import Index

        return Index(ndim=self.dim, metric="ip", dtype="f32", connectivity=M, expansion_add=EF)


MAKERS: dict[str, Callable[[Path, int, int], Maker]] = {
    "faiss": BareFaiss,
    "pairwright flat": partial(Pairwright, storage="flat"),
    "pairwright fp16": partial(Pairwright, storage="fp16"),
    "pairwright int8": partial(Pairwright, storage="int8"),
    "pairwright ivfpq": partial(Pairwright, storage="ivfpq"),
    "hnswlib": Hnswlib,
    "usearch": Usearch,
}


def measure(maker: Maker) -> dict[str, float]:
    """Build, open and search with one maker; this is what runs in a process of its own."""
    import faiss  # counted with the start, as every maker's own import

    pool = np.memmap(maker.folder / "pool.f32", np.float32, "r", shape=(maker.count, maker.dim))
    with tempfile.TemporaryDirectory(dir=maker.folder) as name:
        out = Path(name)
        memory = _peak_from_here()
        started, wall = time.process_time(), time.perf_counter()
        maker.build(out)
        row = {"cpu": time.process_time() - started, "wall": time.perf_counter() - wall}
        row["peak"], row["need"] = (_status("VmHWM") - memory) / 1e6, maker.needed / 1e6
        row["bytes"] = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / maker.count
        gc.collect()
        maker.open(out)
        started = time.perf_counter()
        made = maker.open(out)
        row["open"] = 1000 * (time.perf_counter() - started)
        with limit_faiss_threads(1):
            for kind in KINDS:
                for key, value in reached(maker, made, kind, pool).items():
                    row[f"{kind} {key}"] = value
    del faiss
    return row


def reached(maker: Maker, made: Made, kind: str, pool: Vectors) -> dict[str, float]:
    """Return effort, recall and rate where the wanted recall is reached first."""
    stored = np.load(maker.folder / f"{kind}.npz")
    queries, tenth = stored["queries"], stored["tenth"]
    for effort in maker.efforts:
        maker.search(made, queries[:100], effort)  # pages in
        started = time.perf_counter()
        found = np.concatenate([maker.search(made, queries[s : s + 500], effort) for s in range(0, len(queries), 500)])
        seconds = time.perf_counter() - started
        true = np.matmul(pool[np.maximum(found, 0)], queries[:, :, None])[:, :, 0]
        recall = float(((true >= tenth[:, None] - 1e-5) & (found >= 0)).mean())
        if recall >= WANTED:
            break
    return {"effort": effort, "recall": recall, "rate": len(queries) / seconds}


def _status(name: str) -> int:
    with Path("/proc/self/status").open(encoding="ascii") as handle:
        return next(1024 * int(line.split()[1]) for line in handle if line.startswith(name))


def _peak_from_here() -> int:
    """Forget the peak of this process's memory so far, and return what it takes now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def table(rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the lines of the table."""
    kinds = "".join(f" | {'queries like ' + kind + 's':^27}" for kind in ("pool", "text"))
    yield f"{'':<17}{'CPU s':>8}{'ratio':>7}{'wall s':>8}{'peak MB':>9}{'need MB':>9}{'B/vector':>10}{'open ms':>9}{kinds}"
    for name, row in rows.items():
        ratio = f"{row['cpu'] / rows['faiss']['cpu']:.3f}" if "faiss" in rows else ""
        line = f"{name:<17}{row['cpu']:8.1f}{ratio:>7}{row['wall']:8.1f}{row['peak']:9.0f}{row['need']:9.0f}{row['bytes']:10.0f}{row['open']:9.2f}"
        for kind in KINDS:
            line += f" | {row[f'{kind} effort']:6.0f} {row[f'{kind} recall']:8.4f} {row[f'{kind} rate']:8.0f}/s"
        yield line


def main() -> None:
    """Run every maker in processes of their own, in turn, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--folder", type=Path, help="for pool and indexes, some GB; a temporary one when not given")
    parser.add_argument("--measure", choices=MAKERS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(MAKERS[chosen.measure](chosen.folder, chosen.vectors, chosen.dim))))
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        prepare(Path(name), chosen.vectors, chosen.dim)
        runs: dict[str, list[dict[str, float]]] = {}
        for _ in range(chosen.runs):
            for maker in chosen.only:
                if maker in {"hnswlib", "usearch"} and importlib.util.find_spec(maker) is None:
                    print(f"{maker}: left out, it is not installed", file=sys.stderr)
                    continue
                size = ["--vectors", str(chosen.vectors), "--dim", str(chosen.dim), "--folder", name]
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.index", "--measure", maker, *size],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                runs.setdefault(maker, []).append(json.loads(done.stdout.splitlines()[-1]))
    medians = {maker: {key: statistics.median(run[key] for run in of) for key in of[0]} for maker, of in runs.items()}
    print(f"{chosen.vectors:,} vectors of {chosen.dim} dimensions, median of {chosen.runs}")
    print("\n".join(table(medians)))


if __name__ == "__main__":
    main()
