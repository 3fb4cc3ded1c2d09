"""What several reviewers say of a row, taken together: one verdict.

Who sees that a negative is true of the image is not outvoted, so one *reject* rejects; then a *fix* wins over *keep*,
since it says what is better; one *keep* wins over *unsure*. Where only *unsure* was said, nobody vouches for the row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from pairwright.filters.review.decision_log import Decision, Decisions, DecisionWord

_STRONGEST_FIRST: Final[tuple[DecisionWord, ...]] = ("reject", "fix", "keep", "unsure")


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What became of a row.

    Attributes:
        word: of `decisions.WORDS`.
        said: reviewer to decision.
        text: the text to take instead, of a fix: the latest where there are several.
    """

    word: DecisionWord
    said: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class ReviewVerdicts:
    """The decisions that count for some rows, and those that do not.

    Attributes:
        verdicts: id of the row to verdict.
        decisions: id of the row to reviewer to the decision that counts.
        stale: decisions about another text than the row has now.
        unknown: decisions about rows that the input does not have, or that came in rejected.
        torn: lines of the file that broke off.
    """

    verdicts: Mapping[str, RowVerdict]
    decisions: Mapping[str, Mapping[str, Decision]]
    stale: int = 0
    unknown: int = 0
    torn: int = 0

    @property
    def uncounted(self) -> dict[str, int]:
        """What does not count and why, without zeros."""
        told = {"stale": self.stale, "unknown": self.unknown, "torn": self.torn}
        return {reason: count for reason, count in told.items() if count}


def combine_decisions(
    frame: pl.DataFrame, decisions: Decisions, reviewers: Iterable[str] | None = None
) -> ReviewVerdicts:
    """Return the verdicts on the rows of a candidate frame that are not rejected.

    Args:
        frame: with ``candidates.SCHEMA``.
        decisions: of any reviewers.
        reviewers: those who count; all when left out.
    """
    texts = dict(frame.filter(pl.col("status") == "kept").select("id", "negative").iter_rows())
    counting: dict[str, dict[str, Decision]] = {}
    stale = unknown = 0
    for id_, said in decisions.by_row(reviewers).items():
        if id_ not in texts:
            unknown += len(said)
            continue
        fresh = {name: each for name, each in said.items() if each.candidate == texts[id_]}
        stale += len(said) - len(fresh)
        if fresh:
            counting[id_] = fresh
    return ReviewVerdicts(
        {id_: _verdict(said) for id_, said in counting.items()}, counting, stale, unknown, decisions.torn
    )


def _verdict(said: Mapping[str, Decision]) -> RowVerdict:
    words = {name: each.decision for name, each in sorted(said.items())}
    word = next(word for word in _STRONGEST_FIRST if word in words.values())
    fixes = sorted((each.at, name, each.text) for name, each in said.items() if each.decision == "fix")
    return RowVerdict(word, words, fixes[-1][2] if word == "fix" else "")


def was_bad(verdict: RowVerdict) -> bool:
    """Say whether a row was no good as it stood: rejected, or in need of a fix."""
    return verdict.word in {"reject", "fix"}
