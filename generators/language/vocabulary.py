"""Tokenisation of captions and vocabularies of integer word ids, for counting with NumPy.

A *word* is a run of letters and digits (with inner apostrophes) or a single other character, in lower case; "A man's
hat." is ``a``, ``man's``, ``hat``, ``.``. There is no stemming and no stop list, since models of writing style need
every token, including the final period.

A vocabulary is immutable and depends only on the counts, not on the order of the captions. Ids 0 to 2 are reserved:
unknown word, start and end of a caption. It has at most ``MAX_WORDS`` words, the most frequent ones, so that three ids
fit into a 63-bit key.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]

ID_BITS = 21
UNKNOWN, START, END = 0, 1, 2
SPECIAL = 3
MAX_WORDS = (1 << ID_BITS) - SPECIAL

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def tokenize(text: str) -> list[str]:
    """Return the lower-cased words and punctuation marks of ``text``, in order."""
    return list(_words(text))


@lru_cache(maxsize=16_384)  # scorers and folds tokenize the same texts
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def normalize_text(text: str) -> str:
    """Return the text in lower case with single spaces between tokens, for comparison."""
    return " ".join(tokenize(text))


@dataclass(frozen=True)
class Vocabulary:
    """The known words; the id of ``words[i]`` is ``i + SPECIAL``."""

    words: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", {word: number for number, word in enumerate(self.words, SPECIAL)})

    def __len__(self) -> int:
        """Number of ids, including the three special ones."""
        return len(self.words) + SPECIAL

    @classmethod
    def of(cls, tokens: Iterable[Sequence[str]]) -> "Vocabulary":
        """Return the vocabulary of tokenised captions, most frequent word first, ties in alphabetical order."""
        return cls.of_counts(Counter(chain.from_iterable(tokens)))

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> "Vocabulary":
        """Return the vocabulary of words with these counts, in the same order."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(word for word, _ in ranked[:MAX_WORDS]))

    def encode(self, tokens: Sequence[Sequence[str]]) -> tuple[IntArray, IntArray]:
        """Return (concatenated ids of all captions, number of words of each caption)."""
        ids, known = self._ids, chain.from_iterable(tokens)
        lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        flat = np.fromiter(map(ids.get, known, repeat(UNKNOWN)), dtype=np.int64, count=int(lengths.sum()))
        return flat, lengths


def encode_names(names: Sequence[str]) -> tuple[list[str], IntArray]:
    """Return the sorted distinct ``names``, and the index of each name among them."""
    distinct = sorted(set(names))
    place = {name: number for number, name in enumerate(distinct)}
    return distinct, np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names))


def sum_by_key(keys: IntArray, weights: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Return the ascending distinct ``keys``, and the sum of the ``weights`` (or the number) of each."""
    if weights is None:
        distinct, counts = np.unique(keys, return_counts=True)
        return distinct, counts.astype(np.int64)
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(keys)  # integer sums do not depend on the order of equal keys
    keys = keys[order]
    starts = np.flatnonzero(np.append([True], keys[1:] != keys[:-1]))
    return keys[starts], np.add.reduceat(weights[order], starts)


def lookup_sorted(
    keys: npt.NDArray[np.integer[Any]],
    values: npt.NDArray[Any],
    wanted: npt.NDArray[np.integer[Any]],
    otherwise: npt.ArrayLike,
) -> npt.NDArray[Any]:
    """Return the value of each ``wanted`` key; ``otherwise`` if it is not among the ascending ``keys``."""
    if not len(keys):
        return np.broadcast_to(np.asarray(otherwise), wanted.shape).copy()
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], otherwise)
