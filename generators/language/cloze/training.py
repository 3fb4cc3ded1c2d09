"""Training of a cloze model on a sample of filled slots, each network alone.

Mini-batches in random order, with Adam for the layers and Adagrad with one step size a word for the word vectors; step
sizes fall linearly to zero. Context words are replaced by `UNKNOWN` at random, so that the network learns what to make
of a word that it does not know, and hidden units are dropped (Srivastava et al., 2014).

Training starts at random, or from a network of other captions: its layers, and its vectors and outputs of the words
that both know; the others start at random. The better it predicts the slots than their frequencies do, the fewer epochs
follow: half of one for captions of the same domain, all for a pool of another kind of text. Half an epoch leaves word
vectors as they are: training them too takes two fifths more time, and held-out captions are predicted as well without.

The seed is fixed and products use one thread, so equal examples give equal networks. Time is linear in the number of
examples, which the sample limits.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.rng import make_numpy_rng
from pairwright.generators.language.cloze.context import SLOT_KINDS
from pairwright.generators.language.cloze.examples import ClozeSample, WordNumbers
from pairwright.generators.language.cloze.model import (
    FIRST_WORD,
    PAD,
    POSITIONS,
    UNKNOWN,
    ClozeModel,
    ClozeNetwork,
    Weights,
    WordIds,
    WordIndex,
    bag_scale,
    layer_input,
    round_weights,
)

MOST_WORDS: Final = 8_000  # context words with a vector of their own
_MIN_WORD, _MIN_TARGET = 2, 15  # examples; of a target in a large pool
_EXAMPLES_PER_MIN_TARGET: Final = 3_000  # a pool with few examples asks for fewer of a target, in proportion
_MIN_TARGET_OF_SMALL_POOL: Final = 2
_EXAMPLES_PER_TARGET: Final = 2_000  # at most: a vocabulary of a few words is learned from few examples
DIMENSIONS: Final = 64  # of a word vector
HIDDEN: Final = 256  # units
EPOCHS: Final = 8
BATCH: Final = 512  # examples of a mini-batch, at most
_MIN_BATCH, _STEPS_PER_EPOCH = 64, 40  # few examples have smaller batches, for this many steps; more overfit
DROPPED_WORDS: Final = 0.1  # share of context words that are replaced in training
DROPPED_UNITS: Final = 0.3  # share of hidden units that are dropped in training
LAYER_STEP, VECTOR_STEP = 2e-3, 0.3  # initial step sizes
START_STEP: Final = 0.5  # of these, from a model of other captions
# Epochs from such a model: so many if it predicts no better than frequencies do, and fewer the more it explains.
_UNEXPLAINED_EPOCHS, _EXPLAINED_EPOCHS = 4, 10
_LEAST_EPOCHS: Final = 0.5  # at least; with no more, word vectors are not trained
_MEASURED: Final = 2_000  # examples, at most twice as many
_MEAN_DECAY, _SQUARE_DECAY, _EPSILON = 0.9, 0.999, 1e-8  # of Adam
_FIRST_SQUARE: Final = 1e-4  # of Adagrad
_SMOOTHING: Final = 0.1  # added to the count of each target in the initial output bias


class _Adam:
    """Some weights, which it changes in place, and their Adam optimizer."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._mean, self._square = np.zeros_like(weights), np.zeros_like(weights)
        self._steps = 0

    def step(self, gradient: Weights, size: float) -> None:
        """Take a step; overwrites the gradient."""
        self._steps += 1
        size *= (1 - _SQUARE_DECAY**self._steps) ** 0.5 / (1 - _MEAN_DECAY**self._steps)
        self._mean *= _MEAN_DECAY
        self._mean += (1 - _MEAN_DECAY) * gradient
        np.square(gradient, out=gradient)
        gradient *= 1 - _SQUARE_DECAY
        self._square *= _SQUARE_DECAY
        self._square += gradient
        self.weights -= size * self._mean / (np.sqrt(self._square) + _EPSILON)


class _WordVectors:
    """Word vectors and their optimizer: Adagrad with one step size a word, on the words of a batch."""

    def __init__(self, words: Sequence[str], rng: np.random.Generator, start: ClozeNetwork | None) -> None:
        size = FIRST_WORD + len(words)
        self.vectors: Weights = rng.normal(0, 0.1, (size, DIMENSIONS)).astype(np.float32)
        self.vectors[PAD] = 0
        self._squares = np.full((size, 1), _FIRST_SQUARE, np.float32)
        if start is not None:
            ids = start.word_index
            known = [(number, ids[word]) for number, word in enumerate(words, FIRST_WORD) if word in ids]
            own, other = np.array([(UNKNOWN, UNKNOWN), *known], np.intp).T
            self.vectors[own] = start.vectors[other]

    def step(self, ids: WordIds, gradient: Weights, size: float) -> None:
        """Take a step, given the gradient of `layer_input`."""
        import scipy.sparse

        positions, bag = ids[:, :POSITIONS].ravel(), ids[:, POSITIONS:]
        shape, split = (len(self.vectors), len(positions)), POSITIONS * DIMENSIONS
        ones, every = np.ones(len(positions), np.float32), np.arange(len(positions) + 1)
        total = scipy.sparse.csc_matrix((ones, positions, every), shape) @ gradient[:, :split].reshape(-1, DIMENSIONS)
        present = bag != PAD
        ends = np.append(0, np.cumsum(np.count_nonzero(present, axis=1)))
        ones, shape = np.ones(int(ends[-1]), np.float32), (len(self.vectors), len(bag))
        total += scipy.sparse.csc_matrix((ones, bag[present], ends), shape) @ (gradient[:, split:] * bag_scale(bag))
        total[PAD] = 0
        changed = np.flatnonzero(total.any(axis=1))
        total = total[changed]
        self._squares[changed] += np.square(total).mean(1, keepdims=True)
        self.vectors[changed] -= size * total / np.sqrt(self._squares[changed])


class _Training:
    """A network in training, with its examples.

    Args:
        rows: targets and contexts as numbers of words, of `KindSample`.
        names: the words, from number 1 on.
        start: network of other captions to start from.
    """

    def __init__(self, rows: WordNumbers, names: Sequence[str], start: ClozeNetwork | None) -> None:
        self._rng = make_numpy_rng("cloze")
        counts = np.bincount(rows[:, 0], minlength=len(names) + 1)
        chosen = np.flatnonzero(counts >= _least_count(len(rows)))
        rows = rows[np.isin(rows[:, 0], chosen)]
        rows = rows[: _EXAMPLES_PER_TARGET * len(chosen)]  # in order of hashes of captions: a random choice
        self._targets = tuple(names[number - 1] for number in chosen.tolist())
        self._answers = np.searchsorted(chosen, rows[:, 0])
        self._words = _choose_words(rows[:, 1:], names)
        ids = WordIndex(self._words)
        self._contexts = np.array([PAD, *map(ids.__getitem__, names)], np.uint16)[rows[:, 1:]]
        self._vectors = _WordVectors(self._words, self._rng, start)
        self._layers = self._initial_layers(start)
        self._optimizers = [_Adam(weights) for weights in self._layers]
        self._start = start
        self._learns_vectors = True

    def _initial_layers(self, start: ClozeNetwork | None) -> tuple[Weights, ...]:
        width, rng = (POSITIONS + 1) * DIMENSIONS, self._rng
        counts = np.bincount(self._answers, minlength=len(self._targets)) + _SMOOTHING
        inner: Weights = rng.normal(0, width**-0.5, (width, HIDDEN)).astype(np.float32)
        inner_bias: Weights = np.zeros(HIDDEN, np.float32)
        outer: Weights = rng.normal(0, 0.5 * HIDDEN**-0.5, (HIDDEN, len(self._targets))).astype(np.float32)
        outer_bias: Weights = np.log(counts / counts.sum()).astype(np.float32)
        if start is not None:
            inner[:], inner_bias[:] = start.hidden, start.hidden_bias
            known = [(column, start.index[name]) for column, name in enumerate(self._targets) if name in start.index]
            own, other = np.array(known, np.intp).reshape(-1, 2).T
            outer[:, own], outer_bias[own] = start.output[:, other], start.output_bias[other]
        return inner, inner_bias, outer, outer_bias

    def run(self) -> ClozeNetwork:
        """Train, and return the network."""
        first_size = 1.0 if self._start is None else START_STEP
        epochs = EPOCHS if self._start is None else self._epochs_from_start()
        self._learns_vectors = epochs > _LEAST_EPOCHS
        batches = self._batches(epochs)
        for done, batch in enumerate(batches):
            ids = self._contexts[batch].astype(np.int32)
            ids[(self._rng.random(ids.shape, np.float32) < DROPPED_WORDS) & (ids != PAD)] = UNKNOWN
            ids[:, POSITIONS:][ids[:, POSITIONS:] == UNKNOWN] = PAD
            self._step(ids, self._answers[batch], first_size * (1 - done / len(batches)))
        return ClozeNetwork(self._words, self._targets, *map(round_weights, (self._vectors.vectors, *self._layers)))

    def _batches(self, epochs: float) -> list[NDArray[np.intp]]:
        """Return the examples of each batch of all epochs, of the last one a share."""
        number = len(self._answers)
        size, found = min(BATCH, max(_MIN_BATCH, number // _STEPS_PER_EPOCH)), list[NDArray[np.intp]]()
        for done in range(math.ceil(epochs)):
            order = self._rng.permutation(number)[: math.ceil(number * min(1, epochs - done))]
            found += [order[start : start + size] for start in range(0, len(order), size)]
        return found

    def _epochs_from_start(self) -> float:
        """Return the number of epochs, in halves, for a network that starts from one of other captions."""
        frequencies, network = self._losses()
        explained = 1 - network / frequencies if frequencies else 1.0
        return min(EPOCHS, max(_LEAST_EPOCHS, math.ceil(2 * (_UNEXPLAINED_EPOCHS - _EXPLAINED_EPOCHS * explained)) / 2))

    def _losses(self) -> tuple[float, float]:
        """Return the mean negative log-probability of some answers by their frequency, and by the network."""
        if not len(self._answers):
            return 0.0, 0.0
        inner, inner_bias, outer, outer_bias = self._layers
        some = slice(None, None, max(1, len(self._answers) // _MEASURED))
        answers, counts = self._answers[some], np.bincount(self._answers)
        inputs = layer_input(self._vectors.vectors, self._contexts[some].astype(np.int32))
        scores = np.maximum(inputs @ inner + inner_bias, 0) @ outer + outer_bias
        scores -= scores.max(1, keepdims=True)
        own = scores[np.arange(len(answers)), answers] - np.log(np.exp(scores).sum(1))
        return float(-np.log(counts[answers] / len(self._answers)).mean()), float(-own.mean())

    def _step(self, ids: WordIds, answers: NDArray[np.intp], size: float) -> None:
        """Take a step on a batch, with a share of the initial step sizes."""
        inner, inner_bias, outer, outer_bias = self._layers
        inputs = layer_input(self._vectors.vectors, ids)
        hidden = np.matmul(inputs, inner)
        hidden += inner_bias
        active = (hidden > 0) & (self._rng.random(hidden.shape, np.float32) >= DROPPED_UNITS)
        slope = active.astype(np.float32) / np.float32(1 - DROPPED_UNITS)
        hidden *= slope
        error = np.matmul(hidden, outer)
        error += outer_bias
        error -= error.max(1, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(1, keepdims=True) * len(ids)
        error[np.arange(len(ids)), answers] -= 1 / len(ids)
        error_hidden = error @ outer.T
        error_hidden *= slope
        error_inputs = error_hidden @ inner.T if self._learns_vectors else None
        gradients = (inputs.T @ error_hidden, error_hidden.sum(0), hidden.T @ error, error.sum(0))
        for optimizer, gradient in zip(self._optimizers, gradients, strict=True):
            optimizer.step(gradient, size * LAYER_STEP)
        if error_inputs is not None:
            self._vectors.step(ids, error_inputs, size * VECTOR_STEP)


def train_cloze_model(sample: ClozeSample, start: ClozeModel | None = None, *, threads: int = 1) -> ClozeModel:
    """Return a model trained on a sample; a slot kind without examples has no targets.

    Args:
        sample: of the captions.
        start: model of other captions to start from, of any words.
        threads: that train a network each.
    """
    with limit_blas_to_one_thread(), ThreadPoolExecutor(min(threads, len(SLOT_KINDS))) as pool:
        trained = pool.map(lambda kind: train_network(sample, kind, start), SLOT_KINDS)
        return ClozeModel(dict(zip(SLOT_KINDS, trained, strict=True)))


def train_network(sample: ClozeSample, kind: str, start: ClozeModel | None = None) -> ClozeNetwork:
    """Return the network of a slot kind; for the arguments see `train_cloze_model`."""
    with limit_blas_to_one_thread():
        network = None if start is None else start.networks[kind]
        return _Training(sample.kinds[kind].rows, sample.words, network).run()


def known_share(sample: ClozeSample, model: ClozeModel) -> float:
    """Return the share of the slots of a sample whose words a model predicts, 0-1; 1 without slots."""
    known = total = 0
    for kind, found in sample.kinds.items():
        counts = np.bincount(found.rows[:, 0], minlength=len(sample.words) + 1)[1:]
        total += int(counts.sum())
        known += sum(int(counts[at]) for at, word in enumerate(sample.words) if word in model.index(kind))
    return known / total if total else 1.0


def _least_count(examples: int) -> int:
    """Return how many examples a target has at least."""
    return min(_MIN_TARGET, max(_MIN_TARGET_OF_SMALL_POOL, examples // _EXAMPLES_PER_MIN_TARGET))


def _choose_words(contexts: WordNumbers, names: Sequence[str]) -> tuple[str, ...]:
    """Return the most frequent context words."""
    counts = np.bincount(contexts.ravel(), minlength=len(names) + 1)[1:].tolist()
    often = [(-count, word) for count, word in zip(counts, names, strict=True) if count >= _MIN_WORD]
    return tuple(word for _, word in sorted(often)[:MOST_WORDS])
