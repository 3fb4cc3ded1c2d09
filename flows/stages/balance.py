"""Stages ``balance`` (hard negatives), ``balance-positives`` and ``balance-conversations``: quotas by type over a build.

For edited texts they also limit the share of each inserted word. Their facts count, by type, what was requested and
made, the inserted words and the positions of the edits.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.flows.config.sections import ConversationsSection, NegativesSection, PositivesSection
from pairwright.flows.stages.annotation_frames import (
    add_to_report,
    count_by_name,
    new_words,
    reject_annotations,
    split_by_status,
    tally_name,
    type_name,
)
from pairwright.flows.stages.generating import GeneratingStage, generating_stages, quota_section, remaining_quota
from pairwright.flows.state.layout import rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.generators.balance import (
    ROW_SCHEMA,
    BalanceLimits,
    BalanceReport,
    BalanceResult,
    balanced_kind,
    find_excess_in_frame,
)

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun


def balance_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of a balancing stage; an increment has what the quotas leave.

    A limit on words applies to the new texts alone: within both sets, it holds for all of them.
    """
    generation = next(each for each in generating_stages(run.config) if balance_stage(each.name) == run.name)
    section = quota_section(run.config, generation.name)
    assert section is not None
    limits = quota_limits(section)
    if run.base:
        limits = replace(limits, quota=remaining_quota(limits.quota, run.base.manifest, run.name, "given"))
    return [run.job(balance_annotations, run.parts, generation, limits)]


def balance_stage(of: str) -> str:
    """Return the name of the stage that balances the rows of stage ``of``."""
    return "balance" if of == "negatives" else f"balance-{of}"


def quota_limits(section: NegativesSection | PositivesSection | ConversationsSection) -> BalanceLimits:
    """Return the limits of a set by its section of the config."""
    if isinstance(section, ConversationsSection):
        return BalanceLimits({str(kind): most for kind, most in section.counts.items()})
    quota = section.quota
    each = dict.fromkeys(section.types, quota) if isinstance(quota, int) else quota
    return BalanceLimits({str(kind): most for kind, most in each.items()}, section.max_word_share)


def balance_annotations(root: Path, parts: list[str], generation: GeneratingStage, limits: BalanceLimits) -> JobResult:
    """Reject the texts beyond the limits; the unit is a text that was made.

    Args:
        root: the build directory.
        parts: of the pairs.
        generation: whose rows in ``drafts/`` are balanced.
        limits: of the set.
    """
    drafts = [generation.kept_path(root, part) for part in parts]
    excess, types = find_excess_in_frame(_lines_of(drafts, generation.generator), limits)
    balanced = replace(generation, to_balance=False)
    report, reasons, outputs, away = (
        BalanceReport(balanced_kind(generation.generator)),
        Counter[str](),
        [],
        Counter[str](),
    )
    attempts = 0
    for part, path in zip(parts, drafts, strict=True):
        rows = reject_annotations(ANNOTATIONS.read_frame(path), excess)
        kept, rejected = split_by_status(rows)
        outputs += [balanced.kept_path(root, part), rejected_path(root, balance_stage(generation.name), part)]
        ANNOTATIONS.write_frame(kept, outputs[-2])
        ANNOTATIONS.write_frame(rejected, outputs[-1])
        add_to_report(report, rows)
        attempts += rows.height
        reasons.update(count_by_name(rejected, pl.col("reason")))
        away.update(count_by_name(rejected, pl.lit(f"{generation.name}: ") + tally_name()))
    facts = {
        "account": report.as_json(),
        "limits": BalanceResult({}, types).as_json(),
        "balanced_away": dict(sorted(away.items())),
    }
    counts = Counts(
        generation.name.removesuffix("s"), attempts, attempts - reasons.total(), dict(sorted(reasons.items()))
    )
    return JobResult(outputs, counts, facts)


def _lines_of(files: Sequence[Path], generator: str) -> pl.DataFrame:
    """Return the rows of ``files`` that limits apply to (`balance.is_balanced`), as `find_excess_in_frame` takes them."""
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
