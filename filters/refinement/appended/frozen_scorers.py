"""Frozen scorers of a refined set, for rows that are appended later.

They are the language models of the captions that the set was made from, and classifiers of all rows that entered its
refinement. They are fitted once, saved in plain files (`FrozenScorers.save`: NumPy arrays and Parquet), and never
trained on appended rows, so the score of a row does not depend on when it was added.

A frozen model must not score texts that it was trained on. A row whose image or one of whose texts is in its captions
is scored by a model of the same captions without those of such rows.
"""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.filters.attacks.evidence import RowTexts, scale_to_unit_length
from pairwright.filters.attacks.text_classifier import fit_weights
from pairwright.filters.attacks.text_features import MIN_ROWS, VIEWS, compute_named_differences
from pairwright.filters.scorers.cooccurrence import Cooccurrence
from pairwright.filters.scorers.text_scorers import (
    DECIMALS,
    CaptionCorpus,
    GrammarScorer,
    LengthScorer,
    LikelihoodScorer,
    PlausibilityScorer,
    TextScorer,
)
from pairwright.generators.language.trigram_model import TrigramModel
from pairwright.generators.language.vocabulary import FloatArray, Vocabulary, normalize_text

GRAMMAR, PLAUSIBILITY, CLASSIFIER_WEIGHTS = "grammar.npz", "plausibility.npz", "classifiers.parquet"
COST = 3.0
_SCHEMA = pl.Schema({"classifier": pl.String, "feature": pl.String, "weight": pl.Float64})
_Train = Callable[[Sequence[str]], Sequence[TextScorer]]


@dataclass(frozen=True, eq=False)
class FrozenScorers:
    """Scorers that are not trained any more.

    Attributes:
        trigrams: of all captions of the set.
        cooccurrence: of all captions of the set.
        weights: of each classifier, by feature name (`text_features.named_differences`); classifiers without weights
            take
            no part.
    """

    trigrams: TrigramModel
    cooccurrence: Cooccurrence
    weights: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, corpus: CaptionCorpus, rows: RowTexts | None) -> "FrozenScorers":
        """Fit all models.

        Args:
            corpus: all captions of the set.
            rows: all rows that entered refinement, including rejected ones; None for language models only.
        """
        weights = {name: each for name in VIEWS if (each := _fit_named_weights(name, rows))} if rows else {}
        return cls(TrigramModel.fit(corpus.captions), Cooccurrence.fit(corpus.captions), weights)

    def save(self, folder: Path) -> list[Path]:
        """Write all models into ``folder`` and return the files; equal content gives equal bytes."""
        files = [folder / name for name in (GRAMMAR, PLAUSIBILITY, CLASSIFIER_WEIGHTS)]
        self.trigrams.save(files[0])
        _save_cooccurrence(self.cooccurrence, files[1])
        table = [(name, feature, weight) for name, each in self.weights.items() for feature, weight in each.items()]
        with replace_atomically(files[2]) as temporary:
            pl.DataFrame(table, schema=_SCHEMA, orient="row").write_parquet(temporary)
        return files

    @classmethod
    def load(cls, folder: Path) -> "FrozenScorers":
        """Read the files that `save` wrote.

        Raises:
            StorageError: a file is missing or corrupt.
        """
        path = folder / CLASSIFIER_WEIGHTS
        try:
            table = pl.read_parquet(path, columns=_SCHEMA.names())
        except (OSError, pl.exceptions.PolarsError):
            raise StorageError(f"{path}: missing or corrupt classifier weights. Delete it and build again.") from None
        weights: dict[str, dict[str, float]] = {}
        for name, feature, weight in table.iter_rows():
            weights.setdefault(name, {})[feature] = weight
        return cls(TrigramModel.load(folder / GRAMMAR), _load_cooccurrence(folder / PLAUSIBILITY), weights)

    def gaps(self, rows: RowTexts, corpus: CaptionCorpus) -> dict[str, FloatArray]:
        """Return how much each scorer prefers the positive of each row, float64 (n,); NaN without a score.

        Args:
            rows: to score.
            corpus: the captions that the language models were trained on.
        """
        found = {"length": LengthScorer().gaps(rows.positives, rows.negatives, rows.groups, 0)}
        grams = (GrammarScorer(self.trigrams), LikelihoodScorer(self.trigrams))
        grammar, likelihood = _score_unseen(rows, corpus, grams, _train_ngram_scorers)
        (plausibility,) = _score_unseen(rows, corpus, [PlausibilityScorer(self.cooccurrence)], _train_plausibility)
        found |= {"grammar": grammar, "likelihood": likelihood, "plausibility": plausibility}
        return found | {name: _classify(name, weights, rows) for name, weights in self.weights.items()}


def _save_cooccurrence(cooccurrence: Cooccurrence, path: Path) -> None:
    text = "\n".join(cooccurrence.vocabulary.words).encode("utf-8", "surrogatepass")
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        spelled = np.frombuffer(text, dtype=np.uint8)
        np.savez(handle, words=spelled, met=cooccurrence.totals, pairs=cooccurrence.pairs, times=cooccurrence.times)


def _load_cooccurrence(path: Path) -> Cooccurrence:
    try:
        with np.load(path, allow_pickle=False) as stored:
            text = stored["words"].tobytes().decode("utf-8", "surrogatepass")
            vocabulary = Vocabulary(tuple(text.split("\n")) if text else ())
            return Cooccurrence(vocabulary, stored["met"], stored["pairs"], stored["times"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StorageError(
            f"{path}: missing or corrupt co-occurrence counts ({error}). Delete it and build again."
        ) from None


def _train_ngram_scorers(captions: Sequence[str]) -> list[TextScorer]:
    model = TrigramModel.fit(captions)
    return [GrammarScorer(model), LikelihoodScorer(model)]


def _train_plausibility(captions: Sequence[str]) -> list[TextScorer]:
    return [PlausibilityScorer.train(captions)]


def _score_unseen(
    rows: RowTexts, corpus: CaptionCorpus, frozen: Sequence[TextScorer], train: _Train
) -> list[FloatArray]:
    read = {normalize_text(caption) for caption in corpus.captions}
    images = set(corpus.groups)
    forms = [
        {normalize_text(positive), normalize_text(negative)}
        for positive, negative in zip(rows.positives, rows.negatives, strict=True)
    ]
    known = np.array(
        [group in images or bool(form & read) for group, form in zip(rows.groups, forms, strict=True)], bool
    )
    gaps = [np.full(len(forms), np.nan) for _ in frozen]
    _score(gaps, rows, np.flatnonzero(~known).tolist(), frozen)
    seen = np.flatnonzero(known).tolist()
    if seen:
        training = corpus.without({rows.groups[row] for row in seen}, set().union(*(forms[row] for row in seen)))
        if training:
            _score(gaps, rows, seen, train(training))
    return gaps


def _score(gaps: Sequence[FloatArray], rows: RowTexts, chosen: Sequence[int], scorers: Sequence[TextScorer]) -> None:
    positives, negatives = [rows.positives[row] for row in chosen], [rows.negatives[row] for row in chosen]
    for gap, scorer in zip(gaps, scorers, strict=True):
        gap[chosen] = np.round(scorer.score(positives) - scorer.score(negatives), DECIMALS)


def _fit_named_weights(name: str, rows: RowTexts) -> dict[str, float]:
    matrix, names = compute_named_differences(name, rows.positives, rows.negatives)
    often = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]) >= MIN_ROWS)
    features = matrix[:, often]
    scaled = scale_to_unit_length(features)
    size = float(scaled.data[0] / features.data[0]) if len(features.data) else 1.0
    weights = np.round(fit_weights(scaled, COST) * size, DECIMALS)
    named = ((names[column], weight) for column, weight in zip(often.tolist(), weights.tolist(), strict=True))
    return {feature: weight for feature, weight in sorted(named) if weight}


def _classify(name: str, weights: Mapping[str, float], rows: RowTexts) -> FloatArray:
    matrix, names = compute_named_differences(name, rows.positives, rows.negatives)
    found: FloatArray = np.round(
        matrix @ np.array([weights.get(feature, 0.0) for feature in names], np.float64), DECIMALS
    )
    return found
