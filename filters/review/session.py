"""Review session of one reviewer: rows in order, decisions and undo, and the progress."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import publishable_image_name
from pairwright.filters.review.decisions import DECISION_WORDS, UNDO, Decision, DecisionLog
from pairwright.filters.review.images import BrowserImage, load_browser_image
from pairwright.filters.review.rows import ReviewRows, order_for_review
from pairwright.filters.review.text_diff import mark_differences
from pairwright.generators.edits.written.sentence_extraction import comparison_key

MAX_FIX_CHARACTERS = 10_000  # characters


class ReviewSession:
    """Review of some rows by one reviewer; not thread-safe except for `image` and `has_image`.

    Args:
        rows: the rows.
        log: file of the decisions.
        reviewer: name of the person.
        sample: maximum number of rows; 0: all.
        seed: of their order.

    Raises:
        UsageError: there are no rows to review, or the reviewer has no name.
    """

    def __init__(self, rows: ReviewRows, log: DecisionLog, reviewer: str, *, sample: int = 0, seed: int = 0) -> None:
        if not reviewer.strip():
            raise UsageError("The reviewer has no name. Set --reviewer NAME.")
        entering = rows.entering()
        if not len(entering):
            raise UsageError("No rows to review: all rows of the input are rejected.")
        order = order_for_review(entering["id"].to_list(), entering["type"].to_list(), seed)
        self.reviewer, self.of = reviewer, len(entering)
        self._all, self._log = rows, log
        self._rows: list[dict[str, Any]] = entering[order[: sample or len(order)]].to_dicts()
        self._at = {row["id"]: at for at, row in enumerate(self._rows)}

    def __len__(self) -> int:
        """Return the number of rows to review."""
        return len(self._rows)

    def progress(self) -> dict[str, Any]:
        """Return the progress of the review.

        Returns:
            ``reviewer``, ``positives`` (whether candidates are to be true), ``rows`` (to review), ``of`` (all rows that
            could be reviewed), ``decided`` (number of rows), ``counts`` (decision to number), ``marks`` (one letter per
            row: the first of its decision, ``-`` for none), ``next`` (first undecided row; the number of rows if there
            is none).
        """
        own = self._own_decisions()
        words = [own[row["id"]].decision if row["id"] in own else "" for row in self._rows]
        counts = Counter(filter(None, words))
        return {
            "reviewer": self.reviewer,
            "positives": self._all.positives,
            "rows": len(self),
            "of": self.of,
            "decided": counts.total(),
            "counts": {word: counts[word] for word in DECISION_WORDS},
            "marks": "".join(word[:1] or "-" for word in words),
            "next": words.index("") if "" in words else len(words),
        }

    def row(self, at: int) -> dict[str, Any]:
        """Return row ``at`` as the page shows it: texts as spans (text, differs), and its decision.

        Raises:
            IndexError: no such row.
        """
        row = self._row(at)
        caption, candidate = mark_differences(row["caption"], row["negative"], row["edit"])
        decision = self._own_decisions().get(row["id"])
        return {
            "at": at,
            "type": row["type"],
            "caption": caption,
            "candidate": candidate,
            "positive": mark_differences(row["caption"], row["positive"])[1] if row["positive"] else [],
            "others": self._all.others.get(row["id"], ()),
            "named": publishable_image_name(row["image"]),
            "decision": decision.decision if decision else "",
            "text": decision.text if decision else "",
        }

    def has_image(self, at: int) -> bool:
        """Return whether row ``at`` has an image here; thread-safe; the first call may take long.

        Raises:
            IndexError: no such row.
        """
        row = self._row(at)
        return bool(self._all.images.locate(row["key"], row["image"]))

    def image(self, at: int) -> BrowserImage:
        """Return the image of row ``at``; thread-safe.

        Raises:
            IndexError: no such row.
            InputError: it has no image here, or its file is no image.
        """
        row = self._row(at)
        return load_browser_image(self._all.images.locate(row["key"], row["image"]))

    def decide(self, at: int, word: str, text: str = "") -> None:
        """Record a decision about row ``at``; it is on the disk when this returns.

        Args:
            at: the row.
            word: of `DECISION_WORDS`.
            text: the replacement, for a fix.

        Raises:
            IndexError: no such row.
            UsageError: the decision is invalid.
            StorageError: it could not be written.
        """
        row = self._row(at)
        if word not in DECISION_WORDS:
            raise UsageError(f"Unknown decision {word!r}. Choose from: {', '.join(DECISION_WORDS)}.")
        text = " ".join(text.split()) if word == "fix" else ""
        if word == "fix":
            _refuse_impossible_fix(text, row, () if self._all.positives else self._all.others.get(row["id"], ()))
        self._log.append(Decision(row["id"], self.reviewer, word, row["negative"], text))

    def undo(self) -> int | None:
        """Withdraw the last decision and return its row; None without decisions."""
        own = self._own_decisions()
        last = next((each for each in reversed(self._stack()) if own.get(each.id) is each), None)
        if last is None:
            return None
        self._log.append(Decision(last.id, self.reviewer, UNDO, last.candidate))
        return self._at[last.id]

    def _row(self, at: int) -> dict[str, Any]:
        if not 0 <= at < len(self._rows):
            raise IndexError(at)
        return self._rows[at]

    def _stack(self) -> Sequence[Decision]:
        return self._log.decisions.stack(self.reviewer)

    def _own_decisions(self) -> dict[str, Decision]:
        known = self._log.decisions.of(self.reviewer)
        return {id_: each for id_, each in known.items() if id_ in self._at and each.candidate == self._candidate(id_)}

    def _candidate(self, id_: str) -> str:
        return str(self._rows[self._at[id_]]["negative"])


def _refuse_impossible_fix(text: str, row: dict[str, Any], others: Sequence[str]) -> None:
    """Raise an error for a text that can never be a negative; all other checks run when decisions are applied."""
    same = comparison_key(text)
    if not same:
        raise UsageError("The text is empty.")
    if len(text) > MAX_FIX_CHARACTERS:
        raise UsageError(f"The text is longer than {MAX_FIX_CHARACTERS:,} characters.")
    if text == row["negative"]:
        raise UsageError("The text equals the candidate: keep it instead.")
    if same in {comparison_key(row["caption"]), comparison_key(row["positive"])}:
        raise UsageError("The text equals the caption.")
    if same in set(map(comparison_key, others)):
        raise UsageError("The text is another caption of the image, so it is true.")
