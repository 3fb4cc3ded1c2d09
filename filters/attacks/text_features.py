"""Features of text classifiers: differences of sparse counts between a positive and its negative.

A row of each matrix is features(positive) - features(negative), so a linear classifier picks the positive when its
weights give a positive number. The views of a text:

- *words*: n-grams of one to three words and punctuation marks, with boundary marks at both ends of the text;
- *letters*: n-grams of two to four characters inside a word and its boundaries ("cat" has "<c", "ca", ..., "t>");
- *format*: how it is written rather than what it says (final mark, first letter, spacing, commas, ...);
- *meaning*: its sentence embedding (MiniLM).

What both texts share cancels out, and a feature that differs in fewer than two rows is dropped: no classifier can have
learned it from other rows. Only the sign depends on which text is the positive.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from pairwright.filters.scorers.cooccurrence import add_boundaries
from pairwright.generators.language.vocabulary import ID_BITS, FloatArray, IntArray, Vocabulary, tokenize

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Differences: TypeAlias = csr_matrix

MAX_NGRAM = 3
CHARACTER_NGRAMS = (2, 3, 4)
MIN_ROWS = 2
CHUNK_SIZE = 10_000  # rows that are read at a time
VIEWS = ("format", "words", "letters")


class FactoredDifferences(NamedTuple):
    """Features that are the product of two matrices with fewer numbers.

    Attributes:
        left: (n, m), such as the words in which two texts differ.
        right: (m, features), such as the n-grams of each word.
    """

    left: "Differences"
    right: "Differences"

    def product(self) -> "Differences":
        """Return the features."""
        found = (self.left @ self.right).tocsr()
        found.eliminate_zeros()
        found.sort_indices()
        return found

    def of(self, rows: npt.NDArray[np.bool_] | slice) -> Self:
        """Return the features of some rows."""
        return type(self)(self.left[rows], self.right)


def compute_word_differences(positives: Sequence[str], negatives: Sequence[str]) -> "Differences":
    """Return the differing n-grams of words, float64 (n, features)."""
    return _drop_rare(_count_word_ngrams(positives, negatives)[0])


def _count_word_ngrams(
    positives: Sequence[str], negatives: Sequence[str]
) -> tuple["Differences", IntArray, Vocabulary]:
    # All differing n-grams; the packed ids of each column, and the vocabulary of the ids.
    from scipy.sparse import csr_matrix

    vocabulary, chunks = _encode_in_chunks(positives, negatives)
    lengths, codes, values = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for flat, sizes in chunks:
        run, text = _pack_ngrams(flat, sizes)
        distinct, number = np.unique(run, return_inverse=True)
        apart = _subtract(number, text, len(sizes) // 2)
        lengths.append(np.diff(apart.indptr))
        codes.append(distinct[apart.indices])
        values.append(apart.data)
    known, column = np.unique(np.concatenate(codes), return_inverse=True)
    starts = np.cumsum(np.concatenate(lengths))
    matrix = csr_matrix((np.concatenate(values), column, starts), shape=(len(positives), len(known)))
    return matrix, known, vocabulary


def _encode_in_chunks(
    positives: Sequence[str], negatives: Sequence[str]
) -> tuple[Vocabulary, Iterator[tuple[IntArray, IntArray]]]:
    # The vocabulary of all texts; and chunks of rows as encoded texts, positives first. Most of the features of a row
    # cancel out, and are dropped before the next chunk is read.
    vocabulary = Vocabulary.of(tokenize(text) for text in chain(positives, negatives))

    def chunks() -> Iterator[tuple[IntArray, IntArray]]:
        for start in range(0, len(positives), CHUNK_SIZE):
            some = slice(start, start + CHUNK_SIZE)
            yield vocabulary.encode([tokenize(text) for text in (*positives[some], *negatives[some])])

    return vocabulary, chunks()


def _pack_ngrams(flat: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    # The packed ids of each n-gram, and the number of its text.
    row, owner = add_boundaries(flat, lengths)
    features, owners = [row], [owner]
    for longer in range(1, MAX_NGRAM):
        run = features[-1][:-1] << ID_BITS | row[longer:]
        inside = owner[: len(run)] == owner[longer:]
        features.append(np.where(inside, run, -1))
        owners.append(owner[: len(run)])
    feature, text = np.concatenate(features), np.concatenate(owners)
    return feature[feature >= 0], text[feature >= 0]


def compute_letter_differences(positives: Sequence[str], negatives: Sequence[str]) -> "FactoredDifferences":
    """Return the differing n-grams of characters inside words, (n, features), as words times their n-grams."""
    found, _ = _count_letter_ngrams(positives, negatives)
    return FactoredDifferences(found.left, found.right[:, _find_frequent(found.product())])


def _count_letter_ngrams(positives: Sequence[str], negatives: Sequence[str]) -> tuple["FactoredDifferences", list[str]]:
    # All n-grams of the words, and the characters of each column.
    from scipy.sparse import csr_matrix, vstack

    vocabulary, chunks = _encode_in_chunks(positives, negatives)
    words, special = len(vocabulary.words), len(vocabulary) - len(vocabulary.words)
    found = [csr_matrix((0, words))]
    for flat, lengths in chunks:
        text = np.repeat(np.arange(len(lengths)), lengths)
        found.append(_subtract(flat - special, text, len(lengths) // 2, words))
    runs = [_split_into_ngrams(word) for word in vocabulary.words]
    numbers: dict[str, int] = {}
    spelled = np.array([numbers.setdefault(run, len(numbers)) for each in runs for run in each], np.int64)
    owner = np.repeat(np.arange(words), np.array([len(each) for each in runs], np.int64))
    ngrams = _sum_features(spelled, owner, np.ones(len(spelled)), words, len(numbers))
    return FactoredDifferences(vstack(found, format="csr"), ngrams), list(numbers)


def compute_named_differences(
    view: str, positives: Sequence[str], negatives: Sequence[str]
) -> tuple["Differences", list[str]]:
    """Return all differing features of a view, including rare ones, and the name of each column."""
    if view == "format":
        return compute_format_differences(positives, negatives), [str(number) for number in range(len(_FORMAT))]
    if view == "letters":
        factored, runs = _count_letter_ngrams(positives, negatives)
        return factored.product(), runs
    matrix, codes, vocabulary = _count_word_ngrams(positives, negatives)
    spelled = ["<unknown>", "<s>", "</s>", *vocabulary.words]
    return matrix, [_describe_feature(int(code), spelled) for code in codes]


def _describe_feature(code: int, names: Sequence[str]) -> str:
    run: list[str] = []
    while code:
        run.append(names[code & ((1 << ID_BITS) - 1)])
        code >>= ID_BITS
    return " ".join(reversed(run))


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


def compute_format_differences(positives: Sequence[str], negatives: Sequence[str]) -> "Differences":
    """Return how much more often each format pattern matches the positive than the negative, float64 (n, 13)."""
    from scipy.sparse import csr_matrix, vstack

    def counted(texts: Sequence[str]) -> FloatArray:
        found = [[len(pattern.findall(text)) for pattern in _FORMAT] for text in texts]
        return np.array(found, np.float64).reshape(len(found), len(_FORMAT))

    rows = [csr_matrix((0, len(_FORMAT)))]
    for start in range(0, len(positives), CHUNK_SIZE):
        some = slice(start, start + CHUNK_SIZE)
        rows.append(csr_matrix(counted(positives[some]) - counted(negatives[some])))
    return vstack(rows, format="csr")


def compute_meaning_differences(positives: Sequence[str], negatives: Sequence[str]) -> "Differences":
    """Return MiniLM's sentence embeddings of the positives minus those of the negatives, float64 (n, 384).

    Raises:
        MissingResourceError: sentence-transformers or the checkpoint is missing.
    """
    from scipy.sparse import csr_matrix

    from pairwright.indexes.encoders.minilm import MiniLMEncoder

    distinct = sorted({*positives, *negatives})
    place = {text: number for number, text in enumerate(distinct)}
    vectors = np.round(MiniLMEncoder().encode_texts(distinct).astype(np.float64), 6)
    positive, negative = ([place[text] for text in texts] for texts in (positives, negatives))
    return csr_matrix(vectors[positive] - vectors[negative])


def _split_into_ngrams(word: str) -> list[str]:
    framed = f"<{word}>"
    return [framed[at : at + size] for size in CHARACTER_NGRAMS for at in range(len(framed) - size + 1)]


def _subtract(feature: IntArray, text: IntArray, rows: int, features: int | None = None) -> "Differences":
    # Texts are numbered positives first, then negatives.
    return _sum_features(feature, text % max(rows, 1), np.where(text < rows, 1.0, -1.0), rows, features)


def _sum_features(
    feature: IntArray, row: IntArray, value: FloatArray, rows: int, features: int | None = None
) -> "Differences":
    from scipy.sparse import csr_matrix

    columns = int(feature.max(initial=-1)) + 1 if features is None else features
    matrix = csr_matrix((value, (row, feature)), shape=(rows, columns))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _drop_rare(matrix: "Differences") -> "Differences":
    return matrix[:, _find_frequent(matrix)]


def _find_frequent(matrix: "Differences") -> npt.NDArray[np.bool_]:
    return np.asarray(np.bincount(matrix.indices, minlength=matrix.shape[1]) >= MIN_ROWS)
