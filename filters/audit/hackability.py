"""Whether a set can be hacked: every blind attack, pooled and by type, against what is allowed.

An attack breaks the set when its accuracy is above the bound and its interval above a coin's toss: in a set of twenty rows
some attack gets 60% by luck. Types count for themselves, since benchmarks report them so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pairwright.filters.attacks.accuracy import MeasuredAttack, measure_attacks
from pairwright.filters.attacks.evidence import CLASSIFIERS, MEANING
from pairwright.filters.audit.text_leaks import TextLeaks, find_text_leaks
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer, fixed_scorers

ALL = "all"


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """An attack that breaks a set, or one type of it.

    Attributes:
        attack: its name.
        of: the type, or `ALL`.
        measured: how well it does there.
    """

    attack: str
    of: str
    measured: MeasuredAttack


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        rows: that were attacked.
        images: how many images (groups) they are of.
        most: accuracy that is allowed.
        attacks: name to how well it does, by type as well.
        tells: what gives rows away before any scorer is asked.
    """

    rows: int
    images: int
    most: float
    attacks: Mapping[str, MeasuredAttack]
    tells: TextLeaks

    @property
    def breaks(self) -> list[ExceededLimit]:
        """The attacks that break the set, the worst first."""
        every = [ExceededLimit(name, ALL, one) for name, one in self.attacks.items()]
        several = [(name, one) for name, one in self.attacks.items() if len(one.by_type) > 1]
        every += [ExceededLimit(name, kind, each) for name, one in several for kind, each in one.by_type.items()]
        found = [each for each in every if each.measured.accuracy > self.most and each.measured.low > 0.5]
        return sorted(found, key=lambda each: (-each.measured.accuracy, each.attack, each.of))

    @property
    def worst(self) -> tuple[str, MeasuredAttack]:
        """The pooled attack that does best."""
        return max(self.attacks.items(), key=lambda item: (item[1].accuracy, item[0]))

    @property
    def verdict(self) -> str:
        """``hackable``; ``unclear`` where `doubt` says why nothing can be told; else ``sound``."""
        if self.breaks:
            return "hackable"
        return "unclear" if self.doubt else "sound"

    @property
    def doubt(self) -> str:
        """Why nothing can be told of rows that no attack breaks; empty where something can."""
        if self.tells.identical == self.rows:
            return "the two texts of every row are the same"
        if self.images < 2:
            return "all rows are of one image, so there are no others to train an attack on"
        if any(one.accuracy > self.most for one in self.attacks.values()):
            return f"some attack is above {self.most:.0%}, and there are too few rows to tell whether by luck"
        return ""

    def as_json(self) -> dict[str, object]:
        """Return this as JSON."""
        tells = self.tells
        kinds = sorted({kind for one in self.attacks.values() for kind in one.by_type})
        return {
            "rows": self.rows,
            "images": self.images,
            "verdict": self.verdict,
            "max": self.most,
            "attacks": {name: one.as_json() for name, one in self.attacks.items()},
            "by_type": {
                kind: {name: one.by_type[kind].as_json() for name, one in self.attacks.items()} for kind in kinds
            },
            "breaks": [{"attack": each.attack, "of": each.of, **each.measured.as_json()} for each in self.breaks],
            "identical": tells.identical,
            "repeated": tells.repeated,
            "negative_is_a_caption": tells.shared,
            "format_leaks": tells.format_rows,
            "format": {name: {"rows": leak.rows, "negative": leak.negative} for name, leak in tells.leaks.items()},
            "longer": tells.longer,
            "shorter": tells.shorter,
            "leaking_words": [
                {"words": tell.words, "positive": tell.positive, "negative": tell.negative, "z": round(tell.weight, 2)}
                for tell in tells.words
            ],
            "places": list(tells.places),
        }


def run_audit(  # noqa: PLR0913 - what the command line has
    rows: pl.DataFrame,
    corpus: CaptionCorpus | None = None,
    *,
    most: float = 0.55,
    seed: int = 0,
    also: Sequence[GapScorer] = (),
    meaning: bool = False,
) -> Audit:
    """Attack rows with everything that never sees an image.

    Args:
        rows: string columns ``group``, ``positive``, ``negative``, ``type``; at least one row.
        corpus: captions to train the language models on; without, the positives of the rows of other images.
        most: accuracy that is allowed, in 0.5-1.
        seed: of the folds.
        also: scorers beside those that need nothing but captions.
        meaning: a classifier of MiniLM's sentence embeddings attacks too, where it is installed.
    """
    pairs = list(rows.select("positive", "negative").iter_rows())
    scorers = [*fixed_scorers(corpus), *also]
    classifiers = (*CLASSIFIERS, *((MEANING,) if meaning else ()))
    found = measure_attacks(rows, corpus, seed, scorers, classifiers)
    return Audit(len(rows), rows["group"].n_unique(), most, found, find_text_leaks(pairs))
