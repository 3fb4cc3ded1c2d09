"""Options of a fetch, and the arguments of img2dataset and its processes made from them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

import pairwright
from pairwright.datasets.errors import UsageError
from pairwright.indexes.fetching.http_opener import RequestSettings
from pairwright.indexes.fetching.url_safety import DEFAULT_PORTS, SCHEMES

ResizeMode = Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "no"]
ImageFormat = Literal["jpg", "png", "webp"]

OPT_OUT_DIRECTIVES = ["noai", "noimageai", "noml", "noindex", "noimageindex"]
QUALITY_RANGES = {"jpg": (1, 100, 95), "png": (0, 9, 6), "webp": (1, 100, 90)}  # minimum, maximum, default


@dataclass(frozen=True)
class FetchOptions:
    """Options of a fetch.

    Attributes:
        image_size: target size in pixels of `resize_mode`.
        resize_mode: ``keep_ratio`` (shorter side), ``keep_ratio_largest`` (longer side), ``center_crop`` and ``border``
            (square), ``no``.
        only_if_bigger: keep the size of smaller images.
        image_format: format of the copies. An image that has this format and the target size is not re-encoded.
        quality: 1-100 for jpg and webp; compression level 0-9 for png; -1 for the defaults 95, 90 and 6.
        timeout: seconds per network wait; a download may take six times as long in total.
        processes: maximum number of processes; 0 for one per core.
        threads: concurrent downloads per process.
        shard_size: images per tar.
        retries: retries after transient failures.
        ignore_opt_outs: fetch despite ``noai``, ``noml`` etc. (`OPT_OUT_DIRECTIVES`) in X-Robots-Tag.
        allow_loopback: allow loopback addresses.
        proxy: URL of an HTTP proxy; empty for that of the environment (``http_proxy``, ``https_proxy``, ``no_proxy``).
        user_agent: User-Agent header; empty for the default.
    """

    image_size: int = 512
    resize_mode: ResizeMode = "keep_ratio"
    only_if_bigger: bool = True
    image_format: ImageFormat = "jpg"
    quality: int = -1
    timeout: float = 10.0
    processes: int = 0
    threads: int = 32
    shard_size: int = 1000
    retries: int = 1
    ignore_opt_outs: bool = False
    allow_loopback: bool = False
    proxy: str = ""
    user_agent: str = ""

    def __post_init__(self) -> None:
        minimum, maximum, _ = QUALITY_RANGES[self.image_format]
        if self.quality != -1 and not minimum <= self.quality <= maximum:
            raise UsageError(f"quality {self.quality}: must be from {minimum} to {maximum} for {self.image_format}.")
        if self.proxy and urlsplit(self.proxy).scheme not in SCHEMES:
            raise UsageError(f"proxy {self.proxy}: write it as http://host:port (SOCKS is not supported).")
        if not self.user_agent.isprintable() or not self.user_agent.isascii():
            raise UsageError("user agent: must be printable ASCII on one line.")

    @property
    def proxies(self) -> dict[str, str]:
        """Proxy URLs by scheme."""
        given = dict.fromkeys(SCHEMES, self.proxy) if self.proxy else getproxies()
        return {scheme: _add_proxy_port(url) for scheme, url in given.items() if scheme in SCHEMES}

    @property
    def encode_quality(self) -> int:
        """Quality in the format of img2dataset."""
        return QUALITY_RANGES[self.image_format][2] if self.quality == -1 else self.quality

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine which images are in the folder, and their bytes."""
        return {
            "image_size": self.image_size,
            "resize_mode": self.resize_mode,
            "only_if_bigger": self.only_if_bigger,
            "image_format": self.image_format,
            "quality": self.encode_quality,
            "ignore_opt_outs": self.ignore_opt_outs,
        }


def _add_proxy_port(proxy: str) -> str:
    """Return a proxy URL with scheme and port; urllib would take the port from the scheme of the fetched URL."""
    url = proxy if "://" in proxy else f"http://{proxy}"
    parts = urlsplit(url)
    port = DEFAULT_PORTS.get(parts.scheme, DEFAULT_PORTS["http"])
    place = parts.netloc if parts.port else f"{parts.netloc.rstrip(':')}:{port}"
    return f"{parts.scheme}://{place}"


def make_request_settings(options: FetchOptions, progress: Path) -> RequestSettings:
    """Return the request settings of the worker processes.

    Args:
        options: options of the fetch.
        progress: file that grows by one byte per response.
    """
    return RequestSettings(
        user_agent=options.user_agent or f"pairwright/{pairwright.__version__} (fetches images for training data)",
        timeout=options.timeout,
        allow_loopback=options.allow_loopback,
        proxies=options.proxies,
        progress=str(progress.absolute()),
    )


def make_img2dataset_arguments(options: FetchOptions, urls: Path, shards: Path, count: int) -> dict[str, Any]:
    """Return the arguments of ``img2dataset.download``; all others keep their defaults.

    Args:
        options: options of the fetch.
        urls: Parquet with a column ``url``.
        shards: output folder.
        count: number of URLs, at least 1.
    """
    # Shards, and so the locations of images, must not depend on the number of processes.
    processes = min(options.processes or os.cpu_count() or 1, -(-count // options.shard_size))
    return {
        "url_list": str(urls.absolute()),
        "input_format": "parquet",
        "url_col": "url",
        "output_folder": str(shards.absolute()),
        "output_format": "webdataset",
        "number_sample_per_shard": options.shard_size,
        "processes_count": processes,
        "thread_count": options.threads,
        "timeout": options.timeout,
        "image_size": options.image_size,
        "resize_mode": options.resize_mode,
        "resize_only_if_bigger": options.only_if_bigger,
        "encode_format": options.image_format,
        "encode_quality": options.encode_quality,
        "skip_reencode": True,
        "extract_exif": False,
        "compute_hash": "sha256",
        "enable_wandb": False,
        "retries": 0,
        "user_agent_token": _user_agent_token(options.user_agent) or "pairwright",
        "disallowed_header_directives": [] if options.ignore_opt_outs else OPT_OUT_DIRECTIVES,
    }


def _user_agent_token(user_agent: str) -> str:
    """Return the name that X-Robots-Tag would use for this client: the first word, without its version."""
    return user_agent.partition(" ")[0].partition("/")[0].lower()
