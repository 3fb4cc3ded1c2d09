"""Getting the images of pairs that hold URLs: img2dataset fetches, and each pair comes back fetched or rejected.

What img2dataset lacks is done around it: URLs are cleaned and judged before it sees them (`fetch_guard.py`), hosts are
resolved once (`fetch_hosts.py`), its processes are guarded and bounded in time (`fetch_opener.py`, `fetch_run.py`), what
it leaves is repaired and remembered (`fetch_folder.py`), and the result is joined to the pairs (`fetch_table.py`).

A URL is asked for once, however many pairs hold it, and once more for each of `retries` while it fails for reasons that
may pass. A second call with the same folder asks only for what has no outcome yet.

Limits: pairs, URLs and outcomes are held in memory (about two kilobytes a pair). Pictures that are decoded and encoded again
lose their EXIF data.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadBatch
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.rejects import Reject, RejectError
from pairwright.indexes.fetching.download_folder import DownloadFolder, open_download_folder
from pairwright.indexes.fetching.img2dataset_runner import check_img2dataset, run_img2dataset
from pairwright.indexes.fetching.options import FetchOptions, make_img2dataset_arguments, make_request_settings
from pairwright.indexes.fetching.pair_outcomes import RequestedImages, collect_urls, join_outcomes
from pairwright.indexes.fetching.url_safety import check_hosts, find_host_problem, split_host_port
from pairwright.indexes.retrieval.exclusion import Exclusion, make_exclusion_rejects

MAX_URLS_PER_PASS = 1_000_000  # URLs; img2dataset holds a pass's list in memory

FetchProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FetchReport:
    """What came of a fetch; every pair counts once.

    Attributes:
        pairs: candidates: pairs, and rows that the reader refused.
        fetched: pairs with a local copy.
        rejected: reason to count.
        urls: different URLs among the pairs.
        asked: downloads of this call.
        reused: URLs whose copies an earlier call had fetched.
        bytes: of the copies.
        passes: runs of img2dataset in this call.
        seconds: that this call took.
        out: the folder; ``fetched.parquet`` and ``rejected.parquet`` are in it.
    """

    pairs: int
    fetched: int
    rejected: dict[str, int]
    urls: int
    asked: int
    reused: int
    bytes: int
    passes: int
    seconds: float
    out: Path

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON has it."""
        return {**asdict(self), "out": str(self.out)}


def fetch_images(
    batches: Iterable[ReadBatch],
    out: Path,
    options: FetchOptions,
    watch: FetchProgress = lambda _what, _done, _of: None,
    exclusion: Exclusion | None = None,
) -> FetchReport:
    """Fetch the images of pairs, and write ``fetched.parquet`` (`PAIRS`) and ``rejected.parquet`` (`REJECTS`).

    Args:
        batches: the pairs, and rows that the reader set aside; the latter are counted and passed on.
        out: folder of the downloads.
        options: how.
        watch: hears what is going on, how much is done, and of how much.
        exclusion: pairs to leave out, judged when their images have come: now their content is known, too.

    Raises:
        MissingResource: when img2dataset is missing or too old.
        UsageError: when the folder holds images of other settings, or boxes would no longer fit the pictures.
        StorageError: when the folder is not ours or in use, or img2dataset fails.
    """
    started = time.monotonic()
    check_img2dataset()
    rejects, frames = [], [pl.DataFrame(schema=PAIRS.schema)]
    for batch in batches:
        rejects += batch.rejects
        frames.append(PAIRS.frame(batch.pairs))
    asked = collect_urls(pl.concat(frames))
    _check_boxes(asked.pairs, options)
    with open_download_folder(out, options.settings()) as folder:
        folder.settle()
        before = folder.outcomes()
        refused = _find_refused_urls(asked, before, options, watch)
        new, passes = _run_passes(folder, [url for url in asked.distinct if url not in refused], options, watch)
        outcomes = folder.outcomes()
        fetched, failures = join_outcomes(asked, outcomes, refused)
        rejects += failures
        if exclusion is not None:
            fetched, leaks = _remove_excluded(fetched, exclusion)
            rejects += leaks
        PAIRS.write_frame(fetched, out / "fetched.parquet")
        REJECTS.write(rejects, out / "rejected.parquet")
    reasons = Counter(one.reason for one in rejects)
    return FetchReport(
        pairs=fetched.height + len(rejects),
        fetched=fetched.height,
        rejected=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        urls=len(asked.distinct),
        asked=new,
        reused=_local_copies(before, asked).height,
        bytes=int(_local_copies(outcomes, asked)["bytes"].sum()),
        passes=passes,
        seconds=round(time.monotonic() - started, 3),
        out=out,
    )


def _remove_excluded(fetched: pl.DataFrame, exclusion: Exclusion) -> tuple[pl.DataFrame, list[Reject]]:
    judged = exclusion.judge(fetched)
    taken = fetched.filter(judged["by"] == "")
    return taken, make_exclusion_rejects(judged.filter(pl.col("by") != ""), lambda _: fetched)


def _local_copies(outcomes: pl.DataFrame, asked: RequestedImages) -> pl.DataFrame:
    return outcomes.filter((pl.col("state") == "fetched") & pl.col("url").is_in(asked.distinct))


def _check_boxes(pairs: pl.DataFrame, options: FetchOptions) -> None:
    if options.resize_mode in ("center_crop", "border") and pairs["boxes"].list.len().sum():
        raise UsageError(
            f"resize mode {options.resize_mode}: boxes of the pairs would no longer lie on their objects. "
            "Use keep_ratio or keep_ratio_largest."
        )


def _find_refused_urls(
    asked: RequestedImages, before: pl.DataFrame, options: FetchOptions, watch: FetchProgress
) -> dict[str, RejectError]:
    """Return the URLs that are not to be asked for, and why; only hosts that would be asked now are resolved."""
    refused: dict[str, RejectError] = {}
    for url in asked.distinct:
        if problem := find_host_problem(split_host_port(url)[0], allow_loopback=options.allow_loopback):
            refused[url] = RejectError("blocked_address", problem)
    hosts: dict[str, list[str]] = {}
    for url in _list_due_urls(before, asked.distinct, options.retries):
        if url not in refused and not _is_proxied(url, options.proxies):
            hosts.setdefault(split_host_port(url)[0], []).append(url)
    if hosts:
        watch("resolving hosts", 0, len(hosts))
        judged = check_hosts(hosts, allow_loopback=options.allow_loopback, seconds=options.timeout)
        refused |= {url: flaw for host, flaw in judged.items() if flaw is not None for url in hosts[host]}
    return refused


def _is_proxied(url: str, proxies: Mapping[str, str]) -> bool:
    host, port = split_host_port(url)
    return urlsplit(url).scheme in proxies and not proxy_bypass(f"{host}:{port}")


def _run_passes(
    folder: DownloadFolder, wanted: list[str], options: FetchOptions, watch: FetchProgress
) -> tuple[int, int]:
    """Run passes until nothing is due; return how many URLs were asked for, and in how many passes."""
    asked = passes = 0
    while due := _list_due_urls(folder.outcomes(), wanted, options.retries)[:MAX_URLS_PER_PASS]:
        one = folder.begin(due)
        tell = _PassProgress("fetching" if not passes else f"fetching, pass {passes + 1}", len(due), watch)
        tell(0)
        run_img2dataset(
            make_img2dataset_arguments(options, one.urls, one.shards, len(due)),
            make_request_settings(options, one.folder / "progress"),
            one.folder / "img2dataset.log",
            tell,
        )
        one.settle(ended=True)
        asked, passes = asked + len(due), passes + 1
    return asked, passes


@dataclass(frozen=True)
class _PassProgress:
    what: str
    of: int
    watch: FetchProgress

    def __call__(self, done: int) -> None:
        self.watch(self.what, min(done, self.of), self.of)


def _list_due_urls(outcomes: pl.DataFrame, wanted: list[str], retries: int) -> list[str]:
    done = (pl.col("state") == "fetched") | ~pl.col("passing") | (pl.col("tries") > retries)
    settled = set(outcomes.filter(done)["url"])
    return [url for url in wanted if url not in settled]
