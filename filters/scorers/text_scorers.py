"""Text-only scorers: how plausible a caption is without its image.

A *text scorer* gives each text one number in 0-1, higher for the likelier caption. Two need no weights, only captions
to count: *grammar* (trigram model, `trigram_model.py`) and *plausibility* (co-occurrence, `cooccurrence.py`). The *gap*
of a row is score(positive) - score(negative), in -1..1.

A scorer that was trained on a caption prefers it for that reason alone. So gaps are *cross-fitted*: rows are assigned
to folds by group (their image), and a fold is scored by a scorer trained without any caption of the fold's images and
without any text that equals a positive or negative of the fold, except for case and spacing. With a corpus from
elsewhere, no text under test of any row is used for training, and one scorer serves all folds. Negatives never train.
Scores are rounded to nine decimals, so that equal evidence gives equal scores whatever the order of summation.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.progress import track
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.scorers.cooccurrence import Cooccurrence
from pairwright.filters.scorers.shared_texts import CountedTexts, SharedTexts, count_texts
from pairwright.generators.language.trigram_model import TrigramModel
from pairwright.generators.language.vocabulary import FloatArray, IntArray, encode_names, normalize_text

DECIMALS = 9
FOLDS = 5
_BATCH_SIZE = 5_000  # rows; scorers use some KB per text


class TextScorer(Protocol):
    """Scores texts one by one, without an image."""

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return one number in 0-1 for each text, float64 (n,)."""
        ...


class GapScorer(Protocol):
    """Scores rows of (positive, negative), each with a scorer that was not trained on its group."""

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return score(positive) - score(negative) of each row in -1..1, float64 (n,); NaN without a score."""
        ...


@dataclass(frozen=True, eq=False)
class GrammarScorer:
    """Fluency: the mean natural log-probability m of a text's tokens, as 1 / (1 + exp(-(m + 3.5))).

    0.5 is a perplexity of 33, about that of a caption under a model of 100,000 other captions.
    """

    model: TrigramModel

    @classmethod
    def train(cls, captions: Sequence[str]) -> "GrammarScorer":
        """Return the scorer trained on ``captions``."""
        return cls(count_texts(captions).trigram_model)

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the fluency of each text, float64 (n,) in 0-1."""
        return compute_grammar_score(*SharedTexts.of(texts).log_prob(self.model))


@dataclass(frozen=True, eq=False)
class PlausibilityScorer:
    """Common sense: the association x of a text's content words, as 1 / (1 + exp(-2 (x - 0.75))).

    0.5 is about the association of a typical caption; a text without co-occurring known words has 0.18.
    """

    model: Cooccurrence

    @classmethod
    def train(cls, captions: Sequence[str]) -> "PlausibilityScorer":
        """Return the scorer trained on ``captions``."""
        texts = count_texts(captions)
        return cls(Cooccurrence.of_counts(texts.content_words, *texts.count_pairs()))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the plausibility of each text, float64 (n,) in 0-1."""
        encoded = SharedTexts.of(texts).encode_content(self.model.vocabulary)
        return compute_plausibility_score(self.model.association_encoded(*encoded))


@dataclass(frozen=True, eq=False)
class LikelihoodScorer:
    """Likelihood of the whole text: its total natural log-probability t, as 1 / (1 - t / 40).

    0.5 is about a caption of ten words. Unlike `GrammarScorer`, it penalises length.
    """

    model: TrigramModel

    @classmethod
    def train(cls, captions: Sequence[str]) -> "LikelihoodScorer":
        """Return the scorer trained on ``captions``."""
        return cls(count_texts(captions).trigram_model)

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the likelihood of each text, float64 (n,) in 0-1."""
        total, _ = SharedTexts.of(texts).log_prob(self.model)
        result: FloatArray = np.round(1.0 / (1.0 - total / 40.0), DECIMALS)
        return result


@dataclass(frozen=True)
class LengthScorer:
    """Brevity, as 50 / (50 + characters); needs no training."""

    name: str = "length"

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return score(positive) - score(negative) of each row, float64 (n,) in -1..1."""
        del groups, seed
        positive, negative = (np.array([len(text) for text in texts], np.float64) for texts in (positives, negatives))
        result: FloatArray = np.round(50.0 / (50.0 + positive) - 50.0 / (50.0 + negative), DECIMALS)
        return result


def compute_grammar_score(total: FloatArray, tokens: IntArray) -> FloatArray:
    """Return the grammar score, float64 (n,) in 0-1, from total log-probabilities and numbers of tokens."""
    return rounded_logistic(total / tokens + 3.5)


def compute_plausibility_score(association: FloatArray) -> FloatArray:
    """Return the plausibility score, float64 (n,) in 0-1, of texts with this association."""
    return rounded_logistic(2.0 * (association - 0.75))


def rounded_logistic(values: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-values)), rounded so that it is the same on every machine."""
    result: FloatArray = np.round(1.0 / (1.0 + np.exp(-values)), DECIMALS)
    return result


@dataclass(frozen=True)
class CaptionCorpus:
    """Captions to train scorers on.

    Attributes:
        captions: the texts.
        groups: the group (image) of each text.
        pool: whether the rows were made from these captions. Then a fold is trained without its own images and texts;
            otherwise without those of all rows.
    """

    captions: Sequence[str]
    groups: Sequence[str]
    pool: bool = False

    def __post_init__(self) -> None:
        if len(self.captions) != len(self.groups):
            raise UsageError(f"a corpus of {len(self.captions)} captions needs as many groups, not {len(self.groups)}")

    def without(self, groups: set[str], forms: set[str]) -> list[str]:
        """Return the captions of other groups whose `normalize_text` is not in ``forms``."""
        # Few captions have the characters of a form; only these are split into words.
        characters = {form.replace(" ", "") for form in forms}

        def is_tested(caption: str) -> bool:
            return "".join(caption.lower().split()) in characters and normalize_text(caption) in forms

        rows = zip(self.captions, self.groups, strict=True)
        return [caption for caption, group in rows if group not in groups and not is_tested(caption)]


@dataclass(frozen=True)
class CrossFittedScorer:
    """A trained scorer as a `GapScorer`.

    Attributes:
        name: in reports.
        train: returns the scorer trained on captions.
        corpus: captions to train on; without, the positives of the rows (each once per image).
        folds: number of folds, at least 2; fewer when there are fewer groups.
    """

    name: str
    train: Callable[[Sequence[str]], TextScorer]
    corpus: CaptionCorpus | None = None
    folds: int = FOLDS

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise UsageError(f"cross-fitting needs at least 2 folds, not {self.folds}")

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return score(positive) - score(negative) of each row, float64 (n,) in -1..1.

        A row is NaN when its fold has no caption to train on (rows of a single image, for example).

        Raises:
            InputError: every caption of a corpus from elsewhere is under test.
        """
        return cross_fit([self], positives, negatives, groups, seed)[0]


def cross_fit(
    scorers: Sequence[CrossFittedScorer],
    positives: Sequence[str],
    negatives: Sequence[str],
    groups: Sequence[str],
    seed: int,
) -> list[FloatArray]:
    """Return `CrossFittedScorer.gaps` of each scorer; those of one corpus read its captions and the rows together.

    Args:
        scorers: any number.
        positives: of n rows.
        negatives: of the rows.
        groups: of the rows.
        seed: of the folds.

    Raises:
        InputError: every caption of a corpus from elsewhere is under test.
    """
    gaps = [np.full(len(groups), np.nan) for _ in scorers]
    own = collect_unique_captions(positives, groups) if any(each.corpus is None for each in scorers) else None
    alike: dict[tuple[int, int], list[int]] = {}
    for number, scorer in enumerate(scorers):
        alike.setdefault((id(scorer.corpus), scorer.folds), []).append(number)
    for (_, folds), members in track(alike.items(), "training text-only scorers", unit="sets of captions"):
        corpus = scorers[members[0]].corpus or own
        if corpus is None:
            raise ValueError("the rows were not read")
        fold = assign_folds(groups, folds, seed) if corpus.pool else np.zeros(len(groups), np.int64)
        for number in track(np.unique(fold), "scoring", unit="folds"):
            rows = np.flatnonzero(fold == number).tolist()
            columns = ([column[row] for row in rows] for column in (positives, negatives, groups))
            trained = [scorers[member] for member in members]
            found = score_held_out_rows(trained, corpus, *columns, required=not corpus.pool)
            for member, gap in zip(members, found, strict=True):
                gaps[member][rows] = gap
    return gaps


def score_held_out_rows(  # noqa: PLR0913 - the captions and the columns of the rows
    scorers: Sequence[CrossFittedScorer],
    corpus: CaptionCorpus,
    positives: Sequence[str],
    negatives: Sequence[str],
    groups: Sequence[str],
    *,
    required: bool = False,
) -> list[FloatArray]:
    """Return the gaps of scorers that are trained without the groups and texts of the rows; NaN without captions.

    Args:
        scorers: to train.
        corpus: captions to train on.
        positives: of n rows.
        negatives: of the rows.
        groups: of the rows.
        required: whether it is an error if no caption is left.

    Raises:
        InputError: no caption is left, but one is required.
    """
    starts = range(0, len(positives), _BATCH_SIZE)
    texts = [
        SharedTexts(text for side in (positives, negatives) for text in side[start : start + _BATCH_SIZE])
        for start in starts
    ]
    tested = {normalize_text(text) for batch in texts for text in batch}
    training = SharedTexts(corpus.without(set(groups), tested))
    if not training and required:
        raise InputError(
            "no caption is left without the images and texts under test",
            where="corpus",
            fix="Give captions of other images, or no corpus to train on the rows themselves.",
        )
    ends = np.cumsum([len(batch) // 2 for batch in texts])
    places = [np.arange(end - len(batch) // 2, end) for batch, end in zip(texts, ends.tolist(), strict=True)]
    return compute_gaps(scorers, training, len(positives), lambda: zip(places, texts, strict=True))


def compute_gaps(
    scorers: Sequence[CrossFittedScorer],
    training: CountedTexts,
    rows: int,
    batches: Callable[[], Iterable[tuple[IntArray, SharedTexts]]],
) -> list[FloatArray]:
    """Return the gaps of scorers that are trained on captions, each float64 (rows,); NaN without captions.

    Args:
        scorers: to train, one after another.
        training: the captions.
        rows: number of rows.
        batches: returns the rows in batches: their places, and their positives followed by their negatives.
    """
    gaps = [np.full(rows, np.nan) for _ in scorers]
    for scorer, gap in zip(scorers if training else (), gaps, strict=False):
        trained = scorer.train(training)
        for places, texts in batches():
            scores = trained.score(texts).reshape(2, -1)
            gap[places] = np.round(scores[0] - scores[1], DECIMALS)
    return gaps


def assign_folds(groups: Sequence[str] | IntArray, folds: int, seed: int | str) -> IntArray:
    """Return the fold of each row, int64 (n,): equal groups, equal folds, with about equally many groups per fold.

    It depends on the set of groups and the seed, not on the order of the rows. Groups are names, or numbers that are
    ordered like the names.
    """
    distinct: Sequence[str] | IntArray
    distinct, member = (
        np.unique(groups, return_inverse=True) if isinstance(groups, np.ndarray) else encode_names(groups)
    )
    return assign_group_folds(len(distinct), folds, seed)[member].astype(np.int64)


def assign_group_folds(groups: int, folds: int, seed: int | str) -> npt.NDArray[np.int8]:
    """Return the fold of each of ``groups`` groups, in the order of their names, int8 (groups,); at most 127 folds."""
    fold_of = np.resize(np.arange(folds, dtype=np.int8), groups)
    make_numpy_rng(seed, "folds").shuffle(fold_of)
    return fold_of


def collect_unique_captions(positives: Sequence[str], groups: Sequence[str]) -> CaptionCorpus:
    """Return the positives of rows as the pool that they were made from, each once per group."""
    rows = dict.fromkeys(zip(positives, groups, strict=True))
    return CaptionCorpus([caption for caption, _ in rows], [group for _, group in rows], pool=True)
