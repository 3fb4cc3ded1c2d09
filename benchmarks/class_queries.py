"""Class lists against a whole caption pool, through the command line: throughput, time, memory and coverage.

    python -m benchmarks.class_queries CAPTIONS QUERIES.json [--k 50] [--index DIR] [--repeat 1] [--show 10]

Every caption of CAPTIONS is a pair (``--explode``). Builds the index (or takes the one in ``--index``, made when it is
not there), then runs all queries in one `pairwright retrieve`, with hits written to Parquet. With ``--repeat`` the
figures of `retrieve` are those of the run with the median wall time. Memory is of the process tree: resident (with mapped
files) and anonymous. Prints the least and the best covered concepts as well, since a figure does not say whether
coverage reads sensibly.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import polars as pl

from benchmarks.process_usage import Measured, measured
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.retrieval.queries import read_queries
from pairwright.indexes.retrieval.results import RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve

PAIRWRIGHT = [sys.executable, "-m", "pairwright"]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="concepts of either end of the coverage")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index, out = chosen.index or Path(folder) / "index", Path(folder) / "hits.parquet"
        print(f"{'':<10}{'wall s':>9}{'CPU s':>9}{'resident MiB':>14}{'anonymous MiB':>15}")
        if not (index / "index.json").exists():
            build = ["index", "build", chosen.captions, "--explode", "--out", str(index), "--json"]
            print(line("build", measured([*PAIRWRIGHT, *build])), flush=True)
        ask = ["retrieve", "--index", str(index), "--queries", str(chosen.queries), "--k", str(chosen.k)]
        runs = [measured([*PAIRWRIGHT, *ask, "--out", str(out), "--json"]) for _ in range(chosen.repeat)]
        run = sorted(runs, key=lambda one: one.wall)[len(runs) // 2]
        print(line("retrieve", run))
        report(run, out)
        coverage(index, chosen.queries, chosen.show)


def line(name: str, run: Measured) -> str:
    """Return one line of the table."""
    return f"{name:<10}{run.wall:>9.1f}{run.cpu:>9.1f}{run.resident / 2**20:>14,.0f}{run.anonymous / 2**20:>15,.0f}"


def report(run: Measured, out: Path) -> None:
    """Print throughput and counts, and check that the file holds what the command says."""
    said = json.loads(run.stdout)
    stored = pl.scan_parquet(out).select(pl.len(), pl.col("key").n_unique()).collect().row(0)
    if stored != (said["hits"], said["unique_pairs"]):
        raise SystemExit(f"the file holds {stored}, the command said {said['hits'], said['unique_pairs']}")
    queries = said["queries"]
    print(
        f"{queries:,} queries, {queries / run.wall:,.0f} queries/s, {said['hits']:,} hits ({said['hits'] / queries:.1f} a "
        f"query), {said['unique_pairs']:,} distinct pairs, {len(said['uncovered'])} concepts not covered, "
        f"{out.stat().st_size / 2**20:,.1f} MiB of Parquet"
    )


def coverage(index: Path, queries: Path, show: int) -> None:
    """Print both ends of the coverage by concept, each with its best caption."""
    if not show:
        return
    opened = open_index_with_encoder(index)
    by_concept = {query.concept: query for query in read_queries(queries)}  # one query a concept is enough to look at
    found = retrieve(opened.index, opened.encoder, list(by_concept.values()), RetrieveOptions(k=1))
    table = found.coverage.sort("name_score", "concept")
    covered = table["covered"].sum()
    print(f"\ncoverage by the best pair: {covered} of {table.height} concepts; the {show} least and best covered")
    for row in [*table.head(show).iter_rows(named=True), *table.tail(show).iter_rows(named=True)]:
        print(f"  {row['name_score']:6.3f}  {'covered' if row['covered'] else 'NOT    '}  {row['concept']}")


if __name__ == "__main__":
    main()
