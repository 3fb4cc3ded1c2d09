"""Stages ``balance`` (hard negatives), ``balance-positives`` and ``balance-conversations``: quotas by type over a build.

For edited texts they also limit the share of each inserted word. Their facts count, by type, what was requested and
made, the inserted words and the positions of the edits.

Without limits a part job counts, and links the part to its next folder. With limits there are four groups of jobs: the
rows of each part in brief (key, type, words), one job that decides which rows of all parts to reject, the cut of each
part, and the report. The deciding job holds the brief rows of one type of text, about 100 bytes each.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import polars as pl

from pairwright.datasets.atomic_files import link_or_copy, replace_atomically, write_bytes
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
from pairwright.flows.state.layout import balance_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult, contents_of
from pairwright.generators.balance import (
    ROW_SCHEMA,
    BalanceLimits,
    BalanceReport,
    BalanceResult,
    TypeBalance,
    balanced_kind,
    find_excess_in_frame,
)

if TYPE_CHECKING:
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

_NO_REJECTS = pl.DataFrame(schema={"id": pl.String, "reason": pl.String})


def balance_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of a balancing stage; an increment has what the quotas leave.

    A limit on words applies to the new texts alone: within both sets, it holds for all of them.
    """
    generation = next(each for each in generating_stages(run.config) if balance_stage(each.name) == run.name)
    section = quota_section(run.config, generation.name)
    assert section is not None
    limits = quota_limits(section)
    if run.base:
        limits = replace(limits, quota=remaining_quota(limits.quota, run.base.manifest, run.name, "given"))
    limited = bool(limits.quota) or limits.share < 1
    if limited:
        listed = yield run.job_per_part(list_rows, generation)
        found = yield [run.job(find_excess, run.parts, generation, limits, part="excess", after=listed)]
        rejects = contents_of(found)
        cut = yield [
            run.job(
                *(cut_part, part, generation, limited),
                part=f"cut-{part}",
                state=rejects[balance_path(run.root, run.name, "rejects", part).relative_to(run.root).as_posix()],
            )
            for part in run.parts
        ]
    else:
        found, cut = (), (yield run.job_per_part(cut_part, generation, limited))
    return [run.job(report_balance, run.parts, generation, limited, after=(*found, *cut))]


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


def list_rows(root: Path, part: str, generation: GeneratingStage) -> JobResult:
    """Write in brief the rows of a part that limits apply to (`balance.is_balanced`): `ROW_SCHEMA` and ``part``."""
    kind = balanced_kind(generation.generator)
    limited = pl.col("kind") == kind if kind else pl.col("turns").list.len() > 0
    rows = ANNOTATIONS.read_frame(generation.kept_path(root, part)).filter(limited)
    words = pl.Series("words", new_words(rows), pl.List(pl.String))
    brief = rows.select("key", "id", type_name().alias("type"), words, pl.lit(part).alias("part"))
    path = balance_path(root, balance_stage(generation.name), "rows", part)
    with replace_atomically(path) as temporary:
        brief.write_parquet(temporary)
    return JobResult([path], Counts(_unit(generation)))


def find_excess(root: Path, parts: list[str], generation: GeneratingStage, limits: BalanceLimits) -> JobResult:
    """Decide which rows to reject, type by type; write their ids and reasons for each part, and the counts by type."""
    name = balance_stage(generation.name)
    rows = pl.scan_parquet([balance_path(root, name, "rows", part) for part in parts])
    types = {kind: TypeBalance(quota, 0, 0, None, 0) for kind, quota in limits.quota.items()}
    found = [_NO_REJECTS.with_columns(part=pl.lit(""))]
    for kind in rows.select(pl.col("type").unique().sort()).collect()["type"].to_list():
        lines = rows.filter(pl.col("type") == kind).collect()
        brief = lines.select(pl.col(name).cast(dtype) for name, dtype in ROW_SCHEMA.items())
        excess, counts = find_excess_in_frame(brief, limits)
        types[kind] = counts[kind]
        found.append(excess.join(lines.select("id", "part"), on="id", how="left", maintain_order="left"))
    by_part = pl.concat(found).partition_by("part", as_dict=True, include_key=False)
    paths = [balance_path(root, name, "limits", "all"), *(balance_path(root, name, "rejects", part) for part in parts)]
    write_bytes(paths[0], orjson.dumps(BalanceResult({}, types).as_json(), option=orjson.OPT_INDENT_2))
    for part, path in zip(parts, paths[1:], strict=True):
        with replace_atomically(path) as temporary:
            by_part.get((part,), _NO_REJECTS).write_parquet(temporary)
    return JobResult(paths, Counts(_unit(generation)))


def cut_part(root: Path, part: str, generation: GeneratingStage, limited: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Reject the rows of a part that `find_excess` named, and count; a part that keeps all of its rows is linked."""
    name, drafts = balance_stage(generation.name), generation.kept_path(root, part)
    outputs = [
        replace(generation, to_balance=False).kept_path(root, part),
        rejected_path(root, name, part),
        balance_path(root, name, "counts", part),
    ]
    excess = pl.read_parquet(balance_path(root, name, "rejects", part)) if limited else _NO_REJECTS
    rows = ANNOTATIONS.read_frame(drafts)
    if excess.height:
        rows = reject_annotations(rows, excess)
        kept, rejected = split_by_status(rows)
        ANNOTATIONS.write_frame(kept, outputs[0])
    else:
        rejected = rows.clear()
        link_or_copy(drafts, outputs[0])
    ANNOTATIONS.write_frame(rejected, outputs[1])
    report = BalanceReport(balanced_kind(generation.generator))
    add_to_report(report, rows)
    counts = {
        "report": report.as_counts(),
        "attempts": rows.height,
        "reasons": count_by_name(rejected, pl.col("reason")),
        "away": count_by_name(rejected, pl.lit(f"{generation.name}: ") + tally_name()),
    }
    write_bytes(outputs[2], orjson.dumps(counts, option=orjson.OPT_SORT_KEYS))
    return JobResult(outputs, Counts(_unit(generation)))


def report_balance(root: Path, parts: list[str], generation: GeneratingStage, limited: bool) -> JobResult:  # noqa: FBT001
    """Merge the counts of all parts; the unit is a text that was made."""
    name = balance_stage(generation.name)
    report, reasons, away = BalanceReport(balanced_kind(generation.generator)), Counter[str](), Counter[str]()
    attempts = 0
    for part in parts:
        counts = orjson.loads(balance_path(root, name, "counts", part).read_bytes())
        report.add_counts(counts["report"])
        reasons.update(counts["reasons"])
        away.update(counts["away"])
        attempts += counts["attempts"]
    limits = balance_path(root, name, "limits", "all")
    facts = {
        "account": report.as_json(),
        "limits": orjson.loads(limits.read_bytes()) if limited else _unlimited(report),
        "balanced_away": dict(sorted(away.items())),
    }
    kept = attempts - reasons.total()
    return JobResult([], Counts(_unit(generation), attempts, kept, dict(sorted(reasons.items()))), facts)


def _unlimited(report: BalanceReport) -> Mapping[str, Any]:
    """Return the counts of the types of a set without limits; all of its rows are kept."""
    used = {kind: max(report.words[kind].values(), default=0) for kind in report.asked}
    types = {kind: TypeBalance(None, count, count, None, used[kind]) for kind, count in report.asked.items()}
    return BalanceResult({}, types).as_json()


def _unit(generation: GeneratingStage) -> str:
    return generation.name.removesuffix("s")
