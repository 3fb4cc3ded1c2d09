"""Queries prepared for search: each distinct vector once, with its queries, concepts and names.

A model encodes a query as a sentence. The lexical encoder sums words, so the words of a template would dominate: "photo"
is rarer than "cat" in COCO captions. It therefore searches

- for a class by its name only, since the class list separates names and templates;
- for a line of text by a vector that is turned towards its *name* (the words that are not in nearly all lines) until
  their cosine is `MIN_NAME_COSINE`. The shared words may be a template ("a photo of a cat") or part of the request ("red
  car", "blue car"), so they keep some weight; if they weigh little ("a", "the"), the vector does not change.

If only query vectors are given, the mean over a concept replaces its bare name, as template ensembles do in CLIP's
zero-shot classifiers.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.encoders import lexical
from pairwright.indexes.encoders.hashed_features import split_words
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.hnsw.metadata import IndexInfo
from pairwright.indexes.retrieval.batched_search import LazyVectors, wrap_vectors
from pairwright.indexes.retrieval.queries import Query

T = TypeVar("T", bound=Hashable)

MIN_NAME_COSINE = 0.9  # the name then has 81% of the squared length


@dataclass(frozen=True)
class PreparedQueries:
    """Queries with their distinct vectors.

    Attributes:
        queries: columns query (number), ask (number in ``asks``), concept (code, in order of the queries), name (number
            in ``names``).
        texts: columns text, concept (in words), template, by number of query.
        concepts: columns concept (code), words, queries (count), by code.
        asks: distinct search vectors.
        names: vectors of the bare names of the concepts, with which returned pairs are compared.
        name_word_counts: number of words per name, int64 (names,); 0 if only vectors are given.
        name_source: ``name``, or ``mean of its queries``.
    """

    queries: pl.DataFrame
    texts: pl.DataFrame
    concepts: pl.DataFrame
    asks: LazyVectors
    names: LazyVectors
    name_word_counts: NDArray[np.int64]
    name_source: str

    def sample(self, size: int) -> NDArray[np.int64]:
        """Return the asks whose texts have the smallest hashes: a sample independent of the order."""
        first = self.queries.select("ask").with_columns(self.texts["text"]).group_by("ask").agg(pl.col("text").min())
        drawn = sorted((blake2b(text.encode(), digest_size=8).digest(), number) for number, text in first.iter_rows())
        return np.sort(np.array([number for _, number in drawn[:size]], np.int64))


def prepare_queries(
    info: IndexInfo, encoding: TextEncoder | Vectors | None, queries: Sequence[Query]
) -> PreparedQueries:
    """Prepare queries for a search.

    Args:
        info: metadata of the index.
        encoding: its encoder, or the vectors of the queries, unit rows, float32 (queries, dim).
        queries: at least one query.

    Raises:
        StorageError: if the encoder is not that of the index.
        UsageError: if there are no queries, or neither an encoder nor vectors of the right shape.
    """
    if not queries:
        raise UsageError("no queries.")
    concept_of, words = _number_distinct([query.concept for query in queries])
    query_counts = np.bincount(concept_of, minlength=len(words)).astype(np.uint32)
    if isinstance(encoding, np.ndarray):
        if encoding.shape != (len(queries), info.dim):
            raise UsageError(f"query vectors of shape {encoding.shape}: expected ({len(queries)}, {info.dim}).")
        ask_of, asks = np.arange(len(queries), dtype=np.uint32), wrap_vectors(encoding)
        words_in = np.zeros(len(words), np.int64)
        name_of, names, name_source = (
            concept_of,
            wrap_vectors(_mean_vectors(encoding, concept_of)),
            "mean of its queries",
        )
    else:
        encoder = _check_encoder(info, encoding)
        ask_of, texts = _number_distinct([_texts_to_encode(encoder, query) for query in queries])
        name_of, bare = _number_distinct([(query.name,) for query in queries])
        asks, names, name_source = _lazy_text_vectors(encoder, texts), _lazy_text_vectors(encoder, bare), "name"
        words_in = np.array([len(split_words(name)) for (name,) in bare], np.int64)
    numbers = np.arange(len(queries), dtype=np.uint32)
    return PreparedQueries(
        pl.DataFrame({"query": numbers, "ask": ask_of, "concept": concept_of, "name": name_of}),
        pl.DataFrame(
            {
                "text": [query.text for query in queries],
                "concept": [query.concept for query in queries],
                "template": [query.template for query in queries],
            }
        ),
        pl.DataFrame({"concept": np.arange(len(words), dtype=np.uint32), "words": words, "queries": query_counts}),
        asks,
        names,
        words_in,
        name_source,
    )


def encode_queries(encoder: TextEncoder, queries: Sequence[Query]) -> Vectors:
    """Return the distinct search vectors of ``queries``, unit rows, float32 (n, dim)."""
    _, texts = _number_distinct([_texts_to_encode(encoder, query) for query in queries])
    return _encode_texts(encoder, texts)


def _texts_to_encode(encoder: TextEncoder, query: Query) -> tuple[str, ...]:
    """Return the text to encode and, if its name must weigh more, that name; see the module docstring."""
    if encoder.name != lexical.NAME or query.name == query.text:
        return (query.text,)
    return (query.name,) if query.template else (query.text, query.name)


def _lazy_text_vectors(encoder: TextEncoder, texts: Sequence[tuple[str, ...]]) -> LazyVectors:
    """Return vectors of texts, encoded on demand."""
    return LazyVectors(len(texts), lambda numbers: _encode_texts(encoder, [texts[number] for number in numbers]))


def _encode_texts(encoder: TextEncoder, texts: Sequence[tuple[str, ...]]) -> Vectors:
    """Return the vector of each text, turned towards that of its name if given."""
    rows = encoder.encode_texts([group[0] for group in texts])
    several = [number for number, group in enumerate(texts) if len(group) > 1]
    if several:
        rows[several] = _turn_towards_names(
            rows[several], encoder.encode_texts([texts[number][1] for number in several])
        )
    return rows


def _turn_towards_names(rows: Vectors, names: Vectors) -> Vectors:
    """Return unit rows turned towards ``names`` until their cosines are at least `MIN_NAME_COSINE`."""
    cosines = np.einsum("nd,nd->n", rows, names)[:, None]
    rest = rows - cosines * names
    lengths = np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-6)
    turned = MIN_NAME_COSINE * names + np.sqrt(1 - MIN_NAME_COSINE**2) * rest / lengths
    return np.where(cosines < MIN_NAME_COSINE, turned, rows).astype(np.float32)


def _check_encoder(info: IndexInfo, encoder: TextEncoder | None) -> TextEncoder:
    if encoder is None:
        raise UsageError("the index has no encoder for queries: pass the vectors of the queries (.npy).")
    if encoder.fingerprint != info.encoder:
        raise StorageError(
            f"the index was built with another encoder or another state of {encoder.name} version {encoder.version}. "
            "Open encoder and index from the same folder."
        )
    return encoder


def _number_distinct(values: list[T]) -> tuple[NDArray[np.uint32], list[T]]:
    """Return the number of each value among the distinct values, and these in order of first occurrence."""
    numbers: dict[T, int] = {}
    of = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.uint32)
    return of, list(numbers)


def _mean_vectors(vectors: Vectors, groups: NDArray[np.uint32]) -> Vectors:
    sums = np.zeros((int(groups.max()) + 1, vectors.shape[1]))
    np.add.at(sums, groups, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Vectors = (sums / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return means
