"""Cache folder for data about files in object stores: PAIRWRIGHT_CACHE, else ``~/.cache/pairwright``."""

import hashlib
import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return the folder ``name`` of the cache."""
    return Path(os.environ.get("PAIRWRIGHT_CACHE") or "~/.cache/pairwright").expanduser() / name


def cache_key(name: str, size: int, time: float, version: str = "") -> str:
    """Return a file name for what is known of one state of a file: 32 hex digits."""
    return hashlib.sha256(f"{name}\n{size}\n{time!r}\n{version}".encode()).hexdigest()[:32]
