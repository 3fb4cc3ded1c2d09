"""Stages ``balance`` (hard negatives), ``balance-positives`` and ``balance-conversations``: quotas by type, over a build.

Of edited texts they cap each new word as well.

They tell, too, what was asked for and made by type, which words were put in, and where: the facts of the stages.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.flows.config.sections import ConversationsSection, NegativesSection, PositivesSection
from pairwright.flows.stages.annotation_frames import (
    add_to_account,
    count_by_name,
    new_words,
    reject_annotations,
    split_by_status,
    tally_name,
    type_name,
)
from pairwright.flows.stages.generate import GeneratingStage
from pairwright.flows.state.layout import rejected_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.generators.balance import (
    ROW_SCHEMA,
    BalanceLimits,
    BalanceReport,
    BalanceResult,
    balanced_kind,
    find_excess_in_frame,
)


def balance_stage(of: str) -> str:
    """Return the name of the stage that balances what a stage made."""
    return "balance" if of == "negatives" else f"balance-{of}"


def quota_limits(section: NegativesSection | PositivesSection | ConversationsSection) -> BalanceLimits:
    """Return what a set may hold, as the config says."""
    if isinstance(section, ConversationsSection):
        return BalanceLimits({str(kind): most for kind, most in section.counts.items()})
    quota = section.quota
    each = dict.fromkeys(section.types, quota) if isinstance(quota, int) else quota
    return BalanceLimits({str(kind): most for kind, most in each.items()}, section.max_word_share)


def balance_annotations(root: Path, parts: list[str], this: GeneratingStage, limits: BalanceLimits) -> JobResult:
    """Set aside what is over quota, or says what too many others say; the unit is a text that was made.

    Args:
        root: the build directory.
        parts: of the pairs.
        this: the generation whose rows stand in ``drafts/``.
        limits: of the set.
    """
    drafts = [this.place(root, part) for part in parts]
    gone, types = find_excess_in_frame(_lines_of(drafts, this.generator), limits)
    after = replace(this, to_balance=False)
    account, reasons, outputs, away = BalanceReport(balanced_kind(this.generator)), Counter[str](), [], Counter[str]()
    attempts = 0
    for part, path in zip(parts, drafts, strict=True):
        rows = reject_annotations(ANNOTATIONS.read_frame(path), gone)
        kept, rejected = split_by_status(rows)
        outputs += [after.place(root, part), rejected_path(root, balance_stage(this.stage), part)]
        ANNOTATIONS.write_frame(kept, outputs[-2])
        ANNOTATIONS.write_frame(rejected, outputs[-1])
        add_to_account(account, rows)
        attempts += rows.height
        reasons.update(count_by_name(rejected, pl.col("reason")))
        away.update(count_by_name(rejected, pl.lit(f"{this.stage}: ") + tally_name()))
    told = BalanceResult({}, types).as_json()
    facts = {"account": account.as_json(), "limits": told, "balanced_away": dict(sorted(away.items()))}
    counts = Counts(this.stage.removesuffix("s"), attempts, attempts - reasons.total(), dict(sorted(reasons.items())))
    return JobResult(outputs, counts, facts)


def _lines_of(files: Sequence[Path], generator: str) -> pl.DataFrame:
    """Return what `find_excess_in_frame` has to know of all rows of ``files`` that limits are for (`balance.is_limited`)."""
    kind = balanced_kind(generator)
    limited = pl.col("kind") == kind if kind else pl.col("turns").list.len() > 0
    lines = [pl.DataFrame(schema=ROW_SCHEMA)]
    for path in files:
        rows = ANNOTATIONS.read_frame(path).filter(limited)
        words = pl.Series("words", new_words(rows), pl.List(pl.String))
        lines.append(
            rows.select("key", "id", type_name().alias("type"), words).cast(
                {name: ROW_SCHEMA[name] for name in ("type", "words")}
            )
        )
    return pl.concat(lines)
