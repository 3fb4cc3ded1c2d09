"""Queries made ready to be asked: each distinct vector once, and which queries, concepts and names it serves.

Where only vectors of queries are known, the mean of a concept's stands for its bare name, as ensembles of templates do
in CLIP's zero-shot classifiers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.asking import Asks, text_asks, vector_asks
from pairwright.indexes.encoders import TextEncoder, Vectors
from pairwright.indexes.queries import Query
from pairwright.indexes.sidecar import IndexInfo


@dataclass(frozen=True)
class Questions:
    """Queries and what to ask for them.

    Attributes:
        queries: columns query (number), ask, concept (code, in order of the queries), name: the number of an ask, or
            past the asks that of one of ``names``.
        texts: columns text, concept (in words), template, by number of query.
        concepts: columns concept (code), words, queries (how many), by code.
        asks: what to search with.
        names: what to search with for bare names that are not asked as they are; may be none.
        names_from: ``name``, or ``mean of its queries``.
    """

    queries: pl.DataFrame
    texts: pl.DataFrame
    concepts: pl.DataFrame
    asks: Asks
    names: Asks
    names_from: str

    def sample(self, size: int) -> NDArray[np.int64]:
        """Return the asks whose texts have the smallest hashes: the same queries are drawn in any order."""
        first = self.queries.select("ask").with_columns(self.texts["text"]).unique("ask", keep="first").sort("ask")
        drawn = sorted((blake2b(text.encode(), digest_size=8).digest(), number) for number, text in first.iter_rows())
        return np.sort(np.array([number for _, number in drawn[:size]], np.int64))


def make_questions(info: IndexInfo, encoding: TextEncoder | Vectors | None, queries: Sequence[Query]) -> Questions:
    """Return what to ask.

    Args:
        info: of the index that will be asked.
        encoding: its encoder, or the vectors of the queries, unit rows, float32 (queries, dim).
        queries: at least one.

    Raises:
        StorageError: when the encoder is not the index's.
        UsageError: when there are no queries, or neither encoder nor fitting vectors.
    """
    if not queries:
        raise UsageError("no queries.")
    concept_of, words = _numbered([query.concept for query in queries])
    asked = np.bincount(concept_of, minlength=len(words)).astype(np.uint32)
    if isinstance(encoding, np.ndarray):
        if encoding.shape != (len(queries), info.dim):
            raise UsageError(f"query vectors {encoding.shape}: not ({len(queries)}, {info.dim}).")
        ask_of, asks = np.arange(len(queries), dtype=np.uint32), vector_asks(encoding)
        name_of = concept_of + np.uint32(asks.count)
        names, names_from = vector_asks(_means(encoding, concept_of)), "mean of its queries"
    else:
        encoder = _checked(info, encoding)
        ask_of, texts = _numbered([query.text for query in queries])
        name_of, both = _numbered([*texts, *(query.name for query in queries)])
        name_of, names_from = name_of[len(texts) :], "name"
        asks, names = text_asks(encoder, texts), text_asks(encoder, both[len(texts) :])
    numbers = np.arange(len(queries), dtype=np.uint32)
    return Questions(
        pl.DataFrame({"query": numbers, "ask": ask_of, "concept": concept_of, "name": name_of}),
        pl.DataFrame(
            {
                "text": [query.text for query in queries],
                "concept": [query.concept for query in queries],
                "template": [query.template for query in queries],
            }
        ),
        pl.DataFrame({"concept": np.arange(len(words), dtype=np.uint32), "words": words, "queries": asked}),
        asks,
        names,
        names_from,
    )


def _checked(info: IndexInfo, encoder: TextEncoder | None) -> TextEncoder:
    if encoder is None:
        raise UsageError("the index has no encoder for queries: give the vectors of the queries (.npy).")
    if encoder.fingerprint != info.encoder:
        raise StorageError(
            f"the index was built with another encoder or state than this {encoder.name} version {encoder.version}. "
            "Open encoder and index from the same folder."
        )
    return encoder


def _numbered(values: list[str]) -> tuple[NDArray[np.uint32], list[str]]:
    """Return the number of each value among the distinct ones, and those, in order of first appearance."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.uint32)
    return of, list(numbers)


def _means(vectors: Vectors, groups: NDArray[np.uint32]) -> Vectors:
    sums = np.zeros((int(groups.max()) + 1, vectors.shape[1]))
    np.add.at(sums, groups, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Vectors = (sums / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return means
