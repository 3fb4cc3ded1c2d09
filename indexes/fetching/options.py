"""How to fetch, as the user says it, and as img2dataset and its processes are told."""

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
QUALITY_RANGES = {"jpg": (1, 100, 95), "png": (0, 9, 6), "webp": (1, 100, 90)}  # least, most, default


@dataclass(frozen=True)
class FetchOptions:
    """How to fetch, and what to make of the pictures.

    Attributes:
        image_size: pixels that `resize_mode` aims at.
        resize_mode: ``keep_ratio`` (the shorter side), ``keep_ratio_largest`` (the longer side), ``center_crop`` and
            ``border`` (a square), ``no``.
        only_if_bigger: leave smaller pictures at their size.
        image_format: of the copies. A picture that has the format and the size already is not encoded again.
        quality: 1-100 for jpg and webp; 0-9, the effort, for png; -1 for 95, 90 and 6.
        timeout: seconds for each wait on the network; a picture may take six times as long in all.
        processes: at most; 0 for one a core.
        threads: downloads at a time in each process.
        shard_size: pictures a tar.
        retries: further tries for what failed for reasons that may pass.
        ignore_opt_outs: fetch although a site says ``noai``, ``noml`` and so on (`OPT_OUT_DIRECTIVES`) in X-Robots-Tag.
        allow_loopback: fetch from this machine too.
        proxy: URL of an HTTP proxy; empty for that of the environment (``http_proxy``, ``https_proxy``, ``no_proxy``).
        user_agent: the header that names who asks; empty for pairwright's own.
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
        least, most, _ = QUALITY_RANGES[self.image_format]
        if self.quality != -1 and not least <= self.quality <= most:
            raise UsageError(f"quality {self.quality}: {self.image_format} takes {least} to {most}.")
        if self.proxy and urlsplit(self.proxy).scheme not in SCHEMES:
            raise UsageError(f"proxy {self.proxy}: write it as http://host:port (SOCKS is not spoken).")
        if not self.user_agent.isprintable() or not self.user_agent.isascii():
            raise UsageError("user agent: plain ASCII on one line.")

    @property
    def proxies(self) -> dict[str, str]:
        """Scheme to proxy."""
        given = dict.fromkeys(SCHEMES, self.proxy) if self.proxy else getproxies()
        return {scheme: _add_proxy_port(url) for scheme, url in given.items() if scheme in SCHEMES}

    @property
    def encode_quality(self) -> int:
        """Quality as img2dataset takes it."""
        return QUALITY_RANGES[self.image_format][2] if self.quality == -1 else self.quality

    def settings(self) -> dict[str, Any]:
        """What decides which pictures are in the folder, and their bytes."""
        return {
            "image_size": self.image_size,
            "resize_mode": self.resize_mode,
            "only_if_bigger": self.only_if_bigger,
            "image_format": self.image_format,
            "quality": self.encode_quality,
            "ignore_opt_outs": self.ignore_opt_outs,
        }


def _add_proxy_port(proxy: str) -> str:
    """Return a proxy's URL with scheme and port; urllib would guess the port by the scheme of what is fetched."""
    url = proxy if "://" in proxy else f"http://{proxy}"
    parts = urlsplit(url)
    port = DEFAULT_PORTS.get(parts.scheme, DEFAULT_PORTS["http"])
    place = parts.netloc if parts.port else f"{parts.netloc.rstrip(':')}:{port}"
    return f"{parts.scheme}://{place}"


def make_request_settings(options: FetchOptions, progress: Path) -> RequestSettings:
    """Return how the processes ask.

    Args:
        options: the user's.
        progress: file that shall grow by a byte with each answer.
    """
    return RequestSettings(
        user_agent=options.user_agent or f"pairwright/{pairwright.__version__} (fetches images for training data)",
        timeout=options.timeout,
        allow_loopback=options.allow_loopback,
        proxies=options.proxies,
        progress=str(progress.absolute()),
    )


def make_img2dataset_arguments(options: FetchOptions, urls: Path, shards: Path, count: int) -> dict[str, Any]:
    """Return the arguments of ``img2dataset.download``; what is not named here is at its default on purpose.

    Args:
        options: the user's.
        urls: Parquet with a column ``url``.
        shards: folder to write to.
        count: how many URLs there are, at least 1.
    """
    # The shards, and so the places of the pictures, must not depend on how many processes there are.
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
    """Return the name by which X-Robots-Tag would single us out: the first word, without its version."""
    return user_agent.partition(" ")[0].partition("/")[0].lower()
