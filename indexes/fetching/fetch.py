"""Download of the images of pairs with img2dataset; each pair is fetched or rejected.

URLs are cleaned and checked and hosts resolved before img2dataset sees them (`url_safety`), its processes connect to
public addresses only and are limited in time (`http_opener`, `img2dataset_runner`), its output is repaired and recorded
(`download_folder`), and the outcomes are joined to the pairs (`pair_outcomes`).

A URL is requested once, however many pairs have it, plus up to `retries` times after transient failures. A second call
with the same folder requests only URLs without an outcome.

Limits: pairs, URLs and outcomes are held in memory (about two kilobytes per pair). Re-encoded images lose their EXIF data.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadBatch
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.rejects import Reject, RejectError, rank_reasons
from pairwright.indexes.fetching.download_folder import DownloadFolder, open_download_folder
from pairwright.indexes.fetching.img2dataset_runner import check_img2dataset, run_img2dataset
from pairwright.indexes.fetching.options import FetchOptions, make_img2dataset_arguments, make_request_settings
from pairwright.indexes.fetching.pair_outcomes import RequestedImages, collect_urls, join_outcomes
from pairwright.indexes.fetching.url_safety import check_hosts, find_host_problem, split_host_port
from pairwright.indexes.retrieval.exclusion import Exclusion, make_exclusion_rejects

MAX_URLS_PER_PASS = 1_000_000  # img2dataset holds the list of a pass in memory

FetchProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FetchReport:
    """Counts of a fetch; every pair counts once.

    Attributes:
        pairs: number of candidates: pairs, and rows that the reader rejected.
        fetched: number of pairs with a local copy.
        rejected: number of rejected pairs by reason.
        broken_boxes: number of rows that the reader gave no boxes, since one is bad, by reason.
        broken_fields: number of unusable optional fields of such rows, by reason.
        urls: number of distinct URLs.
        asked: number of requested URLs in this call.
        reused: number of URLs fetched by an earlier call.
        bytes: total size of the copies.
        passes: number of runs of img2dataset in this call.
        seconds: duration of this call.
        out: folder with ``fetched.parquet`` and ``rejected.parquet``.
    """

    pairs: int
    fetched: int
    rejected: dict[str, int]
    broken_boxes: dict[str, int]
    broken_fields: dict[str, int]
    urls: int
    asked: int
    reused: int
    bytes: int
    passes: int
    seconds: float
    out: Path

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dict."""
        return {**asdict(self), "out": str(self.out)}


def fetch_images(
    batches: Iterable[ReadBatch],
    out: Path,
    options: FetchOptions,
    watch: FetchProgress = lambda _what, _done, _of: None,
    exclusion: Exclusion | None = None,
) -> FetchReport:
    """Fetch the images of pairs and write ``fetched.parquet`` (`PAIRS`) and ``rejected.parquet`` (`REJECTS`).

    Args:
        batches: pairs, and rejects of the reader, which are counted and written too.
        out: folder of the downloads.
        options: options of the fetch.
        watch: called with the current step, the progress, and the total.
        exclusion: evaluation data to exclude, compared after the download, when image contents are known.

    Raises:
        MissingResourceError: if img2dataset is missing or too old.
        UsageError: if the folder holds images with other settings, or boxes would no longer match the images.
        StorageError: if the folder holds other files or is in use, or img2dataset fails.
    """
    started = time.monotonic()
    check_img2dataset()
    rejects, frames = [], [pl.DataFrame(schema=PAIRS.schema)]
    for batch in batches:
        rejects += batch.rejects
        frames.append(PAIRS.frame(batch.pairs))
    requested = collect_urls(pl.concat(frames))
    _check_boxes(requested.pairs, options)
    with open_download_folder(out, options.settings()) as folder:
        folder.settle()
        before = folder.outcomes()
        refused = _find_refused_urls(requested, before, options, watch)
        new, passes = _run_passes(folder, [url for url in requested.distinct if url not in refused], options, watch)
        outcomes = folder.outcomes()
        fetched, failures = join_outcomes(requested, outcomes, refused)
        rejects += failures
        if exclusion is not None:
            fetched, leaks = _remove_excluded(fetched, exclusion, out)
            rejects += leaks
        PAIRS.write_frame(fetched, out / "fetched.parquet")
        REJECTS.write(rejects, out / "rejected.parquet")
    skipped = SkipCounts()
    skipped.add(rejects)
    reasons = skipped.rows + skipped.captions
    return FetchReport(
        pairs=fetched.height + reasons.total(),
        fetched=fetched.height,
        rejected=dict(rank_reasons(reasons)),
        broken_boxes=dict(skipped.boxes),
        broken_fields=dict(skipped.fields),
        urls=len(requested.distinct),
        asked=new,
        reused=_local_copies(before, requested).height,
        bytes=int(_local_copies(outcomes, requested)["bytes"].sum()),
        passes=passes,
        seconds=round(time.monotonic() - started, 3),
        out=out,
    )


def _remove_excluded(fetched: pl.DataFrame, exclusion: Exclusion, out: Path) -> tuple[pl.DataFrame, list[Reject]]:
    judged = exclusion.judge(fetched.with_columns(image=pl.lit(f"{out}/") + pl.col("image")))
    taken = fetched.filter(judged["by"] == "")
    return taken, make_exclusion_rejects(judged.filter(pl.col("by") != ""), lambda _: fetched)


def _local_copies(outcomes: pl.DataFrame, requested: RequestedImages) -> pl.DataFrame:
    return outcomes.filter((pl.col("state") == "fetched") & pl.col("url").is_in(requested.distinct))


def _check_boxes(pairs: pl.DataFrame, options: FetchOptions) -> None:
    if options.resize_mode in ("center_crop", "border") and pairs["boxes"].list.len().sum():
        raise UsageError(
            f"resize mode {options.resize_mode}: the boxes of the pairs would no longer match their objects. "
            "Use keep_ratio or keep_ratio_largest."
        )


def _find_refused_urls(
    requested: RequestedImages, before: pl.DataFrame, options: FetchOptions, watch: FetchProgress
) -> dict[str, RejectError]:
    """Return the URLs that must not be requested, with reasons; only hosts of due URLs are resolved."""
    refused: dict[str, RejectError] = {}
    for url in requested.distinct:
        if problem := find_host_problem(split_host_port(url)[0], allow_loopback=options.allow_loopback):
            refused[url] = RejectError("blocked_address", problem)
    hosts: dict[str, list[str]] = {}
    for url in _list_due_urls(before, requested.distinct, options.retries):
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
    """Run passes until no URL is due; return the number of requests and of passes."""
    requests = passes = 0
    while due := _list_due_urls(folder.outcomes(), wanted, options.retries)[:MAX_URLS_PER_PASS]:
        one = folder.begin(due)
        progress = _PassProgress("fetching" if not passes else f"fetching, pass {passes + 1}", len(due), watch)
        progress(0)
        run_img2dataset(
            make_img2dataset_arguments(options, one.urls, one.shards, len(due)),
            make_request_settings(options, one.folder / "progress"),
            one.folder / "img2dataset.log",
            progress,
        )
        one.settle(ended=True)
        requests, passes = requests + len(due), passes + 1
    return requests, passes


@dataclass(frozen=True)
class _PassProgress:
    step: str
    total: int
    watch: FetchProgress

    def __call__(self, done: int) -> None:
        self.watch(self.step, min(done, self.total), self.total)


def _list_due_urls(outcomes: pl.DataFrame, wanted: list[str], retries: int) -> list[str]:
    done = (pl.col("state") == "fetched") | ~pl.col("passing") | (pl.col("tries") > retries)
    settled = set(outcomes.filter(done)["url"])
    return [url for url in wanted if url not in settled]
