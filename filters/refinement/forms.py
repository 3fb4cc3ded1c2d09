"""Texts of a part as numbers of words, for both methods of refinement: each text is split into words once.

Texts with equal words are one *form*, whatever their case and spacing, identified by 64 bits of its hash: among ten
million different ones, the probability that any two collide is one in 400,000.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.refinement.rows import Hashes
from pairwright.generators.language.vocabulary import tokenize

Numbers = npt.NDArray[np.int32]


class PartForms(NamedTuple):
    """The forms of the texts of a part.

    Attributes:
        captions: the number of the form of each caption.
        positives: of each positive.
        negatives: of each negative.
        hashes: uint64 (k,), of each form.
        lengths: number of words of each form.
        flat: the numbers of the words of all forms, one after another.
        words: different words of all texts.
    """

    captions: Numbers
    positives: Numbers
    negatives: Numbers
    hashes: Hashes
    lengths: Numbers
    flat: Numbers
    words: pl.Series

    @classmethod
    def of(cls, captions: pl.Series, positives: pl.Series, negatives: pl.Series) -> Self:
        """Split texts, given as strings."""
        words: dict[str, int] = {}
        forms: dict[bytes, int] = {}
        spelled: list[list[int]] = []
        known: dict[str, int] = {}

        def form(text: str) -> int:
            number = known.get(text)
            if number is None:
                tokens = tokenize(text)
                number = forms.setdefault(_digest(" ".join(tokens)), len(forms))
                if number == len(spelled):
                    spelled.append([words.setdefault(word, len(words)) for word in tokens])
                known[text] = number
            return number

        def numbers(texts: Iterable[str]) -> Numbers:
            return np.fromiter(map(form, texts), np.int32)

        return cls(
            numbers(captions),
            numbers(positives),
            numbers(negatives),
            np.frombuffer(b"".join(forms), np.uint64),
            np.fromiter(map(len, spelled), np.int32, len(spelled)),
            np.fromiter((word for each in spelled for word in each), np.int32),
            pl.Series(list(words), dtype=pl.String),
        )


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
