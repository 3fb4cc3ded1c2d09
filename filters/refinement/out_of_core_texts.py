"""Texts as numbers in a scratch file, so that millions of them can be read again and again without being held.

Each text is stored once a piece as the ids of its words (`vocabulary.words`), four bytes a word. Two texts of equal words
are one *form*, whatever their case and spacing (`vocabulary.normal_form`); forms are numbered when all texts are in. What is
kept in memory is a few numbers a text, and each different word once.

Forms are told apart by 64 bits of their hash: among ten million different ones, two are taken for one with a chance of one
in 400,000. The file has no name, and is gone with the process.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pairwright.generators.language.vocabulary import IntArray, tokenize

Numbers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
_ID = np.dtype(np.int32)


class TextChunk(NamedTuple):
    """Some forms with their words.

    Attributes:
        forms: int32 (k,), their numbers.
        flat: int64, the ids of all their words in one row.
        lengths: int64 (k,), words of each.
    """

    forms: Numbers
    flat: IntArray
    lengths: IntArray


class TextFile:
    """Takes texts in pieces, and gives them back as ids of words; a context manager.

    Args:
        folder: where the scratch file lies, on a disk with four bytes to spare for each word.
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
        """Store a piece of texts, and return their numbers."""
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
        """Number the forms, when all texts are in; return the form of each text by its number."""
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
        """Yield the wanted forms, each once, piece by piece.

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
