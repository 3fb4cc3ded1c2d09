"""What a blind classifier reads: how a positive differs from its negative, as sparse counts.

A row of each matrix is features(positive) - features(negative), so that a linear classifier of it picks the positive
when its weights give a positive number. Three views of a text:

- *words*: runs of one to three words and marks, the two ends of the text being marks of their own;
- *letters*: runs of two to four characters inside a word, its ends included ("cat" has "<c", "ca", ..., "t>");
- *format*: how it is written rather than what it says (final mark, first letter, spacing, commas, ...).

What both texts share cancels out, and a feature that tells apart fewer than two rows is left out: no classifier can
have learned it elsewhere. Nothing here knows which text is the true one beyond the sign.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pairwright.generators.language.vocabulary import END, ID_BITS, START, FloatArray, IntArray, Vocabulary, words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Differences: TypeAlias = csr_matrix

LONGEST_RUN = 3
LETTERS = (2, 3, 4)
LEAST_ROWS = 2


def word_differences(positives: Sequence[str], negatives: Sequence[str]) -> "Differences":
    """Return the differing runs of words, float64 (n, features)."""
    tokens = [words(text) for text in (*positives, *negatives)]
    flat, lengths = Vocabulary.of(tokens).encode(tokens)
    framed, owner = _framed(flat, lengths)
    features, owners = [framed], [owner]
    for longer in range(1, LONGEST_RUN):
        run = features[-1][:-1] << ID_BITS | framed[longer:]
        inside = owner[: len(run)] == owner[longer:]
        features.append(np.where(inside, run, -1))
        owners.append(owner[: len(run)])
    feature, text = np.concatenate(features), np.concatenate(owners)
    _, number = np.unique(feature[feature >= 0], return_inverse=True)
    return _often(_differences(number, text[feature >= 0], len(positives)))


def letter_differences(positives: Sequence[str], negatives: Sequence[str]) -> "Differences":
    """Return the differing runs of characters inside words, float64 (n, features)."""
    tokens = [words(text) for text in (*positives, *negatives)]
    vocabulary = Vocabulary.of(tokens)
    flat, lengths = vocabulary.encode(tokens)
    runs = [_runs(word) for word in vocabulary.words]
    numbers: dict[str, int] = {}
    spelled = np.array([numbers.setdefault(run, len(numbers)) for each in runs for run in each], np.int64)
    size = np.array([len(each) for each in runs], np.int64)
    start = np.cumsum(size) - size
    word = flat - (len(vocabulary) - len(vocabulary.words))
    # A word that both texts have spells nothing new: words are counted first, and only what is left is spelled out.
    apart = _differences(word, np.repeat(np.arange(len(lengths)), lengths), len(positives))
    times = size[apart.indices]
    owner = np.repeat(np.repeat(np.arange(len(positives)), np.diff(apart.indptr)), times)
    step = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    feature = spelled[np.repeat(start[apart.indices], times) + step]
    return _often(_summed(feature, owner, np.repeat(apart.data, times), len(positives)))


_FORMAT = tuple(
    re.compile(pattern)
    for pattern in (
        r"[.!?]\s*\Z",
        r"\A\W*[a-z]",
        r"\s[.,;:!?]",
        r"\s\s|\A\s|\s\Z",
        r"[.,;:!?](?=[^\W\d_])",
        r",",
        r"[\"“”]",
        r"['’]",
        r"-",
        r"[;:()]",
        r"[0-9]",
        r"(?<=\w )[A-Z]",
        r"[.!?]\s+\w",
    )
)


def format_differences(positives: Sequence[str], negatives: Sequence[str]) -> "Differences":
    """Return how often each mark of format stands in the positive more than in the negative, float64 (n, 13)."""
    from scipy.sparse import csr_matrix

    def counted(text: str) -> list[int]:
        return [len(pattern.findall(text)) for pattern in _FORMAT]

    rows = [np.subtract(counted(better), counted(worse)) for better, worse in zip(positives, negatives, strict=True)]
    return csr_matrix(np.array(rows, np.float64).reshape(len(rows), len(_FORMAT)))


def _framed(flat: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    # Each text with a mark before and after, and the number of the text that each id belongs to.
    owner = np.repeat(np.arange(len(lengths)), lengths)
    framed = np.full(len(flat) + 2 * len(lengths), START, np.int64)
    framed[np.arange(len(flat)) + 2 * owner + 1] = flat
    framed[np.cumsum(lengths + 2) - 1] = END
    return framed, np.repeat(np.arange(len(lengths)), lengths + 2)


def _runs(word: str) -> list[str]:
    framed = f"<{word}>"
    return [framed[at : at + size] for size in LETTERS for at in range(len(framed) - size + 1)]


def _differences(feature: IntArray, text: IntArray, rows: int) -> "Differences":
    # Texts are numbered positives first, then negatives.
    return _summed(feature, text % max(rows, 1), np.where(text < rows, 1.0, -1.0), rows)


def _summed(feature: IntArray, row: IntArray, value: FloatArray, rows: int) -> "Differences":
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((value, (row, feature)), shape=(rows, int(feature.max(initial=-1)) + 1))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _often(matrix: "Differences") -> "Differences":
    return matrix[:, np.bincount(matrix.indices, minlength=matrix.shape[1]) >= LEAST_ROWS]
