"""Candidate rows that are none: broken JSON, a null for a negative, an id twice.

Such a row has nothing that could be refined, attacked or judged, nor be written back with a reason. So it ends the reading
with its place and how to mend it, or is counted by reason and left out: one null is not to stop a hundred thousand rows.
"""

from dataclasses import dataclass, field

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE
from pairwright.datasets.readers.pairs import ErrorPolicy
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.rejects import make_reject


class InvalidRow(InputError):  # noqa: N818 - reads as what it is; it is an error by its base
    """A row is none, for a ``reason`` of `datasets.rejects`; those around it may well be."""

    def __init__(self, reason: str, what: str, *, where: str, fix: str) -> None:
        super().__init__(what, where=where, fix=fix)
        self.reason = reason


@dataclass
class InvalidRowPolicy:
    """What becomes of rows that are none, for commands that give the choice.

    Attributes:
        on_error: ``stop`` at the first, or ``skip`` them.
        skipped: those that were.
        first: of these.
    """

    on_error: ErrorPolicy = "stop"
    skipped: SkipCounts = field(default_factory=SkipCounts)
    first: InvalidRow | None = None

    def judge(self, flaw: InvalidRow) -> None:
        """Count a row that is none.

        Raises:
            InputError: under ``stop``, with how to skip.
        """
        if self.on_error == "stop":
            how = f"To set such rows aside: {COMMAND_LINE.option('on_error')} skip."
            raise InputError(flaw.what, where=flaw.where, fix=f"{flaw.fix} {how}") from None
        self.first = self.first or flaw
        self.skipped.add([make_reject(flaw.where, flaw.reason, flaw.what)])

    def refuse_none_left(self, rows: int) -> None:
        """Refuse an input of which no row is left, since all were skipped.

        Raises:
            InputError: telling why, and of the first.
        """
        if self.first and not rows:
            what = f"no row is left of {self.skipped.describe()}; the first: {self.first.what}"
            raise InputError(what, where=self.first.where, fix=self.first.fix)
