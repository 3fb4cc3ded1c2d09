"""Training of a cloze model on a sample of filled slots.

The networks of all slot kinds are trained together, since they share the word vectors: mini-batches of one kind each,
in random order, with Adam for the layers and Adagrad with one step size a word for the vectors; step sizes fall linearly
to zero. Context words are replaced by `UNKNOWN` at random, so that the model learns what to make of a word that it does
not know, and hidden units are dropped (Srivastava et al., 2014).

Training starts at random, or from a model of other captions: its layers, and its vectors and outputs of the words that
both know; the others start at random. The better it predicts the slots than their frequencies do, the fewer epochs
follow: half of one for captions of the same domain, all for a pool of another kind of text.

The seed is fixed and products use one thread, so equal samples give equal models. Time is linear in the number of
examples, which the sample limits.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.rng import make_numpy_rng
from pairwright.generators.language.cloze.context import SLOT_KINDS
from pairwright.generators.language.cloze.examples import ClozeSample
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
_MIN_BATCH, _STEPS_PER_EPOCH = 64, 40  # a kind with few examples has smaller batches, for this many steps; more overfit
DROPPED_WORDS: Final = 0.1  # share of context words that are replaced in training
DROPPED_UNITS: Final = 0.3  # share of hidden units that are dropped in training
LAYER_STEP, VECTOR_STEP = 2e-3, 0.3  # initial step sizes
START_STEP: Final = 0.5  # of these, from a model of other captions
# Epochs from such a model: so many if it predicts no better than frequencies do, and fewer the more it explains.
_UNEXPLAINED_EPOCHS, _EXPLAINED_EPOCHS = 4, 10
_MEASURED: Final = 2_000  # examples of a kind, at most twice as many
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

    def __init__(self, words: Sequence[str], rng: np.random.Generator, start: ClozeModel | None) -> None:
        size = FIRST_WORD + len(words)
        self.vectors: Weights = rng.normal(0, 0.1, (size, DIMENSIONS)).astype(np.float32)
        self.vectors[PAD] = 0
        self._squares = np.full((size, 1), _FIRST_SQUARE, np.float32)
        if start is not None:
            ids = WordIndex(start.words)
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


class _Task:
    """The network of one slot kind in training, with its examples.

    Attributes:
        contexts: word ids of each example, uint16.
        answers: column of the target of each example.
        batch: examples of a mini-batch.
    """

    def __init__(
        self,
        targets: tuple[str, ...],
        contexts: NDArray[np.uint16],
        answers: NDArray[np.intp],
        rng: np.random.Generator,
        start: ClozeNetwork | None,
    ) -> None:
        self.targets, self.contexts, self.answers, self._rng = targets, contexts, answers, rng
        self.batch = min(BATCH, max(_MIN_BATCH, len(answers) // _STEPS_PER_EPOCH))
        width = (POSITIONS + 1) * DIMENSIONS
        counts = np.bincount(answers, minlength=len(targets)) + _SMOOTHING
        self._layers: tuple[Weights, ...] = (
            rng.normal(0, width**-0.5, (width, HIDDEN)).astype(np.float32),
            np.zeros(HIDDEN, np.float32),
            rng.normal(0, 0.5 * HIDDEN**-0.5, (HIDDEN, len(targets))).astype(np.float32),
            np.log(counts / counts.sum()).astype(np.float32),
        )
        if start is not None:
            self._copy(start)
        self._optimizers = [_Adam(weights) for weights in self._layers]

    def _copy(self, start: ClozeNetwork) -> None:
        inner, inner_bias, outer, outer_bias = self._layers
        inner[:], inner_bias[:] = start.hidden, start.hidden_bias
        known = [(column, start.index[target]) for column, target in enumerate(self.targets) if target in start.index]
        own, other = np.array(known, np.intp).reshape(-1, 2).T
        outer[:, own], outer_bias[own] = start.output[:, other], start.output_bias[other]

    def losses(self, words: _WordVectors) -> tuple[float, float]:
        """Return the mean negative log-probability of some answers by their frequency, and by the network."""
        inner, inner_bias, outer, outer_bias = self._layers
        some = slice(None, None, max(1, len(self.answers) // _MEASURED))
        answers, counts = self.answers[some], np.bincount(self.answers)
        inputs = layer_input(words.vectors, self.contexts[some].astype(np.int32))
        scores = np.maximum(inputs @ inner + inner_bias, 0) @ outer + outer_bias
        scores -= scores.max(1, keepdims=True)
        own = scores[np.arange(len(answers)), answers] - np.log(np.exp(scores).sum(1))
        return float(-np.log(counts[answers] / len(self.answers)).mean()), float(-own.mean())

    def step(self, words: _WordVectors, ids: WordIds, answers: NDArray[np.intp], size: float) -> None:
        """Take a step on a batch, with a share of the initial step sizes."""
        inner, inner_bias, outer, outer_bias = self._layers
        inputs = layer_input(words.vectors, ids)
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
        error_inputs = error_hidden @ inner.T
        gradients = (inputs.T @ error_hidden, error_hidden.sum(0), hidden.T @ error, error.sum(0))
        for optimizer, gradient in zip(self._optimizers, gradients, strict=True):
            optimizer.step(gradient, size * LAYER_STEP)
        words.step(ids, error_inputs, size * VECTOR_STEP)

    def network(self) -> ClozeNetwork:
        """Return the trained network."""
        return ClozeNetwork(self.targets, *map(round_weights, self._layers))


def train_cloze_model(sample: ClozeSample, start: ClozeModel | None = None) -> ClozeModel:
    """Return a model trained on a sample; a slot kind without examples has no targets.

    Args:
        sample: of the captions.
        start: model of other captions to start from, of any words.
    """
    rng = make_numpy_rng("cloze")
    words = _choose_words(sample)
    vectors = _WordVectors(words, rng, start)
    networks = dict.fromkeys(SLOT_KINDS) if start is None else start.networks
    tasks = {kind: _make_task(sample, kind, WordIndex(words), rng, networks[kind]) for kind in SLOT_KINDS}
    first_size = 1.0 if start is None else START_STEP
    with limit_blas_to_one_thread():
        epochs = EPOCHS if start is None else _epochs_from(vectors, list(tasks.values()))
        for task, batch, size in _schedule(list(tasks.values()), epochs, rng):
            ids = task.contexts[batch].astype(np.int32)
            ids[(rng.random(ids.shape, np.float32) < DROPPED_WORDS) & (ids != PAD)] = UNKNOWN
            ids[:, POSITIONS:][ids[:, POSITIONS:] == UNKNOWN] = PAD
            task.step(vectors, ids, task.answers[batch], size * first_size)
    return ClozeModel(words, round_weights(vectors.vectors), {kind: task.network() for kind, task in tasks.items()})


def known_share(sample: ClozeSample, model: ClozeModel) -> float:
    """Return the share of the slots of a sample whose words a model predicts, 0-1; 1 without slots."""
    known = total = 0
    for kind, found in sample.kinds.items():
        counts = np.bincount(found.rows[:, 0], minlength=len(sample.words) + 1)[1:]
        total += int(counts.sum())
        known += sum(int(counts[at]) for at, word in enumerate(sample.words) if word in model.index(kind))
    return known / total if total else 1.0


def _epochs_from(words: _WordVectors, tasks: Sequence[_Task]) -> float:
    """Return the number of epochs, in halves, for networks that start from a model of other captions."""
    before = now = 0.0
    for task in tasks:
        if len(task.answers):
            frequencies, network = task.losses(words)
            before, now = before + len(task.answers) * frequencies, now + len(task.answers) * network
    explained = 1 - now / before if before else 1.0
    return min(EPOCHS, max(0.5, math.ceil(2 * (_UNEXPLAINED_EPOCHS - _EXPLAINED_EPOCHS * explained)) / 2))


def _schedule(
    tasks: Sequence[_Task], epochs: float, rng: np.random.Generator
) -> Iterator[tuple[_Task, NDArray[np.intp], float]]:
    """Yield the batches of all epochs, of the last one a share: the task, its examples, and the share of the initial step sizes."""
    sizes = [
        [math.ceil(len(task.answers) * min(1, epochs - done)) for task in tasks] for done in range(math.ceil(epochs))
    ]
    total = sum(-(-size // task.batch) for row in sizes for size, task in zip(row, tasks, strict=True))
    done = 0
    for row in sizes:
        batches = []
        for task, size in zip(tasks, row, strict=True):
            order = rng.permutation(len(task.answers))[:size]
            batches += [(task, order[start : start + task.batch]) for start in range(0, size, task.batch)]
        for at in rng.permutation(len(batches)):
            yield *batches[at], 1 - done / total
            done += 1


def _choose_words(sample: ClozeSample) -> tuple[str, ...]:
    """Return the most frequent context words."""
    size = len(sample.words) + 1
    counts = np.zeros(size, np.int64)
    for found in sample.kinds.values():
        counts += np.bincount(found.rows[:, 1:].ravel(), minlength=size)
    often = [
        (-count, word) for count, word in zip(counts[1:].tolist(), sample.words, strict=True) if count >= _MIN_WORD
    ]
    return tuple(word for _, word in sorted(often)[:MOST_WORDS])


def _make_task(
    sample: ClozeSample, kind: str, ids: WordIndex, rng: np.random.Generator, start: ClozeNetwork | None
) -> _Task:
    rows = sample.kinds[kind].rows
    counts = np.bincount(rows[:, 0], minlength=len(sample.words) + 1)
    minimum = min(_MIN_TARGET, max(_MIN_TARGET_OF_SMALL_POOL, len(rows) // _EXAMPLES_PER_MIN_TARGET))
    chosen = np.flatnonzero(counts >= minimum)
    rows = rows[counts[rows[:, 0]] >= minimum]
    rows = rows[: _EXAMPLES_PER_TARGET * len(chosen)]  # in order of hashes of captions: a random choice
    table = np.array([PAD, *(ids[word] for word in sample.words)], np.uint16)
    targets = tuple(sample.words[number - 1] for number in chosen.tolist())
    return _Task(targets, table[rows[:, 1:]], np.searchsorted(chosen, rows[:, 0]), rng, start)
