"""Stages ``balance`` (hard negatives), ``balance-positives`` and ``balance-conversations``: quotas by type over a build.

For edited texts they also limit the share of each inserted word. Their facts count, by type, what was requested and
made, the inserted words and the positions of the edits.

Without limits a part job counts, and links the part to its next folder. With limits there are four groups of jobs: the
rows of each part in brief (key, type, words), one job that decides which rows of all parts to reject (`generators.excess`),
the cut of each part, and the report. The deciding job holds `_BUCKET_ROWS` brief rows of one type of text, about 100 bytes
each, and the different words.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from pairwright.flows.stages.generator_stages import GeneratingStage, generating_stages, quota_section, remaining_quota
from pairwright.flows.state.layout import balance_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult, contents_of
from pairwright.generators.balance import (
    BalanceLimits,
    BalanceReport,
    BalanceResult,
    TypeBalance,
    balanced_kind,
    limit_type,
)
from pairwright.generators.excess import Cut

if TYPE_CHECKING:
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

_CUTS: Final = {"type": pl.String(), "word": pl.String(), "key": pl.String(), "id": pl.String()}
"""Places of `Cut`; those without a word are of the last row that is kept."""
_BUCKET_ROWS: Final = 2_000_000
_ROW_GROUP: Final = 4_096
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
        found = yield [run.job(find_cuts, run.parts, generation, limits, part="excess", after=listed)]
        cuts = contents_of(found)[balance_path(run.root, run.name, "cuts", "all").relative_to(run.root).as_posix()]
        rows = contents_of(listed)
        cut = yield [
            run.job(
                *(cut_part, part, generation, limited),
                part=f"cut-{part}",
                state=f"{cuts} {rows[balance_path(run.root, run.name, 'rows', part).relative_to(run.root).as_posix()]}",
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
    """Write in brief the rows of a part that limits apply to (`balance.is_balanced`): key, id, type and words."""
    kind = balanced_kind(generation.generator)
    limited = pl.col("kind") == kind if kind else pl.col("turns").list.len() > 0
    rows = ANNOTATIONS.read_frame(generation.kept_path(root, part)).filter(limited)
    words = pl.Series("words", new_words(rows), pl.List(pl.String))
    brief = rows.select("key", "id", type_name().alias("type"), words).sort("type", "key", "id")
    path = balance_path(root, balance_stage(generation.name), "rows", part)
    with replace_atomically(path) as temporary:
        brief.write_parquet(temporary, row_group_size=_ROW_GROUP)  # small ones, so that a range of keys reads few
    return JobResult([path], Counts(_unit(generation)))


def find_cuts(root: Path, parts: list[str], generation: GeneratingStage, limits: BalanceLimits) -> JobResult:
    """Decide which rows to reject, type by type; write the cuts (`_CUTS`), and the counts by type."""
    name = balance_stage(generation.name)
    rows = pl.scan_parquet([balance_path(root, name, "rows", part) for part in parts])
    types = {kind: TypeBalance(quota, 0, 0, None, 0) for kind, quota in limits.quota.items()}
    found = [pl.DataFrame(schema=_CUTS)]
    sizes = rows.group_by("type").len().collect(engine="streaming").sort("type")
    for kind, size in sizes.iter_rows():
        cut, types[kind] = limit_type(partial(_buckets, rows, kind, -(-size // _BUCKET_ROWS)), kind, limits)
        found.append(cut.words.select(pl.lit(kind).alias("type"), *list(_CUTS)[1:]))
        if cut.last is not None:
            found.append(pl.DataFrame([(kind, None, *cut.last)], _CUTS, orient="row"))
    paths = [balance_path(root, name, "limits", "all"), balance_path(root, name, "cuts", "all")]
    write_bytes(paths[0], orjson.dumps(BalanceResult({}, types).as_json(), option=orjson.OPT_INDENT_2))
    with replace_atomically(paths[1]) as temporary:
        pl.concat(found).sort("type", "word").write_parquet(temporary)
    return JobResult(paths, Counts(_unit(generation)))


def _buckets(rows: pl.LazyFrame, kind: str, number: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of a type in so many ranges of keys, which are evenly distributed hexadecimal numbers."""
    edges = [f"{16**8 * at // number:08x}" for at in range(number)]
    for low, high in pairwise([*edges, "g"]):
        inside = (pl.col("type") == kind) & (pl.col("key") >= low) & (pl.col("key") < high)
        yield rows.filter(inside).select("key", "id", "words").collect()


def _find_excess(root: Path, name: str, part: str) -> pl.DataFrame:
    """Return ``id`` and ``reason`` of the rows of a part to reject."""
    cuts = pl.read_parquet(balance_path(root, name, "cuts", "all"))
    rows, found = pl.read_parquet(balance_path(root, name, "rows", part)), [_NO_REJECTS]
    for (kind,), own in rows.partition_by("type", as_dict=True).items():
        of_type = cuts.filter(pl.col("type") == kind)
        last = of_type.filter(pl.col("word").is_null()).select("key", "id").rows()
        cut = Cut(of_type.drop("type").drop_nulls("word"), last[0] if last else None)
        found.append(own.select("id", reason=cut.reasons(own)).filter(pl.col("reason") != ""))
    return pl.concat(found)


def cut_part(root: Path, part: str, generation: GeneratingStage, limited: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Reject the rows of a part that the cuts exclude, and count; a part that keeps all of its rows is linked."""
    name, drafts = balance_stage(generation.name), generation.kept_path(root, part)
    outputs = [
        replace(generation, to_balance=False).kept_path(root, part),
        rejected_path(root, name, part),
        balance_path(root, name, "counts", part),
    ]
    excess = _find_excess(root, name, part) if limited else _NO_REJECTS
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
