"""What judged a refined set, kept as it was: to judge rows that are appended to the set later.

*Frozen* are the language models of the captions that the set was made from, and classifiers of all rows that entered its
refinement. They are fitted once, saved in plain files (`Frozen.save`: NumPy arrays and Parquet), and never trained on what is
appended, so that a row's score does not depend on the day it came.

A frozen model must not judge what it has read. A row whose image it knows, or of whose texts one is a caption that it
has read, is judged by a model of the same captions without those of such rows.
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
from pairwright.filters.attacks.text_features import MIN_ROWS, VIEWS, named_differences
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
    """Scorers that learn nothing any more.

    Attributes:
        trigrams: of all captions of the set.
        cooccurrence: of all captions of the set.
        weights: of each classifier, by feature, as `text_features.named_differences` names it; classifiers without any
            weight take no part.
    """

    trigrams: TrigramModel
    cooccurrence: Cooccurrence
    weights: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, corpus: CaptionCorpus, rows: RowTexts | None) -> "FrozenScorers":
        """Fit everything.

        Args:
            corpus: all captions of the set.
            rows: all that entered refinement, those that it rejected too; None for language models alone.
        """
        weights = {name: each for name in VIEWS if (each := _weights(name, rows))} if rows else {}
        return cls(TrigramModel.fit(corpus.captions), Cooccurrence.fit(corpus.captions), weights)

    def save(self, folder: Path) -> list[Path]:
        """Write everything into ``folder``; equal content gives equal bytes. Return the files."""
        files = [folder / name for name in (GRAMMAR, PLAUSIBILITY, CLASSIFIER_WEIGHTS)]
        self.trigrams.save(files[0])
        _save_cooccurrence(self.cooccurrence, files[1])
        table = [(name, feature, weight) for name, each in self.weights.items() for feature, weight in each.items()]
        with replace_atomically(files[2]) as temporary:
            pl.DataFrame(table, schema=_SCHEMA, orient="row").write_parquet(temporary)
        return files

    @classmethod
    def load(cls, folder: Path) -> "FrozenScorers":
        """Read what `save` wrote.

        Raises:
            StorageError: when a file is missing or torn.
        """
        path = folder / CLASSIFIER_WEIGHTS
        try:
            table = pl.read_parquet(path, columns=_SCHEMA.names())
        except (OSError, pl.exceptions.PolarsError):
            raise StorageError(f"{path}: no weights of classifiers. Delete it and build again.") from None
        weights: dict[str, dict[str, float]] = {}
        for name, feature, weight in table.iter_rows():
            weights.setdefault(name, {})[feature] = weight
        return cls(TrigramModel.load(folder / GRAMMAR), _load_cooccurrence(folder / PLAUSIBILITY), weights)

    def gaps(self, rows: RowTexts, corpus: CaptionCorpus) -> dict[str, FloatArray]:
        """Return by how much each scorer prefers the positive of each row, float64 (n,); NaN where none can say.

        Args:
            rows: to judge.
            corpus: the captions that the language models have read.
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
        raise StorageError(f"{path}: no counts of words that meet ({error}). Delete it and build again.") from None


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
        {normalize_text(better), normalize_text(worse)}
        for better, worse in zip(rows.positives, rows.negatives, strict=True)
    ]
    known = np.array(
        [group in images or bool(form & read) for group, form in zip(rows.groups, forms, strict=True)], bool
    )
    gaps = [np.full(len(forms), np.nan) for _ in frozen]
    _score(gaps, rows, np.flatnonzero(~known).tolist(), frozen)
    met = np.flatnonzero(known).tolist()
    if met:
        training = corpus.without({rows.groups[row] for row in met}, set().union(*(forms[row] for row in met)))
        if training:
            _score(gaps, rows, met, train(training))
    return gaps


def _score(gaps: Sequence[FloatArray], rows: RowTexts, chosen: Sequence[int], scorers: Sequence[TextScorer]) -> None:
    better, worse = [rows.positives[row] for row in chosen], [rows.negatives[row] for row in chosen]
    for gap, scorer in zip(gaps, scorers, strict=True):
        gap[chosen] = np.round(scorer.score(better) - scorer.score(worse), DECIMALS)


def _weights(name: str, rows: RowTexts) -> dict[str, float]:
    matrix, names = named_differences(name, rows.positives, rows.negatives)
    often = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]) >= MIN_ROWS)
    features = matrix[:, often]
    scaled = scale_to_unit_length(features)
    size = float(scaled.data[0] / features.data[0]) if len(features.data) else 1.0
    weights = np.round(fit_weights(scaled, COST) * size, DECIMALS)
    told = ((names[column], weight) for column, weight in zip(often.tolist(), weights.tolist(), strict=True))
    return {feature: weight for feature, weight in sorted(told) if weight}


def _classify(name: str, weights: Mapping[str, float], rows: RowTexts) -> FloatArray:
    matrix, names = named_differences(name, rows.positives, rows.negatives)
    found: FloatArray = np.round(
        matrix @ np.array([weights.get(feature, 0.0) for feature in names], np.float64), DECIMALS
    )
    return found
