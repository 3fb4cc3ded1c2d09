"""What is told of rows that a model was asked about and nothing was kept of: a line on each of two sorts.

*Failed* are rows that got no answer, or none that can be used (`failures`, `troubles`, and what makers of other things
than edits find): asking anew may mend them. *Answered, and nothing passed* are rows whose answers came as asked for, and
whose texts the checks on edits rejected (`edit_checks.reasons`). They can be asked anew as well; that pays for another
draw of the same model, and nothing went wrong with the first.
"""

from collections import Counter
from dataclasses import dataclass, field

from pairwright.generators.edit_checks.reasons import REASONS as CHECKS
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES as FAILURES
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES as TROUBLES

_MAX_SHOWN_CHARS = 200  # letters of a row's detail in the line that is told of all


@dataclass
class FailureSummary:
    """Counts of rows by reason.

    Attributes:
        failed: all others.
        not_passed: rows that were answered, and of which nothing passed the checks on edits.
        unanswered: those of ``failed`` of which a request got no answer.
        details: of the last row of each reason.
    """

    failed: Counter[str] = field(default_factory=Counter)
    not_passed: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    details: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, detail: str, *, answered: bool, unanswered: int) -> None:
        """Count a row.

        Args:
            reason: a word.
            detail: more, for a reader.
            answered: whether any request of it was answered.
            unanswered: how many were not.
        """
        checked = answered and not unanswered and reason in CHECKS
        (self.not_passed if checked else self.failed)[reason] += 1
        self.unanswered += bool(unanswered)
        self.details[reason] = detail

    def lines(self, file: str, *, of: str = "", plain_asks: bool = False) -> list[str]:
        """Return a line for each sort of which there are rows: how many, why, and what asks for them anew.

        Where most rows of the first sort failed for one reason, its line says what that means and how to mend it.

        Args:
            file: that names the rows.
            of: behind the numbers: " of 1,000" rows.
            plain_asks: whether the same command, without an option, asks for what got no answer.
        """
        told = []
        if self.failed:
            line = f"{_format_counts(self.failed, of)} failed: {_listed(self.failed)}. {file} says more; "
            told.append(f"{line}--retry-failed asks for them anew. {self._mend()}".strip())
        if self.not_passed:
            line = f"{_format_counts(self.not_passed, of)} got answers of which nothing passed the checks: "
            line += f"{_listed(self.not_passed)}. {file} names them{' as well' if self.failed else ''}; "
            line += (
                f"--retry-failed asks for {'these, too' if self.failed else 'them anew'}: another draw, paid for again."
            )
            if self.unanswered and plain_asks:
                line += " Without it the same command asks only for what got no answer."
            told.append(line)
        return told

    def _mend(self) -> str:
        """Return what the reason of most failed rows means and how to mend it; nothing where there is none."""
        ((reason, count),) = self.failed.most_common(1)
        word = FAILURES.get(reason) or TROUBLES.get(reason)
        if word is None or 2 * count <= self.failed.total():
            return ""
        said = self.details[reason]
        said = f" ({said if len(said) <= _MAX_SHOWN_CHARS else said[:_MAX_SHOWN_CHARS] + '…'})" if said else ""
        return f"{reason}: {word.means}{said}. {word.fix}"


def _format_counts(counts: Counter[str], of: str) -> str:
    return f"{counts.total():,}{of} rows"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
