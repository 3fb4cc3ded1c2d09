"""Table of the text-only attacks, and the scorers that other packages add to it by entry point.

`BUILT_IN` has one entry per attack; `audit`, `refine`, their ``--add-attacks``, the reports and ``pairwright plugins``
read it. To add an attack, add an entry. The entry's kind says what its factory takes and returns:

- ``scorer``: captions to a `TextScorer` that is trained on them. Takes part in every audit and refinement.
- ``auxiliary``: the same; takes part in the refinement against all attacks.
- ``untrained``: no argument to a `GapScorer`. Takes part like ``scorer``.
- ``classifier``: (positives, negatives) to sparse features, on which a linear classifier is trained.
- ``pretrained``: a checkpoint's folder (empty: the default checkpoint) to a `GapScorer`.
- ``derived``: no factory; built by the code that uses the name.

A package adds a scorer with an entry point of the group ``pairwright.scorers``, a function from texts to one number in
0-1 for each text, higher for the likelier caption. It is imported when it is named, not before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from pairwright.datasets.errors import UsageError
from pairwright.datasets.plugins import PluginRegistry, call_plugin
from pairwright.datasets.suggestions import require_known
from pairwright.filters.attacks.text_features import (
    compute_format_differences,
    compute_letter_differences,
    compute_meaning_differences,
    compute_word_differences,
)
from pairwright.filters.scorers.auxiliary import (
    CooccurrenceScorer,
    FrequencyScorer,
    SimilarityScorer,
    SpellingScorer,
    WordOrderScorer,
    WordShapeScorer,
)
from pairwright.filters.scorers.neural import load_cola, load_vera
from pairwright.filters.scorers.text_scorers import (
    DECIMALS,
    FOLDS,
    CaptionCorpus,
    CrossFittedScorer,
    GapScorer,
    GrammarScorer,
    LengthScorer,
    LikelihoodScorer,
    PlausibilityScorer,
)
from pairwright.generators.language.vocabulary import FloatArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences, FactoredDifferences
    from pairwright.filters.scorers.text_scorers import TextScorer

MEANING, LLM, COMBINED, WORD_CLUSTERS, TRANSFER = "meaning", "llm", "combined", "word_clusters", "transfer"

Kind = Literal["scorer", "auxiliary", "untrained", "classifier", "pretrained", "derived"]


def _train_cloze_scorer(captions: Sequence[str]) -> "TextScorer":
    from pairwright.filters.scorers.cloze import ClozeScorer  # with the tagger and all that finds slots

    return ClozeScorer.train(captions)


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes:
        kind: see the module.
        about: what it goes by, for reports.
        factory: see the module.
        optional: whether it takes part only where it is named.
    """

    kind: Kind
    about: str
    factory: Callable[..., Any] | None = None
    optional: bool = False


BUILT_IN: dict[str, Attack] = {
    "length": Attack("untrained", "number of characters", LengthScorer),
    "grammar": Attack("scorer", "trigram model of captions, per word", GrammarScorer.train),
    "likelihood": Attack("scorer", "trigram model of captions, whole text", LikelihoodScorer.train),
    "plausibility": Attack("scorer", "co-occurrence of words in captions", PlausibilityScorer.train),
    "frequency": Attack("auxiliary", "mean frequency of the words", FrequencyScorer.train),
    "word_shapes": Attack("auxiliary", "trigram model of word shapes", WordShapeScorer.train),
    "cooccurrence": Attack("auxiliary", "co-occurrence of words at any distance", CooccurrenceScorer.train),
    "similarity": Attack("auxiliary", "distributional similarity of the words", SimilarityScorer.train),
    "word_order": Attack("auxiliary", "word vectors of following words", WordOrderScorer.train),
    "spelling": Attack("auxiliary", "character model of captions", SpellingScorer.train),
    "format": Attack("classifier", "classifier of capitals, punctuation and spacing", compute_format_differences),
    "words": Attack("classifier", "classifier of words and word n-grams", compute_word_differences),
    "letters": Attack("classifier", "classifier of character n-grams", compute_letter_differences),
    WORD_CLUSTERS: Attack("derived", "classifier of word clusters"),
    COMBINED: Attack("derived", "classifier of all of these"),
    "cloze": Attack(
        "scorer", "cloze model of captions: nouns, adjectives, relations", _train_cloze_scorer, optional=True
    ),
    MEANING: Attack(
        "classifier", "classifier of sentence embeddings (MiniLM)", compute_meaning_differences, optional=True
    ),
    LLM: Attack("derived", "a language model's rating of both texts", optional=True),
    "cola": Attack("pretrained", "grammar by a CoLA classifier", load_cola, optional=True),
    "vera": Attack("pretrained", "plausibility by Vera", load_vera, optional=True),
}
CLASSIFIERS = tuple(name for name, attack in BUILT_IN.items() if attack.kind == "classifier" and not attack.optional)

ATTACKS = PluginRegistry(
    "attack",
    ("pairwright.scorers",),
    BUILT_IN,
    lambda attack: attack.about,
    cast("type", Callable),
    lambda score, label: partial(call_plugin, score, label),
)


def build_fixed_scorers(corpus: CaptionCorpus | None = None, folds: int = FOLDS) -> tuple[GapScorer, ...]:
    """Return the scorers that every audit and refinement uses, trained on ``corpus`` or cross-fitted on the rows."""
    untrained = [attack.factory() for attack in BUILT_IN.values() if attack.kind == "untrained" and attack.factory]
    return (*untrained, *_cross_fit("scorer", corpus, folds))


def build_auxiliary_scorers(corpus: CaptionCorpus | None = None) -> tuple[CrossFittedScorer, ...]:
    """Return the scorers that only the refinement against all attacks uses; trained as `build_fixed_scorers`."""
    return _cross_fit("auxiliary", corpus, FOLDS)


def build_paper_scorers(corpus: CaptionCorpus | None = None, folds: int = FOLDS) -> tuple[GapScorer, ...]:
    """Return the two scorers of Algorithm 1, trained as `build_fixed_scorers`."""
    return tuple(scorer for scorer in build_fixed_scorers(corpus, folds) if scorer.name in {"grammar", "plausibility"})


def _cross_fit(kind: Kind, corpus: CaptionCorpus | None, folds: int) -> tuple[CrossFittedScorer, ...]:
    entries = [
        (name, attack.factory) for name, attack in BUILT_IN.items() if attack.kind == kind and not attack.optional
    ]
    return tuple(CrossFittedScorer(name, train, corpus, folds) for name, train in entries if train is not None)


def compute_classifier_features(
    name: str, positives: Sequence[str], negatives: Sequence[str]
) -> "Differences | FactoredDifferences":
    """Return the features of a classifier of the table, float64 (n, d).

    Raises:
        UsageError: the table has no such classifier.
    """
    factories = {each: attack.factory for each, attack in BUILT_IN.items() if attack.kind == "classifier"}
    require_known("no classifier", [name], factories)
    features = cast("Callable[[Sequence[str], Sequence[str]], Differences | FactoredDifferences]", factories[name])
    return features(positives, negatives)


def describe_attack(name: str) -> str:
    """Return what an attack goes by, in a few words; empty for a name that is not in the table."""
    return BUILT_IN[name].about if name in BUILT_IN else ""


def list_optional_attacks() -> list[str]:
    """Return the names that ``--add-attacks`` takes: optional attacks of the table, then scorers of other packages."""
    return [name for name in ATTACKS.names() if name not in BUILT_IN or BUILT_IN[name].optional]


def takes_folder(name: str) -> bool:
    """Return whether an attack reads a checkpoint, whose folder can be given."""
    return name in BUILT_IN and BUILT_IN[name].kind == "pretrained"


def load_scorer(name: str, folder: str = "") -> GapScorer:
    """Return an optional scorer of the table, or one of another package.

    One that is cross-fitted is trained on the rows, unless `give_corpus` gives it other captions.

    Args:
        name: a name of `list_optional_attacks`.
        folder: of the checkpoint, for pretrained scorers; empty: the default one.

    Raises:
        UsageError: the name is unknown or used twice, is no scorer, or its entry point cannot be loaded.
        MissingResourceError: a package or checkpoint is missing.
    """
    point = ATTACKS.find_entry_point(name)
    if point is not None:
        return ExternalScorer(name, ATTACKS.load(point))
    attack = BUILT_IN[name]
    if attack.kind == "scorer" and attack.optional and attack.factory is not None:
        return CrossFittedScorer(name, attack.factory)
    if attack.kind != "pretrained" or attack.factory is None:
        raise UsageError(f"{name} is no scorer that can be loaded. Choose from: {', '.join(list_optional_attacks())}.")
    return cast("GapScorer", attack.factory(folder) if folder else attack.factory())


def give_corpus(
    scorers: Iterable[GapScorer], corpus: CaptionCorpus | None = None, folds: int = FOLDS
) -> list[GapScorer]:
    """Return the scorers; those that are trained and have no captions of their own are trained on ``corpus``."""
    return [
        replace(scorer, corpus=corpus, folds=folds)
        if isinstance(scorer, CrossFittedScorer) and scorer.corpus is None
        else scorer
        for scorer in scorers
    ]


def fingerprint_scorers(names: Sequence[str]) -> str:
    """Return a text that changes when a named scorer of another package changes; empty without any.

    Raises:
        UsageError: a name is unknown, or the module of a scorer cannot be found.
    """
    require_known("no attack named", names, list_optional_attacks())
    return "; ".join(ATTACKS.fingerprint(name) for name in names if name not in BUILT_IN)


@dataclass(frozen=True)
class ExternalScorer:
    """A scorer of another package, as a `GapScorer`.

    Attributes:
        name: of its entry point.
        score: texts to one number in 0-1 for each text.
    """

    name: str
    score: Callable[[Sequence[str]], Sequence[float]]

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return score(positive) - score(negative) of each row, float64 (n,) in -1..1.

        Raises:
            UsageError: the scorer does not return one number in 0-1 for each text.
        """
        del groups, seed
        texts = [*positives, *negatives]
        try:
            scores = np.asarray(self.score(texts), np.float64)
        except (ValueError, TypeError):
            scores = np.empty(0)
        if scores.shape != (len(texts),) or not np.all((scores >= 0) & (scores <= 1)):
            raise UsageError(f"scorer {self.name} must return one number in 0-1 for each of {len(texts):,} texts.")
        gaps: FloatArray = np.round(scores[: len(positives)] - scores[len(positives) :], DECIMALS)
        return gaps
