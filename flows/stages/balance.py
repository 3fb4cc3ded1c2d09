"""Stages ``balance`` (hard negatives), ``balance-positives`` and ``balance-conversations``: quotas by type, over a build.

Of edited texts they cap each new word as well.

They tell, too, what was asked for and made by type, which words were put in, and where: the facts of the stages.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from pairwright.datasets.tables import ANNOTATIONS
from pairwright.flows.layout import rejected_path
from pairwright.flows.receipts import Counts, Outcome
from pairwright.flows.sections import ConversationsSection, NegativesSection, PositivesSection
from pairwright.flows.stages.generate import Generation
from pairwright.generators.balance import Account, Limits, balanced, is_limited, judge, limited_kind, line_of
from pairwright.generators.tally import tallied_as


def balance_stage(of: str) -> str:
    """Return the name of the stage that balances what a stage made."""
    return "balance" if of == "negatives" else f"balance-{of}"


def limits_of(section: NegativesSection | PositivesSection | ConversationsSection) -> Limits:
    """Return what a set may hold, as the config says."""
    if isinstance(section, ConversationsSection):
        return Limits({str(kind): most for kind, most in section.counts.items()})
    quota = section.quota
    each = dict.fromkeys(section.types, quota) if isinstance(quota, int) else quota
    return Limits({str(kind): most for kind, most in each.items()}, section.max_word_share)


def balance_made(root: Path, parts: list[str], this: Generation, limits: Limits) -> Outcome:
    """Set aside what is over quota, or says what too many others say; the unit is a text that was made.

    Args:
        root: the build directory.
        parts: of the pairs.
        this: the generation whose rows stand in ``drafts/``.
        limits: of the set.
    """
    drafts = [this.place(root, part) for part in parts]
    made = (row for path in drafts for row in ANNOTATIONS.read(path))
    verdict = judge((line_of(row) for row in made if is_limited(row, this.generator)), limits)
    after = replace(this, to_balance=False)
    account, reasons, outputs, away = Account(limited_kind(this.generator)), Counter[str](), [], Counter[str]()
    attempts = 0
    for part, path in zip(parts, drafts, strict=True):
        rows = list(balanced(ANNOTATIONS.read(path), verdict.gone))
        rejected = [row for row in rows if row.status == "rejected"]
        outputs += [after.place(root, part), rejected_path(root, balance_stage(this.stage), part)]
        ANNOTATIONS.write([row for row in rows if row.status == "kept"], outputs[-2])
        ANNOTATIONS.write(rejected, outputs[-1])
        account.add(rows)
        attempts += len(rows)
        reasons.update(row.reason for row in rejected)
        away.update(f"{this.stage}: {tallied_as(row)}" for row in rejected)
    facts = {"account": account.as_json(), "limits": verdict.as_json(), "balanced_away": dict(sorted(away.items()))}
    counts = Counts(this.stage.removesuffix("s"), attempts, attempts - reasons.total(), dict(sorted(reasons.items())))
    return Outcome(outputs, counts, facts)
