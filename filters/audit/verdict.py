"""Audit of a set of rows: every text-only attack, on all rows and by type, against the allowed accuracy.

An attack exceeds the limit when its accuracy is above the limit and significantly above chance level: in a set of
twenty rows some attack reaches 60% by chance. Each type counts by itself, as benchmarks report types separately, so
there may be a hundred accuracies, of which a few are far from 50% by chance in any set. Hence the significance level is
corrected for their number (Bonferroni); without that nearly all sets of eight types of 54 rows in which nothing differs
have an attack beyond the limit (`benchmarks.audit_false_alarms`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from pairwright.filters.attacks.accuracy import MeasuredAttack, measure_attacks
from pairwright.filters.attacks.fold_groups import merge_mirrored_groups
from pairwright.filters.attacks.registry import CLASSIFIERS, MEANING, build_fixed_scorers, give_corpus
from pairwright.filters.audit.text_leaks import TextLeaks, find_text_leaks
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer

ALL = "all"
SIGNIFICANCE_LEVEL: Final = 0.05  # of all accuracies together


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """An attack that exceeds the limit, on all rows or on one type.

    Attributes:
        attack: its name.
        of: the type, or `ALL`.
        measured: its accuracy there.
    """

    attack: str
    of: str
    measured: MeasuredAttack


@dataclass(frozen=True, slots=True)
class Audit:
    """Result of an audit.

    Attributes:
        rows: number of rows under attack.
        images: number of their images (groups).
        limit: allowed accuracy.
        attacks: name to accuracy, with that by type.
        text_leaks: differences between the texts that need no scorer.
        groups: number of groups of images whose rows train attacks on one another's.
    """

    rows: int
    images: int
    limit: float
    attacks: Mapping[str, MeasuredAttack]
    text_leaks: TextLeaks
    groups: int

    @property
    def exceeded(self) -> list[ExceededLimit]:
        """The attacks that exceed the limit, the most accurate first."""
        every = [ExceededLimit(name, ALL, one) for name, one in self.attacks.items()]
        several = [(name, one) for name, one in self.attacks.items() if len(one.by_type) > 1]
        every += [ExceededLimit(name, kind, each) for name, one in several for kind, each in one.by_type.items()]
        level = SIGNIFICANCE_LEVEL / max(len(every), 1)
        found = [each for each in every if each.measured.accuracy > self.limit and each.measured.p_value <= level]
        return sorted(found, key=lambda each: (-each.measured.accuracy, each.attack, each.of))

    @property
    def worst(self) -> tuple[str, MeasuredAttack]:
        """The most accurate attack on all rows."""
        return max(self.attacks.items(), key=lambda item: (item[1].accuracy, item[0]))

    @property
    def verdict(self) -> str:
        """``hackable``; ``unclear`` where `doubt` gives a reason; else ``sound``."""
        if self.exceeded:
            return "hackable"
        return "unclear" if self.doubt else "sound"

    @property
    def doubt(self) -> str:
        """Why the result is inconclusive although no attack exceeds the limit; empty if it is not."""
        if self.text_leaks.identical == self.rows:
            return "the two texts of every row are equal"
        if self.images < 2:
            return "all rows are of one image, so no other rows can train an attack"
        if self.groups < 2:
            return "the texts of each image are those of another, exchanged, so no other rows can train an attack"
        if any(one.accuracy > self.limit for one in self.attacks.values()):
            return f"an attack is above {self.limit:.0%}, but there are too few rows to exclude an accident"
        return ""

    def as_json(self) -> dict[str, object]:
        """Return this as JSON."""
        leaks = self.text_leaks
        kinds = sorted({kind for one in self.attacks.values() for kind in one.by_type})
        return {
            "rows": self.rows,
            "images": self.images,
            "verdict": self.verdict,
            "max": self.limit,
            "attacks": {name: one.as_json() for name, one in self.attacks.items()},
            "by_type": {
                kind: {name: one.by_type[kind].as_json() for name, one in self.attacks.items()} for kind in kinds
            },
            "breaks": [{"attack": each.attack, "of": each.of, **each.measured.as_json()} for each in self.exceeded],
            "identical": leaks.identical,
            "repeated": leaks.repeated,
            "negative_is_a_caption": leaks.shared,
            "format_leaks": leaks.format_rows,
            "format": {name: {"rows": leak.rows, "negative": leak.negative} for name, leak in leaks.formats.items()},
            "longer": leaks.longer,
            "shorter": leaks.shorter,
            "leaking_words": [
                {"words": leak.words, "positive": leak.positive, "negative": leak.negative, "z": round(leak.weight, 2)}
                for leak in leaks.words
            ],
            "places": list(leaks.positions),
        }


def run_audit(  # noqa: PLR0913 - the options of the command line
    rows: pl.DataFrame,
    corpus: CaptionCorpus | None = None,
    *,
    limit: float = 0.55,
    seed: int = 0,
    also: Sequence[GapScorer] = (),
    meaning: bool = False,
) -> Audit:
    """Run every text-only attack on rows.

    Args:
        rows: string columns ``group``, ``positive``, ``negative``, ``type``; at least one row.
        corpus: captions to train the language models on; without, the positives of the rows of other images.
        limit: allowed accuracy, in 0.5-1.
        seed: of the folds.
        also: scorers in addition to `build_fixed_scorers`.
        meaning: whether a classifier of MiniLM's sentence embeddings attacks too.
    """
    pairs = list(rows.select("positive", "negative").iter_rows())
    scorers = [*build_fixed_scorers(corpus), *give_corpus(also, corpus)]
    classifiers = (*CLASSIFIERS, *((MEANING,) if meaning else ()))
    found = measure_attacks(rows, corpus, seed, scorers, classifiers)
    images = rows["group"].to_list()
    groups = len(set(merge_mirrored_groups(images, rows["positive"].to_list(), rows["negative"].to_list())))
    return Audit(len(rows), len(set(images)), limit, found, find_text_leaks(pairs), groups)
