"""Texts in a scratch file, and the two language models of Algorithm 1 fitted on them.

Each text is stored once per chunk as the ids of its words, four bytes per word. Texts with equal words are one *form*,
whatever their case and spacing; forms are numbered when all texts have been added. Memory holds a few numbers per text,
and each distinct word once. Forms are identified by 64 bits of their hash: among ten million different ones, the
probability that any two collide is one in 400,000. The file is unnamed and removed with the process.

The models and their scores equal those of `GrammarScorer` and `PlausibilityScorer` trained on the same captions, to the
last bit; a repeated caption is read once and weighted by its count.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pairwright.filters.scorers.cooccurrence import Cooccurrence, find_cooccurrences, is_content_word
from pairwright.filters.scorers.text_scorers import compute_grammar_score, compute_plausibility_score
from pairwright.generators.language.trigram_model import TrigramModel, trigram_keys
from pairwright.generators.language.vocabulary import (
    MAX_WORDS,
    SPECIAL,
    UNKNOWN,
    FloatArray,
    IntArray,
    Vocabulary,
    sum_by_key,
    tokenize,
)

GRAMMAR, PLAUSIBILITY = "grammar", "plausibility"
_MERGE_EVERY = 16  # chunks whose counts are merged at once


Numbers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
_ID = np.dtype(np.int32)


class TextChunk(NamedTuple):
    """Some forms with their words.

    Attributes:
        forms: int32 (k,), their numbers.
        flat: int64, the ids of all their words, concatenated.
        lengths: int64 (k,), number of words of each.
    """

    forms: Numbers
    flat: IntArray
    lengths: IntArray


class TextFile:
    """Stores texts in chunks, and returns them as ids of words; a context manager.

    Args:
        folder: for the scratch file, which needs four bytes per word.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".texts-")  # noqa: SIM115 - closed by __exit__
        self._ids: dict[str, int] = {}
        self._lengths: list[Numbers] = []
        self._hashes: list[npt.NDArray[np.uint64]] = []
        self._texts = 0
        self._form = np.zeros(0, np.int32)
        self._first = np.zeros(0, np.bool_)
        self.forms = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the scratch file."""
        self.close()

    def close(self) -> None:
        """Remove the scratch file."""
        self._file.close()

    @property
    def words(self) -> list[str]:
        """The word of each id."""
        return list(self._ids)

    def add(self, texts: Sequence[str]) -> Numbers:
        """Store a chunk of texts, and return their numbers."""
        place: dict[str, int] = {}
        local = np.fromiter((place.setdefault(text, len(place)) for text in texts), np.int32, len(texts))
        ids = self._ids
        tokens = [[ids.setdefault(word, len(ids)) for word in tokenize(text)] for text in place]
        flat = np.fromiter((id_ for each in tokens for id_ in each), _ID)
        lengths = np.fromiter(map(len, tokens), np.int32, len(tokens))
        self._file.write(flat.tobytes())
        self._lengths.append(lengths)
        self._hashes.append(_hash_texts(flat, lengths))
        numbers: Numbers = local + np.int32(self._texts)
        self._texts += len(tokens)
        return numbers

    def seal(self) -> Numbers:
        """Number the forms, when all texts have been added; return the form of each text by its number."""
        self._file.flush()
        hashes = np.concatenate([np.zeros(0, np.uint64), *self._hashes])
        self._hashes.clear()
        _, first, form = np.unique(hashes, return_index=True, return_inverse=True)
        self.forms = len(first)
        self._form = form.astype(np.int32)
        self._first = np.zeros(len(hashes), np.bool_)
        self._first[first] = True
        return self._form

    def read(self, wanted: Flags) -> Iterator[TextChunk]:
        """Yield the wanted forms, each once, chunk by chunk.

        Args:
            wanted: bool (forms,).
        """
        self._file.seek(0)
        start = 0
        for lengths in self._lengths:
            data = self._file.read(int(lengths.sum()) * _ID.itemsize)
            texts = slice(start, start + len(lengths))
            start = texts.stop
            taken = self._first[texts] & wanted[self._form[texts]]
            if taken.any():
                flat = np.frombuffer(data, _ID)[np.repeat(taken, lengths)]
                yield TextChunk(self._form[texts][taken], flat.astype(np.int64), lengths[taken].astype(np.int64))


def _hash_texts(flat: Numbers, lengths: Numbers) -> npt.NDArray[np.uint64]:
    data, size = flat.tobytes(), _ID.itemsize
    ends = (np.cumsum(lengths, dtype=np.int64) * size).tolist()
    starts = [0, *ends[:-1]] if ends else []
    digests = (hashlib.blake2b(data[a:b], digest_size=8).digest() for a, b in zip(starts, ends, strict=True))
    return np.frombuffer(b"".join(digests), np.uint64)


@dataclass(frozen=True, eq=False)
class WordTable:
    """Properties of each word of a `TextFile`, by its id there.

    Attributes:
        words: the words.
        place: int64, alphabetical rank of each word.
        content: bool, whether it is a content word (`cooccurrence.is_content_word`).
    """

    words: Sequence[str]
    place: IntArray
    content: Flags

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Return the table of the words of a file."""
        place = np.zeros(len(words), np.int64)
        place[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        return cls(words, place, np.fromiter(map(is_content_word, words), np.bool_, len(words)))

    def vocabulary(self, times: FloatArray) -> tuple[Vocabulary, IntArray]:
        """Return the vocabulary of words with these counts (`Vocabulary.of`), and its id of each word of the file."""
        ranked = np.lexsort((self.place, -times))[: int(np.count_nonzero(times))][:MAX_WORDS]
        ids = np.full(len(self.words), UNKNOWN, np.int64)
        ids[ranked] = np.arange(len(ranked)) + SPECIAL
        return Vocabulary(tuple(self.words[word] for word in ranked.tolist())), ids


@dataclass(frozen=True, eq=False)
class TextModels:
    """Both models, and their ids of a file's words.

    Attributes:
        table: of the file's words.
        trigrams: grammar model.
        trigram_ids: int64, by the file's ids.
        cooccurrence: plausibility model.
        content_ids: int64, by the file's ids.
    """

    table: WordTable
    trigrams: TrigramModel
    trigram_ids: IntArray
    cooccurrence: Cooccurrence
    content_ids: IntArray

    @classmethod
    def fit(cls, file: TextFile, times: IntArray, table: WordTable) -> Self:
        """Return the models of captions.

        Args:
            file: that holds them.
            times: int64 (forms,), count of each form.
            table: of the file's words.
        """

        def read() -> Iterator[TextChunk]:
            return file.read(times > 0)

        seen = np.zeros(len(table.words))
        for forms, flat, lengths in read():
            seen += np.bincount(flat, weights=np.repeat(times[forms], lengths), minlength=len(seen))
        vocabulary, ids = table.vocabulary(seen)
        content, content_ids = table.vocabulary(np.where(table.content, seen, 0.0))
        grams = _sum_counts((trigram_keys(ids[flat], lengths), times[forms]) for forms, flat, lengths in read())
        chunks = ((_encode_content_words(texts, table, content_ids), times[texts.forms]) for texts in read())
        pairs = _sum_counts((find_cooccurrences(*words), often) for words, often in chunks)
        return cls(
            table, TrigramModel.of_counts(vocabulary, *grams), ids, Cooccurrence.of_counts(content, *pairs), content_ids
        )

    def scores(self, texts: TextChunk) -> dict[str, FloatArray]:
        """Return the score of each form by each model, float64 (k,) in 0-1."""
        total, tokens = self.trigrams.log_prob_encoded(self.trigram_ids[texts.flat], texts.lengths)
        association = self.cooccurrence.association_encoded(*_encode_content_words(texts, self.table, self.content_ids))
        return {GRAMMAR: compute_grammar_score(total, tokens), PLAUSIBILITY: compute_plausibility_score(association)}


def _encode_content_words(texts: TextChunk, table: WordTable, ids: IntArray) -> tuple[IntArray, IntArray]:
    inside = table.content[texts.flat]
    owner = np.repeat(np.arange(len(texts.lengths)), texts.lengths)[inside]
    return ids[texts.flat[inside]], np.bincount(owner, minlength=len(texts.lengths)).astype(np.int64)


def _sum_counts(chunks: Iterator[tuple[tuple[IntArray, IntArray], IntArray]]) -> tuple[IntArray, IntArray]:
    # From (keys, their texts) and the count of each text: the distinct keys, and the count of each key.
    keys, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    each = (sum_by_key(found, often[owner]) for (found, owner), often in chunks)
    while some := list(islice(each, _MERGE_EVERY)):
        keys, times = sum_by_key(
            np.concatenate([keys, *(key for key, _ in some)]), np.concatenate([times, *(n for _, n in some)])
        )
    return keys, times
