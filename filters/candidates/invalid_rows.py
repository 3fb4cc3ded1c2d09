"""Policy for invalid candidate rows: invalid JSON, a null negative, a repeated id.

An invalid row can be neither refined nor written back with a reason. It stops the reading with its place and a fix, or
is skipped and counted by reason, so that one null does not stop a hundred thousand rows.
"""

from dataclasses import dataclass, field

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE
from pairwright.datasets.readers.pairs import ErrorPolicy
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.rejects import make_reject


class InvalidRow(InputError):  # noqa: N818 - an error by its base class
    """An invalid row, with a ``reason`` of `datasets.rejects`; other rows may be valid."""

    def __init__(self, reason: str, what: str, *, where: str, fix: str) -> None:
        super().__init__(what, where=where, fix=fix)
        self.reason = reason


@dataclass
class InvalidRowPolicy:
    """What to do with invalid rows, for commands with this option.

    Attributes:
        on_error: ``stop`` at the first, or ``skip`` them.
        skipped: counts of skipped rows.
        first: the first skipped row.
    """

    on_error: ErrorPolicy = "stop"
    skipped: SkipCounts = field(default_factory=SkipCounts)
    first: InvalidRow | None = None

    def judge(self, flaw: InvalidRow) -> None:
        """Count an invalid row.

        Raises:
            InputError: under ``stop``, with the option to skip it.
        """
        if self.on_error == "stop":
            how = f"To skip such rows: {COMMAND_LINE.option('on_error')} skip."
            raise InputError(flaw.what, where=flaw.where, fix=f"{flaw.fix} {how}") from None
        self.first = self.first or flaw
        self.skipped.add([make_reject(flaw.where, flaw.reason, flaw.what)])

    def refuse_none_left(self, rows: int) -> None:
        """Raise an error if all rows were skipped.

        Raises:
            InputError: with the counts and the first error.
        """
        if self.first and not rows:
            what = f"all rows are invalid: {self.skipped.describe()}; the first: {self.first.what}"
            raise InputError(what, where=self.first.where, fix=self.first.fix)
