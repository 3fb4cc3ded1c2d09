"""The two language models of Algorithm 1, fitted on texts that lie in a file and not in memory.

They know and score what `GrammarScorer` and `PlausibilityScorer` do that have read the same captions, to the last bit;
a caption that comes often is read once and counted as often as it comes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

import numpy as np

from pairwright.filters.refinement.out_of_core_texts import Flags, TextChunk, TextFile
from pairwright.filters.scorers.cooccurrence import Cooccurrence, cooccurrence_keys, is_content_word
from pairwright.filters.scorers.text_scorers import grammar_score, plausibility_score
from pairwright.generators.language.trigram_model import TrigramModel, trigram_keys
from pairwright.generators.language.vocabulary import (
    MAX_WORDS,
    SPECIAL,
    UNKNOWN,
    FloatArray,
    IntArray,
    Vocabulary,
    sum_by_key,
)

GRAMMAR, PLAUSIBILITY = "grammar", "plausibility"
_MERGE_EVERY = 16  # pieces whose counts are held apart before they are added up


@dataclass(frozen=True, eq=False)
class WordTable:
    """What is known of each word of a `TextFile`, by its id there.

    Attributes:
        words: the words.
        place: int64, of each word in the order of the alphabet.
        content: bool, whether it names something (`cooccurrence.is_content`).
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
        """Return the vocabulary of words that come so often, as `Vocabulary.of` does, and its id of each of the file's."""
        ranked = np.lexsort((self.place, -times))[: int(np.count_nonzero(times))][:MAX_WORDS]
        ids = np.full(len(self.words), UNKNOWN, np.int64)
        ids[ranked] = np.arange(len(ranked)) + SPECIAL
        return Vocabulary(tuple(self.words[word] for word in ranked.tolist())), ids


@dataclass(frozen=True, eq=False)
class TextModels:
    """Both models, and their ids of a file's words.

    Attributes:
        table: of the file's words.
        trigrams: judges grammar.
        trigram_ids: int64, by the file's ids.
        meetings: judge plausibility.
        content_ids: int64, by the file's ids.
    """

    table: WordTable
    trigrams: TrigramModel
    trigram_ids: IntArray
    meetings: Cooccurrence
    content_ids: IntArray

    @classmethod
    def fit(cls, file: TextFile, times: IntArray, table: WordTable) -> Self:
        """Return the models of captions.

        Args:
            file: that holds them.
            times: int64 (forms,), how often each form is read.
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
        pieces = ((_content(texts, table, content_ids), times[texts.forms]) for texts in read())
        met = _sum_counts((cooccurrence_keys(*words), often) for words, often in pieces)
        return cls(
            table, TrigramModel.of_counts(vocabulary, *grams), ids, Cooccurrence.of_counts(content, *met), content_ids
        )

    def scores(self, texts: TextChunk) -> dict[str, FloatArray]:
        """Return the score of each form by each model, float64 (k,) in 0-1."""
        total, tokens = self.trigrams.log_prob_encoded(self.trigram_ids[texts.flat], texts.lengths)
        association = self.meetings.association_encoded(*_content(texts, self.table, self.content_ids))
        return {GRAMMAR: grammar_score(total, tokens), PLAUSIBILITY: plausibility_score(association)}


def _content(texts: TextChunk, table: WordTable, ids: IntArray) -> tuple[IntArray, IntArray]:
    inside = table.content[texts.flat]
    owner = np.repeat(np.arange(len(texts.lengths)), texts.lengths)[inside]
    return ids[texts.flat[inside]], np.bincount(owner, minlength=len(texts.lengths)).astype(np.int64)


def _sum_counts(pieces: Iterator[tuple[tuple[IntArray, IntArray], IntArray]]) -> tuple[IntArray, IntArray]:
    # Of (keys, their texts) and how often each text comes: the distinct keys, and how often each comes.
    keys, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    each = (sum_by_key(found, often[owner]) for (found, owner), often in pieces)
    while some := list(islice(each, _MERGE_EVERY)):
        keys, times = sum_by_key(
            np.concatenate([keys, *(key for key, _ in some)]), np.concatenate([times, *(n for _, n in some)])
        )
    return keys, times
