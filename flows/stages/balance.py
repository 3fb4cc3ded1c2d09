"""Stage ``balance``: quotas by type and a cap on each replacement word, over all hard negatives of a build.

It tells, too, what was asked for and made by type, which words were put in, and where: the facts of the stage.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from pairwright.datasets.tables import ANNOTATIONS
from pairwright.flows.layout import rejected_path
from pairwright.flows.receipts import Counts, Outcome
from pairwright.flows.sections import NegativesSection
from pairwright.flows.stages.generate import Generation
from pairwright.generators.balance import Account, Limits, balanced, line_of, surplus
from pairwright.generators.tally import tallied_as


def limits_of(section: NegativesSection) -> Limits:
    """Return what a set may hold, as the config says."""
    return Limits({str(kind): most for kind, most in section.quota.items()}, section.max_word_share)


def balance_negatives(root: Path, parts: list[str], this: Generation, limits: Limits) -> Outcome:
    """Set aside what is over quota, or says what too many others say; the unit is a negative that was made.

    Args:
        root: the build directory.
        parts: of the pairs.
        this: the generation whose rows stand in ``drafts/``.
        limits: of the set.
    """
    drafts = [this.place(root, part) for part in parts]
    lines = (line_of(row) for path in drafts for row in ANNOTATIONS.read(path) if row.kind == "hard_negative")
    gone = surplus(lines, limits)
    after = replace(this, to_balance=False)
    account, reasons, outputs, away = Account(), Counter[str](), [], Counter[str]()
    made = 0
    for part, path in zip(parts, drafts, strict=True):
        rows = list(balanced(ANNOTATIONS.read(path), gone))
        rejected = [row for row in rows if row.status == "rejected"]
        outputs += [after.place(root, part), rejected_path(root, "balance", part)]
        ANNOTATIONS.write([row for row in rows if row.status == "kept"], outputs[-2])
        ANNOTATIONS.write(rejected, outputs[-1])
        account.add(rows)
        made += len(rows)
        reasons.update(row.reason for row in rejected)
        away.update(f"{this.stage}: {tallied_as(row)}" for row in rejected)
    facts = {"account": account.as_json(), "balanced_away": dict(sorted(away.items()))}
    counts = Counts("negative", made, made - reasons.total(), dict(sorted(reasons.items())))
    return Outcome(outputs, counts, facts)
