"""Stages ``index`` and ``retrieve``: the captions become a searchable pool, and queries choose from it."""

from pathlib import Path

import polars as pl

from pairwright.datasets.atomic import replacing
from pairwright.datasets.errors import InputError
from pairwright.datasets.rejects import reject
from pairwright.datasets.tables import PAIRS, REJECTS
from pairwright.flows.config import IndexSection, RetrieveSection
from pairwright.flows.layout import chosen_path, pairs_path, read_pair_parts, rejected_path
from pairwright.flows.receipts import Counts, Outcome
from pairwright.indexes.building import EncoderOptions, index_pairs, open_index_folder
from pairwright.indexes.queries import read_queries
from pairwright.indexes.retrieval import retrieve
from pairwright.indexes.sidecar import SIDECAR, IndexOptions


def build_index(root: Path, parts: list[str], section: IndexSection, seed: int) -> Outcome:
    """Fit the encoder on the captions and build the FAISS index over them.

    The unit is a pair; a pair whose vector equals an earlier one's is an alias of it, counted as duplicate.
    """
    folder = root / "index"
    info = index_pairs(
        lambda: read_pair_parts(root, parts),
        folder,
        encoder=EncoderOptions(name=section.encoder, seed=seed),
        options=IndexOptions(ef_construction=section.ef_construction),
    )
    duplicates = {"duplicate_caption": info.duplicates} if info.duplicates else {}
    outputs = [*(folder / name for name in sorted(info.files)), folder / SIDECAR]
    facts = {"kind": info.kind, "dim": info.dim, "ef_search": info.ef_search, "bytes": info.bytes}
    return Outcome(outputs, Counts("pair", info.pairs, info.vectors, duplicates), facts)


def retrieve_pairs(root: Path, parts: list[str], section: RetrieveSection) -> Outcome:
    """Search the index with every query and choose the pairs that are hit.

    Writes every hit (query, concept, template, rank, key, score), the coverage by concept and the chosen keys;
    pairs that no query reached are rejected rows.
    """
    index = open_index_folder(root / "index")
    found = retrieve(index.index, index.encoder, read_queries(Path(section.queries)), section.k)
    hits = found.hits.filter(pl.col("score") >= section.min_score)
    keys = set(hits["key"])
    if not keys:
        raise InputError(
            "no query found a pair", where=section.queries, mend="Lower `min_score` under retrieve, or ask otherwise"
        )
    tables = {
        root / "retrieval" / "hits.parquet": hits,
        root / "retrieval" / "coverage.parquet": found.coverage,
        chosen_path(root): pl.DataFrame({"key": sorted(keys)}),
    }
    for path, frame in tables.items():
        with replacing(path) as temporary:
            frame.write_parquet(temporary)
    left_out, rejected = _reject_others(root, parts, keys)
    facts = {"queries": found.summary()["queries"], "hits": hits.height, "uncovered": found.uncovered}
    counts = Counts("pair", len(keys) + left_out, len(keys), {"not_retrieved": left_out} if left_out else {})
    return Outcome([*tables, *rejected], counts, facts)


def _reject_others(root: Path, parts: list[str], keys: set[str]) -> tuple[int, list[Path]]:
    count, written = 0, []
    for part in parts:
        pairs = PAIRS.read_frame(pairs_path(root, part)).select("key", "caption").iter_rows()
        rows = [
            reject(f"pair {key}", "not_retrieved", "no query found it", caption)
            for key, caption in pairs
            if key not in keys
        ]
        path = rejected_path(root, "retrieve", part)
        REJECTS.write(rows, path)
        written.append(path)
        count += len(rows)
    return count, written
