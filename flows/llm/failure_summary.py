"""Summary of failed rows: counts by reason, and the messages about them.

*Failed* rows got no answer, or no valid one (`request_errors`, `output.errors`, and reasons of generators other than
edits): a retry may help. *Rejected* rows got valid answers, but the checks on edits rejected all of their texts
(`edits.written.reasons`). They can be retried as well, which is billed for another sample of the same model.
"""

from collections import Counter
from dataclasses import dataclass, field

from pairwright.generators.edits.written.reasons import REASONS as CHECKS
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES

_MAX_SHOWN_CHARS = 200  # characters of a row's detail in the message about all rows


@dataclass
class FailureSummary:
    """Counts of rows by reason.

    Attributes:
        failed: all rows but the next ones.
        not_passed: rows whose answers were all rejected by the checks on edits.
        unanswered: rows of ``failed`` with a request without an answer.
        details: detail of the last row of each reason.
    """

    failed: Counter[str] = field(default_factory=Counter)
    not_passed: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    details: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, detail: str, *, answered: bool, unanswered: int) -> None:
        """Count a row.

        Args:
            reason: reason code.
            detail: detail for the user.
            answered: whether any of its requests was answered.
            unanswered: number of requests without an answer.
        """
        checked = answered and not unanswered and reason in CHECKS
        (self.not_passed if checked else self.failed)[reason] += 1
        self.unanswered += bool(unanswered)
        self.details[reason] = detail

    def lines(self, file: str, *, of: str = "", plain_asks: bool = False) -> list[str]:
        """Return a line for the failed and one for the rejected rows: how many, why, and how to retry them.

        If most failed rows have one reason, their line says what it means and how to fix it.

        Args:
            file: the file that names the rows.
            of: inserted after the numbers: " of 1,000" rows.
            plain_asks: whether the same command without an option requests the missing answers.
        """
        lines = []
        if self.failed:
            line = f"{self.failed.total():,}{of} rows failed: {_listed(self.failed)}. See {file}; "
            again = plain_asks and self.unanswered == self.failed.total()
            retry = "the same command requests them again" if again else "--retry-failed retries them (billed again)"
            lines.append(f"{line}{retry}. {self._advice()}".strip())
        if self.not_passed:
            line = f"{self.not_passed.total():,}{of} rows: all answers were rejected by validation: "
            line += (
                f"{_listed(self.not_passed)}. See {file}; --retry-failed retries them{' too' if self.failed else ''} "
            )
            line += "(billed again)."
            if self.unanswered and plain_asks:
                line += " Without it the same command requests only the missing answers."
            lines.append(line)
        return lines

    def _advice(self) -> str:
        """Return what the reason of most failed rows means and how to fix it; empty if there is no such reason."""
        ((reason, count),) = self.failed.most_common(1)
        code = REQUEST_ERROR_CODES.get(reason) or OUTPUT_ERROR_CODES.get(reason)
        if code is None or 2 * count <= self.failed.total():
            return ""
        detail = self.details[reason]
        detail = (
            f" ({detail if len(detail) <= _MAX_SHOWN_CHARS else detail[:_MAX_SHOWN_CHARS] + '…'})" if detail else ""
        )
        return f"{reason}: {code.means}{detail}. {code.fix}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
